"""Rows of a Gaussian kernel's matrix, computed one by one, against its definition."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from structsolve.potentials.calls import row_add
from structsolve.potentials.mercer import FEW_FEATURES, Kernel
from structsolve.potentials.mercer_features import MercerRows, split_block


def matrix_of(X, kernel):
    """Return the matrix that steps see: the scores from a dual variable of 1 at each node."""
    n = len(X)
    rows, M = MercerRows(X, kernel, np.arange(n + 1), 1), np.empty((n, n))
    for i in range(n):
        W = np.zeros(rows.weights_size)
        row_add(rows, i, np.array([0], np.int32), np.ones(1), W)
        M[i] = split_block(W, n, 1)[1][0]
    return M, rows


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 40), st.integers(1, 11), st.integers(0, 2**32 - 1))
def test_rows_are_those_of_the_definition(n, n_features, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features)) * 10.0 ** rng.integers(-3, 4)
    X[rng.random(n) < 0.2] = 0
    X = X[rng.integers(0, n, n)]
    squares = cdist(X, X, "sqeuclidean")
    gamma = float(rng.choice([0.0, 1.0])) / max(np.median(squares), 1e-9)
    M, rows = matrix_of(X, Kernel("rbf", {"gamma": gamma}))
    scale = gamma * np.abs(X).max() ** 2 * n_features
    np.testing.assert_allclose(M, np.exp(-gamma * squares), atol=1e-14 * (1 + 10 * scale))
    assert np.array_equal(M, M.T)
    assert (M[squares == 0] == 1).all()
    short, other = matrix_of(X, Kernel("rbf", {"gamma": gamma}, cache_size=0))
    assert np.array_equal(M, short)
    assert rows.computed == n
    assert (other.block_rows, other.n_slots) == (1, 1)
    blocks = np.full(n, np.nan)
    rows.gram_blocks(np.arange(n + 1), np.arange(n + 1), blocks)
    assert (blocks == 1).all()


def test_a_slot_is_taken_from_the_row_least_recently_used():
    X = np.random.default_rng(0).normal(size=(8, 2))
    rows = MercerRows(X, Kernel("rbf", cache_size=3 * 64e-6), np.arange(9), 1)
    assert rows.n_slots == 3
    W, computed = np.zeros(rows.weights_size), []
    for row in (0, 1, 2, 0, 3, 0, 2, 1):
        row_add(rows, row, np.array([0], np.int32), np.ones(1), W)
        computed.append(rows.computed)
    assert computed == [1, 2, 3, 3, 4, 4, 4, 5]
    A, F = split_block(W, 8, 1)
    np.testing.assert_allclose(F[0], np.exp(-cdist(X, X, "sqeuclidean") / 2) @ A[:, 0])


@pytest.mark.parametrize(
    ("X", "params", "expected"),
    [
        (np.ones((3, 4)), None, 0.25),
        (np.ones((3, 4)), {"gamma": 2}, 2.0),
        (np.ones((3, 4)), {"gamma": -1.0}, None),
        (np.ones((3, FEW_FEATURES + 1)), None, None),
        (np.full((3, 4), 1e200), None, None),
        (np.ones((3, 0)), None, None),
        (sp.csr_matrix(np.ones((3, 4))), None, None),
    ],
)
def test_which_rows_are_computed_one_by_one(X, params, expected):
    assert Kernel("rbf", params).gaussian(X) == expected
    assert Kernel("laplacian", params).gaussian(X) is None
