"""The sdist and the wheel: their content, and that the sdist builds the wheel.  Slow: compiles."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
import zipfile
from pathlib import Path

import pytest
from doc_code import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / "setup.py").exists(), reason="installed without the checkout"),
]


# What pip calls for a wheel, which starts a process for each question before it.  Not compressed.
BUILD = """
import sys
from setuptools import build_meta
build_meta.build_wheel(sys.argv[1], {"--build-option": ["--compression=stored"]})
"""


def run(*command, cwd, **environment):
    done = subprocess.run(
        command,
        cwd=cwd,
        # This tests the content of the files, not their speed.
        env=os.environ | {"STRUCTSOLVE_OPTIMIZE": "-O0"} | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def tracked():
    """Return the files of the checkout known to git, with new ones."""
    try:
        listed = run(
            "git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT
        ).splitlines()
    except (OSError, AssertionError):
        pytest.skip("needs git and a checkout")
    return [name for name in listed if (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """Return the path of the sdist, made from a copy of the checkout without anything built."""
    pytest.importorskip("build")
    pytest.importorskip("numpy", "2.0", reason="wheels are built against NumPy 2")
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("sdist")
    for name in tracked():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((ROOT / name).read_bytes())
    run(
        sys.executable, "-m", "build", "--sdist", "--no-isolation", "-o", target, source, cwd=source
    )
    (path,) = target.iterdir()
    return path


def take_over(built, source):
    """Copy what a tree has translated and compiled to where a build of another looks for it.

    What it was made from is told by the contents that the build noted: times of sources change
    with every checkout.
    """
    record = built / "build" / "cython" / "sources.json"
    if not record.is_file():
        return
    noted = json.loads(record.read_text("utf-8"))
    changed = {
        name
        for name in noted
        if not (source / name).is_file()
        or hashlib.sha256((source / name).read_bytes()).hexdigest() != noted[name]
    }
    if not all(name.endswith(".pyx") for name in changed):
        return  # any module may depend on it
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    build = source / "build"
    lib = build / f"lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    names = [name for name in noted if name.endswith(".pyx") and name not in changed]
    modules = [Path("structsolve/_cyutility.pyx"), *map(Path, names)]
    now = time.time()
    for module in modules:
        package = module if module.parts[0] == "structsolve" else "structsolve" / module
        compiled = built / module.with_suffix(suffix)
        translated = built / "build" / "cython" / module.with_suffix(".c")
        if not compiled.is_file() or not translated.is_file():
            continue
        if compiled.stat().st_mtime < translated.stat().st_mtime:  # the compiler failed
            continue
        for age, path, copy in (
            (0, translated, build / "cython" / module.with_suffix(".c")),
            (1, compiled, lib / package.with_suffix(suffix)),
        ):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
            # Later than all sources, and what is compiled later than what it is compiled from.
            os.utime(copy, (now, now + 3600 + age))


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory):
    """Path of the wheel, made from the sdist.

    Modules that this checkout has compiled from the sources that the sdist holds are taken over:
    compiling them again takes minutes.
    """
    target, source = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(source)
    (source,) = source.iterdir()
    take_over(ROOT, source)
    run(sys.executable, "-c", BUILD, target, cwd=source)
    (path,) = target.iterdir()
    return path


def test_sdist_holds_sources_tests_and_docs(sdist):
    assert re.fullmatch(r"structsolve_learn-[\d.]+\.tar\.gz", sdist.name)
    with tarfile.open(sdist) as archive:
        names = {m.name.partition("/")[2] for m in archive.getmembers() if m.isfile()}
    endings = (".py", ".pyx", ".pxd", ".h", ".typed")
    for name in tracked():
        top = name.split("/")[0]
        if top in ("structsolve", "plugins"):
            assert name in names or not name.endswith(endings), name
        elif top in ("tests", "docs"):
            assert name in names, name
    assert {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "setup.py"} <= names
    generated = [
        n for n in names if n.endswith((".so", ".pyd", ".pyc", ".pyi")) or n.startswith("build/")
    ]
    generated += [n for n in names if n.endswith(".c") and not n.startswith("benchmarks/")]
    assert not generated


def test_wheel_holds_modules_and_their_interface_but_no_generated_sources(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        entry_points = next(n for n in names if n.endswith("entry_points.txt"))
        assert "chain = structsolve.plugins.chain" in archive.read(entry_points).decode()
    assert {"structsolve/py.typed", "structsolve/operators.pxd"} <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [n for n in names if n.endswith((".c", ".cpp"))]
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"structsolve"}
    compiled = {re.sub(r"\.[^/]*$", "", n) for n in names if n.endswith((".so", ".pyd"))}
    for name in tracked():
        if name.startswith(("structsolve/", "plugins/")):
            placed = name if name.startswith("structsolve/") else f"structsolve/{name}"
            assert not name.endswith((".py", ".pxd", ".h")) or placed in names, name
            assert not name.endswith(".pyx") or placed[:-4] in compiled, name
            stub = name.endswith(".pyx") and "/_" not in name
            assert not stub or f"{placed[:-4]}.pyi" in names, name


def test_wheel_can_be_imported_and_trains(wheel, tmp_path):
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import structsolve\n"
        "assert structsolve.__file__.startswith(sys.argv[1]), structsolve.__file__\n"
        "X, Y = [[[0.0], [1.0]], [[1.0]]], [['a', 'b'], ['b']]\n"
        "model = structsolve.StructuredSVM('chain', alpha=0.01).fit(X, Y)\n"
        "print([y.tolist() for y in model.predict(X)], structsolve.__version__)\n"
    )
    out = run(sys.executable, "-c", program, str(site), cwd=tmp_path)
    version = wheel.name.split("-")[1]
    assert out.strip() == f"[['a', 'b'], ['b']] {version}"
