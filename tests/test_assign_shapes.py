"""``assign`` with more rows than columns, sparse scores and a limit, against brute force."""

from itertools import permutations

import numpy as np
import pytest
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
            with pytest.raises(ValueError, match="give each of the . columns a row of its own"):
                assign(scores, maximize)
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


def test_batches_of_tall_problems_and_limits():
    scores = np.random.default_rng(3).normal(size=(5, 4, 2))
    for settings in ({}, {"limit": 0.1}):
        many = assign(scores, **settings)
        for i, one in enumerate(scores):
            alone = assign(one, **settings)
            assert (many.columns[i] == alone.columns).all() and many.value[i] == alone.value


def test_limits_that_are_none_are_refused():
    for limit in (np.nan, np.inf, "a", 1e301):
        with pytest.raises(ValueError, match="limit is .*expected None or a number"):
            assign([[1.0]], limit=limit)
