"""A run of problems that share nothing but features, whose sum is the problem to solve.

Where no part and no score is common to two groups of labels, weights and dual variables of the
groups are separate.  A joint step of a block then has one step size for all of them, and becomes
the shorter the more groups there are; here each group has its own steps and stops on its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..utils.arrays import part_of
from .bcfw_run import NEAR
from .problem import Problem
from .run import Run, Start, relative_gap

# Numbers of the records that are sums over the groups.
SUMS = ("primal", "dual", "gap", "oracle_calls", "cached_passes", "cuts")


class SeparateRun(Run):
    """One optimisation of separate problems, each by a run of its own.

    A group that has reached ``tol`` rests; primal, dual and gap are sums.

    Parameters
    ----------
    start : Start
        Of the whole problem.
    groups : list of tuple
        Space, examples and places of weights of each; see :meth:`structsolve.Space.groups`.
    begin : callable
        From the start of a group to its run.
    """

    def __init__(self, start: Start, groups: list[Any], begin: Callable[[Start], Run]):
        self.given = start
        # Of each group's weights, those that the whole problem has, and where.
        self.places = [(np.flatnonzero(own >= 0), own[own >= 0]) for _, _, own in groups]
        self.runs = [
            begin(replace(start, problem=start.problem.on(space, examples), w=None))
            for space, examples, _ in groups
        ]
        self.records: list[dict[str, Any]] = [{} for _ in groups]

    def step(self) -> dict[str, Any]:
        """Make a pass of every group that has not reached ``tol``."""
        self._advance(self._open(), "step")
        record = self._sum()
        near = record["gap"] <= NEAR * self.given.tol * abs(record["primal"])
        return self.certify() if near and not record["certified"] else record

    def certify(self) -> dict[str, Any]:
        """Return the sum of the groups' certificates."""
        self._advance(
            [k for k, record in enumerate(self.records) if not record.get("certified")], "certify"
        )
        return self._sum()

    def _open(self) -> list[int]:
        """Return the groups that go on; all, if each has reached ``tol``."""
        chosen = []
        for k, record in enumerate(self.records):
            gap = relative_gap(record)
            if gap is None or not record.get("certified") or gap > self.given.tol:
                chosen.append(k)
        return chosen or list(range(len(self.runs)))

    def _advance(self, chosen: list[int], method: str) -> None:
        """Replace the records of these groups; the others spend nothing."""
        whole = self.given.problem
        for k, record in enumerate(self.records):
            if k in chosen:
                self.records[k] = getattr(self.runs[k], method)()
                whole.violation = whole.violation or self.runs[k].given.problem.violation
            else:
                record.update(dict.fromkeys(("oracle_calls", "cached_passes"), 0))

    def _sum(self) -> dict[str, Any]:
        total: dict[str, Any] = {
            name: sum(record.get(name, 0) for record in self.records) for name in SUMS
        }
        return {**total, "certified": all(record["certified"] for record in self.records)}

    @property
    def best_primal(self) -> float:  # type: ignore[override]
        """The sum of the groups' least primals."""
        return float(sum(run.best_primal for run in self.runs))

    @property
    def best_w(self) -> np.ndarray:  # type: ignore[override]
        """The weights of :attr:`best_primal`."""
        return self.weights()

    def contradiction(self) -> str | None:
        """Return what contradicts the bounds of a group."""
        return next(filter(None, (run.contradiction() for run in self.runs)), None)

    def weights(self) -> np.ndarray:
        """Return the groups' best weights in the places of the whole problem."""
        w = np.zeros(self.given.problem.dim)
        for run, (kept, places) in zip(self.runs, self.places, strict=True):
            w[places] = run.weights()[kept]
        return w

    def memory(self) -> dict[str, int]:
        """Return the bytes held; all groups have the same features."""
        held = [run.memory() for run in self.runs]
        total = {name: sum(each[name] for each in held) for name in held[0]}
        return {**total, "examples": self.given.problem.potentials.nbytes}

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything a checkpoint needs; see :meth:`Run.state`."""
        meta: dict[str, Any] = {"records": self.records}
        arrays = {}
        for k, run in enumerate(self.runs):
            own, more = run.state()
            meta[f"group {k}"] = own
            arrays.update({f"group_{k}_{name}": array for name, array in more.items()})
        return meta, arrays

    def restore(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Continue from a checkpoint."""
        if len(meta["records"]) != len(self.runs):
            raise ValueError(
                f"the checkpoint has {len(meta['records'])} groups, expected {len(self.runs)}"
            )
        self.records = meta["records"]
        for k, run in enumerate(self.runs):
            run.restore(meta[f"group {k}"], part_of(arrays, f"group_{k}_"))

    def continue_at(self, alpha: float) -> None:
        """Continue with another alpha from the same dual variables.

        Parameters
        ----------
        alpha : float
        """
        self.given.alpha = alpha
        self.records = [{} for _ in self.runs]
        for run in self.runs:
            run.given.tol, run.given.n_jobs = self.given.tol, self.given.n_jobs
            run.continue_at(alpha)  # type: ignore[attr-defined]


def groups_of(problem: Problem) -> list[Any]:
    """Return the groups of labels that share no part, if their sum is the problem.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    list of tuple
        See :meth:`structsolve.Space.groups`; [] if there is one group.
    """
    potentials = problem.potentials
    if not problem.adds_up or not potentials.has_weights or not potentials.plain_nodes:
        return []
    groups = problem.space.groups(problem.examples, problem.given_loss)
    return groups if len(groups) > 1 else []
