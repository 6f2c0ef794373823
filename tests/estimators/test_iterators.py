"""Generators and other iterators as X and y, and clear words where they cannot be read."""

import numpy as np
import pytest
from checks import refused
from sklearn.preprocessing import StandardScaler

from structsolve import (
    ConditionalRiskMinimizer,
    ExtremeSVM,
    HiddenMarkovModel,
    HierarchicalSVM,
    LatentSVM,
    NodeTransformer,
    StructuredSVM,
    StructuredSVMCV,
    TokenFeaturizer,
    get_structure,
    make_strips,
)
from structsolve.plugins.chain.metrics import span_f1

TRAIN, TEST = make_strips(16, 4)
X, Y = list(TRAIN.pixels), [list(y) for y in TRAIN.labels]
SAME = [x[:3] for x in X], [y[:3] for y in Y]
ROWS = [[0.0, 1.0], [1.0, 0.0], [2.0, 0.0], [0.0, 3.0]]
QUICK = {"max_iter": 3, "tol": 1.0}
CASES = {
    "StructuredSVM": (StructuredSVM("chain", **QUICK), X, Y),
    "multiclass": (StructuredSVM("multiclass", **QUICK), ROWS, ["a", "b", "b", "a"]),
    "StructuredSVMCV": (StructuredSVMCV("chain", alphas=[0.1, 1.0], cv=2, **QUICK), X, Y),
    "LatentSVM": (LatentSVM("chain", alpha=0.1, max_rounds=1, **QUICK), X, Y),
    "HierarchicalSVM": (HierarchicalSVM({"a": ["b", "c"]}, **QUICK), ROWS, ["b", "c", "c", "b"]),
    "ConditionalRiskMinimizer": (ConditionalRiskMinimizer("chain", alpha=0.1), *SAME),
    "HiddenMarkovModel": (HiddenMarkovModel(), ["ab", "bab"], ["xy", "yxy"]),
    "ExtremeSVM": (ExtremeSVM(max_iter=2), ROWS, [0, 1, 1, 0]),
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


@pytest.mark.filterwarnings("ignore")
def test_fits_and_predictions(case):
    model, given, labels = case
    model.fit(given, labels)
    expected, score = model.predict(given), model.score(given, labels)
    model.fit((x for x in given), map(lambda y: y, labels))
    actual = model.predict(x for x in given)
    assert all(map(np.array_equal, actual, expected))
    assert model.score(iter(given), iter(labels)) == score
    once = (x for x in given)
    model.predict(once)
    words = "X: found a generator without items, expected examples; an iterator can be read only"
    refused(words, model.predict, once)
    refused(words, model.fit, once, labels)
    refused("y: found a list_iterator without items", model.fit, given, iter([]))


def test_validation_and_further_methods():
    model = StructuredSVM("chain", early_stopping=True, **QUICK)
    model.fit(iter(X), iter(Y), validation=(iter(TEST.pixels), iter(TEST.labels)))
    assert "validation_score" in model.history_[-1]
    assert len(model.predict_marginals(iter(X))) == len(model.decision_function(iter(X))) == len(X)
    assert len(model.predict_kbest(iter(X), k=2)) == len(X)
    stream = StructuredSVM("chain", solver="sgd").partial_fit(iter(X), iter(Y))
    assert stream.n_iter_ == 1
    many = ExtremeSVM().partial_fit(iter(ROWS), iter([0, 1, 1, 0]), classes=[0, 1])
    assert len(many.predict(iter(ROWS))) == 4


def test_iterators_inside_are_named():
    model = StructuredSVM("chain", **QUICK)
    refused(
        "y, example 0: found a list_iterator, expected a flat", model.fit, X, [iter(y) for y in Y]
    )
    words = "X, example 0: found a generator, expected a matrix; pass a list"
    refused(words, model.fit, [(row for row in x.tolist()) for x in X], Y, error=TypeError)


def test_transformers():
    scaled = NodeTransformer(StandardScaler())
    assert len(scaled.fit_transform(iter(X))) == len(scaled.fit(iter(X)).transform(iter(X))) == 16
    tokens = [[["He", "PRP"], ["ran", "VBD"]], [["She", "PRP"]]]
    featurizer = TokenFeaturizer().fit(iter(tokens))
    assert featurizer.transform(iter(tokens)) == featurizer.transform(tokens)


FORMS = {
    "chain": ("chain", [(np.eye(3), np.eye(2)), (np.eye(1, 3), np.eye(0, 2))], ["aba", "b"]),
    "tree": ("tree", [(np.eye(3), [-1, 0, 0]), (np.eye(1, 3), [-1])], ["aba", "b"]),
    "mrf": ("mrf", [(np.eye(3), [[0, 1]]), (np.eye(1, 3), [])], ["aba", "b"]),
    "grid": ("grid", [np.eye(2), np.eye(1, 3)], [np.eye(2, dtype=int), np.eye(1, 3, dtype=int)]),
    "path": (get_structure("path", monotone=True), [np.eye(2)] * 2, [[(0, 0), (1, 1)]] * 2),
    "matching": ("permutation", [np.ones((2, 2, 1)), np.ones((1, 1, 1))], [[1, 0], [0]]),
    "dependency": ("dependency", [np.ones((3, 2, 1)), np.ones((2, 1, 1))], [[2, 0], [0]]),
    "relations": ("dependency", [np.ones((2, 1, 1))] * 2, [[(0, "a")], [(0, "b")]]),
    "semi-markov": ("semi-markov", [np.eye(2), np.eye(1, 2)], [[(0, 2, "a")], []]),
    "tags": ("semi-markov", [np.eye(2), np.eye(1, 2)], [["B-a", "I-a"], ["O"]]),
}


@pytest.mark.pandas
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", FORMS)
def test_columns_of_a_table_whatever_their_index(kind):
    """A row of a filtered frame has not the number of its name."""
    Series = pytest.importorskip("pandas").Series
    structure, given, labels = FORMS[kind]
    labels = [list(y) if isinstance(y, str) else y for y in labels]

    def column(items):
        return Series(dict(enumerate(items, 7)))

    plain, tables = (StructuredSVM(structure, alpha=0.1, **QUICK) for _ in range(2))
    plain.fit(given, labels)
    expected = plain.predict(given)
    each = [y if np.ndim(y) > 1 or not len(y) else column(y) for y in labels]
    for X, Y in ((column(given), column(labels)), (given, each)):
        assert str(tables.fit(X, Y).predict(X)) == str(expected)
        for metric in (None, "sequence-accuracy"):
            assert tables.score(X, Y, metric=metric) == plain.score(given, labels, metric=metric)
    if kind in ("semi-markov", "tags"):
        assert span_f1(column(labels), column(labels))["f1"] == 1
