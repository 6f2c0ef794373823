"""Linear programs by a solver that cvxpy knows: a parametrised problem, compiled once."""

from __future__ import annotations

import operator
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from .base import Answer, Backend, Program, unit_of

_ONE_AT_A_TIME = threading.Lock()


def _turn() -> AbstractContextManager[Any]:
    """Return a lock for cvxpy before 1.8: it compiles with settings that all threads share."""
    from cvxpy.utilities import scopes  # heavy

    return nullcontext() if hasattr(scopes, "_thread_local") else _ONE_AT_A_TIME


class _CvxpyProgram(Program):
    """One parametrised problem.

    Parameters
    ----------
    polytope : object with A, low, high, lower and upper
    solver : str
    """

    def __init__(self, polytope: Any, solver: str):
        import cvxpy as cp  # heavy

        self.polytope, self.solver = polytope, solver
        m, size = polytope.A.shape
        self.x, self.cost, self.top = cp.Variable(size), cp.Parameter(size), cp.Parameter(size)
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
        box = [*(row[1] for row in self.rows), self.x >= polytope.lower, self.x <= self.top]
        objective = cp.Maximize(self.cost @ self.x)
        self.plain = cp.Problem(objective, box)
        self.coned = cp.Problem(objective, [*box, self.sides @ self.x >= self.least])

    def solve(
        self, c: np.ndarray, upper: Any = None, start: Any = None, sides: Any = None
    ) -> Answer | None:
        import cvxpy as cp  # heavy

        problem = self.plain
        if sides:
            problem = self.coned
            self.sides.value = np.array([row for row, _ in sides])
            self.least.value = np.array([least for _, least in sides])
        unit = unit_of(c)
        self.cost.value = c / unit
        self.top.value = self.polytope.upper if upper is None else upper
        try:
            # Warm, the answer would depend on which programs a thread solved before.
            with _turn():
                problem.solve(solver=self.solver, warm_start=False)
        except cp.error.SolverError as error:
            raise ValueError(
                f"{self.solver} gave up on a program of {len(c)} variables: {error}"
            ) from error
        if problem.status in ("infeasible", "infeasible_inaccurate"):
            return None
        if self.x.value is None:
            raise ValueError(
                f"{self.solver} gave up on a program of {len(c)} variables: {problem.status}; "
                "scale the scores, or use another solver"
            )
        return Answer(np.array(self.x.value), None if sides else self._dual(unit))

    def _dual(self, unit: float) -> np.ndarray | None:
        dual = np.zeros(self.polytope.A.shape[0])
        for rows, constraint, sign in self.rows:
            if constraint.dual_value is None:
                return None
            multiplier = np.atleast_1d(np.asarray(constraint.dual_value))
            # cvxpy's multiplier of an equality belongs to the minimisation of -c x.
            dual[rows] += unit * (sign * np.abs(multiplier) if sign else multiplier)
        return dual


class Cvxpy(Backend):
    """A solver that cvxpy finds installed, the problem compiled once with its costs as parameters.

    Parameters
    ----------
    solver : str
        As in ``cvxpy.installed_solvers()``.

    Raises
    ------
    ValueError
        When ``solver`` is no name, or not installed.
    """

    # A call of cvxpy costs milliseconds whatever the size; larger products than this are slower.
    batch = 1000

    def __init__(self, solver: str | None = None):
        if not isinstance(solver, str) or not solver:
            raise ValueError("'cvxpy' needs the name of a solver: 'cvxpy:CLARABEL', for example")
        check_solver(solver)
        self.solver = solver
        self.name = f"cvxpy:{solver}"

    def program(self, polytope: Any) -> Program:
        """Return a parametrised problem over a polytope."""
        return _CvxpyProgram(polytope, self.solver)


def check_solver(name: str, argument: str = "oracle") -> None:
    """Raise ValueError unless cvxpy has an installed solver of this name.

    Parameters
    ----------
    name : str
    argument : str
        What the message calls it.
    """
    import cvxpy  # heavy

    installed = cvxpy.installed_solvers()
    if name not in installed:
        raise ValueError(
            f"{argument} is 'cvxpy:{name}', but cvxpy finds no such solver; installed: {installed}"
        )
