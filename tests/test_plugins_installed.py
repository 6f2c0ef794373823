"""Outside packages, installed into a fresh environment: they train, replace, and are checked."""

import importlib.util
import json
import os
import re
import shutil
import site
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

import structsolve
from structsolve.operators import ABI

pytestmark = pytest.mark.slow

PACKAGES = Path(__file__).parent / "third_party"


class Environment:
    """A virtual environment that sees the packages of this one, structsolve among them."""

    def __init__(self, folder):
        self.folder = folder
        venv.create(folder, with_pip=False)
        scripts = "Scripts" if os.name == "nt" else "bin"
        self.python = str(folder / scripts / ("python.exe" if os.name == "nt" else "python"))
        paths = {"base": str(folder), "platbase": str(folder)}
        scheme = "nt" if os.name == "nt" else "posix_prefix"
        own = Path(sysconfig.get_path("purelib", scheme, vars=paths))
        # addsitedir() runs the .pth files there too: an editable structsolve is one.
        seen = [
            p for p in dict.fromkeys([*site.getsitepackages(), *sys.path]) if "site-packages" in p
        ]
        lines = [f"import site; site.addsitedir({path!r})" for path in seen]
        (own / "parent.pth").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def run(self, code, **environ):
        """Run code; return what it printed."""
        done = subprocess.run(
            [self.python, "-c", code],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": "", **environ},
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    def install(self, *names, edit=None):
        """Install some of the packages from copies, without network or build isolation."""
        sources = [self.folder / "src" / name for name in names]
        for source in sources:
            shutil.copytree(PACKAGES / source.name, source)
        if edit is not None:
            edit(sources[0])
        done = subprocess.run(
            [self.python, "-m", "pip", "install", "--no-index", "--no-deps", "--quiet"]
            + ["--no-build-isolation", "--disable-pip-version-check", *map(str, sources)],
            capture_output=True,
            text=True,
            # Compiling takes longest, and nothing here is about speed.
            env={**os.environ, "PYTHONPATH": "", "CFLAGS": "" if os.name == "nt" else "-O0"},
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


needed = [
    name for name in ("pip", "setuptools", "Cython") if importlib.util.find_spec(name) is None
]
if needed:
    pytest.skip(f"building packages needs {', '.join(needed)}", allow_module_level=True)
if not (Path(structsolve.get_include()) / "structsolve" / "operators.pxd").exists():
    pytest.skip("the installed structsolve has no .pxd files", allow_module_level=True)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """An environment with structsolve alone."""
    environment = Environment(tmp_path_factory.mktemp("plain"))
    assert "structsolve" in environment.run("import structsolve; print(structsolve.__file__)")
    return environment


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """An environment with all five packages."""
    environment = Environment(tmp_path_factory.mktemp("full"))
    names = ("pure", "native", "fastchain", "gentle", "wrong")
    environment.install(*(f"structsolve-{name}" for name in names))
    return environment


def test_they_are_listed_with_their_distributions(full):
    out = full.run(
        "import structsolve\n"
        "for p in structsolve.list_plugins():\n"
        "    print(p['name'], p['distribution'], p['version'], p['status'], p['structures'])\n"
    )
    assert "ring structsolve-pure 0.1.0 loaded ['ring']" in out
    assert "quota structsolve-native 0.1.0 loaded ['quota']" in out
    assert "fastchain structsolve-fastchain 0.1.0 loaded []" in out
    assert "chain structsolve-learn" in out


@pytest.mark.parametrize("name", ["ring", "quota"])
def test_they_keep_their_promises(full, name):
    full.run(f"from structsolve.testing import check_structure; check_structure({name!r})")


@pytest.mark.parametrize("name", ["ring", "quota"])
def test_they_train_save_and_load(full, name):
    out = full.run(
        "import numpy as np, structsolve\n"
        "from structsolve import StructuredSVM\n"
        f"structure = structsolve.get_structure({name!r})\n"
        "X, Y = structure.sample(0, n=30, size=5)\n"
        "teacher = StructuredSVM(structure).fit(X, Y)\n"
        "Y = teacher.predict(X)\n"
        f"model = StructuredSVM({name!r}, alpha=1e-4, max_iter=300).fit(X, Y)\n"
        "model.save('model.structsolve')\n"
        "again = structsolve.load('model.structsolve')\n"
        "assert all((a == b).all() for a, b in zip(again.predict(X), model.predict(X)))\n"
        "print(model.score(X, Y), type(again.structure).__name__)\n"
    )
    assert float(out.split()[0]) > 0.9


def test_a_surrogate_with_a_compiled_psi(full):
    out = full.run(
        "import numpy as np\n"
        "from structsolve import StructuredSVM\n"
        "from structsolve.surrogates import BiCriteria\n"
        "class Gentle:\n"
        "    affine = True\n"
        "    def value(self, h, g): return (h / 2 + 1) * g\n"
        "    def partials(self, h, g): return g / 2, h / 2 + 1\n"
        "rng = np.random.default_rng(0)\n"
        "X = [rng.normal(size=(4, 3)) for _ in range(8)]\n"
        "Y = [rng.integers(0, 2, 4) for _ in X]\n"
        "found = [StructuredSVM('chain', surrogate=s, alpha=0.1, tol=1e-6).fit(X, Y).history_[-1]\n"
        "         for s in ('gentle', BiCriteria(Gentle()))]\n"
        "print(found[0]['primal'] == found[1]['primal'], 0 <= found[0]['gap'] < 0.01)\n"
    )
    assert out.split() == ["True", "True"]


def test_another_oracle_for_chain(full, plain):
    train = (
        "from structsolve import StructuredSVM, get_structure\n"
        "from structsolve.lp import ask_oracle\n"
        "from structsolve.structure.ask import make_layout\n"
        "X, Y = get_structure('chain').sample(0, n=40, size=6)\n"
        "model = StructuredSVM('chain', alpha=0.01, tol=1e-6, max_iter=300).fit(X, Y)\n"
        "space = model.space_\n"
        "oracle = ask_oracle(space)(make_layout(space, space.pack(X)))\n"
        "print(type(oracle).__name__, round(model.history_[-1]['primal'], 7))\n"
        "print([y.tolist() for y in model.predict(X)])\n"
    )
    count = "import structsolve_fastchain as f; print(sum(oracle.calls for oracle in f.made))\n"
    ours, theirs = plain.run(train).splitlines(), full.run(train + count).splitlines()
    assert ours[0].startswith("ChainOracle")
    assert theirs[0].split()[0] == "FastChain"
    assert abs(float(theirs[0].split()[1]) - float(ours[0].split()[1])) < 1e-5
    assert theirs[1] == ours[1]
    assert int(theirs[2]) > 100
    full.run("from structsolve.testing import check_structure; check_structure('chain', n_cases=1)")


FAULTS = {
    "value": r"Oracle.argmax .* returns the value of its label",
    "work": r"Oracle.argmax .* memory it is given \(work\).*beyond its end.*within 8 bytes",
    "scribble": r"Oracle.argmax .* memory it is given \(work\).*before its start",
    "theta": r"Oracle.argmax .* leaves what it is given as it is",
    "label": r"Oracle.argmax .* memory it is given \(label\).*beyond its end",
    "shared": r"Oracle.argmax .* in four threads as in one",
    "stale": r"Oracle.argmax .* whatever its scratch memory held",
    "padding": r"Parts.encode .* never touches padding",
    "entries": r"Parts.encode .*memory it is given \(index\)|returned 3, expected 0 to 2",
    "exception": r"Oracle.argmax .* answers without an exception.*RuntimeError: no label today",
}


@pytest.fixture(scope="module")
def complaints(full):
    """What the kit says to each fault."""
    out = full.run(
        "import json\n"
        "from structsolve.testing import BrokenPromise, check_structure\n"
        "from structsolve_wrong import wrong_structure\n"
        "said = {}\n"
        f"for fault in {['none', *FAULTS]}:\n"
        "    try:\n"
        "        structure = wrong_structure(fault)\n"
        "        check_structure(structure, n_cases=1, random_state=4, solvers=())\n"
        "        said[fault] = ''\n"
        "    except BrokenPromise as error:\n"
        "        said[fault] = str(error)\n"
        "print(json.dumps(said))\n"
    )
    return json.loads(out)


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_native_code_are_found(complaints, fault):
    assert complaints["none"] == ""
    assert re.search(FAULTS[fault], complaints[fault], re.DOTALL), complaints[fault]


def test_an_exception_inside_a_native_oracle(full):
    out = full.run(
        "from structsolve import StructuredSVM\n"
        "from structsolve_wrong import wrong_structure\n"
        "try:\n"
        "    StructuredSVM(wrong_structure('exception')).fit([[0.0], [1.0]], [0, 1])\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    assert "no label today" in out


def test_a_stale_plugin_is_refused(tmp_path):
    """Compiled against another number of the C API, it is named with the remedy."""
    environment = Environment(tmp_path / "env")
    old = tmp_path / "old" / "structsolve"
    old.mkdir(parents=True)
    (old / "__init__.pxd").touch()
    ours = Path(structsolve.get_include()) / "structsolve"
    shutil.copyfile(ours / "part_layout.pxd", old / "part_layout.pxd")
    text = (ours / "operators.pxd").read_text(encoding="utf-8")
    line = f'STRUCTSOLVE_ABI_NUMBER "{ABI}"'
    assert line in text
    (old / "operators.pxd").write_text(
        text.replace(line, 'STRUCTSOLVE_ABI_NUMBER "older"'), encoding="utf-8"
    )

    def edit(package):
        setup = package / "setup.py"
        given = setup.read_text(encoding="utf-8")
        assert "structsolve.get_include()" in given
        setup.write_text(given.replace("structsolve.get_include()", repr(str(old.parent))))

    environment.install("structsolve-native", "structsolve-pure", edit=edit)
    out = environment.run(
        "import sys, structsolve\n"
        "for p in structsolve.list_plugins():\n"
        "    print(p['name'], p['status'], p['error'])\n"
        "print('imported' if 'structsolve_quota' in sys.modules else 'left alone')\n"
        "X, Y = structsolve.get_structure('ring').sample(0)\n"
        "structsolve.StructuredSVM('ring').fit(X, Y)\n"
        "try:\n"
        "    structsolve.get_structure('quota')\n"
        "except ValueError as error:\n"
        "    print(error)\n"
    )
    complaint = (
        rf"compiled against structsolve C API older, this structsolve provides {ABI}; rebuild or "
        "upgrade the plugin"
    )
    assert re.search(rf"quota broken ImportError: _operators.* was {complaint}", out)
    assert "ring loaded" in out and "chain loaded" in out and "left alone" in out
    assert re.search(
        r"unknown structure 'quota'; known: .*plugin 'quota' \(structsolve-native 0.1.0\).*"
        + complaint,
        out,
    )
