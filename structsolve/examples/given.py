"""Kinds of data that users give, and refusals that hold for all of them."""

from __future__ import annotations

from reprlib import repr as brief
from typing import Any

import numpy as np

from ..utils.arrays import real_array
from ..utils.masked import refuse_masked
from ..utils.suggest import a_type
from .kinds import one_kind

# Products and sums of larger features overflow: weights and scores would be NaN.
HUGE = 1e100


def is_sparse(x: Any) -> bool:
    """Return whether x is a scipy.sparse matrix or array, without importing scipy.

    Parameters
    ----------
    x : object

    Returns
    -------
    bool
    """
    return hasattr(x, "tocsr")


def first_frame(X: Any) -> Any:
    """Return the data frame whose columns name the features of X, the first if there are several.

    Parameters
    ----------
    X : object
        A data frame, or a list, tuple, Series or array of examples: frames, or tuples that begin
        with one; or Sequences of a frame's rows.

    Returns
    -------
    data frame or None
    """
    X = getattr(X, "frame", X) if hasattr(X, "offsets") else X  # Sequences
    objects = getattr(getattr(X, "dtype", None), "kind", "") == "O" and np.ndim(X) == 1
    if not hasattr(X, "columns") and (objects or isinstance(X, (list, tuple))):
        return _frame_of(X, 0)
    return X if hasattr(X, "columns") else None


def _frame_of(X: Any, place: int) -> Any:
    """Return the first data frame among examples, or at this place of those that are tuples."""
    parts = (x[place] if isinstance(x, tuple) and x else x for x in X)
    return next((part for part in parts if hasattr(part, "columns")), None)


def edge_frame(X: Any) -> Any:
    """Return the data frame whose columns name the features of edges, if there is one.

    Parameters
    ----------
    X : object
        As for :func:`first_frame`.

    Returns
    -------
    data frame or None
        The last of the tuple of an example.
    """
    tuples = X if isinstance(X, (list, tuple)) else ()
    return _frame_of((x for x in tuples if isinstance(x, tuple) and len(x) > 1), -1)


def listed(given: Any, what: str = "X") -> Any:
    """Return the items of an iterator, a Series or a 1-D array of objects as a list.

    Anything else is returned unchanged.  A Series has its items by names, not by their numbers.

    Parameters
    ----------
    given : object
        X or y.
    what : str, default="X"
        Its name, for messages.

    Returns
    -------
    object

    Raises
    ------
    ValueError
        If an iterator has no items, as after it was read once.

    Examples
    --------
    >>> listed(x for x in "ab"), listed("ab")
    (['a', 'b'], 'ab')
    """
    if hasattr(given, "to_list") and not hasattr(given, "columns"):
        nested = getattr(given.dtype, "is_nested", bool)  # lists, in a Series of polars
        return given.to_list() if given.dtype == object or nested() else given
    if isinstance(given, np.ndarray) and given.dtype == object and given.ndim == 1:
        return given.tolist()
    if not hasattr(given, "__next__"):
        return given
    items = list(given)
    if not items:
        raise ValueError(
            f"{what}: found {a_type(given)} without items, expected examples; an iterator "
            "can be read only once: pass a list"
        )
    return items


def column_names(Y: Any, n: int, classes: Any = None, what: str = "y") -> np.ndarray:
    """Return the names of the columns of labels: given ones, those of a data frame, or numbers.

    Parameters
    ----------
    Y : array, sparse matrix or data frame
    n : int
        Number of its columns.
    classes : sequence, optional
        Given names.
    what : str, default="y"
        Name of Y, for messages.

    Returns
    -------
    ndarray of shape (n,)

    Raises
    ------
    ValueError
        If they are not n distinct names, or not those of the data frame in its order.

    Examples
    --------
    >>> column_names([[0, 1]], 2).tolist(), column_names([[0, 1]], 2, ["cat", "dog"]).tolist()
    ([0, 1], ['cat', 'dog'])
    """
    own = list(Y.columns) if hasattr(Y, "columns") else None
    given = own if classes is None else classes
    names = np.arange(n) if given is None else np.asarray(given)
    if classes is not None:
        one_kind(classes, "classes")
    if names.dtype == object:
        names = names.astype(str)
    if names.shape != (n,) or len(np.unique(names)) < n:
        raise ValueError(
            f"{what if classes is None else 'classes'}: found the names {brief(names.tolist())}, "
            f"expected {n} distinct names of the columns of {what}"
        )
    check_columns(Y, names, others=False, what=what, whose="classes")
    return names


