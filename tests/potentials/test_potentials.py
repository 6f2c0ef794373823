"""Feature rows and linear potentials against the same matrices in dense form."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused
from hypothesis import given, settings
from hypothesis import strategies as st

from structsolve.examples.packed import Examples
from structsolve.part_layout import PartLayout
from structsolve.potentials import calls as theta_calls
from structsolve.potentials.features import FeatureRows
from structsolve.potentials.linear import LinearPotentials
from structsolve.potentials.weight_layout import Block, WeightLayout
from structsolve.utils.arrays import padded

STORAGE = ["dense f64", "dense f32", "csr f64", "csr f32", "csr ones"]
LENGTHS = [3, 1, 4, 2]


def features(storage, rows, columns, rng):
    """Return a matrix in a storage format, and the same dense in float64."""
    X = rng.integers(-4, 5, (rows, columns)) / 4.0  # exact in float32
    if storage.startswith("csr"):
        X *= rng.random(X.shape) < 0.5
        X = (X != 0).astype(float) if storage == "csr ones" else X
        X = sp.csr_matrix(X)
    if storage.endswith("f32"):
        X = X.astype(np.float32)
    return X, (X.toarray() if sp.issparse(X) else X).astype(float)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_only_ones_are_taken_for_ones(dtype):
    """Sparse features that are all 1 are stored without values; others only look like it."""
    for places in itertools.permutations(range(9), 2):
        for pair in ((2, 2), (0, 2), (2, 0)):
            values = np.ones(9, dtype=dtype)
            values[list(places)] = pair
            rows = FeatureRows(sp.csr_matrix((values, np.arange(9), [0, 9]), shape=(1, 9)), 4, 0.0)
            weights = np.arange(1.0, 37.0)
            expected = values.astype(float) @ weights.reshape(9, 4)
            np.testing.assert_array_equal(theta_calls.row_score(rows, 0, weights), expected)


@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 8, 26, 33, 64, 70])
@pytest.mark.parametrize("intercept", [0.0, 1.0, 2.5])
def test_design(storage, k, intercept):
    rng = np.random.default_rng(k)
    X, dense = features(storage, 6, 5, rng)
    dense = np.hstack([dense, np.full((6, int(intercept != 0)), intercept)])
    stride = padded(k)
    rows = FeatureRows(X, stride, intercept)
    assert (rows.n_rows, rows.n_cols) == (6, 5)
    assert rows.nnz == (X.nnz if sp.issparse(X) else X.size)
    W = rng.normal(size=(dense.shape[1], stride))
    for row in range(6):
        np.testing.assert_allclose(
            theta_calls.row_score(rows, row, W.ravel()), dense[row] @ W, atol=1e-13
        )
        for m in {min(m, k) for m in (0, 1, 2, 3, 4, 5, 7, k)}:
            cols = rng.permutation(k)[:m].astype(np.int32)
            coefs = rng.normal(size=m)
            changed = W.copy()
            theta_calls.row_add(rows, row, cols, coefs, changed.reshape(-1))
            W2 = W.copy()
            W2[:, cols] += np.outer(dense[row], coefs)
            np.testing.assert_allclose(changed, W2, atol=1e-14)
            products = theta_calls.row_dot(rows, row, cols, W.ravel())
            np.testing.assert_allclose(products, dense[row] @ W[:, cols], atol=1e-13)
        np.testing.assert_allclose(
            theta_calls.row_gram(rows, row, 1, 5), dense[row] @ dense[1:5].T, atol=1e-13
        )


@pytest.mark.parametrize("storage", STORAGE)
def test_columns_that_are_close_together_are_added_by_vectors(storage):
    """Bit for bit as one at a time, and other columns stay."""
    rng = np.random.default_rng(8)
    X, dense = features(storage, 4, 6, rng)
    spans = (5, 7, 8, 9, 13, 20, 32, 33, 63, 64, 65, 72)
    for stride, span, first in itertools.product((8, 16, 64, 72, 80), spans, (0, 1, 3, 8)):
        if first + span > stride:
            continue
        rows = FeatureRows(X, stride, 0.0)
        for m in {min(m, span) for m in (5, 8, 9, (span + 7) // 8 * 2 - 1, span // 3, span)}:
            if m < 3:
                continue
            inner = 1 + rng.permutation(span - 2)[: m - 2]
            inner = np.sort(inner) if m == span else inner  # adjacent ones in order
            cols = np.array([0, *inner, span - 1], np.int32) + first
            coefs = rng.normal(size=m)
            W = rng.normal(size=(6, stride))
            changed, expected = W.copy(), W.copy()
            for row in range(4):
                theta_calls.row_add(rows, row, cols, coefs, changed.reshape(-1))
                expected[:, cols] += np.outer(dense[row], coefs)
            np.testing.assert_array_equal(changed, expected)


def test_design_without_rows_or_columns():
    for X in (np.zeros((0, 3)), np.zeros((2, 0)), sp.csr_matrix((0, 3)), sp.csr_matrix((2, 0))):
        rows = FeatureRows(X, 4, 1.0)
        if X.shape[0]:
            np.testing.assert_array_equal(
                theta_calls.row_score(rows, 1, np.arange(4.0)), np.arange(4)
            )
        refused("row is", theta_calls.row_score, rows, X.shape[0], np.zeros(4 * (X.shape[1] + 1)))


def test_broken_csr_matrices_are_refused():
    def matrix(indptr, indices):
        X = sp.csr_matrix((2, 3))
        X.indptr, X.indices = np.array(indptr), np.array(indices)
        X.data = np.full(len(indices), 2.0)
        return X

    FeatureRows(matrix([0, 1, 2], [2, 0]), 4)
    for bad in ([1, 1, 2], [0, 2, 1], [0, 1]):
        refused("broken indptr|indptr ends", FeatureRows, matrix(bad, [2, 0]), 4)
    refused("all three must agree", FeatureRows, matrix([0, 1, 3], [2, 0]), 4)
    for column in (-1, 3):
        refused("expected 0 to 2", FeatureRows, matrix([0, 1, 2], [column, 0]), 4)


class Written:
    """Return potentials of random examples, and every Phi_i as a dense matrix."""

    def __init__(self, storage, k, edges, intercept, gram_budget, seed=0):
        rng = np.random.default_rng(seed)
        offsets = np.concatenate([[0], np.cumsum(LENGTHS)])
        X, dense = features(storage, offsets[-1], 5, rng)
        blocks = [
            Block("pair", "shared", (k, k)),
            Block("bias", "shared", (3,)),
            Block("node", "node", (k,)),
        ]
        examples = Examples(offsets, X)
        edge_offsets = offsets - np.arange(len(offsets))
        if edges:
            blocks.append(Block("edge", "edge", (k, k)))
            E, dense_edges = features(storage, edge_offsets[-1], 4, rng)
            examples = Examples(offsets, X, edge_offsets=edge_offsets, edges=E)
        self.layout = WeightLayout(blocks, 5, 4 if edges else 0, intercept)
        self.potentials = LinearPotentials(examples, self.layout, gram_budget)
        self.rng = rng
        self.phi = []
        layout = self.layout
        for i, length in enumerate(LENGTHS):
            x = dense[offsets[i] : offsets[i + 1]]
            x = np.hstack([x, np.ones((length, int(intercept)))])
            phi = np.zeros((layout.theta_size(length, length - 1), layout.dim))
            shared = np.arange(layout.shared_size)
            phi[shared, shared] = 1
            position = layout.shared_size
            position = self._fill(phi, position, layout.node_start, x, layout.node_size)
            if edges:
                e = dense_edges[edge_offsets[i] : edge_offsets[i + 1]]
                self._fill(phi, position, layout.edge_start, e, layout.edge_size)
            self.phi.append(phi)

    @staticmethod
    def _fill(phi, row, column, x, width):
        block = np.kron(x, np.eye(width))
        phi[row : row + block.shape[0], column : column + block.shape[1]] = block
        return row + block.shape[0]

    def sparse(self, i):
        """Return a sparse p with a repeated index, and the same dense."""
        size = len(self.phi[i])
        index = self.rng.integers(size, size=9).astype(np.int32)
        index[-1] = index[0]
        value = self.rng.normal(size=9)
        value[3] = 0
        return index, value, np.bincount(index, value, minlength=size)


@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("k", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("edges", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_potentials(storage, k, edges, intercept):
    for gram_budget in (0, 10**6):
        case = Written(storage, k, edges, intercept, gram_budget)
        potentials, rng = case.potentials, case.rng
        assert potentials.dim == case.layout.dim and potentials.n == len(LENGTHS)
        assert potentials.max_theta == max(len(phi) for phi in case.phi)
        w = rng.normal(size=potentials.dim)
        for i, phi in enumerate(case.phi):
            np.testing.assert_allclose(theta_calls.score(potentials, i, w), phi @ w, atol=1e-12)
            np.testing.assert_allclose(
                theta_calls.score(potentials, i, w, -0.5), -0.5 * phi @ w, atol=1e-12
            )
            index, value, p = case.sparse(i)
            assert theta_calls.dot(potentials, i, index, value, w) == pytest.approx(p @ phi @ w)
            changed = w.copy()
            theta_calls.add(potentials, i, index, value, 0.75, changed)
            np.testing.assert_allclose(changed, w + 0.75 * phi.T @ p, atol=1e-13)
            u = np.zeros(len(phi))
            theta_calls.add_gram(potentials, i, index, value, 2.0, u)
            expected = 2 * phi @ (phi.T @ p)
            np.testing.assert_allclose(u, expected, atol=1e-12)
            copy, theta = u.copy(), rng.normal(size=len(phi))
            moved = theta.copy()
            theta_calls.move_gram(potentials, i, index, -0.5, u, moved)
            np.testing.assert_allclose(moved, theta - 0.5 * expected, atol=1e-12)
            assert not u.any()
            theta_calls.move_gram(potentials, i, index, 1.0, copy, None)
            assert not copy.any()


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(STORAGE), st.integers(1, 12), st.booleans(), st.integers(0, 10**6))
def test_adjoint(storage, k, edges, seed):
    """<Phi w, p> = <w, Phi' p>."""
    case = Written(storage, k, edges, True, 0, seed)
    for i in range(len(LENGTHS)):
        w = case.rng.normal(size=case.potentials.dim)
        index, value, p = case.sparse(i)
        adjoint = np.zeros_like(w)
        theta_calls.add(case.potentials, i, index, value, 1.0, adjoint)
        assert theta_calls.score(case.potentials, i, w) @ p == pytest.approx(w @ adjoint, abs=1e-10)


