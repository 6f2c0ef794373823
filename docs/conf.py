"""Sphinx configuration: `sphinx-build -W -b html docs docs/_build/html`."""

import runpy
from importlib.metadata import version as installed_version
from importlib.util import find_spec
from pathlib import Path

project = "structsolve"
author = "the structsolve developers"
copyright = author
release = version = installed_version("structsolve-learn")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
]
exclude_patterns = ["_build", "generated/gallery"]
html_theme = "furo"
html_title = f"structsolve {release}"
html_copy_source = False
pygments_style = "friendly"
nitpicky = False
default_role = "code"

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_mock_imports = [name for name in ("torch", "dask") if find_spec(name) is None]
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

HERE = Path(__file__).parent


def draw_gallery(app):
    """Run each script of the gallery; what it leaves in `figure` becomes its picture."""
    target = HERE / "generated" / "gallery"
    target.mkdir(parents=True, exist_ok=True)
    for script in sorted((HERE / "gallery").glob("*.py")):
        picture = target / f"{script.stem}.png"
        if not picture.exists() or picture.stat().st_mtime < script.stat().st_mtime:
            runpy.run_path(str(script))["figure"].savefig(picture, dpi=120)


def setup(app):
    app.connect("builder-inited", draw_gallery)
