"""Linear and integer programs by HiGHS: one model over fixed rows, with changing costs."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from .base import Answer, Backend, GaveUp, Program, SettingsBackend, check_settings, unit_of

# HiGHS' own tolerance of rows and reduced costs.
ACCURATE = 1e-7

# Options that change the search for an optimum, not the optimum.
HARMLESS = frozenset(
    ("random_seed", "presolve", "parallel", "simplex_strategy", "simplex_scale_strategy")
    + ("simplex_dual_edge_weight_strategy", "simplex_primal_edge_weight_strategy")
    + ("log_file", "log_to_console", "output_flag", "mip_heuristic_effort", "mip_detect_symmetry")
)


@cache
def _model_class() -> Any:
    import highspy  # heavy

    class Model(highspy.Highs):
        """A model that is silent from the start: HiGHS 1.16 prints a banner at construction."""

        def __init__(self, verbose: bool):
            self._verbose = verbose
            super().__init__()

        def enableCallbacks(self) -> None:
            self.setOptionValue("output_flag", self._verbose)
            super().enableCallbacks()

    return Model


class _HighsProgram(Program):
    """One HiGHS model.

    Parameters
    ----------
    polytope : object with A, low, high, lower, upper and integer
    backend : Highs
    """

    def __init__(self, polytope: Any, backend: Highs):
        self.polytope, self.backend, self.integer = polytope, backend, backend.integer
        self.highs = highs = backend.open()
        import highspy  # heavy

        self.highspy = highspy
        A, lp = polytope.A, highspy.HighsLp()
        lp.num_col_, lp.num_row_ = A.shape[1], A.shape[0]
        lp.col_cost_ = np.zeros(A.shape[1])
        lp.col_lower_, lp.col_upper_ = polytope.lower, polytope.upper
        lp.row_lower_, lp.row_upper_ = polytope.low, polytope.high
        lp.sense_ = highspy.ObjSense.kMaximize
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = A.indptr, A.indices
        lp.a_matrix_.value_ = A.data
        if self.integer:
            kind = highspy.HighsVarType
            lp.integrality_ = [
                kind.kInteger if whole else kind.kContinuous for whole in polytope.integer
            ]
        if highs.passModel(lp) == highspy.HighsStatus.kError:
            sizes = np.abs(A.data[A.data != 0])
            raise ValueError(
                "HiGHS refuses the rows of a polytope, with coefficients of size "
                f"{sizes.min(initial=np.inf):.2g} to {sizes.max(initial=0):.2g}; choose units of "
                "its variables that bring these near 1"
            )
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
            outcome = self._run()
            return None if outcome is None else self._answer(outcome, unit, n_rows, bool(sides))
        finally:
            if sides:
                added = np.arange(n_rows, n_rows + len(sides), dtype=np.int32)
                self.highs.deleteRows(len(sides), added)

    def _answer(self, outcome: Any, unit: float, n_rows: int, sided: bool) -> Answer:
        """Return the answer of HiGHS' present solution."""
        solution, info = self.highs.getSolution(), self.highs.getInfo()
        limited = outcome not in (
            self.highspy.HighsModelStatus.kOptimal,
            self.highspy.HighsModelStatus.kModelEmpty,
        )
        x: np.ndarray | None = np.array(solution.col_value)
        if limited and info.primal_solution_status != FEASIBLE:
            x = None
        if self.integer:
            if x is not None:
                x = np.where(self.polytope.integer, np.round(x), x)
            bound = unit * info.mip_dual_bound
            told = self.backend.accurate or not np.isfinite(bound)
            return Answer(x, None, None, None if told else float(bound), limited)
        # HiGHS signs duals by the given objective, whether maximised or not.
        dual = unit * np.array(solution.row_dual)[:n_rows] if solution.dual_valid else None
        return Answer(x, dual, None if sided else self.highs.getBasis(), None, limited)

    def _run(self) -> Any:
        """Run HiGHS; return its status, None if no point satisfies the rows."""
        status = self.highspy.HighsModelStatus
        limits = (
            *(status.kTimeLimit, status.kIterationLimit, status.kSolutionLimit),
            *(status.kObjectiveBound, status.kObjectiveTarget, status.kInterrupt),
        )
        for _ in range(2):
            if self.backend.time_limit is not None:
                # HiGHS' clock runs on from program to program.
                end = self.highs.getRunTime() + self.backend.time_limit
                self.highs.setOptionValue("time_limit", end)
            if self.highs.run() == self.highspy.HighsStatus.kError:
                # Another program of this thread has set another number of threads.
                self.highs.setOptionValue("threads", 0)
                self.highs.run()
            outcome = self.highs.getModelStatus()
            if outcome in (status.kInfeasible, status.kUnboundedOrInfeasible):
                return None
            if outcome in (status.kOptimal, status.kModelEmpty, *limits):
                return outcome
            # The basis failed: once more without one.
            self.highs.clearSolver()
        if outcome == status.kUnbounded:
            raise ValueError(
                "HiGHS says that the program is unbounded; the variables of a polytope of labels "
                "have finite bounds: check its lower and upper"
            )
        raise GaveUp(
            f"HiGHS gave up on a program of {len(self.columns)} variables: {outcome}; scale the "
            "scores"
        )