def test_bad_arguments_are_refused():
    potentials = Written("dense f64", 3, True, True, 0).potentials
    w, size = (
        np.zeros(potentials.dim),
        len(theta_calls.score(potentials, 0, np.zeros(potentials.dim))),
    )
    index, value = np.zeros(2, np.int32), np.zeros(2)
    empty = np.zeros(0, np.int32), np.zeros(0)
    theta_calls.add(potentials, 0, *empty, 1.0, w)
    assert theta_calls.dot(potentials, 0, *empty, w) == 0
    for i in (-1, 4):
        refused(f"example {i} of 4", theta_calls.score, potentials, i, w)
    read_only = w.copy()
    read_only.flags.writeable = False
    theta_calls.score(potentials, 0, read_only)
    refused("read-only", theta_calls.add, potentials, 0, index, value, 1.0, read_only)
    for wrong in (
        w[:-1],
        w.astype(np.float32),
        np.zeros((1, w.size)),
        np.zeros(2 * w.size)[::2],
        list(w),
        None,
    ):
        refused("w: ", theta_calls.score, potentials, 0, wrong)
        refused("w: ", theta_calls.dot, potentials, 0, index, value, wrong)
    for wrong in (index - 1, index + size, index.astype(np.int64)):
        refused("index: ", theta_calls.add, potentials, 0, wrong, value, 1.0, w)
    refused("value: ", theta_calls.add, potentials, 0, index, value[:1], 1.0, w)
    refused("u: ", theta_calls.add_gram, potentials, 0, index, value, 1.0, np.zeros(size + 1))
    rows = FeatureRows(np.zeros((2, 3)), 4)
    for row, first, last in ((2, 0, 1), (0, 1, 3), (0, 2, 1), (0, -1, 1)):
        refused("expected them within", theta_calls.row_gram, rows, row, first, last)
    with pytest.raises(ValueError, match="cols: from 0 to 4"):
        theta_calls.row_dot(rows, 0, np.array([0, 4], np.int32), np.zeros(12))


