"""The concave-convex procedure: rounds that complete labels and then train weights.

With ``S(w) = alpha/2 ||w||^2 + mean_i H_i(w; h_i)`` for completed labels h, the objective of
partial labels is ``min_h S(w)``.  For margin rescaling this is the latent structural SVM of Yu and
Joachims (2009), ``max_s (L(y_i, s) + <w, psi(s)>) - max_{h allowed} <w, psi(h)>``: the best
completion is the best label among those allowed.  Training lowers S over w, completion lowers it
over h, and steps that do not lower it are refused: the objective never rises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from structsolve.estimators.decode import decode, decode_in_batches
from structsolve.lp.oracle import ProgramOracle
from structsolve.plugins.latent.candidates import CandidateCompleter
from structsolve.plugins.latent.carry import shifted_duals
from structsolve.plugins.latent.sets import Sets
from structsolve.solvers.checkpoint import Checkpoint, Content, check_records
from structsolve.solvers.driver import Outcome
from structsolve.solvers.problem import Problem

# The first problems are solved to this relative gap, later ones to a share of a round's gain.
ROUGH = 0.1
SHARE = 0.3
# Rounds end when one gains less than this share of the tolerance, since gains add up.
SETTLED = 0.1
# Relative gains below this are rounding.
ROUNDING = 1e-12


@dataclass
class Descent:
    """The state of the rounds from one start.

    Parameters
    ----------
    w : ndarray of shape (dim,)
    labels : ndarray of int32
        Completions: the states of all examples.
    objective : float
    inner : float
        Relative gap to which the next problem is solved.
    history : list of dict
        The record of each pass.
    reason : str
        Why the rounds ended; empty until then.
    """

    w: np.ndarray
    labels: np.ndarray
    objective: float
    inner: float
    history: list[dict[str, Any]] = field(default_factory=list)
    reason: str = ""


class Completer:
    """Finds the best completion of every label at given weights.

    Parameters
    ----------
    problem : Problem
    sets : Sets
        The states that each node allows.
    n_jobs : int
    """

    # The loss is the same for all completions: dual variables fit another one.
    carries = True

    def __init__(self, problem: Problem, sets: Sets, n_jobs: int):
        self.problem, self.sets, self.n_jobs = problem, sets, n_jobs
        mask = np.where(sets.table, 0.0, -np.inf)[sets.rows]
        node = problem.space.layout.node
        assert node is not None
        self.masks = {node.name: mask}

    def allow(self, labels: np.ndarray) -> bool:
        """Return whether states are allowed.

        Parameters
        ----------
        labels : ndarray of int32

        Returns
        -------
        bool
        """
        table = self.sets.table
        if labels.size and not 0 <= labels.min() <= labels.max() < table.shape[1]:
            return False
        return bool(table[self.sets.rows, labels].all())

    def complete(self, w: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the best label of every example among those allowed.

        Parameters
        ----------
        w : ndarray of shape (dim,)
        labels : ndarray of int32
            Current completions, kept if the oracle finds no allowed one.

        Returns
        -------
        labels : ndarray of int32
        missed : float
            Bound on the mean score by which other completions may be better, for inexact oracles.
        """
        problem = self.problem
        oracle, offsets = problem.oracle, problem.examples.label_offsets
        bounds = np.full(problem.n, np.nan)
        if isinstance(oracle, ProgramOracle) and oracle.batched:
            best, scores = decode_in_batches(problem.potentials, oracle, w, self.masks, self.n_jobs)
        else:
            best, scores = decode(problem.potentials, oracle, w, self.masks, self.n_jobs, bounds)
        strange = ~self.sets.table[self.sets.rows, best]
        refused = scores == -np.inf
        refused[np.searchsorted(offsets, np.flatnonzero(strange), side="right") - 1] = True
        kept = np.repeat(refused, np.diff(offsets))
        known = ~refused & np.isfinite(bounds)
        missed = np.maximum(bounds[known] - scores[known], 0)
        missed[missed <= 1e-9 * (1 + np.abs(scores[known]))] = 0
        return np.where(kept, labels, best), float(problem.weights[known] @ missed)


# Reasons that rule out further starts.
ENDS = ("interrupted", "callback", "failed", "contradicted")


