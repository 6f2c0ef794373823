"""The rounds of consensus ADMM: consensus, averages, dual, penalty, certificates, checkpoints."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..utils.arrays import part_of
from .held import Common, blocks
from .metric import Moments, SpectralMetric, choose_metric, moments
from .passes import subgradient
from .run import Run, Start, checked_weights
from .shard import RELAX, Answer, Order
from .shard_engine import Engine, ThreadEngine

# Averages give round r the weight r to this power: about the last seventh of the rounds counts.
DECAY = 6
# Passes of each shard in round 0.
FIRST_PASSES = 5
# Rounds to the second certificate.
SOON = 3
# Curvature of the loss in a typical direction, as a share of |g|^2 / b of its cut at w = 0.
TYPICAL = 0.004
# Least rho in units of alpha / K, with K itself: weaker penalties let shards drift apart.
LEAST = 12.0
# In the spectral metric weaker penalties are enough.
WEAKER = 0.75
# The penalty changes if the shards' distance from the consensus, divided by the consensus' step
# in a round, is outside of these limits and moves away from them (at first it rises for any
# penalty) ...
BALANCED = (0.6, 1.4)
# ... by this factor, ...
CHANGE = 3.0
# ... after FIRST rounds, and SETTLED more for each penalty; RECENT is the weight of the last one.
FIRST, SETTLED, RECENT = 16, 8, 0.25
# What a checkpoint holds as it is.
KEPT = (
    *("rho", "rounds", "fresh", "averaged_from", "next_certificate", "b_average", "imbalance"),
    *("unchanged_from", "stronger", "best_primal", "best_dual"),
)


class ConsensusRun(Run):
    """One optimisation by :class:`~structsolve.solvers.ConsensusADMM`.

    Parameters
    ----------
    solver : ConsensusADMM
    start : Start
    engine : Engine, optional
        By default threads of this process.
    """

    def __init__(self, solver: Any, start: Start, engine: Engine | None = None):
        problem = start.problem
        self.solver, self.given = solver, start
        self.engine = ThreadEngine(start, solver.n_shards) if engine is None else engine
        self.shards = self.engine.n_shards
        self.curvature = 0.0
        if solver.penalty is None or solver.metric == "auto":
            g, b = self._first_cut()
            self.curvature = TYPICAL * float(g @ g) / max(b, 1e-300)
        self.stronger = 1.0
        bend = self.curvature / start.alpha
        self.metric = choose_metric(solver.metric, problem, bend, self._moments)
        self.common = None if self.metric is not None else self._common()
        self._set_penalty()
        self.best_w, self.best_primal, self.best_dual = np.zeros(problem.dim), np.inf, 0.0
        self.spare = self.best_w
        self._begin()

    def _begin(self) -> None:
        """Start with shards before their first round."""
        dim = self.given.problem.dim if self.common is None else self.common.dim
        self.z, self.y_sum, self.average = np.zeros(dim), np.zeros(dim), np.zeros(dim)
        self.dual_w, self.dual_average, self.b_average = np.zeros(dim), np.zeros(dim), 0.0
        self.rounds = self.averaged_from = self.next_certificate = 0
        self.certified = (0, np.inf)
        self.imbalance, self.trend, self.unchanged_from = 0.0, 0.0, 0
        self.fresh = self.torn = False

    def _set_penalty(self) -> None:
        """Set rho for the current alpha."""
        alpha, factor = self.given.alpha, self.solver.penalty
        self.first_rho = alpha / self.shards
        if factor is None:
            factor = float(np.sqrt(self.curvature * self.shards / alpha))
            factor *= 1.0 if self.metric is None else WEAKER
            factor = self.stronger * max(factor, LEAST, self.shards)
        self.rho = factor * self.first_rho

    def _first_cut(self) -> tuple[np.ndarray, float]:
        """Return the cut of the mean surrogate at w = 0."""
        problem = self.given.problem
        g, b, _, _ = subgradient(problem, np.zeros(problem.dim), self.given.n_jobs)
        return g, b

    def _moments(self) -> Moments:
        """Return the moments of all examples' node features."""
        return moments(self.given.problem)

    def _common(self) -> Common | None:
        """Return the weights on which shards agree; None if that is all."""
        engine: Any = self.engine
        layout = self.given.problem.space.layout
        return Common.of_counts(layout, engine.holders(), self.shards)

    def _model(self, z: np.ndarray) -> np.ndarray:
        """Return weights of the problem: these, and those that one shard alone has."""
        engine: Any = self.engine
        if self.common is not None:
            # New memory would take longer than the weights do: two arrays take turns.
            old = self.spare if self.spare is not self.best_w else np.zeros(len(self.best_w))
            self.spare = engine.whole(self.common, z, old)
            return self.spare
        return z.copy() if self.metric is None else self.metric.model(z)

    def step(self) -> dict[str, Any]:
        """Make a round, and a certificate when due; see :meth:`Run.step`."""
        if self.torn:
            self._mend()
        solver, first = self.solver, self.rounds == 0
        rho = self.first_rho if first else self.rho
        passes = FIRST_PASSES if first else solver.passes
        metric, common = (self.metric, self.common) if first else (None, None)
        order = Order(self.rounds, self.z, rho, passes, self.fresh)
        order.alpha, order.metric, order.common = self.given.alpha, metric, common
        self.torn = True
        answer = self._round(order)
        self.torn = False
        self._take(answer, rho)
        self.fresh = first
        self.rounds += 1
        self._balance()
        record = {
            "primal": None,
            "dual": self.best_dual,
            "gap": None,
            "certified": False,
            "oracle_calls": sum(one["oracle_calls"] for one in answer.each),
            "cached_passes": max(one["cached_passes"] for one in answer.each),
            "cuts": sum(one["cuts"] for one in answer.each),
            "metric": "identity" if self.metric is None else "spectral",
        }
        if self.rounds >= self.next_certificate:
            certificate = self.certify()
            certificate["oracle_calls"] += record["oracle_calls"]
            record.update(certificate)
        else:
            # The primal can only have fallen since.
            record["primal"], record["gap"] = self.best_primal, self.best_primal - self.best_dual
        return record

    def _round(self, order: Order) -> Answer:
        """Return the answer of all shards to an order."""
        return self.engine.step(order)

    def _mend(self) -> None:
        """Restart after an interrupted round, which only some shards have completed."""
        self.engine = ThreadEngine(self.given, self.solver.n_shards)
        self._begin()

    def _take(self, answer: Answer, rho: float) -> None:
        """Move the consensus; record the dual."""
        alpha, alone = self.given.alpha, float(answer.sums[4])
        own, b = answer.sums[0], float(answer.sums[1])
        if self.rounds > 0:
            self._move(own, rho, float(answer.sums[3]))
        own *= rho / alpha
        self.dual_w = own
        if self.rounds == 0:
            self._note_dual(b, alone)
            # The shards begin round 1 with the y of their own dual variables.
            self.z, self.y_sum = own, own * (alpha / self.rho)
            return
        if self.common is None:
            self._average(b)
        self._note_dual(b, alone)

    def _move(self, own: np.ndarray, rho: float, spread: float) -> None:
        """Move z and the sum of y; note how far shards are from z, and z from where it was.

        ``spread`` is the sum of ``|w_k - z|^2``, where ``w_k = z - y_k + own_k``.
        """
        K: Any = self.shards if self.common is None else self.common.counts
        squares: Any = 1.0 if self.metric is None else self.metric.squares
        far, apart = 0.0, 0.0
        new = np.empty_like(self.z)  # because shards keep the last z
        for some in blocks(len(new)):
            count = K[some] if isinstance(K, np.ndarray) else K
            square = squares[some] if isinstance(squares, np.ndarray) else squares
            share, y, z = (
                rho / (self.given.alpha * square + count * rho),
                self.y_sum[some],
                new[some],
            )
            between = own[some] - y
            # The sum of all RELAX w_k + (1 - RELAX) z + y_k.
            y *= 1 - RELAX
            y += RELAX * own[some]
            y += count * self.z[some]
            np.multiply(y, share, out=z)
            y *= 1 - count * share
            moved = z - self.z[some]
            far += float((count * moved) @ moved)
            apart += float(between @ moved)
        self.z = new
        self._note_imbalance(spread - 2 * apart + far, far)

    def _average(self, b: float) -> None:
        """Move the weighted means of the rounds, with weights r^DECAY.

        Where one shard alone has most weights, they gain nothing.
        """
        own = self.dual_w
        share = (DECAY + 1) / (self.rounds - self.averaged_from + DECAY)
        self.average += share * (self.z - self.average)
        self.dual_average += share * (own - self.dual_average)
        self.b_average += share * (b - self.b_average)

    def _note_imbalance(self, from_new: float, far: float) -> None:
        """Note how far shards are from the consensus, in units of how far it has moved.

        These are the sums of the squares over shards.
        """
        if 0 < far < np.inf and 0 < from_new < np.inf:
            self.trend = 0.5 * float(np.log(from_new / far)) - self.imbalance
            self.imbalance += RECENT * self.trend

    def _balance(self) -> None:
        """Change the penalty if shards stay far apart, or the consensus is slow."""
        least = FIRST if self.stronger == 1 else SETTLED
        if self.solver.penalty is not None or self.rounds < self.unchanged_from + least:
            return
        low, high = np.log(BALANCED)
        above = self.imbalance > high
        if low <= self.imbalance <= high or above != (self.trend > 0):
            return
        self.stronger *= CHANGE if above else 1 / CHANGE
        self._change_penalty()

    def _change_penalty(self) -> None:
        """Change rho; the shards restart from their dual variables."""
        self._set_penalty()
        # Keep the consensus; take every y from its shard's dual variables.
        self.y_sum = self.dual_w * (self.given.alpha / self.rho)
        self.fresh, self.unchanged_from, self.imbalance = self.rounds > 0, self.rounds, 0.0

    def _note_dual(self, b: float, alone: float) -> None:
        """Note the best dual from the present dual variables to their average, both feasible.

        ``alone`` is the square of the weights that one shard alone has.
        """
        alpha, w = self.given.alpha, self.dual_w
        scaled = self._over_squares(w)
        dual = b - 0.5 * alpha * (float(w @ scaled) + alone)
        if self.common is None and self.rounds > self.averaged_from:
            change = self.dual_average - w
            slope = self.b_average - b - alpha * float(change @ scaled)
            curvature = alpha * float(change @ self._over_squares(change))
            if slope > 0:
                share = min(1.0, slope / max(curvature, 1e-300))
                dual += share * (slope - 0.5 * share * curvature)
        self.best_dual = max(self.best_dual, dual)

    def _over_squares(self, w: np.ndarray) -> np.ndarray:
        """Return w as its product with itself measures it in the metric's dual."""
        return w if self.metric is None else w / self.metric.squares

    def certify(self) -> dict[str, Any]:
        """Return the certificate of the better of the consensus and its average."""
        candidates = [self._model(self.z)]
        if self.common is None and self.rounds > self.averaged_from + 3:
            candidates.append(self._model(self.average))
        return self._certificate(candidates)

    def _certificate(self, candidates: list[np.ndarray]) -> dict[str, Any]:
        spent = self._keep_best(candidates)
        gap = self.best_primal - self.best_dual
        self.next_certificate = self.rounds + self._rounds_ahead(gap)
        return self._certified(self.best_dual, spent)

    def _rounds_ahead(self, gap: float) -> int:
        """Return the rounds to the next certificate, and record this one."""
        (before, wide), self.certified = self.certified, (self.rounds, gap)
        most = self.solver.certify_every
        enough = self.given.tol * abs(self.best_primal)
        if gap <= enough:
            return 1
        if not np.isfinite(wide):
            return min(SOON, most)
        # The decrease of the gap's logarithm per round.
        fall = np.log(wide / gap) / max(self.rounds - before, 1)
        left = np.log(gap / enough) / fall if enough > 0 and fall > 0 else np.inf
        return int(min(max(left, 1), most))

    def weights(self) -> np.ndarray:
        """Return a copy of the best weights so far."""
        return self.best_w.copy() if np.isfinite(self.best_primal) else self._model(self.z)

    def memory(self) -> dict[str, int]:
        """Return the bytes of the examples, of all shards' dual variables and weights, and here."""
        engine: Any = self.engine
        own, scored = self.given.problem.potentials, engine.shards[0].potentials
        return {
            "examples": own.nbytes + (0 if scored is own else scored.nbytes),
            "shards": sum(shard.nbytes for shard in engine.shards),
            "weights": 6 * self.z.nbytes,
        }

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything a checkpoint needs, the shards' state too."""
        shards = self.engine.states()
        meta: dict[str, Any] = {name: getattr(self, name) for name in KEPT}
        meta |= {"alpha": self.given.alpha, "certified": self.certified}
        meta["shards"] = [one for one, _ in shards]
        arrays = {f"shard{k}_{n}": a for k, (_, own) in enumerate(shards) for n, a in own.items()}
        arrays |= {"z": self.z, "y_sum": self.y_sum, "average": self.average}
        arrays["dual_average"] = self.dual_average
        if self.metric is not None:
            arrays["turn"] = self.metric.turn
        if self.common is not None:
            arrays |= self.common.arrays()
        return meta, arrays | {"dual_w": self.dual_w, "best_w": self.best_w}

    def restore(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Continue from a checkpoint."""
        if len(meta["shards"]) != self.shards:
            raise ValueError(f"it has {len(meta['shards'])} shards, expected {self.shards}")
        turn = arrays.get("turn")
        layout = self.given.problem.space.layout
        self.metric = None if turn is None else SpectralMetric(layout, turn)
        self.common = Common.of_arrays(layout, arrays) if "features" in arrays else None
        names = ("z", "y_sum", "average", "dual_average", "dual_w")
        dim = None if self.common is None else self.common.dim
        copies = checked_weights(self, arrays, names, dim)
        self.z, self.y_sum, self.average, self.dual_average, self.dual_w = copies
        (self.best_w,) = checked_weights(self, arrays, ["best_w"])
        for name in KEPT:
            setattr(self, name, meta[name])
        self.given.alpha, self.certified = meta["alpha"], tuple(meta["certified"])
        shards = enumerate(meta["shards"])
        self.engine.restore([(one, part_of(arrays, f"shard{k}_")) for k, one in shards])

    def continue_at(self, alpha: float) -> None:
        """Continue with another alpha from the same dual variables (a path over alpha).

        Parameters
        ----------
        alpha : float
        """
        if self.torn:
            self._mend()
        self.dual_w = self.dual_w * (self.given.alpha / alpha)
        self.given.alpha = alpha
        self._change_penalty()
        self.best_primal, self.best_dual = np.inf, 0.0
        self.averaged_from = max(self.rounds - 1, 0)
        self.average, self.dual_average = np.zeros_like(self.z), np.zeros_like(self.z)
        self.b_average = 0.0
        self.next_certificate, self.certified = self.rounds, (self.rounds, np.inf)

    def contradiction(self) -> str | None:
        """Return how kept cuts contradict the bounds; see :meth:`Run.contradiction`."""
        if self.best_bounds is None:
            return None
        shards: Any = self.engine
        begun = [shard for shard in shards.shards if shard.loop is not None]
        known = np.max([one.known_values(self.best_w) for one in begun], axis=0)
        return self._contradicted(known)