@settings(max_examples=100)
@given(
    st.sampled_from(STORAGE),
    st.integers(1, 20_000),
    st.integers(0, 10**6),
    st.sampled_from([np.nan, np.inf, -np.inf, None]),
    st.integers(1, 3),
)
def test_what_is_not_finite_is_seen(storage, rows, seed, what, jobs):
    rng = np.random.default_rng(seed)
    X, _ = features(storage, rows, 2, rng)
    assert FeatureRows(X, 4, n_jobs=jobs).finite
    values = X.data if sp.issparse(X) else X.reshape(-1)
    if what is not None and values.size:
        values[rng.integers(values.size)] = what
        assert not FeatureRows(X, 4, n_jobs=jobs).finite


def test_ones_are_told_from_almost_ones():
    for dtype in (np.float64, np.float32):
        for size in (1, 3, 4, 5, 5000):
            X = sp.csr_matrix(np.ones((size, 1), dtype=dtype))
            unlike = X.copy()
            unlike.data[-1] = np.nextafter(dtype(1), dtype(2))
            W = np.full(4, 2.0)
            assert FeatureRows(X, 4).nbytes < FeatureRows(unlike, 4).nbytes
            row = size - 1
            scores = theta_calls.row_score(FeatureRows(unlike, 4), row, W)
            np.testing.assert_array_equal(scores, float(unlike.data[-1]) * W)


