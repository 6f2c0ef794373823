# Selection of a file's examples: rows by number, and by the value of a column.
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from structsolve.io._text import PathLike


def parse_rows(rows: str | int | None) -> slice:
    """Read ``N``, the first N, or ``A:B``, from A (counted from 0) up to B without it.

    Parameters
    ----------
    rows : str, int or None

    Returns
    -------
    slice
        All rows for None.

    Raises
    ------
    ValueError
        For anything else.

    Examples
    --------
    >>> parse_rows("10"), parse_rows("5:")
    (slice(None, 10, None), slice(5, None, None))
    """
    if rows is None:
        return slice(None)
    first, colon, last = str(rows).partition(":")
    if not colon:
        first, last = "", first
    words = [word for word in (first, last) if word]
    sound = all(word.isascii() and word.isdigit() for word in words) and (colon or words)
    bounds = [int(word) if word else None for word in (first, last)] if sound else []
    if not sound or bounds[1] == 0 or (None not in bounds and bounds[0] >= bounds[1]):  # type: ignore[operator]
        raise ValueError(f"rows: found {rows!r}; expected N, or A:B with A below B")
    return slice(*bounds)


def parse_where(where: str) -> tuple[str, bool, str]:
    """Read ``NAME=VALUE`` or ``NAME!=VALUE``.

    Parameters
    ----------
    where : str

    Returns
    -------
    name : str
    equal : bool
    value : str

    Raises
    ------
    ValueError
        For anything else.

    Examples
    --------
    >>> parse_where("fold!=0")
    ('fold', False, '0')
    """
    name, equals, value = where.partition("=")
    equal = not name.endswith("!")
    name = name.removesuffix("!").strip()
    if not equals or not name:
        raise ValueError(f"where: found {where!r}; expected NAME=VALUE or NAME!=VALUE")
    return name, equal, value.strip()


def choose(
    path: PathLike,
    where: str | None,
    rows: str | int | None,
    count: int,
    columns: Mapping[str, Any],
) -> np.ndarray:
    """Return the numbers of the selected examples.

    Parameters
    ----------
    path : path-like
        For messages.
    where, rows : str, optional
        See `parse_where` and `parse_rows`; rows count the examples that ``where`` selects.
    count : int
        Number of examples.
    columns : mapping of str to array
        Values for ``where``, one for each example.

    Returns
    -------
    ndarray of int

    Raises
    ------
    ValueError
        If no example is left, or there is no such column.
    """
    kept = np.arange(count)
    if where is not None:
        name, equal, value = parse_where(where)
        column = columns.get(name)
        if column is None or np.shape(column) != (count,):
            fitting = [n for n, c in columns.items() if np.shape(c) == (count,)]
            raise ValueError(
                f"{path}: where: found no values {name!r}, one for each of the {count} examples; "
                f"expected one of {', '.join(fitting) or 'none'}"
            )
        kept = kept[(np.asarray(column).astype(str) == value) == equal]
    kept = kept[parse_rows(rows)]
    if not len(kept):
        asked = " and ".join(f"{n}={v}" for n, v in (("where", where), ("rows", rows)) if v)
        raise ValueError(f"{path}: found no examples left by {asked}, of {count}")
    return kept


def take(values: Any, kept: np.ndarray) -> Any:
    """Return some of the examples, of a list or of a matrix.

    Parameters
    ----------
    values : list, array or sparse matrix
    kept : ndarray of int

    Returns
    -------
    The same kind.
    """
    if isinstance(values, list):
        return [values[i] for i in kept.tolist()]
    if len(kept) == values.shape[0]:
        return values
    return values[kept]
