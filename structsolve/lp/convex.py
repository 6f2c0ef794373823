"""Programs by a solver that cvxpy knows: parametrised problems, each compiled once."""

from __future__ import annotations

import operator
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from .base import Answer, Backend, Program, check_settings, of_a_limit, unit_of
from .solvers import nested, traits_of

_ONE_AT_A_TIME = threading.Lock()

# Statuses of cvxpy that settle nothing: a limit, or a solver in doubt.  "infeasible_inaccurate" is
# also what a limit becomes where there is no point yet.
DOUBTFUL = ("user_limit", "optimal_inaccurate", "infeasible_inaccurate", "unbounded_inaccurate")

# Settings that never change what counts as an optimum.
HARMLESS = frozenset(("seed", "Seed", "random_seed", "presolve", "Presolve", "LogToConsole", "env"))


def _turn(serial: bool) -> AbstractContextManager[Any]:
    """Return a lock where settings are shared by all threads: some solvers, cvxpy before 1.8."""
    from cvxpy.utilities import scopes  # heavy

    alone = serial or not hasattr(scopes, "_thread_local")
    return _ONE_AT_A_TIME if alone else nullcontext()


class _CvxpyProgram(Program):
    """Parametrised problems over the same rows, each put together when it is first needed.

    Parameters
    ----------
    polytope : object with A, low, high, lower, upper and integer
    backend : Cvxpy
    """

    def __init__(self, polytope: Any, backend: Cvxpy):
        import cvxpy as cp  # heavy

        self.polytope, self.backend = polytope, backend
        self.solver = check_solver(backend.asked)
        m, size = polytope.A.shape
        whole: Any = False
        if backend.integer and polytope.integer.any():
            every = bool(polytope.integer.all())
            whole = True if every else [(int(j),) for j in np.flatnonzero(polytope.integer)]
        self.box: list[Any] = []
        try:
            # Bounds of variables are no rows: free licences count these.
            bounds = [polytope.lower, polytope.upper] if traits_of(self.solver).bounds else None
            self.x = cp.Variable(size, integer=whole, bounds=bounds)
        except ValueError:  # cvxpy before 1.6: bounds or integers
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
        # cvxpy starts from what it kept of the problem's last solve, whoever asked for that.
        problem._solver_cache = dict(start) if warm and start else {}
        try:
            with _turn(traits_of(self.solver).serial):
                problem.solve(
                    solver=self.solver,
                    warm_start=bool(warm and start),
                    verbose=bool(backend.verbose),
                    **backend.solver_options(),
                )
        except Exception as error:  # solvers have kinds of their own
            raise ValueError(self._sentence(error)) from error
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
            raise ValueError(f"{self.solver} gave up on {self._size()}: {status}; scale the scores")
        found = None if self.x.value is None else np.array(self.x.value)
        if limited and found is not None and not np.isfinite(found).all():
            found = None
        kept = problem._solver_cache if warm else None
        told = traits_of(self.solver).duals and not (sides or backend.integer)
        dual = self._dual(unit) if told and found is not None else None
        bound = None
        if backend.integer and not backend.accurate:
            bound = _reported(problem.solver_stats, unit)
        return Answer(found, dual, kept, bound, limited)

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
        """Return why a solver failed, and what helps."""
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


