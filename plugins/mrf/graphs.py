"""Graphs as users give them, checked."""

from __future__ import annotations

from typing import Any

import numpy as np


def check_edges(edges: Any, n_nodes: int, where: str, node: str = "node") -> np.ndarray:
    """Return edges as int32 of shape (m, 2); refuse loops, duplicates and unknown nodes.

    Parameters
    ----------
    edges : array of int of shape (m, 2)
    n_nodes : int
    where : str
        Begins the messages.
    node : str
        What the nodes are called in them.
    """
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
    beyond = np.flatnonzero(((pairs < 0) | (pairs >= n_nodes)).any(axis=1))
    if beyond.size:
        e = int(beyond[0])
        raise ValueError(
            f"{where}: edge {e} is {tuple(pairs[e].tolist())}, expected {node}s 0 to {n_nodes - 1}"
        )
    loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if loops.size:
        e = int(loops[0])
        raise ValueError(
            f"{where}: edge {e} joins {node} {pairs[e, 0]} with itself; leave such edges out"
        )
    pairs = pairs.astype(np.int64)
    keys = pairs.min(axis=1) * n_nodes + pairs.max(axis=1)
    order = np.argsort(keys, kind="stable")
    same = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    if same.size:
        first, second = order[same[0]], order[same[0] + 1]
        raise ValueError(
            f"{where}: edge {second} joins {node}s {tuple(pairs[second].tolist())}, which edge {first} "
            "joins already; keep one of them"
        )
    return np.ascontiguousarray(pairs, dtype=np.int32)