def check_listed(given: Any, expected: str, what: str = "X", one: str = "example") -> None:
    """Refuse what is no list, and an empty one.

    Parameters
    ----------
    given : object
    expected : str
        What the list should be, in words.
    what : str, default="X"
        Name of the argument.
    one : str, default="example"
        Its elements, in words.

    Raises
    ------
    ValueError
    """
    if isinstance(given, (str, bytes, dict)) or not hasattr(given, "__len__") or is_sparse(given):
        raise ValueError(f"{what} is {a_type(given)}, expected {expected}")
    if not len(given):
        raise ValueError(f"{what} is empty: expected at least one {one}")


def check_labels_of(Y: Any, n: int, expected: str, hint: str = "") -> None:
    """Refuse labels that are no list with one entry for each example.

    Parameters
    ----------
    Y : object
    n : int
        Examples in X.
    expected : str
        What y should be, in words.
    hint : str, default=""
        See :func:`check_lengths`.

    Raises
    ------
    ValueError
    """
    many = hasattr(Y, "__len__") and np.iterable(Y)
    if isinstance(Y, (str, bytes, dict)) or not many:
        raise ValueError(f"y is {a_type(Y)}, expected {expected}")
    check_lengths(n, len(Y), hint)


def check_lengths(n: int, given: int, hint: str = "") -> None:
    """Refuse other numbers of labels than of examples.

    Parameters
    ----------
    n, given : int
        Examples in X and in y.
    hint : str, default=""
        The end of the message.

    Raises
    ------
    ValueError
    """
    if given != n:
        raise ValueError(f"X has {n} examples and y has {given}; both must be equally long{hint}")


def check_row_counts(n: int, given: int, what: str = "labels in y") -> None:
    """Refuse other numbers of labels than rows, in scikit-learn's words.

    Parameters
    ----------
    n, given : int
        Rows of X and of y.
    what : str, default="labels in y"

    Raises
    ------
    ValueError
    """
    if given != n:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {n} rows of X, {given} "
            f"{what}"
        )


def check_columns(
    Y: Any, names: Any, others: bool = True, what: str = "y", whose: str = "in training"
) -> None:
    """Refuse a data frame of labels whose columns are not those of another, in their order.

    Parameters
    ----------
    Y : object
        Anything but a data frame passes.
    names : sequence, or None
        Names of the other's columns; None if it has none.
    others : bool, default=True
        Names of which none is the other's pass, and other numbers, as pandas numbers columns.
    what, whose : str
        Which argument Y is, and where the other is, for the message.

    Raises
    ------
    ValueError
        The message shows both lists of names.

    Examples
    --------
    >>> check_columns([[0, 1]], ["cat", "dog"])
    """
    if names is None or getattr(Y, "columns", None) is None:
        return
    texts = all(isinstance(name, str) for name in Y.columns)
    given, names = list(map(str, Y.columns)), list(map(str, names))
    shared = {*given} & {*names} if texts else sorted(given) == sorted(names)
    if given != names and (shared or not others):
        raise ValueError(
            f"{what}: found the columns {brief(given)}, expected {brief(names)} as {whose}"
        )


