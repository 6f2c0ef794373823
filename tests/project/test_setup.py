"""setup.py besides compilation: it removes all remains of deleted modules."""

import importlib.util
import subprocess
import sys

import pytest
from doc_code import ROOT

pytestmark = pytest.mark.skipif(
    not (ROOT / "setup.py").exists(), reason="installed without the checkout"
)


# Without translating or compiling; in a process of its own, as setuptools wants to be imported
# before distutils.
SCRIPT = """
import os, runpy, sys
import setuptools
import Cython.Build
setuptools.setup = lambda **options: None
Cython.Build.cythonize = lambda modules, **options: []
print("ready", flush=True)
for line in sys.stdin:
    folder, *sys.argv = line.split()
    os.chdir(folder)
    runpy.run_path(sys.argv[0])
    print("done", flush=True)
"""


@pytest.fixture(scope="module")
def process():
    """Import what setup.py does, once for all of its runs."""
    for name in ("Cython", "setuptools"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"setup.py needs {name}")
    pipes = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
    with subprocess.Popen([sys.executable, "-c", SCRIPT], text=True, bufsize=1, **pipes) as run:
        assert run.stdout.readline() == "ready\n"
        yield run
        run.stdin.close()


@pytest.fixture
def build(tmp_path, process):
    """Run setup.py in a separate folder."""

    def run(*arguments):
        print(tmp_path, ROOT / "setup.py", *arguments, file=process.stdin)
        lines = []
        while (line := process.stdout.readline()) and line != "done\n":
            lines.append(line)
        assert line, lines  # or it has ended; what it said is among what pytest shows

    return run


def staged(folder):
    root = folder / "build" / "pxd"
    return {p.relative_to(root).as_posix(): p.read_text() for p in root.rglob("*.pxd")}


def test_staged_pxd_follow_their_files(tmp_path, build):
    (tmp_path / "structsolve" / "solvers").mkdir(parents=True)
    (tmp_path / "plugins" / "chain").mkdir(parents=True)
    first = tmp_path / "structsolve" / "solvers" / "loop.pxd"
    first.write_text("# one\n")
    (tmp_path / "plugins" / "chain" / "shape.pxd").write_text("# two\n")
    build("build_ext")
    packages = ("", "/solvers", "/plugins", "/plugins/chain")
    empty = {f"structsolve{name}/__init__.pxd": "" for name in packages}
    two = {"structsolve/plugins/chain/shape.pxd": "# two\n"}
    assert staged(tmp_path) == {**empty, **two, "structsolve/solvers/loop.pxd": "# one\n"}
    kept = tmp_path / "build" / "pxd" / "structsolve" / "plugins" / "chain" / "shape.pxd"
    time = kept.stat().st_mtime_ns
    # One moves, with another text, and its folder is now empty.
    first.rename(tmp_path / "structsolve" / "loop.pxd")
    (tmp_path / "structsolve" / "loop.pxd").write_text("# three\n")
    build("build_ext")
    del empty["structsolve/solvers/__init__.pxd"]
    assert staged(tmp_path) == {**empty, **two, "structsolve/loop.pxd": "# three\n"}
    assert kept.stat().st_mtime_ns == time


def test_modules_without_source_are_removed(tmp_path, build):
    gone, kept = [], ["structsolve/deep/_loop.pyx", "structsolve/deep/_old.py"]
    kept.append("structsolve/libother.so")
    for ending in (".cpython-311-x86_64-linux-gnu.so", ".cp312-win_amd64.pyd"):
        gone += [f"structsolve/deep/_old{ending}", f"plugins/chain/moved{ending}"]
        kept += [f"structsolve/deep/_loop{ending}", f"structsolve/_cyutility{ending}"]
        kept.append(f"elsewhere/_old{ending}")
    for name in gone + kept:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    def left():
        files = (p for p in tmp_path.rglob("*") if p.is_file() and "build" not in p.parts)
        return {p.relative_to(tmp_path).as_posix() for p in files}

    build("bdist_wheel")
    assert left() == {*gone, *kept}  # only a build in place has them where they would be imported
    build("editable_wheel")
    assert left() == set(kept)
    for name in gone:
        (tmp_path / name).touch()
    build("build_ext", "--inplace")
    assert left() == set(kept)
