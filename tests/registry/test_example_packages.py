"""The packages of docs/examples in plain Python: installed as by users, checked, trained, saved."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from programs import Programs, installed

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
PACKAGES = ("segments", "grid_paths", "parts")

pytestmark = pytest.mark.skipif(not EXAMPLES.exists(), reason="installed without the checkout")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return a function that runs a program where both packages are installed."""
    folder = tmp_path_factory.mktemp("packages")
    return installed(folder, [EXAMPLES / package for package in PACKAGES]).run


@pytest.mark.parametrize("package", PACKAGES)
def test_they_are_short(package):
    lines = [
        len(path.read_text(encoding="utf-8").splitlines())
        for path in (EXAMPLES / package).glob("*.py")
    ]
    # Four things in one package; the other packages have one each.
    assert 0 < sum(lines) <= (140 if package == "parts" else 120)


def test_segments(run):
    out = run(
        "import numpy as np\n"
        "from structsolve import StructuredSVM, load\n"
        "from structsolve.testing import check_structure\n"
        "check_structure('segments', n_cases=1)\n"
        "rng, names, X, Y = np.random.default_rng(0), ['rest', 'run', 'walk'], [], []\n"
        "for _ in range(30):\n"
        "    order = rng.permutation(names)\n"
        "    Y.append([(str(name), int(rng.integers(2, 5))) for name in order])\n"
        "    states = np.repeat([names.index(name) for name, _ in Y[-1]], [n for _, n in Y[-1]])\n"
        "    X.append(np.eye(3)[states] + 0.4 * rng.normal(size=(len(states), 3)))\n"
        "model = StructuredSVM('segments', alpha=0.003, tol=0.001).fit(X, Y)\n"
        "assert model.stop_reason_ == 'converged'\n"
        "right = sum(a == b for a, b in zip(model.predict(X), Y))\n"
        "model.save('model.structsolve')\n"
        "assert load('model.structsolve').predict(X) == model.predict(X)\n"
        "print(model.score(X, Y), right, model.coef_['length'].shape)\n"
    )
    score, right, shape = out.split(maxsplit=2)
    assert float(score) > 0.97 and int(right) >= 24 and shape.strip() == "(3, 4)"


def test_grid_paths(run):
    out = run(
        "import numpy as np\n"
        "from structsolve import StructuredSVM, load\n"
        "from structsolve.testing import check_structure\n"
        "from structsolve_grid_paths import best_path\n"
        "check_structure('grid-paths', n_cases=1, solvers=('bcfw',))\n"
        "rng = np.random.default_rng(0)\n"
        "X = [rng.random((h, w, 2)) for h, w in rng.integers(3, 7, (30, 2))]\n"
        "Y = [best_path(-1 - x @ [3.0, 0.5])[1] for x in X]\n"
        "native = StructuredSVM('grid-paths', alpha=0.001, tol=0.001).fit(X, Y)\n"
        "assert native.stop_reason_ == 'converged'\n"
        "native.save('model.structsolve')\n"
        "assert load('model.structsolve').predict(X) == native.predict(X)\n"
        "programs = StructuredSVM('grid-paths', oracle='lp', alpha=0.001, tol=0.001).fit(X, Y)\n"
        "relaxed = StructuredSVM('grid-paths', surrogate='lp', alpha=0.001, tol=0.001).fit(X, Y)\n"
        "optima = [m.history_[-1]['primal'] for m in (native, programs, relaxed)]\n"
        "duals = [m.history_[-1]['dual'] for m in (native, programs, relaxed)]\n"
        "assert max(duals) <= min(optima) <= max(optima) <= 1.002 * min(optima), optima\n"
        "predicted = programs.predict(X)\n"
        "assert programs.set_params(oracle=None).predict(X) == predicted\n"
        "print(native.score(X, Y))\n"
    )
    assert float(out) > 0.97


def test_parts(run):
    out = run(
        "from pathlib import Path\n"
        "from structsolve import StructuredSVM, make_strips\n"
        "from structsolve.testing import (\n"
        "    check_metric, check_reader, check_solver, check_surrogate)\n"
        "check_solver('subgradient')\n"
        "check_surrogate('perceptron', n_cases=1)\n"
        "check_metric('exact-share')\n"
        'lines = [\'{"x": {"a": 1}, "y": "u"}\', \'{"x": {"b": 2}, "y": "v"}\']\n'
        "_ = Path('rows.jsonl').write_text('\\n'.join(lines))\n"
        "check_reader('jsonl', 'rows.jsonl')\n"
        "train, test = make_strips(60, 20)\n"
        "model = StructuredSVM('chain', solver='subgradient', alpha=0.1, max_iter=60)\n"
        "model.fit(train.pixels, train.labels)\n"
        "print(model.score(test.pixels, test.labels, metric='exact-share') <= 1,\n"
        "      model.score(test.pixels, test.labels))\n"
    )
    below, score = out.split()
    assert below == "True" and float(score) > 0.7


def test_golden(tmp_path):
    """The compiled search: built, compared with enumeration, used in training."""
    if not all(map(importlib.util.find_spec, ("setuptools", "Cython"))):
        pytest.skip("setuptools or Cython is not installed")
    folder = tmp_path / "golden"
    shutil.copytree(EXAMPLES / "golden", folder, ignore=shutil.ignore_patterns("*.so", "*.cpp"))
    # Compilation takes longest, and nothing here is about speed.
    environment = {**os.environ, "CFLAGS": "" if os.name == "nt" else "-O0"}
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr[-3000:]
    run = Programs(sys.executable, folder, PYTHONPATH=str(folder)).run
    out = run(
        "import structsolve_golden\n"
        "from structsolve import StructuredSVM, make_strips, registry\n"
        "from structsolve.search import make_search\n"
        "from structsolve.surrogates import Slack\n"
        "from structsolve.testing import check_search\n"
        "registry.default().register(structsolve_golden)\n"
        "for structure in ('chain', 'multilabel', 'multiclass'):\n"
        "    check_search('golden', structure)\n"
        "for calls in (1, 2, 3):\n"
        "    check_search(make_search('golden', calls), n_cases=1)\n"
        "train, _ = make_strips(20, 1)\n"
        "for search in ('golden', 'convex-hull'):\n"
        "    model = StructuredSVM('chain', surrogate=Slack(search=search), alpha=0.1,\n"
        "                          max_iter=30)\n"
        "    print(model.fit(train.pixels, train.labels).history_[-1]['primal'])\n"
    )
    golden, hull = map(float, out.split())
    # Golden sections leave more open, which the certified primal includes.
    assert 0.9 * hull < golden < 1.5 * hull
