"""Cutting planes (BMRM), one-slack and n-slack, with linear constraints on the weights."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ..utils.arrays import aligned_zeros
from . import qp
from .base import Run, Solver, Start
from .passes import partial_sums, range_cuts, subgradient
from .weight_constraints import Rows, assemble

# One cut per pass is too few where the gap, which falls as over the last PASSES, would need more
# than TOO_MANY further ones: the mean is then split into its examples, if they are few.  Where
# they are many their mean is smooth, and a cut of each would make the program slow.
PASSES, TOO_MANY = 30, 100
# Examples at most, and numbers that their cuts of one pass may hold: the program stays small.
FEW_EXAMPLES, MOST_NUMBERS = 100, 2_500_000


class CuttingPlane(Solver):
    """Cutting planes on the primal: one exact pass over all examples per iteration.

    A pass at fixed weights gives the primal exactly and a cut below the mean surrogate (one-slack,
    BMRM) or below the surrogate of each example (n-slack); a small quadratic program over all cuts
    so far gives the dual and the next weights.  Both ends of the gap are certified after every
    pass.  It needs few passes where regularisation is strong, keeps its promises under linear
    constraints on the weights and an unpenalised intercept, and its passes run in ``n_jobs``
    threads with the same result to the last bit.

    Parameters
    ----------
    slack : {"one", "n"}
        One cut per pass for the mean of all examples, or one per example and pass: fewer passes,
        a much larger program; for small data and costly oracles.  Where one cut per pass is too
        few (see Notes), at most 100 examples get a cut each in the one-slack form too.
    step : float, optional
        The next cut is taken this far on the way from the best weights so far to the minimiser of
        the model.  1 is plain BMRM, which jumps about while the model is poor.  By default 0.2
        in the one-slack form and 1 in the n-slack form.
    inactive : int, optional
        Drop a cut that has had no weight in so many programs in a row; by default 50 in the
        one-slack form and 5 in the n-slack form.
    constraints : list of LinearConstraint or WeightBounds, optional
        What every w must satisfy; anything with ``rows(layout)`` will do.

    Notes
    -----
    The mean surrogate of few examples has corners in hundreds of directions, and a cut shows one.
    Once 30 passes have shown that the gap needs 100 more to reach ``tol``, the one-slack form
    begins again from the best weights with one cut per example and pass, where these are at most
    100: ``groups`` in the records says how many sums have cuts of their own.

    Weights outside the norm are bounded by a box as long as the model does not bound them; it
    grows when they reach it, and has no part in the dual that is reported.

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

    def __init__(
        self,
        slack: str = "one",
        step: float | None = None,
        inactive: int | None = None,
        constraints: Any = None,
    ):
        self.slack = slack
        self.step = step
        self.inactive = inactive
        self.constraints = constraints

    def start(self, start: Start) -> CuttingPlaneRun:
        if self.slack not in ("one", "n"):
            raise ValueError(f"CuttingPlane: slack is {self.slack!r}, expected 'one' or 'n'")
        if self.step is not None and not 0 < self.step <= 1:
            raise ValueError(f"CuttingPlane: step is {self.step!r}, expected 0 < step <= 1")
        if self.inactive is not None and (
            not isinstance(self.inactive, (int, np.integer)) or self.inactive < 1
        ):
            raise ValueError(
                f"CuttingPlane: inactive is {self.inactive!r}, expected an integer >= 1"
            )
        self.check(start.problem)
        return CuttingPlaneRun(self, start)


