""".ci/addresses.py prepares the tree for a release: addresses, and links that work anywhere."""

import re
import shutil
import subprocess
import sys

import pytest
from doc_code import ROOT

SCRIPT = ROOT / ".ci/addresses.py"
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="installed without the checkout")


@pytest.fixture
def tree(tmp_path):
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("docs", "benchmarks", "CHANGELOG.md", "CONTRIBUTING.md"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / ".ci").mkdir()
    shutil.copy(SCRIPT, tmp_path / ".ci")
    return tmp_path


def run(tree, *arguments):
    command = [sys.executable, tree / ".ci/addresses.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_a_release_has_addresses_and_absolute_links(tree):
    tomllib = pytest.importorskip("tomllib")
    before = tomllib.loads((tree / "pyproject.toml").read_text("utf-8"))
    assert run(tree, "Someone/fork", "v0.1.0").returncode == 0
    after = tomllib.loads((tree / "pyproject.toml").read_text("utf-8"))
    urls = after["project"].pop("urls")
    assert after == before
    assert urls["Homepage"] == "https://github.com/Someone/fork"
    assert urls["Documentation"] == "https://someone.github.io/fork/"
    readme = (tree / "README.md").read_text("utf-8")
    links = re.findall(r"\]\(([^)]*)\)", readme)
    assert links and all(link.startswith(("https://", "http://", "#")) for link in links)
    assert "](https://github.com/Someone/fork/raw/v0.1.0/docs/pictures/readme.png)" in readme
    assert "](https://github.com/Someone/fork/blob/v0.1.0/CHANGELOG.md)" in readme
    for link in links:
        path = re.fullmatch(r"https://github.com/Someone/fork/\w+/v0.1.0/([^#]*).*", link)
        assert path is None or (ROOT / path[1]).exists()


def test_refused(tree):
    for arguments, message in (
        ((), "usage"),
        (("nobody", "v1"), "repository: found 'nobody', expected OWNER/NAME"),
    ):
        done = run(tree, *arguments)
        assert done.returncode == 1 and message in done.stderr
    assert run(tree, "a/b", "v1").returncode == 0
    assert "expected none" in run(tree, "a/b", "v1").stderr
