"""Stochastic subgradient descent (Pegasos): for streams of data, and for a quick start."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._sgd import SGDLoop
from .base import Run, Solver, Start, checked_weights, pieces, rng_state, set_rng_state
from .passes import surrogate_bounds
from .problem import Problem


class SGD(Solver):
    """Stochastic subgradient descent with Pegasos steps (Shalev-Shwartz et al. 2011).

    Step t subtracts ``1 / (alpha (t + t0))`` times the subgradient at one example.  There is no
    dual and no gap: the primal of the last and of the average iterate is computed exactly every
    few passes, the better one is kept, and training ends when its primal has stopped falling.

    Parameters
    ----------
    averaging : {"weighted", "uniform", "none"}
        Weigh iterate t by ``t ** power``, or all alike, or keep no average.
    power : float, default=3.0
        1 is the weighting by t.  The first iterates are far from all later ones: with cubes the
        first tenth of the steps has a weight of 1e-4 (Shamir, Zhang 2013).
    order : {"permutation", "uniform"}
        Each example once per pass in random order, or draws with replacement.
    projection : bool, default=False
        Project on the ball ``alpha ||w||^2 <= mean H_i(0)`` after each step, which holds the
        solution: ``H_i(0)`` is the largest loss of example i, and the objective is strongly convex.
    certify_every : int, default=5
        Passes between two passes at fixed weights that give the primal.
    patience : int, default=5
        Stop when the best primal fell by less than ``tol`` (relative) over so many such passes:
        unlike a gap it is no certificate.
    t0 : float, default=0
        Steps that count as taken before the first.  With 0 the first step is large and does not
        depend on the start; with weights to start from, 0 stands for ten passes.
    free_step : float, default=1.0
        Weights outside the norm (an unpenalised intercept) do not shrink and take the steps
        ``free_step / sqrt(t + t0)``: the objective is not strongly convex along them.

    Examples
    --------
    >>> from structsolve import StructuredSVM
    >>> from structsolve.solvers import SGD
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> StructuredSVM("multiclass", solver=SGD(order="uniform")).fit(X, y).predict(X).tolist()
    [0, 0, 1, 1]
    """

    name = "sgd"
    incremental = True
    free_coordinates = True
    needs_weights = True

    def __init__(
        self,
        averaging: str = "weighted",
        power: float = 3.0,
        order: str = "permutation",
        projection: bool = False,
        certify_every: int = 5,
        patience: int = 5,
        t0: float = 0,
        free_step: float = 1.0,
    ):
        self.averaging = averaging
        self.power = power
        self.order = order
        self.projection = projection
        self.certify_every = certify_every
        self.patience = patience
        self.t0 = t0
        self.free_step = free_step

    def start(self, start: Start) -> SGDRun:
        """Begin an optimisation; see :meth:`Solver.start`."""
        self.check_choice("averaging", ("weighted", "uniform", "none"))
        self.check_choice("order", ("permutation", "uniform"))
        self.check_integer("certify_every", 1)
        self.check_integer("patience", 1)
        if not (np.isfinite(self.t0) and self.t0 >= 0):
            raise ValueError(f"SGD: t0 is {self.t0!r}, expected a number >= 0")
        if not 0 <= self.power <= 10:
            raise ValueError(f"SGD: power is {self.power!r}, expected a number from 0 to 10")
        if not (np.isfinite(self.free_step) and self.free_step > 0):
            raise ValueError(f"SGD: free_step is {self.free_step!r}, expected a number > 0")
        self.check(start.problem)
        return SGDRun(self, start)


class SGDRun(Run):
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
            t0 = 10.0 * problem.n
        self.loop = SGDLoop(problem.dim, free, start.alpha, t0, solver.free_step)
        if start.w is not None:
            self.loop.set_weights(start.w)
        self.passes = 0
        self.move_to(problem)

    def move_to(self, problem: Problem) -> None:
        """Go on with other examples; t and the average go on.

        Parameters
        ----------
        problem : Problem
            Of the same space.

        Raises
        ------
        ValueError
            When it has another number of weights.
        """
        if problem.dim != self.loop.v.shape[0]:
            raise ValueError(
                f"the new examples have {problem.dim} weights, the run {self.loop.v.shape[0]}; "
                "make them with the same space"
            )
        self.given.problem = problem
        self.loop.bind(problem.potentials, problem.surrogate, problem.labels, problem.weights)
        self.best_primal, self.best_w = np.inf, np.zeros(0)
        self.certified: list[float] = []
        self.radius = 0.0
        # Oracle calls that the radius took, until a record counts them.
        self.radius_calls = 0
        if self.solver.projection:
            bounds, self.radius_calls = surrogate_bounds(
                problem, np.zeros(problem.dim), self.given.n_jobs
            )
            self.radius = float(np.sqrt(problem.weights @ bounds / self.given.alpha))

    def step(self) -> dict[str, Any]:
        """Take as many steps as there are examples."""
        solver, rng, n = self.solver, self.given.rng, self.given.problem.n
        order = rng.permutation(n) if solver.order == "permutation" else rng.integers(0, n, n)
        total, calls = 0.0, self.radius_calls
        self.radius_calls = 0
        for some in pieces(order):
            part, used = self.loop.run(
                some,
                float(solver.power) if solver.averaging == "weighted" else 0.0,
                solver.averaging != "none",
                self.radius,
            )
            total += part
            calls += used
        self.passes += 1
        record: dict[str, Any] = {
            "primal": self.given.problem.regulariser(self.loop.last(), self.given.alpha) + total,
            "dual": None,
            "gap": None,
            "certified": False,
            "oracle_calls": calls,
            "steps": int(self.loop.t),
        }
        if self.passes % solver.certify_every == 0:
            record |= self.certify()
            record["oracle_calls"] += calls
        return record

    def certify(self) -> dict[str, Any]:
        """Return the certificate of the better of the last iterate and the average."""
        candidates = (self.loop.averaged(), self.loop.last())
        spent = self._keep_best(w for w in candidates if w is not None)
        self.certified = [*self.certified[-self.solver.patience :], self.best_primal]
        fell = self.certified[0] - self.best_primal
        settled = len(self.certified) > self.solver.patience
        return {
            "primal": self.best_primal,
            "dual": None,
            "gap": None,
            "certified": True,
            "converged": settled and fell < self.given.tol * abs(self.best_primal),
            "oracle_calls": spent,
        }

    def weights(self) -> np.ndarray:
        """Return a copy of the best weights so far."""
        if self.best_w.size:
            return self.best_w.copy()
        w = self.loop.averaged()
        return self.loop.last() if w is None else w

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything a checkpoint needs; see :meth:`Run.state`."""
        scalars, arrays = self.loop.state()
        meta = {
            "rng": rng_state(self.given.rng),
            "passes": self.passes,
            "best_primal": self.best_primal,
            "certified": self.certified,
            "radius": self.radius,
            "radius_calls": self.radius_calls,
            **scalars,
        }
        return meta, {**arrays, "best_w": self.best_w}

    def restore(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Continue from a checkpoint."""
        set_rng_state(self.given.rng, meta["rng"])
        self.passes, self.best_primal = meta["passes"], meta["best_primal"]
        self.certified = [float(primal) for primal in meta["certified"]]
        # Empty before the first certificate.
        self.best_w = arrays["best_w"].copy()
        if self.best_w.size:
            self.best_w = checked_weights(self, arrays, ["best_w"])[0]
        self.radius, self.radius_calls = meta["radius"], meta["radius_calls"]
        self.loop.restore(meta, arrays)
