"""The shared Frobenius norm: a norm of matrices that is small where rows share factors."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.plugins.dag.hierarchy import Hierarchy, as_hierarchy


def shared_norm(U: Any, hierarchy: Any = None) -> float:
    """Return ``min ||A||_{2->inf} ||V||_F`` over the factorisations ``A V = U``.

    ``||A||_{2->inf}`` is the largest norm of a row.  The shared norm lies between the trace norm,
    divided by the root of the number of rows, and the Frobenius norm.  It equals the Frobenius norm
    for orthogonal rows, and the norm of the largest row if all are multiples of one row.

    Parameters
    ----------
    U : array of shape (n_rows, n_columns)
        With a hierarchy: one row per leaf, in the order of ``as_hierarchy(hierarchy).leaves``.
    hierarchy : Hierarchy or networkx DiGraph, optional
        Allow only factorisations along it: V has a row for each node, and ``A[leaf, node]`` is
        ``a_node`` if the node is the leaf or an ancestor, else 0.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If U is no matrix of finite numbers, or its rows are not one per leaf.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.plugins.dag import shared_norm
    >>> row = np.array([[3.0, 4.0]])
    >>> round(shared_norm(np.vstack([row, row, row])), 3)      # Frobenius: 8.66
    5.0
    """
    U = np.asarray(U, dtype=np.float64)
    if U.ndim != 2 or not np.isfinite(U).all():
        raise ValueError(f"U has shape {U.shape}, expected a matrix of finite numbers")
    if hierarchy is not None:
        hierarchy = as_hierarchy(hierarchy)
        if U.shape[0] != len(hierarchy.leaves):
            raise ValueError(
                f"U has {U.shape[0]} rows, expected {len(hierarchy.leaves)}, one per leaf"
            )
    scale = float(np.abs(U).max(initial=0))
    if scale == 0:
        return 0.0
    # Both norms depend on U U' alone: a triangular factor of it has no more columns than rows.
    triangle: Any = np.linalg.qr(U.T / scale, mode="r")
    factor = triangle.T
    square = _free(factor) if hierarchy is None else _along(factor, hierarchy)
    return scale * float(np.sqrt(max(square, 0.0)))


def _free(U: np.ndarray) -> float:
    """Return the square as ``min tr U' K^-1 U`` over ``K = A A'``, whose diagonal is at most 1."""
    import cvxpy as cp  # heavy

    K = cp.Variable((len(U), len(U)), PSD=True)
    problem = cp.Problem(cp.Minimize(cp.matrix_frac(U, K)), [cp.diag(K) <= 1])
    return float(problem.solve(solver=cp.CLARABEL))


def _along(U: np.ndarray, hierarchy: Hierarchy) -> float:
    """Return the square as ``min sum ||W_n||^2 / alpha_n`` over node vectors W that sum to U."""
    import cvxpy as cp  # heavy

    W = cp.Variable((len(hierarchy), U.shape[1]))
    alpha = cp.Variable(len(hierarchy), nonneg=True)
    # Epigraph variables: evaluated at the solver's alpha, 0 / 0 would be infinite.
    cost = cp.Variable(len(hierarchy))
    paths = hierarchy.paths
    rows = [cp.quad_over_lin(W[n], alpha[n]) <= cost[n] for n in range(len(hierarchy))]
    problem = cp.Problem(cp.Minimize(cp.sum(cost)), [*rows, paths @ W == U, paths @ alpha <= 1])
    return float(problem.solve(solver=cp.CLARABEL))
