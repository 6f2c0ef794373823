"""Labels of nodes: users' strings or integers, and states 0 .. K-1."""

from __future__ import annotations

from collections.abc import Sequence
from reprlib import repr as brief
from typing import Any

import numpy as np

from structsolve.utils.suggest import a_type

from .given import check_labels_of, check_row_counts
from .kinds import is_mixed, one_kind

MOST = 2.0**53  # integers below differ as floats, too
ROUNDED = (
    ", a label that NumPy rounds to a float among others; give strings, or arrays of one type of "
    "integers"
)
UNKNOWN = "; LatentSVM takes None for unknown labels"
LABELS = (str, int, np.integer, np.bool_)


def flatten(Y: Any, offsets: np.ndarray) -> np.ndarray:
    """Concatenate label sequences after checking their lengths against X.

    Parameters
    ----------
    Y : sequence of n label sequences
        Strings or integers, of one kind in all sequences.
    offsets : ndarray of int64 of shape (n + 1,)
        First node of each example of X.

    Returns
    -------
    ndarray of shape (n_nodes,)

    Raises
    ------
    ValueError
        If the number of sequences or the length of one differs from X, or labels are neither
        strings nor integers.

    Examples
    --------
    >>> flatten([["a"], ["b", "a"]], np.array([0, 1, 3])).tolist()
    ['a', 'b', 'a']
    """
    n = len(offsets) - 1
    hint = "; wrap the labels of one sequence: [y]" if n == 1 else ""
    check_labels_of(Y, n, "a list of label sequences", hint)
    if n and _are_plain(Y, offsets):
        return np.concatenate(Y)
    arrays = []
    for i, y in enumerate(Y):
        y = _as_labels(y, f"y, example {i}")
        if len(y) != offsets[i + 1] - offsets[i]:
            raise ValueError(
                f"example {i}: X has {offsets[i + 1] - offsets[i]} rows and y has {len(y)} labels; "
                "expected one label per row"
            )
        arrays.append(y)
    arrays = [a for a in arrays if len(a)]  # an empty list has no dtype
    kinds = {a.dtype.kind in "US" for a in arrays}
    if len(kinds) > 1:
        raise ValueError("y mixes strings and numbers; use one kind of label for all examples")
    flat = np.concatenate(arrays) if arrays else np.zeros(0, dtype=np.int64)
    if flat.dtype.kind == "f" and (large := np.abs(flat) >= MOST).any():  # int64 beside uint64
        i = int(np.searchsorted(offsets, np.argmax(large), side="right")) - 1
        raise ValueError(f"y, example {i}: found {flat[large][0]:.0f}{ROUNDED}")
    return flat


def flatten_rows(Y: Any, n: int) -> np.ndarray:
    """Return y, one label for each row, as an array, with scikit-learn's checks.

    Parameters
    ----------
    Y : array-like of shape (n,)
        Strings or integers.
    n : int
        Rows of X.

    Returns
    -------
    ndarray of shape (n,)

    Raises
    ------
    ValueError
        If y is no flat list of n classes.
    """
    from sklearn.utils import column_or_1d  # heavy

    if Y is None:
        raise ValueError(
            "This StructuredSVM estimator requires y to be passed, but the target y is None"
        )
    if isinstance(Y, (str, bytes)):
        raise ValueError(f"y is the {type(Y).__name__} {Y!r}, expected a list of one class per row")
    try:
        y = column_or_1d(Y, warn=True)
        if y.dtype.kind in "OT" and len({isinstance(label, str) for label in y}) == 1:
            y = np.asarray(y.tolist())
            if y.ndim > 1:
                raise ValueError("inhomogeneous")
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise ValueError(f"{error} Expected one class per row") from None
        sets = [hasattr(entry, "__len__") and not isinstance(entry, (str, bytes)) for entry in Y]
        i = sets.index(True)
        raise ValueError(
            f"y, example {i}: found {list(Y)[i]!r}, expected one class per row"
        ) from error
    if y.dtype.kind not in "biufU" or is_mixed(Y, y):
        _refuse_kinds(Y if is_mixed(Y, y) else y.tolist())
    if y.dtype.kind == "f" and not (fits := (np.abs(y) < MOST) & (y == np.trunc(y))).all():
        i = int(np.argmin(fits))
        if MOST <= abs(y[i]) < np.inf:
            raise ValueError(f"y, example {i}: found {y[i]:.0f}{ROUNDED}")
        told = {"nan": "Input y contains NaN", "inf": "Input y contains infinity"}
        what = told.get(str(abs(y[i])), "Unknown label type: continuous")
        raise ValueError(f"y, example {i}: {what}: found {y[i]}, expected a string or an integer")
    check_row_counts(n, len(y))
    return y