# HiGHS' number for a solution that satisfies all rows and bounds.
FEASIBLE = 2


class Highs(SettingsBackend):
    """HiGHS by its Python interface: dual simplex with warm starts; or integer programs.

    Parameters
    ----------
    integer : bool, default=False
    tolerance : float, optional
        Allowed error of rows, and of reduced costs in linear programs; at least 1e-10, by
        default 1e-7.  Linear programs with a larger one are no exact oracle.
    time_limit : float, optional
        Seconds per program.  When they run out, the answer is a label that may not be
        the best, with an upper bound of all.
    threads : int, default=1
        Threads of one program; 0: HiGHS chooses.  ``n_jobs`` splits examples, which is faster.
    verbose : bool, default=False
        Let HiGHS print.
    warm_start : bool, default=True
        In training, start from the last basis of the same example.
    constraints : list or callable, optional
        Further rows that labels satisfy: see :class:`LabelConstraint`.
    **options
        Any other option of HiGHS, such as ``simplex_iteration_limit=100`` or
        ``mip_rel_gap=0.01``.

    Raises
    ------
    ValueError
        If ``tolerance``, ``time_limit`` or ``threads`` is no such number.

    Examples
    --------
    >>> from structsolve.lp import Highs, make_backend
    >>> Highs(time_limit=0.5, random_seed=3).get_params()["random_seed"]
    3
    >>> make_backend("ilp:1e-9,time_limit=2,mip_rel_gap=0.01").label
    'ilp:1e-09,time_limit=2,mip_rel_gap=0.01'
    """

    def __init__(
        self,
        *,
        integer: bool = False,
        tolerance: float | None = None,
        time_limit: float | None = None,
        threads: int = 1,
        verbose: bool = False,
        warm_start: bool = True,
        constraints: Any = None,
        **options: Any,
    ):
        check_settings(tolerance, time_limit, threads)
        self.integer, self.tolerance, self.time_limit = integer, tolerance, time_limit
        self.threads, self.verbose, self.warm_start = threads, verbose, warm_start
        self.constraints, self.options = constraints, options

    @property
    def name(self) -> str:  # type: ignore[override]
        """``"lp"`` or ``"ilp"``."""
        return "ilp" if self.integer else "lp"

    @property
    def label(self) -> str:
        """The name for :func:`make_backend`."""
        given = {"time_limit": self.time_limit, "threads": self.threads, **self.options}
        plain = {"time_limit": None, "threads": 1}
        settings = [f"{k}={v}" for k, v in given.items() if k not in plain or v != plain[k]]
        first = [] if self.tolerance is None else [f"{self.tolerance:g}"]
        return self.name + (":" if first or settings else "") + ",".join(first + settings)

    @property
    def accurate(self) -> bool:  # type: ignore[override]
        """Answers are optimal up to HiGHS' own tolerance: nothing loosens or ends a program."""
        loose = self.tolerance is not None and self.tolerance > ACCURATE and not self.integer
        return not loose and self.time_limit is None and HARMLESS.issuperset(self.options)

    def open(self) -> Any:
        """Return an empty model of HiGHS with all options set.

        Returns
        -------
        highspy.Highs

        Raises
        ------
        ValueError
            If HiGHS refuses an option, or cannot be loaded.
        """
        try:
            import highspy  # heavy
        except ImportError as error:  # another library of the process contains HiGHS
            raise ValueError(f"HiGHS cannot be loaded in this process: {error}") from error
        highs = _model_class()(bool(self.verbose))
        options: dict[str, Any] = {"output_flag": bool(self.verbose), "threads": self.threads}
        if self.tolerance is not None:
            options |= {"primal_feasibility_tolerance": float(self.tolerance)}
            # Integer programs have no duals to bound the effect of wrong reduced costs.
            reduced = min(self.tolerance, ACCURATE) if self.integer else self.tolerance
            options |= {"dual_feasibility_tolerance": float(reduced)}
        if self.integer:
            options |= {"mip_rel_gap": 0.0, "mip_abs_gap": 0.0}
        else:
            options |= {"presolve": "off", "solver": "simplex"}
        if self.time_limit is not None:
            options["time_limit"] = float(self.time_limit)
        for option, value in (options | self.options).items():
            if highs.setOptionValue(option, value) == highspy.HighsStatus.kError:
                raise ValueError(
                    f"HiGHS refuses the option {option}={value!r}; see its list of options for "
                    "names and ranges"
                )
        return highs

    def check(self) -> None:
        """Raise ValueError if HiGHS refuses an option."""
        if self.options:
            self.open()

    def program(self, polytope: Any) -> Program:
        """Return a HiGHS model over a polytope."""
        return _HighsProgram(polytope, self)

    def integral(self) -> Backend:
        """Return HiGHS' integer programs with the same settings."""
        params = self.get_params(deep=False)
        return Highs(**(params | {"integer": True}))
