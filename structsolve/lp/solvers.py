"""cvxpy's solvers: the names of their settings, and the accuracy of their answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Traits:
    """Traits of one solver.

    Parameters
    ----------
    accurate : bool, default=True
        Simplex, or interior points with the solver's own tolerance: optimal up to rounding.
    tolerance, time_limit, threads : tuple of str
        The solver's names of the setting; empty if it has none.  ``"scip_params.limits/time"`` is
        in the dictionary ``scip_params``.
    milliseconds : bool, default=False
        The unit of time is milliseconds.
    default : dict, optional
        Options that are set unless users set them.
    integer : str, default=""
        The solver of integer programs that comes with it; empty if there is none.
    whole : dict, optional
        Options of integer programs, to close the gap.
    licence : tuple of int, optional
        Most variables and rows of its free licence.
    duals : bool, default=True
        The row duals from cvxpy bound the objective closely.
    bounds : bool, default=True
        False: bounds of variables become rows.
    together : bool, default=True
        Decoding examples side by side in one program is faster.
    serial : bool, default=False
        All threads share its settings: one program at a time.
    """

    accurate: bool = True
    tolerance: tuple[str, ...] = ()
    time_limit: tuple[str, ...] = ()
    threads: tuple[str, ...] = ()
    milliseconds: bool = False
    default: tuple[tuple[str, Any], ...] = ()
    integer: str = ""
    whole: tuple[tuple[str, Any], ...] = ()
    licence: tuple[int, int] | None = None
    duals: bool = True
    bounds: bool = True
    together: bool = True
    serial: bool = False


_HIGHS_TOLERANCES = ("primal_feasibility_tolerance", "dual_feasibility_tolerance")

_GLPK = Traits(
    time_limit=("tm_lim",), milliseconds=True, integer="GLPK_MI", together=False, serial=True
)

# First-order solvers by default stop long before an optimum.
SOLVERS: dict[str, Traits] = {
    "HIGHS": Traits(
        tolerance=_HIGHS_TOLERANCES,
        time_limit=("time_limit",),
        threads=("threads",),
        integer="HIGHS",
        whole=(("mip_rel_gap", 0.0), ("mip_abs_gap", 0.0)),
    ),
    "SCIPY": Traits(
        tolerance=tuple(f"scipy_options.{name}" for name in _HIGHS_TOLERANCES),
        time_limit=("scipy_options.time_limit",),
        integer="SCIPY",
        whole=(("scipy_options.mip_rel_gap", 0.0),),
    ),
    "CLARABEL": Traits(
        tolerance=("tol_gap_abs", "tol_gap_rel", "tol_feas"),
        time_limit=("time_limit",),
        threads=("max_threads",),
    ),
    "ECOS": Traits(tolerance=("abstol", "reltol", "feastol"), integer="ECOS_BB"),
    "ECOS_BB": Traits(accurate=False, integer="ECOS_BB"),
    # Rows of polytopes may depend on each other, which its other methods refuse.
    "CVXOPT": Traits(
        tolerance=("abstol", "reltol", "feastol"), default=(("kktsolver", "robust"),), serial=True
    ),
    "SCS": Traits(
        accurate=False,
        tolerance=("eps_abs", "eps_rel"),
        time_limit=("time_limit_secs",),
        default=(("eps_abs", 1e-7), ("eps_rel", 1e-7)),
    ),
    "OSQP": Traits(
        accurate=False,
        tolerance=("eps_abs", "eps_rel"),
        time_limit=("time_limit",),
        default=(("eps_abs", 1e-7), ("eps_rel", 1e-7), ("max_iter", 50_000), ("polishing", False)),
        together=False,
    ),
    "PDLP": Traits(accurate=False, time_limit=("time_limit_sec",), bounds=False),
    "GLOP": Traits(time_limit=("time_limit_sec",), bounds=False),
    "GLPK": _GLPK,
    "GLPK_MI": _GLPK,
    "CBC": Traits(
        tolerance=("primalTolerance", "dualTolerance"),
        time_limit=("maximumSeconds",),
        threads=("numberThreads",),
        integer="CBC",
    ),
    "SCIP": Traits(
        tolerance=("scip_params.numerics/feastol", "scip_params.numerics/dualfeastol"),
        time_limit=("scip_params.limits/time",),
        threads=("scip_params.parallel/maxnthreads",),
        integer="SCIP",
        duals=False,
    ),
    "GUROBI": Traits(
        tolerance=("FeasibilityTol", "OptimalityTol"),
        time_limit=("TimeLimit",),
        threads=("Threads",),
        integer="GUROBI",
        whole=(("MIPGap", 0.0), ("MIPGapAbs", 0.0)),
        licence=(2000, 2000),
    ),
    "MOSEK": Traits(
        tolerance=(
            "mosek_params.MSK_DPAR_INTPNT_TOL_REL_GAP",
            "mosek_params.MSK_DPAR_INTPNT_TOL_PFEAS",
            "mosek_params.MSK_DPAR_INTPNT_TOL_DFEAS",
        ),
        time_limit=("mosek_params.MSK_DPAR_OPTIMIZER_MAX_TIME",),
        threads=("mosek_params.MSK_IPAR_NUM_THREADS",),
        integer="MOSEK",
        whole=(("mosek_params.MSK_DPAR_MIO_TOL_REL_GAP", 0.0),),
    ),
    "CPLEX": Traits(
        time_limit=("cplex_params.timelimit",),
        threads=("cplex_params.threads",),
        integer="CPLEX",
        whole=(("cplex_params.mip.tolerances.mipgap", 0.0),),
        licence=(1000, 1000),
    ),
    "XPRESS": Traits(
        tolerance=("FEASTOL", "OPTIMALITYTOL"),
        time_limit=("MAXTIME",),
        threads=("THREADS",),
        integer="XPRESS",
        whole=(("MIPRELSTOP", 0.0),),
        licence=(5000, 5000),
    ),
    "COPT": Traits(
        tolerance=("FeasTol", "DualTol"),
        time_limit=("TimeLimit",),
        threads=("Threads",),
        integer="COPT",
        whole=(("RelGap", 0.0),),
        licence=(2000, 2000),
    ),
}


def traits_of(solver: str) -> Traits:
    """Return the traits of a solver.

    Parameters
    ----------
    solver : str
        In capital letters.

    Returns
    -------
    Traits
        Unknown solvers get traits by which their answers are not trusted.
    """
    return SOLVERS.get(solver, Traits(accurate=False))


def nested(options: dict[str, Any]) -> dict[str, Any]:
    """Return options with those of one dictionary together.

    Parameters
    ----------
    options : dict
        ``{"scip_params.limits/time": 3}``; dictionaries are copied, as cvxpy takes entries out.

    Returns
    -------
    dict

    Examples
    --------
    >>> from structsolve.lp.solvers import nested
    >>> nested({"scip_params.limits/time": 3, "scip_params": {"limits/gap": 0.0}, "a": 1})
    {'scip_params': {'limits/time': 3, 'limits/gap': 0.0}, 'a': 1}
    """
    made: dict[str, Any] = {}
    for name, value in options.items():
        outer, dot, inner = name.partition(".")
        if dot:
            made.setdefault(outer, {})[inner] = value
        elif isinstance(value, dict):
            made.setdefault(outer, {}).update(value)
        else:
            made[name] = value
    return made


def mixed_integer(name: str) -> bool:
    """Return whether a solver that is installed takes integer programs.

    Parameters
    ----------
    name : str

    Returns
    -------
    bool
    """
    from cvxpy.reductions.solvers import defines  # heavy

    return name in defines.INSTALLED_MI_SOLVERS


def installed(integer: bool = False) -> list[str]:
    """Return the solvers that cvxpy finds installed.

    Parameters
    ----------
    integer : bool, default=False
        Only solvers of integer programs.

    Returns
    -------
    list of str
    """
    import cvxpy  # heavy

    return [s for s in cvxpy.installed_solvers() if not integer or mixed_integer(s)]


def check_solver(name: str) -> str:
    """Raise ValueError unless cvxpy has an installed solver of this name.

    Parameters
    ----------
    name : str
        In any case.

    Returns
    -------
    str
        The name in cvxpy.
    """
    from cvxpy.reductions.solvers import defines  # heavy

    # Those that cvxpy found at its import; installed() looks for all of them again.
    if name.upper() not in defines.INSTALLED_SOLVERS and name.upper() not in (known := installed()):
        raise ValueError(
            f"oracle is 'cvxpy:{name}', but cvxpy finds no such solver; installed: {known}"
        )
    return name.upper()
