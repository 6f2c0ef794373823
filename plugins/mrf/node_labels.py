"""Node labels that may be void, and node weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from structsolve.examples import labels
from structsolve.structure.weighted_labels import split_weights

UNKNOWN = "which is no class: name it, void={}, where it means that the label is unknown"


class NodeLabels(NamedTuple):
    """Labels of all nodes, one after the other.

    Parameters
    ----------
    flat : ndarray of shape (nodes,)
        Labels as users give them; void nodes hold any other label.
    counted : ndarray of bool of shape (nodes,), or None
        False at void nodes; None if there are none.
    weights : ndarray of float64 of shape (nodes,), or None
        Weights of nodes; None if all are 1.
    """

    flat: np.ndarray
    counted: np.ndarray | None
    weights: np.ndarray | None


def void_names(void: Any) -> tuple[Any, ...]:
    """Return the void labels.

    Parameters
    ----------
    void : label, sequence of labels, or None
        As users give it; None for none.

    Returns
    -------
    tuple

    Raises
    ------
    ValueError
        For anything but strings, numbers, and None in a sequence.

    Examples
    --------
    >>> void_names(255), void_names(["?", None]), void_names(None)
    ((255,), ('?', None), ())
    """
    names = tuple(void) if isinstance(void, (list, tuple, set, np.ndarray)) else (void,)
    if void is None:
        names = ()
    for name in names:
        if not isinstance(name, (str, int, float, np.integer, np.floating, type(None))):
            raise ValueError(
                f"void is {void!r}, expected a label (a string or a number), a list of labels, "
                "or None"
            )
    return names


def read_labels(
    Y: Any, offsets: np.ndarray, void: Any = None, classes: Any = None, where: Any = None
) -> NodeLabels:
    """Read labels, some of which may be void, and weights of nodes.

    Parameters
    ----------
    Y : sequence of n label sequences or :class:`~structsolve.WeightedLabels`
    offsets : ndarray of int64 of shape (n + 1,)
        First node of each example.
    void : label or sequence of labels, optional
        Labels to ignore.
    classes : ndarray, optional
        The classes, if known.
    where : callable, optional
        ``(example, node) -> str``, the name of a node in messages.

    Returns
    -------
    NodeLabels

    Raises
    ------
    ValueError
        The message names the example and the node.
    """
    names, name = void_names(void), where or _node
    Y, weights = split_weights(Y, offsets)
    _refuse_missing(Y, names, name)
    counted, sizes = None, offsets
    if names and len(_listed(Y)) == len(offsets) - 1:
        arrays = [_array(y) for y in Y]
        kept = [~_is_void(y, names) for y in arrays]
        fits = all(len(k) == size for k, size in zip(kept, np.diff(offsets)))
        if fits and not all(k.all() for k in kept):
            counted = np.concatenate(kept)
            if not counted.any():
                raise ValueError("y: all labels are void, nothing is left")
            # An example without labels would not determine their type.
            Y = [y[k] for y, k in zip(arrays, kept) if k.any()]
            sizes = np.concatenate([[0], np.cumsum([len(y) for y in Y])])
    flat = labels.flatten(Y, sizes)
    if counted is not None:
        full = np.empty(len(counted), dtype=flat.dtype)
        full[counted], full[~counted] = flat, flat[0]
        flat = full
    if void is None:
        _refuse_minus_one(flat, offsets, classes, name)
    return NodeLabels(flat, counted, weights)


def refuse_all_void(counted: np.ndarray, offsets: np.ndarray, nodes: str) -> None:
    """Raise an error that names the first example with only void labels.

    Parameters
    ----------
    counted : ndarray of bool
        Nodes that are not void.
    offsets : ndarray of int64 of shape (n + 1,)
    nodes : str
        Their name in messages.

    Raises
    ------
    ValueError
    """
    before = np.concatenate([[0], np.cumsum(counted)])[offsets]
    empty = np.flatnonzero(np.diff(before) == 0)
    if empty.size:
        i = int(empty[0])
        raise ValueError(
            f"y, example {i}: all {offsets[i + 1] - offsets[i]} {nodes} are void, expected at "
            "least one that is not; leave the example out"
        )


def _node(i: int, v: int) -> str:
    return f"example {i}, node {v}"


def _listed(Y: Any) -> Any:
    return Y if isinstance(Y, (list, tuple, np.ndarray)) else ()


def _array(y: Any) -> np.ndarray:
    # NumPy turns numbers and None among strings into strings.
    return y if isinstance(y, np.ndarray) else np.array(y, dtype=object)


def _is_missing(name: Any) -> bool:
    return name is None or name != name


def _is_void(y: np.ndarray, names: tuple[Any, ...]) -> np.ndarray:
    if y.dtype == object:
        missing = any(n is not None and _is_missing(n) for n in names)
        return np.fromiter(
            (a in names or (missing and a is not None and _is_missing(a)) for a in y), bool, len(y)
        )
    strings = y.dtype.kind in "US"
    given = [n for n in names if n is not None and isinstance(n, str) == strings]
    void = np.isin(y, given) if given else np.zeros(len(y), dtype=bool)
    if y.dtype.kind == "f" and any(n != n for n in given):
        void |= np.isnan(y)
    return void


def _refuse_missing(Y: Any, names: tuple[Any, ...], name: Any) -> None:
    for i, y in enumerate(_listed(Y)):
        if isinstance(y, np.ndarray) and y.dtype.kind in "iubUS":
            continue
        if isinstance(y, (str, bytes)) or not hasattr(y, "__iter__") or getattr(y, "ndim", 1) == 0:
            continue
        if isinstance(y, np.ndarray) and y.dtype.kind == "f" and not np.isnan(y).any():
            continue
        for v, label in enumerate(y):
            if isinstance(label, (list, tuple, np.ndarray)) or not _is_missing(label):
                continue
            if not _is_void(np.array([label], dtype=object), names)[0]:
                kind = "None" if label is None else "NaN"
                raise ValueError(
                    f"{name(i, v)}: Input y contains {kind}, "
                    + UNKNOWN.format("[None]" if label is None else "float('nan')")
                )


def _refuse_minus_one(flat: np.ndarray, offsets: np.ndarray, classes: Any, name: Any) -> None:
    """Accept -1 as a class if it is known, one of two signs, or some labels are smaller."""
    if flat.dtype.kind not in "if":
        return
    others = set(np.unique(flat).tolist())
    if -1 not in others or others <= {-1, 1} or min(others) < -1:
        return
    if classes is not None and -1 in np.asarray(classes).tolist():
        return
    row = int(np.argmax(flat == -1))
    i = int(np.searchsorted(offsets, row, side="right")) - 1
    raise ValueError(
        f"{name(i, row - int(offsets[i]))}: y holds -1, {UNKNOWN.format(-1)}; void=() says that it "
        "is a class"
    )
