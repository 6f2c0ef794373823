"""Graphs as users give them, checked."""

from __future__ import annotations

import hashlib
from reprlib import repr as brief
from typing import Any

import numpy as np

from structsolve.examples.stacking import distinct_pairs
from structsolve.utils.memory import refuse_too_large
from structsolve.utils.params import check_choice


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
            f"classes: found {brief(np.asarray(classes).tolist())}, expected 0 to "
            f"{len(names) - 1} as n_states says"
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
