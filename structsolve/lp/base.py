"""Base classes of LP backends and their programs."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..utils.params import Params


class Answer(NamedTuple):
    """An optimal point of a linear program (maximised), or the best point when a limit stopped it.

    Parameters
    ----------
    x : ndarray of shape (n,), or None
        Within the tolerance of the solver.  None: a limit stopped the program before any was found.
    dual : ndarray of shape (m,), or None
        Row duals: the objective changes by ``dual[k]`` when both bounds of row k grow by 1.
    start : object
        A start for the next program of the same rows, or None.
    bound : float, optional
        The solver's upper bound on the objective, for integer programs.
    limited : bool, default=False
        A limit stopped the program, or the solver doubts its answer: ``x`` may be neither
        optimal nor a point of the polytope.
    """

    x: np.ndarray | None
    dual: np.ndarray | None
    start: Any = None
    bound: float | None = None
    limited: bool = False


class GaveUp(ValueError):
    """A solver has no answer to one program, which another solver may solve."""


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
            Upper bounds of the variables, if they differ from the polytope's.
        start : optional
            The ``start`` of an earlier answer over the same rows.
        sides : list of tuple (row of shape (n,), least), optional
            Further rows ``row @ x >= least``.

        Returns
        -------
        Answer
            None if no point satisfies all rows.

        Raises
        ------
        GaveUp
            If the solver gives up on this program.  The message is a sentence; the caller prepends
            the example, and HiGHS solves the program instead.
        ValueError
            If it would give up on all others, too.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement solve()")


class ProgramCache(threading.local):
    """Programs by key; every thread has a separate cache.

    Attributes
    ----------
    most : int
        Most programs to keep; then the oldest is dropped.
    """

    most = 64

    def __init__(self) -> None:
        self.made: dict[Any, Any] = {}

    def get(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return the object kept under ``key``, built at the first call.

        Parameters
        ----------
        key : hashable
        make : callable
            Builds it, without arguments.

        Returns
        -------
        object
        """
        if key not in self.made:
            if len(self.made) >= self.most:
                self.made.pop(next(iter(self.made)))
            self.made[key] = make()
        return self.made[key]


class Backend(Params):
    """Makes programs; a plugin names it in ``structsolve_lp_backends``.

    The constructor's arguments are its parameters: clones and model files keep them.

    Attributes
    ----------
    name : str
        The name under which a plugin registers it.
    integer : bool
        Programs are integer programs.
    accurate : bool
        Answers are optimal up to rounding.  If False, an oracle of such programs is not exact,
        and its bounds come from row duals, or from :attr:`Answer.bound`.
    ends_early : bool
        A limit is set: if it stops a program, any label is returned, with the bound proved so
        far.  If False, HiGHS solves what the backend could not.
    batch : int
        Rows to solve at once: examples to decode are put side by side into one
        block-diagonal program up to this size. 0: one by one.
    warm : bool
        In training, programs start from the end of the example's last one.
    constraints : list or callable, optional
        Further rows that labels satisfy: see :class:`LabelConstraint`.
    """

    name = "backend"
    integer = False
    accurate = True
    ends_early = False
    batch = 0
    warm = True
    constraints: Any = None

    # The solver's options, if the constructor takes any.
    options: dict[str, Any] = {}

    @property
    def label(self) -> str:
        """Its name in messages."""
        return self.name

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor arguments, including the solver's options."""
        return super().get_params(deep) | self.options

    def set_params(self, **params: Any) -> Backend:
        """Set arguments by name; other names are options of the solver.

        Raises
        ------
        ValueError
            For an unknown name, if the constructor takes no options; or a wrong value.
        """
        if "options" in vars(self):
            # The constructor checks them together.
            fresh = type(self)(**(self.get_params(deep=False) | params))
            vars(self).update(vars(fresh))
        else:
            super().set_params(**params)
        return self

    def saved_params(self) -> dict[str, Any]:
        """Return the parameters for model files: all but licences and output files.

        Returns
        -------
        dict of str to object
        """
        return {k: v for k, v in self.get_params(deep=False).items() if not of_a_place(k)}

    def __repr__(self) -> str:
        shown = ", ".join(f"{k}={v!r}" for k, v in self.get_params(deep=False).items())
        return f"{type(self).__name__}({shown})"

    def check(self) -> None:
        """Raise ValueError if the solver is not installed, or refuses an option.

        It is called before training and prediction, and not when a model file is read.
        """

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

    def remedy(self) -> str:
        """Return advice for answers that are no points of the polytope.

        Returns
        -------
        str
            The end of a sentence.
        """
        return "use another solver, or check the plugin"

    def integral(self) -> Backend | None:
        """Return the backend of integer programs that gives labels if answers are fractional.

        Returns
        -------
        Backend or None
            None: HiGHS.
        """
        return None


