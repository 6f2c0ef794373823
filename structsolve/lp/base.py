"""Solvers of linear programs: what a backend and its programs are."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Answer(NamedTuple):
    """An optimal point of a linear program, maximised.

    Parameters
    ----------
    x : ndarray of shape (n,)
        Within the tolerance of the solver.
    dual : ndarray of shape (m,), or None
        Row duals: the objective changes by ``dual[k]`` when both bounds of row k grow by 1.
    start : object
        Where the next program of the same rows may start, or None.
    """

    x: np.ndarray
    dual: np.ndarray | None
    start: Any = None


class Program:
    """One program over fixed rows, of which only costs and upper bounds change."""

    def solve(
        self, c: np.ndarray, upper: Any = None, start: Any = None, sides: Any = None
    ) -> Answer | None:
        """Maximise ``c x``.

        Parameters
        ----------
        c : ndarray of shape (n,)
            Finite.
        upper : ndarray of shape (n,), optional
            Upper bounds of the variables, where they differ from the polytope's.
        start : optional
            What an earlier answer of a program over the same rows gave.
        sides : list of tuple (row of shape (n,), least), optional
            Further rows ``row @ x >= least``.

        Returns
        -------
        Answer
            None where no point satisfies all rows.

        Raises
        ------
        ValueError
            Where the solver gives up.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement solve()")


class ProgramCache(threading.local):
    """Programs that were put together, by key; every thread has its own.

    Attributes
    ----------
    most : int
        Programs that are kept; beyond, the oldest is dropped.
    """

    most = 64

    def __init__(self) -> None:
        self.made: dict[Any, Any] = {}

    def get(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return what is kept under ``key``, made at the first call.

        Parameters
        ----------
        key : hashable
        make : callable
            Makes it, without arguments.

        Returns
        -------
        object
        """
        if key not in self.made:
            if len(self.made) >= self.most:
                self.made.pop(next(iter(self.made)))
            self.made[key] = make()
        return self.made[key]


class Backend:
    """Makes programs; what a plugin's ``structsolve_lp_backends`` names.

    Attributes
    ----------
    name : str
    integer : bool
        Programs are integer programs.
    accurate : bool
        Answers are optimal up to rounding.  False: an oracle made of such programs is not exact,
        and its bounds come from row duals.
    batch : int
        Rows that are worth solving at once: examples to be decoded are put side by side into one
        block-diagonal program up to this size. 0: one by one.
    """

    name = "backend"
    integer = False
    accurate = True
    batch = 0

    def program(self, polytope: Any) -> Program:
        """Return a program over a polytope.

        Parameters
        ----------
        polytope : Polytope
            Or an object with its A, low, high, lower, upper and integer.

        Returns
        -------
        Program
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement program()")


def unit_of(c: np.ndarray) -> float:
    """Return the size of costs, a power of two to divide by: solvers' tolerances are absolute.

    Parameters
    ----------
    c : ndarray of shape (n,)
        Finite.

    Returns
    -------
    float
        The largest entry of ``c``, rounded down to a power of two; 1 where all are 0.
    """
    top = float(np.max(np.abs(c), initial=0))
    return 2.0 ** np.clip(np.floor(np.log2(top)), -1000, 1000) if top > 0 else 1.0


def cone_rows(
    c: np.ndarray, h0: float, d: np.ndarray, g0: float, cone: Any
) -> list[tuple[np.ndarray, float]]:
    """Return the closed sides of a cone as rows ``a x >= b`` of coefficients of moderate size.

    Parameters
    ----------
    c, d : ndarray of shape (n,)
        ``h = c x + h0`` and ``g = d x + g0``.
    h0, g0 : float
    cone : ConePair

    Returns
    -------
    list of tuple
        ``(a, b)`` of each side, a of shape (n,).
    """
    rows = []
    for factor, sign in ((cone.beta, 1.0), (cone.alpha, -1.0)):
        # sign (g - factor h) >= 0; for an infinite alpha h >= 0 alone.
        scale = max(1.0, abs(factor))
        a, b = sign / scale, -sign * (1.0 if np.isinf(factor) else factor / scale)
        row, least = a * d + b * c, -(a * g0 + b * h0)
        unit = unit_of(row)
        rows.append((row / unit, least / unit))
    return rows
