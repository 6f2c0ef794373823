"""Stochastic subgradient descent (Pegasos), for data streams and quick first models."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from ..utils.params import parameters
from ._sgd import SGDLoop
from ._team import Team
from .base import Solver
from .problem import Problem
from .run import (
    RestartedRun,
    Start,
    batch_threads,
    checked_weights,
    pieces,
    rng_state,
    set_rng_state,
)
from .weight_constraints import assemble, check_examples

# The run steps back where the primal exceeds this multiple of that at w = 0, or after so many
# passes where it is above that at w = 0 at all.
EXPLODED, TRIED = 2, 10
# What a checkpoint holds as it is.
KEPT = ("passes", "best_primal", "zero_primal", "radius", "radius_calls", "dual_b")


@parameters
class SGD(Solver):
    """Stochastic subgradient descent with Pegasos steps (Shalev-Shwartz et al. 2011).

    Step t subtracts ``1 / (alpha (t + t0))`` times the subgradient at one example.  The primal of
    the last and of the average iterate is computed exactly every few passes, and the best of them
    and w = 0 is kept.  The averaged cuts of whole passes are a cut of the objective, and their sum
    follows from two iterates. This gives a dual, and training ends at a certified gap of ``tol``.
    Without a dual (see Notes), training ends, "settled", when the second half of all passes gained
    less than ``tol``.

    Parameters
    ----------
    averaging : {"weighted", "uniform", "none"}
        Weight iterate t by ``t ** power``, weight all equally, or keep no average.
    power : float, default=3.0
        1 weights iterates by t.  The first iterates are far from all later ones: with cubes, the
        first tenth of the steps has a weight of 1e-4 (Shamir, Zhang 2013).
    order : {"permutation", "uniform"}
        Visit each example once per pass in random order, or draw with replacement.
    projection : bool, default=False
        Project onto the ball ``alpha ||w||^2 <= mean H_i(0)`` after each step.  The ball contains
        the solution: ``H_i(0)`` is the largest loss of example i, and the objective is strongly
        convex.
    certify_every : int, default=5
        Compute the primal, by a pass at fixed weights, after every so many passes.
    patience : int, default=5
        Without a dual, training ends after ``2 * patience`` primals at the earliest, when the
        primal is the best so far and fell by at most ``tol`` (relative) in the second half of all
        passes.
    t0 : float, default=0
        Number of steps counted as already taken.  With 0 the first step is large and does not
        depend on the start; with initial weights, 0 means ten passes, in ``partial_fit`` the steps
        of the last record if it counts them.
    constraints : list of SuperModular, LinearConstraint or WeightBounds, optional
        Constraints on w, as for :class:`CuttingPlane`: each step ends with the Euclidean projection
        onto them.
    batch : int, default=1
        Number of examples whose subgradients are computed at the same w, in ``n_jobs`` threads;
        their steps are then taken sequentially.

    Notes
    -----
    Weights outside the norm (an unpenalised intercept) do not shrink and take steps of
    ``1 / sqrt(t + t0)``, because the objective is not strongly convex in them.

    Under constraints ``A w <= c`` the multipliers of the projections are a dual point of the rows.
    Averaged like the cuts, they belong to the same dual, so runs with constraints have a gap too.

    There is no dual with ``order="uniform"`` (a pass is then not a sum over all examples), with
    weights outside the norm, for surrogates that are not convex, and over passes in which
    ``projection`` has moved the iterate. ``dual`` and ``gap`` are then None or keep their last
    values, and records without a dual are not ``certified``.  If the primals of the last and of
    the average iterate are more than twice that at w = 0, or after ten passes still above it
    (by more than ``tol``), steps are too large: the run returns to the best weights, continues with
    steps a tenth as large, and records this (``stepped_back``).

    Examples
    --------
    >>> from structsolve import StructuredSVM
    >>> from structsolve.solvers import SGD
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> model = StructuredSVM("multiclass", solver=SGD(order="uniform"), alpha=1e-3)
    >>> model.fit(X, y).predict(X).tolist()
    [0, 0, 1, 1]
    """

    name = "sgd"
    takes_marginals = True
    incremental = True
    free_coordinates = True
    needs_weights = True

    averaging: str = "weighted"
    power: float = 3.0
    _: KW_ONLY
    order: str = "permutation"
    projection: bool = False
    certify_every: int = 5
    patience: int = 5
    t0: float = 0
    constraints: Any = None
    batch: int = 1

    def start(self, start: Start) -> SGDRun:
        """Begin an optimisation; see :meth:`Solver.start`."""
        self.check_choice("averaging", ("weighted", "uniform", "none"))
        self.check_choice("order", ("permutation", "uniform"))
        self.check_integer("certify_every", 1)
        self.check_integer("patience", 1)
        self.check_integer("batch", 1)
        if not (np.isfinite(self.t0) and self.t0 >= 0):
            raise ValueError(f"SGD: t0 is {self.t0!r}, expected a number >= 0")
        if not 0 <= self.power <= 10:
            raise ValueError(f"SGD: power is {self.power!r}, expected a number from 0 to 10")
        if self.constraints and self.projection:
            raise ValueError(
                "SGD: projection is True, expected False with constraints, because projecting onto "
                "one set after the other does not give the nearest point of both; leave "
                "projection=False"
            )
        self.check(start.problem)
        return SGDRun(self, start)


class SGDRun(RestartedRun):
    """One optimisation by :class:`SGD`.

    Parameters
    ----------
    solver : SGD
    start : Start
    """

    def __init__(self, solver: SGD, start: Start):
        self.solver, self.given = solver, start
        problem = start.problem
        penalty = problem.penalty
        free = np.zeros(0, dtype=np.int64) if penalty is None else np.flatnonzero(penalty == 0)
        t0 = float(solver.t0)
        if start.w is not None and start.w.any() and t0 == 0:
            t0 = float(start.steps) or 10.0 * problem.n
        self.loop = SGDLoop(problem.dim, free, start.alpha, t0)
        rows = assemble(solver.constraints, problem.space.layout, problem.examples)
        self.feasible = rows.polyhedron()
        if self.feasible is not None:
            self.loop.constrain(self.feasible)
        if start.w is not None:
            self.loop.set_weights(start.w)
        self.passes = 0
        self.team = Team(self.loop, batch_threads(solver.batch, start))
        self._bind(problem)

    def move_to(self, problem: Problem) -> None:
        """Continue on other examples with the same t and average.

        Parameters
        ----------
        problem : Problem
            A problem of the same space.

        Raises
        ------
        ValueError
            If the problem has another number of weights.
        """
        if problem.dim != self.loop.v.shape[0]:
            raise ValueError(
                f"the new examples have {problem.dim} weights, the run {self.loop.v.shape[0]}; "
                "make them with the same space"
            )
        check_examples(self.solver.constraints, problem.space.layout, problem.examples)
        self._bind(problem)

    def _bind(self, problem: Problem) -> None:
        self.given.problem = problem
        self.loop.bind(problem.potentials, problem.surrogate, problem.labels, problem.weights)
        self.best_primal, self.best_w = np.inf, np.zeros(0)
        self.zero_primal = np.inf
        self.certified: list[float] = []
        # A dual point with g = alpha dual_w and b = dual_b; it is 0 for the true labels.
        self.dual_w, self.dual_b = np.zeros(problem.dim), 0.0
        self._begin_window()
        self.radius = 0.0
        # Oracle calls for the radius, until a record counts them.
        self.radius_calls = 0
        if self.solver.projection:
            bounds, self.radius_calls = problem.bounds(np.zeros(problem.dim), self.given.n_jobs)
            self.radius = float(np.sqrt(problem.weights @ bounds / self.given.alpha))

    @property
    def has_dual(self) -> bool:
        """Whether the cuts of a pass sum to a cut of the mean surrogate, all weights penalised."""
        return (
            self.solver.order == "permutation"
            and bool(self.given.problem.surrogate.convex)
            and self.given.problem.penalty is None
        )

    def _begin_window(self) -> None:
        """Restart the average of cuts."""
        loop = self.loop
        self.window = {
            "begun": self.passes,
            "tau": float(loop.t + loop.t0),
            "constant": 0.0,
            "projections": int(loop.projections),
        }
        self.window_w = loop.last()

    def _raise_dual(self) -> float:
        """Move the dual point towards the window's to the best value; return that value.

        ``tau w_tau = (tau - 1) w_(tau - 1) + n u_i g_i / alpha`` at every step, so the sum of all
        g between two iterates follows from the iterates.
        """
        loop, window, alpha = self.loop, self.window, self.given.alpha
        passes = self.passes - window["begun"]
        if passes and loop.projections == window["projections"]:
            steps = passes * self.given.problem.n
            w = (loop.t + loop.t0) * loop.last() - window["tau"] * self.window_w
            change = w / steps - self.dual_w
            square = float(change @ change)
            rise = window["constant"] / passes - self.dual_b
            share = rise - alpha * float(self.dual_w @ change)
            if np.isfinite(square) and np.isfinite(share):
                share = min(max(share / max(alpha * square, 1e-300), 0.0), 1.0)
                self.dual_w, self.dual_b = self.dual_w + share * change, self.dual_b + share * rise
        # The cuts of the first passes are far from those at the optimum.
        if self.passes >= 2 * window["begun"]:
            self._begin_window()
        return self.dual_b - 0.5 * alpha * float(self.dual_w @ self.dual_w)

    # The run steps back after an overflow.
    @np.errstate(over="ignore", invalid="ignore")
    def step(self) -> dict[str, Any]:
        """Take as many steps as there are examples."""
        solver, rng, n = self.solver, self.given.rng, self.given.problem.n
        order = rng.permutation(n) if solver.order == "permutation" else rng.integers(0, n, n)
        total, calls = 0.0, self.radius_calls
        self.radius_calls = 0
        power = float(solver.power) if solver.averaging == "weighted" else 0.0
        averaging = solver.averaging != "none"
        with self.team:
            for some in pieces(order):
                part, constant, used = self.loop.run(
                    some, power, averaging, self.radius, solver.batch, self.team
                )
                total += part
                self.window["constant"] += constant
                calls += used
        self.passes += 1
        last = self.loop.last()
        record: dict[str, Any] = {
            "primal": self.given.problem.regulariser(last, self.given.alpha) + total,
            "dual": None,
            "gap": None,
            "certified": False,
            "oracle_calls": calls,
            "steps": int(self.loop.t) + self.given.steps,
        }
        lost = not np.isfinite(record["primal"])
        if lost or self.passes % solver.certify_every == 0:
            record |= self.certify()
            record["oracle_calls"] += calls
            excess = self.present / max((1 + self.given.tol) * self.zero_primal, 1e-300)
            if lost or excess > EXPLODED or (excess > 1 and self.loop.t >= TRIED * n):
                self._step_back()
                record["stepped_back"] = True
        return record

    def _step_back(self) -> None:
        """Restart from the best weights with steps a tenth as large."""
        if not self.best_w.size:  # a stream, whose batches are not compared with w = 0
            raise ValueError(
                "steps led to an objective that is not finite; scale the features to values around "
                "1, or use a larger alpha or t0"
            )
        tau = max(float(self.loop.t + self.loop.t0), 1.0)
        self.loop.restart(self.best_w, 10 * tau)
        self.certified.clear()
        self._begin_window()

    @np.errstate(over="ignore", invalid="ignore")
    def certify(self) -> dict[str, Any]:
        """Return primal, dual and gap of the best of the last iterate, the average and w = 0."""
        candidates = [w for w in (self.loop.averaged(), self.loop.last()) if w is not None]
        spent = self._keep_best(candidates)
        # Batches of a stream are not compared with w = 0, which would take a pass over each.
        if self.zero_primal == np.inf and not self.streams:
            zero = np.zeros(self.given.problem.dim)
            if self.feasible is not None:
                zero = self.feasible.nearest(zero)
            self.zero_primal, calls = self.given.problem.primal(
                zero, self.given.alpha, self.given.n_jobs
            )
            spent += calls
            if not self.best_primal <= self.zero_primal:
                self.best_primal, self.best_w = self.zero_primal, zero
        self.certified.append(self.present)
        dual = self._raise_dual() if self.has_dual else None
        record: dict[str, Any] = {
            "primal": self.best_primal,
            "dual": dual,
            "gap": None if dual is None else self.best_primal - dual,
            "certified": dual is not None,
            "evaluated": True,
            "oracle_calls": spent,
        }
        return record if dual is not None else record | {"settled": self._settled()}

    def _settled(self) -> bool:
        """Return whether the second half of all passes gained less than ``tol``.

        The error falls like 1 over the steps, including ``t0``, so the gain of the second half is
        about the remaining error, unless earlier weights happened to be better.
        """
        n, close = len(self.certified), self.given.tol * abs(self.best_primal)
        if n < 2 * self.solver.patience or self.present > self.best_primal + close:
            return False
        # After a step back t0 is large, so the first half stays empty for long.
        half = int(n * (1 - self.loop.t0 / max(self.loop.t, 1)) / 2)
        return half > 0 and self.certified[half - 1] - self.present <= close

    def weights(self) -> np.ndarray:
        """Return a copy of the best weights so far."""
        if self.best_w.size:
            return self.best_w.copy()
        w = self.loop.averaged()
        return self.loop.last() if w is None else w

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything a checkpoint needs; see :meth:`Run.state`."""
        scalars, arrays = self.loop.state()
        meta = {name: getattr(self, name) for name in KEPT} | scalars
        meta |= {
            "rng": rng_state(self.given.rng),
            "certified": self.certified,
            "window": self.window,
        }
        own = {"best_w": self.best_w, "dual_w": self.dual_w, "window_w": self.window_w}
        if self.feasible is not None:
            own["multipliers"] = self.feasible.multipliers
        return meta, arrays | own

    def restore(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Continue from a checkpoint."""
        set_rng_state(self.given.rng, meta["rng"])
        for name in KEPT:
            setattr(self, name, meta[name])
        self.certified = [float(primal) for primal in meta["certified"]]
        self.window = {name: type(own)(meta["window"][name]) for name, own in self.window.items()}
        # Empty before the first certificate.
        self.best_w = arrays["best_w"].copy()
        if self.best_w.size:
            self.best_w = checked_weights(self, arrays, ["best_w"])[0]
        self.dual_w, self.window_w = checked_weights(self, arrays, ["dual_w", "window_w"])
        self.loop.restore(meta, arrays)
        if self.feasible is not None:
            self.feasible.restore(arrays["multipliers"])
