"""Shared SVM: alternates between node weights and node vectors, with a joint certificate.

The joint problem ``alpha/2 sum ||U_n||^2 / a_n + mean H`` is convex in U and a.  For fixed ``a`` it
is a plain problem in ``V_n = U_n / sqrt(a_n)``; for fixed U the best ``a`` is known.  A dual
solution of the plain problem gives the gradients ``z_n`` of the surrogate for every a, and with
them the bound ``b - max_a sum a_n ||z_n||^2 / (2 alpha)`` of the joint problem.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from structsolve.plugins.dag.hierarchy import Hierarchy
from structsolve.plugins.dag.svm.shared import best_weights, penalty
from structsolve.plugins.dag.svm.weights import node_weights
from structsolve.solvers.checkpoint import Checkpoint, Content, check_records
from structsolve.solvers.problem import Problem

# Inner problems are solved to this share of the joint gap, or of the tolerance.
INNER = 0.3
# Node weights are optimised to this share of the inner tolerance.
EXACT = 0.03
# The norm added to each node's, as a share of the tolerance times the mean norm: without it, zero
# weights would stay zero.
FLOOR = 0.1
# Training ends if the gap, at the pace of this many alternations, would not close in the remaining
# ones, or if consecutive alternations without a solved problem have made this many passes.
PACE, UNSOLVED = 8, 200


@dataclass
class Alternation:
    """The result of :func:`alternate`.

    Parameters
    ----------
    problem : Problem
        The last one, with its node scale.
    w : ndarray of float64 of shape (problem.dim,)
        Its weights V.
    weights : ndarray of shape (n_nodes,)
        The node weights that belong to V.
    history : list of dict
        One record per pass, with ``"alternation"``; the last of each alternation has the joint
        ``"objective"`` after it, and ``"joint_gap"`` where the solver has a dual.
    reason : {"converged", "settled", "contradicted", "failed", "max_iter", "interrupted", \
"callback"}
        Why training ended; "settled": the gap hardly changed any more.
    memory : dict of str to int
        Bytes, by what takes them.
    """

    problem: Problem
    w: np.ndarray
    weights: np.ndarray
    history: list[dict[str, Any]]
    reason: str
    memory: dict[str, int]


def alternate(
    hierarchy: Hierarchy,
    make: Callable[[np.ndarray], Problem],
    begin: Callable[[Problem, np.ndarray | None, float], Any],
    drive: Callable[[Any, float], Any],
    alpha: float,
    tol: float,
    max_alternations: int,
    checkpoint: Checkpoint | None = None,
) -> Alternation:
    """Alternate until the certified joint gap is below ``tol`` times the objective.

    The bound is the largest of all alternations: a later one may be lower if its dual solution does
    not update nodes of tiny weight.

    Parameters
    ----------
    hierarchy : Hierarchy
    make : callable
        Called with the factors of the node scores; returns a problem.
    begin : callable
        Called with a problem, the weights to start from (or None) and a tolerance; returns a run.
    drive : callable
        Called with a run and a tolerance; returns an outcome.
    alpha : float
        Regularisation constant.
    tol : float
        Largest relative gap.
    max_alternations : int
    checkpoint : Checkpoint, optional
        The checkpoint of ``drive``, which also stores the state of the alternation.

    Returns
    -------
    Alternation
    """
    weights = first_weights(hierarchy)
    history: list[dict[str, Any]] = []
    U: Any = None
    run: Any = None
    floor = loss = 0.0
    objective, inner, reason = np.inf, max(INNER * tol, 0.1), "max_iter"
    first = 1
    lower, multipliers = -np.inf, None
    gaps: list[float] = []
    unsolved = 0
    content = None if checkpoint is None else checkpoint.read_outer()
    if checkpoint is not None and content is not None:
        with checkpoint.blame():
            meta, arrays = content
            first, history = int(meta["alternation"]), check_records(meta["history"])
            floor, loss, objective, inner = (
                float(meta[name]) for name in ("floor", "loss", "objective", "inner")
            )
            lower, unsolved = float(meta["lower"]), int(meta["unsolved"])
            gaps = [float(gap) for gap in meta["gaps"]]
            weights, U = _checked(arrays, weights, make(np.sqrt(weights)).space.layout.dim)
            multipliers = _checked_multipliers(arrays.get("multipliers"), hierarchy)
            if not (0 < inner < np.inf and first >= 1 and (U is None) == (first == 1)):
                raise ValueError(f"alternation {first} with a tolerance of {inner}")
    for k in range(first, max_alternations + 1):
        problem = make(np.sqrt(weights))
        V: Any = None if U is None else problem.solver_weights(U)
        previous, run = run, begin(problem, V, inner)
        if previous is not None and hasattr(run, "take_over"):
            run.take_over(previous, V, problem.regulariser(V, alpha) + loss)
        if checkpoint is not None:
            around = {
                "alternation": k,
                "history": list(history),
                "floor": floor,
                "loss": loss,
                "objective": objective,
                "inner": inner,
                "lower": lower,
                "gaps": gaps,
                "unsolved": unsolved,
            }
            own = {"weights": weights, "U": U, "multipliers": multipliers}
            kept = {name: array for name, array in own.items() if array is not None}
            checkpoint.outer = partial(_both, around, kept)
        outcome = drive(run, inner)
        w = outcome.w
        # The primal at w; often a certificate has already computed it.
        primal = getattr(run, "best_primal", np.inf)
        if not np.isfinite(primal):
            primal, _ = problem.primal(w, alpha)
        if V is not None and primal > problem.regulariser(V, alpha) + loss:
            w, primal = V, problem.regulariser(V, alpha) + loss
        loss = primal - problem.regulariser(w, alpha)
        U = problem.model_weights(w)
        squares = _node_squares(problem, U)
        if k == 1:
            share = min(max(FLOOR * tol, 1e-9), 1e-3)
            floor = share**2 * (squares.mean() or 1.0)
        best, multipliers = best_weights(hierarchy, squares + floor, EXACT * inner, multipliers)
        before = loss + 0.5 * alpha * penalty(squares + floor, weights)
        after = loss + 0.5 * alpha * penalty(squares + floor, best)
        lower = max(lower, _joint_bound(hierarchy, run, weights, alpha))
        # The solver of a convex program may end slightly above its start.
        if after > before:
            best, after = weights, before
        gap = loss + 0.5 * alpha * penalty(squares, best) - lower
        gaps = [*gaps[-PACE:], gap]
        relative = gap / max(abs(after), 1e-300)
        for record in outcome.history:
            history.append({**record, "pass": len(history) + 1, "alternation": k})
        if history:
            history[-1]["objective"] = after
            history[-1]["joint_gap"] = gap if np.isfinite(gap) else None
        gained, objective = objective - after, after
        weights = best
        if outcome.reason in ("interrupted", "callback", "failed"):
            reason = outcome.reason
            break
        # Without a dual there is no gap: training ends when the objective stops falling.
        no_gap = np.isinf(relative)
        stalled = no_gap and inner <= INNER * tol and gained <= 0.1 * tol * abs(after)
        if relative <= tol or stalled:
            told = any("violation" in record for record in outcome.history)
            reason = "contradicted" if told else "converged"
            break
        unsolved = unsolved + len(outcome.history) if outcome.reason == "max_iter" else 0
        if unsolved >= UNSOLVED:
            break
        if len(gaps) > PACE and np.isfinite(gaps[0]):
            pace = np.log(gaps[0] / gap) / PACE
            if np.log(relative / tol) > pace * (max_alternations - k):
                reason = "settled"
                break
        inner = min(inner, max(INNER * (inner if no_gap else relative), INNER * tol))
    if run is None:
        raise ValueError(
            f"the checkpoint is in alternation {first}, max_alternations is {max_alternations}"
        )
    problem = make(np.sqrt(weights))
    return Alternation(problem, problem.solver_weights(U), weights, history, reason, run.memory())


def _both(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> Content:
    return meta, arrays


def _checked(arrays: dict[str, np.ndarray], weights: np.ndarray, dim: int) -> tuple[Any, Any]:
    """Return the node weights and the nodes' vectors of a checkpoint."""
    given, U = arrays["weights"], arrays.get("U")
    if (
        given.shape != weights.shape
        or given.dtype != np.float64
        or not ((given > 0) & (given < np.inf)).all()
    ):
        raise ValueError(f"node weights of shape {given.shape}, expected {weights.shape}, positive")
    if U is not None and (U.shape != (dim,) or U.dtype != np.float64 or not np.isfinite(U).all()):
        raise ValueError(f"vectors of the nodes of shape {U.shape}, expected ({dim},), finite")
    return given, U


