"""Node weights learned with the model (Shared SVM): the best ones for given node vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.plugins.dag.hierarchy import Hierarchy, as_hierarchy

# Maximum number of Newton steps, and the relative gap that ends them, if the hierarchy is no tree.
STEPS = 200
GAP = 1e-10
# Multipliers of an earlier call are lifted to this share of their mean.
LIFTED = 1e-2


def shared_weights(hierarchy: Any, squares: Any, gap: float = GAP) -> np.ndarray:
    """Return the weights of least ``sum squares / alpha`` whose sums are at most 1.

    The sums go over every leaf and its ancestors.  Trees have a closed form of linear cost; other
    graphs need a convex program.

    Parameters
    ----------
    hierarchy : Hierarchy or networkx DiGraph
        Edges go from parent to child.
    squares : array of shape (n_nodes,)
        Squared norms of the nodes' vectors, >= 0, in the order of the hierarchy's nodes.
    gap : float, default=1e-10
        Relative tolerance of the minimum if the hierarchy is no tree.

    Returns
    -------
    ndarray of shape (n_nodes,)
        A node whose vector is zero gets weight 0, except the root of a subtree of zero vectors,
        which gets the rest that its ancestors leave.

    Raises
    ------
    ValueError
        If the shape differs, or naming the node whose square is negative or not finite.

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
    return best_weights(hierarchy, squares, gap, None)[0]


def best_weights(
    hierarchy: Hierarchy, squares: np.ndarray, gap: float, multipliers: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the weights of :func:`shared_weights`, and multipliers to start a later call.

    Parameters
    ----------
    hierarchy : Hierarchy
    squares : ndarray of shape (n_nodes,)
    gap : float
    multipliers : ndarray of shape (n_leaves,), optional
        Multipliers of similar squares.

    Returns
    -------
    weights : ndarray of shape (n_nodes,)
    multipliers : ndarray of shape (n_leaves,), or None
        Multipliers of the leaves' sums; None on trees.
    """
    if hierarchy.forest:
        return _tree(hierarchy, np.sqrt(squares)), None
    return _graph(hierarchy, squares, gap, multipliers)


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
    rest[used] = np.sqrt(below[used]) / total[used]  # 1 - share, exact even if that rounds to 0
    alpha, left = share.copy(), np.ones(len(hierarchy))
    for level in hierarchy.levels:
        inner = level[parent[level] >= 0]
        above = parent[inner]
        left[inner] = left[above] * rest[above]
        alpha[level] = left[level] * share[level]
    return alpha


def _graph(
    hierarchy: Hierarchy, squares: np.ndarray, tol: float, multipliers: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Maximise the dual, ``2 sum sqrt(squares (P' lam)) - sum lam`` over ``lam > 0``.

    P has a row per leaf.  The best weights for lam are ``sqrt(squares / (P' lam))``.  Scaled to be
    feasible, their cost bounds the distance of lam from the optimum.  Newton's steps aim at the
    centre ``lam_l (1 - (P alpha)_l) = mu`` with a mu that falls with that bound: leaves that need
    no multiplier would shorten steps to the optimum itself.
    """
    P, turned = hierarchy.paths, hierarchy.paths.T.tocsr()
    # Every leaf must need some weight; otherwise its multiplier is zero.
    top = squares.max(initial=0.0)
    s = np.sqrt(squares / top if top > 0 else np.ones_like(squares))
    s = np.maximum(s, 1e-12)
    lam = np.full(P.shape[0], s.sum() ** 2 / P.shape[0])
    if multipliers is not None:
        # They sum to the cost.  None is near zero: from there Newton's steps are short.
        lam = np.maximum(multipliers, LIFTED * multipliers.mean())
    best, least, mu = np.zeros(len(s)), np.inf, np.inf

    def centred(lam: np.ndarray, mu: float) -> float:
        return float(2 * (s * np.sqrt(turned @ lam)).sum() - lam.sum() + mu * np.log(lam).sum())

    for _ in range(STEPS):
        q = turned @ lam
        alpha = s / np.sqrt(q)
        sums = P @ alpha
        # Divided by the largest sum of the leaves below it, no node is part of a sum above 1.
        feasible = alpha / np.maximum.reduceat(sums[turned.indices], turned.indptr[:-1])
        cost = float((s * s / feasible).sum())
        if cost < least:
            best, least = feasible, cost
        gap = least - centred(lam, 0.0)
        if gap <= tol * least:
            break
        mu = min(mu, 0.1 * gap / len(lam))
        slope = sums - 1 + mu / lam
        step = _solve(P.multiply(0.5 * alpha / q) @ turned, mu / lam**2, slope)
        falling = step < 0
        t = min(1.0, 0.95 * float((-lam[falling] / step[falling]).min(initial=np.inf)))
        value, gain = centred(lam, mu), float(step @ slope)
        while t > 1e-12 and centred(lam + t * step, mu) < value + 1e-4 * t * gain:
            t *= 0.5
        if t <= 1e-12:
            break
        lam = lam + t * step
    return best, lam


def _solve(H: Any, diagonal: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve ``(H + diag(diagonal)) x = right`` for a positive definite matrix.

    Leaves below one root share a node, which makes the matrix dense; then factors are dense too.
    """
    if H.nnz > 0.05 * H.shape[0] ** 2:
        from scipy.linalg import cho_factor, cho_solve  # heavy

        dense = H.toarray()
        dense[np.diag_indices_from(dense)] += diagonal + 1e-14 * dense.diagonal()
        return cho_solve(cho_factor(dense, overwrite_a=True), right)
    import scipy.sparse as sp  # heavy
    from scipy.sparse.linalg import splu  # heavy

    whole = H + sp.diags(diagonal + 1e-14 * H.diagonal())
    return splu(sp.csc_matrix(whole)).solve(right)


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
