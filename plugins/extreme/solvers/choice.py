"""A solver that chooses among three solvers by their errors on held-out rows."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from structsolve.plugins.extreme.solvers.base import (
    After,
    ExtremeProblem,
    ExtremeResult,
    ExtremeSolver,
)
from structsolve.plugins.extreme.solvers.one_vs_rest import OneVsRest
from structsolve.plugins.extreme.solvers.one_vs_some import OneVsSome
from structsolve.plugins.extreme.solvers.softmax import SampledSoftmax
from structsolve.plugins.extreme.weights.postings import Postings
from structsolve.solvers.checkpoint import Checkpoint
from structsolve.utils.params import check_count, check_types, parameters

# Rows on which a trial is judged.
MOST_HELD_OUT = 3000
# Non-zeros times classes up to which one-vs-rest takes part: a second or two on all rows.
ALL_ROWS = 2**30


@parameters
class SelfChoice(ExtremeSolver):
    """Train with one-vs-some, softmax regression or one-vs-rest, whichever errs least in a trial.

    All train on a random sample of rows, restricted to its classes and features.  Their
    top-1 and top-5 errors on other rows of the problem are added, and the solver with the least sum
    trains on all rows.  The choice depends on the problem and its seed alone.  A solver that would
    take more than ``max_memory`` on all rows is excluded before the trial, and so is one-vs-rest
    where non-zeros times classes are more than 2^30: it would take far longer than the others.

    Parameters
    ----------
    n_train : int, default=1000
        Rows of the trial, which is judged on 3000 others; at most a third of a smaller problem.
    machines : OneVsSome or None
        None for its defaults.
    softmax : SampledSoftmax or None
        None for its defaults.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from structsolve.plugins.extreme.solvers.base import ExtremeProblem
    >>> from structsolve.plugins.extreme.solvers.choice import SelfChoice
    >>> X = sparse.csr_matrix(np.tile(np.eye(3, dtype=np.float32), (9, 1)))
    >>> y = np.tile(np.arange(3, dtype=np.int32), 9)
    >>> result = SelfChoice().fit(ExtremeProblem(X, y, 3, 1 / 27, "auto"))
    >>> result.settings["solver"], result.settings["trial_errors"]["one-vs-some"]
    ('one-vs-some', 0.0)
    """

    name = "choice"
    unit_rows = True

    n_train: int = 1000
    machines: Any = None
    softmax: Any = None

    def fit(
        self, problem: ExtremeProblem, after: After = None, checkpoint: Checkpoint | None = None
    ) -> ExtremeResult:
        """Train; see :meth:`ExtremeSolver.fit`.  The chosen solver writes the checkpoint."""
        check_types(self, "SelfChoice: ")
        check_count("n_train", self.n_train)
        if problem.surrogate != "auto":
            raise ValueError(
                f"surrogate is {problem.surrogate!r}, expected 'auto' for the solver 'choice'; "
                "name a solver that knows it"
            )
        begun = time.perf_counter()
        errors = self._errors(problem, self._small_enough(problem))
        # One-vs-some wins ties because it has a certificate.
        chosen = min(errors, key=lambda name: errors[name])
        solver, given = self._candidates(problem)[chosen]
        spent = time.perf_counter() - begun

        def later(record: dict[str, Any]) -> bool:
            record["seconds"] += spent
            return after is not None and after(record)

        result = solver.fit(given, later, checkpoint)
        told = {"solver": chosen, "surrogate": given.surrogate, "trial_errors": errors}
        result.settings = {**result.settings, **told}
        return result

    def _candidates(
        self, problem: ExtremeProblem
    ) -> dict[str, tuple[OneVsSome | SampledSoftmax | OneVsRest, ExtremeProblem]]:
        """Solvers by name, each with the problem adapted to it."""
        machines = OneVsSome() if self.machines is None else self.machines
        softmax = SampledSoftmax() if self.softmax is None else self.softmax
        # Few passes from zero regularise softmax regression by themselves.
        return {
            machines.name: (machines, replace(problem, surrogate="squared-hinge")),
            softmax.name: (softmax, replace(problem, surrogate="crf", alpha=0.0)),
            OneVsRest.name: (OneVsRest(), replace(problem, surrogate="squared-hinge")),
        }

    def _small_enough(self, problem: ExtremeProblem) -> list[str]:
        """Names of solvers within the memory limit on all rows; without any, the first's error."""
        names, refused = [], []
        for name, (solver, given) in self._candidates(problem).items():
            if name == OneVsRest.name and problem.X.nnz * problem.n_classes > ALL_ROWS:
                continue
            try:
                solver.refuse_large(given)
            except ValueError as error:
                refused.append(error)
            else:
                names.append(name)
        if not names:
            raise refused[0]
        return names

    def _errors(self, problem: ExtremeProblem, names: list[str]) -> dict[str, float]:
        """Sum of held-out top-1 and top-5 errors, by solver."""
        trial, X, y = self._trial(problem)
        errors = {}
        for name in names:
            solver, given = self._candidates(trial)[name]
            result = solver.fit(given)
            if result.stop_reason == "interrupted":
                raise KeyboardInterrupt  # a trial's model lacks classes: do not keep it
            errors[name] = missed(result.weights, X, y)
        return errors

    def _trial(self, problem: ExtremeProblem) -> tuple[ExtremeProblem, Any, np.ndarray]:
        """A small problem, held-out rows and their classes; -1 for unknown classes."""
        known = np.flatnonzero(problem.shares > 0)
        rows = np.random.default_rng(problem.seed).permutation(known)
        held = min(MOST_HELD_OUT, max(1, len(rows) // 3))
        train, rest = rows[held : held + self.n_train], rows[:held]
        if not len(train):
            train = rest
        classes = np.unique(problem.y[train])
        number = np.full(problem.n_classes, -1, np.int32)
        number[classes] = np.arange(len(classes))
        X = problem.X[train]
        features = np.unique(X.indices) if X.nnz else np.zeros(1, np.int32)
        weight = problem.sample_weight
        trial = replace(
            problem,
            X=X[:, features],
            y=number[problem.y[train]],
            n_classes=max(2, len(classes)),
            # Keep the weight of each example relative to the regulariser.
            alpha=problem.alpha * len(problem.y) / len(train),
            sample_weight=None if weight is None else weight[train],
            rivals=None,
            start=None,
            max_memory=None,
        )
        return trial, problem.X[rest][:, features], number[problem.y[rest]]


def missed(weights: Postings, X: Any, y: np.ndarray) -> float:
    """Return the sum of the top-1 and top-5 errors.

    Parameters
    ----------
    weights : Postings
    X : csr_matrix of float32 of shape (n, n_features)
    y : ndarray of int32 of shape (n,)

    Returns
    -------
    float
        From 0 to 2.
    """
    best = weights.top(X, min(5, weights.n_classes))[0]
    right = best == y[:, None]
    return float(2 - right[:, 0].mean() - right.any(axis=1).mean())
