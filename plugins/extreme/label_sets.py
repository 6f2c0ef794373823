"""Rows of several labels for ExtremeSVM: indicators, sparse ones, and lists of labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from structsolve.examples.given import check_columns, check_row_counts, column_names
from structsolve.plugins.extreme.checks import MOST, encode, read_labels
from structsolve.utils.arrays import n_rows, plain_numbers
from structsolve.utils.sparse import valid_csr

#: Forms of y that several labels per row may have, and that predictions then have.
FORMS = ("array", "sparse", "lists")


def form_of(y: Any, trained: str | None = None) -> str | None:
    """Return the form of rows of several labels.

    Rows of one length with 0 and 1 alone are indicators: as lists, each would hold both labels.

    Parameters
    ----------
    y : array-like
    trained : str, optional
        The form in training; after "lists", all rows of lists are lists of labels.

    Returns
    -------
    {"array", "sparse", "lists"} or None
        None for anything else, such as a flat list of classes.

    Examples
    --------
    >>> form_of(np.eye(3)), form_of([[0, 1], [1, 1]]), form_of(sp.eye(3))
    ('array', 'array', 'sparse')
    >>> form_of([{"a"}, ()]), form_of(["a", "b"])
    ('lists', None)
    >>> form_of([[0, 1], [1, 0]], trained="lists")
    'lists'
    """
    if sp.issparse(y):
        return "sparse"
    shape = getattr(y, "shape", None)
    if shape is not None and len(shape) == 2:
        return "array" if shape[1] > 1 else None
    flat = isinstance(y, (list, tuple)) or (isinstance(y, np.ndarray) and y.dtype == object)
    sets = (list, tuple, set, frozenset, np.ndarray)
    if not (flat and len(y) and all(isinstance(row, sets) for row in y)):
        return None
    return "array" if trained != "lists" and _are_indicators(y) else "lists"


def _are_indicators(y: Any) -> bool:
    """Whether rows are lists of one length, of 0 and 1 alone, as scikit-learn reads them."""
    size = len(y[0])
    try:
        return size > 1 and all(
            not isinstance(row, (set, frozenset)) and len(row) == size and {*row} <= {0, 1}
            for row in y
        )
    except TypeError:  # what is no label: arrays, lists
        return False


def read_label_sets(y: Any, form: str, n: int, classes: Any = None) -> tuple[sp.csr_matrix, Any]:
    """Return indicators of the labels of rows, and the labels.

    Parameters
    ----------
    y : array or sparse matrix of shape (n, n_classes), or list of lists or sets
    form : {"array", "sparse", "lists"}
        Of :func:`form_of`.
    n : int
        Rows of X.
    classes : ndarray, optional
        Labels of the model; those of ``y`` by default.  Others in lists are left out.

    Returns
    -------
    labels : csr_matrix of float32 of shape (n, n_classes)
        Ones, sorted within rows.
    classes : ndarray of shape (n_classes,)
        Names of the columns of a data frame, column numbers of other matrices, labels of lists in
        ascending order.

    Raises
    ------
    ValueError
        When y is neither indicators of ones and zeros nor lists of strings or integers, or has
        another number of rows or columns, or columns of other names.

    Examples
    --------
    >>> labels, classes = read_label_sets([["b"], [], {"a", "b"}], "lists", 3)
    >>> labels.toarray().tolist(), classes.tolist()
    ([[0.0, 1.0], [0.0, 0.0], [1.0, 1.0]], ['a', 'b'])
    """
    check_row_counts(n, n_rows(y), "rows of labels in y")
    labels, names = _of_lists(y, classes) if form == "lists" else _of_matrix(y, classes)
    if not 2 <= len(names) <= MOST:
        raise ValueError(f"y: found {len(names)} labels, expected at least 2, at most {MOST}")
    return labels, names


def _of_matrix(y: Any, classes: np.ndarray | None) -> tuple[sp.csr_matrix, np.ndarray]:
    given = y if sp.issparse(y) else plain_numbers(np.asarray(y))
    wanted = given.shape[1] if classes is None else len(classes)
    if given.shape[1] != wanted:
        raise ValueError(
            f"y has {given.shape[1]} columns of labels, expected {wanted}, as in training"
        )
    Y = sp.csr_matrix(given if given.dtype.kind in "biuf" else given.shape)
    if given.dtype.kind not in "biuf" or not np.isin(Y.data, (0, 1)).all():
        raise ValueError(
            "y: found an array of two dimensions that is not 0 and 1 alone; expected indicators of "
            "labels, a list of the labels of each row, or one class per row"
        )
    Y = valid_csr(Y.data.astype(np.float32), Y.indices, Y.indptr, Y.shape[1], canonical=True)
    Y.data[Y.data > 1] = 1  # of entries that were given twice
    Y.eliminate_zeros()
    if classes is None:
        return Y, column_names(y, wanted)
    check_columns(y, classes, classes.dtype.kind not in "US")
    return Y, classes


def _of_lists(y: Any, classes: np.ndarray | None) -> tuple[sp.csr_matrix, np.ndarray]:
    rows = [list(row) for row in y]
    sizes = np.array([len(row) for row in rows])
    flat = [label for row in rows for label in row]
    if not flat and classes is None:
        raise ValueError("y: found no label in any row, expected lists of labels")
    names = read_labels(flat, len(flat)) if flat else classes[:0]  # type: ignore[index]
    numbers, known = encode_all(names, classes)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    keys = np.repeat(np.arange(len(rows)), sizes) * len(known) + numbers
    if classes is None and len(np.unique(keys)) < len(keys):
        order = np.argsort(keys, kind="stable")
        k = int(order[1:][np.diff(keys[order]) == 0][0])
        i = int(np.searchsorted(indptr, k, side="right")) - 1
        raise ValueError(
            f"y, example {i}: found {names[k].item()!r} twice; expected each label of a row once "
            "(give indicators of 0 and 1 as an array)"
        )
    kept = numbers >= 0
    indptr = np.concatenate([[0], np.cumsum(kept)])[indptr]
    labels = sp.csr_matrix(
        (np.ones(kept.sum(), np.float32), numbers[kept], indptr), shape=(len(rows), len(known))
    )
    labels.sum_duplicates()
    labels.data[:] = 1
    return labels, known


def encode_all(names: np.ndarray, classes: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of labels among all labels, and these.

    Parameters
    ----------
    names : ndarray
    classes : ndarray or None
        None: those that occur.

    Returns
    -------
    numbers : ndarray of int
        -1 for labels that are not in ``classes``.
    classes : ndarray
    """
    if classes is None:
        known, numbers = np.unique(names, return_inverse=True)
        return numbers.astype(np.int32), known
    return encode(names, classes) if len(names) else np.zeros(0, np.int32), classes


def as_form(labels: sp.csr_matrix, form: str, classes: np.ndarray) -> Any:
    """Return indicators in a form of y.

    Parameters
    ----------
    labels : csr_matrix of shape (n, n_classes)
    form : {"array", "sparse", "lists"}
    classes : ndarray of shape (n_classes,)

    Returns
    -------
    ndarray of int64, csr_matrix of int64, or list of lists
    """
    if form == "lists":
        starts = labels.indptr
        return [
            classes[labels.indices[first:last]].tolist()
            for first, last in zip(starts[:-1], starts[1:], strict=True)
        ]
    whole = labels.astype(np.int64)
    return whole if form == "sparse" else whole.toarray()
