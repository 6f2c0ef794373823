"""Paths as users give them: nodes in order, indicators of edges, pictures of cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.examples.packed import Examples
from structsolve.utils.suggest import a_type


def encode_paths(Y: Any, examples: Examples) -> np.ndarray:
    """Return the encoded labels of all examples.

    Parameters
    ----------
    Y : list
        For each example a list of its nodes in order; or an array of bool with one entry per edge;
        or for a grid an array of shape (height, width) that is not 0 at cells of the path.
    examples : Examples
        Packed graphs.

    Returns
    -------
    ndarray of int32

    Raises
    ------
    ValueError
        The message names the example.
    """
    if isinstance(Y, (str, bytes, dict)) or not hasattr(Y, "__len__") or len(Y) != examples.n:
        given = f"{len(Y)} paths" if hasattr(Y, "__len__") else a_type(Y)
        raise ValueError(f"y: found {given}, expected one for each of {examples.n} examples")
    flat = np.zeros(int(examples.offsets[-1]), dtype=np.int32)
    paths = {}
    for i, y in enumerate(Y):
        graph, where = Graph(examples, i), f"y, example {i}"
        y = y.toarray() if hasattr(y, "toarray") else y
        if isinstance(y, np.ndarray) and y.dtype == bool and y.shape == graph.tails.shape:
            flat[examples.offsets[i] : examples.offsets[i + 1]] = _of_edges(y, graph, where)
        else:
            paths[i] = _of_nodes(y, graph, where)
    _write_steps(flat, paths, examples)
    return flat


def _write_steps(flat: np.ndarray, paths: dict[int, list[int]], examples: Examples) -> None:
    """Write the edges between the nodes of paths, each the first that joins the two."""
    topology, offsets = examples.topology, examples.offsets
    starts, size = topology["edge_starts"], max(int(np.diff(offsets).max()), 1)
    counts = [len(nodes) - 1 for nodes in paths.values()]
    example = np.repeat(np.array([*paths], dtype=np.int64), counts)
    tails = offsets[example] + np.array([v for p in paths.values() for v in p[:-1]], dtype=np.int64)
    wanted = tails * size + np.array([v for p in paths.values() for v in p[1:]], dtype=np.int64)
    keys = np.repeat(offsets[:-1], np.diff(starts)) + topology["tails"]
    keys = np.append(keys * size + topology["heads"], -1)
    order = np.argsort(keys, kind="stable")
    place = np.searchsorted(keys, wanted, sorter=order)
    edges = order[np.minimum(place, len(order) - 1)]
    missing = np.flatnonzero(keys[edges] != wanted)
    if missing.size:
        i = int(example[missing[0]])
        graph, (u, v) = Graph(examples, i), divmod(int(wanted[missing[0]]), size)
        raise ValueError(
            f"y, example {i}: found a step from {graph.name(u - int(offsets[i]))} to "
            f"{graph.name(v)}, which is no edge"
        )
    flat[tails] = edges - starts[example] + 1


class Graph:
    """The edges of one packed example.

    Parameters
    ----------
    examples : Examples
    i : int
    """

    def __init__(self, examples: Examples, i: int):
        topology = examples.topology
        steps = slice(topology["edge_starts"][i], topology["edge_starts"][i + 1])
        self.tails, self.heads = topology["tails"][steps], topology["heads"][steps]
        self.source, self.sink = topology["ends"][i].tolist()
        self.size = int(examples.offsets[i + 1] - examples.offsets[i])
        shape = tuple(topology["shapes"][i].tolist())
        self.shape = shape if shape[0] else None
        self.names = topology["names"][i] if "names" in topology else None

    def name(self, v: int) -> Any:
        """Return a node as users name it.

        Parameters
        ----------
        v : int

        Returns
        -------
        object
        """
        if self.shape is not None:
            return divmod(v, self.shape[1])
        return v if self.names is None else self.names[v]

    def nodes(self, label: np.ndarray) -> list[int]:
        """Return the nodes of an encoded path, in order.

        Parameters
        ----------
        label : ndarray of int32

        Returns
        -------
        list of int
        """
        nodes = [self.source]
        while nodes[-1] != self.sink:
            nodes.append(int(self.heads[label[nodes[-1]] - 1]))
        return nodes


def _of_nodes(y: Any, graph: Graph, where: str) -> list[int]:
    if graph.shape is not None and isinstance(y, np.ndarray) and y.shape == graph.shape:
        nodes = _of_cells(y.ravel() != 0, graph, where)
    else:
        nodes = _numbers(y, graph, where)
    if len(set(nodes)) < len(nodes) or (nodes[:1], nodes[-1:]) != ([graph.source], [graph.sink]):
        raise ValueError(
            f"{where}: found {[graph.name(v) for v in nodes][:12]}, expected a path from "
            f"{graph.name(graph.source)} to {graph.name(graph.sink)} that passes no node twice"
        )
    return nodes


def _numbers(y: Any, graph: Graph, where: str) -> list[int]:
    try:
        if graph.shape is not None:
            cells = np.array([[*cell] for cell in y])
            valid = cells.dtype.kind in "iu" and cells.ndim == 2 and cells.shape[1] == 2
            valid = valid and bool(((cells >= 0) & (cells < graph.shape)).all())
            nodes = (cells @ [graph.shape[1], 1]).tolist() if valid else []
        elif graph.names is None:
            given = [*y]
            nodes = [int(v) for v in given]
            valid = nodes == given and all(0 <= v < graph.size for v in nodes)
            valid = valid and not any(isinstance(v, (bool, np.bool_)) for v in given)
        else:
            known = {name: v for v, name in enumerate(graph.names)}
            valid = all(one in known for one in y)
            nodes = [known[one] for one in y] if valid else []
    except (TypeError, ValueError):
        valid = False
    if not valid:
        raise ValueError(
            f"{where}: found {str(y)[:80]}, expected nodes of the graph in the order of the path, "
            "or an array of bool with one entry per edge"
        )
    return nodes


def _of_edges(used: np.ndarray, graph: Graph, where: str) -> np.ndarray:
    label = np.zeros(graph.size, dtype=np.int32)
    label[graph.tails[used]] = np.flatnonzero(used) + 1
    v = graph.source
    for _ in range(int(used.sum())):
        v = int(graph.heads[label[v] - 1]) if label[v] else -1
        if v in (-1, graph.sink):
            break
    passed = np.count_nonzero(label) == used.sum()
    if v != graph.sink or not passed or len(graph.nodes(label)) != used.sum() + 1:
        raise ValueError(
            f"{where}: {int(used.sum())} edges, which are no path from {graph.name(graph.source)} "
            f"to {graph.name(graph.sink)}"
        )
    return label


def _of_cells(on: np.ndarray, graph: Graph, where: str) -> list[int]:
    # From cell to cell, while there is one way on.
    left, nodes = on.copy(), [graph.source]
    follows: dict[int, list[int]] = {}
    for u, v in zip(graph.tails.tolist(), graph.heads.tolist()):
        if on[u] and on[v]:
            follows.setdefault(u, []).append(v)
    left[graph.source] = False
    while nodes[-1] != graph.sink:
        ways = [v for v in follows.get(nodes[-1], []) if left[v]]
        if len(ways) != 1:
            raise ValueError(
                f"{where}: from cell {graph.name(nodes[-1])} the picture has {len(ways)} ways on, "
                "expected one; give the list of cells in order"
            )
        nodes.append(ways[0])
        left[ways[0]] = False
    if left.any():
        v = int(left.argmax())
        raise ValueError(f"{where}: cell {graph.name(v)} of the picture is not on the path")
    return nodes
