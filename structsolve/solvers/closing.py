"""ClosingRun: a run that others close where its own passes would take very many."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from math import log
from typing import Any

import numpy as np

from .base import Solver
from .relay import Handed
from .run import Start, record_of, relative_gap, started

logger = logging.getLogger("structsolve.solvers")

# A run ends after so many passes whose gap, at its rate over the last ones, needs so many more.
PASSES, LAST, TOO_MANY = 30, 10, 50
# Passes of a closing run that are one: the first run's have cheap passes besides, too.
TOGETHER = 4


class ClosingRun(Handed):
    """A run and those that close its gap: by weak regularisation its own passes would take long.

    Each run starts from the best weights so far.  Where rounding ends one, the next goes on, and
    after the last one the first does.

    Parameters
    ----------
    first : Solver
    find : callable
        Returns a list of solvers that close the gap; called where it does not close.
    start : Start
    """

    def __init__(self, first: Solver, find: Callable[[], list[Solver]], start: Start):
        self.given, self.solver = start, first
        self.run: Any = started(first, start)
        self.first, self.find = (first, self.run), find
        self.left: list[Solver] | None = None  # those that have not run, once they are found
        # The least primal of runs that have ended, and its weights; what the present run has told,
        # which may be a package's and have no best_primal.
        self.kept, self.kept_w, self.told = np.inf, np.zeros(0), np.inf
        self.dual, self.passes, self.ends = -np.inf, 0, False
        self.gaps: list[tuple[int, float]] = []

    def step(self) -> dict[str, Any]:
        """Make a pass; first hand over where the gap did not close."""
        if self.ends:
            self._hand_over()
        self.run.given.tol, self.run.given.n_jobs = self.given.tol, self.given.n_jobs
        first, calls = self.run is self.first[1], 0
        for _ in range(1 if first else TOGETHER):
            record = self._bounded(record_of(self.run, self.run.step()))
            calls += record["oracle_calls"]
            gap = relative_gap(record) if record.get("certified") else None
            failed = record.get("failed") is not None
            if failed or (gap is not None and gap <= self.given.tol):
                break
        self.passes += 1
        record["oracle_calls"] = calls
        if gap is None or gap <= self.given.tol:
            return record
        self.gaps.append((self.passes, gap))
        if failed or (first and self._is_slow()):
            self.left = self.find() if self.left is None else self.left
            if self.left or not first:
                record.pop("failed", None)
                self.ends = True
        return record

    def _is_slow(self) -> bool:
        """Return whether the gap needs too many further passes at its rate over the last ones."""
        passes, gap = self.gaps[-1]
        earlier = [one for one in self.gaps if one[0] <= passes - LAST]
        if passes < PASSES or not earlier:
            return False
        before, wider = earlier[-1]
        rate = log(wider / gap) / (passes - before)
        return self.given.tol <= 0 or rate * TOO_MANY < log(gap / self.given.tol)

    def _hand_over(self) -> None:
        self.kept, self.kept_w, self.ends = self.best_primal, self.weights(), False
        self.told = np.inf
        if self.left:
            self.solver = self.left.pop(0)
            self.run = started(self.solver, replace(self.given, w=self.kept_w.copy()))
        else:
            self.solver, self.run = self.first
        logger.info("after pass %d %r goes on from the best weights", self.passes, self.solver.name)

    def _bounded(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record with the best weights and the best dual of all runs."""
        if record.get("certified"):
            self.dual, self.told = max(self.dual, record["dual"]), record["primal"]
            primal = min(record["primal"], self.best_primal)
            record |= {"primal": primal, "dual": self.dual, "gap": primal - self.dual}
        return record

    def certify(self) -> dict[str, Any]:
        """Return the certificate of the best weights of all runs."""
        return self._bounded(self.run.certify())

    @property
    def _present(self) -> float:
        return getattr(self.run, "best_primal", self.told)

    @property
    def best_primal(self) -> float:  # type: ignore[override]
        """The least primal of all runs."""
        return min(self.kept, self._present)

    @property
    def best_w(self) -> Any:  # type: ignore[override]
        """Its weights, None where the present run does not know them."""
        return self.kept_w if self.kept < self._present else getattr(self.run, "best_w", None)

    def weights(self) -> np.ndarray:
        """Return a copy of the best weights of all runs."""
        return self.kept_w.copy() if self.kept < self._present else self.run.weights()
