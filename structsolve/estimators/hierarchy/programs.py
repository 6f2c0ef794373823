"""Convex programs for node weights where no closed form is known: graphs, and directed weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ...structure.hierarchy import Hierarchy


def maxmin(hierarchy: Hierarchy, directional: bool, top: float) -> np.ndarray:
    """Return weights whose smallest is largest, by linear programming (HiGHS).

    Parameters
    ----------
    hierarchy : Hierarchy
    directional : bool
        No child weighs less than a parent.
    top : float
        The sums over leaves and their ancestors lie in ``[1, top]``.
    """
    from scipy.optimize import linprog

    M, paths = len(hierarchy), hierarchy.paths
    n_leaves, edges = paths.shape[0], hierarchy.edges if directional else np.empty((0, 2), int)
    none = sp.csr_matrix((n_leaves, 1))
    least = sp.hstack([-sp.identity(M), np.ones((M, 1))])  # t <= alpha_n
    rows = [least, sp.hstack([-paths, none]), sp.hstack([paths, none])]
    sides = [np.zeros(M), -np.ones(n_leaves), np.full(n_leaves, top)]
    if len(edges):
        rows.append(sp.hstack([_differences(edges, M), sp.csr_matrix((len(edges), 1))]))
        sides.append(np.zeros(len(edges)))
    goal = np.zeros(M + 1)
    goal[M] = -1
    found = linprog(goal, A_ub=sp.vstack(rows, format="csr"), b_ub=np.concatenate(sides))
    if found.status != 0:
        raise ValueError(_infeasible(top, found.message))
    return np.maximum(found.x[:M], 0)


def power(hierarchy: Hierarchy, rho: float, directional: bool, top: float) -> np.ndarray:
    """Return weights of least ``sum alpha^rho``; parameters as for :func:`maxmin`."""
    import cvxpy as cp

    alpha = cp.Variable(len(hierarchy), nonneg=True)
    constraints = _constraints(hierarchy, alpha, directional, top)
    if rho == 2:
        return _solve(cp.Minimize(cp.sum_squares(alpha)), alpha, constraints, top)
    powers = cp.Variable(len(hierarchy))
    cone = cp.PowCone3D(powers, np.ones(len(hierarchy)), alpha, 1 / rho)
    return _solve(cp.Minimize(cp.sum(powers)), alpha, [*constraints, cone], top)


def _constraints(hierarchy: Hierarchy, alpha: Any, directional: bool, top: float) -> list[Any]:
    sums = hierarchy.paths @ alpha
    found = [sums == 1] if top == 1 else [sums >= 1, sums <= top]
    if directional and len(hierarchy.edges):
        found.append(_differences(hierarchy.edges, len(hierarchy)) @ alpha <= 0)
    return found


def _differences(edges: np.ndarray, n_nodes: int) -> sp.csr_matrix:
    """Rows of parent minus child."""
    n = len(edges)
    values = np.tile([1.0, -1.0], n)
    return sp.csr_matrix((values, edges.reshape(-1), np.arange(0, 2 * n + 1, 2)), (n, n_nodes))


def _solve(goal: Any, alpha: Any, constraints: list[Any], top: float) -> np.ndarray:
    import cvxpy as cp

    problem = cp.Problem(goal, constraints)
    problem.solve(solver=cp.CLARABEL)
    if alpha.value is None:
        raise ValueError(_infeasible(top, problem.status))
    return np.maximum(alpha.value, 0)


def _infeasible(top: float, status: str) -> str:
    return (
        f"no node weights have sums in [1, {top:g}] over every leaf and its ancestors ({status}); "
        "give a larger slack"
    )
