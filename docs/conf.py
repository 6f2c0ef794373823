"""Sphinx configuration: `sphinx-build -W -b html docs docs/_build/html`."""

import gc
import os
import sys
from importlib.metadata import version as installed_version
from importlib.util import find_spec
from pathlib import Path

from sphinx.ext.autodoc.mock import _MockObject

sys.path.insert(0, str(Path(__file__).parent))  # gallery_figures

# A fifth of the time of all pages went to looking for garbage.
gc.set_threshold(1_000_000, 5, 5)

project = "structsolve"
author = "the structsolve developers"
copyright = author
release = version = installed_version("structsolve-learn")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
if not tags.has("check"):  # noqa: F821
    extensions.append("sphinx.ext.viewcode")  # pages of all sources, a quarter of the time
# gallery.rst includes the gallery's index; scripts' headers are read by sphinx-gallery alone.
exclude_patterns = ["_build", "gallery", "generated/gallery/index.rst"]
html_theme = "furo"
html_title = f"structsolve {release}"
# Where the pages will be, which the workflow that publishes them knows.
html_baseurl = os.environ.get("STRUCTSOLVE_DOCS_URL", "")
html_copy_source = False
pygments_style = "friendly"
nitpicky = False
default_role = "code"

# Docstrings are those of compiled modules: Sphinx would load the stubs beside them in their place.
os.environ["SPHINX_AUTODOC_IGNORE_NATIVE_MODULE_TYPE_STUBS"] = "1"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_mock_imports = [name for name in ("torch", "jax", "dask") if find_spec(name) is None]
# Our functions are registered in tables of JAX, which may be such a stand-in.
_MockObject.__setitem__ = lambda *_: None
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# Links into other libraries' pages need their inventories, which only a build with a network has.
intersphinx_mapping = {
    "python": ("https://docs.python.org/3", None),
    "numpy": ("https://numpy.org/doc/stable", None),
    "scipy": ("https://docs.scipy.org/doc/scipy", None),
    "sklearn": ("https://scikit-learn.org/stable", None),
    "networkx": ("https://networkx.org/documentation/stable", None),
    "matplotlib": ("https://matplotlib.org/stable", None),
    "cvxpy": ("https://www.cvxpy.org", None),
    "pluggy": ("https://pluggy.readthedocs.io/en/stable", None),
    "torch": ("https://docs.pytorch.org/docs/stable", None),
    "jax": ("https://docs.jax.dev/en/latest", None),
    "dask": ("https://docs.dask.org/en/stable", None),
}
if not os.environ.get("STRUCTSOLVE_DOCS_LINKS"):
    intersphinx_mapping = {}

# With `-D plot_gallery=0` no script runs; those of networks never do where PyTorch is missing.
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "generated/gallery",
    "nested_sections": False,
    "subsection_order": [
        f"gallery/{name}" for name in ("structures", "surrogates", "training", "pictures")
    ],
    "filename_pattern": r"\.py$" if find_spec("torch") else r"(?<!network)\.py$",
    "image_scrapers": ("gallery_figures.scrape",),
    "reset_modules": ("matplotlib",),
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "backreferences_dir": None,
    "doc_module": ("structsolve",),
    "reference_url": {"structsolve": None},
}
