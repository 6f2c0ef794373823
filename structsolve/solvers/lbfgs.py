"""Quasi-Newton steps (L-BFGS, OWL-QN) for smooth surrogates, with L1 and elastic-net penalties."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Solver, other_solvers
from .curvature import Curvature
from .gbcfw import has_segments
from .passes import partial_sums, subgradient
from .run import Run, Start, checked_weights
from .sparse_dual import SHARES, SparseDual

# A run with an L1 norm has settled when PATIENCE steps gained less than GAIN times `tol`.
PATIENCE, GAIN = 10, 0.01
# With L1 alone, a linear program over the last gradients bounds the optimum every EVERY steps, once
# ten steps gain less than the share SLOW.
EVERY, SLOW = 10, 0.05
# Maximum number of halvings of a step before the run ends; required share of predicted decrease.
MOST_HALVINGS, SUFFICIENT = 40, 1e-4


class LBFGS(Solver):
    """Limited-memory quasi-Newton steps; an L1 penalty gives sparse weights.

    The objective is the mean surrogate plus ``alpha * (l1_ratio * ||w||_1 + (1 - l1_ratio) / 2 *
    ||w||^2)``, for conditional random fields (``"crf"``), whose surrogate is smooth.  Each pass
    computes the gradient over all examples, in ``n_jobs`` threads with bit-identical results.  With
    ``l1_ratio`` above 0 the method is that of OWL-QN (Andrew, Gao 2007): steps stay in the orthant
    of w, and a weight that would change its sign becomes 0.  Other than there, the curvature of a
    step is that among the weights that are free to move, nonzero ones and those with a slope beyond
    the L1 norm's, and vectors are as short.

    Parameters
    ----------
    l1_ratio : float, default=0.0
        Share of the L1 norm in the penalty, from 0 (squared norm only) to 1 (L1 only).
    memory : int, default=10
        Number of past steps used to estimate the curvature.
    steps : int, default=1
        Steps of a pass, each with a gradient over all examples; fewer where the gap has closed.

    Notes
    -----
    Every gradient is a cut of the mean surrogate R, ``R(v) >= b - <g, v>``; R is at least 0, so a
    share t of the cut is a lower bound too, and ``max_t t b - Omega*(t g)`` bounds the optimum
    from below, where Omega* is the conjugate of the penalty.  For L1 alone, t is the largest with
    ``t |g_j| <= alpha``.  The best of these duals gives the gap, so a sparse model has a
    certificate.  With L1 alone, where no weight's gradient may exceed alpha, a linear program over
    the last ``memory`` gradients gives a better dual (:mod:`structsolve.solvers.sparse_dual`) every
    ten steps.  With an L1 norm the gap closes long after the weights have converged, so training
    also ends, "settled", when ten steps have gained less than a hundredth of ``tol``.  This is
    CRFsuite's rule at ``tol=1e-3``.

    From 100,000 weights on, past steps are kept in single precision, in half of the memory;
    weights, gradients and certificates have double precision.

    CRFsuite's ``c1`` and ``c2`` are ``alpha * l1_ratio * n`` and ``alpha * (1 - l1_ratio) / 2 * n``
    for n sentences.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve import StructuredSVM
    >>> from structsolve.solvers import LBFGS
    >>> X = np.eye(3)[[0, 1, 2] * 20]
    >>> X = np.hstack([X, np.random.default_rng(0).normal(size=(60, 5))])   # five columns of noise
    >>> model = StructuredSVM("multiclass", surrogate="crf", solver=LBFGS(l1_ratio=1.0), alpha=0.1)
    >>> model = model.fit(X, [0, 1, 2] * 20)
    >>> np.flatnonzero(model.coef_["node"].any(axis=1)).tolist()
    [0, 1, 2]
    """

    name = "lbfgs"
    needs_convex = True
    needs_weights = True
    uses_gram = False
    takes_marginals = True

    @property
    def squared_norm(self) -> bool:  # type: ignore[override]
        """Whether there is no L1 norm."""
        return self.l1_ratio == 0

    def __init__(self, l1_ratio: float = 0.0, memory: int = 10, steps: int = 1):
        self.l1_ratio = l1_ratio
        self.memory = memory
        self.steps = steps

    def start(self, start: Start) -> LBFGSRun:
        """Begin an optimisation; see :meth:`Solver.start`."""
        if not 0 <= self.l1_ratio <= 1:
            raise ValueError(f"LBFGS: l1_ratio is {self.l1_ratio!r}, expected a number from 0 to 1")
        self.check_integer("memory", 1)
        self.check_integer("steps", 1)
        self.check(start.problem)
        return LBFGSRun(self, start)

    def check(self, problem: Any) -> None:
        """Raise ValueError for a problem that this solver cannot take; see :meth:`Solver.check`."""
        super().check(problem)
        surrogate = problem.surrogate
        # SparseMAP squares only the node parts: it is not smooth in the others.
        if problem.surrogate_name == "crf" and not has_segments(surrogate):
            raise ValueError(
                f"solver {self.name!r} needs the entropy of states, which the projection of "
                f"structure {problem.space.structure.name!r}, "
                f"{type(surrogate.projection).__name__}, lacks: it has no term() and slope(); "
                "implement both, or use solver='bcfw'"
            )
        if not (has_segments(surrogate) and surrogate.projection.gibbs):
            raise ValueError(
                f"solver {self.name!r} needs a smooth surrogate, and {problem.surrogate_name!r} is "
                f"not smooth; use surrogate='crf', or {other_solvers(problem)}"
            )


class LBFGSRun(Run):
    """One optimisation by :class:`LBFGS`.

    Parameters
    ----------
    solver : LBFGS
    start : Start
    """

    def __init__(self, solver: LBFGS, start: Start):
        self.solver, self.given = solver, start
        problem = start.problem
        self._sums = partial_sums(problem)
        self.best_w = np.zeros(problem.dim) if start.w is None else np.array(start.w)
        self.best_primal, self.best_dual = np.inf, 0.0
        self.slope: np.ndarray | None = None  # of the surrogate at best_w
        # Positions of slopes beyond the L1 norm's, and of nonzero weights.
        self._beyond = self._kept = np.zeros(0, dtype=np.int64)
        self._last: list[float] = []  # primals after the last steps
        self._past = Curvature(int(solver.memory), problem.dim)
        self._sparse = SparseDual(int(solver.memory), problem.weights)
        self._steps = 0

    def _penalties(self) -> tuple[float, float]:
        """Return the factors of the L1 norm and of half the squared norm."""
        ratio, alpha = float(self.solver.l1_ratio), self.given.alpha
        return alpha * ratio, alpha * (1 - ratio)

    def _penalty(self, w: np.ndarray) -> float:
        l1, l2 = self._penalties()
        return l1 * float(np.abs(w).sum()) + 0.5 * l2 * float(w @ w)

    def _evaluate(self, w: np.ndarray, some: np.ndarray) -> tuple[float, np.ndarray, Any, int]:
        """Return the primal at w, the gradient of the mean surrogate, where it is beyond the L1
        norm's slope, and the oracle calls; all weights but ``some`` are 0."""
        given = self.given
        problem = given.problem
        each = np.empty(problem.n)
        g, b, bounds, calls = subgradient(problem, w, given.n_jobs, self._sums, each)
        if self.solver.l1_ratio == 1:
            self._sparse.add(g, each, bounds)
        primal = self._penalty(some) + float(problem.weights @ bounds)
        slope = -np.asarray(g)
        beyond = self._where_beyond(slope)
        self.best_dual = max(self.best_dual, self._dual(slope[beyond], b))
        return primal, slope, beyond, calls

    def _where_beyond(self, slope: np.ndarray) -> Any:
        l1, _ = self._penalties()
        return np.flatnonzero(np.abs(slope) > l1) if l1 > 0 else slice(None)

    def _dual(self, g: np.ndarray, b: float) -> float:
        """Return the best bound from shares of one cut, ``max_t t b - Omega*(t g)``.

        It depends on the entries of g beyond the factor of the L1 norm alone.
        """
        if b <= 0:
            return 0.0
        l1, l2 = self._penalties()
        size = np.abs(g)
        size = size[size > l1]
        if not size.size:
            return b
        if l2 <= 0:
            return l1 / float(size.max()) * b  # Omega* is 0 up to this t
        # The slope b - sum_j |g_j| (t |g_j| - l1)_+ / l2 is concave and falls with t: Newton's
        # steps from t = 1 end at its root, or stay where it is positive.
        t = 1.0
        while True:
            size = size[t * size > l1]
            if not size.size:
                return t * b
            squares = float(size @ size)  # 0 of slopes near 0
            lower = (b * l2 + l1 * float(size.sum())) / squares if squares > 0 else t
            if not lower < t:
                break
            t = lower
        beyond = t * size - l1
        return t * b - float(beyond @ beyond) / (2 * l2)

    def _slopes(self) -> tuple[Any, np.ndarray]:
        """Return the weights that a step may change, and the objective's slopes there.

        With L1, the others are 0 and stay 0, and slopes are those of the subgradient of least norm.
        """
        assert self.slope is not None
        l1, l2 = self._penalties()
        if l1 == 0:
            return slice(None), self.slope + l2 * self.best_w
        free = np.union1d(self._beyond, self._kept)
        old = self.best_w[free]
        smooth = self.slope[free] + l2 * old
        at_kink = np.sign(smooth) * np.maximum(np.abs(smooth) - l1, 0)
        return free, np.where(old != 0, smooth + l1 * np.sign(old), at_kink)

    def _direction(self, slopes: np.ndarray, free: Any) -> np.ndarray:
        """Return the quasi-Newton direction of the free weights; with L1, each entry descends."""
        direction = self._past.direction(slopes, free)
        if self.solver.l1_ratio > 0:
            direction[direction * slopes >= 0] = 0
        return direction

    def forget(self) -> None:
        """Begin again with the direction of the slopes."""
        self._past.forget()

    def step(self) -> dict[str, Any]:
        """Take steps along quasi-Newton directions; every trial of a length is a gradient."""
        calls = 0
        for _ in range(self.solver.steps):
            more, moved, settled = self.advance()
            calls += more
            closed = self.best_primal - self.best_dual <= self.given.tol * self.best_primal
            if closed or settled or not moved:
                break
        record = self.certify()
        record["oracle_calls"] = calls
        sparse = self._penalties()[0] > 0
        record["nonzero"] = self._kept.size if sparse else int(np.count_nonzero(self.best_w))
        record["settled"] = settled
        if not moved:
            record["failed"] = "no step lowers the objective by more than rounding errors"
        return record

    def advance(self) -> tuple[int, bool, bool]:
        """Take one step of a pass.

        Returns
        -------
        calls : int
            Of the oracle.
        moved, settled : bool
            Whether the weights have moved, and whether the run has settled.
        """
        calls = 0
        if self.slope is None:
            self._kept = np.flatnonzero(self.best_w)
            answer = self._evaluate(self.best_w, self.best_w)
            self.best_primal, self.slope, self._beyond, calls = answer
        free, slopes = self._slopes()
        moved = not slopes.any()
        while not moved:
            more, moved = self._search(free, slopes)
            calls += more
            if not moved and not self._past:
                break
            if not moved:  # rounding has spoilt the direction: use the negative gradient
                self.forget()
        self._steps += 1
        self._last = [*self._last[-PATIENCE:], self.best_primal]
        gained, size = self._last[0] - self.best_primal, abs(self.best_primal)
        enough = len(self._last) > PATIENCE
        settled = self.solver.l1_ratio > 0 and enough and gained <= GAIN * self.given.tol * size
        due = (
            settled or not moved or (self._steps % EVERY == 0 and enough and gained <= SLOW * size)
        )
        if due and self.solver.l1_ratio == 1:
            self.best_dual = max(self.best_dual, self._sparse.bound(self._penalties()[0]))
        return calls, moved, settled

    def _search(self, free: Any, slopes: np.ndarray) -> tuple[int, bool]:
        """Halve a step until the objective falls enough; return the calls, and if it fell."""
        w, old, sparse = self.best_w, self.best_w[free], self._penalties()[0] > 0
        direction, length, calls = self._direction(slopes, free), 1.0, 0
        orthant = np.where(old != 0, old, -slopes) if sparse else old
        for _ in range(MOST_HALVINGS):
            there = old + length * direction
            if sparse:
                there[there * orthant < 0] = 0
            new = w.copy()
            new[free] = there
            primal, slope, beyond, more = self._evaluate(new, there)
            calls += more
            promised = float(slopes @ (there - old))
            if promised < 0 and primal <= self.best_primal + SUFFICIENT * promised:
                break
            length *= 0.5
        else:
            return calls, False
        move, turn = np.zeros_like(w), slope - self.slope
        move[free] = there - old
        turn[free] += self._penalties()[1] * move[free]
        self._past.add(move, turn)
        if sparse:
            self._kept = free[there != 0]
        self.best_w, self.best_primal, self.slope, self._beyond = new, primal, slope, beyond
        return calls, True

    def certify(self) -> dict[str, Any]:
        """Return primal, dual and gap; every pass certifies them."""
        return self._certified(self._near(self.best_dual))

    def weights(self) -> np.ndarray:
        """Return a copy of the best weights."""
        return self.best_w.copy()

    def memory(self) -> dict[str, int]:
        """Return the bytes held, by purpose."""
        return {
            "curvature": self._past.nbytes,
            "gradients": self._sparse.nbytes(),
            "sums": self._sums.nbytes,
            "weights": 2 * self.best_w.nbytes,
        }

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything a checkpoint needs; see :meth:`Run.state`."""
        meta = {
            "best_primal": self.best_primal,
            "best_dual": self.best_dual,
            "alpha": self.given.alpha,
            "pairs": len(self._past),
            "units": self._past.units,
            "last": self._last,
            "steps": self._steps,
            "values": [value.tolist() for value in self._sparse.values],
        }
        arrays = {"best_w": self.best_w} | self._past.to_arrays()
        if self.slope is not None:
            arrays["slope"] = self.slope
        arrays |= {f"gradient_{k}": slope for k, slope in enumerate(self._sparse.slopes)}
        return meta, arrays

    def restore(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Continue from a checkpoint."""
        pairs = meta["pairs"]
        if not 0 < meta["alpha"] < np.inf or not 0 <= pairs <= self.solver.memory:
            raise ValueError(f"alpha is {meta['alpha']}, pairs {pairs}: expected a positive number")
        self.given.alpha = meta["alpha"]
        (self.best_w,) = checked_weights(self, arrays, ["best_w"])
        self._kept, self.slope = np.flatnonzero(self.best_w), None
        if "slope" in arrays:
            (self.slope,) = checked_weights(self, arrays, ["slope"])
            self._beyond = self._where_beyond(self.slope)
        moves, turns = (
            checked_weights(self, arrays, [f"{kind}_{k}" for k in range(pairs)], single=True)
            for kind in ("move", "turn")
        )
        # Checkpoints of before have vectors in their own units.
        self._past.restore(meta.get("units", [1.0] * pairs), moves, turns)
        values = [np.array(value, dtype=np.float64) for value in meta["values"]]
        if len(values) > 1 + self.solver.memory or any(v.shape != SHARES.shape for v in values):
            raise ValueError(f"its values of {len(values)} gradients do not fit this problem")
        self._steps, self._sparse.values = int(meta["steps"]), values
        self._sparse.slopes = checked_weights(
            self, arrays, [f"gradient_{k}" for k in range(len(values))]
        )
        self.best_primal, self.best_dual = meta["best_primal"], meta["best_dual"]
        self._last = [float(value) for value in meta["last"]]

    def continue_at(self, alpha: float) -> None:
        """Continue with another alpha from the current weights (a path over alpha).

        Parameters
        ----------
        alpha : float
        """
        before = self._penalty(self.best_w)
        self.given.alpha, self.best_dual = alpha, 0.0
        self.forget()
        self._last = []
        if np.isfinite(self.best_primal):
            self.best_primal += self._penalty(self.best_w) - before
        if self.slope is not None:
            self._beyond = self._where_beyond(self.slope)
