"""Names and labels of one kind: NumPy makes strings of numbers that stand among strings."""

from __future__ import annotations

from typing import Any

import numpy as np


def is_mixed(given: Any, array: np.ndarray) -> bool:
    """Return whether NumPy converted numbers or bytes among strings to strings.

    Parameters
    ----------
    given : object
        Lists may hold lists.
    array : ndarray
        Of ``given``.

    Returns
    -------
    bool

    Examples
    --------
    >>> [is_mixed(given, np.asarray(given)) for given in (["a", 1], [["a"], [1]], ["a", "1"])]
    [True, True, False]
    """
    if array.dtype.kind not in "US" or not isinstance(given, (list, tuple)):
        return False
    kinds = _types(given, array.ndim)
    return not any(all(issubclass(kind, one) for kind in kinds) for one in (str, bytes))


def _types(given: Any, depth: int) -> set[type]:
    if isinstance(given, np.ndarray) and given.dtype.kind != "O":
        return {given.dtype.type}
    if depth > 1:
        return set().union(*(_types(one, depth - 1) for one in given))
    return set(map(type, given))


def one_kind(given: Any, what: str) -> np.ndarray:
    """Return names or labels as an array; refuse strings beside numbers.

    Parameters
    ----------
    given : sequence
    what : str
        Its name, for the message.

    Returns
    -------
    ndarray

    Raises
    ------
    ValueError
        If they are of types that cannot be sorted, or that NumPy would make strings of.

    Examples
    --------
    >>> one_kind(["b", "a"], "classes").tolist()
    ['b', 'a']
    """
    array = np.asarray(given)
    mixed = is_mixed(given, array)
    kinds = _types(given if mixed else array.ravel(), array.ndim if mixed else 1)
    if mixed or len(kinds) > 1:
        types = sorted(kind.__name__ for kind in kinds)
        raise ValueError(f"{what}: found {types}, expected all strings or all integers")
    return array


def joined(Y: Any, what: str) -> np.ndarray:
    """Return the labels of all examples, one after the other.

    Parameters
    ----------
    Y : sequence of labels, or of sequences of labels
    what : str
        Its name, for the message.

    Returns
    -------
    ndarray

    Raises
    ------
    ValueError
        If there are strings beside numbers, in one example or in several.

    Examples
    --------
    >>> joined([["a"], ["b", "a"]], "y").tolist()
    ['a', 'b', 'a']
    """
    flat = [one_kind(labels, f"{what}, example {i}").ravel() for i, labels in enumerate(Y)]
    if len({labels.dtype.kind in "US" for labels in flat if labels.size}) > 1:
        raise ValueError(f"{what} mixes strings and numbers; expected one kind of label")
    return np.concatenate(flat) if flat else np.zeros(0)
