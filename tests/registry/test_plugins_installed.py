"""External packages in a fresh environment: they train, replace operators, and are checked."""

import importlib.machinery
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
from c_interface import broken, public, recorded
from programs import Programs

import structsolve
from structsolve import abi
from structsolve.operators import ABI

pytestmark = pytest.mark.slow

PACKAGES = Path(__file__).parents[1] / "third_party"
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"

# Wheels of all sources by what pip calls, in one process: pip starts two for each.
BUILD = """
import os, sys
from setuptools import build_meta
target, *sources = sys.argv[1:]
for source in sources:
    os.chdir(source)
    build_meta.build_wheel(target)
"""


class Environment:
    """A virtual environment that sees the packages of this one, with structsolve."""

    def __init__(self, folder):
        self.folder = folder
        venv.create(folder, with_pip=False)
        scripts = "Scripts" if os.name == "nt" else "bin"
        self.python = str(folder / scripts / ("python.exe" if os.name == "nt" else "python"))
        paths = {"base": str(folder), "platbase": str(folder)}
        scheme = "nt" if os.name == "nt" else "posix_prefix"
        self.site = Path(sysconfig.get_path("purelib", scheme, vars=paths))
        # addsitedir() runs the .pth files there too: an editable structsolve is one.
        seen = [
            p for p in dict.fromkeys([*site.getsitepackages(), *sys.path]) if "site-packages" in p
        ]
        lines = [f"import site; site.addsitedir({path!r})" for path in seen]
        (self.site / "parent.pth").write_text("\n".join(lines) + "\n", encoding="utf-8")
        self.run = Programs(self.python, folder, PYTHONPATH="").run

    def install(self, *folders, against):
        """Build packages from copies, without network or isolation, and install them.

        ``against``: another folder of .pxd files for some of them, by their names.
        """
        sources = [self.folder / "src" / folder.name for folder in folders]
        for folder, source in zip(folders, sources):
            shutil.copytree(folder, source)
        for name, include in against.items():
            setup = self.folder / "src" / name / "setup.py"
            given = setup.read_text(encoding="utf-8")
            assert "structsolve.get_include()" in given
            setup.write_text(given.replace("structsolve.get_include()", repr(str(include))))
        self._call("-c", BUILD, self.folder / "wheels", *sources)
        self._call(
            *("-m", "pip", "install", "--no-index", "--no-deps", "--quiet"),
            *("--disable-pip-version-check", *(self.folder / "wheels").iterdir()),
        )

    def _call(self, *command):
        done = subprocess.run(
            [self.python, *map(str, command)],
            capture_output=True,
            text=True,
            # Compilation takes longest, and nothing here is about speed.
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
    """An environment with structsolve only."""
    environment = Environment(tmp_path_factory.mktemp("plain"))
    assert "structsolve" in environment.run("import structsolve; print(structsolve.__file__)")
    return environment


def write_former(folder):
    """Write the C interface of the first minor of our major, as if it had had less still.

    ``Parts.difference`` and ``Parts.indicator`` were a slot and a flag: binaries that never heard
    of them have the defaults.
    """
    number, files = list(recorded().items())[-1]
    assert number != ABI and number.split(".")[0] == ABI.split(".")[0]
    text = files["operators.pxd"]
    for added, room in (
        ("cdef readonly bint indicator", "cdef bint _flag9"),
        (r"cdef Py_ssize_t difference\(.*", "cdef void _slot9(self) noexcept nogil"),
    ):
        text, count = re.subn(added, room, text)
        assert count == 1
    former = {**files, "operators.pxd": text}
    assert broken(former, public()) == []
    for name, text in former.items():
        inner = folder / "structsolve" / name
        inner.parent.mkdir(parents=True, exist_ok=True)
        inner.write_text(text, encoding="utf-8")
        (inner.parent / "__init__.pxd").touch()
    return number


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """An environment with all five packages; two were compiled against an earlier minor."""
    environment = Environment(tmp_path_factory.mktemp("full"))
    folder = tmp_path_factory.mktemp("former")
    environment.former = write_former(folder)
    environment.install(
        *(PACKAGES / f"structsolve-{name}" for name in ("native", "gentle", "pure", "wrong")),
        EXAMPLES / "fastchain",
        against=dict.fromkeys(("structsolve-native", "structsolve-gentle"), folder),
    )
    return environment


def binary_of(environment, name):
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    (binary,) = (environment.site / name).glob(f"_*{suffix}")
    return binary


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


def test_binaries_of_a_former_minor_run(full):
    """All other tests of "quota" and "gentle" run on them: it trains by `Parts.difference`."""
    assert abi.fits(full.former, ABI) and full.former != ABI
    for name in ("structsolve_quota", "structsolve_gentle"):
        assert abi.number_in_file(str(binary_of(full, name))) == full.former


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


def test_an_estimator_with_files_and_a_command_of_its_own(full, plain):
    out = full.run(
        "import sys, structsolve\n"
        "from structsolve.cli.main import main\n"
        "assert structsolve.list_plugins() and 'structsolve_ring_vote' not in sys.modules\n"
        "open('rings', 'w').write('a B\\nb B\\n\\nc A\\n\\n')\n"
        "for line in ('--help', 'ring-vote rings --model m --alpha 2', 'predict m rings',\n"
        "             'score m rings', 'fit rings --format conll --estimator RingVote:alpha=3 '\n"
        "             '--model n', 'fit rings --estimator RingVote --tol 1 --model n',\n"
        "             'fit rings --estimator RingVot --model n'):\n"
        "    print(line, '->', main(line.split()))\n"
        "print(structsolve.load('m').alpha, structsolve.load('n', mmap=True).counts_,\n"
        "      structsolve.load('n').alpha, structsolve.RingVote.__module__)\n"
    )
    assert re.search(r"ring-vote +Count the classes of rings, and save the\n? *commonest\.", out)
    assert "saved m\n" in out and "predict m rings -> 0" in out and "\nB\nB\nB\npredict" in out
    assert "\n0.6666666666666666\nscore" in out
    assert "--model n -> 0" in out and "--tol 1 --model n -> 2" in out
    assert "RingVot --model n -> 2" in out
    assert out.splitlines()[-1] == "2.0 [4. 5.] 3 structsolve_ring_vote"
    shutil.copy(full.folder / "m", plain.folder / "m")
    assert "RingVote" not in plain.run("import structsolve; print(structsolve.list_plugins())")
    said = plain.run(
        "import structsolve\n"
        "for call in (lambda: structsolve.load('m', mmap=True), lambda: structsolve.RingVote):\n"
        "    try: call()\n"
        "    except Exception as error: print(error)\n"
        "from structsolve.cli.main import main\n"
        "print(main(['ring-vote', 'm']))\n"
    )
    assert "estimator 'RingVote' comes from the distribution structsolve-pure 0.1.0" in said
    assert "has no attribute 'RingVote'" in said and said.endswith("2\n")


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
        "from structsolve.surrogates import Slack\n"
        "for given in ({'loss': 'zero-one'}, {'surrogate': Slack(search='exact')}):\n"
        "    StructuredSVM('chain', tol=0.1, **given).fit(X, Y)\n"
        "print(len(model.predict_kbest(X, 3)[0]), model.decision_function(X)[0].shape)\n"
    )
    ours, theirs = plain.run(train).splitlines(), full.run(train).splitlines()
    assert ours[0].startswith("ChainOracle")
    assert theirs[0].split()[0] == "FastChain"
    assert abs(float(theirs[0].split()[1]) - float(ours[0].split()[1])) < 1e-5
    # Powers are operators of their own: who replaces the oracle keeps them.
    assert theirs[1:3] == ours[1:3]
    full.run("from structsolve.testing import check_structure; check_structure('chain', n_cases=1)")


