"""Training of HierarchicalSVM whose penalties of nodes are learned with the weights."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from structsolve.estimators.fitting import TrainingData, fingerprint_of
from structsolve.plugins.dag.svm.alternation import Alternation, alternate, first_weights
from structsolve.plugins.dag.svm.class_weight import weighed_leaves
from structsolve.plugins.dag.svm.sparse_fit import SparseFitting
from structsolve.plugins.dag.svm.weights import NodeWeights
from structsolve.solvers.checkpoint import Checkpoint
from structsolve.solvers.choose import choose_solver
from structsolve.solvers.driver import Outcome
from structsolve.solvers.problem import Problem
from structsolve.solvers.run import Start, started


class LearnedFitting(SparseFitting):
    """The part of ``normalization="learned"``, for :class:`~structsolve.HierarchicalSVM`."""

    max_alternations: int
    _training_loss: Any

    def _check_learned(self, validated: bool) -> None:
        given = {
            "kernel": self.kernel is not None,
            "early_stopping": bool(self.early_stopping),
            "validation": validated,
            "warm_start": bool(getattr(self, "warm_start", False)),  # a path has none
            "slack": self.slack is not None,
            "directional": bool(self.directional),
        }
        for name, used in given.items():
            if used:
                raise ValueError(
                    f"{name} is given, but normalization='learned' has none: leave it out, or use "
                    "another normalization"
                )
        solver = self._solver()
        if not getattr(solver, "minimises", True):
            raise ValueError(
                f"solver is {solver.name!r}, expected one that minimises the objective, which each "
                "round of normalization='learned' has to lower; use solver='bcfw' or 'sgd'"
            )

    def _train_learned(self, data: TrainingData, rng: np.random.Generator) -> Any:
        space = data.space
        examples = weighed_leaves(self.class_weight, space, data.examples)
        hierarchy, solver = space.hierarchy, self._solver()

        def make(scale: np.ndarray) -> Problem:
            loss = self._training_loss(space, scale**2)
            return self._problem_of(space, examples, loss, node_scale=scale)

        first = make(np.sqrt(first_weights(hierarchy)))
        self._choose_alpha(first)

        def begin(problem: Problem, w: Any, tol: float) -> Any:
            start = Start(problem, self.alpha_, rng, self.n_jobs or 1, w, tol)
            self.solver_ = choose_solver(solver, problem)
            return started(self.solver_, start)

        def inner(run: Any, tol: float) -> Outcome:
            return self._drive(run, None, "", tol, file)

        file = None
        if self.checkpoint is not None:
            settings = self._settings(solver, first.space) | {"learned": float(self.tol)}
            fingerprint = fingerprint_of(first, settings) + repr(self.alpha_)
            file = Checkpoint(self.checkpoint, fingerprint)

        learned = alternate(
            hierarchy,
            make,
            begin,
            inner,
            alpha=self.alpha_,
            tol=float(self.tol),
            max_alternations=int(self.max_alternations),
            checkpoint=file,
        )
        self.log_node_weights_ = NodeWeights.of(learned.weights).log
        self.memory_ = learned.memory
        outcome = Outcome(learned.w, learned.history, learned.reason)
        self._finish(space, outcome, learned.problem.model(learned.w), warn=False)
        self._remember_names(data.X)
        self._warn_of_joint_gap(learned)
        return self

    def _warn_of_joint_gap(self, learned: Alternation) -> None:
        """Warn how far learned weights may be from the optimum if training ended early."""
        last = learned.history[-1]
        if learned.reason not in ("max_iter", "settled") or last.get("joint_gap") is None:
            return
        gap = f"{last['joint_gap'] / max(abs(last['objective']), 1e-300):.2g}"
        done = last["alternation"]
        if learned.reason == "settled":
            why = f"the gap closes too slowly for max_alternations={self.max_alternations}"
            what = "raise max_alternations or tol, or"
        elif done < self.max_alternations:
            why = f"max_iter={self.max_iter} passes did not solve the problems of given weights"
            what = "raise max_iter or tol, or"
        else:
            why = f"max_alternations={self.max_alternations} are done"
            what = "raise max_alternations, max_iter or tol, or"
        warnings.warn(
            f"learning node weights stopped with a relative joint gap of {gap}, tol is "
            f"{self.tol:g}, as {why}; {what} take a larger alpha or a rule that needs no data",
            ConvergenceWarning,
            stacklevel=6,
        )
