"""Fenchel-Young surrogates by enumeration: values and optima from SciPy and cvxpy."""

import cvxpy as cp
import numpy as np
from scipy.special import logsumexp


def loss_matrix(problem, i, labels):
    """L[a, b]: the loss of predicting label a if b is true, from the native loss's values."""
    from structsolve.structure.calls import loss_value

    given = [np.ascontiguousarray(label, dtype=np.int32) for label in labels]
    return np.array(
        [[loss_value(problem.loss, i, truth, label) for truth in given] for label in given]
    )


def crf_value(scores):
    """``log sum exp`` of all labels' scores."""
    return float(logsumexp(scores))


def max_min_value(scores, L):
    """``max_p min_q q' L p + <scores, p>`` over distributions of labels, by a linear program."""
    from scipy.optimize import linprog

    n = len(scores)
    # maximise scores' p + t subject to t <= (L p)_a for every prediction a
    cost = -np.append(scores, 1.0)
    rows = np.hstack([-L, np.ones((n, 1))])
    answer = linprog(
        cost,
        A_ub=rows,
        b_ub=np.zeros(n),
        A_eq=np.append(np.ones(n), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * n + [(None, None)],
        method="highs",
    )
    return -float(answer.fun)


def sparsemap_value(scores, nodes):
    """``max_p <scores, p> - ||nodes' p||^2 / 2`` over distributions of labels."""
    p = cp.Variable(len(scores), nonneg=True)
    objective = scores @ p - cp.sum_squares(nodes.T @ p) / 2
    problem = cp.Problem(cp.Maximize(objective), [cp.sum(p) == 1])
    return float(problem.solve(solver="CLARABEL"))


def optimum(kind, features, truths, losses, nodes, alpha):
    """Optimal value of ``alpha/2 ||w||^2 + mean_i H_i(w)``, by a conic solver.

    Parameters
    ----------
    kind : {"crf", "sparsemap", "max-min"}
    features : list of arrays (labels, dim)
        ``Phi_i' mu(y)`` of all labels.
    truths : list of int
        Which of them is true.
    losses : list of arrays (labels, labels)
    nodes : list of arrays (labels, parts)
        Node parts of all labels.
    """
    w = cp.Variable(features[0].shape[1])
    total, constraints = 0, []
    for F, truth, L, N in zip(features, truths, losses, nodes, strict=True):
        scores = (F - F[truth]) @ w
        if kind == "crf":
            total += cp.log_sum_exp(scores)
        elif kind == "max-min":
            # min_q max_b (L' q)_b + score_b: the order of a game's players does not matter.
            q = cp.Variable(len(F), nonneg=True)
            constraints.append(cp.sum(q) == 1)
            total += cp.max(L.T @ q + scores)
        else:
            u = cp.Variable(N.shape[1])
            total += cp.max(scores - N @ u) + cp.sum_squares(u) / 2 + N[truth] @ N[truth] / 2
    task = cp.Problem(
        cp.Minimize(alpha / 2 * cp.sum_squares(w) + total / len(features)), constraints
    )
    return float(task.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10))
