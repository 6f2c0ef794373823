"""Folds of cross-validation: shuffled folds for a number, checked folds from users."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

Rows = tuple[np.ndarray, np.ndarray]


def shuffled_folds(k: int, n: int, classes: Any, seed: int, groups: Any = None) -> Iterator[Rows]:
    """Yield training and test rows of ``k`` folds whose rows are drawn at random.

    Files are often sorted by class, by time or by source: consecutive folds would test on examples
    unlike those of training.

    Parameters
    ----------
    k : int
    n : int
        Number of examples.
    classes : array of shape (n,), or None
        One class a row, for stratified folds, unless all classes have fewer than ``k`` rows.
    seed : int
    groups : array of shape (n,), optional
        Refused: rows that are drawn at random do not keep groups together.

    Yields
    ------
    train, test : ndarray of int

    Raises
    ------
    ValueError
        If there are more folds than examples, and for groups.

    Examples
    --------
    >>> y = ["a", "a", "b", "b"]
    >>> [sorted(y[i] for i in test) for _, test in shuffled_folds(2, 4, y, seed=0)]
    [['a', 'b'], ['a', 'b']]
    """
    from sklearn.model_selection import KFold, StratifiedKFold  # heavy

    if groups is not None:
        raise ValueError(
            f"groups are given, but cv is {k}: its folds are of random rows; expected a splitter "
            f"that keeps groups together, such as cv=GroupKFold({k})"
        )
    if k > n:
        raise ValueError(f"cv is {k} folds, expected at most as many as examples: n_samples={n}")
    if classes is not None:
        _, classes, counts = np.unique(np.ravel(classes), return_inverse=True, return_counts=True)
        classes = classes if counts.max() >= k else None
    kind = KFold if classes is None else StratifiedKFold
    yield from kind(k, shuffle=True, random_state=seed).split(np.zeros(n), classes)


def given_folds(cv: Any, n: int, y: Any, groups: Any = None) -> Iterator[Rows]:
    """Yield training and test rows of a user's splitter or folds, unchanged.

    Parameters
    ----------
    cv : splitter, or iterable of pairs
    n : int
        Number of examples.
    y : labels
    groups : array of shape (n,), optional

    Yields
    ------
    train, test : ndarray of int

    Raises
    ------
    ValueError
        The message names the fold and its fault.

    Examples
    --------
    >>> next(given_folds([([0, 1], [99])], 4, [0, 1, 0, 1]))
    Traceback (most recent call last):
    ValueError: cv: the test rows of fold 0 hold 99; expected rows of X, 0 to 3
    """
    splits = hasattr(cv, "split") and not isinstance(cv, str)
    if not splits and (isinstance(cv, str) or not isinstance(cv, Iterable)):
        raise ValueError(f"cv is {cv!r}, expected an integer >= 2, a splitter or folds")
    folds = -1
    for folds, fold in enumerate(_split(cv, n, y, groups) if splits else cv):
        try:
            train, test = fold
        except (TypeError, ValueError):
            raise ValueError(
                f"cv: fold {folds} is {fold!r}; expected a pair of training and test rows"
            ) from None
        yield _rows(train, n, "training", folds), _rows(test, n, "test", folds)
    if folds < 0:
        raise ValueError(f"cv is {cv!r}, which has no folds")


def _split(cv: Any, n: int, y: Any, groups: Any) -> list[Any]:
    """Return a splitter's folds; its errors name cv."""
    try:
        return [*cv.split(np.zeros(n), y, groups)]
    except (TypeError, ValueError) as error:
        raise ValueError(f"cv: {cv!r} cannot split these examples ({error})") from error


def _rows(given: Any, n: int, which: str, fold: int) -> np.ndarray:
    """Return the checked positions of examples."""
    rows, where = np.asarray(given), f"cv: the {which} rows of fold {fold}"
    if rows.dtype == bool and rows.shape == (n,):
        rows = np.flatnonzero(rows)
    if not rows.size:
        raise ValueError(f"{where} are none; expected at least one")
    if rows.ndim != 1 or not np.issubdtype(rows.dtype, np.integer):
        raise ValueError(
            f"{where} are {rows.dtype} of shape {rows.shape}; expected a list of integers, or "
            f"{n} of True and False"
        )
    wrong = rows[(rows < -n) | (rows >= n)]
    if wrong.size:
        raise ValueError(f"{where} hold {wrong[0]}; expected rows of X, 0 to {n - 1}")
    return rows
