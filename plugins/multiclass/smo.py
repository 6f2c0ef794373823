"""Sequential minimal optimisation: pair steps for multiclass kernel models."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.solvers._simplex import SimplexLoop
from structsolve.solvers.base import Solver
from structsolve.solvers.bcfw_run import BCFWRun
from structsolve.solvers.exact_steps import simplex_duals
from structsolve.solvers.problem import Problem
from structsolve.solvers.run import Start

# A pass ends at this share of the tolerated gap: the certified weights differ by rounding, and a
# slightly better model is welcome.
GOAL = 0.35
# Maximum number of steps of a pass, per example.
PASS_STEPS = 10
# Maximum number of steps of a native call, so that Ctrl-C works.
CALL = 5_000
# "bcfw" uses pair steps for kernel models with at most this many classes, because the time of the
# search for the best step grows with the number of classes.
FEW_CLASSES = 32


class SMO(Solver):
    """Sequential minimal optimisation of kernel models (Platt 1998), by the steps of largest gain.

    A step moves weight between two classes in the dual variables of two rows at once: the row with
    the largest gain of a single step, and the row with the largest joint gain with it (the pair
    choice of Fan, Chen, Lin 2005).  There is no initial pass over all rows, and only rows of the
    kernel matrix that a step needs are computed.  The solver supports ``kernel=`` and structures of
    one class per row, such as ``"multiclass"``; ``BCFW(steps="auto")`` uses it up to 32 classes.

    Notes
    -----
    Each record of the history is certified, and has the number of ``steps``.  Rows that have all
    weight on one class, and are far from moving, are visited again only when the other rows are
    near the required gap (shrinking); the certificate covers all rows.

    Kernel values of all rows have a common part, such as that of the constant feature.  Steps of
    single rows make the scores of all other rows oscillate along it; opposite moves of two rows
    do not change it.

    Raises
    ------
    ValueError
        At fit, without a kernel, for other structures, and for surrogates whose dual variables do
        not form a simplex per row.

    Examples
    --------
    >>> from structsolve import StructuredSVM
    >>> from structsolve.plugins.multiclass import SMO
    >>> model = StructuredSVM("multiclass", kernel="rbf", solver=SMO(), tol=1e-6)
    >>> model = model.fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 1, 0])
    >>> model.stop_reason_, model.history_[-1]["certified"]
    ('converged', True)
    """

    name = "smo"
    needs_dual = True
    # BCFWRun needs these attributes.
    averaging = False
    constraints = None

    @classmethod
    def suits(cls, problem: Problem) -> bool:
        """Return True for kernel models of few classes a row; see :meth:`Solver.suits`."""
        node = problem.space.layout.node
        return bool(
            not problem.potentials.has_weights
            and problem.surrogate.affine
            and problem.penalty is None
            and simplex_duals(problem)
            and node is not None
            and node.shape[0] <= FEW_CLASSES
        )

    def start(self, start: Start) -> SMORun:
        """Begin an optimisation; see :meth:`Solver.start`."""
        self.check(start.problem)
        return SMORun(self, start)

    def check(self, problem: Problem) -> None:
        """Raise ValueError for a problem that this solver cannot take; see :meth:`Solver.check`."""
        super().check(problem)
        if problem.potentials.has_weights or not simplex_duals(problem):
            raise ValueError(
                f"solver {self.name!r} needs a Mercer kernel, a structure whose labels share no "
                "parts ('multiclass'), the surrogate 'margin' and no node_scale; found "
                f"{'kernel=None' if problem.potentials.has_weights else 'a kernel'}, "
                f"{problem.space.structure.name!r} and {problem.surrogate_name!r}; use "
                "solver='bcfw'"
            )


class SMORun(BCFWRun):
    """One optimisation by :class:`SMO`.

    Parameters
    ----------
    solver : SMO
    start : Start
    """

    def __init__(self, solver: SMO, start: Start):
        self.exact = True
        problem = start.problem
        loop = SimplexLoop(
            problem.potentials, problem.surrogate, problem.labels, problem.weights, start.alpha
        )
        self._begin(solver, start, loop)

    def step(self) -> dict[str, Any]:
        """Take steps on all rows, and on active rows alone, until the gap is small enough."""
        steps = self._climb()
        self.passes += 1
        record = self.certify()
        self.last_dual = self.dual
        self.estimate = record["gap"]
        return {**record, "steps": steps, "cuts": self.loop.count}

    def _climb(self) -> int:
        """Take the steps of a pass; return their number."""
        n = self.given.problem.n
        everyone, most, steps = np.arange(n), PASS_STEPS * n, 0
        while steps < most:
            taken, gap = self._steps(everyone, min(n, most - steps))
            steps += taken
            if taken == 0 or gap <= self._goal():
                break
            awake = np.flatnonzero(self.loop.moved.view(bool))
            with self._focus(awake):
                if self.focused:
                    steps += self._steps(awake, most - steps)[0]
        return steps

    def _steps(self, chosen: np.ndarray, most: int) -> tuple[int, float]:
        """Take steps on chosen examples; return the number of steps and these examples' gap."""
        total, taken, gap, goal = 0, 1, np.inf, self._goal()
        while taken and total < most and gap > goal:
            taken, gap = self.loop.greedy(chosen, 0.0, min(CALL, most - total), goal)
            total += taken
            goal = self._goal()
        return total, gap

    def _goal(self) -> float:
        """Return the gap that ends a pass, from the dual, which is at most the primal."""
        return GOAL * self.given.tol * max(self.dual, 0.0)
