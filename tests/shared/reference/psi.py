"""Surrogates of section "bi-criteria" as plain functions of h (margin error) and g (loss).

Every one is a `Psi`: `value(h, g)`, `slopes(h, g)` = (d psi/dh, d psi/dg), elementwise on arrays.
At g = 0 slopes are limits from g > 0: infinite in g and zero in h for some of them.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr


@dataclass(frozen=True)
class Psi:
    """One surrogate; `affine` and `convex` are about h at fixed g."""

    name: str
    function: object
    derivatives: object
    affine: bool = True
    convex: bool = True

    def value(self, h, g):
        """psi(h, g)."""
        return self.function(*_arrays(h, g))

    def slopes(self, h, g):
        """(d psi/dh, d psi/dg)."""
        return self.derivatives(*_arrays(h, g))


def _arrays(h, g):
    h, g = np.asarray(h, float), np.asarray(g, float)
    return (h, g) if h.shape == g.shape else np.broadcast_arrays(h, g)


def _power(g, exponent):
    # 0 ** negative is inf, as the limit wants it.
    with np.errstate(divide="ignore"):
        return np.power(g, exponent)


def generalized(alpha, beta):
    """h g^beta + g^alpha: increasing and quasi-concave for beta >= 0, 0 <= alpha - beta <= 1."""

    def slopes(h, g):
        with np.errstate(invalid="ignore"):
            first = beta * np.where(h == 0, 0, h * _power(g, beta - 1)) if beta else 0
            second = alpha * _power(g, alpha - 1) if alpha else 0
            # At g = 0 they may be infinite with different signs: the larger power of 1/g rules.
            both = np.where(np.isfinite(first), first + second, first)
        return np.power(g, beta), both + np.zeros_like(g)

    def value(h, g):
        return h * np.power(g, beta) + np.power(g, alpha)

    return Psi(f"generalized:{alpha:g},{beta:g}", value, slopes)


def margin():
    """h + g."""
    return Psi("margin", lambda h, g: h + g, lambda h, g: (np.ones_like(h), np.ones_like(g)))


def slack():
    """(h + 1) g."""
    return Psi("slack", lambda h, g: (h + 1) * g, lambda h, g: (g.copy(), h + 1))


def beta(exponent):
    """h g^beta + g."""
    return generalized(1, exponent)


def log():
    """g log(exp(h) + 1)."""
    return Psi(
        "log",
        lambda h, g: g * np.logaddexp(h, 0),
        lambda h, g: (g * np.exp(-np.logaddexp(-h, 0)), np.logaddexp(h, 0)),
        affine=False,
    )


def _probloss(h, g):
    with np.errstate(divide="ignore", invalid="ignore"):
        u = np.where(g > 0, h / np.sqrt(2 * g / np.pi), np.sign(h) * np.inf)
        return np.where(g > 0, 2 * g * ndtr(u), 0.0)


def _probloss_slopes(h, g):
    with np.errstate(divide="ignore", invalid="ignore"):
        u = np.where(g > 0, h / np.sqrt(2 * g / np.pi), 0)
        dh = np.sqrt(g) * np.exp(-(u**2) / 2)
        dg = 2 * ndtr(u) - u * np.exp(-(u**2) / 2) / np.sqrt(2 * np.pi)
        # Limits at g = 0: u is plus or minus infinity, or 0 at h = 0.
        return dh, np.where(g > 0, dg, 1 + np.sign(h))


def probloss():
    """2 g NormalCDF(h; 0, variance 2 g / pi): not convex in h beyond 0."""
    return Psi("probloss", _probloss, _probloss_slopes, affine=False, convex=False)


def convex_probloss():
    """ProbLoss for h <= 0, its tangent g + sqrt(g) h beyond."""

    def value(h, g):
        return np.where(h <= 0, _probloss(h, g), g + np.sqrt(g) * h)

    def slopes(h, g):
        dh, dg = _probloss_slopes(h, g)
        with np.errstate(divide="ignore", invalid="ignore"):
            above = 1 + h / (2 * np.sqrt(g))
        return np.where(h <= 0, dh, np.sqrt(g)), np.where(h <= 0, dg, above)

    return Psi("probloss-convex", value, slopes, affine=False)


def micro_f1():
    """h / (-g) with h = Hamming + m and g = -(|y| + |y_i|); 0 at g = 0, where both are empty."""

    def value(h, g):
        return np.where(g < 0, h / np.where(g < 0, -g, 1), 0.0)

    def slopes(h, g):
        safe = np.where(g < 0, g, -1)
        return np.where(g < 0, -1 / safe, 0.0), np.where(g < 0, h / safe**2, 0.0)

    return Psi("micro-f1", value, slopes)
