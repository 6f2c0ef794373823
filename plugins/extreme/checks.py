"""Checks of the input of ExtremeSVM: rows of float32, class numbers, sizes in memory."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from structsolve.examples.given import is_sparse, listed, refuse_infinite
from structsolve.examples.labels import flatten_rows, look_up
from structsolve.examples.packing import single_rows
from structsolve.utils.masked import refuse_masked
from structsolve.utils.memory import refuse_too_large
from structsolve.utils.sparse import valid_csr

#: Features and classes are numbered by 32-bit integers.
MOST = 2**31 - 1
FLOAT_MOST = float(np.finfo(np.float32).max)


def read_rows(X: Any, n_features: int | None, max_memory: float | None = None) -> sp.csr_matrix:
    """Return checked features in the form of the extreme layer.

    Parameters
    ----------
    X : array, data frame or scipy.sparse matrix of shape (n, n_features)
        Real numbers; rows may be empty.
    n_features : int, optional
        Columns expected; any number by default.
    max_memory : float, optional
        Bytes that the sparse copy of a dense X may take.

    Returns
    -------
    csr_matrix of float32
        Columns sorted within rows, no duplicates or zeros; ``indices`` int32, ``indptr`` int64.

    Raises
    ------
    ValueError
        If X is no matrix of finite numbers within float32, has another number of columns, more
        than 2^31 - 1 of them, or would not fit in memory as CSR.

    Examples
    --------
    >>> rows = read_rows([[0.0, 2.0], [0.0, 0.0]], None)
    >>> rows.nnz, rows.data.dtype.name, rows.indptr.dtype.name
    (1, 'float32', 'int64')
    """
    X = listed(X)
    refuse_masked(X, "X", "fill them in, x.filled(0.0)")
    shape: Any = getattr(X, "shape", ())
    if len(shape) == 2:
        if shape[1] > MOST:
            raise ValueError(
                f"X has {shape[1]} features, expected at most {MOST}, which 32 bits can number: "
                "hash them to fewer, for example with sklearn.feature_extraction.FeatureHasher"
            )
        if n_features is not None and shape[1] != n_features:
            raise ValueError(
                f"X has {shape[1]} features, but ExtremeSVM is expecting {n_features} features as "
                "input"
            )
        if not is_sparse(X):
            # Size of the dense matrix as CSR if no entry is zero.
            refuse_too_large(
                8.0 * shape[0] * shape[1],
                f"X: {shape[0]} dense rows of {shape[1]} features, made sparse,",
                "give a scipy.sparse.csr_matrix, or fewer rows at a time",
                max_memory,
                half=True,
            )
    given, offsets = single_rows(X, n_features)
    with np.errstate(over="ignore"):
        values = (given.data if is_sparse(given) else given).astype(np.float32, copy=False)
    if not np.isfinite(values).all():
        refuse_infinite(given, offsets) if not _finite(given) else refuse_large(given, FLOAT_MOST)
    training = n_features is None
    if training and not values.any() and (given.data if is_sparse(given) else given).any():
        raise ValueError(
            "X: found features so small that all are 0 in float32, in which scores are: scale the "
            "features to values around 1"
        )
    if is_sparse(given) and values.all():
        return _rows(values, given.indices, given.indptr, given.shape)
    if is_sparse(given):  # solvers would take steps on stored zeros
        rows = sp.csr_matrix((values, given.indices, given.indptr), given.shape, copy=True)
        rows.eliminate_zeros()
    else:
        rows = sp.csr_matrix(values)
    return _rows(rows.data, rows.indices, rows.indptr, rows.shape)


def _finite(X: Any) -> bool:
    return bool(np.isfinite(X.data if is_sparse(X) else X).all())


def refuse_large(X: Any, most: float) -> None:
    """Refuse features for which numbers of float32 do not suffice.

    Parameters
    ----------
    X : array or scipy.sparse matrix
    most : float
        Largest absolute value.

    Raises
    ------
    ValueError
        Names the first value beyond it.
    """
    if np.abs(X.data if is_sparse(X) else X).max(initial=0) <= most:
        return
    X = sp.csr_matrix(X)
    k = int(np.flatnonzero(np.abs(X.data) > most)[0])
    i = int(np.searchsorted(X.indptr, k, side="right")) - 1
    raise ValueError(
        f"X, example {i}: found {X.data[k]:g} for feature {X.indices[k]}, expected values "
        f"within {most:.2g}, as scores are float32: scale the features to values around 1"
    )


def _rows(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: Any) -> sp.csr_matrix:
    # The loops expect fixed widths of both integer types.
    columns, starts = indices.astype(np.int32, copy=False), indptr.astype(np.int64, copy=False)
    return valid_csr(np.ascontiguousarray(data), columns, starts, shape[1], canonical=True)


def some_rows(X: sp.csr_matrix, first: int, last: int) -> sp.csr_matrix:
    """Return rows ``first .. last - 1`` of a matrix of :func:`read_rows`, without a copy.

    Parameters
    ----------
    X : csr_matrix
    first, last : int

    Returns
    -------
    csr_matrix
    """
    a, b = X.indptr[first], X.indptr[last]
    shape = last - first, X.shape[1]
    return _rows(X.data[a:b], X.indices[a:b], X.indptr[first : last + 1] - a, shape)


def read_labels(y: Any, n: int) -> np.ndarray:
    """Return y as an array of one class per row.

    Parameters
    ----------
    y : array-like of shape (n,)
        Strings or integers.
    n : int
        Rows of X.

    Returns
    -------
    ndarray of shape (n,)

    Raises
    ------
    ValueError
        If y is not a flat list of n classes.
    """
    refuse_masked(y, "y", "leave these examples out")
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    with warnings.catch_warnings():
        # The number of classes may exceed half the number of examples.
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        return flatten_rows(y, n)


def read_classes(classes: Any) -> np.ndarray:
    """Return all classes in ascending order.

    Parameters
    ----------
    classes : sequence
        May contain duplicates.

    Returns
    -------
    ndarray of shape (n_classes,)

    Raises
    ------
    ValueError
        If there are no labels, fewer than two classes, or more than 2^31 - 1.
    """
    if isinstance(classes, (str, bytes)) or not hasattr(classes, "__len__"):
        raise ValueError(f"classes is {classes!r}, expected a list of all classes")
    if len(classes) > MOST:  # before conversion to an array
        raise ValueError(
            f"classes: found {len(classes)}, expected at most {MOST}, which 32 bits can number"
        )
    names: np.ndarray = np.unique(read_labels(classes, len(classes)))
    if len(names) < 2:
        given = f"one class, {names.tolist()[0]!r}" if len(names) else "no class"
        raise ValueError(
            f"y: found {given}, expected at least 2 classes; with partial_fit, name all of them "
            "in classes="
        )
    return names


def encode(labels: np.ndarray, classes: np.ndarray, what: str = "y") -> np.ndarray:
    """Return the numbers of classes, -1 for unknown ones.

    Parameters
    ----------
    labels : ndarray of shape (n,)
    classes : ndarray of shape (n_classes,)
        Distinct.
    what : str, default="y"
        Name of the argument in errors.

    Returns
    -------
    ndarray of int32 of shape (n,)

    Raises
    ------
    ValueError
        If labels are strings and classes numbers, or vice versa.

    Examples
    --------
    >>> encode(np.array(["b", "z", "a"]), np.array(["a", "b"])).tolist()
    [1, -1, 0]
    """
    if (labels.dtype.kind in "USO") != (classes.dtype.kind in "USO"):
        raise ValueError(
            f"{what} holds {labels.dtype}, but the model was trained on classes of type "
            f"{classes.dtype}: give labels of that kind"
        )
    # Only those of data frames may be in another order.
    rising = bool((classes[1:] > classes[:-1]).all())
    order: Any = slice(None) if rising else np.argsort(classes)
    places, known = look_up(labels, classes[order])
    numbers = places if rising else order[places]
    return np.where(known, numbers, -1).astype(np.int32)


def refuse_unknown(numbers: np.ndarray, labels: np.ndarray, what: str, advice: str) -> None:
    """Refuse classes that are not classes of the model.

    Parameters
    ----------
    numbers : ndarray of int32
        Of :func:`encode`.
    labels : ndarray
        As given.
    what, advice : str
        Name of the argument, and what to do.

    Raises
    ------
    ValueError
        The message names the first.
    """
    unknown = np.flatnonzero(numbers < 0)
    if len(unknown):
        i = int(unknown[0])
        raise ValueError(
            f"{what}, entry {i}: found class {labels[i].item()!r}, expected one of "
            f"classes_ ({len(unknown)} of {len(numbers)} are unknown): {advice}"
        )


def check_k(k: Any, most: int, what: str = "k") -> int:
    """Return a checked number of classes.

    Parameters
    ----------
    k : int
    most : int
        Number of classes of the model.
    what : str, default="k"
        Name of the argument in errors.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        When it is not an integer from 1 to ``most``.
    """
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 1 <= k <= most:
        raise ValueError(
            f"{what} is {k!r}, expected an integer from 1 to {most}, the number of classes"
        )
    return int(k)
