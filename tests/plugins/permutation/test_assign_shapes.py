"""``assign`` with more rows than columns, sparse scores and a limit, against brute force."""

import sys
from itertools import permutations

import numpy as np
import pytest
from checks import refused
from scipy import sparse

from structsolve.plugins.permutation import assign


def best_by_hand(scores, maximize, limit=None):
    """Return the best value by enumeration; each row may use the limit instead of a column."""
    scores = scores if maximize else -scores
    rows, cols = scores.shape
    if limit is not None:
        own = np.full((rows, rows), limit if maximize else -limit)
        scores = np.concatenate([scores, own], axis=1)
    elif rows > cols:
        scores = scores.T
    rows, cols = scores.shape
    sums = [sum(scores[range(rows), list(p)]) for p in permutations(range(cols), rows)]
    best = max(sums)
    return best if maximize else -best


def random_scores(rng, rows, cols, maximize):
    scores = rng.integers(-3, 4, (rows, cols)).astype(float)
    forbidden = rng.random((rows, cols)) < 0.2
    scores[forbidden] = -np.inf if maximize else np.inf
    return scores


def check_prices(scores, best, maximize):
    sums = best.row_prices[:, None] + best.column_prices
    gap = (sums - scores) if maximize else (scores - sums)
    assert gap.min(initial=0) >= -1e-9
    taken = np.flatnonzero(best.columns >= 0)
    np.testing.assert_allclose(gap[taken, best.columns[taken]], 0, atol=1e-9)


@pytest.mark.parametrize("maximize", [True, False])
def test_more_rows_than_columns(maximize):
    rng = np.random.default_rng(0)
    for _ in range(150):
        cols = int(rng.integers(1, 4))
        scores = random_scores(rng, cols + int(rng.integers(1, 3)), cols, maximize)
        expected = best_by_hand(scores, maximize)
        if not np.isfinite(expected):
            refused("give each of the . columns a row of its own", assign, scores, maximize)
            continue
        best = assign(scores, maximize)
        assert best.value == pytest.approx(expected) == best.bound
        taken = best.columns >= 0
        assert sorted(best.columns[taken]) == list(range(cols))
        assert scores[taken, best.columns[taken]].sum() == pytest.approx(expected)
        assert not best.row_prices[~taken].any()
        check_prices(scores, best, maximize)


@pytest.mark.parametrize("maximize", [True, False])
def test_a_limit_leaves_rows_without_a_column(maximize):
    rng = np.random.default_rng(1)
    for _ in range(150):
        shape = rng.integers(1, 4, 2)
        scores, limit = random_scores(rng, *shape, maximize), float(rng.integers(-2, 3))
        best = assign(scores, maximize, limit=limit)
        assert best.value == pytest.approx(best_by_hand(scores, maximize, limit)) == best.bound
        taken = best.columns >= 0
        value = scores[taken, best.columns[taken]].sum() + limit * (~taken).sum()
        assert value == pytest.approx(best.value)
        assert best.columns.shape == best.row_prices.shape == (shape[0],)
        assert best.column_prices.shape == (shape[1],)
        check_prices(scores, best, maximize)


@pytest.mark.parametrize("maximize", [True, False])
def test_sparse_scores_forbid_what_they_do_not_store(maximize):
    rng = np.random.default_rng(2)
    for _ in range(50):
        scores = random_scores(rng, 3, 3, maximize)
        kept = np.argwhere(np.isfinite(scores))
        values = scores[np.isfinite(scores)]
        matrix = sparse.coo_matrix((values, kept.T), shape=(3, 3))  # zeros are stored as well
        for form in (matrix, matrix.tocsr(), sparse.csc_array(matrix)):
            dense, other = (assign(given, maximize, limit=0) for given in (scores, form))
            assert dense.value == other.value and (dense.columns == other.columns).all()


@pytest.mark.parametrize("limit", [None, 0.5])
@pytest.mark.parametrize("maximize", [True, False])
def test_few_stored_pairs_against_dense_solutions(monkeypatch, maximize, limit):
    """Ties, negative scores, stored zeros, rows without pairs: value, and prices that prove it."""
    module = sys.modules["structsolve.plugins.permutation.assign"]
    monkeypatch.setattr(module, "SMALL", -1)
    monkeypatch.setattr(module, "SPARSE", 0)
    rng, impossible = np.random.default_rng(5), 0
    for t in range(400):
        rows, cols = rng.integers(1, 8, 2)
        scores = rng.integers(-3, 4, (rows, cols)) if t % 2 else rng.normal(size=(rows, cols))
        kept = rng.random((rows, cols)) < rng.choice([0.4, 0.8, 1.0])
        dense = np.where(kept, scores, -np.inf if maximize else np.inf)
        matrix = sparse.coo_matrix((scores[kept], np.nonzero(kept)), shape=(rows, cols))
        try:
            expected = assign(dense, maximize, limit)
        except ValueError:
            impossible += 1
            refused("no assignment is possible: (row|column) \\d", assign, matrix, maximize, limit)
            continue
        for form in (matrix, sparse.csc_array(matrix)):
            best = assign(form, maximize, limit)
            assert best.value == pytest.approx(expected.value, abs=1e-9)
            assert best.bound == pytest.approx(best.value, abs=1e-9)
            taken = best.columns >= 0
            assert kept[np.flatnonzero(taken), best.columns[taken]].all()
            assert len(set(best.columns[taken].tolist())) == taken.sum()
            check_prices(dense, best, maximize)
    assert impossible > 20 or limit is not None


def test_large_sparse_problems_against_scipy():
    rng = np.random.default_rng(6)
    for rows, cols in ((300, 300), (200, 400), (400, 200)):
        kept = rng.random((rows, cols)) < 0.05
        kept[np.arange(min(rows, cols)), np.arange(min(rows, cols))] = True
        scores = np.where(kept, rng.integers(1, 50, (rows, cols)), 0).astype(float)
        matrix = sparse.csr_array(scores)
        best = assign(matrix, maximize=False)
        i, j = sparse.csgraph.min_weight_full_bipartite_matching(matrix)
        assert best.value == pytest.approx(scores[i, j].sum())
        assert best.bound == pytest.approx(best.value)


@pytest.mark.parametrize("value", [np.nan, np.inf, 2e300])
def test_sparse_scores_that_are_no_numbers_are_named(value):
    matrix = sparse.csr_array(([1.0, value], ([0, 150], [0, 7])), shape=(200, 200))
    refused("row 150, column 7 is", assign, matrix)


def test_batches_of_tall_problems_and_limits():
    scores = np.random.default_rng(3).normal(size=(5, 4, 2))
    for settings in ({}, {"limit": 0.1}):
        many = assign(scores, **settings)
        for i, one in enumerate(scores):
            alone = assign(one, **settings)
            assert (many.columns[i] == alone.columns).all() and many.value[i] == alone.value


def test_limits_that_are_none_are_refused():
    for limit in (np.nan, np.inf, "a", 1e301):
        refused("limit is .*expected None or a number", assign, [[1.0]], limit=limit)
