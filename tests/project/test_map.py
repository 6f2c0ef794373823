"""The table "to change X, open Y" of docs/architecture.rst: every file and name in it exists."""

import re

import pytest
from doc_code import ROOT

PAGE = ROOT / "docs" / "architecture.rst"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="not in a checkout")
CODE = ROOT / "structsolve"


def rows():
    """Return the rows of the table: what to change, and what its second cell says."""
    if not PAGE.exists():
        return {}
    table = PAGE.read_text(encoding="utf-8").split("   * - to change\n     - open\n")[1]
    table = table.split("\n\n")[0]
    cells = [re.split(r"\n     - ", row, maxsplit=1) for row in table.split("   * - ")[1:]]
    return {what: " ".join(where.split()) for what, where in cells}


def files_of(where):
    """Return the files and folders that a cell names; names of files follow their folder."""
    folders, paths = [CODE, ROOT], []
    for name in re.findall(r"``([\w./]+(?:/|\.(?:py|pyx|pxd|h)))``", where):
        places = [folder / name for folder in reversed(folders) if (folder / name).exists()]
        places += sorted(ROOT.glob(f"plugins/*/{name}"))  # "its ``losses.py``": that of a plugin
        assert places, f"{name}: not there"
        paths.append(places[0])
        folders.append(places[0] if places[0].is_dir() else places[0].parent)
    return paths


@pytest.mark.parametrize("what", rows())
def test_a_row_names_files_that_exist(what):
    where = rows()[what]
    paths = files_of(where)
    assert paths or ":doc:" in where or "its plugin" in where, where
    sources = [
        source.read_text(encoding="utf-8", errors="ignore")
        for path in paths
        for source in ([path] if path.is_file() else path.rglob("*.p*"))
        if source.suffix in (".py", ".pyx", ".pxd", ".h")
    ]
    names = re.findall(r"``(?:class )?(\w+)(?:\(\))?``", where)
    for name in (n for n in names if not (CODE / n).exists() and not (ROOT / n).exists()):
        whole = sources + [path.read_text(encoding="utf-8") for path in CODE.glob("*.py")]
        assert any(name in text for text in whole) or name.startswith("_"), f"{name}: in no file"