class Rounds:
    """Rounds from several starts, of which the best is kept.

    Parameters
    ----------
    problem : Problem
        Its labels are changed in place.
    completer : Completer or CandidateCompleter, optional
        None: all labels are complete, and there is one round.
    begin : callable
        Called with weights to start from (or None) and a tolerance; returns a run.
    drive : callable
        Called with a run and a tolerance; returns an outcome.
    alpha, tol : float
        Regularisation constant, and the tolerance of gaps and gains relative to the objective.
    max_rounds : int
        From each start.
    n_jobs : int
    checkpoint : Checkpoint, optional
        The checkpoint of ``drive``, which also stores the state of the rounds.
    constrained : bool, default=False
        The solver keeps weights within constraints.

    Attributes
    ----------
    run : Run
        The last one.
    objectives : list of float
        Objectives of all starts.
    best : Descent
    """

    best: Descent | None = None

    def __init__(
        self,
        problem: Problem,
        completer: Completer | CandidateCompleter | None,
        begin: Callable[[np.ndarray | None, float], Any],
        drive: Callable[[Any, float], Outcome],
        *,
        alpha: float,
        tol: float,
        max_rounds: int,
        n_jobs: int,
        checkpoint: Checkpoint | None = None,
        constrained: bool = False,
    ):
        self.problem, self.completer, self.begin, self.drive = problem, completer, begin, drive
        self.alpha, self.tol, self.max_rounds, self.n_jobs = alpha, tol, max_rounds, n_jobs
        self.checkpoint, self.constrained = checkpoint, constrained
        self.objectives: list[float] = []
        self.run: Any = None
        assert problem.labels is not None
        self.labels: np.ndarray = problem.labels
        self._run_labels = self.labels.copy()

    def descend(
        self, first: Callable[[int], np.ndarray], seeds: list[int], w: np.ndarray | None = None
    ) -> Descent:
        """Make rounds from each start.

        Parameters
        ----------
        first : callable
            Returns the initial states for a seed.
        seeds : list of int
            One for each start.
        w : ndarray of shape (dim,), optional
            Weights to start from.

        Returns
        -------
        Descent
            The start of least objective.
        """
        present, k, seeds = self._resumed(seeds)
        while len(self.objectives) < len(seeds):
            if present is None:
                present, k, self.run = self._start(first(seeds[len(self.objectives)]), w), 1, None
            while not present.reason:
                self._round(present, k, seeds)
                k += 1
                if k > self.max_rounds:
                    present.reason = present.reason or "max_iter"
            self.objectives.append(present.objective)
            if self.best is None or present.objective < self.best.objective:
                self.best = present
            if present.reason in ENDS:
                self.best.reason = present.reason
                break
            present = None
        assert self.best is not None
        return self.best

    def _start(self, labels: np.ndarray, w: np.ndarray | None) -> Descent:
        problem = self.problem
        if w is None:
            w = np.zeros(problem.dim)
        elif self.completer is not None:
            labels, _ = self.completer.complete(w, labels)
        self.labels[:] = labels
        bounds, _ = problem.bounds(w, self.n_jobs)
        rough = self.tol if self.completer is None else max(self.tol, ROUGH)
        # Constraints on the weights may forbid these.
        objective = np.inf if self.constrained else self._objective(w, bounds)
        return Descent(w, labels.copy(), objective, rough)

    def _objective(self, w: np.ndarray, bounds: np.ndarray) -> float:
        problem = self.problem
        return problem.regulariser(w, self.alpha) + float(problem.weights @ bounds)

    def _round(self, present: Descent, k: int, seeds: list[int]) -> None:
        """Train on the current completion, and complete again."""
        problem = self.problem
        self._begin_run(present)
        if self.checkpoint is not None:
            outer = self._outer(present, k, seeds)
            self.checkpoint.outer = lambda: outer
        outcome = self.drive(self.run, present.inner)
        # Not the bounds that the run may keep: a resumed one lacks them, and searches, which begin
        # where they ended, would go on from elsewhere.
        w, (bounds, _) = outcome.w, problem.bounds(outcome.w, self.n_jobs)
        # A problem solved to a gap may end slightly above its start.
        if self._objective(w, bounds) >= present.objective:
            w, (bounds, _) = present.w, problem.bounds(present.w, self.n_jobs)
        labels, bounds, missed = self._complete(w, present.labels, bounds)
        objective, moved = self._objective(w, bounds), int((labels != present.labels).sum())
        gained = present.objective - objective
        present.w, present.labels, present.objective = w, labels, objective
        for record in outcome.history:
            number = len(present.history) + 1
            present.history.append({**record, "pass": number, "round": k})
        if outcome.history:
            last = present.history[-1]
            last |= {"start": len(self.objectives), "objective": objective, "moved": moved}
            if missed > 0:
                last["missed"] = last.get("missed", 0.0) + missed
        present.reason = self._ended(outcome.reason, moved, gained, present)
        share = SHARE * gained / max(abs(objective), 1e-300)
        present.inner = max(self.tol, min(present.inner, share)) if moved else self.tol

    def _begin_run(self, present: Descent) -> None:
        problem, previous = self.problem, self.run
        self.labels[:] = present.labels
        if previous is not None and np.array_equal(self._run_labels, present.labels):
            previous.given.tol = present.inner
            return
        duals = None
        if previous is not None and self.completer is not None and self.completer.carries:
            duals = shifted_duals(previous, problem, self._run_labels, present.labels)
        self.run = self.begin(present.w if present.w.any() else None, present.inner)
        if duals is not None:
            self.run.take_over(previous, present.w, present.objective, duals)
        self._run_labels = present.labels

    def _complete(
        self, w: np.ndarray, labels: np.ndarray, bounds: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return new completions that lower an example's bound, and the bounds."""
        problem = self.problem
        if self.completer is None:
            return labels, bounds, 0.0
        best, missed = self.completer.complete(w, labels)
        if np.array_equal(best, labels):
            return labels, bounds, missed
        self.labels[:] = best
        fresh, _ = problem.bounds(w, self.n_jobs)
        better = fresh < bounds - ROUNDING * (1 + np.abs(bounds))
        taken = np.repeat(better, np.diff(problem.examples.label_offsets))
        return np.where(taken, best, labels), np.where(better, fresh, bounds), missed

    def _ended(self, reason: str, moved: int, gained: float, present: Descent) -> str:
        """Return why the rounds end; "" if they continue."""
        if self.completer is None or reason in ENDS:
            return reason
        little = gained <= SETTLED * self.tol * abs(present.objective)
        if present.inner > self.tol or not (little or moved == 0):
            return ""
        if moved == 0 and reason != "max_iter":
            return reason
        if moved == 0:
            return "max_iter" if little else ""
        return "settled"

    # -- checkpoints ----------------------------------------------------------------------------

    def _outer(self, present: Descent, k: int, seeds: list[int]) -> Content:
        meta = {"round": k, "seeds": seeds, "objectives": list(self.objectives)}
        meta |= {"present": _numbers(present)}
        arrays = {"w": present.w, "labels": present.labels}
        if self.best is not None:
            meta |= {"best": _numbers(self.best)}
            arrays |= {"best_w": self.best.w, "best_labels": self.best.labels}
        return meta, arrays

    def _resumed(self, seeds: list[int]) -> tuple[Descent | None, int, list[int]]:
        content = None if self.checkpoint is None else self.checkpoint.read_outer()
        if self.checkpoint is None or content is None:
            return None, 1, seeds
        with self.checkpoint.blame():
            meta, arrays = content
            k, seeds = int(meta["round"]), [int(seed) for seed in meta["seeds"]]
            self.objectives = [float(value) for value in meta["objectives"]]
            if not (1 <= k <= self.max_rounds and len(self.objectives) < len(seeds)):
                raise ValueError(
                    f"it is in round {k} of start {len(self.objectives) + 1}; max_rounds is "
                    f"{self.max_rounds}"
                )
            if self.objectives:
                best = arrays["best_w"], arrays["best_labels"]
                self.best = self._revived(meta["best"], *best)
            return self._revived(meta["present"], arrays["w"], arrays["labels"]), k, seeds

    def _revived(self, meta: dict[str, Any], w: np.ndarray, labels: np.ndarray) -> Descent:
        problem = self.problem
        if w.shape != (problem.dim,) or w.dtype != np.float64 or not np.isfinite(w).all():
            raise ValueError(f"weights of shape {w.shape}, expected ({problem.dim},), finite")
        if labels.shape != self.labels.shape or labels.dtype != np.int32:
            raise ValueError(f"labels of shape {labels.shape}, expected {self.labels.shape}")
        if self.completer is not None and not self.completer.allow(labels):
            raise ValueError("it completes labels by states that are not allowed")
        objective, inner = float(meta["objective"]), float(meta["inner"])
        if np.isnan(objective) or not 0 <= inner < np.inf:
            raise ValueError(f"an objective of {objective} with a tolerance of {inner}")
        history = check_records(meta["history"])
        why = str(meta["reason"])
        return Descent(w, labels, objective, inner, history=history, reason=why)


def _numbers(descent: Descent) -> dict[str, Any]:
    return {
        "objective": descent.objective,
        "inner": descent.inner,
        "history": list(descent.history),
        "reason": descent.reason,
    }
