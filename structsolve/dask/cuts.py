"""Cutting planes over shards: a round is one pass at fixed weights, whose cuts are added up."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..solvers._bundles import Bundle, OneSlackBundle
from ..solvers.cutting_plane import CuttingPlane, CuttingPlaneRun
from ..solvers.run import Start


class _ShardedBundle(OneSlackBundle):
    """Cuts of the mean surrogate, each the sum of the shards' answers."""

    def add_cuts(self, run: Any, w: np.ndarray) -> tuple[float, float, int]:
        problem, value = run.given.problem, run.model().slacks(run.w)[0]
        answer = problem.engine.ask("cut", w, run.given.n_jobs)
        g, b, mean = answer.sums
        rise = float(b) - float(g @ run.w) - value
        self._append(g[None], np.array([float(b)]), np.zeros(1, dtype=np.int64))
        return float(mean), rise, problem.heard(answer)


class ShardedCuttingPlaneRun(CuttingPlaneRun):
    """One-slack cutting planes whose passes run on shards.

    Parameters
    ----------
    solver : CuttingPlane
    start : Start
        Its problem is a :class:`~structsolve.dask.problem.RemoteProblem`.

    Raises
    ------
    ValueError
        For ``slack="n"``: the cuts of all examples do not fit one machine.
    """

    def __init__(self, solver: CuttingPlane, start: Start):
        if solver.slack != "one":
            raise ValueError(
                f"CuttingPlane: slack is {solver.slack!r}, expected 'one' for shards: the program "
                "over a cut of each example has to fit one machine; use solver='admm'"
            )
        solver.check(start.problem)
        if solver.constraints:
            start.problem.engine.ask("check_constraints", solver.constraints)  # type: ignore[attr-defined]
        super().__init__(solver, start)

    def _use(self, bundle: Bundle) -> None:
        super()._use(_ShardedBundle(self.given.problem.dim, self.constraints, self.inside))

    def _may_split(self) -> bool:
        return False  # cuts of single examples are not here
