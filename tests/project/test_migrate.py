"""docs/migrate.rst: names on the right exist, and what is said to be missing is missing."""

import ast
import inspect
import re
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise

import pytest
from doc_code import ROOT

import structsolve
from structsolve import LatentSVM, StructuredSVM, registry, solvers, surrogates
from structsolve.evaluation import metrics
from structsolve.solvers.bcfw import SAMPLINGS

PAGE = ROOT / "docs" / "migrate.rst"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="installed without the checkout")

# Rows that say "none", and the names that the thing would have if it existed.
ABSENT = {
    '``sample_method="seq"``': ["seq", "sequential", "cyclic"],
    "``switch_to``": ["switch_to"],
    "``batch_size`` (``NSlackSSVM``)": ["batch_size"],
    "``learning_rate``, ``momentum``, ``decay_*``": ["learning_rate", "momentum", "decay"],
    "``initialize``, ``constraints`` of ``fit``": ["initialize"],
    "``linesearch``, ``max_linesearch``": ["linesearch", "line_search", "max_linesearch"],
    "``calibration_*``": ["calibration_rate", "calibration_eta", "eta0"],
    "``-p 2``": ["squared-hinge", "slack_norm"],
}
# Names on the right that are not ours: data, constants, other libraries.
ELSEWHERE = {"C", "n", "c1", "c2", "w", "X", "X_dev", "Y", "Y_dev", "x", "y", "row", "block"}
ELSEWHERE |= {"y_true", "y_pred", "structsolve", "logging", "history_"}
# Strings that are neither in the registry nor names of blocks or of record entries.
STRINGS = {"permutation", "uniform", "n", "features", "rbf", "poly", "sigmoid", "precomputed"}
STRINGS |= {"weighted", "f1", "h0", "h1", "structsolve.solvers", "validation_score"}


def public_classes():
    """Return estimators, transformers, and the objects behind the registry's names."""
    for home in (structsolve, solvers, surrogates):
        yield from (getattr(home, name) for name in home.__all__)
    known = registry.default()
    for kind in ("structures", "solvers", "surrogates"):
        yield from (known.find(kind, name).factory for name in known.names(kind))


def parameters(thing):
    return set(inspect.signature(thing).parameters)


CLASSES = {
    thing.__name__: thing
    for thing in public_classes()
    if inspect.isclass(thing) and "xtreme" not in f"{thing.__module__}.{thing.__name__}"
}
METHODS = {
    name: parameters(getattr(estimator, name))
    for estimator in (StructuredSVM, LatentSVM)  # fit of the second takes one argument more
    for name in dir(estimator)
    if not name.startswith("_") and callable(getattr(estimator, name))
}
REGISTERED = {
    name
    for plugin in structsolve.list_plugins()
    for kind in ("structures", "surrogates", "solvers", "losses", "searches", "lp_backends")
    for name in plugin[kind]
}
SETTINGS = {name for thing in CLASSES.values() for name in parameters(thing)}


def rows():
    """Return the rows (left, right) of the page's tables, except that of the constants."""
    text = PAGE.read_text(encoding="utf-8")
    table = re.compile(r"^(=+  =+)\n(.*)\n\1\n((?:.+\n)*?)\1$", re.MULTILINE)
    for border, head, body in table.findall(text):
        cut = border.index(" ")
        assert head[cut:].strip() in ("structure", "solver", "structsolve"), head
        lines = [(line[:cut].strip(), line[cut:].strip()) for line in body.splitlines()]
        starts = [k for k, (left, _) in enumerate(lines) if left] + [len(lines)]
        for a, b in pairwise(starts):
            yield lines[a][0], " ".join(right for _, right in lines[a:b])


@pytest.fixture(scope="module")
def model():
    y = [["a", "b"], ["b", "a"]]
    return StructuredSVM("chain", max_iter=1, tol=1.0).fit([[[0.0], [1.0]]] * 2, y)


def missing(code, model):
    """Return the names of an expression or assignment of the page that do not exist."""
    tree = ast.parse(re.sub(r"=(?=[,)]|$)", "=0", code))  # the page writes f(name=)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            thing = CLASSES.get(name) or getattr(metrics, name, None)
            known = parameters(thing) if thing else METHODS.get(name, ())
            given = (keyword.arg for keyword in node.keywords)
            yield from (f"{name}({argument}=)" for argument in given if argument not in known)
        elif isinstance(node, ast.Name):
            ours = {*CLASSES, *METHODS, *SETTINGS, *structsolve.__all__, *dir(metrics)}
            if node.id not in ours | ELSEWHERE and not hasattr(model, node.id):
                yield node.id
        elif isinstance(getattr(node, "value", None), str):
            strings = REGISTERED | STRINGS | {*model.coef_, *model.history_[-1]}
            yield from (repr(word) for word in {node.value} - strings)


def test_what_the_tables_name_is_there(model):
    codes = [(left, code) for left, right in rows() for code in re.findall(r"``(.+?)``", right)]
    assert len(codes) > 80
    for left, code in codes:
        assert list(missing(code, model)) == [], f"{left}: {code}"
    for name in re.findall(r"structsolve\.[\w.]*\w", PAGE.read_text(encoding="utf-8")):
        if name.startswith("structsolve.torch") and find_spec("torch") is None:
            continue  # of an extra; looked at where it is installed
        if name != "structsolve.solvers":
            home, _, last = name.rpartition(".")
            assert hasattr(import_module(home), last), name


@pytest.mark.parametrize(
    "code", ["BCFW(speed=)", '"viterbi"', "predict_fast", "fit(..., when=)", "speed=1"]
)
def test_names_that_are_not_there_are_noticed(code, model):
    assert list(missing(code, model))


def test_rows_that_say_none_are_those_of_the_list():
    assert {left for left, right in rows() if right.startswith("none")} == set(ABSENT)


@pytest.mark.parametrize("row", ABSENT)
def test_what_is_said_not_to_be_there_is_not(row):
    assert not set(ABSENT[row]) & {*SETTINGS, *REGISTERED, *METHODS, *SAMPLINGS}


def test_only_tables_say_that_something_is_not_there():
    text = PAGE.read_text(encoding="utf-8")
    assert not re.search("not in this release|no counterpart|stay with|not there|not yet", text)
