"""Node weights learned with the model (Shared SVM): the best ones for given node vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...structure.hierarchy import Hierarchy, as_hierarchy

# Newton steps, and the relative gap that ends them, where the hierarchy is no tree.
STEPS = 200
GAP = 1e-10


def shared_weights(hierarchy: Any, squares: Any) -> np.ndarray:
    """Return the weights of least ``sum squares / alpha`` whose sums are at most 1.

    The sums go over every leaf and its ancestors.  On trees it is a closed form of linear cost, on
    other graphs a convex program.

    Parameters
    ----------
    hierarchy : Hierarchy or networkx DiGraph
        Edges go from parent to child.
    squares : array of shape (n_nodes,)
        Squared norms of the nodes' vectors, >= 0, in the order of the hierarchy's nodes.

    Returns
    -------
    ndarray of shape (n_nodes,)
        A node whose vector is zero gets weight 0. There is one exception: in a subtree whose
        vectors are all zero, the root gets what its ancestors leave.

    Raises
    ------
    ValueError
        When the shape differs, or naming the node whose square is negative or not finite.

    Examples
    --------
    >>> import networkx as nx
    >>> tree = nx.DiGraph([("root", "a"), ("root", "b")])
    >>> shared_weights(tree, [2.0, 1.0, 1.0]).round(6).tolist()
    [0.5, 0.5, 0.5]
    """
    hierarchy = as_hierarchy(hierarchy)
    squares = np.asarray(squares, dtype=np.float64)
    if squares.shape != (len(hierarchy),):
        raise ValueError(
            f"squares has shape {squares.shape}, expected ({len(hierarchy)},), one per node"
        )
    bad = ~(np.isfinite(squares) & (squares >= 0))
    if bad.any():
        node = int(bad.argmax())
        raise ValueError(
            f"squares of node {hierarchy.nodes[node].item()!r} is {squares[node]}, expected a "
            "finite number >= 0"
        )
    if hierarchy.forest:
        return _tree(hierarchy, np.sqrt(squares))
    return _graph(hierarchy, squares)


def _tree(hierarchy: Hierarchy, norms: np.ndarray) -> np.ndarray:
    """Compute the costs of subtrees bottom up, then the nodes' shares of the sum top down.

    A subtree with the sum r costs ``N^2 / r``, where ``N = ||U_n|| + sqrt(S)`` and S is the sum of
    its children's ``N^2``.  Its root takes the share ``||U_n|| / N``; a leaf takes all.
    """
    parent = hierarchy.parent
    norms = norms / max(norms.max(), 1e-300)  # squares do not overflow, nor do all underflow
    below = np.zeros(len(hierarchy))  # S
    total = np.zeros(len(hierarchy))  # N
    for level in reversed(hierarchy.levels):
        total[level] = norms[level] + np.sqrt(below[level])
        inner = level[parent[level] >= 0]
        np.add.at(below, parent[inner], total[inner] ** 2)
    share, rest = np.ones(len(hierarchy)), np.zeros(len(hierarchy))
    used = total > 0
    share[used] = norms[used] / total[used]
    rest[used] = np.sqrt(below[used]) / total[used]  # 1 - share, exact where that rounds to 0
    alpha, left = share.copy(), np.ones(len(hierarchy))
    for level in hierarchy.levels:
        inner = level[parent[level] >= 0]
        above = parent[inner]
        left[inner] = left[above] * rest[above]
        alpha[level] = left[level] * share[level]
    return alpha


def _graph(hierarchy: Hierarchy, squares: np.ndarray) -> np.ndarray:
    """Maximise the dual, ``2 sum sqrt(squares (P' lam)) - sum lam`` over ``lam > 0``, by Newton.

    P has a row per leaf.  The best weights for lam are ``sqrt(squares / (P' lam))``.  Divided by
    their largest sum they are feasible, and their cost bounds how far lam is from the optimum.
    """
    import scipy.sparse as sp  # heavy
    from scipy.sparse.linalg import splu  # heavy

    P = hierarchy.paths
    # Every leaf must need some weight; otherwise its multiplier is zero.
    top = squares.max(initial=0.0)
    s = np.sqrt(squares / top if top > 0 else np.ones_like(squares))
    s = np.maximum(s, 1e-12)
    lam = np.full(P.shape[0], s.sum() ** 2 / P.shape[0])
    best, least = np.zeros(len(s)), np.inf

    def dual(lam: np.ndarray) -> float:
        return float(2 * (s * np.sqrt(P.T @ lam)).sum() - lam.sum())

    value = dual(lam)
    for _ in range(STEPS):
        q = P.T @ lam
        alpha = s / np.sqrt(q)
        sums = P @ alpha
        feasible = alpha / sums.max()
        cost = float((s * s / feasible).sum())
        if cost < least:
            best, least = feasible, cost
        if least - value <= GAP * least:
            break
        H = sp.csc_matrix(P.multiply(0.5 * alpha / q) @ P.T)
        step = splu(H + sp.diags(1e-14 * H.diagonal())).solve(sums - 1)
        falling = step < 0
        longest = 0.95 * float((-lam[falling] / step[falling]).min(initial=np.inf))
        t, slope = min(1.0, longest), float(step @ (sums - 1))
        while t > 1e-12 and dual(lam + t * step) < value + 1e-4 * t * slope:
            t *= 0.5
        if t <= 1e-12:
            break
        lam = lam + t * step
        value = dual(lam)
    return best


def penalty(squares: np.ndarray, alpha: np.ndarray) -> float:
    """Return ``sum squares / alpha``, where 0 / 0 is 0.

    Parameters
    ----------
    squares : ndarray of shape (n_nodes,)
        Squared norms of the nodes' vectors.
    alpha : ndarray of shape (n_nodes,)
        Node weights.

    Returns
    -------
    float
    """
    used = squares > 0
    with np.errstate(divide="ignore"):
        return float((squares[used] / alpha[used]).sum())