def _refuse_kinds(given: Sequence[Any]) -> None:
    """Refuse labels that are neither all strings nor all integers of 64 bits."""
    types = sorted({type(label).__name__ for label in given})
    plain = [isinstance(one, LABELS) and len(repr(one)) < 20 for one in given]
    i = plain.index(False) if not all(plain) else 0
    if all(plain):
        i = [type(one) is type(given[0]) for one in given].index(False)
    hint = "; weights of rows are fit's sample_weight" if "WeightedLabels" in types else ""
    hint = UNKNOWN if None in given else hint
    raise ValueError(
        f"y: Unknown label type: found {types}, such as {given[i]!r} of example {i}, expected "
        f"all strings or all integers of 64 bits{hint}"
    )


def first_difference(given: Sequence[Any], expected: Sequence[Any]) -> str:
    """Describe the first difference of two lists of names, of any length.

    Parameters
    ----------
    given, expected : sequence
        Different lists.

    Returns
    -------
    str

    Examples
    --------
    >>> first_difference(["a", "b", "c"], ["a", "c", "b"])
    "number 1 is 'b', expected 'c'"
    >>> first_difference([1], ["1"]), first_difference(["a"], ["a", "b"])
    ("number 0 is 1, expected '1'", "found 1, expected 2 that end with 'b'")
    """
    for k, (one, other) in enumerate(zip(given, expected)):
        if one != other:
            return f"number {k} is {one!r}, expected {other!r}"
    end = f" that end with {expected[-1]!r}" if len(expected) else ""
    return f"found {len(given)}, expected {len(expected)}{end}"


def _are_plain(Y: Any, offsets: np.ndarray) -> bool:
    """Return whether all are arrays of one kind of label and of the expected lengths.

    One check of all at once is much faster than one per sequence.
    """
    if set(map(type, Y)) != {np.ndarray}:
        return False
    kinds = {y.dtype.kind for y in Y}
    if len(kinds) > 1 or not kinds <= set("iubUS") or {y.ndim for y in Y} != {1}:
        return False
    return bool((np.fromiter(map(len, Y), np.int64, len(Y)) == np.diff(offsets)).all())


def _as_labels(given: Any, where: str) -> np.ndarray:
    if isinstance(given, (list, tuple)) and not given:
        return np.zeros(0, dtype=np.int64)
    try:
        y = np.asarray(given)
    except ValueError:
        raise ValueError(
            f"{where}: found lists of different lengths, expected a flat list of labels"
        ) from None
    if isinstance(given, str):
        raise ValueError(
            f"{where} is the string {given!r}, expected a list of labels, one per node; "
            "list(y) makes a label of each letter"
        )
    if y.ndim != 1:
        shown = f"{y.ndim} dimensions" if y.ndim else a_type(given)
        raise ValueError(f"{where}: found {shown}, expected a flat list of labels")
    mixed = is_mixed(given, y)
    if y.dtype.kind in "OT" or mixed:  # T is NumPy's kind of strings of any length
        types = {type(v) for v in (given if mixed else y.tolist())}
        if types <= {str, np.str_}:
            return np.asarray(y.tolist(), str)
        if types <= {int, bool, np.int64, np.int32}:
            try:
                return y.astype(np.int64)
            except OverflowError:
                largest = max(y.tolist(), key=abs)
                raise ValueError(
                    f"{where}: the label {largest} is no 64-bit integer; use strings"
                ) from None
        names = sorted(t.__name__ for t in types)
        raise ValueError(
            f"{where}: Unknown label type: labels of types {names}; expected all strings or all "
            f"integers{UNKNOWN if type(None) in types else ''}"
        )
    if y.dtype.kind == "f":
        if not np.isfinite(y).all():
            raise ValueError(f"{where}: Input y contains NaN or infinity, expected labels")
        if (y != np.floor(y)).any():
            raise ValueError(
                f"{where}: Unknown label type: continuous values such as {y[y != np.floor(y)][0]}; "
                "expected classes (strings or integers)"
            )
    elif y.dtype.kind not in "iubUS":
        raise ValueError(f"{where}: Unknown label type: dtype {y.dtype}; use strings or integers")
    return y


def learn_classes(flat: np.ndarray, given: Any = None) -> np.ndarray:
    """Return the sorted classes of the labels, or the given ones sorted.

    Parameters
    ----------
    flat : ndarray of shape (n_nodes,)
        All labels.
    given : sequence, optional
        The user's classes; :func:`encode` refuses other labels.

    Returns
    -------
    ndarray of shape (n_classes,)

    Raises
    ------
    ValueError
        If there are no labels, or the given classes are no flat list, mix strings and numbers,
        or one repeats.
    """
    if given is None:
        if not len(flat):
            raise ValueError("y has no labels: expected at least one sequence that is not empty")
        return np.unique(flat)
    classes = one_kind(given, "classes")
    if classes.ndim != 1 or len(np.unique(classes)) != len(classes):
        raise ValueError("classes must be a flat list without repetition")
    return np.sort(classes)