def _checked_multipliers(given: np.ndarray | None, hierarchy: Hierarchy) -> np.ndarray | None:
    """Return the multipliers of a checkpoint."""
    if given is None:
        return None
    shape = (len(hierarchy.leaves),)
    if (
        given.shape != shape
        or given.dtype != np.float64
        or not (np.isfinite(given) & (given > 0)).all()
    ):
        raise ValueError(f"multipliers of shape {given.shape}, expected {shape}, positive")
    return given


def first_weights(hierarchy: Hierarchy) -> np.ndarray:
    """Return positive weights whose sums over leaves and their ancestors are at most 1.

    Parameters
    ----------
    hierarchy : Hierarchy

    Returns
    -------
    ndarray of shape (n_nodes,)
    """
    if hierarchy.forest:
        return np.maximum(node_weights(hierarchy, "rho:2").values, 1e-12)
    return np.full(len(hierarchy), 1 / np.diff(hierarchy.paths.indptr).max())


def _node_squares(problem: Problem, U: np.ndarray) -> np.ndarray:
    """Return the squared norm of each node's vector, without an intercept that is not penalised."""
    layout = problem.space.layout
    assert layout.node is not None
    rows = layout.view(U, layout.node.name)
    if problem.penalty is not None:
        rows = rows[:-1]
    return np.einsum("fn,fn->n", rows, rows)


