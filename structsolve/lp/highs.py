"""Linear and integer programs by HiGHS: one model over fixed rows, of which only costs change."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Answer, Backend, Program, unit_of

# HiGHS' own tolerance of rows and reduced costs.
ACCURATE = 1e-7


class _HighsProgram(Program):
    """One HiGHS model.

    Parameters
    ----------
    polytope : object with A, low, high, lower, upper and integer
    integer : bool
    tolerance : float, optional
        By how much rows and reduced costs may be wrong, where HiGHS' own 1e-7 is too much.
    """

    def __init__(self, polytope: Any, integer: bool, tolerance: float | None = None):
        import highspy  # heavy

        self.polytope, self.integer = polytope, integer
        self.highspy = highspy
        self.highs = highs = highspy.Highs()
        options: dict[str, Any] = {"output_flag": False, "threads": 1}
        if tolerance is not None:
            options |= {"primal_feasibility_tolerance": tolerance}
            # Integer programs have no duals that would tell what wrong reduced costs miss.
            reduced = min(tolerance, ACCURATE) if integer else tolerance
            options |= {"dual_feasibility_tolerance": reduced}
        if integer:
            options |= {"mip_rel_gap": 0.0, "mip_abs_gap": 0.0}
        else:
            options |= {"presolve": "off", "solver": "simplex"}
        for option, value in options.items():
            highs.setOptionValue(option, value)
        A, lp = polytope.A, highspy.HighsLp()
        lp.num_col_, lp.num_row_ = A.shape[1], A.shape[0]
        lp.col_cost_ = np.zeros(A.shape[1])
        lp.col_lower_, lp.col_upper_ = polytope.lower, polytope.upper
        lp.row_lower_, lp.row_upper_ = polytope.low, polytope.high
        lp.sense_ = highspy.ObjSense.kMaximize
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = A.indptr, A.indices
        lp.a_matrix_.value_ = A.data
        if integer:
            kind = highspy.HighsVarType
            lp.integrality_ = [
                kind.kInteger if whole else kind.kContinuous for whole in polytope.integer
            ]
        highs.passModel(lp)
        self.columns = np.arange(A.shape[1], dtype=np.int32)
        self.changed = False

    def solve(
        self, c: np.ndarray, upper: Any = None, start: Any = None, sides: Any = None
    ) -> Answer | None:
        size = len(self.columns)
        if upper is not None or self.changed:
            top = self.polytope.upper if upper is None else upper
            self.highs.changeColsBounds(size, self.columns, self.polytope.lower, top)
            self.changed = upper is not None
        unit = unit_of(c)
        self.highs.changeColsCost(size, self.columns, c / unit)
        self.highs.clearSolver()
        n_rows = self.polytope.A.shape[0]
        for row, least in sides or ():
            used = np.flatnonzero(row).astype(np.int32)
            self.highs.addRow(least, self.highspy.kHighsInf, len(used), used, row[used])
        try:
            if start is not None and not sides and not self.integer:
                self.highs.setBasis(start)
            if not self._run():
                return None
            solution = self.highs.getSolution()
            x = np.array(solution.col_value)
            if self.integer:
                return Answer(np.where(self.polytope.integer, np.round(x), x), None)
            # HiGHS signs duals by the objective as it is given, maximised or not.
            dual = unit * np.array(solution.row_dual)[:n_rows]
            return Answer(x, dual, None if sides else self.highs.getBasis())
        finally:
            if sides:
                added = np.arange(n_rows, n_rows + len(sides), dtype=np.int32)
                self.highs.deleteRows(len(sides), added)

    def _run(self) -> bool:
        status = self.highspy.HighsModelStatus
        for _ in range(2):
            if self.highs.run() == self.highspy.HighsStatus.kError:
                # Another program of this thread has set another number of threads.
                self.highs.setOptionValue("threads", 0)
                self.highs.run()
            outcome = self.highs.getModelStatus()
            if outcome in (status.kInfeasible, status.kUnboundedOrInfeasible):
                return False
            if outcome in (status.kOptimal, status.kModelEmpty):
                return True
            # The basis led nowhere: once more without one.
            self.highs.clearSolver()
        raise ValueError(
            f"HiGHS gave up on a program of {len(self.columns)} variables: {outcome}; scale the "
            "scores"
        )


class Highs(Backend):
    """HiGHS by its own interface: dual simplex, warm from an earlier basis; or integer programs.

    Parameters
    ----------
    integer : bool, default=False
    tolerance : float, optional
        By how much rows may be wrong, and reduced costs of linear programs; at least 1e-10, by
        default 1e-7.  Linear programs with a larger one are no exact oracle.

    Raises
    ------
    ValueError
        When ``tolerance`` is no such number.
    """

    def __init__(self, *, integer: bool = False, tolerance: float | None = None):
        if tolerance is not None and not (
            isinstance(tolerance, (int, float)) and 1e-10 <= tolerance < 1
        ):
            raise ValueError(f"tolerance is {tolerance!r}, expected a number from 1e-10 to 1")
        self.integer, self.tolerance = integer, tolerance
        self.accurate = integer or tolerance is None or tolerance <= ACCURATE
        self.name = "ilp" if integer else "lp"

    def program(self, polytope: Any) -> Program:
        """Return a HiGHS model over a polytope."""
        return _HighsProgram(polytope, self.integer, self.tolerance)
