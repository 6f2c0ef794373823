"""Sequential minimal optimisation: pair steps for kernel models of rows with one of K classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._simplex import SimplexLoop
from .base import Solver, Start
from .bcfw import BCFWRun, simplex_duals
from .problem import Problem

# A pass ends where the gap is this share of what is asked: the certificate is for other weights, up
# to rounding, and the model may as well be a little better than asked.
GOAL = 0.35
# Steps of a pass, at most so many for each example.
PASS_STEPS = 10
# Steps of a call into native code, for Ctrl-C.
CALL = 5_000
# Looking for the best step takes time with every class: "bcfw" leaves kernel models of at most so
# many to pair steps.
FEW_CLASSES = 32


class SMO(Solver):
    """Sequential minimal optimisation of kernel models (Platt 1998): steps where they gain most.

    A step moves weight between two classes in the dual variables of two rows at once: of the row
    where a step of its own gains most, and of the one that gains most together with it (as Fan,
    Chen, Lin 2005 choose their pairs).  No pass over all rows comes first, and only rows of the
    kernel matrix that a step needs are computed.  It is for ``kernel=`` and structures of one class
    per row, such as ``"multiclass"``; ``BCFW(steps="auto")`` hands those of up to 32 classes over.

    Notes
    -----
    Each record of the history is certified, and has the number of ``steps``.  Rows whose weight is
    all on one class, and far from moving, are looked at again only when the others have come near
    the gap that is asked (shrinking); the certificate is of all rows.

    Kernel values of all rows have a part in common, such as that of the constant feature.  Steps of
    single rows push the scores of all others to and fro along it; two rows that move against each
    other leave it as it is.

    Raises
    ------
    ValueError
        At fit, without a kernel, for other structures, and for surrogates without a simplex of
        dual variables for each row.

    Examples
    --------
    >>> from structsolve import StructuredSVM
    >>> from structsolve.solvers import SMO
    >>> model = StructuredSVM("multiclass", kernel="rbf", solver=SMO(), tol=1e-6)
    >>> model = model.fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 1, 0])
    >>> model.stop_reason_, model.history_[-1]["certified"]
    ('converged', True)
    """

    name = "smo"
    needs_dual = True
    # The run it shares with BCFW needs these.
    averaging = False
    constraints = None

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


def suits(problem: Problem) -> bool:
    """Return whether pair steps are the fastest way to train a problem.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    bool
        True for kernel models of rows with one of a few classes.
    """
    node = problem.space.layout.node
    return bool(
        not problem.potentials.has_weights
        and problem.surrogate.affine
        and problem.penalty is None
        and simplex_duals(problem)
        and node is not None
        and node.shape[0] <= FEW_CLASSES
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
        """Take steps of all rows, and of those awake alone, until the gap is what was asked."""
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
        """Take steps on chosen examples; return their number, and the gap of these examples."""
        total, taken, gap, goal = 0, 1, np.inf, self._goal()
        while taken and total < most and gap > goal:
            taken, gap = self.loop.greedy(chosen, 0.0, min(CALL, most - total), goal)
            total += taken
            goal = self._goal()
        return total, gap

    def _goal(self) -> float:
        """Return the gap that ends a pass; the dual is less than the primal."""
        return GOAL * self.given.tol * max(self.dual, 0.0)
