"""A run of BCFW: oracle passes, cheap passes over kept cuts, averages and certificates."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from ..utils.arrays import part_of
from ._bcfw import BlockLoop
from ._hull import HullLoop
from ._team import Team
from .exact_steps import exact_loop
from .run import Run, Start, batch_threads, checked_weights, pieces, rng_state, set_rng_state
from .weight_constraints import assemble

# The average restarts after pass b, then whenever the number of passes is a-fold plus b.
WINDOW = (1.5, 8)
# The estimated gap, as a multiple of tol, below which each pass ends with a certificate.  Exact
# steps over a hull cost as much as that, and the gap of their average is several times less.
NEAR, NEAR_HULL = 1.5, 4.0
# Share of the mean gap below which a cheap visit makes no step; exact steps are cheaper.
SMALL_GAIN = 0.01
SMALL_GAIN_EXACT = 0.003
# Maximum number of iterates of a pass that the average takes.
MOST_POINTS = 16
# Relative difference of primal and dual below which they are equal.
ROUNDING = 1e-14
# Age that no cut reaches.
NEVER = int(np.iinfo(np.int32).max)
# What a checkpoint holds as it is.
KEPT = ("passes", "window_start", "best_primal", "best_dual", "last_dual")


class BCFWRun(Run):
    """One optimisation by :class:`BCFW`.

    Parameters
    ----------
    solver : BCFW
    start : Start
    """

    solver: Any

    def __init__(self, solver: Any, start: Start):
        self.solver, self.given = solver, start
        problem = start.problem
        rows = assemble(solver.constraints, problem.space.layout, problem.examples)
        feasible = rows.polyhedron()
        loop = exact_loop(solver, problem, start.alpha, feasible is not None)
        self.exact = loop is not None
        if loop is None:
            loop = self._cut_loop()
        if feasible is not None:
            loop.constrain(feasible)
        self._begin(solver, start, loop)

    def _cut_loop(self) -> BlockLoop:
        p = self.given.problem
        given = p.potentials, p.surrogate, p.labels, p.weights, self.given.alpha
        return BlockLoop(*given, self.solver.max_cuts)

    def _begin(self, solver: Any, start: Start, loop: Any) -> None:
        self.solver, self.given, self.loop = solver, start, loop
        self.team = Team(loop, 1 if self.exact else batch_threads(solver.batch, start))
        problem = start.problem
        # Passes, and over a hull cheap ones too: there they are as long.
        self.age = self.passes = self.window_start = 0
        self.last_dual = 0.0
        self.focused, self.visits = False, 0
        self.best_w = np.zeros(problem.dim)
        self.best_primal = np.inf
        self.best_dual = -np.inf
        # Gap estimates are useless before every example has been seen.
        self.estimate = np.inf

    @property
    def dual(self) -> float:
        """Value of the dual at the current cuts."""
        norm = self.given.problem.potentials.squared_norm(self.loop.w)
        value = self.loop.b_total - 0.5 * self.given.alpha * norm
        if self.feasible is not None:
            value -= self.given.alpha * self.feasible.charge
        return float(value)

    @property
    def feasible(self) -> Any:
        """The projection of w onto the constraints; None without constraints."""
        return getattr(self.loop, "feasible", None)

    def _begin_window(self) -> None:
        """Restart the average when it is due."""
        if self.age >= WINDOW[0] * self.window_start + WINDOW[1]:
            self.window_start = self.age
            self.loop.forget_average()

    def step(self) -> dict[str, Any]:
        """Make a pass that calls the oracle, then cheap passes while they pay off."""
        with self.team:
            return self._step()

    def _step(self) -> dict[str, Any]:
        solver = self.solver
        self._begin_window()
        estimate, calls = self._pass(self._order(), True)
        cached = 0
        if solver.cached_passes:
            gain = (self.dual - self.last_dual) / self.given.problem.n
            small = (SMALL_GAIN_EXACT if self.exact else SMALL_GAIN) * estimate
            cached = self._cached_passes(gain / 2, small)
        return self._passed(estimate, calls, {"cached_passes": cached, "cuts": self.loop.count})

    def _passed(self, estimate: float, calls: int, more: dict[str, Any]) -> dict[str, Any]:
        """Return the record of a pass, certified when due."""
        self.last_dual = self.dual
        over_hull = isinstance(self.loop, HullLoop)
        self.passes += 1
        self.age += 1 + more["cached_passes"] if over_hull else 1
        self.estimate = estimate
        times = NEAR_HULL if over_hull else NEAR
        near = estimate <= times * self.given.tol * max(abs(self.last_dual + estimate), 1e-300)
        record: dict[str, Any] = {
            "primal": None,
            "dual": self.last_dual,
            "gap": estimate,
            "certified": False,
            "oracle_calls": calls,
            **more,
        }
        if near or self.passes % self.solver.certify_every == 0:
            certificate = self.certify()
            certificate["oracle_calls"] += calls
            record.update(certificate)
        else:
            record["primal"] = self.last_dual + estimate
        return record

    def _order(self) -> np.ndarray:
        rng, n = self.given.rng, self.given.problem.n
        if self.solver.sampling == "permutation" or (
            self.solver.sampling == "gap" and self.passes < 1
        ):
            return rng.permutation(n)
        if self.solver.sampling == "uniform":
            return rng.integers(0, n, n)
        share = self.given.problem.weights * np.maximum(self.loop.gaps, 0)
        share = share + 0.1 * share.mean() + 1e-300
        return rng.choice(n, n, p=share / share.sum())

    def _cached_passes(self, enough: float, min_gain: float) -> int:
        """Make cheap passes while one raises the dual by ``enough`` a visit; return how many.

        Without constraints the rises of its steps add up to that of a pass, which then reads no
        weight that no step touches.
        """
        chosen = np.arange(self.given.problem.n)
        before = 0.0 if self.feasible is None else self.dual
        done = 0
        with ExitStack() as stack:
            while done < self.solver.cached_passes:
                if done == 1:
                    stack.enter_context(self._focus(chosen))
                self.loop.rise = 0.0
                self._pass(self.given.rng.permutation(chosen), False, min_gain)
                done += 1
                rise = self.loop.rise
                if self.feasible is not None:
                    last, before = before, self.dual
                    rise = before - last
                if rise <= enough * len(chosen):
                    break
                chosen = self.loop.moved.nonzero()[0]
        return done

    @contextmanager
    def _focus(self, chosen: np.ndarray) -> Iterator[None]:
        """Visit only these examples meanwhile; faster if only kernel values are needed.

        The average counts all such passes as one.
        """
        loop, potentials = self.loop, self.given.problem.potentials
        start = None if potentials.has_weights else loop.w.copy()
        if not potentials.focus(chosen, loop.w):
            yield
            return
        self.focused, self.visits = True, 0
        try:
            yield
        finally:
            potentials.unfocus(loop.w)
            self.focused = False
            if self.solver.averaging:
                loop.average_pass(start, self.visits)

    def _pass(self, order: np.ndarray, full: bool, min_gain: float = 0.0) -> tuple[float, int]:
        solver, loop = self.solver, self.loop
        # If w is small beside the data, the average takes the iterate at the ends of pieces of
        # cheap and exact passes; also of passes in batches, whose threads would wait for it.
        averaging = solver.averaging and not self.focused
        width = self.given.problem.potentials.node_size if isinstance(loop, HullLoop) else 1
        reach, dim = len(order) * width, self.given.problem.dim
        whole = averaging and dim <= 16 * reach and (self.exact or not full or solver.batch > 1)
        points = min(max(reach // dim, 1), MOST_POINTS) if whole else 1
        total, spent = 0.0, 0
        for some in pieces(order, points):
            before = loop.w.copy() if whole else None
            if self.exact:
                gap, used = loop.run(some, full, min_gain)
            else:
                gap, used = loop.run(
                    some,
                    int(full),
                    max_steps=solver.max_steps,
                    pairwise=solver.steps != "frank-wolfe",
                    max_age=solver.max_age if full else NEVER,
                    min_gain=min_gain,
                    averaging=averaging and not whole,
                    batch=solver.batch,
                    team=self.team,
                )
            total += gap
            spent += used
            if whole:
                loop.average_pass(before, len(some))
        self.visits += len(order)
        return total, spent

    def certify(self) -> dict[str, Any]:
        """Return the certificate of the better of the last iterate and the average."""
        self.loop.resynchronise()
        spent = self._keep_best(self.candidates())
        self.best_dual = max(self.best_dual, self.dual)
        # At the optimum rounding may lift the dual above the primal.
        over, rounding = self.best_dual - self.best_primal, ROUNDING * abs(self.best_primal)
        dual = self.best_primal if 0 < over <= rounding else self.best_dual
        return self._certified(dual, spent)

    def candidates(self) -> Iterator[np.ndarray]:
        """Return the last iterate and the average, one at a time: each is as long as w.

        Returns
        -------
        iterator of ndarray
        """
        loop = self.loop
        yield loop.w.copy()
        if self.solver.averaging and loop.average_mass > 0:
            average = loop.average / loop.average_mass
            yield np.subtract(loop.w, average, out=average)

    def contradiction(self) -> str | None:
        """Return how kept cuts contradict the oracle's bounds at the best weights."""
        if self.best_bounds is None or not hasattr(self.loop, "known_values"):
            return None
        return self._contradicted(self.loop.known_values(self.best_w))

    def weights(self) -> np.ndarray:
        """Return a copy of the best weights so far."""
        if np.isfinite(self.best_primal):
            return self.best_w.copy()
        return self.loop.w.copy()

    def memory(self) -> dict[str, int]:
        """Return the bytes held by examples, dual variables and weights."""
        loop = self.loop
        return {
            "examples": self.given.problem.potentials.nbytes,
            "duals": loop.nbytes,
            "weights": loop.w.nbytes + loop.average.nbytes + self.best_w.nbytes,
        }

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything a checkpoint needs; see :meth:`Run.state`."""
        meta = {name: getattr(self, name) for name in KEPT} | self.loop.counters()
        meta |= {"rng": rng_state(self.given.rng), "age": self.age}
        arrays = {f"cuts_{k}": v for k, v in self.loop.to_arrays().items()}
        arrays |= {
            "w": self.loop.w,
            "average": self.loop.average,
            "gaps": self.loop.gaps,
            "best_w": self.best_w,
        }
        if self.feasible is not None:
            arrays["multipliers"] = self.feasible.multipliers
        return meta, arrays

    def restore(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Continue from a checkpoint."""
        best_w = checked_weights(self, arrays, ["best_w"])[0]
        if "cuts_key" in arrays and isinstance(self.loop, HullLoop):
            # A checkpoint of pairwise steps goes on with them.
            self.exact, self.loop = False, self._cut_loop()
            self.team = Team(self.loop, 1)
        set_rng_state(self.given.rng, meta["rng"])
        for name in KEPT:
            setattr(self, name, meta[name])
        self.age = meta.get("age", self.passes)
        vectors = arrays["w"], arrays["average"], arrays["gaps"]
        self.loop.restore(meta, part_of(arrays, "cuts_"), *vectors)
        if self.feasible is not None:
            self.feasible.restore(arrays["multipliers"])
        self.best_w = best_w

    def take_over(
        self,
        other: BCFWRun,
        w: np.ndarray,
        primal: float,
        duals: dict[str, np.ndarray] | None = None,
    ) -> None:
        """Start from the dual variables of a run on the same, slightly changed examples.

        Parameters
        ----------
        other : BCFWRun
        w : ndarray of shape (dim,)
            Weights of this problem; the run ends with no worse ones.
        primal : float
            The objective there.
        duals : dict of str to ndarray, optional
            The dual variables in this problem, as ``loop.to_arrays()`` gives them; by default those
            of ``other``, which another node scale does not change.
        """
        loop = self.loop
        counters = {**other.loop.counters(), "alpha": self.given.alpha}
        duals = other.loop.to_arrays() if duals is None else duals
        loop.restore(counters, duals, w, w, other.loop.gaps)
        loop.forget_average()
        loop.resynchronise()
        self.passes = other.passes
        self.age = self.window_start = other.age
        self.last_dual = self.dual
        self.best_w, self.best_primal = w.copy(), primal

    def continue_at(self, alpha: float) -> None:
        """Continue with another alpha from the same dual variables (a path over alpha).

        Parameters
        ----------
        alpha : float
        """
        self.loop.rescale(alpha)
        self.given.alpha = alpha
        self.best_primal, self.best_dual = np.inf, -np.inf
        self.last_dual = self.dual
        self.window_start = self.age
        self.loop.forget_average()
