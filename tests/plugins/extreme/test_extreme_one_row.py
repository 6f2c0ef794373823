"""One sparse row is predicted without copies: as among others, and with the same errors."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused
from extreme_cases import documents

from structsolve import ExtremeSVM
from structsolve.plugins.extreme.weights.postings import Postings


def test_one_row_has_the_class_that_the_scan_of_many_finds():
    rng = np.random.default_rng(0)
    for trial in range(200):
        d, C = int(rng.integers(1, 40)), int(rng.integers(2, 300))
        W = sp.random(d, C, rng.choice([0.01, 0.2, 1.0]), "csr", random_state=rng)
        W.data = rng.integers(-2, 3, W.nnz).astype(float)  # ties are common
        intercept = rng.integers(-1, 2, C).astype(np.float32) if trial % 2 else None
        lists = Postings.from_matrix(W, intercept)
        lists = lists.as_type("float16") if trial % 3 == 0 else lists
        X = sp.random(20, d, 0.4, "csr", np.float32, rng)
        X.sort_indices()
        best = lists.top(X, 1)[0][:, 0]
        for i in range(20):
            row = X[i]
            told = [lists.best_class(row.indices, row.data.astype(t)) for t in (np.float32, float)]
            assert told == [best[i] if row.nnz else -1] * 2


def test_what_it_does_not_take_is_told():
    lists = Postings.from_matrix(sp.csr_matrix(np.eye(2000, 3)))
    one, many = np.ones(1), np.ones(1025)
    bad = [([-1], one), ([2000], one), ([1, 1], np.ones(2)), ([2, 1], np.ones(2)), ([0, 1], one)]
    bad += [([], np.ones(0)), ([0], one * np.nan), ([0], one * 1e300), (range(1025), many)]
    for columns, values in bad:
        assert lists.best_class(np.array(columns, np.int32), values) == -1
    assert lists.best_class(np.arange(1024, dtype=np.int32), many[:1024]) == 0
    assert Postings.__new__(Postings).best_class(np.zeros(1, np.int32), one) == -1


@pytest.mark.parametrize("solver", ["one-vs-some", "softmax"])
def test_predictions_of_one_row_are_those_of_all(solver):
    X, y = documents(200)
    names = np.array([f"class {c:02d}" for c in range(12)])
    model = ExtremeSVM(solver=solver).fit(X, names[y])
    told = model.predict(X)
    for kind in (sp.csr_matrix, sp.csr_array, sp.coo_matrix, sp.csc_matrix):
        for dtype in (np.float32, np.float64):
            rows = [kind(X[i].astype(dtype)) for i in range(200)]
            answers = [model.predict(row) for row in rows]
            assert all(a.shape == (1,) and a.dtype == told.dtype for a in answers)
            assert np.concatenate(answers).tolist() == told.tolist()
    with ThreadPoolExecutor(4) as pool:
        assert [a[0] for a in pool.map(model.predict, rows * 5)] == told.tolist() * 5
    model.predict(X[0])[0] = "other"
    assert "other" not in model.classes_


def test_rows_of_any_state_are_read_or_refused():
    X, y = documents(200)
    model = ExtremeSVM(solver="one-vs-some").fit(X, y)
    row = X[3]
    unsorted = sp.csr_matrix((row.data[::-1], row.indices[::-1], [0, row.nnz]), row.shape)
    halves = np.tile(row.data / 2, 2), np.tile(row.indices, 2), [0, 2 * row.nnz]
    longer = row.copy()
    longer.data, longer.indices = np.append(row.data, 9), np.append(row.indices, 0)
    strided = row.copy()
    strided.data, strided.indices = (np.repeat(a, 2)[::2] for a in (row.data, row.indices))
    odd = row.astype(np.longdouble)
    for same in (unsorted, sp.csr_matrix(halves, row.shape), longer, strided, odd):
        assert model.predict(same) == model.predict(X)[3]
    assert model.predict(sp.csr_matrix((1, 60))) == model.predict(np.zeros((1, 60)))
    broken = row.copy()
    broken.data = broken.data * np.nan
    refused("X: Input contains NaN .example 0", model.predict, broken)
    short = row.copy()
    short.indptr = short.indptr[:1]
    refused("X", model.predict, short)
    refused("X has 7 features, but ExtremeSVM is expecting 60", model.predict, sp.eye(1, 7).tocsr())
