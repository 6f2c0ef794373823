"""Labels of any form as plain Python values: to compare whole ones, and to write them as text."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from .suggest import a_type

SETS = (set, frozenset)


def plain(value: Any) -> Any:
    """Return a label with arrays and columns as lists, and numbers of NumPy as Python's.

    Parameters
    ----------
    value : object
        Lists, tuples, dicts and arrays may hold each other.

    Returns
    -------
    object

    Examples
    --------
    >>> plain([(np.int64(1), np.array(["a", "b"]))])
    [(1, ['a', 'b'])]
    """
    if isinstance(value, np.ndarray) or hasattr(value, "to_list"):
        return plain(np.asarray(value).tolist())
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return type(value)(map(plain, value)) if type(value) in (list, tuple) else value
    if isinstance(value, dict):
        return {plain(key): plain(one) for key, one in value.items()}
    return value


def is_flat(label: Any) -> bool:
    """Return whether a label is a sequence of strings or numbers, one for each node.

    Parameters
    ----------
    label : object

    Returns
    -------
    bool
    """
    if isinstance(label, np.ndarray):
        plain = label.dtype != object and label.dtype.names is None
        return label.ndim == 1 and (plain or is_flat(label.tolist()))
    return isinstance(label, (list, tuple)) and not any(
        isinstance(one, (list, tuple, dict, set, frozenset, np.ndarray)) for one in label
    )


def is_whole(label: Any) -> bool:
    """Return whether a label is neither a class nor a sequence of classes: spans, a tree, a set.

    Parameters
    ----------
    label : object

    Returns
    -------
    bool

    Examples
    --------
    >>> is_whole([("NP", 0, 2)]), is_whole({"a"}), is_whole(["a", "b"]), is_whole("a")
    (True, True, False, False)
    """
    kinds = (list, tuple, dict, np.ndarray, *SETS)
    return isinstance(label, kinds) and not is_flat(label)


def equal(one: Any, other: Any) -> bool:
    """Return whether two labels are equal, for any kinds of sequences; a set has no order.

    Parameters
    ----------
    one, other : object

    Returns
    -------
    bool

    Examples
    --------
    >>> equal([("a", 2)], [["a", np.int64(2)]]), equal([("a", 2)], [("a", 1)])
    (True, False)
    """
    one, other = (each.tolist() if hasattr(each, "tolist") else each for each in (one, other))
    if isinstance(one, SETS) or isinstance(other, SETS):
        some, others = (one, other) if isinstance(one, SETS) else (other, one)
        if not isinstance(others, (list, tuple, *SETS)) or len(some) != len(others):
            return False
        return all(any(equal(a, b) for b in others) for a in some)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    return bool(one == other)


def to_json(label: Any) -> str:
    """Return a label as JSON to read, in which tuples and sets are lists.

    Parameters
    ----------
    label : object

    Returns
    -------
    str

    Raises
    ------
    TypeError
        For what is neither text, numbers, nor a container of these.

    Examples
    --------
    >>> to_json([("a", {3, np.int64(1)})])
    '[["a", [1, 3]]]'
    """
    return json.dumps(plain(label), default=_listed)


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, SETS):
        raise TypeError(f"{a_type(value)} in a label: expected what JSON can hold, or sets of that")
    members = [plain(one) for one in value]
    try:
        return sorted(members)
    except TypeError:  # strings and numbers
        return sorted(members, key=repr)


def to_text(label: Any) -> str:
    """Return a label as JSON, which :func:`from_text` reads; tuples stay tuples.

    Parameters
    ----------
    label : object
        Strings, numbers, True, False, None; lists, tuples and arrays of these; dicts with strings
        as keys.

    Returns
    -------
    str

    Raises
    ------
    TypeError
        For anything else.

    Examples
    --------
    >>> to_text([("a", 2)]), from_text(to_text([("a", 2)]))
    ('[{"tuple": ["a", 2]}]', [('a', 2)])
    """
    return json.dumps(_tagged(plain(label)))


def from_text(text: str) -> Any:
    """Return the label that :func:`to_text` wrote.

    Parameters
    ----------
    text : str

    Returns
    -------
    object

    Raises
    ------
    TwiceError
        If an object has a key twice.
    """
    return json.loads(text, object_pairs_hook=_untagged)


class TwiceError(ValueError):
    """A JSON object has a key twice, which Python's parser passes over; its text is the key."""


def _tagged(value: Any) -> Any:
    if isinstance(value, tuple):
        return {"tuple": [_tagged(one) for one in value]}
    if isinstance(value, list):
        return [_tagged(one) for one in value]
    if isinstance(value, dict):
        if {*value} == {"tuple"} or not all(isinstance(key, str) for key in value):
            raise TypeError(
                f"{value!r} in a label: expected strings as keys, and not 'tuple' alone"
            )
        return {key: _tagged(one) for key, one in value.items()}
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    raise TypeError(
        f"{a_type(value)} in a label: expected strings, numbers, None, and lists, tuples, "
        "arrays and dicts of these"
    )


def _untagged(pairs: list[tuple[str, Any]]) -> Any:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        raise TwiceError(repr(next(key for key in keys if keys.count(key) > 1)))
    listed = {*value} == {"tuple"} and isinstance(value["tuple"], list)
    return tuple(value["tuple"]) if listed else value
