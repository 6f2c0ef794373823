"""Consensus ADMM over shards on workers: certificates are sums of their answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..solvers.consensus import ConsensusADMM
from ..solvers.consensus_run import ConsensusRun
from ..solvers.held import Common
from ..solvers.metric import Moments
from ..solvers.run import Start
from ..solvers.shard import Answer, Order
from .cluster import pickled


class ShardedConsensusRun(ConsensusRun):
    """One optimisation by :class:`~structsolve.solvers.ConsensusADMM` over shards elsewhere.

    A round sends one vector to each worker and receives one; a certificate sends at most two
    vectors and receives a few numbers.  They hold the weights of features that several shards have.

    Parameters
    ----------
    solver : ConsensusADMM
    start : Start
        Its problem is a :class:`~structsolve.dask.problem.RemoteProblem`.
    """

    def __init__(self, solver: ConsensusADMM, start: Start):
        solver.check(start.problem)
        if solver.finish is not None:
            raise ValueError(
                f"ConsensusADMM: finish is {solver.finish!r}, expected None for shards on workers: "
                "BCFW would need all examples here"
            )
        remote: Any = start.problem
        self.bytes = 0
        self.best_after: int | None = None
        super().__init__(solver, start, remote.engine)

    def step(self) -> dict[str, Any]:
        """Make a round; its record has the bytes to and from a worker; see :meth:`Run.step`."""
        self.bytes = 0
        return {**super().step(), "bytes": self.bytes}

    def _round(self, order: Order) -> Answer:
        order.keep = self.best_after == self.rounds > 0
        return self._counted(self.engine.step(order), order)

    def _counted(self, answer: Answer, *sent: Any) -> Answer:
        """Count what a worker gets once, whatever its shards, and the sum that it sends."""
        down = sum(memoryview(frame).nbytes for frame in pickled(sent))
        self.bytes += down + sum(np.asarray(term).nbytes for term in answer.sums)
        return answer

    def _mend(self) -> None:
        """Request the same round again: other shards finish theirs, and give the same answer."""

    def _common(self) -> Common | None:
        problem: Any = self.given.problem
        holders = problem.engine.ask("holders").sums[0]
        return Common.of_counts(problem.space.layout, holders, self.shards)

    def _first_cut(self) -> tuple[np.ndarray, float]:
        problem: Any = self.given.problem
        g, b = problem.engine.ask("cut", np.zeros(problem.dim), self.given.n_jobs).sums[:2]
        return g, float(b)

    def _moments(self) -> Moments:
        problem: Any = self.given.problem
        return Moments(*problem.engine.ask("moments").sums)

    # -- the best weights: shards keep those that they alone have ---------------------------------

    @property
    def best_w(self) -> np.ndarray:
        """The weights of the least primal; asked for when they are read."""
        if self.best_after is not None:
            self.best_w = self._assembled(self._best, self.best_after)
        return self._best

    @best_w.setter
    def best_w(self, w: np.ndarray) -> None:
        self._best, self.best_after = w, None

    def _model(self, z: np.ndarray) -> np.ndarray:
        return super()._model(z) if self.common is None else self._assembled(z, self.rounds)

    def _assembled(self, z: np.ndarray, after: int) -> np.ndarray:
        """Return all weights: these, and those that one shard alone had after so many rounds."""
        common: Any = self.common
        w = common.spread(z, np.zeros(common.whole.dim))
        rows = common.whole.node_block(w)
        if after > 0:
            engine: Any = self.engine
            for one in engine.ask_now("alone_after", after).each:
                rows[one["features"]] = one["weights"].reshape(-1, rows.shape[1])
        return w

    def certify(self) -> dict[str, Any]:
        """Return the certificate of the consensus, or its average if that is better."""
        if self.common is None:
            return super().certify()
        return self._certificate([self.z])

    def _keep_best(self, candidates: Iterable[np.ndarray]) -> int:
        problem: Any = self.given.problem
        candidates, self.present = list(candidates), np.inf
        after = None if self.common is None else self.rounds
        asked = candidates, self.given.n_jobs, after
        answer = self._counted(problem.engine.ask_now("values", *asked), *asked)
        alone = 0.0 if after is None else 0.5 * self.given.alpha * float(answer.sums[1])
        for w, mean in zip(candidates, answer.sums[0]):
            primal = problem.regulariser(w, self.given.alpha) + alone + float(mean)
            self.present = min(self.present, primal)
            if primal < self.best_primal:
                self.best_primal, self.best_w = primal, w.copy()
                self.best_after = after
        return problem.heard(answer)

    def memory(self) -> dict[str, int]:
        """Return the bytes of all shards, and of the weights here; see :meth:`Run.memory`."""
        problem: Any = self.given.problem
        return {"shards": problem.nbytes, "weights": 6 * self.z.nbytes}
