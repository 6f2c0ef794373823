"""Checks on a grid of points that a psi has the properties that the searches need."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import abi

# Steps of the finite differences, and their rounding errors.
STEP, ROUNDING = 1e-5, 1e-4


def check_psi(
    psi: Any, margins: Any = None, losses: Any = None, random_state: int = 0, pairs: int = 300
) -> None:
    """Refuse a psi that is not increasing and quasi-concave where it is positive.

    Parameters
    ----------
    psi : Psi
        Native, or a Python one behind ``PythonPsi``.
    margins, losses : array, optional
        Values of h and g to check; -10 .. 10 and 0 .. 10 by default.  Surrogates check up to
        the largest loss of the data.
    random_state : int, default=0
    pairs : int, default=300
        Number of pairs of points between which psi is checked.

    Raises
    ------
    ValueError
        The message names the point where the property, or a derivative, fails.
    ImportError
        If it was compiled against another C API.

    Examples
    --------
    >>> from structsolve.search.check import check_psi
    >>> from structsolve.search.psi import BetaPsi
    >>> check_psi(BetaPsi(0.5))
    """
    abi.refuse_stale(psi)
    if margins is None:
        margins = np.concatenate([np.linspace(-10, 10, 21), [-0.3, 0.3]])
    if losses is None:
        losses = np.concatenate([np.arange(11.0), [0.1, 0.5, 2.5]])
    points = [(float(h), float(g)) for h in margins for g in losses]
    values = {point: psi(*point) for point in points}
    if not np.isfinite(list(values.values())).all():
        point = next(p for p, v in values.items() if not np.isfinite(v))
        raise ValueError(f"psi({_text(point)}) is {values[point]}, expected a finite number")
    if abs(psi(0.0, 0.0)) > 1e-12:
        raise ValueError(f"psi(h=0, g=0) is {psi(0.0, 0.0):g}, expected 0: that of the truth")
    for point in points:
        if values[point] > 0 and point[1] > 0:
            _check_derivatives(psi, point)
    rng = np.random.default_rng(random_state)
    positive = [p for p in points if values[p] > 0]
    for _ in range(pairs if len(positive) > 1 else 0):
        (h0, g0), (h1, g1) = (positive[k] for k in rng.integers(0, len(positive), 2))
        share = rng.uniform()
        middle = ((1 - share) * h0 + share * h1, (1 - share) * g0 + share * g1)
        least = min(values[h0, g0], values[h1, g1])
        value = psi(*middle)
        if value < least - 1e-9 * (1 + abs(least)):
            raise ValueError(
                f"psi is not quasi-concave: psi({_text(middle)}) = {value:g} lies between "
                f"psi({_text((h0, g0))}) = {values[h0, g0]:g} and psi({_text((h1, g1))}) = "
                f"{values[h1, g1]:g} and is smaller than both"
            )
    _check_shape(psi, points)


def _check_derivatives(psi: Any, point: tuple[float, float]) -> None:
    h, g = point
    slopes = psi.slopes(h, g)
    step = STEP * max(1.0, abs(h), g)
    differences = (
        (psi(h + step, g) - psi(h - step, g)) / (2 * step),
        (psi(h, g + step) - psi(h, max(g - step, 0.0))) / (step + min(g, step)),
    )
    for name, slope, difference in zip("hg", slopes, differences):
        scale = max(1.0, abs(slope), abs(difference))
        if slope < -1e-9 * scale or difference < -ROUNDING * scale:
            raise ValueError(
                f"psi falls as {name} grows at {_text(point)}: its derivative is {slope:g}, by "
                f"differences {difference:g}; expected at least 0 wherever psi is positive"
            )
        # A kink has one of two slopes.
        if abs(slope - difference) > ROUNDING * scale:
            sides = _one_sided(psi, h, g, step, name)
            if not min(sides) - ROUNDING * scale <= slope <= max(sides) + ROUNDING * scale:
                raise ValueError(
                    f"psi's derivative with respect to {name} at {_text(point)} is given as "
                    f"{slope:g}, by differences it is {difference:g}"
                )


def _one_sided(psi: Any, h: float, g: float, step: float, name: str) -> tuple[float, float]:
    a, b = (step, 0.0) if name == "h" else (0.0, step)
    middle = psi(h, g)
    return (psi(h + a, g + b) - middle) / step, (middle - psi(h - a, g - b)) / step


def _check_shape(psi: Any, points: list[tuple[float, float]]) -> None:
    """Refuse a psi that is declared affine or convex in h, but is not."""
    if not psi.convex:
        return
    for h, g in points:
        left, middle, right = (psi(h + d, g) for d in (-1.0, 0.0, 1.0))
        bend = left + right - 2 * middle
        scale = 1e-7 * (1 + abs(left) + abs(middle) + abs(right))
        if bend < -scale or (psi.affine and bend > scale):
            what = "affine" if psi.affine else "convex"
            raise ValueError(f"psi says that it is {what} in h, which it is not at {_text((h, g))}")


def _text(point: tuple[float, float]) -> str:
    return f"h={point[0]:.6g}, g={point[1]:.6g}"
