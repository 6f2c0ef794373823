"""One machine per label on all rows, for rows of several labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.plugins.extreme.solvers._one_vs_rest import BLOCK, RestMachines, RestSpace
from structsolve.plugins.extreme.solvers.base import (
    After,
    ExtremeProblem,
    ExtremeResult,
    ExtremeSolver,
)
from structsolve.plugins.extreme.solvers.one_vs_some_run import (
    BLOCKS,
    ENTRIES_PER_UNIT,
    Run,
    assembled,
    train,
)
from structsolve.plugins.extreme.weights.postings import Postings
from structsolve.solvers.checkpoint import Checkpoint
from structsolve.utils.memory import refuse_too_large
from structsolve.utils.parallel import effective_jobs, over_examples
from structsolve.utils.params import check_types

# A block is done when its gradients, in units of scores, are optimal within ACCURACY * tol: the
# relative gap is then well below tol on thousands of rows; on few it is not (600 rows at tol .01:
# 2 % with C = 1, 19 % with C = 10).
ACCURACY = 60
# Bytes of a kept weight, before and after they are sorted by feature.
WEIGHT_BYTES = 24


class OneVsRest(ExtremeSolver):
    """One machine per label, on all rows: those with the label against all others.

    The objective is ``alpha / 2 sum_c (||w_c||^2 + b_c^2) + cost sum_i s_i sum_c max(0, 1 - y_ic
    (w_c . x_i + bias b_c))^2`` with the shares ``s_i`` of the examples.  Sixteen machines are
    solved at a time, in the dual: each row is read once for all of them.  The work grows with the
    non-zeros of X times the number of labels.

    The record has ``primal``, the objective of the model after small weights are dropped, and
    ``dual``, a lower bound for the machines.  ``machines_gap`` is the gap before small weights are
    dropped.

    Parameters
    ----------
    cost : float, default=0.5
        Weight of the losses.
    bias : float, default=0.5
        Value of a constant feature, whose weight is penalised like the others; 0 for none.
    keep : float, default=0.03
        Weights of at most this size are dropped from the model.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from structsolve.plugins.extreme.solvers.base import ExtremeProblem
    >>> from structsolve.plugins.extreme.solvers.one_vs_rest import OneVsRest
    >>> X = sparse.csr_matrix(np.eye(3, dtype=np.float32))
    >>> labels = sparse.csr_matrix([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    >>> y = np.array([0, 1, 2], dtype=np.int32)
    >>> problem = ExtremeProblem(X, y, 3, 0.1, "squared-hinge", labels=labels)
    >>> OneVsRest().fit(problem).weights.top(X, 1)[0].ravel()
    array([0, 1, 2], dtype=int32)
    """

    name = "one-vs-rest"
    unit_rows = True
    several = True

    def __init__(self, cost: float = 0.5, bias: float = 0.5, keep: float = 0.03):
        self.cost = cost
        self.bias = bias
        self.keep = keep

    def fit(
        self, problem: ExtremeProblem, after: After = None, checkpoint: Checkpoint | None = None
    ) -> ExtremeResult:
        """Train; see :meth:`ExtremeSolver.fit`.

        After Ctrl-C the labels whose machines are not solved have no weights.
        """
        self._check(problem)
        self.refuse_large(problem)
        return train(RestRun(self, problem), after, checkpoint)

    def _check(self, problem: ExtremeProblem) -> None:
        check_types(self, "OneVsRest: ")
        for name, low in (("bias", 0), ("keep", 0)):
            if not low <= getattr(self, name) < np.inf:
                raise ValueError(f"{name} is {getattr(self, name)!r}, expected at least {low}")
        if not 0 < self.cost < np.inf:
            raise ValueError(f"cost is {self.cost!r}, expected a positive number")
        if problem.penalty != "l2" or problem.surrogate not in ("auto", "squared-hinge"):
            raise ValueError(
                f"penalty is {problem.penalty!r}, surrogate {problem.surrogate!r}, expected 'l2' "
                "and 'squared-hinge' for one-vs-rest; other solvers know others"
            )
        problem.check_shares(1e-18, 1e18, "what float32 bears", self.cost)

    def refuse_large(self, problem: ExtremeProblem) -> None:
        """Raise an error if training would take more memory than allowed.

        Parameters
        ----------
        problem : ExtremeProblem

        Raises
        ------
        ValueError
            With the estimate and advice.
        """
        n, d = problem.X.shape
        size = float(effective_jobs(problem.n_jobs) * RestSpace.size(n, d))
        size += WEIGHT_BYTES * problem.X.nnz
        advice = "use solver 'one-vs-some', or fewer features"
        refuse_too_large(size, "one-vs-rest", advice, problem.max_memory)


class RestRun(Run):
    """State of one training on all rows.

    Parameters
    ----------
    solver : OneVsRest
    problem : ExtremeProblem
    """

    solver: Any
    trained: int

    def _first(self) -> Postings:
        self.settings = {"surrogate": "squared-hinge"}
        none = np.zeros(0, np.int32), np.zeros(0, np.float32)
        starts = np.zeros(self.problem.X.shape[1] + 1, np.int64)
        return Postings(starts, *none, self.problem.n_classes)

    def find(self) -> None:
        """Prepare the machines."""
        problem, solver = self.problem, self.solver
        start, classes = problem.own
        order = np.argsort(classes, kind="stable")
        rows = np.repeat(np.arange(len(problem.y), dtype=np.int32), np.diff(start))[order]
        ends = np.cumsum(np.bincount(classes, minlength=problem.n_classes))
        # Rows without a weight would divide by it.
        cost = np.maximum(solver.cost * problem.shares / problem.alpha, 1e-18).astype(np.float32)
        self.machines = RestMachines(
            problem.X,
            np.concatenate([[0], ends]),
            rows,
            cost,
            bias=solver.bias,
            passes=problem.max_iter,
            accuracy=ACCURACY * problem.tol,
            seed=problem.seed,
        )
        self.n_pairs = len(problem.y) * problem.n_classes

    def block(self) -> None:
        """Solve the machines of the next labels."""
        problem, machines, begin = self.problem, self.machines, self.trained
        size = BLOCK * max(1, -(-problem.n_classes // (BLOCK * BLOCKS)))
        end = min(begin + size, problem.n_classes)
        blocks = range(begin, end, BLOCK)

        def work(first: int, last: int, space: RestSpace) -> list[Any]:
            return [
                machines.train(c, min(c + BLOCK, end), space, self.solver.keep)
                for c in blocks[first:last]
            ]

        units = np.arange(len(blocks) + 1) * (problem.X.nnz // ENTRIES_PER_UNIT + 1)
        for pieces in over_examples(
            work, units, problem.n_jobs, lambda: RestSpace(*problem.X.shape)
        ):
            self.pieces += pieces
        self.trained = end

    def _intercept(self) -> np.ndarray | None:
        if not self.solver.bias:
            return None
        trained = [piece[3] for piece in self.pieces]
        rest = np.zeros(self.problem.n_classes - self.trained, np.float32)
        return np.concatenate([*trained, rest])

    def partial(self) -> Postings:
        """Return the weights of the labels that are solved.

        Returns
        -------
        Postings
        """
        if not self.history and self.pieces:
            none = np.zeros(0, np.int32), np.zeros(0, np.float32)
            rest = np.zeros(self.problem.n_classes - self.trained, np.int64)
            intercept = self._intercept()
            pieces = [*self.pieces, (rest, *none)]
            return assembled(pieces, self.problem.X.shape[1], intercept)
        return self.weights
