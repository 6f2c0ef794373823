"""Weights by feature that grow: every change beside the same on a dense matrix."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from structsolve.plugins.extreme.weights.feature_rows import FeatureRows
from structsolve.plugins.extreme.weights.postings import Postings


def changes(rng, X, C, m, integers):
    rows = rng.integers(0, X.shape[0], m)
    factors = rng.integers(-2, 3, m).astype(float) if integers else rng.normal(size=m)
    return rows, rng.integers(0, C, m).astype(np.int32), factors


def rows_of(rng, n, d, density, integers):
    X = sp.random(n, d, density, "csr", np.float32, rng)
    if integers:
        X.data[:] = rng.integers(-2, 3, X.nnz)
    return X


@pytest.mark.parametrize("integers", [False, True])
def test_changes_are_those_of_a_dense_matrix(integers):
    rng = np.random.default_rng(integers)
    for _ in range(60):
        n, d, C = (int(rng.integers(1, most)) for most in (8, 20, 60))
        X = rows_of(rng, n, d, 0.5, integers)
        weights, W, dense = FeatureRows(d, C), np.zeros((d, C)), X.toarray().astype(float)
        error = 1e-30  # of a weight, by rounding so far
        for _ in range(12):
            kind = rng.choice(["add", "add", "shrink", "cut", "freeze"])
            if kind == "add":
                rows, classes, factors = changes(rng, X, C, int(rng.choice([0, 1, 40])), integers)
                weights.add_rows(X, rows, classes, factors)
                np.add.at(W.T, classes, factors[:, None] * dense[rows])
            elif kind == "shrink":
                factor = rng.choice([0.5, 1, 2, 1e-4])
                weights.shrink(factor)
                W *= factor
                error *= factor
            elif kind == "cut":
                some = rng.choice(C, rng.integers(0, C + 1), replace=False).astype(np.int32)
                cut = rng.choice([0, 0.5, 1]) * abs(W).max()
                weights.soft_threshold(some, cut)
                W[:, some] -= np.clip(W[:, some], -cut, cut)
            else:
                weights = FeatureRows.from_postings(weights.freeze())
            error = max(error, 1e-5 * abs(W).max())
            frozen = weights.freeze()
            np.testing.assert_allclose(frozen.to_matrix().toarray(), W, rtol=1e-4, atol=error)
            near = {"rtol": 1e-4, "atol": 50 * error}
            atol = error * (abs(W).sum() + error * W.size)
            np.testing.assert_allclose(weights.norm2(), (W**2).sum(), rtol=1e-3, atol=atol)
            assert frozen.nnz <= weights.nnz
            assert weights.nbytes <= 9 * weights.nnz + 24 * d
            ids, scores, bounds, entries = weights.top(X, 3)
            wanted, S = frozen.top(X, 3), frozen.scores(X, np.maximum(ids, 0))
            S[ids < 0] = -np.inf
            np.testing.assert_allclose(scores, wanted[1], **near)
            np.testing.assert_allclose(scores, S, **near)
            np.testing.assert_allclose(weights.scores(X, ids), scores, **near)


def test_weights_that_cancel_are_not_frozen():
    X = sp.csr_matrix(np.ones((1, 3), np.float32))
    weights, zero = FeatureRows(3, 4), np.zeros(1, np.int64)
    for factor in (2.0, -2.0):
        weights.add_rows(X, zero, np.array([1], np.int32), np.array([factor]))
    assert weights.freeze().nnz == 0 and weights.nnz == 3 and weights.norm2() == 0
    weights.soft_threshold(np.zeros(0, np.int32), 0.0)
    assert weights.nnz == 0 and weights.nbytes == 24 * 3


def test_memory_stays_below_twelve_bytes_a_weight():
    """A text-like model grows, is cut, and grows again, with at least 20 weights per feature."""
    rng = np.random.default_rng(3)
    d, C = 300, 400
    share = 1 / (1 + np.arange(d) / 30)
    weights, most = FeatureRows(d, C), 0
    X = sp.csr_matrix((rng.random((200, d)) < share).astype(np.float32))
    for step in range(30):
        weights.add_rows(X, *changes(rng, X, C, 40, False))
        if step % 10 == 9:
            weights.soft_threshold(np.arange(C, dtype=np.int32), 0.5)
        if weights.nnz >= 20 * d:
            most = max(most, weights.nbytes / weights.nnz)
    assert 8 < most <= 12


def test_many_changes_are_made_some_at_a_time():
    rng = np.random.default_rng(4)
    X = sp.csr_matrix(np.ones((2, 3000), np.float32))
    weights = FeatureRows(3000, 5)
    rows, classes, factors = changes(rng, X, 5, 1000, True)  # 3 million entries
    weights.add_rows(X, rows, classes, factors)
    total = np.bincount(classes, factors, 5)
    np.testing.assert_array_equal(
        weights.freeze().to_matrix().toarray(), np.tile(total.astype(np.float32), (3000, 1))
    )


def test_factors_beyond_float32_do_not_overflow():
    X = sp.csr_matrix(np.ones((1, 2), np.float32))
    weights = FeatureRows(2, 2)
    one = np.zeros(1, np.int64), np.zeros(1, np.int32), np.ones(1)
    weights.add_rows(X, *one)
    for _ in range(200):
        weights.shrink(1e-3)
    weights.add_rows(X, *one)
    assert weights.freeze().to_matrix().toarray().tolist() == [[1, 0], [1, 0]]
    assert weights.norm2() == pytest.approx(2)


def test_intercept_and_copies():
    b = np.array([1, 2], np.float32)
    start = Postings(np.array([0, 1]), np.array([0], np.int32), np.ones(1, np.float16), 2, b)
    weights = FeatureRows.from_postings(start)
    weights.shrink(4.0)
    X = sp.csr_matrix(np.ones((1, 1), np.float32))
    assert weights.top(X, 2)[1].tolist() == [[5, 2]]
    again = pickle.loads(pickle.dumps(weights))
    assert again.top(X, 2)[1].tolist() == [[5, 2]]
    assert weights.freeze().intercept.tolist() == [1, 2]


def test_wrong_arguments_are_named():
    X = sp.csr_matrix(np.ones((2, 3), np.float32))
    weights = FeatureRows(3, 4)
    good = {"rows": np.zeros(2, np.int64), "classes": np.zeros(2, np.int32), "factors": np.ones(2)}

    def refused(message, call, *args, **kwargs):
        with pytest.raises(ValueError, match=message):
            call(*args, **kwargs)

    for change, message in (
        ({"rows": np.zeros(2, np.int32)}, "rows: found int32"),
        ({"rows": np.array([0, 2])}, "rows: found numbers from 0 to 2"),
        ({"rows": np.array([0, -1])}, "rows: found numbers from -1"),
        ({"rows": np.zeros(1, np.int64)}, "have 1, 2, 2 entries"),
        ({"classes": np.zeros(2, np.int64)}, "classes: found int64"),
        ({"classes": np.array([0, 4], np.int32)}, "classes: found numbers from 0 to 4"),
        ({"factors": np.ones(2, np.float32)}, "factors: found float32"),
        ({"factors": np.array([1, np.nan])}, "factors: found NaN"),
    ):
        refused(message, weights.add_rows, X, **{**good, **change})
    refused("X: found values of float64", weights.add_rows, X.astype(float), **good)
    refused("X has 2 features", weights.add_rows, X[:, :2], **good)
    assert weights.nnz == 0
    refused("factor is 0.0", weights.shrink, 0)
    refused("factor is -1.0", weights.shrink, -1)
    refused("factor is nan", weights.shrink, np.nan)
    refused("factor is inf", weights.shrink, np.inf)
    refused("cut is -1", weights.soft_threshold, np.zeros(1, np.int32), -1)
    refused("cut is nan", weights.soft_threshold, np.zeros(1, np.int32), np.nan)
    refused("classes: found numbers", weights.soft_threshold, np.array([4], np.int32), 1)
    refused("classes: found list", weights.soft_threshold, [1], 1)
    refused("n_features is 0", FeatureRows, 0, 2)
    refused("n_classes is 2147483648", FeatureRows, 2, 2**31)
    refused("n_classes is 2.5", FeatureRows, 2, 2.5)
    weights.add_rows(X * np.float32(3e38), **good)
    refused("weights: found NaN or infinity for feature 0", weights.freeze)
