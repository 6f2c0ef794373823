"""Features that nodes share: the matrix that they stand for."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from structsolve.examples.scaling import column_magnitudes, column_scales
from structsolve.examples.shared_rows import SharedRows, Table


def shared(rng, kind, constant, full=False):
    rows = rng.integers(-2, 3, (4, 3)).astype(np.float32 if kind == "float32" else float)
    if full:
        rows[rows == 0] = 0.5
    table = rng.normal(size=(5, 4)) * (rng.random((5, 4)) < 0.5)
    table[2] = 0
    given = sparse.csr_matrix(rows) if kind == "sparse" else rows
    whole = np.c_[rows, np.ones(4)] if constant else rows
    return SharedRows(given, Table(sparse.csr_matrix(table)), constant), np.kron(whole, table)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("kind", ["dense", "float32", "sparse"])
def test_they_are_the_products(kind, constant, full):
    nodes, expected = shared(np.random.default_rng(0), kind, constant, full)
    matrix = nodes.tocsr()
    assert nodes.shape == matrix.shape == expected.shape and nodes.dtype == np.float64
    np.testing.assert_allclose(matrix.toarray(), expected)
    np.testing.assert_allclose(nodes[[3, 7]].toarray(), expected[[3, 7]])
    matrix.has_canonical_format = matrix.has_sorted_indices = None  # to be found anew
    assert sparse.csr_matrix((nodes.data, nodes.indices, nodes.indptr)).has_canonical_format
    assert kind != "sparse" or nodes.nnz == matrix.nnz
    np.testing.assert_allclose(column_magnitudes(nodes), np.abs(expected).max(axis=0))
    for one, other in zip(column_scales(nodes), column_scales(matrix)):
        np.testing.assert_allclose(one, other)
    again = pickle.loads(pickle.dumps(nodes))
    assert again.constant == constant and (again.tocsr() != matrix).nnz == 0


def test_no_rows():
    nodes = SharedRows(np.zeros((0, 3)), Table(sparse.csr_matrix(np.eye(2))), True)
    assert nodes.tocsr().shape == nodes.shape == (0, 8) and nodes.nnz == 0
