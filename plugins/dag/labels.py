"""Labels of a hierarchy as users give them (indicators, lists, leaves), checked and encoded."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.examples.given import check_row_counts, is_sparse
from structsolve.examples.labels import first_difference
from structsolve.plugins.dag.hierarchy import Hierarchy
from structsolve.plugins.dag.topological_order import first_barren, first_open
from structsolve.utils.arrays import plain_numbers
from structsolve.utils.sparse import as_csr


def encode_sets(Y: Any, n: int, hierarchy: Hierarchy, close: bool, union: bool) -> np.ndarray:
    """Return Y as indicators (int32, of shape (n, M)) of sets that are closed.

    Parameters
    ----------
    Y : matrix of 0 and 1 (array, sparse, data frame), or list of its rows or of lists of labels
    n : int
        Rows of X.
    hierarchy : Hierarchy
    close : bool
        Add missing ancestors; else they are refused.
    union : bool
        Each set must be a union of paths from roots to leaves, not empty.

    Returns
    -------
    ndarray of int32 of shape (n, M)

    Raises
    ------
    ValueError
        The message names the example and the label.
    """
    matrix = _indicators(Y, n, hierarchy)
    if close:
        hierarchy.close(matrix)
    orphan = first_open(matrix, hierarchy.order, hierarchy.up_first, hierarchy.up)
    if orphan is not None:
        i, v, p = orphan
        child, parent = hierarchy.nodes[[v, p]].tolist()
        raise ValueError(
            f"example {i}: found the label {child!r} without its parent {parent!r}, expected all "
            "ancestors; use close=True (in the shell --close) to add them"
        )
    if union:
        barren = first_barren(matrix, hierarchy.child_first, hierarchy.child)
        if barren is not None:
            i, v = barren
            raise ValueError(
                f"example {i}: found the label {hierarchy.nodes[v].item()!r} without any of its "
                "children, expected paths that end in leaves; use labels='closed'"
            )
        empty = ~matrix.any(axis=1)
        if empty.any():
            raise ValueError(
                f"example {int(empty.argmax())}: found no labels, expected at least one leaf; use "
                "labels='closed'"
            )
    return matrix


def encode_leaves(Y: Any, n: int, hierarchy: Hierarchy, close: bool) -> np.ndarray:
    """Return Y as columns of leaves (int32, of shape (n,)): one per row.

    Parameters
    ----------
    Y : 1-D array of leaves, or sets (as for ``encode_sets``) with one leaf each
    n, hierarchy, close
        See ``encode_sets``.

    Returns
    -------
    ndarray of int32 of shape (n,)

    Raises
    ------
    ValueError
        The message names the example and the label.
    """
    if len(hierarchy) > 1:  # of one node, a column may be indicators
        Y = flat_column(Y)
    if not _is_sets(Y):
        columns = _columns_of_names(Y, n, hierarchy)
    else:
        matrix = encode_sets(Y, n, hierarchy, close, union=True)
        leaves = matrix[:, hierarchy.leaves]
        several = leaves.sum(axis=1) != 1
        if several.any():
            i = int(several.argmax())
            names = hierarchy.nodes[hierarchy.leaves[leaves[i] == 1]].tolist()
            raise ValueError(
                f"example {i}: found the leaves {names[:8]}, expected one; use labels='leaf-union' "
                "for several"
            )
        columns = hierarchy.leaves[leaves.argmax(axis=1)]
    inner = hierarchy.child_first[columns] < hierarchy.child_first[columns + 1]
    if inner.any():
        i = int(inner.argmax())
        raise ValueError(
            f"example {i}: found the label {hierarchy.nodes[columns[i]].item()!r}, which has "
            "children, expected a leaf"
        )
    return columns.astype(np.int32)


def flat_column(Y: Any) -> Any:
    """Return a column of leaves as a 1-D array, with scikit-learn's warning; all else unchanged.

    Parameters
    ----------
    Y : as users give it

    Returns
    -------
    ndarray of shape (n,), or Y
    """
    if is_sparse(Y) or getattr(Y, "shape", ())[1:] != (1,):
        return Y
    from sklearn.utils import column_or_1d  # heavy

    return column_or_1d(Y, warn=True)


def _is_sets(Y: Any) -> bool:
    if is_sparse(Y):
        return True
    if hasattr(Y, "shape") and not _is_object_row(Y):
        return len(Y.shape) != 1
    return hasattr(Y, "__len__") and any(_is_list(entry) for entry in Y)


def _is_object_row(Y: Any) -> bool:
    return getattr(Y, "ndim", None) == 1 and getattr(Y.dtype, "kind", None) == "O"


def _is_list(entry: Any) -> bool:
    return not isinstance(entry, (str, bytes)) and hasattr(entry, "__iter__")


def column_of(name: Any, i: int, hierarchy: Hierarchy) -> int:
    """Return the column of a label.

    Parameters
    ----------
    name : object
        A node of the hierarchy.
    i : int
        The example, for the message.
    hierarchy : Hierarchy

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If the hierarchy has no such node.
    """
    known = hierarchy.column
    if isinstance(name, np.generic):
        name = name.item()
    try:
        column = None if isinstance(name, bool) else known.get(name)
    except TypeError:
        column = None
    if column is None:
        raise ValueError(
            f"example {i}: found the label {name!r}, which is no node of the hierarchy; its nodes "
            f"are {hierarchy.nodes[:6].tolist()}{'...' if len(hierarchy) > 6 else ''}"
        )
    return column


def _columns_of_names(Y: Any, n: int, hierarchy: Hierarchy) -> np.ndarray:
    if Y is None or isinstance(Y, (str, bytes)) or not hasattr(Y, "__len__"):
        raise ValueError(f"y is {Y!r}, expected one leaf per row of X")
    check_row_counts(n, len(Y))
    values = Y.to_numpy() if hasattr(Y, "to_numpy") else Y
    columns = [column_of(name, i, hierarchy) for i, name in enumerate(values)]
    return np.array(columns, dtype=np.int64)


def _indicators(Y: Any, n: int, hierarchy: Hierarchy) -> np.ndarray:
    """Return a new matrix of 0 and 1."""
    M = len(hierarchy)
    if isinstance(Y, (list, tuple)) or _is_object_row(Y):
        return _of_lists(Y, n, hierarchy)
    if hasattr(Y, "columns"):
        names = list(Y.columns)
        if names != hierarchy.nodes.tolist() and names != list(range(M)):
            wrong = first_difference(names, hierarchy.nodes.tolist())
            raise ValueError(
                f"y: expected the nodes of the hierarchy in their order as columns; {wrong}"
            )
        Y = plain_numbers(Y.to_numpy())
    if Y is None or isinstance(Y, (str, bytes)) or not hasattr(Y, "shape"):
        raise ValueError(
            f"y is {Y!r}, expected a matrix of 0 and 1 with one column per node, or a list with "
            "the labels of each row of X"
        )
    if len(Y.shape) != 2 or Y.shape[1] != M:
        raise ValueError(
            f"y: found shape {Y.shape}, expected ({n}, {M}): one column per node of the hierarchy"
        )
    check_row_counts(n, Y.shape[0])
    if Y.dtype.kind not in "biuf":
        raise ValueError(f"y: found dtype {Y.dtype}, expected a matrix of 0 and 1")
    values = Y
    if is_sparse(Y):
        Y = as_csr(Y, "y")
        if not Y.has_canonical_format:
            Y = Y.copy()
            Y.sum_duplicates()
        values = Y.data
    wrong = (values != 0) & (values != 1)
    if wrong.any():
        dense = Y.tocoo() if is_sparse(Y) else None
        entry = tuple(np.argwhere(wrong)[0])
        i, v = (dense.row[entry], dense.col[entry]) if dense is not None else entry
        raise ValueError(
            f"example {i}, label {hierarchy.nodes[v].item()!r}: y holds {values[entry]}, "
            "expected 0 (off) or 1 (on)"
        )
    if is_sparse(Y):
        return np.ascontiguousarray(Y.astype(np.int32).toarray())
    return np.array(Y, dtype=np.int32, order="C")


def _of_lists(Y: Any, n: int, hierarchy: Hierarchy) -> np.ndarray:
    check_row_counts(n, len(Y))
    matrix = np.zeros((n, len(hierarchy)), dtype=np.int32)
    for i, names in enumerate(Y):
        if not _is_list(names):
            raise ValueError(
                f"example {i}: y holds {names!r}, expected the list of its labels (a matrix of 0 "
                "and 1 must be an array)"
            )
        if _is_row(names, hierarchy):
            matrix[i] = names
            continue
        for name in names:
            matrix[i, column_of(name, i, hierarchy)] = 1
    return matrix


def _is_row(names: Any, hierarchy: Hierarchy) -> bool:
    """Return whether an entry is a row of 0 and 1, and no list of nodes that have such names."""
    M, numbers = len(hierarchy), (bool, int, float, np.bool_, np.number)
    named = not hierarchy.column.keys().isdisjoint((0, 1))
    if named and not (isinstance(names, np.ndarray) and M > 2):
        return False
    return (
        isinstance(names, (list, tuple, np.ndarray))
        and len(names) == M
        and all(isinstance(entry, numbers) and entry in (0, 1) for entry in names)
    )
