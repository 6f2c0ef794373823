"""Precision at k of ranked labels, plain and by propensity, against sums written out; names."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused

import structsolve
from structsolve.plugins.extreme.metrics import precision_at_k, propensity_precision_at_k


def case(rng):
    n, n_labels, k = (int(rng.integers(*ends)) for ends in ((1, 7), (2, 8), (1, 3)))
    Y = rng.random((n, n_labels)) < rng.choice([0.0, 0.3, 0.9])
    ranked = np.array([rng.permutation(n_labels)[: max(k, 2)] for _ in range(n)])
    train = rng.random((int(rng.integers(3, 9)), n_labels)) < 0.3
    return Y, ranked, k, train


def forms(Y):
    lists = [np.flatnonzero(row).tolist() for row in Y]
    matrices = [Y, Y.astype(int), Y.astype(object), sp.csr_matrix(Y), sp.coo_matrix(Y)]
    return [*matrices, lists, list(map(set, lists))]


def test_precision_counts_the_true_labels_among_the_first():
    rng = np.random.default_rng(0)
    for _ in range(300):
        Y, ranked, k, _ = case(rng)
        hits = sum(Y[i, ranked[i, j]] for i in range(len(Y)) for j in range(k))
        for y in forms(Y):
            assert precision_at_k(y, ranked, k) == pytest.approx(hits / len(Y) / k)


def test_propensity_precision_is_relative_to_the_best_ranking():
    rng = np.random.default_rng(1)
    for _ in range(300):
        Y, ranked, k, train = case(rng)
        a, b = (0.55, 1.5) if rng.random() < 0.5 else (0.6, 2.6)
        factor = (math.log(len(train)) - 1) * (b + 1) ** a
        weight = [
            1 + factor * math.exp(-a * math.log(train[:, c].sum() + b)) for c in range(Y.shape[1])
        ]
        reached = sum(weight[c] for i in range(len(Y)) for c in ranked[i, :k] if Y[i, c])
        most = 0.0
        for row in Y:
            own = sorted((weight[c] for c in np.flatnonzero(row)), reverse=True)
            most += sum(own[:k])
        expected = reached / most if most else 0.0
        for y, other in zip(forms(Y), forms(train), strict=True):
            given = propensity_precision_at_k(y, ranked, k, y_train=other, a=a, b=b)
            assert given == pytest.approx(expected)
            assert 0 <= given <= 1 + 1e-12


@pytest.mark.parametrize("y", [[[3, 5], [1, 2]], [["a", "b"], ["a", "c"]], [[None, 1], [0, 1]]])
def test_arrays_of_labels_are_no_indicators(y):
    best = np.array([[0, 1], [1, 0]])
    refused(
        "y_true: found an array that is not 0 and 1 alone", precision_at_k, np.array(y), best, 2
    )
    many = np.array(y * 2)
    refused("y_train: ", propensity_precision_at_k, [[0], [1]], best, 1, y_train=many)


def test_names_are_labels_too():
    truth, best = [["b", "a"], []], np.array([["a", "c"], ["a", "b"]])
    assert precision_at_k(truth, best, 2) == 0.25
    assert propensity_precision_at_k(truth, best, 1, y_train=[["a"], ["b"], ["a"]]) < 1
    assert propensity_precision_at_k([[], []], best, 1, y_train=truth * 2) == 0


@pytest.mark.parametrize("k", [0, True, 1.5, "all"])
def test_wrong_k(k):
    refused("k is .*, expected an integer of at least 1", precision_at_k, [[1]], [[1, 2]], k)


def test_what_does_not_fit_is_named():
    refused("ranked has shape", precision_at_k, [[1]], [[1, 2]], 3)
    told = r"ranked\[1\]: found a label twice in \[4, 4\], expected each once"
    refused(told, precision_at_k, [[1], [4]], [[1, 2, 1], [4, 4, 2]], 2)
    assert precision_at_k([[1], [4]], [[1, 2, 1], [4, 4, 2]], 1) == 1
    told = r"example 1: found a label twice in \[0, 1, 0\], .* give indicators .* as an array"
    refused(told, precision_at_k, [[1, 0], [0, 1, 0]], [[1], [1]], 1)
    refused("ranked has 1 rows and y_true 2", precision_at_k, [[1], [2]], [[1, 2]], 1)
    refused("example 1: found 'ab', expected the labels", precision_at_k, [[1], "ab"], [[1]] * 2, 1)
    with pytest.raises(ValueError, match="y_train: found 2 rows, expected at least 3"):
        propensity_precision_at_k([[1]], [[1]], 1, y_train=[[1], [1]])


@pytest.mark.pandas
@pytest.mark.filterwarnings("ignore:X. .* far from length 1:UserWarning")
@pytest.mark.parametrize("columns", [["c", "a", "b"], [3, 1, 2]])
def test_names_of_columns_are_classes(tmp_path, columns):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    Y = pd.DataFrame((X @ rng.normal(size=(5, 3)) > 0).astype(int), columns=columns)
    structsolve.ExtremeSVM().fit(X, Y).save(tmp_path / "m")
    model = structsolve.load(tmp_path / "m")
    other, best = Y[sorted(columns)], model.predict_topk(X, 2)[0]
    assert model.classes_.tolist() == columns
    scores = model.decision_function(X)
    assert best[0, 0] == columns[scores[0].argmax()]
    assert (model.decision_function(X, classes=columns[:2]) == scores[:, :2]).all()
    lists = [Y.columns[row > 0].tolist() for row in Y.to_numpy()]
    assert model.score(X, Y) == model.score(X, Y.to_numpy()) == model.score(X, lists)
    assert model.score(X, Y) == precision_at_k(Y, best, 1) == precision_at_k(other, best, 1)
    weighted = [propensity_precision_at_k(Y, best, 2, y_train=y) for y in (Y, other, lists)]
    assert len({*weighted}) == 1
    refused("y: found the columns", model.score, X, other)
    twice = Y.set_axis([*columns[:2], columns[0]], axis=1)
    refused("y_true: found the names .*, expected 3 distinct", precision_at_k, twice, best)
