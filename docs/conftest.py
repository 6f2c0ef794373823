"""``pytest docs/page.rst`` runs a page's examples in a folder of its own: they write files."""

import pytest

# Shell commands and packages that these pages make are run with them by tests/test_tutorial.py and
# tests/test_docs.py.
WHOLE = ("tutorial.rst", "structures.rst")


@pytest.fixture(autouse=True)
def folder(request, tmp_path, monkeypatch):
    if request.path.name in WHOLE:
        pytest.skip("run by tests/test_tutorial.py and tests/test_docs.py")
    monkeypatch.chdir(tmp_path)
