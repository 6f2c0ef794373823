"""Rows that are scored together, one strip of classes after another, against dense arithmetic."""

import numpy as np
import pytest
import scipy.sparse as sp
from extreme_cases import best, rows_of, sums

from structsolve.plugins.extreme.weights.feature_rows import FeatureRows
from structsolve.plugins.extreme.weights.postings import Postings

# Two strips and a part of a third.
C = 20_000
# Enough classes with a weight for a row to be scored in strips.
N = 320


def lists_of(rng, intercept, integers):
    """Return weights of frequent features, one with a weight for each class, and of rare ones."""
    shares = [1, 0.4, 0.2, 0.2, 0.1, 0.05, 0.01, 0.001, 1e-4, 1e-4, 0, 0]
    W = sp.vstack([rows_of(rng, 1, C, p, integers) for p in shares])
    W.eliminate_zeros()
    b = rng.integers(-1, 2, C).astype(np.float32) / 4 if intercept else None
    return Postings.from_matrix(W.tocsr(), b)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("integers", [False, True])
def test_every_strip_has_its_say(integers, dtype):
    """Sums equal those of one row at a time, bit by bit; on ties the lowest class wins."""
    rng = np.random.default_rng(integers)
    for case in range(6):
        weights = lists_of(rng, case % 2, integers).as_type(dtype)
        X = rows_of(rng, 12, weights.n_features, 0.6, integers)
        exclude = rng.integers(-1, C, 12).astype(np.int32) if case % 3 else None
        S = sums(weights, X)
        if exclude is not None:  # what is left out would have been the best, or comes first
            exclude[:4], exclude[4] = S[:4].argmax(axis=1), 0
        k = [1, 25, 40][case // 2]
        ids, scores, bounds, entries = weights.top(X, k, exclude=exclude)
        wanted = best(S, k, exclude)
        np.testing.assert_array_equal(ids, wanted[0])
        np.testing.assert_array_equal(scores, wanted[1])
        assert (bounds == 0).all()
        assert entries == np.diff(weights.indptr)[X.indices].sum()
        # Nothing is kept from one call, or from one row, to the next.
        for i in (3, 0):
            one = weights.top(X[i], k, exclude=None if exclude is None else exclude[i : i + 1])
            np.testing.assert_array_equal(one[0], ids[i : i + 1])
            np.testing.assert_array_equal(one[1], scores[i : i + 1])


def test_more_rows_than_are_scored_together():
    """Rows that are scored alone, and long ones, come between those that are scored together."""
    rng = np.random.default_rng(0)
    weights = lists_of(rng, True, False)
    few = rows_of(rng, 1500, weights.n_features, 0.4)
    few = sp.vstack([few, sp.csr_matrix(np.ones((1, weights.n_features), np.float32))]).tocsr()
    few = few[rng.integers(0, few.shape[0], 1600)]
    alone = [weights.top(few[i], 5)[:3] for i in range(few.shape[0])]
    for n_jobs in (1, 3):
        together = weights.top(few, 5, n_jobs=n_jobs)
        for part, rows in zip(together, zip(*alone, strict=True), strict=False):
            np.testing.assert_array_equal(part, np.concatenate(rows))


def test_weights_that_grow_are_scored_the_same_way():
    """Features without weights have no list there."""
    rng = np.random.default_rng(1)
    weights = lists_of(rng, True, False)
    X = rows_of(rng, 30, weights.n_features, 0.6)
    wanted, told = weights.top(X, 7), FeatureRows.from_postings(weights).top(X, 7)
    for own, other in zip(told, wanted, strict=True):
        np.testing.assert_array_equal(own, other)


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("k", [3, 25])
@pytest.mark.parametrize("first", [0, C - N, 8192 - N + 1, 8192 - 4])
def test_the_best_may_be_anywhere(k, first, alone):
    """In one strip, or at the ends of two; others are equal, or have no weights."""
    W = np.full((1, C), 0 if alone else 0.5, np.float32)
    W[0, first : first + N] = np.random.default_rng(k).permutation(N) + 1
    W[0, [first, first + N - 1]] = N + 2, N + 1
    X = sp.csr_matrix(np.float32([[1], [2], [-1]]))
    weights = Postings.from_matrix(sp.csr_matrix(W))
    for exclude in (None, np.array([first, first + N - 1, -1], np.int32)):
        ids, scores, *_ = weights.top(X, k, exclude=exclude)
        wanted = best(X.toarray() * W, k, exclude)
        np.testing.assert_array_equal(ids, wanted[0])
        np.testing.assert_array_equal(scores, wanted[1])
