"""RelayRun: consensus ADMM to a moderate gap, then BCFW from the dual variables of its shards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .bcfw import BCFW
from .bcfw_run import BCFWRun
from .checkpoint import check_state
from .consensus_run import ConsensusRun
from .run import Run, Start, relative_gap, rng_state, set_rng_state

# Rounds after which BCFW takes over at any gap: where so many do not suffice, passes are left for
# it within the usual ``max_iter``.
MOST_ROUNDS = 50


class Handed(Run):
    """Base of runs in which one run follows another: the present one knows the weights."""

    run: Any

    @property
    def best_primal(self) -> float:  # type: ignore[override]
        """The least primal so far."""
        return self.run.best_primal

    @property
    def best_w(self) -> np.ndarray:  # type: ignore[override]
        """Its weights."""
        return self.run.best_w

    def certify(self) -> dict[str, Any]:
        """Return a certificate of the present weights."""
        return self.run.certify()

    def weights(self) -> np.ndarray:
        """Return a copy of the best weights so far."""
        return self.run.weights()

    def contradiction(self) -> str | None:
        """Return how kept cuts contradict the bounds at the best weights."""
        return self.run.contradiction()

    def memory(self) -> dict[str, int]:
        """Return the bytes held, by purpose; see :meth:`Run.memory`."""
        return self.run.memory()


class RelayRun(Handed):
    """One optimisation by ``ConsensusADMM(finish=...)``.

    The dual variables of all shards are those of the whole problem: once the certified gap is at
    most ``finish``, or after 50 rounds, one :class:`~structsolve.solvers.BCFW` goes on from them.
    Rounds gain most where the gap is wide, visits with all cuts of all examples where it is narrow.

    Parameters
    ----------
    solver : ConsensusADMM
    start : Start
    """

    def __init__(self, solver: Any, start: Start):
        self.solver, self.given = solver, start
        # Certificates of the rounds look out for the gap at which they end.
        inner = replace(start, tol=max(start.tol, solver.finish))
        self.run: ConsensusRun | BCFWRun = ConsensusRun(solver, inner)

    @property
    def finishing(self) -> bool:
        """Whether the rounds are over."""
        return isinstance(self.run, BCFWRun)

    def step(self) -> dict[str, Any]:
        """Make a round, or a pass if the rounds are over; see :meth:`Run.step`."""
        given, inner = self.given, self.run.given
        inner.n_jobs = given.n_jobs
        inner.tol = given.tol if self.finishing else max(given.tol, self.solver.finish)
        record = self.run.step()
        if isinstance(self.run, ConsensusRun) and record["certified"]:
            gap = relative_gap(record)
            near = gap is not None and gap <= self.solver.finish
            if gap is None or (gap > given.tol and (near or self.run.rounds >= MOST_ROUNDS)):
                self._hand_over(self.run)
        return record

    def _hand_over(self, rounds: ConsensusRun) -> None:
        run, w = self._new_finish(), rounds.best_w
        loops = [shard.loop for shard in rounds.engine.shards]  # type: ignore[attr-defined]
        counters = {**loops[0].counters(), "alpha": self.given.alpha}
        gaps = np.sum([loop.gaps for loop in loops], axis=0)  # 0 for examples of other shards
        run.loop.restore(counters, merged_duals(loops), w, w, gaps)
        run.loop.forget_average()
        run.loop.resynchronise()
        run.best_w, run.best_primal, run.best_bounds = w, rounds.best_primal, rounds.best_bounds
        run.last_dual, run.best_dual = run.dual, rounds.best_dual
        self.run = run

    def _new_finish(self) -> Any:
        # The steps of shards; those that "auto" takes for classes keep other dual variables.
        return BCFW(steps="pairwise").start(replace(self.given))

    def continue_at(self, alpha: float) -> None:
        """Continue with another alpha from the same dual variables.

        Parameters
        ----------
        alpha : float
        """
        self.run.continue_at(alpha)
        self.given.alpha = alpha

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything a checkpoint needs, and which of the two runs it is of."""
        if isinstance(self.run, ConsensusRun) and not self.run.rounds:
            return {"finishing": False, "run": {}}, {}  # a checkpoint may be of either run
        meta, arrays = self.run.state()
        rng = rng_state(self.given.rng)
        return {"finishing": self.finishing, "rng": rng, "run": meta}, arrays

    def restore(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Continue from a checkpoint."""
        set_rng_state(self.given.rng, meta["rng"])
        if meta["finishing"]:
            self.run = self._new_finish()
        check_state((meta["run"], arrays), self.run.state())
        self.run.restore(meta["run"], arrays)


def merged_duals(loops: list[Any]) -> dict[str, np.ndarray]:
    """Return the dual variables of several loops as those of one.

    Parameters
    ----------
    loops : list of BlockLoop
        Of the same examples, each of which has cuts in one loop at most.

    Returns
    -------
    dict of str to ndarray
        As ``BlockLoop.to_arrays()``.
    """
    each = [loop.to_arrays() for loop in loops]
    owner = np.concatenate([np.repeat(np.arange(len(a["counts"])), a["counts"]) for a in each])
    joined = {name: np.concatenate([a[name] for a in each]) for name in each[0]}
    joined["counts"] = sum(a["counts"] for a in each)
    cuts = np.argsort(owner, kind="stable")
    entries = np.argsort(np.repeat(owner, joined["nnz"]), kind="stable")
    orders: dict[str, Any] = {"counts": slice(None), "index": entries, "value": entries}
    return {name: array[orders.get(name, cuts)] for name, array in joined.items()}
