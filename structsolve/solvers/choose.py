"""Choice of the solver if the settings leave it open."""

from __future__ import annotations

from ..utils.params import check_types
from .base import Solver
from .bcfw import BCFW
from .gbcfw import GBCFW, has_segments
from .interior_point import InteriorPoint
from .interior_point import suits as suits_interior_point
from .problem import Problem
from .smo import SMO
from .smo import suits as suits_smo


def choose_solver(solver: Solver, problem: Problem) -> Solver:
    """Return the solver to run: ``BCFW(steps="auto")`` hands smooth surrogates to GBCFW.

    With all other settings at their defaults, it hands thresholds of ordered classes to
    :class:`InteriorPoint`, where rows and weights are few, and kernel models of rows with one of a
    few classes to :class:`SMO`.

    Parameters
    ----------
    solver : Solver
    problem : Problem

    Returns
    -------
    Solver

    Raises
    ------
    ValueError
        If BCFW cannot take the problem, and neither can GBCFW; when a setting is of another
        type than the solver declares.

    Examples
    --------
    >>> import structsolve
    >>> from structsolve.solvers import BCFW, choose_solver
    >>> X, y = [[0.0], [1.0]], ["a", "b"]
    >>> space, examples = structsolve.get_structure("multiclass").make_space(X, y)
    >>> choose_solver(BCFW(), structsolve.Problem(space, examples, surrogate="crf")).name
    'gbcfw'
    >>> choose_solver(BCFW(), structsolve.Problem(space, examples)).name
    'bcfw'
    """
    check_types(solver, f"{type(solver).__name__}: ")
    if not isinstance(solver, BCFW) or solver.steps != "auto":
        return solver
    if solver.get_params() == BCFW().get_params():
        if suits_interior_point(problem):
            return InteriorPoint()
        if suits_smo(problem):
            return SMO()
    surrogate = problem.surrogate
    if not (has_segments(surrogate) and surrogate.projection.gibbs):
        return solver
    solver.check(problem)
    if solver.constraints:
        return solver  # GBCFW supports none
    return GBCFW(
        sampling=solver.sampling,
        averaging=solver.averaging,
        certify_every=solver.certify_every,
        batch=solver.batch,
    )