def test_a_wrapper_counts_the_calls_of_oracles(full):
    """The example of docs/hooks.rst, around a compiled oracle and one in Python."""
    out = full.run(
        "from structsolve import StructuredSVM, get_structure, registry\n"
        "from structsolve_fastchain import counting\n"
        "registry.default().register(counting)\n"
        "for name in ('chain', 'ring'):\n"
        "    X, Y = get_structure(name).sample(0, n=20)\n"
        "    model = StructuredSVM(name, alpha=0.1, max_iter=300).fit(X, Y)\n"
        "    in_training, = counting.counted\n"
        "    print(in_training.calls, sum(row['oracle_calls'] for row in model.history_))\n"
        "    model.predict(X)\n"
        "    print(counting.counted[1].calls, in_training.exact, in_training.n_states)\n"
        "    counting.counted.clear()\n"
    ).splitlines()
    for training, predicted in (out[:2], out[2:]):
        calls, reported = map(int, training.split())
        assert calls >= reported > 20
        assert predicted == "20 True 3"


FAULTS = {
    "value": r"Oracle.argmax .* returns the value of its label",
    "work": r"Oracle.argmax .* memory it is given \(work\).*beyond its end.*within 8 bytes",
    "scribble": r"Oracle.argmax .* memory it is given \(work\).*before its start",
    "theta": r"Oracle.argmax .* does not change its arguments",
    "label": r"Oracle.argmax .* memory it is given \(label\).*beyond its end",
    "shared": r"Oracle.argmax .* in four threads as in one",
    "stale": r"Oracle.argmax .* regardless of its scratch memory",
    "padding": r"Parts.encode .* never touches padding",
    "entries": r"Parts.encode .*memory it is given \(index\)|returned 3, expected 0 to 2",
    "exception": r"Oracle.argmax .* answers without an exception.*RuntimeError: no label today",
}


@pytest.fixture(scope="module")
def complaints(full):
    """Check the kit's message for each fault."""
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