def encode(
    flat: np.ndarray, classes: np.ndarray, offsets: np.ndarray, unseen: int | None = None
) -> np.ndarray:
    """Map labels to states, their positions among the classes.

    Parameters
    ----------
    flat : ndarray of shape (n_nodes,)
        Labels of all examples.
    classes : ndarray of shape (n_classes,)
        Sorted.
    offsets : ndarray of int64 of shape (n + 1,)
        First label of each example, for the message.
    unseen : int, optional
        State for labels that are not in ``classes``; by default they are refused.

    Returns
    -------
    ndarray of int32 of shape (n_nodes,)

    Raises
    ------
    ValueError
        The message names the first example with a label that is not in ``classes``; also for names
        where classes are numbers, and numbers where they are names: none can be known.

    Examples
    --------
    >>> encode(np.array(["b", "a"]), np.array(["a", "b"]), np.array([0, 2])).tolist()
    [1, 0]
    """
    names = flat.dtype.kind in "US"
    if len(flat) and names != (classes.dtype.kind in "US"):
        if unseen is not None:
            kinds = ("names", "numbers") if names else ("numbers", "names")
            hint = "; of a model trained on marginals these are 0 to K - 1: pass "
            hint += "np.searchsorted(teacher.classes_, y)"
            raise ValueError(
                f"y: found {kinds[0]}, such as {flat[0].item()!r}, expected some of the model's "
                f"classes, which are {kinds[1]}: {brief(classes.tolist())}{hint if names else ''}"
            )
        states, known = np.zeros(len(flat), np.int32), np.zeros(len(flat), dtype=bool)
    else:
        states, known = look_up(flat, classes)
    if not known.all():
        if unseen is None:
            first = int(np.flatnonzero(~known)[0])
            i = int(np.searchsorted(offsets, first, side="right")) - 1
            raise ValueError(
                f"example {i}: label {flat[first].item()!r} was not seen in training; known: "
                f"{brief(classes.tolist())}"
            )
        states[~known] = unseen
    return states


def all_classes(*arrays: np.ndarray) -> np.ndarray:
    """Return the sorted classes of several arrays of labels.

    Parameters
    ----------
    *arrays : ndarray
        All of strings, or all of numbers.

    Returns
    -------
    ndarray

    Raises
    ------
    ValueError
        For integers of 64 bits with and without sign, which NumPy rounds to floats.

    Examples
    --------
    >>> all_classes(np.array([3, 1]), np.array([2, 3])).tolist()
    [1, 2, 3]
    """
    classes = np.unique(np.concatenate(arrays))
    if classes.dtype.kind == "f" and (large := np.abs(classes) >= MOST).any():
        raise ValueError(f"y: found {classes[large][0]:.0f}{ROUNDED}")
    return classes


def look_up(flat: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where labels are among sorted classes, and which of them are classes.

    Parameters
    ----------
    flat : ndarray of shape (n,)
    classes : ndarray of shape (n_classes,)
        Strings if labels are strings, else numbers.

    Returns
    -------
    places : ndarray of int32 of shape (n,)
        Of other labels, any.
    known : ndarray of bool of shape (n,)

    Examples
    --------
    >>> places, known = look_up(np.array(["b", "z"]), np.array(["a", "b"]))
    >>> places.tolist(), known.tolist()
    ([1, 1], [True, False])
    """
    same: Any = True
    if {flat.dtype.kind, classes.dtype.kind} == {"i", "u"}:  # NumPy compares 64 bits as floats
        whole = np.uint64 if classes.dtype.kind == "u" else np.int64
        given, flat, classes = flat, flat.astype(whole), classes.astype(whole)
        same = (given < 0) == (flat < 0)
    places = np.minimum(np.searchsorted(classes, flat), len(classes) - 1).astype(np.int32)
    return places, (classes[places] == flat) & same


def class_names(classes: Any, structure: str, ordered: bool = True) -> np.ndarray:
    """Return the names of classes without training data.

    Parameters
    ----------
    classes : int or sequence
        Their number, or distinct names.
    structure : str
        Its name, for messages.
    ordered : bool, default=True
        Names must be sorted: class k is the k-th of them.

    Returns
    -------
    ndarray
        Numbers from 0 if ``classes`` is a number.

    Raises
    ------
    ValueError

    Examples
    --------
    >>> from structsolve.examples.labels import class_names
    >>> class_names(3, "chain").tolist(), class_names(["a", "b"], "chain").tolist()
    ([0, 1, 2], ['a', 'b'])
    """
    if isinstance(classes, (int, np.integer)) and not isinstance(classes, bool) and classes >= 1:
        return np.arange(classes)
    if classes is None or isinstance(classes, (int, np.integer, str)) or np.ndim(classes) != 1:
        raise ValueError(
            f"structure {structure!r}: classes is {classes!r}, expected their number, at "
            "least 1, or their names"
        )
    names = one_kind(classes, "classes")
    if not len(names) or len(np.unique(names)) < len(names):
        raise ValueError(
            f"structure {structure!r}: classes are {brief(names.tolist())}, expected distinct names"
        )
    if ordered and (names[1:] < names[:-1]).any():
        raise ValueError(
            f"structure {structure!r}: classes are {brief(names.tolist())}, expected them sorted: "
            "the scores of class k are those of the k-th name"
        )
    return names