def test_features_that_are_not_finite_are_named():
    X = np.zeros((6, 2))
    X[4, 1] = np.nan
    layout = WeightLayout([Block("node", "node", (3,))], 2)
    offsets = np.array([0, 3, 6])
    for given_x in (X, sp.csr_matrix(X), X.astype(np.float32)):
        with pytest.raises(ValueError, match=r"X: Input contains NaN \(example 1, row 1\)"):
            LinearPotentials(Examples(offsets, given_x), layout)


@pytest.mark.parametrize("sizes", [(), (3,), (5, 8), (26, 26 * 26)], ids=str)
@pytest.mark.parametrize("edges", [True, False])
def test_parts_of_blocks_lie_as_those_of_weights(sizes, edges):
    blocks = [Block(f"shared {k}", "shared", (size,)) for k, size in enumerate(sizes)]
    blocks.append(Block("node", "node", (3,)))
    if edges:
        blocks.append(Block("edge", "edge", (3, 3)))
    examples = Examples(np.array([0, 2, 5]), edge_offsets=np.array([0, 1, 4]) if edges else None)
    weights = WeightLayout(blocks, n_features=2, n_edge_features=2)
    one, other = PartLayout(blocks, examples), PartLayout(weights, examples)
    assert one.shared_size % 8 == 0
    assert (one.shared_size, one.max_theta) == (other.shared_size, other.max_theta)
    assert (one.starts, one.shapes) == (other.starts, other.shapes)
    assert [one.sizes(i) for i in range(2)] == [other.sizes(i) for i in range(2)]
