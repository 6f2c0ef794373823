"""One program by a solver of cvxpy, and the meaning of its failures."""

from __future__ import annotations

import operator
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from .base import Answer, GaveUp, Program, unit_of
from .solvers import check_solver, traits_of

_ONE_AT_A_TIME = threading.Lock()

# Statuses of cvxpy that prove nothing: a limit, or a solver in doubt.  A limit before any point is
# found also becomes "infeasible_inaccurate".
DOUBTFUL = ("user_limit", "optimal_inaccurate", "infeasible_inaccurate", "unbounded_inaccurate")

# Solvers that cvxpy brings: of a program whose costs alone change, all else is compiled once, where
# cvxpy sets every parameter anew, which takes most of the time of a small program.
COMPILED = ("CLARABEL", "HIGHS", "OSQP", "SCIPY", "SCS")


def _turn(serial: bool) -> AbstractContextManager[Any]:
    """Return a lock if all threads share settings: some solvers, cvxpy before 1.8."""
    from cvxpy.utilities import scopes  # heavy

    alone = serial or not hasattr(scopes, "_thread_local")
    return _ONE_AT_A_TIME if alone else nullcontext()


class CvxpyProgram(Program):
    """Parametrised problems over the same rows, each built when first needed.

    Parameters
    ----------
    polytope : object with A, low, high, lower, upper and integer
    backend : structsolve.lp.Cvxpy
    """

    def __init__(self, polytope: Any, backend: Any):
        import cvxpy as cp  # heavy

        self.polytope, self.backend = polytope, backend
        self.solver = check_solver(backend.asked)
        m, size = polytope.A.shape
        whole: Any = False
        if backend.integer and polytope.integer.any():
            whole = np.nonzero(polytope.integer)  # cvxpy takes an index of numpy
        self.box: list[Any] = []
        try:
            # Bounds of variables are no rows: free licences count these.
            bounds = [polytope.lower, polytope.upper] if traits_of(self.solver).bounds else None
            self.x = cp.Variable(size, integer=whole, bounds=bounds)
        except ValueError:  # cvxpy 1.6: bounds or integers
            bounds, self.x = None, cp.Variable(size, integer=whole)
        if bounds is None:
            self.box = [self.x >= polytope.lower, self.x <= polytope.upper]
        self.cost, self.top = cp.Parameter(size), cp.Parameter(size)
        self.barred = cp.Parameter(size, nonneg=True)
        self.sides, self.least = cp.Parameter((2, size)), cp.Parameter(2)
        equal = polytope.low == polytope.high
        # Rows are grouped by the sides that they have; cvxpy gives duals by constraint.
        self.rows: list[tuple[np.ndarray, Any, float]] = []
        for picked, sign, relation, side in (
            (equal, 0.0, operator.eq, polytope.high),
            (~equal & np.isfinite(polytope.high), 1.0, operator.le, polytope.high),
            (~equal & np.isfinite(polytope.low), -1.0, operator.ge, polytope.low),
        ):
            if picked.any():
                constraint = relation(polytope.A[picked] @ self.x, side[picked])
                self.rows.append((np.flatnonzero(picked), constraint, sign))
        self.problems: dict[tuple[str, bool], Any] = {}
        # Of the problem without bounds and further rows: what cvxpy compiled, and the costs' name.
        self.compiled: tuple[Any, Any, Any, str] | None = None

    def _problem(self, upper: Any, sides: Any) -> Any:
        """Return the problem with these bounds and further rows, its parameters set."""
        import cvxpy as cp  # heavy

        polytope, bar = self.polytope, ""
        if upper is not None:
            off = upper != polytope.upper
            # One row forbids all that must be 0.
            zero = not (upper[off].any() or polytope.lower[off].any())
            bar = "row" if zero else "rows"
            self.barred.value, self.top.value = off.astype(float), upper
        if sides:
            self.sides.value = np.array([row for row, _ in sides])
            self.least.value = np.array([least for _, least in sides])
        key = bar, bool(sides)
        if key not in self.problems:
            rows = [*self.box, *(constraint for _, constraint, _ in self.rows)]
            if bar == "row":
                rows.append(self.barred @ self.x <= 0)
            elif bar == "rows":
                rows.append(self.x <= self.top)
            if sides:
                rows.append(self.sides @ self.x >= self.least)
            self.problems[key] = cp.Problem(cp.Maximize(self.cost @ self.x), rows)
        return self.problems[key]

    def solve(
        self, c: np.ndarray, upper: Any = None, start: Any = None, sides: Any = None
    ) -> Answer | None:
        backend, problem = self.backend, self._problem(upper, sides)
        unit = unit_of(c)
        self.cost.value = c / unit
        warm = backend.warm and not backend.integer and not sides
        # cvxpy starts from its state after the problem's last solve, of whichever example.
        problem._solver_cache = dict(start) if warm and start else {}
        try:
            with _turn(traits_of(self.solver).serial):
                self._run(problem, bool(warm and start), upper is None and not sides)
        except Exception as error:  # solvers raise their own types
            sentence = self._sentence(error)
            kind = GaveUp if sentence.startswith(f"{self.solver} gave up") else ValueError
            raise kind(sentence) from error
        status = problem.status
        if status in ("infeasible", "infeasible_or_unbounded"):
            return None
        if status == "unbounded":
            raise ValueError(
                f"{self.solver} says that the program is unbounded; the variables of a polytope of "
                "labels have finite bounds: check its lower and upper"
            )
        limited = status in DOUBTFUL
        if status != "optimal" and not limited:
            raise GaveUp(f"{self.solver} gave up on {self._size()}: {status}; scale the scores")
        point = None if self.x.value is None else np.array(self.x.value)
        if limited and point is not None and not np.isfinite(point).all():
            point = None
        kept = problem._solver_cache if warm else None
        told = traits_of(self.solver).duals and not (sides or backend.integer)
        dual = self._dual(unit) if told and point is not None else None
        bound = None
        if backend.integer and not backend.accurate:
            bound = _reported(problem.solver_stats, unit)
        return Answer(point, dual, kept, bound, limited)

    def _run(self, problem: Any, warm: bool, plain: bool) -> None:
        """Solve a problem; the second time without what cvxpy repeats though only costs changed."""
        options, verbose = self.backend.solver_options(), bool(self.backend.verbose)
        again = plain and problem.status is not None and not verbose
        if not again or self.solver not in COMPILED:
            problem.solve(solver=self.solver, warm_start=warm, verbose=verbose, **options)
            return
        if self.compiled is None:
            data, chain, inverse = problem.get_problem_data(self.solver, solver_opts=options)
            self.compiled = data, chain, inverse, "q" if "q" in data else "c"
        data, chain, inverse, costs = self.compiled
        data = data | {costs: -np.asarray(self.cost.value)}  # cvxpy minimises
        solution = chain.solve_via_data(problem, data, warm, solver_opts=options)
        problem.unpack_results(solution, chain, inverse)

    def _dual(self, unit: float) -> np.ndarray | None:
        dual = np.zeros(self.polytope.A.shape[0])
        for rows, constraint, sign in self.rows:
            if constraint.dual_value is None:
                return None
            multiplier = np.atleast_1d(np.asarray(constraint.dual_value))
            # cvxpy's multiplier of an equality belongs to the minimisation of -c x.
            dual[rows] += unit * (sign * np.abs(multiplier) if sign else multiplier)
        return dual if np.isfinite(dual).all() else None

    def _size(self) -> str:
        rows, columns = self.polytope.A.shape
        return f"a program of {columns} variables and {rows} rows"

    def _sentence(self, error: Exception) -> str:
        """Return the reason for a solver's failure, and advice."""
        name, text = self.solver, " ".join(str(error).split())
        licence, low = traits_of(name).licence, text.lower()
        rows, columns = self.polytope.A.shape
        too_large = "too large" in low or "size-limit" in low or "size limit" in low
        if too_large or (licence and (columns > licence[0] or rows > licence[1])):
            takes = f", which takes {licence[0]} variables and {licence[1]} rows" if licence else ""
            return (
                f"{self._size()} is more than the size-limited licence of {name} allows{takes}; "
                f"get a full licence, or use another solver ({text})"
            )
        if isinstance(error, ImportError):
            return f"{name} is installed, but cannot be loaded: {text}"
        if "licen" in low:
            return f"{name} finds no valid licence: {text}"
        wrong = "option" in low or "setting" in low or "param" in low
        if wrong or isinstance(error, (TypeError, KeyError, AttributeError)):
            given = self.backend.solver_options()
            return f"{name} refuses its options {given}: {type(error).__name__}: {text}"
        return f"{name} gave up on {self._size()}: {text}"


def _reported(stats: Any, unit: float) -> float | None:
    """Return the upper bound that a solver of integer programs has proved; it minimises -c x."""
    extra = getattr(stats, "extra_stats", None)
    for name in ("ObjBound", "mip_dual_bound"):
        value = extra.get(name) if isinstance(extra, dict) else getattr(extra, name, None)
        if isinstance(value, (int, float)) and np.isfinite(value):
            return -unit * float(value)
    return None