class OneSlack:
    """Cuts of the mean surrogate, dense, with the Gram matrix of their penalised columns.

    The mean may be split into groups of examples, each with cuts of its own.

    Parameters
    ----------
    dim : int
    rows : Rows
        Constraints on w.
    inside : ndarray of shape (dim,)
        1 where w is in the norm, else 0.
    parts : list of tuple of int, optional
        First example of each group, and the one behind its last; by default all are one group.
    """

    def __init__(
        self,
        dim: int,
        rows: Rows,
        inside: np.ndarray,
        parts: list[tuple[int, int]] | None = None,
    ):
        self.A, self.inside, self.parts = rows.A, inside, parts
        r = len(rows.c)
        self.caps = np.ones(len(parts) if parts else 1)
        self.G: np.ndarray = aligned_zeros(0).reshape(0, dim)
        self.b, self.idle = np.zeros(0), np.zeros(0, dtype=np.int64)
        self.group = np.zeros(0, dtype=np.int64)
        self.gram = np.zeros((r, r))
        self.sums: np.ndarray | None = None
        if r:
            penalised = rows.A.multiply(inside).tocsr()
            self.gram = (penalised @ penalised.T).toarray()

    share, patience = 0.2, 50

    def pass_over(self, run: CuttingPlaneRun, at: np.ndarray) -> tuple[float, float, int]:
        """Take a cut of each group at ``at``; return the mean surrogate there, by how much the cuts
        raise the model at its present minimiser, and the oracle calls."""
        problem, xi = run.given.problem, run.model().slacks(run.w)
        if self.parts is None:
            if self.sums is None:
                self.sums = partial_sums(problem)
            g, b, bounds, calls = subgradient(problem, at, run.given.n_jobs, self.sums)
            news = b - float(g @ run.w) - xi[0]
            self._append(g[None], np.array([b]), np.zeros(1, dtype=np.int64))
        else:
            if self.sums is None:
                self.sums = aligned_zeros(len(self.parts) * problem.dim).reshape(-1, problem.dim)
            cuts, ends, bounds, calls = range_cuts(
                problem, at, self.parts, self.sums, run.given.n_jobs
            )
            rises = ends - cuts @ run.w - xi
            fresh = np.flatnonzero(rises > run.threshold / len(self.parts))
            news = float(rises[fresh].sum())
            self._append(cuts[fresh], ends[fresh], fresh)
        return float(problem.weights @ bounds), news, calls

    def _append(self, g: np.ndarray, b: np.ndarray, group: np.ndarray) -> None:
        m, k, r, dim = len(self.b), len(b), self.A.shape[0], g.shape[1]
        if not k:
            return
        if m + k > len(self.G):
            grown = aligned_zeros((2 * m + k + 15) * dim).reshape(-1, dim)
            grown[:m] = self.cuts
            self.G = grown
        self.G[m : m + k] = g
        h = (g * self.inside).T
        gram = np.empty((r + m + k,) * 2)
        gram[:-k, :-k] = self.gram
        columns = np.vstack([-(self.A @ h), self.G[: m + k] @ h])
        gram[:, -k:] = columns
        gram[-k:] = columns.T
        self.gram = gram
        self.b, self.idle = np.append(self.b, b), np.append(self.idle, np.zeros(k, dtype=np.int64))
        self.group = np.append(self.group, group)

    @property
    def cuts(self) -> np.ndarray:
        return self.G[: len(self.b)]

    def keep(self, mask: np.ndarray) -> None:
        """Drop the other cuts."""
        m = int(mask.sum())
        self.G[:m] = self.cuts[mask]
        self.b, self.idle, self.group = self.b[mask], self.idle[mask], self.group[mask]
        both = np.concatenate([np.ones(self.A.shape[0], dtype=bool), mask])
        self.gram = self.gram[np.ix_(both, both)]

    def arrays(self) -> dict[str, np.ndarray]:
        """What a checkpoint needs."""
        return {
            "G": self.cuts,
            "b": self.b,
            "idle": self.idle,
            "group": self.group,
            "gram": self.gram,
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take the cuts of a checkpoint."""
        G: np.ndarray = arrays["G"]
        self.G = aligned_zeros(G.size).reshape(G.shape)
        self.G[:] = G
        names = ("b", "idle", "group", "gram")
        self.b, self.idle, self.group, self.gram = (arrays[k].copy() for k in names)


class NSlack:
    """Cuts of each example, as sparse rows."""

    gram = None
    share, patience = 1.0, 5

    def __init__(self, dim: int, caps: np.ndarray):
        import scipy.sparse as sp

        self.caps = caps
        self.cuts = sp.csr_matrix((0, dim))
        self.b, self.idle = np.zeros(0), np.zeros(0, dtype=np.int64)
        self.group = np.zeros(0, dtype=np.int64)

    def pass_over(self, run: CuttingPlaneRun, at: np.ndarray) -> tuple[float, float, int]:
        """Take the violated cuts at ``at``; returns what it does in the one-slack form."""
        import scipy.sparse as sp

        from ._nslack import violated_cuts

        problem = run.given.problem
        xi, news = run.model().slacks(run.w), 0.0
        bounds, rows, calls = violated_cuts(problem, at, run.w, xi, run.threshold, run.given.n_jobs)
        if rows:
            owners, b, columns, values = (list(column) for column in zip(*rows))
            ends = np.concatenate([[0], np.cumsum([len(c) for c in columns])])
            fresh = sp.csr_matrix(
                (np.concatenate(values), np.concatenate(columns), ends),
                shape=(len(rows), problem.dim),
            )
            news = float(self.caps[owners] @ (np.array(b) - fresh @ run.w - xi[owners]))
            self.cuts = sp.vstack([self.cuts, fresh], format="csr")
            self.b = np.concatenate([self.b, b])
            self.group = np.concatenate([self.group, np.array(owners, dtype=np.int64)])
            self.idle = np.concatenate([self.idle, np.zeros(len(rows), dtype=np.int64)])
        return float(problem.weights @ bounds), news, calls

    def keep(self, mask: np.ndarray) -> None:
        """Drop the other cuts."""
        self.cuts, self.b = self.cuts[mask], self.b[mask]
        self.group, self.idle = self.group[mask], self.idle[mask]

    def arrays(self) -> dict[str, np.ndarray]:
        """What a checkpoint needs."""
        return {
            "data": self.cuts.data,
            "indices": self.cuts.indices,
            "indptr": self.cuts.indptr,
            "b": self.b,
            "idle": self.idle,
            "group": self.group,
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take the cuts of a checkpoint."""
        import scipy.sparse as sp

        self.b, self.idle, self.group = (arrays[k].copy() for k in ("b", "idle", "group"))
        parts = tuple(arrays[k].copy() for k in ("data", "indices", "indptr"))
        self.cuts = sp.csr_matrix(parts, shape=(len(self.b), self.cuts.shape[1]))


class CuttingPlaneRun(Run):
    """One optimisation by :class:`CuttingPlane`."""

    def __init__(self, solver: CuttingPlane, start: Start):
        self.solver, self.given = solver, start
        problem = start.problem
        layout = problem.space.layout
        self.constraints = assemble(solver.constraints, layout)
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
        self.store: Any
        if solver.slack == "one":
            self.store = OneSlack(problem.dim, self.constraints, inside)
        else:
            self.store = NSlack(problem.dim, problem.weights)
        self._take_rates()
        self.box = 10.0
        self.best_primal, self.best_dual, self.least = np.inf, 0.0, 1.0
        self.w = np.zeros(problem.dim)
        self.next = np.zeros(problem.dim) if start.w is None else np.array(start.w)
        if self.constraints.violation(self.next) > 1e-9:
            # The feasible weights of least norm.
            self.w = qp.solve(self.model()).w
            self.next = self.w.copy()
        self.best_w = self.next.copy()

    def _take_rates(self) -> None:
        solver = self.solver
        self.share = self.store.share if solver.step is None else float(solver.step)
        self.patience = self.store.patience if solver.inactive is None else int(solver.inactive)

    @property
    def threshold(self) -> float:
        """By how much a cut must raise the model: less could not close 1 % of the gap wanted."""
        goal = 0.01 * max(self.given.tol, 1e-14) * abs(self.best_primal)
        return goal if np.isfinite(goal) else 0.0

    def model(self) -> qp.Model:
        """Return the present cutting-plane model."""
        return qp.Model(
            cuts=self.store.cuts,
            b=self.store.b,
            group=self.store.group,
            caps=self.store.caps,
            alpha=self.given.alpha,
            A=self.constraints.A,
            c=self.constraints.c,
            equal=self.constraints.equal,
            free=self.free,
            box=self.box,
            scale=max(self.best_primal, self.least) if self.best_primal < np.inf else 1.0,
            gram=self.store.gram,
        )

    def step(self) -> dict[str, Any]:
        problem, at = self.given.problem, self.next
        mean, news, calls = self.store.pass_over(self, at)
        primal = problem.regulariser(at, self.given.alpha) + mean
        if self.best_primal == np.inf:
            # Where the optimum is 0, accuracy is relative to where it began.
            self.least = max(1e-6 * primal, 1e-300)
        if primal < self.best_primal:
            self.best_primal, self.best_w = primal, at.copy()
        begun = time.perf_counter()
        # Where the model holds already, all that is left is to go to its minimiser.
        self._minimise(1.0 if news <= 0.1 * (self.best_primal - self.best_dual) else self.share)
        record = self._certificate()
        record["oracle_calls"] = calls
        record["cuts"] = len(self.store.b)
        record["groups"] = len(self.store.caps)
        record["qp_seconds"] = time.perf_counter() - begun
        if record["groups"] == 1 and self.solver.slack == "one":
            self._split_where_slow(record["gap"])
        return record

    def _split_where_slow(self, gap: float) -> None:
        """Go over to cuts of single examples where one cut per pass would take too long."""
        problem = self.given.problem
        self.gaps = [*self.gaps[-PASSES:], gap]
        goal = max(self.given.tol, 1e-12) * abs(self.best_primal)
        few = 2 <= problem.n <= min(FEW_EXAMPLES, MOST_NUMBERS // max(problem.dim, 1))
        if not few or len(self.gaps) <= PASSES or gap <= goal:
            return
        fall = np.log(max(self.gaps[0] / gap, 1)) / PASSES
        if np.log(gap / goal) > TOO_MANY * fall:
            self._split()
            self.next = self.best_w

    def _split(self) -> None:
        """Begin a model with cuts of single examples; bounds and weights stay."""
        problem = self.given.problem
        parts = [(i, i + 1) for i in range(problem.n)]
        self.store = OneSlack(problem.dim, self.constraints, self.inside, parts)
        # This is the n-slack form, and its rates suit it.
        self.store.share, self.store.patience = NSlack.share, NSlack.patience
        self._take_rates()

    def _minimise(self, share: float) -> None:
        """Minimise the model; sets the dual, and the next point ``share`` of the way there."""
        found = qp.solve(self.model())
        rose = found.lower > self.best_dual
        self.best_dual = max(self.best_dual, found.lower)
        self.w = found.w
        if found.at_box:
            self.box *= 10
        used = found.x[len(self.constraints.c) :] > 1e-9 * self.store.caps[self.store.group]
        self.store.idle = np.where(used, 0, self.store.idle + 1)
        stale = self.store.idle >= self.patience
        # Dropping cuts while the dual stands still could go round in circles.
        if rose and stale.any():
            self.store.keep(~stale)
        self.next = self.w if share == 1 else (1 - share) * self.best_w + share * self.w

    def _certificate(self) -> dict[str, Any]:
        # At the optimum rounding alone decides which of the two is larger.
        dual = min(self.best_dual, self.best_primal)
        return {
            "primal": self.best_primal,
            "dual": dual,
            "gap": self.best_primal - dual,
            "certified": True,
            "oracle_calls": 0,
        }

    def certify(self) -> dict[str, Any]:
        return self._certificate()

    def weights(self) -> np.ndarray:
        return self.best_w.copy()

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        meta = {
            "best_primal": self.best_primal,
            "best_dual": self.best_dual,
            "least": self.least,
            "box": self.box,
            "alpha": self.given.alpha,
            "groups": len(self.store.caps),
            "gaps": self.gaps,
        }
        arrays = {f"cuts_{k}": v for k, v in self.store.arrays().items()}
        return meta, arrays | {"w": self.w, "next": self.next, "best_w": self.best_w}

    def restore(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.best_primal, self.best_dual = meta["best_primal"], meta["best_dual"]
        self.least, self.box, self.given.alpha = meta["least"], meta["box"], meta["alpha"]
        self.gaps = list(meta["gaps"])
        if self.solver.slack == "one" and meta["groups"] > 1:
            self._split()
        self.store.restore(
            {k.removeprefix("cuts_"): v for k, v in arrays.items() if k.startswith("cuts_")}
        )
        self.w, self.next, self.best_w = (arrays[k].copy() for k in ("w", "next", "best_w"))

    def continue_at(self, alpha: float) -> None:
        """Go on with another alpha: cuts hold for every alpha (a path over alpha)."""
        problem = self.given.problem
        if np.isfinite(self.best_primal):
            self.best_primal += problem.regulariser(self.best_w, alpha - self.given.alpha)
        self.given.alpha, self.best_dual, self.gaps = alpha, 0.0, []
        if len(self.store.b):
            self._minimise(self.share)