class SettingsBackend(Backend):
    """A backend with a time limit, a warm start and options of the solver."""

    time_limit: float | None = None
    warm_start = True

    @property
    def ends_early(self) -> bool:  # type: ignore[override]
        """Whether a limit of time or of steps is set."""
        words = ("limit", "iter", "time", "node", "seconds")
        limits = any(word in name.lower() for name in self.options for word in words)
        return self.time_limit is not None or limits

    @property
    def warm(self) -> bool:  # type: ignore[override]
        """Whether programs of training start from the end of the last one."""
        return self.warm_start


def of_a_place(name: str) -> bool:
    """Return whether a setting is local to a machine: a licence, or a file that the solver writes.

    Files of models do not hold these, and must not set them.

    Parameters
    ----------
    name : str

    Returns
    -------
    bool

    Examples
    --------
    >>> from structsolve.lp.base import of_a_place
    >>> [of_a_place(name) for name in ("licence", "log_file", "LogFile", "eps_abs")]
    [True, True, True, False]
    """
    words = ("licen", "secret", "password", "token", "accessid", "file", "path")
    return name.lower() == "env" or any(word in name.lower() for word in words)


def is_number(value: Any, least: float, below: float = math.inf) -> bool:
    """Return whether a setting is a number from ``least`` to less than ``below``.

    Parameters
    ----------
    value : object
    least, below : float

    Returns
    -------
    bool
        False for True and False.
    """
    is_real = isinstance(value, (int, float, np.integer, np.floating))
    return is_real and not isinstance(value, bool) and least <= value < below


def check_settings(tolerance: Any, time_limit: Any, threads: Any) -> None:
    """Refuse settings that no solver takes.

    Parameters
    ----------
    tolerance, time_limit, threads
        See :class:`Highs`; None for the solver's defaults.

    Raises
    ------
    ValueError
    """
    if tolerance is not None and not is_number(tolerance, 1e-10, 1):
        raise ValueError(f"tolerance is {tolerance!r}, expected a number from 1e-10 to 1")
    if time_limit is not None and not is_number(time_limit, 0):
        raise ValueError(f"time_limit is {time_limit!r}, expected seconds, 0 or more")
    whole = isinstance(threads, (int, np.integer)) and is_number(threads, 0)
    if threads is not None and not whole:
        raise ValueError(f"threads is {threads!r}, expected an integer, 0 or more")


def unit_of(c: np.ndarray) -> float:
    """Return the size of costs, a power of two to divide by: solvers' tolerances are absolute.

    Parameters
    ----------
    c : ndarray of shape (n,)
        Finite.

    Returns
    -------
    float
        The largest entry of ``c``, rounded down to a power of two; 1 if all are 0.

    Raises
    ------
    ValueError
        For costs that are not finite: a solver may never stop on them.
    """
    top = float(np.max(np.abs(c), initial=0))
    if not np.isfinite(top):
        raise ValueError("found scores that are NaN or infinite; expected numbers")
    return 2.0 ** np.clip(np.floor(np.log2(top)), -1000, 1000) if top > 0 else 1.0


def make_program(backend: Backend, polytope: Any) -> Program:
    """Return a backend's program over a polytope.

    Parameters
    ----------
    backend : Backend
    polytope : Polytope

    Returns
    -------
    Program

    Raises
    ------
    ValueError
        If the backend returns no program; and errors of its ``program()``.
    """
    try:
        program = backend.program(polytope)
    except (ValueError, ImportError, NotImplementedError, MemoryError):
        raise
    except Exception as error:
        text = f"program() of LP backend {backend.name!r} raised {type(error).__name__}: {error}"
        raise ValueError(text) from error
    if not hasattr(program, "solve"):
        raise ValueError(
            f"program() of LP backend {backend.name!r} returned {program!r}, expected a "
            "structsolve.lp.Program"
        )
    return program


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
        # sign (g - factor h) >= 0; for an infinite alpha only h >= 0.
        scale = max(1.0, abs(factor))
        a, b = sign / scale, -sign * (1.0 if np.isinf(factor) else factor / scale)
        row, least = a * d + b * c, -(a * g0 + b * h0)
        unit = unit_of(row)
        rows.append((row / unit, least / unit))
    return rows
