"""Checks of what goes to a backend, and of what it answers."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np

from .base import Answer, Backend
from .polytope import Polytope

# Distance of answers from rows and bounds, in units of the largest number: beyond NEAR an answer is
# no marginal, and HiGHS solves it again; beyond INFEASIBLE it is refused.
NEAR, INFEASIBLE = 1e-6, 1e-2


def numeric(i: int, backend: Backend, answer: Answer) -> Answer:
    """Return a backend's answer with arrays of float64.

    Parameters
    ----------
    i : int
        Number of the example, for messages.
    backend : Backend
    answer : Answer

    Returns
    -------
    Answer

    Raises
    ------
    ValueError
        If it holds anything else than numbers, or no point.
    """
    if answer.x is None and not answer.limited:
        raise ValueError(
            f"example {i}: LP backend {backend.label!r} answered without a point, expected one, "
            "None in place of the answer (no point satisfies all rows), or limited=True"
        )
    arrays = {}
    for name in ("x", "dual"):
        given = arrays[name] = getattr(answer, name)
        if given is None or (type(given) is np.ndarray and given.dtype == np.float64):
            continue
        try:
            arrays[name] = np.asarray(given).astype(np.float64, casting="same_kind")
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"example {i}: LP backend {backend.label!r} answered with {reprlib.repr(given)} as "
                f"{name}, expected an array of float64"
            ) from error
    return answer._replace(**arrays)


def checked_point(i: int, backend: Backend, polytope: Polytope, answer: Answer) -> np.ndarray:
    """Return the point of an answer.

    Parameters
    ----------
    i : int
    backend : Backend
    polytope : Polytope
    answer : Answer

    Returns
    -------
    ndarray of shape (size of the polytope,)

    Raises
    ------
    ValueError
        If it is clearly outside the polytope, not finite, or of another size.
    """
    x: Any = answer.x
    name = backend.label
    if np.shape(x) != (polytope.size,):
        raise ValueError(
            f"example {i}: LP backend {name!r} answered with an array of shape {np.shape(x)}, "
            f"expected {polytope.size} numbers"
        )
    if not np.isfinite(x).all():
        raise ValueError(
            f"example {i}: LP backend {name!r} answered with entries that are not finite"
        )
    if answer.dual is not None and not np.isfinite(answer.dual).all():
        raise ValueError(
            f"example {i}: LP backend {name!r} answered with duals that are not finite"
        )
    off = outside(polytope, x)
    if off > INFEASIBLE:
        raise ValueError(
            f"example {i}: LP backend {name!r} answered with a point that is {off:.2g} away "
            f"from the rows or bounds of the polytope; {backend.remedy()}"
        )
    return np.asarray(x)


def outside(polytope: Polytope, x: Any, upper: Any = None) -> float:
    """Return a point's distance from the rows and bounds, in units of its largest number.

    Parameters
    ----------
    polytope : Polytope
    x : ndarray
    upper : ndarray, optional
        Upper bounds in place of the polytope's.

    Returns
    -------
    float
        Infinite for another size, and numbers that are not finite.
    """
    if np.shape(x) != (polytope.size,) or not np.isfinite(x).all():
        return np.inf
    rows = polytope.A @ x
    off = max(
        float(np.max(polytope.low - rows, initial=0)),
        float(np.max(rows - polytope.high, initial=0)),
        float(np.max(polytope.lower - x, initial=0)),
        float(np.max(x - (polytope.upper if upper is None else upper), initial=0)),
    )
    return off / max(1.0, float(np.abs(x).max(initial=0)))


def label_of(i: int, polytope: Polytope, x: np.ndarray, n_states: int) -> np.ndarray:
    """Return the label of a point of integers.

    Parameters
    ----------
    i : int
    polytope : Polytope
    x : ndarray
    n_states : int
        States are below it; 0: not checked.

    Returns
    -------
    ndarray of int32

    Raises
    ------
    ValueError
        If the polytope's ``decode()`` makes no label of it.
    """
    try:
        answer = polytope.decode(x)
        label = np.ascontiguousarray(answer, dtype=np.int32)
    except Exception as error:
        raise ValueError(
            f"example {i}: decode() of the polytope made no label of integers: "
            f"{type(error).__name__}: {error}"
        ) from error
    if (label != answer).any() or (n_states and not ((label >= 0) & (label < n_states)).all()):
        states = f", 0 .. {n_states - 1}" if n_states else ""
        raise ValueError(
            f"example {i}: decode() of the polytope returned {reprlib.repr(answer)}, expected a "
            f"label of integers{states}"
        )
    return label


def costs_and_bounds(polytope: Polytope, theta: np.ndarray, i: int) -> tuple[np.ndarray, Any]:
    """Return the objective, and upper bounds if -inf forbids parts.

    Parameters
    ----------
    polytope : Polytope
    theta : ndarray
        Scores of parts.
    i : int
        Number of the example, for messages.

    Returns
    -------
    c : ndarray
    upper : ndarray or None

    Raises
    ------
    ValueError
        If scores are NaN or infinite, or forbid what may not be 0.
    """
    c = polytope.scores(theta)
    if np.isfinite(c).all():
        return c, None
    barred = np.isneginf(c)
    if not np.isfinite(c[~barred]).all():
        raise ValueError(
            f"example {i}: found scores that are NaN or infinite; expected numbers, or -inf to "
            "forbid a part that may be 0"
        )
    needed = np.flatnonzero(barred & (polytope.lower != 0))
    if needed.size:
        parts = np.ravel(polytope.parts[needed[0]])
        part = parts[np.argmin(np.where(parts >= 0, theta[parts], np.inf))]
        raise ValueError(f"example {i}: a score of -inf forbids part {part}, which every label has")
    return np.where(barred, 0.0, c), np.where(barred, 0.0, polytope.upper)