def test_native_answers_that_do_not_exist_are_refused_in_training(full):
    """They were read as indexes, which ended the process."""
    out = full.run(
        "from structsolve import StructuredSVM, get_structure\n"
        "from structsolve.surrogates import Slack\n"
        "from structsolve_wrong import wrong_structure\n"
        "def told(structure, surrogate, X=[[0.0], [1.0]], Y=[0, 1]):\n"
        "    try:\n"
        "        StructuredSVM(structure, surrogate=surrogate, max_iter=2).fit(X, Y)\n"
        "    except ValueError as error:\n"
        "        print(error)\n"
        "for fault in ('state', 'below'):\n"
        "    for surrogate in ('margin', Slack(search='sarawagi')):\n"
        "        told(wrong_structure(fault), surrogate)\n"
        "X, Y = get_structure('chain').sample(0, n=4, size=3)\n"
        "from structsolve_wrong._operators import WrongSearch\n"
        "faults = {'settled': 0}, {'point': 10**5}, {'point': -9}, {'share': 2}, {'nan': 1}\n"
        "for fault in faults:\n"
        "    told('chain', Slack(search=WrongSearch(**fault)), X, Y)\n"
    )
    told = out.splitlines()
    assert len(told) == 9
    for line in told[:4]:
        assert re.search(r"example \d: WrongOracle answered .* is -?1000000, expected 0 to 1", line)
    for line in told[4:8]:
        assert "example 0: search 'wrong' returned points" in line and "settle()" in line
    assert "label_bound nan" in told[8]


def test_native_answers_that_are_no_numbers_name_their_example(full):
    """Training went on with NaN, and batches returned it."""
    out = full.run(
        "import numpy as np\n"
        "from structsolve import StructuredSVM, batch\n"
        "from structsolve_wrong import wrong_structure\n"
        "X, Y = np.eye(3), np.array([0, 1, 2])\n"
        "def told(call, *given, **named):\n"
        "    try:\n"
        "        print('nothing', call.__name__, call(*given, **named))\n"
        "    except ValueError as error:\n"
        "        print(error)\n"
        "for fault in ('marginals', 'partition', 'draw', 'derivative', 'costs'):\n"
        "    structure = wrong_structure(fault)\n"
        "    model = StructuredSVM(structure, max_iter=2).fit(X, Y)\n"
        "    model.set_params(surrogate='crf', loss='wrong')\n"
        "    space = batch.score_space(structure, 3)\n"
        "    scores = batch.Scores(np.eye(3), examples=space.pack_sizes(3))\n"
        "    if fault in ('marginals', 'partition'):\n"
        "        for solver in ('gbcfw', 'lbfgs'):\n"
        "            base = StructuredSVM(structure, surrogate='crf', solver=solver)\n"
        "            told(base.fit, X, Y)\n"
        "        told(batch.entropy, space, scores)\n"
        "    if fault == 'marginals':\n"
        "        told(model.predict_marginals, X)\n"
        "        told(batch.marginals, space, scores)\n"
        "        told(batch.value_and_gradient, space, scores, Y, 'crf')\n"
        "    elif fault == 'draw':\n"
        "        told(model.sample, X, 2)\n"
        "        told(batch.samples, space, scores, 2)\n"
        "    elif fault == 'derivative':\n"
        "        told(batch.marginals_vjp, space, scores, scores)\n"
        "        told(batch.hessian_product, space, scores, scores, Y)\n"
        "    elif fault == 'costs':\n"
        "        told(model.expected_loss, X, Y)\n"
        "        told(model.predict_least_loss, X)\n"
        "for fault in ('nan loss', 'infinite loss'):\n"
        "    for surrogate in ('margin', 'unit-margin', 'slack'):\n"
        "        named = {'surrogate': surrogate, 'loss': 'wrong'}\n"
        "        told(StructuredSVM(wrong_structure(fault), **named).fit, X, Y)\n"
    )
    lines = out.splitlines()
    assert len(lines) == 21
    for line in lines:
        assert line.startswith("example 1: "), line
        assert re.search(
            r"answered with (nan|-?inf|a label .* is 1000000)|exp\(inf\)|is (nan|inf)", line
        )


def test_a_stale_plugin_is_refused(full, tmp_path):
    """If compiled against another number of the C interface, the error names it and the remedy."""
    environment = Environment(tmp_path / "env")
    for own in ("quota", "native-*", "ring*.py", "pure-*"):
        for path in full.site.glob(f"structsolve_{own}"):
            (shutil.copytree if path.is_dir() else shutil.copy)(path, environment.site / path.name)
    # As the compiler writes it: a number that is none.
    binary, older = binary_of(environment, "structsolve_quota"), full.former.replace(".", "-")
    compiled = binary.read_bytes()
    assert abi.MARKER + full.former.encode() + b";" in compiled
    binary.write_bytes(compiled.replace(*(abi.MARKER + n.encode() for n in (full.former, older))))
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
        rf"compiled against structsolve C API {older}, this structsolve provides {ABI}; rebuild or "
        "upgrade the plugin"
    )
    assert re.search(rf"quota broken ImportError: _operators.* was {complaint}", out)
    assert "ring loaded" in out and "chain loaded" in out and "left alone" in out
    assert re.search(
        r"unknown structure 'quota'; known: .*plugin 'quota' \(structsolve-native 0.1.0\).*"
        + complaint,
        out,
    )
