"""Stacking of the graphs that users give, and of those with nodes left out."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from structsolve.examples import packing
from structsolve.examples.given import is_sparse
from structsolve.examples.packed import Examples
from structsolve.plugins.mrf.tables.graphs import check_edges, graph_identity
from structsolve.plugins.mrf.tables.networks import from_networkx, is_network, name_nodes
from structsolve.utils.suggest import a_type


def drop_nodes(
    examples: Examples, keep: np.ndarray, edges: Any = None, states: np.ndarray | None = None
) -> Examples:
    """Return examples without some nodes and their edges; each then has a separate graph.

    Parameters
    ----------
    examples : Examples
        Without labels.
    keep : ndarray of bool of shape (nodes,)
        True at least once in each example.
    edges : ndarray of int of shape (m, 2), optional
        Edges of the one graph of all examples; else they are in ``topology["ends"]``.
    states : ndarray of int32, optional
        Number of states of each node of the one graph.

    Returns
    -------
    Examples
    """
    bounds: Any
    first, n = examples.offsets, examples.n
    before = np.concatenate([[0], np.cumsum(keep)])  # number of nodes kept before each
    offsets = before[first]
    if edges is None:
        ends, bounds = examples.topology["ends"], examples.edge_offsets
    else:
        ends, bounds = np.tile(edges, (n, 1)), np.arange(n + 1) * len(edges)
    owner = np.repeat(np.arange(n), np.diff(bounds))
    rows = ends + first[owner, None]
    stay = keep[rows].all(axis=1)
    kept = (before[rows[stay]] - offsets[owner[stay], None]).astype(np.int32)
    dropped = Examples(
        offsets,
        None if examples.nodes is None else examples.nodes[keep],
        edge_offsets=np.concatenate([[0], np.cumsum(stay)])[bounds],
        edges=None if examples.edges is None else examples.edges[stay],
    )
    dropped.topology["ends"] = kept
    dropped.topology["identity"] = graph_identity(kept, dropped.edge_offsets)
    if states is not None:
        dropped.topology["states"] = np.resize(states, len(keep))[keep]
    return dropped


def stack_graphs(
    X: Any,
    one_graph: bool,
    with_features: bool,
    *,
    n_features: int | None = None,
    n_edge_features: int | None = None,
    edges: np.ndarray | None = None,
    n_nodes: int | None = None,
    structure: Any = None,
) -> Examples:
    """Stack graphs with their features into packed examples.

    Parameters
    ----------
    X : list of graphs
        See :class:`~structsolve.plugins.mrf.MRFStructure`.
    one_graph : bool
        All examples have the same edges, which are not in X.
    with_features : bool
        Edges have features.
    n_features, n_edge_features : int, optional
        Expected numbers of columns.
    edges : ndarray of shape (m, 2), optional
        Edges of the one graph.
    n_nodes : int, optional
        Number of nodes of the one graph, if known.
    structure : MRFStructure, optional
        Structure that the networkx graphs are read for.

    Returns
    -------
    Examples
        Edges of several graphs are in ``topology["ends"]``.

    Raises
    ------
    ValueError
        The message names the example.
    """
    if one_graph and isinstance(X, (list, tuple)) and X and is_network(X[0]):
        raise ValueError(
            "X, example 0: found a networkx graph, but edges= gives one graph for all examples; "
            "leave edges= out, or give node features"
        )
    wanted = ["node_features"] + ["edges"] * (not one_graph) + ["edge_features"] * with_features
    if len(wanted) == 1:
        nodes, offsets = packing.stack_rows(_rows(X), n_features, compress=True)
        _check_one_graph(offsets, n_nodes)
        return Examples(offsets, nodes)
    if not isinstance(X, (list, tuple)) or len(X) == 0:
        kind = "empty" if isinstance(X, (list, tuple)) else a_type(X)
        raise ValueError(
            f"X is {kind}, expected a list with ({', '.join(wanted)}) of each example; one: [x]"
        )
    graphs = [_parts(x, i, wanted, structure) for i, x in enumerate(X)]
    nodes, offsets = packing.stack_rows(
        [g["node_features"] for g in graphs], n_features, compress=True
    )
    examples = Examples(offsets, nodes)
    name_nodes(examples, [g.get("names") for g in graphs])
    if one_graph:
        _check_one_graph(offsets, n_nodes)
    else:
        ends = [
            check_edges(g["edges"], last - first, f"X, example {i}, edges", parallel=True)
            for i, (g, (first, last)) in enumerate(zip(graphs, pairwise(offsets.tolist())))
        ]
        examples.edge_offsets = np.array([0, *accumulate(map(len, ends))], dtype=np.int64)
        examples.topology["ends"] = ends[0] if len(ends) == 1 else np.concatenate(ends)
        examples.topology["identity"] = graph_identity(
            examples.topology["ends"], examples.edge_offsets
        )
    if with_features:
        bounds = examples.edge_offsets
        if bounds is None and edges is not None:
            bounds = np.arange(len(offsets), dtype=np.int64) * len(edges)
        examples.edges, examples.edge_offsets = _edge_features(graphs, n_edge_features, bounds)
    return examples


def _edge_features(
    graphs: list[dict[str, Any]], columns: int | None, bounds: np.ndarray | None
) -> tuple[Any, np.ndarray]:
    """Stack the features of edges, of which example i has bounds[i + 1] - bounds[i], if known."""
    features, counts = packing.stack_rows(
        [_no_rows(g["edge_features"], columns, graphs) for g in graphs],
        columns,
        "edge features",
        min_rows=0,
        compress=True,
    )
    if bounds is not None:
        wrong = np.flatnonzero(np.diff(counts) != np.diff(bounds))
        if wrong.size:
            i = int(wrong[0])
            raise ValueError(
                f"X, example {i}: {np.diff(counts)[i]} rows of edge features for "
                f"{np.diff(bounds)[i]} edges; expected one row per edge"
            )
    return features, counts


def _rows(X: Any) -> Any:
    # An array of shape (n, nodes, n_features) is a list of matrices.
    if isinstance(X, np.ndarray) and X.ndim == 3:
        return list(X)
    if isinstance(X, (list, tuple)) and X and isinstance(X[0], tuple):
        raise ValueError(
            "X, example 0: found a tuple, expected a matrix of node features: the edges are given, "
            "and tables are not made of edge features"
        )
    return X


def _check_one_graph(offsets: np.ndarray, n_nodes: int | None) -> None:
    sizes = np.diff(offsets)
    expected = int(sizes[0]) if n_nodes is None else n_nodes
    wrong = np.flatnonzero(sizes != expected)
    if wrong.size:
        i = int(wrong[0])
        where = "in the first example" if n_nodes is None else "in training"
        raise ValueError(
            f"X, example {i}: found {sizes[i]} nodes, expected {expected} as {where}: all examples "
            "have the same graph"
        )


def _no_rows(features: Any, n_columns: int | None, graphs: Any) -> Any:
    # An empty list has no columns: it takes the number of the other examples.
    if is_sparse(features) or np.ndim(features) == 2:
        return features
    if np.size(features):
        return features
    if n_columns is None:
        shapes = [np.shape(g["edge_features"]) for g in graphs]
        n_columns = next((s[1] for s in shapes if len(s) == 2), 1)
    return np.zeros((0, n_columns))


def _parts(x: Any, i: int, wanted: list[str], structure: Any) -> dict[str, Any]:
    if structure is not None and is_network(x):
        if structure.directed and not x.is_directed():
            raise ValueError(
                f"X, example {i}: found {a_type(x)}, whose edges have no direction, "
                "expected a DiGraph or MultiDiGraph with directed=True"
            )
        return from_networkx(x, i, structure, "edge_features" in wanted)
    if not isinstance(x, (tuple, list)) or len(x) != len(wanted):
        kind = f"{len(x)} of them" if isinstance(x, (tuple, list)) else type(x).__name__
        raise ValueError(
            f"X, example {i}: found {kind}, expected ({', '.join(wanted)}), or a networkx graph"
        )
    return dict(zip(wanted, x))
