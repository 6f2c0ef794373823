"""Linear and integer programs for unions of paths in graphs, by HiGHS."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.lp import Highs, Polytope
from structsolve.lp.base import ProgramCache
from structsolve.plugins.dag.hierarchy import Hierarchy
from structsolve.plugins.dag.polytope import union_rows

# Error of simplex solutions at 0 and 1.
NEAR = 1e-9
# The tightest tolerance that HiGHS takes: tests compare objectives to 1e-8.
TIGHT = 1e-10


class UnionProgram:
    """Best unions of paths from roots to leaves, relaxed or not; each thread keeps its programs.

    Programs have no warm starts, so answers depend on the scores alone.

    Parameters
    ----------
    hierarchy : Hierarchy
    """

    def __init__(self, hierarchy: Hierarchy):
        self.hierarchy = hierarchy
        self._programs = ProgramCache()

    def relax(self, scores: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the maximiser over the linear relaxation.

        Parameters
        ----------
        scores : ndarray of shape (M,)
            One per node; -inf forbids it.

        Returns
        -------
        x : ndarray of shape (M,)
            In [0, 1].
        bound : float
            Upper bound on the scores of all labels.

        Raises
        ------
        ValueError
            If a score is NaN or +inf.
        """
        x = self._snap(self._solve(scores, integer=False))
        on = x > 0
        bound = float(scores[on] @ x[on])
        # The solver's rounding must not make the bound too low.
        return x, bound + NEAR * (1 + float(np.abs(scores[on]).sum()))

    def best(self, scores: np.ndarray) -> np.ndarray:
        """Return the best label; any label if all are forbidden.

        Parameters
        ----------
        scores : ndarray of shape (M,)

        Returns
        -------
        ndarray of int32 of shape (M,)
        """
        x, _ = self.relax(scores)
        if np.isin(x, (0.0, 1.0)).all():
            return x.astype(np.int32)
        return np.rint(self._solve(scores, integer=True)).astype(np.int32)

    def rounded(self, scores: np.ndarray) -> tuple[np.ndarray, float]:
        """Return a label near the solution of the relaxation.

        Parameters
        ----------
        scores : ndarray of shape (M,)

        Returns
        -------
        label : ndarray of int32 of shape (M,)
        bound : float
            Upper bound on the scores of all labels.
        """
        x, bound = self.relax(scores)
        if np.isin(x, (0.0, 1.0)).all():
            return x.astype(np.int32), bound
        leaves = self.hierarchy.leaves
        labels = [self._cover(leaves[x[leaves] >= least]) for least in _levels(x[leaves])]
        values = [float(scores[label == 1].sum()) for label in labels]
        return labels[int(np.argmax(values))], bound

    def _cover(self, leaves: np.ndarray) -> np.ndarray:
        label = np.zeros((1, len(self.hierarchy)), dtype=np.int32)
        label[0, leaves] = 1
        return self.hierarchy.close(label)[0]

    @staticmethod
    def _snap(x: np.ndarray) -> np.ndarray:
        x = np.clip(x, 0, 1)
        near = np.rint(x)
        return np.where(np.abs(x - near) < NEAR, near, x)

    def _solve(self, scores: np.ndarray, integer: bool) -> np.ndarray:
        """Return the best point; forbidden labels (-inf) are off, unless no label is left."""
        if np.isnan(scores).any() or (scores == np.inf).any():
            v = int((~(scores < np.inf)).argmax())
            raise ValueError(
                f"node {v}: its score is {scores[v]}, expected a finite number, or -inf to forbid "
                "it; check that the weights are finite"
            )

        def make() -> Any:
            A, low, high = union_rows(self.hierarchy)
            M = len(self.hierarchy)
            return Highs(integer=integer, tolerance=TIGHT).program(
                Polytope(A, low, high, np.arange(M), np.rint)
            )

        program, barred = self._programs.get(integer, make), np.isneginf(scores)
        costs = np.where(barred, 0.0, scores)
        answer = program.solve(costs, np.where(barred, 0.0, 1.0) if barred.any() else None)
        if answer is None:
            answer = program.solve(costs)
        return answer.x


def _levels(x: np.ndarray) -> np.ndarray:
    """Return thresholds that leave at least one leaf; a few if there are many."""
    values = np.unique(x[x > 0])
    if not values.size:
        return np.array([0.0])
    return values[np.unique(np.linspace(0, len(values) - 1, 8).astype(int))]
