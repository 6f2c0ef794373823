"""``assign``: the linear assignment problem for users, with a certificate."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from structsolve.examples.given import is_sparse
from structsolve.utils.masked import refuse_masked

# Sums and differences of scores below this stay finite.
LARGEST = 1e300
# Sparse problems of fewer pairs, or of fewer for each stored one, are solved sooner as dense ones.
SMALL, SPARSE = 10_000, 4


class Assigned(NamedTuple):
    """A best assignment and the prices that prove it.

    In a batch every field has one more axis, the first.

    Parameters
    ----------
    columns : ndarray of int64 of shape (rows,)
        The column of each row; -1 for rows without one, if there are more rows than columns,
        or pairs beyond the limit.
    value : float
        The sum of the scores of the pairs.
    row_prices : ndarray of shape (rows,)
    column_prices : ndarray of shape (cols,)
        If scores are maximised, the prices of a row and a column sum to at least the score of the
        pair, with equality for taken pairs; if minimised, to at most the score.
        Columns without a row cost 0 if there are fewer rows than columns, and rows without a
        column if there are more.
    bound : float
        The bound proven by these prices: no assignment has a better value.
    """

    columns: np.ndarray
    value: Any
    row_prices: np.ndarray
    column_prices: np.ndarray
    bound: Any


def assign(scores: Any, maximize: bool = True, limit: float | None = None) -> Assigned:
    """Assign every row a distinct column, for the best total score.

    If there are more rows than columns, every column gets a distinct row.

    Parameters
    ----------
    scores : array of shape (rows, cols) or (n, rows, cols), or sparse matrix
        One problem or n of the same size.  -inf (inf if scores are minimised) forbids a pair, as
        do entries that a sparse matrix does not store.
    maximize : bool, default=True
        False minimises.
    limit : float, optional
        Score, or cost, of leaving a row without a column: no pair beyond the limit is
        taken, and ``value`` has the limit for each row left over.

    Returns
    -------
    Assigned
        ``columns``, ``value``, ``row_prices``, ``column_prices``, ``bound``.

    Raises
    ------
    ValueError
        For NaN, masked scores, scores beyond 1e300, and problems that no assignment solves.

    Examples
    --------
    >>> from structsolve.plugins.permutation import assign
    >>> best = assign([[4, 1, 3], [2, 0, 5], [3, 2, 2]], maximize=False)
    >>> best.columns.tolist(), float(best.value), float(best.bound)
    ([1, 0, 2], 5.0, 5.0)

    Points of two pictures, of which some have no partner nearer than 3:

    >>> assign([[1, 9], [9, 8], [7, 2]], maximize=False, limit=3).columns.tolist()
    [0, -1, 1]
    """
    solvers = _solvers()
    if limit is None:
        best: Assigned | None = solvers.solve_one(scores, maximize, LARGEST, Assigned)
        if best is not None:
            return best
    worst = "-inf" if maximize else "inf"
    refuse_masked(scores, "scores", f"scores.filled({worst}) forbids these pairs")
    if is_sparse(scores) and max(SMALL, SPARSE * scores.nnz) < np.prod(scores.shape):
        return _assign_sparse(scores, maximize, limit)
    single, batch = _checked(scores, maximize)
    given_rows, given_cols = batch.shape[1:]
    tall = limit is None and given_rows > given_cols
    if limit is not None:
        batch = _with_own_columns(batch, maximize, limit)
    elif tall:
        batch = np.ascontiguousarray(batch.transpose(0, 2, 1))
    n, rows, cols = batch.shape
    if n == 0 or rows == 0:
        parts = [np.zeros((n, rows), np.int64), np.zeros(n), np.zeros((n, rows))]
        parts += [np.zeros((n, cols)), np.zeros(n)]
    else:
        *parts, failed = solvers.solve_batch(batch, maximize)
        if failed >= 0:
            where = "scores" if single else f"scores, problem {failed}"
            one, other = ("columns", "row") if tall else ("rows", "column")
            raise ValueError(
                f"{where}: no assignment is possible: every way to give each of the {rows} {one} a "
                f"{other} of its own uses a forbidden pair; allow more pairs"
            )
    columns, value, row_prices, column_prices, bound = parts
    if tall:
        taken, columns = columns.astype(np.int64), np.full((n, given_rows), -1, dtype=np.int64)
        np.put_along_axis(columns, taken, np.arange(given_cols)[None], axis=1)
        row_prices, column_prices = column_prices, row_prices
    elif limit is not None:
        columns = np.where(columns < given_cols, columns, -1)
        column_prices = column_prices[:, :given_cols]
    parts = [columns, value, row_prices, column_prices, bound]
    return Assigned(*(part[0] for part in parts)) if single else Assigned(*parts)


@cache
def _solvers() -> Any:
    # Compiled: listing structures needs none of it.
    from structsolve.plugins.permutation import _oracle

    return _oracle


def _dense(scores: Any, maximize: bool) -> np.ndarray:
    """Return a sparse matrix as an array; entries that are not stored are forbidden."""
    entries = scores.tocsr().astype(np.float64).tocoo()  # sums up what is stored twice
    array = np.full(scores.shape, -np.inf if maximize else np.inf)
    array[entries.row, entries.col] = entries.data
    return array


def _assign_sparse(scores: Any, maximize: bool, limit: Any) -> Assigned:
    """Solve one problem over the stored pairs."""
    from scipy import sparse  # heavy

    from structsolve.plugins.permutation._sparse_assignment import solve_sparse  # as above

    given_rows, given_cols = scores.shape
    pairs = _pairs(scores, maximize)
    tall = limit is None and given_rows > given_cols
    if tall:
        pairs = pairs.T.tocsr()
    elif limit is not None:
        _check_limit(limit)
        own = sparse.diags_array(np.full(given_rows, float(limit)), format="csr")
        pairs = sparse.hstack([pairs, own], format="csr")
    pairs.sort_indices()
    first, index = pairs.indptr.astype(np.int64), pairs.indices.astype(np.int32)
    costs = -pairs.data if maximize else pairs.data
    columns, u, v, failed = solve_sparse(first, index, costs, pairs.shape[1])
    if failed >= 0:
        one, other = ("column", "row") if tall else ("row", "column")
        raise ValueError(
            f"scores: no assignment is possible: {one} {failed} finds no {other} of its own beside "
            f"the other {one}s; allow more pairs"
        )
    if len(u):  # the prices of rows that hold for every pair, whatever rounding did
        u = np.minimum.reduceat(costs - v[index], first[:-1])
    taken = index == np.repeat(columns, np.diff(first))
    sign = -1.0 if maximize else 1.0
    value, bound = sign * float(costs[taken].sum()), sign * float(u.sum() + v.sum())
    u, v, columns = sign * u, sign * v, columns.astype(np.int64)
    if tall:
        of_rows = np.full(given_rows, -1, dtype=np.int64)
        of_rows[columns] = np.arange(given_cols)
        return Assigned(of_rows, value, v, u, bound)
    if limit is not None:
        columns, v = np.where(columns < given_cols, columns, -1), v[:given_cols]
    return Assigned(columns, value, u, v, bound)


def _pairs(scores: Any, maximize: bool) -> Any:
    """Return the stored pairs that are allowed, each once, as a new CSR array."""
    if scores.dtype.kind not in "fiub":
        raise ValueError(
            f"scores: not an array of real numbers (dtype {scores.dtype}); expected a sparse "
            "matrix of shape (rows, cols)"
        )
    from scipy import sparse  # heavy

    kept = sparse.csr_array(scores, dtype=np.float64, copy=True)
    kept.sum_duplicates()
    if not kept.nnz or np.abs(kept.data).max() <= LARGEST:
        return kept
    entries = kept.tocoo()
    forbids = entries.data == (-np.inf if maximize else np.inf)
    bad = ~forbids & ~(np.abs(entries.data) <= LARGEST)
    if bad.any():
        k = int(bad.argmax())
        raise ValueError(_not_a_score(entries.row[k], entries.col[k], entries.data[k], maximize))
    kept = (entries.data[~forbids], (entries.row[~forbids], entries.col[~forbids]))
    return sparse.csr_array(kept, shape=entries.shape)


def _not_a_score(row: int, column: int, value: float, maximize: bool, where: str = "") -> str:
    return (
        f"scores: {where}row {row}, column {column} is {value}, expected a number within "
        f"1e300, or {'-inf' if maximize else 'inf'} to forbid the pair"
    )


def _check_limit(limit: Any) -> None:
    if not isinstance(limit, (int, float, np.number)) or not abs(limit) <= LARGEST:
        raise ValueError(f"limit is {limit!r}, expected None or a number within 1e300")


def _with_own_columns(batch: np.ndarray, maximize: bool, limit: Any) -> np.ndarray:
    """Append a private column for each row, with the limit as score."""
    _check_limit(limit)
    n, rows, _ = batch.shape
    own = np.full((rows, rows), -np.inf if maximize else np.inf)
    np.fill_diagonal(own, limit)
    return np.concatenate([batch, np.broadcast_to(own, (n, rows, rows))], axis=2)


def _checked(scores: Any, maximize: bool) -> tuple[bool, np.ndarray]:
    """Return whether scores are one problem, and an array of shape (n, rows, cols)."""
    try:
        if is_sparse(scores):
            scores = _dense(scores, maximize)
        array = np.asarray(scores)
        if array.dtype.kind not in "fiub":
            raise TypeError(f"dtype {array.dtype}")
        array = np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"scores: not an array of real numbers ({error}); expected shape (rows, cols) or (n, "
            "rows, cols)"
        ) from None
    if array.ndim not in (2, 3):
        raise ValueError(
            f"scores: found {array.ndim} dimension(s), shape {array.shape}, expected (rows, cols) "
            "or (n, rows, cols)"
        )
    single = array.ndim == 2
    if single:
        array = array[None]
    # One pass where all is well; a second one only where pairs are forbidden.
    if array.size and not np.abs(array).max() <= LARGEST:
        bad = np.isnan(array) | (array > LARGEST if maximize else array < -LARGEST)
        bad |= np.isfinite(array) & (np.abs(array) > LARGEST)
        if bad.any():
            i, a, b = np.argwhere(bad)[0].tolist()
            where = "" if single else f"problem {i}, "
            raise ValueError(_not_a_score(a, b, array[i, a, b], maximize, where))
    return single, array
