"""``assign``: the linear assignment problem for users, with a certificate."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from structsolve.examples.packing import is_sparse

# Sums and differences of scores below this stay finite.
LARGEST = 1e300


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
        do entries that a sparse matrix does not store.  Sparse matrices are made dense.
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
        For NaN, scores beyond 1e300, and problems that no assignment solves.

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
    # Compiled: listing structures needs none of it.
    from structsolve.plugins.permutation._oracle import solve_batch

    maximize = bool(maximize)
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
        *parts, failed = solve_batch(batch, maximize)
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


def _dense(scores: Any, maximize: bool) -> np.ndarray:
    """Return a sparse matrix as an array; entries that are not stored are forbidden."""
    entries = scores.tocsr().astype(np.float64).tocoo()  # sums up what is stored twice
    array = np.full(scores.shape, -np.inf if maximize else np.inf)
    array[entries.row, entries.col] = entries.data
    return array


def _with_own_columns(batch: np.ndarray, maximize: bool, limit: Any) -> np.ndarray:
    """Append a private column for each row, with the limit as score."""
    if not isinstance(limit, (int, float, np.number)) or not abs(limit) <= LARGEST:
        raise ValueError(f"limit is {limit!r}, expected None or a number within 1e300")
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
            raise ValueError(
                f"scores: {where}row {a}, column {b} is {array[i, a, b]}, expected a number within "
                f"1e300, or {'-inf' if maximize else 'inf'} to forbid the pair"
            )
    return single, array
