"""Consensus ADMM over shards on workers: certificates are sums of their answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..solvers.base import Start
from ..solvers.consensus import ConsensusADMM
from ..solvers.consensus_run import ConsensusRun
from ..solvers.metric import Moments


class ShardedConsensusRun(ConsensusRun):
    """One optimisation by :class:`~structsolve.solvers.ConsensusADMM` over shards elsewhere.

    A round sends one vector to each shard and receives one; a certificate sends two vectors and
    receives two numbers.

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
        super().__init__(solver, start, remote.engine)

    def _mend(self) -> None:
        """Request the same round again: other shards finish theirs, and give the same answer."""

    def _first_cut(self) -> tuple[np.ndarray, float]:
        problem: Any = self.given.problem
        g, b = problem.engine.ask("cut", np.zeros(problem.dim), self.given.n_jobs).sums[:2]
        return g, float(b)

    def _moments(self) -> Moments:
        problem: Any = self.given.problem
        return Moments(*problem.engine.ask("moments").sums)

    def _keep_best(self, candidates: Iterable[np.ndarray]) -> int:
        problem: Any = self.given.problem
        candidates, self.present = list(candidates), np.inf
        answer = problem.engine.ask("values", candidates, self.given.n_jobs)
        for w, mean in zip(candidates, answer.sums[0]):
            primal = problem.regulariser(w, self.given.alpha) + float(mean)
            self.present = min(self.present, primal)
            if primal < self.best_primal:
                self.best_primal, self.best_w = primal, w.copy()
        return problem.heard(answer)

    def memory(self) -> dict[str, int]:
        """Return the bytes of all shards, and of the weights here; see :meth:`Run.memory`."""
        problem: Any = self.given.problem
        return {"shards": problem.nbytes, "weights": 6 * self.z.nbytes}