class Cvxpy(Backend):
    """A solver that cvxpy finds installed, the problem compiled once with its costs as parameters.

    Parameters
    ----------
    solver : str
        As in ``cvxpy.installed_solvers()``, in any case.
    integer : bool, default=False
        Integer programs.
    batch : int, optional
        Rows that are worth solving at once at prediction; 0: one example at a time, which is the
        default of solvers with a size-limited licence, and 1000 that of the others.
    tolerance, time_limit, threads : optional
        As of :class:`Highs`, told to the solver by its own names (:mod:`structsolve.lp.solvers`).
    verbose : bool, default=False
        Let the solver print.
    warm_start : bool, default=False
        In training, start each example's program where its last one ended, if the solver can.
        Every example then keeps what its solver keeps.
    constraints : list or callable, optional
        Further rows that labels satisfy: see :class:`LabelConstraint`.
    licence : dict, optional
        Parameters of the licence of GUROBI, such as ``{"WLSACCESSID": ..., "WLSSECRET": ...}``.
        Files of models do not hold it.
    **options
        Any other option of the solver, as ``cvxpy.Problem.solve`` takes it; ``a.b`` is the entry
        ``b`` of its dictionary ``a``.

    Raises
    ------
    ValueError
        When a setting is wrong, or the solver has none such.

    Examples
    --------
    >>> from structsolve.lp import Cvxpy, make_backend
    >>> Cvxpy("osqp", eps_abs=1e-8, time_limit=5).label
    'cvxpy:OSQP,time_limit=5,eps_abs=1e-08'
    >>> make_backend("cvxpy-ilp:scipy,time_limit=5").get_params()["integer"]
    True
    """

    # A call of cvxpy costs milliseconds whatever the size; larger products than this are slower.
    together = 1000

    def __init__(
        self,
        solver: str | None = None,
        integer: bool = False,
        *,
        batch: int | None = None,
        tolerance: float | None = None,
        time_limit: float | None = None,
        threads: int | None = None,
        verbose: bool = False,
        warm_start: bool = False,
        constraints: Any = None,
        licence: dict[str, Any] | None = None,
        **options: Any,
    ):
        if not isinstance(solver, str) or not solver:
            raise ValueError("'cvxpy' needs the name of a solver: 'cvxpy:CLARABEL', for example")
        check_settings(tolerance, time_limit, threads)
        if batch is not None and (not isinstance(batch, (int, np.integer)) or batch < 0):
            raise ValueError(f"batch is {batch!r}, expected rows, 0 or more, or None")
        self.solver, self.integer, self.rows_at_once = solver, integer, batch
        self.tolerance, self.time_limit, self.threads = tolerance, time_limit, threads
        self.verbose, self.warm_start, self.constraints = verbose, warm_start, constraints
        self.licence, self.options = licence, options
        traits = traits_of(solver.upper())
        for setting in ("tolerance", "time_limit", "threads"):
            known = getattr(traits, setting) or (
                solver.upper() == "PDLP" and setting in ("tolerance", "threads")
            )
            if getattr(self, setting) is not None and not known:
                raise ValueError(
                    f"{setting}: nothing is known of such a setting of {solver.upper()}; give the "
                    "solver's own option by its name, if it has one"
                )
        if licence is not None and solver.upper() != "GUROBI":
            raise ValueError(
                f"licence is for GUROBI; {solver.upper()} reads where its licence is from the "
                "environment"
            )

    @property
    def name(self) -> str:  # type: ignore[override]
        """``"cvxpy"``, or ``"cvxpy-ilp"``."""
        return "cvxpy-ilp" if self.integer else "cvxpy"

    @property
    def label(self) -> str:
        """As :func:`make_backend` takes it."""
        given = {"tolerance": self.tolerance, "time_limit": self.time_limit}
        given |= {"threads": self.threads, **self.options}
        settings = "".join(f",{k}={v}" for k, v in given.items() if v is not None)
        return f"{self.name}:{self.solver.upper()}{settings}"

    @property
    def batch(self) -> int:  # type: ignore[override]
        """Rows that are worth solving at once."""
        if self.rows_at_once is not None:
            return self.rows_at_once
        return 0 if traits_of(self.solver.upper()).licence else self.together

    @property
    def accurate(self) -> bool:  # type: ignore[override]
        """Answers are optimal up to rounding, and no setting loosens or ends a program."""
        traits = traits_of(self.solver.upper())
        loose = (self.tolerance or 0.0) > 1e-7
        return (
            traits.accurate
            and not loose
            and self.time_limit is None
            and HARMLESS.issuperset(self.options)
        )

    @property
    def ends_early(self) -> bool:  # type: ignore[override]
        """Whether a limit of time or of steps was asked for."""
        return self.time_limit is not None or any(of_a_limit(name) for name in self.options)

    @property
    def warm(self) -> bool:  # type: ignore[override]
        """Whether programs of training start where the last one ended."""
        return self.warm_start

    @property
    def asked(self) -> str:
        """The solver that cvxpy is asked for, in capital letters."""
        name = self.solver.upper()
        return (traits_of(name).integer or name) if self.integer else name

    def solver_options(self) -> dict[str, Any]:
        """Return what cvxpy hands to the solver.

        Returns
        -------
        dict
            A new one at every call: cvxpy takes entries out.
        """
        traits = traits_of(self.solver.upper())
        options = dict(traits.default)
        if self.integer:
            options |= dict(traits.whole)
        if self.tolerance is not None:
            options |= {name: float(self.tolerance) for name in traits.tolerance}
        if self.time_limit is not None:
            seconds = float(self.time_limit)
            limit = max(1, round(1000 * seconds)) if traits.milliseconds else seconds
            options |= {name: limit for name in traits.time_limit}
        if self.threads is not None:
            options |= {name: int(self.threads) for name in traits.threads}
        if self.solver.upper() == "PDLP":
            options["parameters_proto"] = _pdlp_parameters(self.tolerance, self.threads)
        if self.licence is not None:
            options["env"] = _environment(tuple(sorted(self.licence.items())))
        return nested(options | self.options)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor arguments, the solver's own options among them."""
        params = {"solver": self.solver, "integer": self.integer, "batch": self.rows_at_once}
        names = ("tolerance", "time_limit", "threads", "verbose", "warm_start", "constraints")
        params |= {name: getattr(self, name) for name in (*names, "licence")}
        return params | self.options

    def __repr__(self) -> str:
        shown = self.get_params() | ({"licence": "..."} if self.licence else {})
        return f"Cvxpy({', '.join(f'{k}={v!r}' for k, v in shown.items())})"

    def check(self) -> None:
        """Raise ValueError where cvxpy finds no such solver, or it has no integer programs."""
        name = check_solver(self.asked)
        if self.integer and not _mixed_integer(name):
            raise ValueError(
                f"oracle is {self.label!r}, but {name} solves no integer programs; of those "
                f"installed these do: {_installed(integer=True)}"
            )

    def program(self, polytope: Any) -> Program:
        """Return a parametrised problem over a polytope."""
        return _CvxpyProgram(polytope, self)

    def remedy(self) -> str:
        """Return what helps where an answer is no point of the polytope: a tighter tolerance."""
        names = traits_of(self.solver.upper()).tolerance
        if not names:
            return "use another solver"
        given = nested(self.solver_options())
        told = [f"{n} is {given[n]:g}" for n in names if isinstance(given.get(n), float)]
        now = f" ({', '.join(told)})" if told else ""
        return f"tighten {' and '.join(names)}{now}, give it more iterations, or use another solver"

    def integral(self) -> Backend | None:
        """Return the same solver's integer programs, None where it has none."""
        traits = traits_of(self.solver.upper())
        if self.integer or not traits.integer or traits.integer == "ECOS_BB":
            return None
        return Cvxpy(**(self.get_params() | {"integer": True}))


