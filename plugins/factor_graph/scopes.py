"""Scopes of factors: their checks, and the stacking of graphs with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.examples import packing
from structsolve.examples.packed import Examples
from structsolve.plugins.factor_graph.graphs import WIDEST, Scope
from structsolve.plugins.mrf.tables.graphs import graph_identity
from structsolve.utils.suggest import a_type


def check_scopes(scopes: Any, n_nodes: int | None, where: str) -> list[Scope]:
    """Return checked factors.

    Parameters
    ----------
    scopes : sequence of sequence of int
        The nodes of each factor.
    n_nodes : int or None
        None: as many as they name.
    where : str
        Starts the messages.

    Returns
    -------
    list of tuple of int

    Raises
    ------
    ValueError
        The message names the factor.
    """
    if isinstance(scopes, str) or not hasattr(scopes, "__len__"):
        raise ValueError(f"{where}: found {scopes!r}, expected a list of tuples of nodes")
    checked = []
    for f, scope in enumerate(scopes):
        nodes = scope
        if type(scope) is not tuple or set(map(type, scope)) != {int}:
            try:
                array = np.asarray(scope)
            except ValueError:
                array = np.array(None)
            nodes = tuple(array.tolist()) if array.ndim == 1 and array.dtype.kind in "iu" else ()
        whole = 0 < len(nodes) <= WIDEST and min(nodes) >= 0
        if not whole or n_nodes is not None and max(nodes) >= n_nodes:
            last = "" if n_nodes is None else f" to {n_nodes - 1}"
            raise ValueError(
                f"{where}, factor {f}: found {scope!r}, expected 1 to {WIDEST} nodes, from 0{last}"
            )
        if len(set(nodes)) < len(nodes):
            raise ValueError(f"{where}, factor {f}: found {scope!r}, expected different nodes")
        checked.append(nodes)
    return checked


def split_scopes(members: np.ndarray, member_at: np.ndarray) -> list[Scope]:
    """Return factors from arrays.

    Parameters
    ----------
    members : ndarray of int
        Nodes of all factors, one after the other.
    member_at : ndarray of int of shape (factors + 1,)

    Returns
    -------
    list of tuple of int
    """
    nodes, starts = members.tolist(), member_at.tolist()
    return [tuple(nodes[first:last]) for first, last in zip(starts, starts[1:])]


def stack_factors(
    X: Any, fixed: bool, n_features: int | None = None, n_nodes: int | None = None
) -> Examples:
    """Stack node features, and the factors of each example.

    Parameters
    ----------
    X : list
        See :class:`FactorGraphStructure`.
    fixed : bool
        All examples have the same factors, which are not in X.
    n_features, n_nodes : int, optional
        Expected numbers; ``n_nodes`` of fixed factors only.

    Returns
    -------
    Examples
        Factors of each example are in ``topology``.

    Raises
    ------
    ValueError
        The message names the example.
    """
    if fixed:
        rows = list(X) if isinstance(X, np.ndarray) and X.ndim == 3 else X
        nodes, offsets = packing.stack_rows(rows, n_features, compress=True)
        sizes = np.diff(offsets)
        expected = int(sizes[0]) if n_nodes is None else n_nodes
        if (sizes != expected).any():
            i = int((sizes != expected).argmax())
            raise ValueError(
                f"X, example {i}: found {sizes[i]} nodes, expected {expected} as in training: all "
                "examples have the same factors"
            )
        return Examples(offsets, nodes)
    if not isinstance(X, (list, tuple)) or len(X) == 0:
        kind = "empty" if isinstance(X, (list, tuple)) else a_type(X)
        raise ValueError(f"X is {kind}, expected a list with (node_features, factors) per example")
    for i, x in enumerate(X):
        if not isinstance(x, (tuple, list)) or len(x) != 2:
            kind = f"{len(x)} items" if isinstance(x, (tuple, list)) else type(x).__name__
            raise ValueError(f"X, example {i}: found {kind}, expected (node_features, factors)")
    nodes, offsets = packing.stack_rows([x[0] for x in X], n_features, compress=True)
    scopes = [
        check_scopes(x[1], size, f"X, example {i}, factors")
        for i, (x, size) in enumerate(zip(X, np.diff(offsets).tolist()))
    ]
    examples = Examples(offsets, nodes)
    topology = examples.topology
    topology["factor_at"] = np.cumsum([0, *map(len, scopes)]).astype(np.int64)
    flat = [scope for one in scopes for scope in one]
    topology["member_at"] = np.cumsum([0, *map(len, flat)]).astype(np.int64)
    topology["members"] = np.array([v for scope in flat for v in scope], dtype=np.int32)
    topology["identity"] = graph_identity(*topology.values())
    return examples
