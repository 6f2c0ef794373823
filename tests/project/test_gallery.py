"""Scripts of docs/gallery: their form, and what they import.  `.ci/docs` runs them."""

import ast
import importlib
import re
from pathlib import Path

import pytest
from doc_code import is_installed

DOCS = Path(__file__).resolve().parents[2] / "docs"
SCRIPTS = sorted((DOCS / "gallery").rglob("*.py"))

pytestmark = pytest.mark.skipif(not DOCS.exists(), reason="installed without the checkout")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_scripts_of_the_gallery(script):
    text = script.read_text(encoding="utf-8")
    tree = ast.parse(text)
    title, line, gap, *story = ast.get_docstring(tree).splitlines()
    assert line == "=" * len(title) and not gap and story, "no title, or nothing below it"
    for page in re.findall(r":doc:`/([\w/]+)`", text):
        assert (DOCS / f"{page}.rst").exists(), page
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert "figure" in names, "a script leaves its picture in `figure`"
    assert not names & {"environ", "getenv"}, "examples need no data sets"
    for node in ast.walk(tree):
        ours = isinstance(node, ast.ImportFrom) and node.module.startswith("structsolve")
        if ours and is_installed(node.module):
            home = importlib.import_module(node.module)
            missing = [alias.name for alias in node.names if not hasattr(home, alias.name)]
            assert missing == [], f"{node.module} has no {missing}"
