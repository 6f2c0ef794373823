"""Training on the columns that sparse rows use: the cost of a pass then follows their entries."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from ..examples.given import is_sparse
from ..examples.packed import Examples
from ..examples.shared_rows import SharedRows
from ..potentials.weight_layout import moved, with_features

# Share of the columns from which on they are left out or merged.
UNUSED = 0.5
# Norms of merged entries whose squares neither overflow nor lose digits.
LEAST, MOST = 1e-15, 1e15


def with_used_columns(space: Any, examples: Examples, merge: bool = True) -> tuple[Any, Examples]:
    """Return a space and examples of fewer columns with the same optimum, if these are much fewer.

    Hashed features, and parts of a data set, leave most columns empty: their weights are 0.  Others
    occur in one row only, as most rare words do.  Where a row has several, the best weights of
    theirs are multiples of its entries ``x`` there, since no other change of its scores costs less
    of ``||w||^2``: one column with the entry ``||x||`` replaces them.

    Parameters
    ----------
    space : Space
    examples : Examples
    merge : bool, default=True
        If False, columns are only left out: L1 norms depend on the columns.

    Returns
    -------
    space : Space
        The given one, or a copy with a smaller layout, whose ``whole`` is the given one.  Row k of
        its ``column_entries`` is what column k replaces: 1 at one column of the whole space, or the
        entries ``x`` of a row; ``column_norms`` has their norms.
    examples : Examples
    """
    X, n_features = examples.nodes, space.layout.n_features
    if space.layout.node is None or not is_sparse(X):
        return space, examples
    if isinstance(X, SharedRows):
        return _with_used_rows(space, examples)
    counts, n = np.bincount(X.indices, minlength=n_features), X.shape[0]
    alone = np.flatnonzero(merge & (counts[X.indices] == 1))
    row = np.searchsorted(X.indptr, alone, side="right") - 1
    with np.errstate(over="ignore", under="ignore"):
        squares = np.bincount(row, X.data[alone].astype(np.float64) ** 2, n)
    merged = (squares > LEAST**2) & (squares < MOST**2) & (np.bincount(row, minlength=n) > 1)
    alone, row = alone[merged[row]], row[merged[row]]
    counts[X.indices[alone]] = 0
    shared = np.flatnonzero(counts)
    width = len(shared) + np.count_nonzero(merged)
    if not width or width > (1 - UNUSED) * n_features:
        return space, examples
    number, values = np.full(n_features, -1, X.indices.dtype), np.ones(n_features, X.dtype)
    number[shared] = np.arange(len(shared))
    number[X.indices[alone]] = len(shared) - 1 + np.cumsum(merged)[row]
    values[X.indices[alone]] = X.data[alone]
    columns = np.flatnonzero(number >= 0)
    narrow = copy.copy(space)
    narrow.layout, narrow.whole = with_features(space.layout, width), space
    places = (values[columns], (number[columns], columns))
    narrow.column_entries = sparse.csr_matrix(places, shape=(width, n_features))
    narrow.column_norms = np.ones(width, X.dtype)
    narrow.column_norms[len(shared) :] = np.sqrt(squares[merged])
    index, data, ends = number[X.indices], X.data, X.indptr
    if len(alone):  # the norm follows the row's other entries
        left = np.cumsum(np.diff(X.indptr) - np.bincount(row, minlength=n))
        new = np.arange(len(shared), width)
        index = np.insert(np.delete(index, alone), left[merged], new)
        data = np.insert(np.delete(data, alone), left[merged], narrow.column_norms[new])
        ends = np.concatenate([[0], left + np.cumsum(merged)])
    nodes = type(X)((data, index, ends), shape=(n, width))
    nodes.has_sorted_indices, nodes.has_canonical_format = (
        X.has_sorted_indices,
        X.has_canonical_format,
    )
    return narrow, replace(examples, nodes=nodes)


def _with_used_rows(space: Any, examples: Examples) -> tuple[Any, Examples]:
    """Leave out columns of rows that nodes share: each of them is in several nodes."""
    X = examples.nodes
    if not is_sparse(X.rows):
        return space, examples
    used = np.flatnonzero(np.bincount(X.rows.indices, minlength=X.rows.shape[1]))
    n_used, n_all, C = len(used) + X.constant, X.rows.shape[1] + X.constant, X.table.shape[1]
    if not n_used or n_used > (1 - UNUSED) * n_all:
        return space, examples
    narrow = copy.copy(space)
    narrow.layout, narrow.whole = with_features(space.layout, n_used * C), space
    used_all = np.append(used, np.full(int(X.constant), n_all - 1))
    columns = (used_all[:, None] * C + np.arange(C)).ravel()
    places = np.ones(len(columns)), columns, np.arange(len(columns) + 1)
    narrow.column_entries = sparse.csr_matrix(places, shape=(len(columns), n_all * C))
    narrow.column_norms = np.ones(len(columns))
    nodes = SharedRows(X.rows[:, used], X.table, X.constant)
    return narrow, replace(examples, nodes=nodes)


def with_all_columns(space: Any, examples: Examples) -> Examples:
    """Return the examples from which these were made; see :func:`with_used_columns`.

    Methods of structures in Python may read the columns.

    Parameters
    ----------
    space : Space
    examples : Examples

    Returns
    -------
    Examples
    """
    if space.whole is None:
        return examples
    X, entries = examples.nodes, space.column_entries
    if isinstance(X, SharedRows):
        C, rows = X.table.shape[1], X.rows
        index = (entries.indices[::C] // C).astype(rows.indices.dtype)[rows.indices]
        shape = rows.shape[0], entries.shape[1] // C - X.constant
        rows = type(rows)((rows.data, index, rows.indptr), shape=shape)
        return replace(examples, nodes=SharedRows(rows, X.table, X.constant))
    if entries.nnz == entries.shape[0]:
        index = entries.indices.astype(X.indices.dtype)[X.indices]
        nodes = type(X)((X.data, index, X.indptr), shape=(X.shape[0], entries.shape[1]))
    else:
        data = X.data / space.column_norms[X.indices]
        nodes = type(X)(type(X)((data, X.indices, X.indptr), shape=X.shape) @ entries)
        nodes.sort_indices()
    return replace(examples, nodes=nodes)


def widened(space: Any, w: np.ndarray) -> np.ndarray:
    """Return the weights of the whole space for those of a space with used columns.

    Parameters
    ----------
    space : Space
    w : ndarray of shape (space.layout.dim,)

    Returns
    -------
    ndarray of shape (space.whole.layout.dim,)
        ``w`` itself if the space has all columns.
    """
    if space.whole is None:
        return w
    return _moved(_basis(space).T, w, space.layout, space.whole.layout)


def narrowed(space: Any, w: np.ndarray) -> np.ndarray:
    """Return the weights of used columns for those of the whole space; see :func:`widened`.

    Parameters
    ----------
    space : Space
    w : ndarray of shape (space.whole.layout.dim,)

    Returns
    -------
    ndarray of shape (space.layout.dim,)
        They give the examples the same scores.
    """
    if space.whole is None:
        return w
    return _moved(_basis(space), w, space.whole.layout, space.layout)


def _basis(space: Any) -> Any:
    """Return what each column of the space stands for, as rows of norm 1."""
    return sparse.diags(1 / space.column_norms.astype(np.float64)) @ space.column_entries


def _moved(basis: Any, w: np.ndarray, layout: Any, other: Any) -> np.ndarray:
    """Return the weights w in another layout, those of features times a matrix."""
    z = np.zeros(other.dim)
    moved(w, layout, z, other, slice(other.n_features, None), slice(layout.n_features, None))
    other.node_block(z)[: other.n_features] = basis @ layout.node_block(w)[: layout.n_features]
    return z
