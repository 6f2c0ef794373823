"""``pytest docs/page.rst`` runs a page's examples in a folder of its own: they write files."""

import pytest

# Shell commands and packages that these pages make are run with them by test_tutorial.py and
# test_docs.py in tests/project.
WHOLE = ("tutorial.rst", "structures.rst")


@pytest.fixture(autouse=True)
def folder(request, tmp_path, monkeypatch):
    if request.path.name in WHOLE:
        pytest.skip("run by tests/project/test_tutorial.py and tests/project/test_docs.py")
    monkeypatch.chdir(tmp_path)
