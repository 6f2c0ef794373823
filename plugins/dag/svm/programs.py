"""Convex programs for node weights without a closed form: on graphs, or with directed weights."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from structsolve.plugins.dag.hierarchy import Hierarchy


def maxmin(hierarchy: Hierarchy, directional: bool, top: float) -> np.ndarray:
    """Return weights whose smallest is largest, by linear programming (HiGHS).

    Parameters
    ----------
    hierarchy : Hierarchy
    directional : bool
        No child weighs less than a parent.
    top : float
        The sums over leaves and their ancestors lie in ``[1, top]``.

    Returns
    -------
    ndarray of shape (n_nodes,)

    Raises
    ------
    ValueError
        If no weights have such sums.
    """
    from scipy.optimize import linprog  # heavy

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
    answer = linprog(goal, A_ub=sp.vstack(rows, format="csr"), b_ub=np.concatenate(sides))
    if answer.status != 0:
        raise ValueError(_infeasible(top, answer.message))
    return np.maximum(answer.x[:M], 0)


def power(hierarchy: Hierarchy, rho: float, directional: bool, top: float) -> np.ndarray:
    """Return weights of least ``sum alpha^rho``, by a conic program (Clarabel).

    Parameters
    ----------
    hierarchy : Hierarchy
    rho : float
        Above 1.
    directional : bool
        No child weighs less than a parent.
    top : float
        The sums over leaves and their ancestors lie in ``[1, top]``.

    Returns
    -------
    ndarray of shape (n_nodes,)

    Raises
    ------
    ValueError
        If no weights have such sums.
    """
    import cvxpy as cp  # heavy

    M = len(hierarchy)
    alpha = cp.Variable(M, nonneg=True)
    sums = hierarchy.paths @ alpha
    constraints = [sums == 1] if top == 1 else [sums >= 1, sums <= top]
    if directional and len(hierarchy.edges):
        constraints.append(_differences(hierarchy.edges, M) @ alpha <= 0)
    if rho == 2:
        goal = cp.sum_squares(alpha)
    else:
        powers = cp.Variable(M)
        constraints.append(cp.PowCone3D(powers, np.ones(M), alpha, 1 / rho))
        goal = cp.sum(powers)
    problem = cp.Problem(cp.Minimize(goal), constraints)
    problem.solve(solver=cp.CLARABEL)
    if alpha.value is None:
        raise ValueError(_infeasible(top, problem.status))
    return np.maximum(alpha.value, 0)


def _differences(edges: np.ndarray, n_nodes: int) -> sp.csr_matrix:
    """Return a matrix with a row per edge: the parent's weight minus the child's."""
    n = len(edges)
    values = np.tile([1.0, -1.0], n)
    return sp.csr_matrix((values, edges.reshape(-1), np.arange(0, 2 * n + 1, 2)), (n, n_nodes))


def _infeasible(top: float, status: str) -> str:
    return (
        f"no node weights have sums in [1, {top:g}] over every leaf and its ancestors ({status}); "
        "give a larger slack"
    )
