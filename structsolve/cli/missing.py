# Values for missing features in the shell: the means of training, or 0.
from __future__ import annotations

from typing import Any

import numpy as np


def fill_values(X: Any, rule: str | None) -> list[float] | None:
    """Return the replacement of missing values of each column.

    Parameters
    ----------
    X : matrix, or list of them
        Training data; missing values are NaN.
    rule : {"mean", "zero", "keep"} or None

    Returns
    -------
    list of float or None
        None if missing values are refused, or if X is no dense matrix.

    Examples
    --------
    >>> fill_values(np.array([[1.0, np.nan], [3.0, np.nan]]), "mean")
    [2.0, 0.0]
    """
    parts = _dense(X)
    if rule is None or not parts:
        return None
    if rule != "mean":
        return [np.nan if rule == "keep" else 0.0] * parts[0].shape[1]
    stacked = np.concatenate(parts)
    there = ~np.isnan(stacked)
    sums = np.where(there, stacked, 0).sum(axis=0)
    return (sums / np.maximum(there.sum(axis=0), 1)).tolist()


def filled(path: str, X: Any, values: list[float] | None) -> Any:
    """Return features without missing values.

    Parameters
    ----------
    path : str
        For messages.
    X : matrix, or list of them
    values : list of float, optional
        See :func:`fill_values`.

    Returns
    -------
    The same kind.

    Raises
    ------
    ValueError
        For missing values that nothing replaces.
    """
    parts = _dense(X)
    count = sum(int(np.isnan(x).sum()) for x in parts)
    if not count:
        return X
    if values is None:
        raise ValueError(
            f"{path}: found {count} missing values of features; fit with --missing mean replaces "
            "them by the column's mean, --missing zero by 0"
        )
    whole = [np.where(np.isnan(x), values, x) for x in parts]
    return whole if isinstance(X, list) else whole[0]


def _dense(X: Any) -> list[np.ndarray]:
    """The matrices of X if all are dense and of numbers, else none."""
    parts = X if isinstance(X, list) else [X]
    dense = all(isinstance(x, np.ndarray) and x.ndim == 2 and x.dtype.kind in "iuf" for x in parts)
    return parts if dense else []
