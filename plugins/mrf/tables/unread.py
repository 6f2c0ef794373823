"""Weights of pair tables that no part reads, as some nodes have fewer states than others."""

from __future__ import annotations

import numpy as np


def unread_pairs(
    edges: np.ndarray | None,
    states: np.ndarray | None,
    K: int,
    symmetric: bool = False,
    each: bool = False,
) -> np.ndarray | None:
    """Return the table entries of states that no edge has at its ends.

    Parameters
    ----------
    edges : ndarray of int of shape (m, 2), or None
        Edges of the one graph; None if examples have separate graphs, with K states per node.
    states : ndarray of int of shape (nodes,) or (1,), or None
        Numbers of states; None for K.
    K : int
        Side of a table.
    symmetric : bool, default=False
        One weight serves (a, b) and (b, a).
    each : bool, default=False
        Each edge has a separate table.

    Returns
    -------
    ndarray of bool of shape (K, K), or (m, K, K) with ``each``, or None
        None if all are read.

    Examples
    --------
    >>> unread_pairs(np.array([[0, 1]]), np.array([2, 1]), 2).tolist()
    [[False, True], [False, True]]
    """
    if edges is None:
        return None
    if states is None:
        states = np.array([K])
    sizes = (states[edges] if states.size > 1 else np.broadcast_to(states, edges.shape)).T
    inside = np.arange(K)[:, None] < sizes[:, None, :]  # ends, states, edges
    if each:
        return ~(inside[0].T[:, :, None] & inside[1].T[:, None, :])
    read = inside[0].astype(float) @ inside[1].T > 0
    return ~(read | read.T) if symmetric else ~read
