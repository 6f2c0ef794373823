"""Block-coordinate Frank-Wolfe with cached pairwise steps: the default solver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np

from ..operators import Projection
from ..structure.ask import ask
from ._bcfw import BlockLoop
from ._box import BoxLoop
from ._hull import HullLoop
from ._simplex import SimplexLoop
from ._team import Team
from .base import (
    Run,
    Solver,
    Start,
    batch_threads,
    checked_weights,
    pieces,
    rng_state,
    set_rng_state,
)
from .problem import Problem
from .separate import SeparateRun, groups_of
from .weight_constraints import assemble

# The average restarts after pass b, then whenever the number of passes is a-fold plus b.
WINDOW = (1.5, 8)
# Share of the mean gap below which a cheap visit makes no step; exact steps are cheaper.
SMALL_GAIN = 0.01
SMALL_GAIN_EXACT = 0.003
# Relative difference of primal and dual below which they are equal.
ROUNDING = 1e-14
SAMPLINGS = ("permutation", "uniform", "gap")


class BCFW(Solver):
    """Block-coordinate Frank-Wolfe on the dual (Lacoste-Julien et al. 2013).

    Each example keeps the cuts that its oracle has returned; after a new cut the dual variable of
    the example is optimised over all of them by line searches.  Between passes that call the
    oracle, cheap passes update on the kept cuts alone while this pays off (Shah, Kolmogorov,
    Lampert 2015); steps are pairwise (Osokin et al. 2016).  Under a kernel, exact cheap steps are
    taken in order of their gain (Fan, Chen, Lin 2005).  The primal is reported at the last iterate
    or the average, whichever is better.

    Parameters
    ----------
    steps : {"auto", "pairwise", "frank-wolfe", "exact"}
        "pairwise": move weight from the worst cut to the best; "frank-wolfe": from all cuts.
        "exact" maximises the dual over the whole variable of an example, which is a projection:
        onto the simplex if labels share no parts (``multiclass``), onto a box if parts are decided
        separately (``multilabel`` without pairs), else onto the hull of the labels (``dag`` with
        closed sets; one row of features per example, a margin with a loss that decomposes,
        ``batch=1``). "auto": "exact" if possible, else "pairwise", and groups of labels that no
        score connects have steps of their own; estimators then train the smooth ``crf`` with
        :class:`GBCFW`, as ``solver_`` shows.
    oracle_calls : int, default=1
        Maximum oracle calls per visit in an oracle pass; each uses the scores after the previous
        steps.
    max_steps : int, default=30
        Line searches per visit; 1 with ``cached_passes=0`` gives the original algorithm.
    inner_tol : float, default=0.1
        A visit ends when the example's gap has fallen to this share.
    cached_passes : int, default=200
        Maximum number of cheap passes between two oracle passes; they end where one raises the dual
        by less than half of the last oracle pass's increase.
    max_cuts : int, default=50
        Cuts kept per example; beyond that, the two of least weight are merged.
    max_age : int, default=10
        Oracle passes after which a cut without weight is dropped.
    sampling : {"permutation", "uniform", "gap"}
        Order of a pass: each example once, draws with replacement, or draws in proportion to the
        last known gaps.
    averaging : bool, default=True
        Keep the average of the iterates, weighted by t, over a window that restarts after 8 passes,
        then 20, 38, ...: the first iterates are far from the optimum.
    certify_every : int, default=10
        Passes between certificates; a certificate is a pass at fixed weights that gives primal and
        gap.
    constraints : list of SuperModular, LinearConstraint or WeightBounds, optional
        Constraints on w, as for :class:`CuttingPlane`; see Notes.
    batch : int, default=1
        Number of examples visited at the same w, in ``n_jobs`` threads; see Notes.  Exact steps are
        taken one at a time.

    Notes
    -----
    Under constraints ``A w <= c`` the dual has a variable ``nu >= 0`` beside those of the examples,

        ``sum_i u_i <b_i, a_i> - alpha/2 |w|^2 - <c, nu>,   w = (sum_i u_i g_i - A' nu) / alpha``

    where ``g_i`` is the example's mixture of cuts.  Its best value for given ``g`` makes w the
    projection of ``sum_i u_i g_i / alpha`` onto the polyhedron: that step follows each visit, so
    the oracle gets weights that satisfy all rows, and the gap is certified as usual.

    With ``batch > 1`` the visits of a batch (oracle, cuts, line searches) use the w at the start of
    the batch and may run on any thread.  Their steps are then taken in order: a step
    ``sum_i u_i g_i += gamma d`` has the share ``gamma = clip(slope / curvature, 0, 1)`` that
    maximises the dual along it, with the slope at the current w.  The dual therefore never
    decreases, and the number of threads does not change the result.  Drawing an example again ends
    the batch.

    Examples
    --------
    >>> from structsolve import StructuredSVM
    >>> from structsolve.solvers import BCFW
    >>> model = StructuredSVM("multiclass", solver=BCFW(sampling="gap"), tol=1e-6)
    >>> model.fit([[0.0], [1.0], [2.0]], [0, 1, 1]).history_[-1]["certified"]
    True
    """

    name = "bcfw"
    needs_dual = True

    def __init__(
        self,
        steps: str = "auto",
        oracle_calls: int = 1,
        max_steps: int = 30,
        inner_tol: float = 0.1,
        cached_passes: int = 200,
        max_cuts: int = 50,
        max_age: int = 10,
        sampling: str = "permutation",
        averaging: bool = True,
        certify_every: int = 10,
        constraints: Any = None,
        batch: int = 1,
    ):
        self.steps = steps
        self.oracle_calls = oracle_calls
        self.max_steps = max_steps
        self.inner_tol = inner_tol
        self.cached_passes = cached_passes
        self.max_cuts = max_cuts
        self.max_age = max_age
        self.sampling = sampling
        self.averaging = averaging
        self.certify_every = certify_every
        self.constraints = constraints
        self.batch = batch

    def start(self, start: Start) -> Run:
        """Begin an optimisation; see :meth:`Solver.start`."""
        self.check_choice("steps", ("auto", "pairwise", "frank-wolfe", "exact"))
        self.check_choice("sampling", SAMPLINGS)
        for name, least in (
            ("oracle_calls", 1),
            ("max_steps", 1),
            ("cached_passes", 0),
            ("max_cuts", 2),
            ("max_age", 0),
            ("certify_every", 1),
            ("batch", 1),
        ):
            self.check_integer(name, least)
        if not self.inner_tol >= 0:
            raise ValueError(f"BCFW: inner_tol is {self.inner_tol!r}, expected >= 0")
        if self.constraints and self.oracle_calls > 1:
            raise ValueError(
                f"BCFW: oracle_calls is {self.oracle_calls}, expected 1 with constraints: w is "
                "projected onto them between visits, not within"
            )
        self.check(start.problem)
        if self.steps == "auto" and not self.constraints:
            groups = groups_of(start.problem)
            if groups:
                return SeparateRun(start, groups, partial(BCFWRun, self))
        return BCFWRun(self, start)

    def check(self, problem: Problem) -> None:
        """Raise ValueError for a problem that this solver cannot take."""
        super().check(problem)
        if self.constraints and not problem.potentials.has_weights:
            raise ValueError(
                "BCFW: constraints are on weights of features, which a kernel model does not have; "
                "use kernel=None on explicit features (Nystroem)"
            )


def simplex_duals(problem: Problem) -> bool:
    """Return whether dual variables are points of a simplex of labels that share no parts.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    bool
    """
    potentials = problem.potentials
    return bool(
        problem.surrogate.has_simplex
        and potentials.max_nodes <= 1
        and not potentials.shared_size
        and not potentials.edge_size
        # The step is a projection onto the simplex if the features of all labels have one norm.
        and potentials.node_scale is None
    )


def box_duals(problem: Problem) -> bool:
    """Return whether dual variables are points of a box: every part is decided separately.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    bool
    """
    potentials = problem.potentials
    return bool(
        problem.space.separate_parts
        and problem.adds_up
        and potentials.has_weights
        and potentials.node_scale is None
    )


def hull_projection(problem: Problem) -> Any:
    """Return the projection that makes an exact step where labels share parts.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    Projection or None
        None if dual variables are more than points of the hull of labels over one row of features,
        or if the structure has no exact Euclidean projection onto that hull.
    """
    potentials = problem.potentials
    if (
        not getattr(problem.surrogate, "over_hull", False)
        or not potentials.has_weights
        or potentials.max_nodes > 1
        or potentials.shared_size
        or potentials.edge_size
        or potentials.node_scale is not None
    ):
        return None
    bind = ask("structsolve_projection", Projection, problem.space, regularizer="euclidean")
    projection = None if bind is None else bind(problem.task.layout)
    return projection if projection is not None and projection.exact else None


def _exact_loop(solver: BCFW, problem: Problem, alpha: float, constrained: bool) -> Any:
    """Return the loop of a run that takes exact steps, or None; refuse them where none exist."""
    arguments = (
        problem.potentials,
        problem.surrogate,
        problem.labels,
        problem.weights,
        alpha,
    )
    if solver.steps == "exact" and constrained:
        raise ValueError(
            "BCFW: steps is 'exact', which constraints exclude: w is projected after a "
            "step; use steps='pairwise'"
        )
    if solver.steps not in ("auto", "exact") or constrained:
        return None
    if simplex_duals(problem):
        return SimplexLoop(*arguments, solver.max_cuts)
    if box_duals(problem):
        return BoxLoop(*arguments, solver.max_cuts, problem.parts, problem.loss)
    # Threads visit a batch with pairwise steps only.
    projection = None if solver.batch > 1 else hull_projection(problem)
    if projection is not None:
        return HullLoop(*arguments, projection, problem.loss, problem.parts)
    if solver.steps == "exact":
        raise ValueError(
            "BCFW: steps='exact' needs one row of features per example, a structure such as "
            "'multiclass' whose labels share no parts or that has an exact Euclidean projection, "
            "no scaled parts, batch=1 and a loss that decomposes; "
            f"{problem.space.structure.name!r} with {type(problem.loss).__name__} has none; use "
            "steps='pairwise'"
        )
    return None


class BCFWRun(Run):
    """One optimisation by :class:`BCFW`.

    Parameters
    ----------
    solver : BCFW
    start : Start
    """

    solver: Any

    def __init__(self, solver: BCFW, start: Start):
        self.solver, self.given = solver, start
        problem = start.problem
        rows = assemble(solver.constraints, problem.space.layout, problem.examples)
        feasible = rows.polyhedron()
        loop = _exact_loop(solver, problem, start.alpha, feasible is not None)
        self.exact = loop is not None
        if loop is None:
            loop = self._cut_loop()
        if feasible is not None:
            loop.constrain(feasible)
        self._begin(solver, start, loop)

    def _cut_loop(self) -> BlockLoop:
        problem = self.given.problem
        return BlockLoop(
            problem.potentials,
            problem.surrogate,
            problem.labels,
            problem.weights,
            self.given.alpha,
            self.solver.max_cuts,
        )

    def _begin(self, solver: Any, start: Start, loop: Any) -> None:
        self.solver, self.given, self.loop = solver, start, loop
        self.team = Team(loop, 1 if self.exact else batch_threads(solver.batch, start))
        problem = start.problem
        self.passes = self.window_start = 0
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
        if self.passes >= WINDOW[0] * self.window_start + WINDOW[1]:
            self.window_start = self.passes
            self.loop.forget_average()

    def step(self) -> dict[str, Any]:
        """Make a pass that calls the oracle, then cheap passes while they pay off."""
        with self.team:
            return self._step()

    def _step(self) -> dict[str, Any]:
        solver = self.solver
        self._begin_window()
        estimate, calls = self._pass(self._order(), solver.oracle_calls)
        cached = 0
        if solver.cached_passes:
            gain = (self.dual - self.last_dual) / self.given.problem.n
            small = (SMALL_GAIN_EXACT if self.exact else SMALL_GAIN) * estimate
            cached = self._cached_passes(gain / 2, small)
        return self._passed(estimate, calls, {"cached_passes": cached, "cuts": self.loop.count})

    def _passed(self, estimate: float, calls: int, more: dict[str, Any]) -> dict[str, Any]:
        """Return the record of a pass, certified when due."""
        self.last_dual = self.dual
        self.passes += 1
        self.estimate = estimate
        near = estimate <= 1.5 * self.given.tol * max(abs(self.last_dual + estimate), 1e-300)
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
                self._pass(self.given.rng.permutation(chosen), 0, min_gain)
                done += 1
                rise = self.loop.rise
                if self.feasible is not None:
                    last, before = before, self.dual
                    rise = before - last
                if rise <= enough * len(chosen):
                    break
                chosen = np.flatnonzero(self.loop.moved.view(bool))
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

    def _pass(self, order: np.ndarray, calls: int, min_gain: float = 0.0) -> tuple[float, int]:
        solver, loop = self.solver, self.loop
        # If w is small beside the data, the average takes cheap and exact passes as a whole; also
        # passes in batches, whose threads would wait for it.
        averaging = solver.averaging and not self.focused
        width = self.given.problem.potentials.node_size if isinstance(loop, HullLoop) else 1
        small = self.given.problem.dim <= 16 * len(order) * width
        whole = averaging and small and (self.exact or calls == 0 or solver.batch > 1)
        before = loop.w.copy() if whole else None
        total, spent = 0.0, 0
        for some in pieces(order):
            if self.exact:
                gap, used = loop.run(some, calls > 0, min_gain)
            else:
                gap, used = loop.run(
                    some,
                    calls,
                    solver.max_steps,
                    solver.steps != "frank-wolfe",
                    solver.max_age if calls else np.iinfo(np.int32).max,
                    solver.inner_tol,
                    min_gain,
                    averaging and not whole,
                    solver.batch,
                    self.team,
                )
            total += gap
            spent += used
        self.visits += len(order)
        if whole:
            loop.average_pass(before, len(order))
        return total, spent

    def certify(self) -> dict[str, Any]:
        """Return the certificate of the better of the last iterate and the average."""
        self.loop.resynchronise()
        candidates = [self.loop.w.copy()]
        if self.solver.averaging and self.loop.average_mass > 0:
            candidates.append(self.loop.w - self.loop.average / self.loop.average_mass)
        spent = self._keep_best(candidates)
        self.best_dual = max(self.best_dual, self.dual)
        # At the optimum rounding may lift the dual above the primal.
        over, rounding = self.best_dual - self.best_primal, ROUNDING * abs(self.best_primal)
        dual = self.best_primal if 0 < over <= rounding else self.best_dual
        return {
            "primal": self.best_primal,
            "dual": dual,
            "gap": self.best_primal - dual,
            "certified": True,
            "oracle_calls": spent,
        }

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
        meta = {
            "rng": rng_state(self.given.rng),
            "passes": self.passes,
            "window_start": self.window_start,
            "best_primal": self.best_primal,
            "best_dual": self.best_dual,
            "last_dual": self.last_dual,
            **self.loop.counters(),
        }
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
        self.passes, self.window_start = meta["passes"], meta["window_start"]
        self.best_primal, self.best_dual = meta["best_primal"], meta["best_dual"]
        self.last_dual = meta["last_dual"]
        self.loop.restore(
            meta,
            {k.removeprefix("cuts_"): v for k, v in arrays.items() if k.startswith("cuts_")},
            arrays["w"],
            arrays["average"],
            arrays["gaps"],
        )
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
        self.passes = self.window_start = other.passes
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
        self.window_start = self.passes
        self.loop.forget_average()
