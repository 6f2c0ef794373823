"""Cutting planes (BMRM), one-slack and n-slack, with linear constraints on the weights."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ..utils.arrays import part_of
from ..utils.params import parameters
from . import qp
from ._bundles import Bundle, NSlackBundle, OneSlackBundle
from .base import Solver
from .cut_model import Model
from .run import Run, Start, checked_weights
from .weight_constraints import assemble

# If the gap, at its rate over the last LAST_PASSES, needs more than TOO_MANY further passes, the
# mean is split into its examples, provided that they are few.  The mean of many examples is smooth,
# and a cut of each would make the program slow.
LAST_PASSES, TOO_MANY = 30, 100
# Maximum number of examples, and of entries of their cuts per pass: the program stays small.
FEW_EXAMPLES, MOST_NUMBERS = 100, 2_500_000
# The step grows by the factor LONGER if the objective falls by the share KEPT of the predicted
# decrease, and returns to its initial size if the objective does not fall.
KEPT, LONGER = 0.8, 1.5
# What a checkpoint holds as it is.
STATE = ("best_primal", "best_dual", "least", "box")


@parameters
class CuttingPlane(Solver):
    """Cutting planes on the primal: one exact pass over all examples per iteration.

    A pass at fixed weights gives the primal exactly and a cut below the mean surrogate (one-slack,
    BMRM) or below the surrogate of each example (n-slack); a small quadratic program over all cuts
    so far gives the dual and the next weights.  Both ends of the gap are certified after every
    pass.  It needs few passes with strong regularisation, has certificates under linear
    constraints on the weights and with an unpenalised intercept, and runs its passes in ``n_jobs``
    threads with bit-identical results.

    Parameters
    ----------
    slack : {"one", "n"}
        One cut per pass for the mean of all examples, or one per example and pass. The latter takes
        fewer passes with a much larger program; use it for small data and costly oracles.  Where
        one cut per pass is too few (see Notes), at most 100 examples get a cut each in the
        one-slack form too.
    step : float, optional
        The next cut is taken at this fraction of the way from the best weights to the model's
        minimiser. 1 is plain BMRM, which is unstable while the model is poor.  By default 1 in the
        n-slack form; in the one-slack form it starts at 0.2, grows by half, up to 1, when the
        objective falls by at least four fifths of the predicted decrease, and returns to 0.2 when
        it does not fall.
    inactive : int, optional
        Drop a cut after this many consecutive programs with weight 0; by default 50 in the
        one-slack form and 5 in the n-slack form.
    constraints : list of LinearConstraint, WeightBounds or SuperModular, optional
        Constraints on w; also any object with ``rows(layout)``.

    Notes
    -----
    The mean surrogate of few examples has kinks in hundreds of directions; one cut describes one.
    If after 30 passes the gap would need 100 more to reach ``tol``, the one-slack form restarts
    from the best weights with one cut per example and pass, where these are at most 100: ``groups``
    in the records is the number of sums with their own cuts.

    Weights outside the norm are bounded by a box while the model does not bound them; the box grows
    when they reach it and does not enter the reported dual.

    Examples
    --------
    >>> from structsolve import StructuredSVM
    >>> from structsolve.solvers import CuttingPlane
    >>> model = StructuredSVM("multiclass", solver=CuttingPlane(slack="n"), tol=1e-6)
    >>> model.fit([[0.0], [1.0], [2.0]], [0, 1, 1]).history_[-1]["certified"]
    True
    """

    name = "cutting-plane"
    needs_convex = True
    free_coordinates = True
    needs_weights = True
    uses_gram = False
    takes_marginals = True

    slack: str = "one"
    step: float | None = None
    inactive: int | None = None
    constraints: Any = None

    def start(self, start: Start) -> CuttingPlaneRun:
        """Begin an optimisation; see :meth:`Solver.start`."""
        self.check_choice("slack", ("one", "n"))
        if self.step is not None and not 0 < self.step <= 1:
            raise ValueError(f"CuttingPlane: step is {self.step!r}, expected 0 < step <= 1")
        if self.inactive is not None:
            self.check_integer("inactive", 1)
        self.check(start.problem)
        return CuttingPlaneRun(self, start)


class CuttingPlaneRun(Run):
    """One optimisation by :class:`CuttingPlane`.

    Parameters
    ----------
    solver : CuttingPlane
    start : Start
    """

    def __init__(self, solver: CuttingPlane, start: Start):
        self.solver, self.given = solver, start
        problem = start.problem
        layout = problem.space.layout
        self.constraints = assemble(solver.constraints, layout, problem.examples)
        self.feasible = self.constraints.polyhedron(strict=False)
        self.free = np.zeros(0, dtype=np.int64)
        inside = np.ones(problem.dim)
        if problem.penalty is not None:
            inside = problem.penalty
            stored = np.zeros(problem.dim)
            for block in layout.blocks:
                layout.view(stored, block.name)[...] = 1
            self.free = np.flatnonzero((problem.penalty == 0) & (stored > 0))
        self.inside = inside
        self.gaps: list[float] = []
        if solver.slack == "one":
            self._use(OneSlackBundle(problem.dim, self.constraints, inside))
        else:
            self._use(NSlackBundle(problem.dim, problem.weights))
        self.box = 10.0
        self.best_primal, self.best_dual, self.least = np.inf, 0.0, 1.0
        self.w = np.zeros(problem.dim)
        self.next = np.zeros(problem.dim) if start.w is None else np.array(start.w)
        if self.constraints.violation(self.next) > 1e-9:
            # The feasible weights of least norm.
            self.w = qp.solve(self.model()).w
            self.next = self.w.copy()
        if self.feasible is not None:
            self.next = self.feasible.nearest(self.next)
        self.best_w = self.next.copy()

    def _use(self, bundle: Bundle) -> None:
        solver, self.bundle = self.solver, bundle
        self.share = bundle.step if solver.step is None else float(solver.step)
        self.adapts = solver.step is None and self.share < 1
        self.patience = bundle.inactive if solver.inactive is None else int(solver.inactive)

    @property
    def threshold(self) -> float:
        """Least rise of the model that makes a cut worth keeping: 1 % of the gap at ``tol``."""
        goal = 0.01 * max(self.given.tol, 1e-14) * abs(self.best_primal)
        return goal if np.isfinite(goal) else 0.0

    def model(self) -> Model:
        """Return the current cutting-plane model.

        Returns
        -------
        Model
        """
        return Model(
            cuts=self.bundle.cuts,
            b=self.bundle.b,
            group=self.bundle.group,
            caps=self.bundle.caps,
            alpha=self.given.alpha,
            A=self.constraints.A,
            c=self.constraints.c,
            equal=self.constraints.equal,
            free=self.free,
            box=self.box,
            scale=max(self.best_primal, self.least) if self.best_primal < np.inf else 1.0,
            gram=self.bundle.gram,
        )

    def step(self) -> dict[str, Any]:
        """Take cuts in one pass, and minimise the model."""
        problem, w = self.given.problem, self.next
        promised = self._promised(w)
        mean, rise, calls = self.bundle.add_cuts(self, w)
        primal = problem.regulariser(w, self.given.alpha) + mean
        if promised is not None:
            self._adapt_step(self.best_primal - primal, self.best_primal - promised)
        if self.best_primal == np.inf:
            # If the optimum is 0, accuracy is relative to the first primal.
            self.least = max(1e-6 * primal, 1e-300)
        if primal < self.best_primal:
            self.best_primal, self.best_w = primal, w.copy()
        begun = time.perf_counter()
        # If new cuts hardly raise the model, its minimiser is the next point.
        failed = None
        try:
            self._minimise(1.0 if rise <= 0.1 * (self.best_primal - self.best_dual) else self.share)
        except ArithmeticError as error:
            failed = str(error)
        record = self.certify()
        if failed is not None:
            record["failed"] = failed
        record["oracle_calls"] = calls
        record["cuts"] = len(self.bundle.b)
        record["groups"] = len(self.bundle.caps)
        record["qp_seconds"] = time.perf_counter() - begun
        if record["groups"] == 1 and self.solver.slack == "one":
            self._split_where_slow(record["gap"])
        return record

    def _promised(self, w: np.ndarray) -> float | None:
        """Return the objective that the model predicts at w, if the step adapts to it."""
        if not self.adapts or self.best_primal == np.inf or not len(self.bundle.b):
            return None
        mean = float(self.bundle.caps @ self.model().slacks(w))
        return float(self.given.problem.regulariser(w, self.given.alpha)) + mean

    def _adapt_step(self, fall: float, promised: float) -> None:
        """Lengthen the step after a decrease as predicted, else shorten it."""
        if fall >= KEPT * max(promised, 0.0) and fall > 0:
            self.share = min(1.0, LONGER * self.share)
        elif fall <= 0:
            self.share = self.bundle.step

    def _split_where_slow(self, gap: float) -> None:
        """Switch to one cut per example if one cut per pass would take too long."""
        self.gaps = [*self.gaps[-LAST_PASSES:], gap]
        goal = max(self.given.tol, 1e-12) * abs(self.best_primal)
        if not self._may_split() or len(self.gaps) <= LAST_PASSES or gap <= goal:
            return
        fall = np.log(max(self.gaps[0] / gap, 1)) / LAST_PASSES
        if np.log(gap / goal) > TOO_MANY * fall:
            self._split()
            self.next = self.best_w

    def _may_split(self) -> bool:
        problem = self.given.problem
        return 2 <= problem.n <= min(FEW_EXAMPLES, MOST_NUMBERS // max(problem.dim, 1))

    def _split(self) -> None:
        """Start a model with cuts of single examples; keep bounds and weights."""
        problem = self.given.problem
        parts = [(i, i + 1) for i in range(problem.n)]
        bundle = OneSlackBundle(problem.dim, self.constraints, self.inside, parts)
        # This is the n-slack form, whose defaults suit it.
        bundle.step, bundle.inactive = NSlackBundle.step, NSlackBundle.inactive
        self._use(bundle)

    def _minimise(self, share: float) -> None:
        """Minimise the model; sets the dual, and the next point ``share`` of the way there."""
        solution, bundle = qp.solve(self.model()), self.bundle
        rose = solution.lower > self.best_dual
        self.best_dual = max(self.best_dual, solution.lower)
        self.w = solution.w
        if solution.at_box:
            self.box *= 10
        used = solution.x[len(self.constraints.c) :] > 1e-9 * bundle.caps[bundle.group]
        bundle.idle = np.where(used, 0, bundle.idle + 1)
        stale = bundle.idle >= self.patience
        # Dropping cuts while the dual does not rise could cycle.
        if rose and stale.any():
            bundle.keep(~stale)
        self.next = self.w if share == 1 else (1 - share) * self.best_w + share * self.w
        if self.feasible is not None:
            # Programs have tolerances; decoders may rely on the rows.
            self.next = self.feasible.nearest(self.next)

    def certify(self) -> dict[str, Any]:
        """Return primal, dual and gap, which every pass certifies."""
        # At the optimum rounding may lift the dual above the primal; contradicts() reports larger
        # differences.
        dual, rounding = self.best_dual, 1e-3 * max(self.best_primal, self.least)
        if dual <= self.best_primal + rounding:
            dual = min(dual, self.best_primal)
        if self.best_primal <= 1e-9 * self.least:  # the optimum is 0, up to rounding
            dual = self.best_primal
        return self._certified(dual)

    def contradiction(self) -> str | None:
        """Return how the cuts contradict the oracle's bounds at the best weights."""
        problem = self.given.problem
        known = problem.regulariser(self.best_w, self.given.alpha)
        known += float(self.bundle.caps @ self.model().slacks(self.best_w))
        if known <= self.best_primal + 1e-3 * max(self.best_primal, self.least):
            return None
        return (
            f"labels that the oracle returned for other weights prove an objective of {known:g}, "
            f"above that of its answers, {self.best_primal:g}"
        )

    def weights(self) -> np.ndarray:
        """Return a copy of the best weights."""
        return self.best_w.copy()

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything a checkpoint needs; see :meth:`Run.state`."""
        meta = {name: getattr(self, name) for name in (*STATE, "gaps", "share")}
        meta |= {"alpha": self.given.alpha, "groups": len(self.bundle.caps)}
        arrays = {f"cuts_{k}": v for k, v in self.bundle.arrays().items()}
        return meta, arrays | {"w": self.w, "next": self.next, "best_w": self.best_w}

    def restore(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Continue from a checkpoint."""
        problem = self.given.problem
        if meta["groups"] not in (len(self.bundle.caps), problem.n):
            raise ValueError(f"groups is {meta['groups']}, expected 1 or {problem.n}")
        if not (0 < meta["box"] < np.inf and meta["least"] > 0 and 0 < meta["alpha"] < np.inf):
            raise ValueError(
                f"box is {meta['box']}, least {meta['least']}, alpha {meta['alpha']}: expected "
                "positive numbers"
            )
        weights = checked_weights(self, arrays, ("w", "next", "best_w"))
        for name in STATE:
            setattr(self, name, meta[name])
        self.given.alpha = meta["alpha"]
        self.gaps = [float(gap) for gap in meta["gaps"]]
        share = float(meta["share"])
        if not 0 < share <= 1:
            raise ValueError(f"share is {share}, expected 0 < share <= 1")
        if self.solver.slack == "one" and meta["groups"] > 1:
            if not self._may_split():
                raise ValueError(f"groups is {meta['groups']}, too many for this problem")
            self._split()
        self.share = share
        self.bundle.restore(part_of(arrays, "cuts_"))
        self.w, self.next, self.best_w = weights

    def continue_at(self, alpha: float) -> None:
        """Continue with another alpha: cuts hold for every alpha (a path over alpha).

        Parameters
        ----------
        alpha : float
        """
        problem = self.given.problem
        if np.isfinite(self.best_primal):
            self.best_primal += problem.regulariser(self.best_w, alpha - self.given.alpha)
        self.given.alpha, self.best_dual, self.gaps = alpha, 0.0, []
        if len(self.bundle.b):
            self._minimise(self.share)