def _joint_bound(hierarchy: Hierarchy, run: Any, weights: np.ndarray, alpha: float) -> float:
    """Return a lower bound of the joint problem from the dual of a run; -inf without one."""
    loop = getattr(run, "loop", None)
    if not hasattr(run, "dual") or loop is None or not hasattr(loop, "resynchronise"):
        return -np.inf
    loop.resynchronise()
    problem = run.given.problem
    # V_n = sqrt(a_n) z_n / alpha.
    squares = _node_squares(problem, loop.w) / weights
    regulariser = 0.5 * alpha * problem.potentials.squared_norm(loop.w)
    return float(run.dual + regulariser - 0.5 * alpha * _heaviest(hierarchy, squares))


def _heaviest(hierarchy: Hierarchy, values: np.ndarray) -> float:
    """Return the largest ``sum a_n values_n`` over weights whose sums are at most 1."""
    if hierarchy.forest:
        best = values.copy()
        below = np.zeros(len(hierarchy))
        for level in reversed(hierarchy.levels):
            best[level] = np.maximum(values[level], below[level])
            inner = level[hierarchy.parent[level] >= 0]
            np.add.at(below, hierarchy.parent[inner], best[inner])
        return float(best[hierarchy.levels[0]].sum())
    from scipy.optimize import linprog  # heavy

    answer = linprog(-values, A_ub=hierarchy.paths, b_ub=np.ones(hierarchy.paths.shape[0]))
    return float(-answer.fun) if answer.status == 0 else np.inf
