"""Packages written against an earlier number of the Python contract: installed, run unchanged."""

import hashlib
import re
from pathlib import Path

import pytest
from programs import installed

PACKAGES = Path(__file__).parents[1] / "third_party"
# They are never edited: their number promises that they run as they are.
FROZEN = {
    "structsolve-native": "4b8de4f53b309c21",
    "structsolve-pure": "88d696ca9c3a4946",
    "structsolve-steps": "7ec3681007a31e8f",
}


@pytest.mark.parametrize("name", FROZEN)
def test_they_are_what_they_were(name):
    digest = hashlib.sha256()
    files = [p for s in ("*.py", "*.pyx", "*.toml") for p in (PACKAGES / name).rglob(s)]
    for path in sorted(files, key=lambda path: path.relative_to(PACKAGES).parts):
        digest.update(path.name.encode() + path.read_bytes().replace(b"\r\n", b"\n"))
    assert digest.hexdigest()[:16] == FROZEN[name], (
        f"never edit {name}: see tests/third_party/README.md"
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return a function that runs a program where the package for contract 1.0 is installed."""
    return installed(tmp_path_factory.mktemp("contract"), [PACKAGES / "structsolve-steps"]).run


def test_it_is_loaded_with_warnings_that_say_what_to_write(run):
    out = run(
        "import warnings\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    import structsolve\n"
        "    row, = [r for r in structsolve.list_plugins() if r['name'] == 'steps']\n"
        "print(row['status'], row['losses'], row['metrics'], row['estimators'])\n"
        "for one in caught: print(one.category.__name__, one.message)\n"
    )
    assert out.startswith("loaded ['falls', 'Falls'] ['first-right'] ['StepsCount']\n")
    label = r"FutureWarning plugin 'steps' \(structsolve-steps 0.1.0\): "
    assert re.search(label + r"structsolve_loss_names\(\) goes; list the names in str", out)
    assert re.search(label + "its wrapper of structsolve_max_min gets .*; take no 'layout'", out)
    assert len(out.splitlines()) == 3


def test_its_structure_keeps_its_promises_and_its_polytope_decodes(run):
    out = run(
        "import warnings, structsolve\n"
        "from structsolve import StructuredSVM\n"
        "from structsolve.testing import check_structure, check_surrogate\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    check_structure('steps', n_cases=2)\n"
        "for text in {str(one.message) for one in caught if one.category is FutureWarning}:\n"
        "    print(text)\n"
        "check_surrogate('steps-perceptron', 'steps', n_cases=1)\n"
        "X, Y = structsolve.get_structure('steps').sample(0, n=30)\n"
        "labels = {}\n"
        "for oracle in (None, 'lp'):\n"
        "    model = StructuredSVM('steps', oracle=oracle, alpha=0.1, tol=1e-6).fit(X, Y)\n"
        "    labels[oracle] = [y.tolist() for y in model.predict(X)]\n"
        "right = sum(a[0] == b[0] for a, b in zip(labels['lp'], Y)) / 30\n"
        "print(labels[None] == labels['lp'], model.score(X, Y, metric='first-right') == right)\n"
        "for loss in ('falls', 'Falls:factor=2', 'hamming'):\n"
        "    model = StructuredSVM('steps', loss=loss, alpha=0.1, tol=1e-6).fit(X, Y)\n"
        "    model.save('m'); model = structsolve.load('m')\n"
        "    print(model.loss, round(model.history_[-1]['primal'], 4))\n"
    ).splitlines()
    *warned, equal, falls, named, hamming = out
    assert (
        len(
            [
                text
                for text in warned
                if "(structsolve-steps 0.1.0) returned a bound StepsPolytopes from str" in text
            ]
        )
        == 1
    )
    assert equal == "True True"
    assert falls.split()[1] == named.split()[1] != hamming.split()[1]


def test_methods_of_its_subclass_are_called_as_before(run):
    out = run(
        "import warnings, structsolve, structsolve_steps as steps\n"
        "from structsolve import StructuredSVM\n"
        "X, Y = structsolve.get_structure('multilabel').sample(0, n=20)\n"
        "for settings in ({'surrogate': 'max-min'}, {'oracle': 'lp'}):\n"
        "    values = []\n"
        "    for name in ('tags', 'multilabel'):\n"
        "        kind = structsolve.get_structure(name, edges='none')\n"
        "        with warnings.catch_warnings(record=True) as caught:\n"
        "            warnings.simplefilter('always')\n"
        "            model = StructuredSVM(kind, alpha=0.1, tol=1e-6, **settings).fit(X, Y)\n"
        "        values.append(round(model.history_[-1]['primal'], 6))\n"
        "        print({str(w.message).split(';')[0] for w in caught\n"
        "               if w.category is FutureWarning})\n"
        "    print(values[0] == values[1], sorted({*steps.TagsSpace.made}), steps.wrapped[-1:])\n"
    ).splitlines()
    assert "make_max_min(loss) returns a callable that takes a layout" in out[0]
    assert (
        "(structsolve-steps 0.1.0) returned a bound LabelSetMaxMin from structsolve_max_min"
        in out[0]
    )
    assert out[1:3] == ["set()", "True ['LabelSetMaxMin'] ['LabelSetMaxMin']"]
    assert "make_polytopes() returns a callable that takes a layout" in out[3]
    assert (
        "(structsolve-steps 0.1.0) returned a bound GraphPolytopes from structsolve_polytope"
        in out[3]
    )
    assert out[4] == "set()" and out[5].startswith("True ['GraphPolytopes', 'LabelSetMaxMin']")


def test_its_files_command_and_options(run):
    out = run(
        "import json, structsolve\n"
        "from structsolve.cli.main import main\n"
        "rows = [{'x': [[1, 0], [0, 1]], 'y': ['a', 'b']}, {'x': [[0, 1]], 'y': ['b']}]\n"
        "open('data.steps', 'w').write('\\n'.join(map(json.dumps, rows)))\n"
        "for line in ('--help', 'fit data.steps --structure steps --alpha 0.01 --model s',\n"
        "             'score s data.steps --metric first-right',\n"
        "             'fit data.steps --estimator steps --smoothing 2 --model m',\n"
        "             'fit data.steps --estimator steps --kernel rbf --model m',\n"
        "             'steps-count m', 'predict m data.steps', 'score m data.steps',\n"
        "             '--without-plugin structsolve-steps fit x.steps --smoothing 2 --model m',\n"
        "             '--without-plugin structsolve-steps --help'):\n"
        "    print(line, '->', main(line.split()))\n"
        "print(structsolve.StepsCount, structsolve.load('m').smoothing)\n"
    )
    each = re.split(r"(?m)^(?=.* -> \d$)", out)
    assert "steps-count" in each[0] and "Print the counts of a model of steps." in each[0]
    assert "first-right 1 of 2 examples" in out
    assert "--smoothing 2 --model m -> 0" in out and "--kernel rbf --model m -> 2" in out
    assert "StepsCount [3.0, 4.0]\nsteps-count m -> 0" in out
    assert "\nb\npredict m data.steps -> 0" in out and "\n4.0\nscore m data.steps -> 0" in out
    assert "structsolve-steps fit x.steps --smoothing 2 --model m -> 2" in out
    assert "steps-count" not in out.partition("--smoothing 2 --model m -> 2")[2]
    assert out.endswith("<class 'structsolve_steps_shell.StepsCount'> 2.0\n")