def _pdlp_parameters(tolerance: float | None, threads: int | None) -> Any:
    """Return PDLP's settings, which it takes in a message of its own alone."""
    from ortools.pdlp import solvers_pb2  # heavy, and not installed with us

    parameters = solvers_pb2.PrimalDualHybridGradientParams()
    criteria = parameters.termination_criteria.simple_optimality_criteria
    criteria.eps_optimal_absolute = criteria.eps_optimal_relative = tolerance or 1e-7
    if threads:
        parameters.num_threads = threads
    return parameters


_ENVIRONMENTS = threading.local()


def _environment(licence: tuple[tuple[str, Any], ...]) -> Any:
    """Return GUROBI's environment with a licence; a thread opens one of each."""
    import gurobipy  # heavy, and not installed with us

    kept = vars(_ENVIRONMENTS).setdefault("made", {})
    if licence not in kept:
        kept[licence] = gurobipy.Env(params=dict(licence))
    return kept[licence]


def _mixed_integer(name: str) -> bool:
    from cvxpy.reductions.solvers import defines  # heavy

    return name in defines.INSTALLED_MI_SOLVERS


def _installed(integer: bool = False) -> list[str]:
    import cvxpy  # heavy

    return [s for s in cvxpy.installed_solvers() if not integer or _mixed_integer(s)]


def check_solver(name: str) -> str:
    """Raise ValueError unless cvxpy has an installed solver of this name.

    Parameters
    ----------
    name : str
        In any case.

    Returns
    -------
    str
        The name as cvxpy has it.
    """
    installed = _installed()
    if name.upper() not in installed:
        raise ValueError(
            f"oracle is 'cvxpy:{name}', but cvxpy finds no such solver; installed: {installed}"
        )
    return name.upper()
