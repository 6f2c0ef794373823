"""docs/tutorial.rst from first to last line, Python and shell in one folder."""

import doctest
import re
import shutil

import pytest
from doc_code import OPTIONS, ROOT, in_this_process, run_session

from structsolve import registry

PAGE = ROOT / "docs" / "tutorial.rst"
WEAR = ROOT / "docs" / "examples" / "wear"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="installed without the checkout")

# A session of the shell: its text.
CONSOLE = re.compile(r"^\.\. code-block:: console\n\n((?:(?:    .*)?\n)+)", re.MULTILINE)


def install(source, site):
    """What pip keeps of such a package; test_example_packages.py runs pip on one like it."""
    shutil.copy(source / "wear.py", site)
    about = (source / "pyproject.toml").read_text(encoding="utf-8")
    entry = re.search(r"\[project\.entry-points\.structsolve\]\n(\w+) = \"(\w+)\"\n", about)
    info = site / "structsolve_wear-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: structsolve-wear\nVersion: 0.1.0\n"
    )
    (info / "entry_points.txt").write_text(f"[structsolve]\n{entry[1]} = {entry[2]}\n")


@pytest.mark.filterwarnings("ignore")
def test_the_tutorial(tmp_path, monkeypatch):
    site = tmp_path / "site"
    site.mkdir()
    shutil.copytree(WEAR, tmp_path / "wear", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.syspath_prepend(str(tmp_path / "wear"))

    def run(command, folder):
        if command.startswith("pip install "):
            install(folder / command.split()[-1], site)
            monkeypatch.syspath_prepend(str(site))
            monkeypatch.setattr(registry, "_registry", None)  # as in a new process
            return 0, "", ""
        return in_this_process(command, folder)

    text, names = PAGE.read_text(encoding="utf-8"), {}
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=OPTIONS)
    pieces = CONSOLE.split(text)  # Python and shell in turns
    assert len(pieces) == 5 and "check_structure" in pieces[2]
    for k, piece in enumerate(pieces):
        if k % 2:
            session = re.sub("^    ", "", piece, flags=re.MULTILINE)
            run_session(session, tmp_path, f"{PAGE.name}, session {k}", run)
        else:
            test = parser.get_doctest(piece, names, f"{PAGE.name}, part {k}", str(PAGE), 0)
            runner.run(test, clear_globs=False)
            names = test.globs
            assert runner.failures == 0
    assert "wear" in registry.default().names("structures")
