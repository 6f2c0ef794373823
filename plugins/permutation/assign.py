"""``assign``: the linear assignment problem for users, with a certificate."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

# Sums and differences of scores stay finite below this.
LARGEST = 1e300


class Assigned(NamedTuple):
    """A best assignment and the prices that prove it.

    Of a batch every field has one more axis, the first.

    Parameters
    ----------
    columns : ndarray of int64 of shape (rows,)
        The column of each row.
    value : float
        The sum of the scores of the pairs.
    row_prices : ndarray of shape (rows,)
    column_prices : ndarray of shape (cols,)
        Where scores are maximised, a row's price and a column's sum to at least the score of the
        pair, and to just that where it is taken; where they are minimised, to at most the score.
        Columns that nobody takes cost 0 where there are fewer rows than columns.
    bound : float
        What these prices prove: no assignment has a better value.
    """

    columns: np.ndarray
    value: Any
    row_prices: np.ndarray
    column_prices: np.ndarray
    bound: Any


def assign(scores: Any, maximize: bool = True) -> Assigned:
    """Assign every row a column of its own, for the best total score.

    Parameters
    ----------
    scores : array of shape (rows, cols) or (n, rows, cols)
        One problem or n of the same size, with no more rows than columns.  -inf (inf where scores
        are minimised) forbids a pair.
    maximize : bool, default=True
        False minimises.

    Returns
    -------
    Assigned
        ``columns``, ``value``, ``row_prices``, ``column_prices``, ``bound``.

    Raises
    ------
    ValueError
        For more rows than columns, NaN, scores beyond 1e300, and problems that no assignment
        solves.

    Examples
    --------
    >>> from structsolve.plugins.permutation import assign
    >>> best = assign([[4, 1, 3], [2, 0, 5], [3, 2, 2]], maximize=False)
    >>> best.columns.tolist(), float(best.value), float(best.bound)
    ([1, 0, 2], 5.0, 5.0)
    """
    # Compiled: listing structures needs none of it.
    from structsolve.plugins.permutation._oracle import solve_batch

    single, batch = _checked(scores, bool(maximize))
    n, rows, cols = batch.shape
    if n == 0 or rows == 0:
        parts = [np.zeros((n, rows), np.int64), np.zeros(n), np.zeros((n, rows))]
        parts += [np.zeros((n, cols)), np.zeros(n)]
    else:
        *parts, failed = solve_batch(batch, bool(maximize))
        if failed >= 0:
            where = "scores" if single else f"scores, problem {failed}"
            raise ValueError(
                f"{where}: no assignment is possible: every way to give each of the {rows} rows a "
                "column of its own uses a forbidden pair; allow more pairs"
            )
    return Assigned(*(part[0] for part in parts)) if single else Assigned(*parts)


def _checked(scores: Any, maximize: bool) -> tuple[bool, np.ndarray]:
    """Return whether it is one problem, and an array of shape (n, rows, cols)."""
    try:
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
    if array.shape[1] > array.shape[2]:
        raise ValueError(
            f"scores: found {array.shape[1]} rows and {array.shape[2]} columns, expected no more "
            "rows than columns; transpose them"
        )
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