def check_named(values: Any, rows: Any, columns: Any, what: str, whose: str = "classes") -> None:
    """Refuse a table whose rows or columns have the names of others in another order.

    Parameters
    ----------
    values : object
        A data frame, or a Series, whose index has the names of its rows; anything else passes.
    rows, columns : sequence, or None
        Names, where there are some.
    what, whose : str
        As for :func:`check_columns`.

    Raises
    ------
    ValueError
        The message shows both lists of names.

    Examples
    --------
    >>> check_named([[0, 1], [1, 0]], ["cat", "dog"], ["cat", "dog"], "costs")
    """
    table = values.to_frame() if hasattr(values, "to_frame") else values
    check_columns(table if table is values else None, columns, what=what, whose=whose)
    # In polars, rows have no names, and frames no ``T``.
    check_columns(getattr(table, "T", None), rows, what=what, whose=whose)


def packed_bytes(X: Any) -> int:
    """Return the bytes of packed features.

    Parameters
    ----------
    X : ndarray or scipy.sparse CSR, or None

    Returns
    -------
    int
    """
    arrays = (X.data, X.indices, X.indptr) if is_sparse(X) else () if X is None else (X,)
    return sum(array.nbytes for array in arrays)


def within(values: np.ndarray, most: float) -> bool:
    """Return whether no value is NaN, or larger in size than a number.

    Parameters
    ----------
    values : ndarray
    most : float

    Returns
    -------
    bool
    """
    # Python floats: a float32 would cast the number, which may overflow.
    return not values.size or float(values.max()) <= most and float(values.min()) >= -most


def refuse_infinite(X: Any, offsets: Any, what: str = "X", most: float = HUGE) -> None:
    """Refuse NaN, infinity, and features whose products overflow, naming the first such example.

    Parameters
    ----------
    X : ndarray or CSR of shape (n_rows, n_features), or None
    offsets : ndarray of int64 of shape (n + 1,)
        First row of each example.
    what : str, default="X"
        Name of the argument.
    most : float
        The largest absolute value allowed.

    Raises
    ------
    ValueError
    """
    data = X if X is None else X.data if is_sparse(X) else X
    if data is None or within(data, most):
        return
    first = int(np.flatnonzero(~(np.abs(data) <= np.float64(most)))[0])
    row = first // data.shape[-1]
    if is_sparse(X):
        row = int(np.searchsorted(X.indptr, first, side="right")) - 1
    i = int(np.searchsorted(offsets, row, side="right")) - 1
    value, where = data.ravel()[first], f"(example {i}, row {row - offsets[i]})"
    if np.isfinite(value):
        raise ValueError(
            f"{what}: found {value:g} {where}, expected numbers from {-most:g} to {most:g}; scale "
            "the features"
        )
    raise ValueError(
        f"{what}: Input contains {'NaN' if np.isnan(value) else 'infinity'} {where}; features must "
        "be finite: impute or drop them"
    )


def check_weights(sample_weight: Any, n: int) -> np.ndarray:
    """Return checked weights of the examples.

    Parameters
    ----------
    sample_weight : None, float or array of shape (n,)
        None gives ones.
    n : int
        Number of examples.

    Returns
    -------
    ndarray of float64 of shape (n,)

    Raises
    ------
    ValueError
        If the shape differs, one is negative or not finite (naming the example), or all are zero.
    """
    if sample_weight is None:
        return np.ones(n)
    refuse_masked(sample_weight, "sample_weight", "give the weight 0 to examples left out")
    if np.isscalar(sample_weight):
        sample_weight = np.full(n, sample_weight)
    weights = real_array(sample_weight, "sample_weight")
    if weights.shape != (n,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}, expected ({n},): one weight per example"
        )
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if bad.size:
        raise ValueError(
            f"sample_weight of example {bad[0]} is {weights[bad[0]]}, expected a finite number of "
            "at least 0"
        )
    if weights.sum() <= 0:
        raise ValueError("sample_weight is zero for every example, expected one above 0")
    return weights
