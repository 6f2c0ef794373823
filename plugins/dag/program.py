"""Linear and integer programs for unions of paths in graphs, by HiGHS."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from .hierarchy import Hierarchy
from .polytope import union_rows

# What simplex solvers leave of 0 and 1.
NEAR = 1e-9


class UnionProgram:
    """Best unions of paths from roots to leaves, relaxed or not; a model per thread is kept.

    Linear programs start from the basis of a fixed one, so that an answer depends on nothing but
    the scores.

    Parameters
    ----------
    hierarchy : Hierarchy
    """

    def __init__(self, hierarchy: Hierarchy):
        self.hierarchy = hierarchy
        self._local = threading.local()

    def relax(self, scores: np.ndarray) -> np.ndarray:
        """Return the maximiser over the linear relaxation, in [0, 1]."""
        return self._snap(self._solve(scores, integer=False))

    def best(self, scores: np.ndarray) -> np.ndarray:
        """Return the best label; where all are forbidden, one that is not allowed."""
        x = self.relax(scores)
        if np.isin(x, (0.0, 1.0)).all():
            return x.astype(np.int32)
        return np.rint(self._solve(scores, integer=True)).astype(np.int32)

    def rounded(self, scores: np.ndarray) -> tuple[np.ndarray, float]:
        """Return a label near the relaxation's answer, and an upper bound of all labels."""
        x = self.relax(scores)
        on = x > 0
        bound = float(scores[on] @ x[on])
        # Rounding of the program must not make the bound too low.
        bound += NEAR * (1 + float(np.abs(scores[on]).sum()))
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
        kept = self._local.__dict__.setdefault("models", {})
        if integer not in kept:
            kept[integer] = _Model(self.hierarchy, integer)
        return kept[integer].solve(scores)


def _levels(x: np.ndarray) -> np.ndarray:
    """Return thresholds that leave at least one leaf, a few of many."""
    values = np.unique(x[x > 0])
    if not values.size:
        return np.array([0.0])
    return values[np.unique(np.linspace(0, len(values) - 1, 8).astype(int))]


class _Model:
    """One HiGHS model, of which only costs and bounds change."""

    def __init__(self, hierarchy: Hierarchy, integer: bool):
        import highspy

        self.kinds = highspy
        self.highs = highs = highspy.Highs()
        self.size = M = len(hierarchy)
        options: dict[str, Any] = {"output_flag": False, "threads": 1}
        # The tightest it takes: objectives are compared to 1e-8.
        options |= {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
        if integer:
            options |= {"mip_rel_gap": 0.0, "mip_abs_gap": 0.0}
        for option, value in options.items():
            highs.setOptionValue(option, value)
        A, low, high = union_rows(hierarchy)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = M, A.shape[0]
        lp.col_cost_ = np.zeros(M)
        lp.col_lower_, lp.col_upper_ = np.zeros(M), np.ones(M)
        lp.row_lower_, lp.row_upper_ = low, high
        lp.sense_ = highspy.ObjSense.kMaximize
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = A.indptr, A.indices
        lp.a_matrix_.value_ = A.data
        if integer:
            lp.integrality_ = [highspy.HighsVarType.kInteger] * M
        highs.passModel(lp)
        self.columns = np.arange(M, dtype=np.int32)
        self.barred = False

    def solve(self, scores: np.ndarray) -> np.ndarray:
        """Return the best point; forbidden labels (-inf) are off, unless that leaves nothing."""
        if np.isnan(scores).any() or (scores == np.inf).any():
            v = int((~(scores < np.inf)).argmax())
            raise ValueError(
                f"node {v}: its score is {scores[v]}, expected a finite number, or -inf to forbid "
                "it; check that the weights are finite"
            )
        barred = np.isneginf(scores)
        if barred.any() or self.barred:
            self._bounds(np.where(barred, 0.0, 1.0))
            self.barred = bool(barred.any())
        costs = np.where(barred, 0.0, scores)
        self.highs.changeColsCost(self.size, self.columns, costs)
        self.highs.clearSolver()
        self.highs.run()
        status = self.kinds.HighsModelStatus
        found = self.highs.getModelStatus()
        if found in (status.kInfeasible, status.kUnboundedOrInfeasible) and self.barred:
            return self.solve(np.where(barred, 0.0, scores))
        if found != status.kOptimal:
            raise ValueError(
                f"HiGHS gave up on a hierarchy of {self.size} nodes: {found}; scale the scores"
            )
        return np.array(self.highs.getSolution().col_value)

    def _bounds(self, top: np.ndarray) -> None:
        self.highs.changeColsBounds(self.size, self.columns, np.zeros(self.size), top)
