"""Graphs with a source and a sink as users give them: grids of cells, edges, networkx graphs."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any

import numpy as np

from structsolve.examples import packing
from structsolve.examples.given import is_sparse
from structsolve.examples.packed import Examples
from structsolve.plugins.mrf.tables.graphs import check_edges
from structsolve.plugins.mrf.tables.networks import from_networkx, is_network
from structsolve.utils.arrays import real_array
from structsolve.utils.memory import refuse_too_large
from structsolve.utils.suggest import a_type

KEYS = ("cells", "edges", "node_features", "edge_features", "source", "sink", "costs")
FORMS = 'an array (height, width, features), a networkx graph, or a dict with "cells" or "edges"'


@lru_cache(maxsize=64)
def grid_steps(
    height: int, width: int, neighbours: int = 8, monotone: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return the steps between neighbouring cells, numbered row by row.

    Parameters
    ----------
    height, width : int
    neighbours : {4, 8}
        8: to the cells at the corners, too.
    monotone : bool, default=False
        Only to the right, down, and (8 neighbours) both at once.

    Returns
    -------
    tails, heads : ndarray of int32 of shape (m,)
        The cells where steps begin and end, by cells where they begin. Both are shared: do not
        change them.

    Examples
    --------
    >>> from structsolve.plugins.path.graphs import grid_steps
    >>> tails, heads = grid_steps(2, 2, monotone=True)
    >>> list(zip(tails.tolist(), heads.tolist()))
    [(0, 1), (0, 2), (0, 3), (1, 3), (2, 3)]
    """
    moves = [(0, 1), (1, 0), (1, 1)] if monotone else [
        (down, right) for down in (-1, 0, 1) for right in (-1, 0, 1) if down or right
    ]  # fmt: skip
    moves = [move for move in moves if neighbours == 8 or 0 in move]
    cells = np.indices((height, width)).reshape(2, -1)
    ends = cells[:, :, None] + np.array(moves).T[:, None]
    inside = ((ends >= 0) & (ends < np.array([height, width])[:, None, None])).all(axis=0)
    tails, turn = np.nonzero(inside)
    heads = ends[0, tails, turn] * width + ends[1, tails, turn]
    arrays = tails.astype(np.int32), heads.astype(np.int32)
    for array in arrays:
        array.setflags(write=False)
    return arrays


def read_graph(x: Any, i: int, structure: Any) -> dict[str, Any]:
    """Read one example.

    Parameters
    ----------
    x : array, dict or networkx graph
    i : int
        The example, for messages.
    structure : PathStructure

    Returns
    -------
    dict
        ``"shape"`` (of grids, else None), ``"size"``, ``"tails"``, ``"heads"``, ``"source"``,
        ``"sink"``, ``"names"``, and the features and costs that there are.

    Raises
    ------
    ValueError
        The message names the example.
    """
    where = f"X, example {i}"
    if is_network(x):
        graph = _of_network(x, i, structure)
    else:
        graph = dict(x) if isinstance(x, dict) else {"cells": x}
        unknown = sorted(map(str, graph.keys() - set(KEYS)))
        if unknown or ("cells" in graph) == ("edges" in graph):
            raise ValueError(f"{where}: found {unknown or sorted(graph)}, expected {FORMS}")
        if "cells" in graph:
            _add_cells(graph, where, structure)
    graph.setdefault("shape", None)
    if graph["shape"] is None:
        _add_edges(graph, where)
    for name, default in (("source", 0), ("sink", graph["size"] - 1)):
        graph[name] = node_number(graph, graph.get(name), default, f"{where}, {name}")
    costs = graph.get("costs")
    if costs is not None:
        costs = real_array(costs, f"{where}, costs").reshape(-1)
        if costs.shape != (graph["size"],) or not np.isfinite(costs).all():
            raise ValueError(
                f"{where}, costs: found {costs.size} numbers, expected a finite one for each of "
                f"{graph['size']} nodes"
            )
        graph["costs"] = costs
    return graph


