"""Graphs as users give them, checked."""

from __future__ import annotations

import hashlib
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from structsolve.examples import packing
from structsolve.examples.packed import Examples
from structsolve.examples.stacking import distinct_pairs
from structsolve.plugins.mrf.tables.networks import from_networkx, is_network, name_nodes
from structsolve.utils.memory import refuse_too_large
from structsolve.utils.params import check_choice
from structsolve.utils.suggest import a_type


def check_edges(
    edges: Any, n_nodes: int, where: str, node: str = "node", parallel: bool = False
) -> np.ndarray:
    """Return edges as int32 of shape (m, 2); refuse loops and unknown nodes.

    Parameters
    ----------
    edges : array of int of shape (m, 2)
    n_nodes : int
    where : str
        Starts the messages.
    node : str
        Name of the nodes in messages.
    parallel : bool, default=False
        Several edges may join the same nodes; their scores add up.

    Returns
    -------
    ndarray of int32 of shape (m, 2)

    Raises
    ------
    ValueError
        The message names the edge.
    """
    pairs = distinct_pairs(edges, n_nodes) if parallel else None
    if pairs is not None:
        return pairs
    pairs = np.asarray(edges)
    if pairs.size == 0:
        return np.zeros((0, 2), dtype=np.int32)
    if pairs.dtype.kind == "f" and np.isfinite(pairs).all() and (pairs == np.floor(pairs)).all():
        pairs = pairs.astype(np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError(
            f"{where}: found an array of {pairs.dtype}, shape {pairs.shape}, expected integers of "
            f"shape (edges, 2): the numbers of both {node}s of each edge"
        )
    if pairs.min() < 0 or pairs.max() >= n_nodes:
        e = int(((pairs < 0) | (pairs >= n_nodes)).any(axis=1).argmax())
        raise ValueError(
            f"{where}: edge {e} is {tuple(pairs[e].tolist())}, expected {node}s 0 to {n_nodes - 1}"
        )
    loops = pairs[:, 0] == pairs[:, 1]
    if loops.any():
        e = int(loops.argmax())
        raise ValueError(
            f"{where}: edge {e} joins {node} {pairs[e, 0]} with itself; leave such edges out"
        )
    if parallel:
        return np.ascontiguousarray(pairs, dtype=np.int32)
    pairs = pairs.astype(np.int64)
    keys = pairs.min(axis=1) * n_nodes + pairs.max(axis=1)
    order = np.argsort(keys, kind="stable")
    same = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    if same.size:
        first, second = order[same[0]], order[same[0] + 1]
        raise ValueError(
            f"{where}: edge {second} joins {node}s {tuple(pairs[second].tolist())}, which edge "
            f"{first} joins already; keep one of them"
        )
    return np.ascontiguousarray(pairs, dtype=np.int32)


def check_states(n_states: Any, n_nodes: int | None) -> np.ndarray | None:
    """Return checked numbers of states.

    Parameters
    ----------
    n_states : int, sequence of int, or None
    n_nodes : int or None
        Number of nodes of the one graph; None if each example has its own.

    Returns
    -------
    ndarray of int32 of shape (n_nodes,) or (1,), or None
        (1,) if one number holds for all nodes; None if ``n_states`` is None.

    Raises
    ------
    ValueError
    """
    if n_states is None:
        return None
    states = np.asarray(n_states)
    if states.dtype.kind not in "iu" or states.ndim > 1 or states.size == 0:
        raise ValueError(f"n_states is {n_states!r}, expected an integer or one per node")
    if states.ndim == 1 and n_nodes is None:
        raise ValueError("n_states is a list, which needs one graph for all examples: give edges=")
    if states.ndim == 1 and len(states) != n_nodes:
        raise ValueError(f"n_states has {len(states)} entries, expected {n_nodes}, one per node")
    if states.min() < 1:
        v = int(np.argmin(states))
        raise ValueError(f"n_states of node {v} is {states.min()}, expected at least 1")
    return np.atleast_1d(states).astype(np.int32)


def state_names(states: np.ndarray, classes: Any) -> np.ndarray:
    """Return the names of numbered states; refuse given classes that differ.

    Parameters
    ----------
    states : ndarray of int32
        From :func:`check_states`.
    classes : sequence, optional

    Returns
    -------
    ndarray of int
        From 0.

    Raises
    ------
    ValueError

    Examples
    --------
    >>> state_names(np.array([2, 3]), None).tolist()
    [0, 1, 2]
    """
    names = np.arange(int(states.max()))
    if classes is not None and not np.array_equal(np.sort(classes), names):
        raise ValueError(
            f"classes: found {np.asarray(classes).tolist()}, expected 0 to {len(names) - 1} as "
            "n_states says"
        )
    return names


def refuse_states(encoded: np.ndarray, states: np.ndarray | None, offsets: np.ndarray) -> None:
    """Refuse labels that are states which their node does not have.

    Parameters
    ----------
    encoded : ndarray of int
        Of all nodes of all examples, which have the same nodes.
    states : ndarray of int32 of shape (n_nodes,) or (1,), or None
        From :func:`check_states`.
    offsets : ndarray of int64 of shape (n + 1,)

    Raises
    ------
    ValueError
        The message names the example and the node.
    """
    if states is None:
        return
    most = np.resize(states, len(encoded))
    beyond = np.flatnonzero(encoded >= most)
    if beyond.size:
        row = int(beyond[0])
        i = int(np.searchsorted(offsets, row, side="right")) - 1
        raise ValueError(
            f"example {i}, node {row - offsets[i]}: y holds the state {encoded[row]}, "
            f"expected 0 to {most[row] - 1}: n_states gives the node {most[row]}"
        )


def every_labeling(n_nodes: int, K: int, states: np.ndarray | None) -> np.ndarray:
    """Return every labeling of a few nodes.

    Parameters
    ----------
    n_nodes : int
    K : int
        Number of states where ``states`` is None.
    states : ndarray of int32 of shape (n_nodes,) or (1,), or None

    Returns
    -------
    ndarray of int32 of shape (labelings, n_nodes)

    Examples
    --------
    >>> from structsolve.plugins.mrf.tables.graphs import every_labeling
    >>> every_labeling(2, 2, np.array([1, 2], np.int32)).tolist()
    [[0, 0], [0, 1]]
    """
    most = np.broadcast_to(K if states is None else states, n_nodes)
    grid = np.indices(tuple(most.tolist()), dtype=np.int32)
    return np.ascontiguousarray(grid.reshape(n_nodes, -1).T)


def grid_edges(height: int, width: int, neighbours: int = 4) -> np.ndarray:
    """Return the edges of a grid of cells, numbered row by row.

    Parameters
    ----------
    height, width : int
        Rows and columns of the grid.
    neighbours : {4, 8}, default=4
        4: to the right, then down.  8: also down to the right, then down to the left.

    Returns
    -------
    ndarray of int of shape (m, 2)
        The upper end comes first, within a row the left one.

    Raises
    ------
    ValueError
        For a wrong number of neighbours, and a grid whose edges exceed the memory.

    Examples
    --------
    >>> from structsolve.plugins.mrf import grid_edges
    >>> grid_edges(2, 2).tolist()
    [[0, 1], [2, 3], [0, 2], [1, 3]]
    >>> grid_edges(2, 2, neighbours=8)[4:].tolist()
    [[0, 3], [1, 2]]
    """
    directions = grid_directions(neighbours)
    # Numbers of cells, and of the ends of edges by direction and in one array: 8 bytes each.
    refuse_too_large(
        8.0 * (1 + 4 * len(directions)) * int(height) * int(width),
        f"height {height}, width {width}: the edges of such a grid",
        "use a smaller one",
    )
    cell = np.arange(height * width).reshape(height, width)
    pairs = [
        np.stack([cell[here], cell[there]], axis=-1).reshape(-1, 2) for here, there in directions
    ]
    return np.concatenate(pairs)


_ALL, _FIRST, _LAST = slice(None), slice(None, -1), slice(1, None)
_DIRECTIONS = (
    ((_ALL, _FIRST), (_ALL, _LAST)),
    ((_FIRST, _ALL), (_LAST, _ALL)),
    ((_FIRST, _FIRST), (_LAST, _LAST)),
    ((_FIRST, _LAST), (_LAST, _FIRST)),
)


def grid_directions(neighbours: int) -> tuple[Any, ...]:
    """Return neighbouring cells of a grid, by direction.

    Parameters
    ----------
    neighbours : {4, 8}

    Returns
    -------
    tuple of pairs
        Slices of rows and columns: of the cells where edges begin, and of the cells where they
        end, in the order of :func:`grid_edges`.

    Raises
    ------
    ValueError

    Examples
    --------
    >>> picture = np.array([[1, 2], [3, 5]])
    >>> [(picture[there] - picture[here]).tolist() for here, there in grid_directions(4)]
    [[[1], [2]], [[2, 3]]]
    """
    check_choice("neighbours", neighbours, (4, 8))
    return _DIRECTIONS[: neighbours // 2]


def graph_identity(*arrays: Any) -> str:
    """Return a digest of graphs: the digest of training data covers only features and labels.

    Parameters
    ----------
    *arrays : ndarray, bytes or str

    Returns
    -------
    str
    """
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array.encode() if isinstance(array, str) else array)
    return digest.hexdigest()


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
    if packing.is_sparse(features) or np.ndim(features) == 2:
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
