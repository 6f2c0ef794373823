"""``pytest docs/page.rst`` runs a page's examples in a folder of its own: they write files."""

import pytest

# Shell commands and packages that these pages make are run with them by tests/test_tutorial.py and
# tests/test_docs.py.
collect_ignore = ["tutorial.rst", "structures.rst"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