def _of_network(x: Any, i: int, structure: Any) -> dict[str, Any]:
    x = x if x.is_directed() else x.to_directed()
    names: Any = list(x.nodes)
    given = {
        what: [data for *_, data in items]
        for what, items in (("node", x.nodes(data=True)), ("edge", x.edges(data=True)))
    }

    def has(what: str) -> bool:
        wanted = getattr(structure, f"{what}_features")
        attributes = {wanted} if isinstance(wanted, str) else set(wanted)
        return any(attributes & data.keys() for data in given[what])

    if has("node"):
        graph = from_networkx(x, i, structure, has("edge"))
    else:
        bare = x.copy()
        for v in bare.nodes:  # without features: a column of nothing
            bare.nodes[v][_first(structure.node_features)] = np.zeros(0)
        graph = from_networkx(bare, i, structure, has("edge"))
    number = {name: v for v, name in enumerate(names)}
    for end in ("source", "sink"):
        if end in x.graph:
            if x.graph[end] not in names:
                raise ValueError(f"X, example {i}: {end} {x.graph[end]!r} is no node of the graph")
            graph[end] = number[x.graph[end]]
    if "costs" in x.graph:
        costs = x.graph["costs"]
        if not isinstance(costs, dict) or number.keys() - costs.keys():
            raise ValueError(
                f"X, example {i}, costs: found {costs!r}, expected a dict with that of each node"
            )
        graph["costs"] = [costs[name] for name in names]
    return graph


def _first(names: Any) -> str:
    return names if isinstance(names, str) else names[0]


def _add_cells(graph: dict[str, Any], where: str, structure: Any) -> None:
    cells = graph.pop("cells")
    try:
        cells = np.asarray(cells)
    except ValueError:  # ragged
        cells = np.array(None)
    cells = cells[..., None] if cells.ndim == 2 else cells
    if cells.ndim != 3 or 0 in cells.shape[:2] or cells.dtype.kind not in "biuf":
        raise ValueError(f"{where}: found {cells.dtype} of shape {cells.shape}, expected {FORMS}")
    height, width = cells.shape[:2]
    graph["shape"], graph["size"] = (height, width), height * width
    graph["node_features"] = cells.reshape(height * width, -1)
    steps = structure.neighbours, bool(structure.monotone)
    graph["tails"], graph["heads"] = grid_steps(height, width, *steps)


def _add_edges(graph: dict[str, Any], where: str) -> None:
    edges = graph.pop("edges")
    nodes = graph.get("node_features")
    if nodes is not None:
        size = nodes.shape[0] if is_sparse(nodes) else len(nodes)
    else:
        try:
            size = int(np.max(edges, initial=0)) + 1
        except (TypeError, ValueError):
            raise ValueError(
                f"{where}: found edges {edges!r}, expected pairs of numbers of nodes"
            ) from None
        refuse_too_large(32 * size, f"{where}: the nodes up to {size - 1}", "count nodes from 0")
        graph["node_features"] = np.zeros((size, 0))
    pairs = check_edges(edges, size, where, parallel=True)
    graph["size"], graph["tails"], graph["heads"] = size, pairs[:, 0], pairs[:, 1]


def node_number(graph: dict[str, Any], given: Any, default: int, where: str) -> int:
    """Return the number of a node: of a grid, given as row and column.

    Parameters
    ----------
    graph : dict
        With ``"shape"`` and ``"size"``.
    given : int, (int, int) or None
    default : int
        In place of None.
    where : str
        Starts the message.

    Returns
    -------
    int

    Raises
    ------
    ValueError
    """
    if given is None:
        return default
    shape = (graph["size"],) if graph["shape"] is None else graph["shape"]
    place = np.atleast_1d(given)
    if place.dtype.kind not in "iu" or place.shape != (len(shape),) or not (
        (place >= 0) & (place < shape)
    ).all():  # fmt: skip
        raise ValueError(f"{where}: found {given!r}, expected a node of the graph, below {shape}")
    return int(np.ravel_multi_index(tuple(place.tolist()), shape))


