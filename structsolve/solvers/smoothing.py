"""Quasi-Newton steps on the margin, smoothed less and less."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from ..surrogates._soft_margin import SoftMargin
from .base import Solver, other_solvers
from .lbfgs import LBFGS, LBFGSRun
from .problem import Problem
from .run import Run, Start, checked_weights

# The first temperature, as a share of the margin of zero weights; factor of each further one, and
# the least: the smooth function is then the margin but for rounding.
FIRST, COOLER, LEAST = 0.1, 0.3, 1e-9
# Quasi-Newton steps of a pass at most, after which the margin itself is computed.
STEPS = 10


class Smoothing(Solver):
    """Quasi-Newton steps (L-BFGS) on the smoothed margin, ``tau log sum_y exp(H_iy / tau)``.

    ``H_iy`` is the margin of label y: its loss plus its score less that of the truth.  The sum over
    the labels of sequences, trees and others is that of their conditional random field.  The smooth
    function is at most tau times the logarithm of their number above the largest, and its gradient
    is a mixture of cuts, which is a point of the margin's own dual: each pass has a certificate of
    the margin (Nesterov, Smooth minimization of non-smooth functions, 2005).  The temperature tau
    falls whenever the smooth problem is solved as well as it tells of the margin.

    It suits data that no model fits: there very many labels of an example stay within the margin,
    and block-coordinate steps would visit their dual variables again and again.
    :class:`~structsolve.solvers.Auto` says where it takes it.

    Parameters
    ----------
    memory : int, default=20
        Number of past steps used to estimate the curvature.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve import StructuredSVM
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> y = np.random.default_rng(1).integers(3, size=300)
    >>> model = StructuredSVM("multiclass", solver="smoothing", alpha=1e-3, tol=0.01).fit(X, y)
    >>> model.stop_reason_
    'converged'
    """

    name = "smoothing"
    needs_dual = True
    needs_weights = True
    uses_gram = False

    def __init__(self, memory: int = 20):
        self.memory = memory

    def start(self, start: Start) -> Run:
        """Begin an optimisation; see :meth:`Solver.start`."""
        self.check_integer("memory", 1)
        self.check(start.problem)
        return SmoothingRun(self, start)

    def check(self, problem: Problem) -> None:
        """Raise ValueError for a problem that this solver cannot take; see :meth:`Solver.check`."""
        super().check(problem)
        if soft_margin(problem) is None:
            raise ValueError(
                f"solver {self.name!r} needs the surrogate 'margin', a loss that decomposes, the "
                "structure's own oracle and exact marginals, as those of surrogate 'crf'; found "
                f"{problem.surrogate_name!r}, the loss {type(problem.loss).__name__} and the "
                f"structure {problem.space.structure.name!r}; use {other_solvers(problem)}"
            )


def soft_margin(problem: Problem) -> SoftMargin | None:
    """Return the smoothed margin of a problem, None if it has none.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    SoftMargin or None
    """
    # An oracle of the user's own may leave labels out, which marginals do not.
    if not getattr(problem.surrogate, "over_hull", False) or problem.backend is not None:
        return None
    try:
        projection = problem.task.projection("entropy")
    except ValueError:
        return None
    if not (projection.gibbs and projection.exact):
        return None
    return SoftMargin(projection, problem.parts, problem.loss)


class SmoothingRun(Run):
    """One optimisation by :class:`Smoothing`.

    Parameters
    ----------
    solver : Smoothing
    start : Start
    """

    def __init__(self, solver: Smoothing, start: Start):
        self.solver, self.given = solver, start
        smooth = copy(start.problem)
        soft = soft_margin(start.problem)
        assert soft is not None  # by check()
        self.soft = smooth.surrogate = soft
        inner = replace(start, problem=smooth)
        self.inner = LBFGSRun(LBFGS(memory=solver.memory), inner)
        self.best_w, self.best_primal = self.inner.best_w, np.inf
        self._keep_best([np.zeros(start.problem.dim)])
        size = self.best_primal or 1.0
        self._keep_best([self.inner.best_w])
        self.first, self.least = FIRST * size, LEAST * size
        self.soft.temperature = self.first

    def step(self) -> dict[str, Any]:
        """Take quasi-Newton steps at one temperature, compute the margin, and perhaps cool."""
        given, inner, calls, before = self.given, self.inner, 0, self.best_primal
        inner.given.n_jobs = given.n_jobs
        for _ in range(STEPS):
            more, moved, _ = inner.advance()
            calls += more
            if done := not moved or self._is_solved():
                break
        calls += self._keep_best([inner.best_w])
        record = self.certify()
        record["oracle_calls"], record["temperature"] = calls, self.soft.temperature
        if done and self.soft.temperature > self.least:
            self.soft.temperature = max(COOLER * self.soft.temperature, self.least)
            inner.slope = None  # of another function
            inner.forget()
        elif not moved and not self.best_primal < before:
            record["failed"] = "no step lowers the objective by more than rounding errors"
        return record

    def _is_solved(self) -> bool:
        """Return whether more steps at this temperature would tell little of the margin."""
        inner, alpha = self.inner, self.given.alpha
        assert inner.slope is not None
        # The gap of the smooth problem; the rest of the difference is its distance from the margin.
        residual = inner.slope + alpha * inner.best_w
        gap = float(residual @ residual) / (2 * alpha)
        return 2 * gap <= inner.best_primal - inner.best_dual

    def certify(self) -> dict[str, Any]:
        """Return primal, dual and gap of the margin; every pass certifies them."""
        return self._certified(self._near(self.inner.best_dual, self.least))

    def weights(self) -> np.ndarray:
        """Return a copy of the best weights."""
        return self.best_w.copy()

    def memory(self) -> dict[str, int]:
        """Return the bytes held, by purpose."""
        return self.inner.memory()

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything a checkpoint needs; see :meth:`Run.state`."""
        meta, arrays = self.inner.state()
        own = {"best_primal": self.best_primal, "temperature": self.soft.temperature, "inner": meta}
        return own, arrays | {"margin_w": self.best_w}

    def restore(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Continue from a checkpoint."""
        if not self.least <= meta["temperature"] < np.inf:
            raise ValueError(f"temperature is {meta['temperature']}: expected a positive number")
        (self.best_w,) = checked_weights(self, arrays, ["margin_w"])
        self.inner.restore(meta["inner"], arrays)
        self.best_primal, self.soft.temperature = meta["best_primal"], meta["temperature"]
        self.given.alpha = self.inner.given.alpha

    def continue_at(self, alpha: float) -> None:
        """Continue with another alpha from the current weights (a path over alpha).

        Parameters
        ----------
        alpha : float
        """
        self.inner.continue_at(alpha)
        self.given.alpha = alpha
        self.soft.temperature, self.inner.slope = self.first, None
        self.best_primal = np.inf
        self._keep_best([self.best_w])
