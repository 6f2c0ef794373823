"""Training on the columns that sparse rows use: the cost of a pass then follows their entries."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np

from ..examples.packed import Examples
from ..examples.packing import is_sparse
from ..potentials.weight_layout import moved, with_features

# Share of the columns that no row uses from which on they are left out.
UNUSED = 0.5


def with_used_columns(space: Any, examples: Examples) -> tuple[Any, Examples]:
    """Return a space and examples without the columns that are zero in all rows, if these are many.

    Hashed features, and parts of a data set, leave most columns empty.  Their weights are 0.

    Parameters
    ----------
    space : Space
    examples : Examples

    Returns
    -------
    space : Space
        The given one, or a copy with a smaller layout, whose ``whole`` is the given one and
        ``columns`` the numbers of the columns that are left.
    examples : Examples
    """
    X, n_features = examples.nodes, space.layout.n_features
    if space.layout.node is None or not is_sparse(X):
        return space, examples
    used = np.zeros(n_features, dtype=bool)
    used[X.indices] = True
    columns = np.flatnonzero(used)
    if not len(columns) or len(columns) > (1 - UNUSED) * n_features:
        return space, examples
    number = (np.cumsum(used) - 1).astype(X.indices.dtype)
    nodes = type(X)((X.data, number[X.indices], X.indptr), shape=(X.shape[0], len(columns)))
    nodes.has_sorted_indices, nodes.has_canonical_format = (
        X.has_sorted_indices,
        X.has_canonical_format,
    )
    narrow = copy.copy(space)
    narrow.layout = with_features(space.layout, len(columns))
    narrow.whole, narrow.columns = space, columns
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
    X, width = examples.nodes, space.whole.layout.n_features
    index = space.columns.astype(X.indices.dtype)[X.indices]
    return replace(examples, nodes=type(X)((X.data, index, X.indptr), shape=(X.shape[0], width)))


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
    whole = space.whole
    if whole is None:
        return w
    out = np.zeros(whole.layout.dim)
    return moved(w, space.layout, out, whole.layout, _rows(space), slice(None))


def narrowed(space: Any, w: np.ndarray) -> np.ndarray:
    """Return the weights of used columns for those of the whole space; see :func:`widened`.

    Parameters
    ----------
    space : Space
    w : ndarray of shape (space.whole.layout.dim,)

    Returns
    -------
    ndarray of shape (space.layout.dim,)
    """
    if space.whole is None:
        return w
    out = np.zeros(space.layout.dim)
    return moved(w, space.whole.layout, out, space.layout, slice(None), _rows(space))


def _rows(space: Any) -> np.ndarray:
    """Return the rows of the whole node block that are left: columns, then the intercept."""
    whole = space.whole.layout
    return np.concatenate([space.columns, np.arange(whole.n_features, whole.node_rows)])