def stack_paths(
    X: Any, structure: Any, n_features: int | None = None, n_edge_features: int | None = None
) -> Examples:
    """Stack graphs with their features into packed examples, without labels.

    Parameters
    ----------
    X : list, or array of shape (n, height, width, features)
    structure : PathStructure
    n_features, n_edge_features : int, optional
        Columns expected; by default those of the first example.

    Returns
    -------
    Examples

    Raises
    ------
    ValueError
        The message names the example.
    """
    if not isinstance(X, (list, tuple, np.ndarray)) or len(X) == 0:
        given = "empty" if isinstance(X, (list, tuple, np.ndarray)) else a_type(X)
        raise ValueError(f"X is {given}, expected a list; each example: {FORMS}")
    graphs = [read_graph(x, i, structure) for i, x in enumerate(X)]
    nodes, _ = packing.stack_rows([g["node_features"] for g in graphs], n_features, compress=True)
    examples = stack_topology(graphs)
    examples.nodes = nodes
    have = [g.get("edge_features") is not None for g in graphs]
    wanted = any(have) if n_features is None else n_edge_features is not None
    if not all(have) if wanted else any(have):
        i = have.index(not wanted)
        own, others = ("no", "with") if wanted else ("found", "without")
        raise ValueError(f"X, example {i}: {own} edge features, the others are {others} them")
    if wanted:
        rows = [g["edge_features"] for g in graphs]
        examples.edges, counts = packing.stack_rows(
            rows, n_edge_features, "edge features", min_rows=0, compress=True
        )
        wrong = np.flatnonzero(np.diff(counts) != np.diff(np.asarray(examples.edge_offsets)))
        if wrong.size:
            i = int(wrong[0])
            raise ValueError(
                f"X, example {i}: {np.diff(counts)[i]} rows of edge features, expected "
                f"{len(graphs[i]['tails'])}, one for each edge"
            )
    return examples


def stack_topology(graphs: list[dict[str, Any]]) -> Examples:
    """Return examples of graphs, without features.

    Parameters
    ----------
    graphs : list of dict
        Results of :func:`read_graph`.

    Returns
    -------
    Examples
        ``topology`` has ``"tails"``, ``"heads"``, ``"edge_starts"``, ``"ends"``, ``"shapes"`` (0 if
        an example is no grid), and ``"names"`` and ``"costs"`` if examples have them.
    """
    offsets = np.concatenate([[0], np.cumsum([g["size"] for g in graphs])]).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum([len(g["tails"]) for g in graphs])]).astype(np.int64)
    refuse_too_large(32 * int(starts[-1]), f"X: {starts[-1]} edges", "give fewer examples at once")
    topology: dict[str, Any] = {
        "tails": np.concatenate([g["tails"] for g in graphs]).astype(np.int32),
        "heads": np.concatenate([g["heads"] for g in graphs]).astype(np.int32),
        "ends": np.array([(g["source"], g["sink"]) for g in graphs], dtype=np.int32),
        "edge_starts": starts,
        "shapes": np.array([g["shape"] or (0, 0) for g in graphs], dtype=np.int64),
    }
    if all(g.get("costs") is not None for g in graphs):
        topology["costs"] = np.concatenate([g["costs"] for g in graphs])
    # The digest of training data covers features and labels; this adds the graphs.
    digest = hashlib.sha256(offsets.tobytes())
    for name in ("tails", "heads", "ends", "edge_starts", "costs"):
        digest.update(topology[name].tobytes() if name in topology else b"")
    topology["identity"] = digest.hexdigest()
    names = [g.get("names") for g in graphs]
    if any(one is not None for one in names):
        topology["names"] = names
    return Examples(offsets, edge_offsets=starts, topology=topology)
