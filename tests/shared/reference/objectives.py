"""Structured hinge problems written out in full, and their optimum by a general convex solver.

A problem is a list, one entry an example, of pairs: `differences` (M_i, d), row y being
Phi^T (mu(y_i) - mu(y)), and `losses` (M_i,).  The objective is

    alpha/2 ||w||^2 + sum_i u_i max_y [ losses_i(y) - <w, differences_i(y)> ],

u_i = 1/n by default, over the w with A w <= b.  Coordinates may be left out of the norm.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Optimum:
    """The answer of `optimum`: w, its objective, multipliers, and the dual bound they prove."""

    w: np.ndarray
    value: float
    duals: list  # for each example (M_i,), non-negative, of sum u_i
    constraint_duals: np.ndarray  # for each row of A w <= b, non-negative
    dual_value: float  # at most the optimal value, up to the solver's residuals


def margins(w, problem):
    """max_y [ loss - <w, difference> ] of each example."""
    return np.array([np.max(losses - differences @ w) for differences, losses in problem])


def primal(w, problem, alpha, u=None, penalized=None):
    """The objective at w."""
    w = np.asarray(w, dtype=float)
    inside = np.ones(w.size, bool) if penalized is None else np.asarray(penalized, bool)
    return float(alpha / 2 * w[inside] @ w[inside] + _weights(u, problem) @ margins(w, problem))


def subgradient(w, problem, alpha, u=None, penalized=None):
    """One subgradient of the objective at w."""
    w = np.asarray(w, dtype=float)
    slope = alpha * w * (1.0 if penalized is None else np.asarray(penalized, float))
    for weight, (differences, losses) in zip(_weights(u, problem), problem, strict=True):
        slope = slope - weight * differences[np.argmax(losses - differences @ w)]
    return slope


def optimum(problem, alpha, u=None, penalized=None, A=None, b=None):
    """The exact optimum, by CLARABEL through cvxpy, as an `Optimum`."""
    import cvxpy as cp

    u = _weights(u, problem)
    size = problem[0][0].shape[1]
    inside = np.ones(size, bool) if penalized is None else np.asarray(penalized, bool)
    w, xi = cp.Variable(size), cp.Variable(len(problem))
    # One constraint of many rows: cvxpy takes its time for each.
    ends = np.cumsum([len(losses) for _, losses in problem])
    every = np.concatenate([differences for differences, _ in problem])
    example = np.repeat(np.arange(len(problem)), np.diff(ends, prepend=0))
    cut = np.concatenate([losses for _, losses in problem]) - every @ w <= xi[example]
    rows = [] if A is None else [np.asarray(A, float) @ w <= np.asarray(b, float)]
    norm = cp.sum_squares(w[np.flatnonzero(inside)]) if inside.any() else 0
    task = cp.Problem(cp.Minimize(alpha / 2 * norm + u @ xi), [cut, *rows])
    task.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    if task.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise ValueError(f"no optimum: {task.status}")
    duals = np.split(np.maximum(np.atleast_1d(cut.dual_value), 0), ends[:-1])
    nu = np.maximum(np.atleast_1d(rows[0].dual_value), 0) if rows else np.zeros(0)
    # w as the duals see it: alpha w = sum of duals times differences - A' nu.
    slope = sum(dual @ differences for dual, (differences, _) in zip(duals, problem, strict=True))
    if rows:
        slope = slope - np.asarray(A, float).T @ nu
    gain = sum(dual @ losses for dual, (_, losses) in zip(duals, problem, strict=True))
    bound = gain - slope[inside] @ slope[inside] / (2 * alpha) - (nu @ b if rows else 0)
    return Optimum(
        w=w.value,
        value=primal(w.value, problem, alpha, u, inside),
        duals=duals,
        constraint_duals=nu,
        dual_value=float(bound),
    )


def _weights(u, problem):
    return np.full(len(problem), 1 / len(problem)) if u is None else np.asarray(u, dtype=float)
