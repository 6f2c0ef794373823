"""Shared SVM: alternates between node weights and node vectors, with a joint certificate.

The joint problem ``alpha/2 sum ||U_n||^2 / a_n + mean H`` is convex in U and a.  For fixed ``a`` it
is a plain problem in ``V_n = U_n / sqrt(a_n)``; for fixed U the best ``a`` is known.  A dual
solution of the plain problem gives the gradients ``z_n`` of the surrogate for every a, and with
them the bound ``b - max_a sum a_n ||z_n||^2 / (2 alpha)`` of the joint problem.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
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
# Numbers of the state that checkpoints hold.
NUMBERS = ("floor", "loss", "objective", "inner", "lower")


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
    *,
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
    state = _State(hierarchy, alpha, tol, first_weights(hierarchy), max(INNER * tol, 0.1))
    content = None if checkpoint is None else checkpoint.read_outer()
    if checkpoint is not None and content is not None:
        with checkpoint.blame():
            state.resume(*content, make(np.sqrt(state.weights)).space.layout.dim)
    first, reason = state.alternation, None
    run: Any = None
    for k in range(first, max_alternations + 1):
        state.alternation = k
        problem = make(np.sqrt(state.weights))
        V: Any = None if state.U is None else problem.solver_weights(state.U)
        previous, run = run, begin(problem, V, state.inner)
        if previous is not None and hasattr(run, "take_over"):
            run.take_over(previous, V, problem.regulariser(V, alpha) + state.loss)
        if checkpoint is not None:
            checkpoint.outer = partial(_both, *state.content())
        outcome = drive(run, state.inner)
        gained = state.update(problem, run, outcome.w, V)
        state.record(outcome.history)
        reason = state.ended(outcome, gained, max_alternations)
        if reason is not None:
            break
    if run is None:
        raise ValueError(
            f"the checkpoint is in alternation {first}, max_alternations is {max_alternations}"
        )
    problem, weights = make(np.sqrt(state.weights)), state.weights
    w = problem.solver_weights(state.U)
    return Alternation(problem, w, weights, state.history, reason or "max_iter", run.memory())


@dataclass
class _State:
    """What one alternation leaves to the next one, and to checkpoints."""

    hierarchy: Hierarchy
    alpha: float
    tol: float
    weights: np.ndarray
    #: Tolerance of the next inner problem.
    inner: float
    #: The nodes' vectors, with the sum of the surrogate there and the joint objective.
    U: Any = None
    loss: float = 0.0
    objective: float = np.inf
    multipliers: np.ndarray | None = None
    #: Added to the squared norm of each node.
    floor: float = 0.0
    #: The best lower bound of the joint problem.
    lower: float = -np.inf
    gaps: list[float] = field(default_factory=list)
    alternation: int = 1
    #: Passes since an inner problem was last solved.
    unsolved: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)

    def content(self) -> Content:
        meta = {name: getattr(self, name) for name in (*NUMBERS, "alternation", "unsolved", "gaps")}
        own = {"weights": self.weights, "U": self.U, "multipliers": self.multipliers}
        arrays = {name: array for name, array in own.items() if array is not None}
        return meta | {"history": list(self.history)}, arrays

    def resume(self, meta: dict[str, Any], arrays: dict[str, np.ndarray], dim: int) -> None:
        self.alternation, self.unsolved = int(meta["alternation"]), int(meta["unsolved"])
        self.history = check_records(meta["history"])
        for name in NUMBERS:
            setattr(self, name, float(meta[name]))
        self.gaps = [float(gap) for gap in meta["gaps"]]
        self.weights, self.U = _checked(arrays, self.weights, dim)
        self.multipliers = _checked_multipliers(arrays.get("multipliers"), self.hierarchy)
        k, inner = self.alternation, self.inner
        if not (0 < inner < np.inf and k >= 1 and (self.U is None) == (k == 1)):
            raise ValueError(f"alternation {k} with a tolerance of {inner}")

    def update(self, problem: Problem, run: Any, w: np.ndarray, V: Any) -> float:
        """Take the inner problem's w, or V where it started; return the fall of the objective."""
        hierarchy, alpha = self.hierarchy, self.alpha
        # The primal at w; often a certificate has already computed it.
        primal = getattr(run, "best_primal", np.inf)
        if not np.isfinite(primal):
            primal, _ = problem.primal(w, alpha)
        if V is not None and primal > problem.regulariser(V, alpha) + self.loss:
            w, primal = V, problem.regulariser(V, alpha) + self.loss
        self.loss = primal - problem.regulariser(w, alpha)
        self.U = problem.model_weights(w)
        squares = _node_squares(problem, self.U)
        if self.alternation == 1:
            share = min(max(FLOOR * self.tol, 1e-9), 1e-3)
            self.floor = share**2 * (squares.mean() or 1.0)
        raised = squares + self.floor
        best, self.multipliers = best_weights(
            hierarchy, raised, EXACT * self.inner, self.multipliers
        )
        before = self.loss + 0.5 * alpha * penalty(raised, self.weights)
        after = self.loss + 0.5 * alpha * penalty(raised, best)
        self.lower = max(self.lower, _joint_bound(hierarchy, run, self.weights, alpha))
        # The solver of a convex program may end slightly above its start.
        if after > before:
            best, after = self.weights, before
        gap = self.loss + 0.5 * alpha * penalty(squares, best) - self.lower
        self.gaps = [*self.gaps[-PACE:], gap]
        gained, self.objective, self.weights = self.objective - after, after, best
        return gained

    def record(self, passes: list[dict[str, Any]]) -> None:
        history, gap = self.history, self.gaps[-1]
        for record in passes:
            number = len(history) + 1
            history.append({**record, "pass": number, "alternation": self.alternation})
        if history:
            history[-1]["objective"] = self.objective
            history[-1]["joint_gap"] = gap if np.isfinite(gap) else None

    def ended(self, outcome: Any, gained: float, most: int) -> str | None:
        """Return why training ends; None if another alternation follows, of at most ``most``."""
        if outcome.reason in ("interrupted", "callback", "failed"):
            return str(outcome.reason)
        gap, size, inner, tol = self.gaps[-1], abs(self.objective), self.inner, self.tol
        relative = gap / max(size, 1e-300)
        # Without a dual there is no gap: training ends when the objective stops falling.
        no_gap = np.isinf(relative)
        stalled = no_gap and inner <= INNER * tol and gained <= 0.1 * tol * size
        if relative <= tol or stalled:
            told = any("violation" in record for record in outcome.history)
            return "contradicted" if told else "converged"
        unsolved = outcome.reason == "max_iter"
        self.unsolved = self.unsolved + len(outcome.history) if unsolved else 0
        if self.unsolved >= UNSOLVED:
            return "max_iter"
        if len(self.gaps) > PACE and np.isfinite(self.gaps[0]):
            pace = np.log(self.gaps[0] / gap) / PACE
            if np.log(relative / tol) > pace * (most - self.alternation):
                return "settled"
        share = INNER * (inner if no_gap else relative)
        if gained <= 1e-12 * size:  # the answer is no better than the start
            share = min(share, 0.5 * inner)
        self.inner = min(inner, max(share, INNER * tol))
        return None


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
