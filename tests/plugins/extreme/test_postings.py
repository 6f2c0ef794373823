"""Weights by feature: scores, best classes and their bounds beside dense arithmetic."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from extreme_cases import best, rows_of, sums

from structsolve.plugins.extreme.weights.postings import Postings


def weights_of(rng, d, C, density=0.3, integers=False, intercept=False):
    W = rows_of(rng, d, C, density, integers)
    W.eliminate_zeros()
    b = None
    if intercept:
        b = rng.integers(-1, 2, C) if integers else rng.normal(size=C)
        b = b.astype(np.float32)
    return Postings.from_matrix(W, b)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("integers", [False, True])
def test_top_is_that_of_all_scores(integers, dtype):
    # Few postings compared to the classes use a separate method.
    rng = np.random.default_rng(0)
    for case in range(300):
        n, d, C = rng.integers(1, 6), rng.integers(1, 12), rng.choice([1, 2, 7, 63, 64, 65, 400])
        density = rng.choice([0.01, 0.1, 0.9])
        weights = weights_of(rng, d, C, density, integers, case % 2).as_type(dtype)
        X = rows_of(rng, n, d, rng.choice([0, 0.2, 0.8]), integers)
        exclude = rng.integers(-1, C, n).astype(np.int32) if case % 3 else None
        k = int(rng.choice([1, 2, 5, 70]))
        ids, scores, bounds, entries = weights.top(X, k, exclude=exclude)
        wanted = best(sums(weights, X), k, exclude)
        np.testing.assert_array_equal(ids, wanted[0])
        # Scans that end early add up in another order.
        near = {"rtol": 1e-6, "atol": 1e-6 if k + 18 < C else 0}
        np.testing.assert_allclose(scores, wanted[1], **near)
        assert (bounds == 0).all()
        if k + 18 >= C:  # too few classes to end early
            assert entries == np.diff(weights.indptr)[X.indices].sum()
        assert ids.dtype == np.int32 and scores.dtype == np.float32 and bounds.dtype == np.float64
        np.testing.assert_allclose(weights.scores(X, ids), scores, **near)


@pytest.mark.parametrize("integers", [False, True])
def test_scans_that_end_early_keep_to_their_bounds(integers):
    """Return 10,000 rows, some empty; equal classes, and rows that exclude one."""
    rng = np.random.default_rng(integers)
    read = whole = loose = 0
    for case in range(100):
        n, d, C, k = 50, 24, int(rng.integers(300, 500)), int(rng.choice([1, 3]))
        shape = np.where(rng.random(d) < 0.5, 0.95, 0.01 if case % 4 == 3 else 0.8)
        W = sp.vstack([weights_of(rng, 1, C, p, integers).to_matrix() for p in shape])
        # Few features decide, as in text, so the others need not be read.
        W = sp.diags(rng.choice([1, 8], d, p=[0.7, 0.3]).astype(np.float32)) @ W
        W = W.tocsc()[:, rng.integers(0, C, C)]  # some classes several times
        b = rng.integers(-1, 2, C).astype(np.float32) if case % 2 else None
        weights = Postings.from_matrix(W, b)
        X = rows_of(rng, n, d, 0.6, integers)
        X.data[X.indptr[0] : X.indptr[1]] = 0
        exclude = rng.integers(-1, C, n).astype(np.int32)
        epsilon = rng.choice([0, 1e-6, 0.1, 1, 10, 1e9])
        ids, scores, bounds, entries = weights.top(X, k, epsilon=epsilon, exclude=exclude)
        S = X.toarray().astype(np.float64) @ W.toarray().astype(np.float64)
        S += 0 if b is None else b
        out = np.flatnonzero(exclude >= 0)
        S[out, exclude[out]] = -np.inf
        # Sums of integers are exact; others up to the rounding of some 24 products.
        slack = 0 if integers else 1e-4
        own = np.take_along_axis(S, ids, 1)
        np.testing.assert_allclose(scores, own, rtol=0, atol=slack)
        true = -np.sort(-S, axis=1)[:, :k]
        assert (true[:, 0] - own[:, 0] <= bounds + slack).all()
        assert (true - own <= epsilon + slack).all()
        assert (bounds >= 0).all() and (bounds <= epsilon).all()
        assert all(len(set(row)) == k for row in ids.tolist())
        if epsilon == 0 and integers:
            np.testing.assert_array_equal(ids, best(S, k)[0])
        read += entries
        whole += np.diff(weights.indptr)[X.indices].sum()
        loose += (true[:, 0] > own[:, 0] + slack).sum()
        if case % 10 == 0:
            again = weights.top(X, k, epsilon=epsilon, exclude=exclude, n_jobs=3)
            for one, other in zip((ids, scores, bounds), again):
                np.testing.assert_array_equal(one, other)
    assert read < whole and loose > 0  # otherwise these cases show nothing


def test_threads_give_the_same_answer():
    rng = np.random.default_rng(1)
    weights, X = weights_of(rng, 50, 200, 0.1, intercept=True), rows_of(rng, 900, 50)
    one, four = weights.top(X, 7), weights.top(X, 7, n_jobs=4)
    for a, b in zip(one, four):
        np.testing.assert_array_equal(a, b)


def test_all_half_precision_numbers_are_read_exactly():
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    every = every[np.isfinite(every)]
    n = len(every)
    weights = Postings(np.array([0, n]), np.arange(n, dtype=np.int32), every, n)
    X = sp.csr_matrix(np.ones((1, 1), np.float32))
    np.testing.assert_array_equal(
        weights.scores(X, np.arange(n, dtype=np.int32)[None])[0], every.astype(np.float32)
    )
    ids, scores, _, _ = weights.top(X, n)
    np.testing.assert_array_equal(scores[0], np.sort(every.astype(np.float32))[::-1])
    np.testing.assert_array_equal(np.sort(ids[0]), np.arange(n))


def test_rows_without_known_features_have_the_scores_of_the_intercept():
    b = np.array([1, 3, 3, -1], np.float32)
    weights = Postings(np.array([0, 1, 1]), np.array([0], np.int32), np.ones(1, np.float32), 4, b)
    X = sp.csr_matrix(np.array([[0, 5], [0, 0], [2, 0]], np.float32))
    ids, scores, _, entries = weights.top(X, 3)
    assert ids.tolist() == [[1, 2, 0], [1, 2, 0], [0, 1, 2]] and entries == 1
    assert scores.tolist() == [[3, 3, 1], [3, 3, 1], [3, 3, 3]]
    ids, scores, bounds, entries = weights.top(X[:0], 3)
    assert ids.shape == scores.shape == (0, 3) and bounds.shape == (0,) and entries == 0


def test_no_weights_at_all():
    weights = Postings(np.zeros(3, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), 2)
    ids, scores, _, entries = weights.top(sp.csr_matrix(np.ones((1, 2), np.float32)), 3)
    assert ids.tolist() == [[0, 1, -1]] and entries == 0
    assert scores.tolist() == [[0, 0, -np.inf]]
    assert weights.pruned(0).nnz == 0 and weights.to_matrix().nnz == 0


def test_matrices_and_back():
    rng = np.random.default_rng(2)
    for integers in (False, True):
        W = rows_of(rng, 9, 14, 0.5, integers)
        for matrix in (W, W.tocsc(), W.astype(np.float64)):
            weights = Postings.from_matrix(matrix)
            assert weights.nnz == (W.toarray() != 0).sum()
            np.testing.assert_array_equal(weights.to_matrix().toarray(), W.toarray())
    twice = sp.csr_matrix(
        (np.ones(3, np.float32), np.array([1, 0, 1]), np.array([0, 3])), shape=(1, 2)
    )
    assert Postings.from_matrix(twice).to_matrix().toarray().tolist() == [[1, 2]]
    assert twice.indices.tolist() == [1, 0, 1]  # not sorted in place


def test_pruned_and_half_precision():
    rng = np.random.default_rng(3)
    weights = weights_of(rng, 30, 40, intercept=True)
    W = weights.to_matrix().toarray()
    for threshold in (0, 0.2, float(abs(W[W != 0][0])), 5):
        kept = weights.pruned(threshold)
        assert kept.nnz == np.count_nonzero(abs(W) > threshold)
        np.testing.assert_array_equal(
            kept.to_matrix().toarray(), np.where(abs(W) > threshold, W, 0)
        )
        assert kept.intercept is weights.intercept
    half = weights.as_type(np.float16)
    np.testing.assert_array_equal(
        half.to_matrix().toarray(), W.astype(np.float16).astype(np.float32)
    )
    assert half.nbytes == weights.nbytes - 2 * weights.nnz
    assert half.as_type(np.float32).weights.dtype == np.float32
    assert half.pruned(0.2).weights.dtype == np.float16


def test_arrays_may_be_read_only_memory_maps(tmp_path):
    rng = np.random.default_rng(4)
    weights, X = weights_of(rng, 8, 20), rows_of(rng, 5, 8)
    arrays = []
    for name in ("indptr", "classes", "weights"):
        np.save(tmp_path / name, getattr(weights, name))
        arrays.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    mapped = Postings(*arrays, 20)
    assert mapped.weights is arrays[2] and mapped.indptr is arrays[0]
    for a, b in zip(mapped.top(X, 3), weights.top(X, 3)):
        np.testing.assert_array_equal(a, b)
    again = pickle.loads(pickle.dumps(mapped))
    np.testing.assert_array_equal(again.to_matrix().toarray(), weights.to_matrix().toarray())


ARRAYS = {
    "indptr": np.array([0, 2, 3]),
    "classes": np.array([0, 2, 1], np.int32),
    "weights": np.ones(3, np.float32),
    "n_classes": 3,
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"indptr": np.array([0, 2, 3], np.int32)}, "indptr: found int32"),
        ({"indptr": [0, 2, 3]}, "indptr: found list"),
        ({"indptr": np.array([0, 3, 2])}, "indptr: found lists"),
        ({"indptr": np.array([0, 2, 4])}, "indptr: found lists"),
        ({"indptr": np.array([1, 2, 3])}, "indptr: found lists"),
        ({"indptr": np.array([-1, 2, 3])}, "indptr: found lists"),
        ({"indptr": np.zeros(0, np.int64)}, "n_features is -1"),
        ({"classes": np.array([0, 2, 1])}, "classes: found int64"),
        ({"classes": np.array([0, 3, 1], np.int32)}, "classes: those of feature 0"),
        ({"classes": np.array([0, 2, -1], np.int32)}, "classes: those of feature 1"),
        ({"classes": np.array([2, 0, 1], np.int32)}, "classes: those of feature 0"),
        ({"classes": np.array([0, 0, 1], np.int32)}, "classes: those of feature 0"),
        ({"weights": np.ones(3)}, "weights: found float64"),
        ({"weights": np.ones(2, np.float32)}, "weights has 2 entries, expected 3"),
        ({"weights": np.array([1, 1, np.nan], np.float32)}, "NaN or infinity for feature 1"),
        ({"weights": np.array([-np.inf, 1, 1], np.float16)}, "NaN or infinity for feature 0"),
        ({"weights": np.array([1, np.nan, 1], np.float16)}, "NaN or infinity for feature 0"),
        ({"weights": np.ones(6, np.float32)[::2]}, "weights: not contiguous"),
        ({"n_classes": 0}, "n_classes is 0"),
        ({"n_classes": 2**31}, "n_classes is 2147483648"),
        ({"n_classes": 3.0}, "n_classes is 3.0"),
        ({"intercept": np.ones(2, np.float32)}, "intercept has 2 entries, expected 3"),
        ({"intercept": np.ones(3)}, "intercept: found float64"),
        ({"intercept": np.full(3, np.nan, np.float32)}, "intercept: found NaN"),
    ],
)
def test_wrong_arrays_are_named(change, message):
    Postings(**ARRAYS)
    with pytest.raises(ValueError, match=message):
        Postings(**{**ARRAYS, **change})


def test_wrong_rows_and_arguments_are_named():
    weights = Postings(**ARRAYS)
    X = sp.csr_matrix(np.eye(2, dtype=np.float32))

    def refused(message, call, *args, **kwargs):
        with pytest.raises(ValueError, match=message):
            call(*args, **kwargs)

    def changed(**arrays):
        other = X.copy()
        for name, array in arrays.items():
            setattr(other, name, np.array(array, getattr(other, name).dtype))
        return other

    for call in (weights.top, weights.scores):
        second = 1 if call == weights.top else np.zeros((2, 1), np.int32)
        refused("X: found ndarray, expected a sparse", call, X.toarray(), second)
        refused("CSR", call, X.tocsc(), second)
        refused("X: found values of float64", call, X.astype(np.float64), second)
        refused("X has 3 features, expected 2", call, sp.csr_matrix((2, 3), dtype="f"), second)
        refused("X: found NaN", call, changed(data=[1, np.inf]), second)
        refused("X: the sparse matrix is broken", call, changed(indices=[0, 7]), second)
        refused("X: the sparse matrix is broken", call, changed(indices=[0, -1]), second)
        refused("X: the sparse matrix is broken", call, changed(indptr=[0, 2, 1]), second)
        refused("X: the sparse matrix is broken", call, changed(indptr=[0, 1, 9]), second)
    refused("k is 0", weights.top, X, 0)
    refused("k is 1.0", weights.top, X, 1.0)
    refused("epsilon is -0.1", weights.top, X, 1, epsilon=-0.1)
    refused("epsilon is nan", weights.top, X, 1, epsilon=np.nan)
    refused("epsilon is 'small'", weights.top, X, 1, epsilon="small")
    refused("exclude has 1 entries", weights.top, X, 1, exclude=np.zeros(1, np.int32))
    refused("exclude: found int64", weights.top, X, 1, exclude=np.zeros(2, np.int64))
    refused("exclude plus 1", weights.top, X, 1, exclude=np.array([0, 3], np.int32))
    refused("exclude plus 1", weights.top, X, 1, exclude=np.array([0, -2], np.int32))
    refused("n_jobs is 0", weights.top, X, 1, n_jobs=0)
    refused("classes: expected", weights.scores, X, np.zeros((2, 1), np.int64))
    refused("classes: expected", weights.scores, X, np.zeros(2, np.int32))
    refused("classes has 1 rows", weights.scores, X, np.zeros((1, 1), np.int32))
    refused("classes plus 1", weights.scores, X, np.full((2, 1), 3, np.int32))
    refused("threshold is nan", weights.pruned, np.nan)
    refused("threshold is -1", weights.pruned, -1)
    refused("dtype is float64", weights.as_type, np.float64)
    large = Postings(np.array([0, 1]), np.zeros(1, np.int32), np.full(1, 1e6, np.float32), 1)
    refused("the largest weight is 1e", large.as_type, np.float16)
    refused("NaN or infinity", Postings.from_matrix, sp.csr_matrix(np.array([[1e300]])))
    refused("matrix: found ndarray", Postings.from_matrix, np.eye(2))


def test_columns_that_do_not_rise_are_summed_up_all_the_same():
    weights = weights_of(np.random.default_rng(5), 3, 20, 0.8)
    X = sp.csr_matrix((np.ones(3, np.float32), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    W = weights.to_matrix().toarray()
    _, scores, _, _ = weights.top(X, 20)
    np.testing.assert_allclose(np.sort(scores[0]), np.sort(W[0] + 2 * W[2]), rtol=1e-6)
