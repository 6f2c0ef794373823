"""Solvers of cvxpy as backends of linear and integer programs."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from .base import Backend, Program, SettingsBackend, check_settings
from .convex_program import CvxpyProgram
from .solvers import check_solver, installed, mixed_integer, nested, traits_of

# Settings that never change the optimum.
HARMLESS = frozenset(("seed", "Seed", "random_seed", "presolve", "Presolve", "LogToConsole", "env"))


class Cvxpy(SettingsBackend):
    """An installed solver of cvxpy; the problem is compiled once, with its costs as parameters.

    Parameters
    ----------
    solver : str
        As in ``cvxpy.installed_solvers()``, in any case.
    integer : bool, default=False
        Integer programs.
    batch : int, optional
        Rows to solve at once at prediction; 0: one example at a time, which is the
        default of solvers with a size-limited licence, of OSQP and of GLPK; else 1000.
    tolerance, time_limit, threads : optional
        See :class:`Highs`; translated to the solver's names (:mod:`structsolve.lp.solvers`).
    verbose : bool, default=False
        Let the solver print.
    warm_start : bool, default=False
        In training, start each example's program from the end of its last one, if the solver
        can.  The solver's state is then kept for every example.
    constraints : list or callable, optional
        Further rows that labels satisfy: see :class:`LabelConstraint`.
    licence : dict, optional
        Parameters of the licence of GUROBI, such as ``{"WLSACCESSID": ..., "WLSSECRET": ...}``.
        Model files do not hold it.
    **options
        Any other option of the solver, as in ``cvxpy.Problem.solve``; ``a.b`` is the entry
        ``b`` of its dictionary ``a``.

    Raises
    ------
    ValueError
        If a setting is wrong, or the solver lacks it.

    Examples
    --------
    >>> from structsolve.lp import Cvxpy, make_backend
    >>> Cvxpy("osqp", eps_abs=1e-8, time_limit=5).label
    'cvxpy:OSQP,time_limit=5,eps_abs=1e-08'
    >>> make_backend("cvxpy-ilp:scipy,time_limit=5").get_params()["integer"]
    True
    """

    # A call of cvxpy costs milliseconds at any size; larger products than this are slower.
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
            name, example = ("cvxpy-ilp", "SCIP") if integer else ("cvxpy", "CLARABEL")
            raise ValueError(
                f"{name!r} needs the name of a solver: '{name}:{example}', for example"
            )
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
                    f"{setting}: no such setting of {solver.upper()} is known; give the "
                    "solver's option by its name, if it has one"
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
        """The name for :func:`make_backend`."""
        given = {"tolerance": self.tolerance, "time_limit": self.time_limit}
        given |= {"threads": self.threads, **self.options}
        settings = "".join(f",{k}={v}" for k, v in given.items() if v is not None)
        return f"{self.name}:{self.solver.upper()}{settings}"

    @property
    def batch(self) -> int:  # type: ignore[override]
        """Rows to solve at once."""
        if self.rows_at_once is not None:
            return self.rows_at_once
        traits = traits_of(self.solver.upper())
        return self.together if traits.together and traits.licence is None else 0

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
    def asked(self) -> str:
        """The name of cvxpy's solver, in capital letters."""
        name = self.solver.upper()
        return (traits_of(name).integer or name) if self.integer else name

    def solver_options(self) -> dict[str, Any]:
        """Return the options that cvxpy passes to the solver.

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
        """Return the constructor arguments, including the solver's options."""
        params = {"solver": self.solver, "integer": self.integer, "batch": self.rows_at_once}
        names = ("tolerance", "time_limit", "threads", "verbose", "warm_start", "constraints")
        params |= {name: getattr(self, name) for name in (*names, "licence")}
        return params | self.options

    def __repr__(self) -> str:
        shown = self.get_params() | ({"licence": "..."} if self.licence else {})
        return f"Cvxpy({', '.join(f'{k}={v!r}' for k, v in shown.items())})"

    def check(self) -> None:
        """Raise ValueError if cvxpy finds no such solver, or it has no integer programs."""
        name = check_solver(self.asked)
        if self.integer and not mixed_integer(name):
            raise ValueError(
                f"oracle is {self.label!r}, but {name} solves no integer programs; of those "
                f"installed these do: {installed(integer=True)}"
            )

    def program(self, polytope: Any) -> Program:
        """Return a parametrised problem over a polytope."""
        return CvxpyProgram(polytope, self)

    def remedy(self) -> str:
        """Return advice for answers that are no points of the polytope: a tighter tolerance."""
        names = traits_of(self.solver.upper()).tolerance
        if not names:
            return "use another solver"
        given = nested(self.solver_options())
        told = [f"{n} is {given[n]:g}" for n in names if isinstance(given.get(n), float)]
        now = f" ({', '.join(told)})" if told else ""
        return f"tighten {' and '.join(names)}{now}, give it more iterations, or use another solver"

    def integral(self) -> Backend | None:
        """Return the same solver's integer programs, None if it has none."""
        traits = traits_of(self.solver.upper())
        if self.integer or not traits.integer or traits.integer == "ECOS_BB":
            return None
        return Cvxpy(**(self.get_params() | {"integer": True}))


def _pdlp_parameters(tolerance: float | None, threads: int | None) -> Any:
    """Return PDLP's settings, which it takes only as a protobuf message."""
    from ortools.pdlp import solvers_pb2  # heavy, and not installed with us

    parameters = solvers_pb2.PrimalDualHybridGradientParams()
    criteria = parameters.termination_criteria.simple_optimality_criteria
    criteria.eps_optimal_absolute = criteria.eps_optimal_relative = tolerance or 1e-9
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
