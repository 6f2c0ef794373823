"""Checks of two powers: relaxations, and the best label in a cone."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..lp.oracle import ProgramCones
from ..structure import calls
from ..structure.base import ConePair
from ._case import Case
from ._promise import TOLERANCE

# The accuracy of linear-programming solvers.
LOOSE = 1e-6
# Cones for each example and kind of scores.
CONES, FEW_CONES = 8, 2


def check_relaxation(case: Case) -> None:
    """``relax`` attains at least the maximum, and reports mu's value and whether it is a label."""
    operator = case.power("relaxation")
    if operator is None:
        return
    what = "Relaxation.relax"
    for i in range(case.n):
        for kind, theta in case.thetas(i).items():
            scores = case.mu[i] @ theta
            mu, label, value, bound = case.call(what, i, calls.relax, operator, theta)
            _check_point(case, what, i, kind, mu)
            if label is not None:
                row = case.listed(what, i, label, f"{kind} theta")
                case.near(what, f"returns the mu of its label ({kind})", i, mu, case.mu[i][row])
            elif (np.abs(case.mu[i] - mu).max(axis=1) < TOLERANCE).any():
                row = int(np.abs(case.mu[i] - mu).max(axis=1).argmin())
                promise = f"says if mu is that of a label ({kind} theta)"
                case.fail(what, promise, i, "0", f"1, and the label {case.labels[i][row]}")
            case.near(what, f"returns the value of its mu ({kind} theta)", i, value, mu @ theta)
            best = scores.max()
            if not value >= best - LOOSE * (1 + abs(best)):
                promise = f"attains at least the best label's score ({kind} theta)"
                case.fail(what, promise, i, value, f"at least {float(best)!r}")
            if not bound >= max(value, best) - LOOSE * (1 + abs(best)):
                promise = f"returns a bound that neither a label nor its mu exceeds ({kind} theta)"
                case.fail(what, promise, i, bound, f"at least {max(value, best)!r}")


def _check_point(case: Case, what: str, i: int, kind: str, mu: np.ndarray) -> None:
    """Padding is 0, and rows and blocks keep the sums common to all labels."""
    if not np.isfinite(mu).all():
        case.fail(what, f"returns a finite mu ({kind} theta)", i, mu, "finite numbers")
    if np.any(mu[case.padding[i]] != 0):
        case.fail(what, "leaves padding zero", i, mu[case.padding[i]], 0)
    views = case.layout.theta_views(mu, *case.sizes(i))
    if i not in case.sums:
        case.sums[i] = _sums(case, i)
    for block in case.layout.blocks:
        marginals = views[block.name]
        if not marginals.size:
            continue
        positive, sums, fixed = case.sums[i][block.name]
        if positive and marginals.min() < -LOOSE:
            case.fail(
                what, f"has no negative parts ({block.name}, {kind} theta)", i, marginals, ">= 0"
            )
        given = marginals.reshape(len(sums), -1).sum(axis=1)
        off = np.abs(given - sums)
        if (off[fixed] > LOOSE * (1 + np.abs(sums[fixed]))).any():
            promise = f"keeps the sums that all labels share ({block.name}, {kind} theta)"
            case.fail(what, promise, i, given[fixed], sums[fixed])


def _sums(case: Case, i: int) -> dict[str, tuple[bool, np.ndarray, np.ndarray]]:
    """Return by block: no label has negative parts, the first one's sums, and which all share.

    Parts that no label of the example has may be in a polytope around them: sums of 0 count as
    shared by none, and so do those of an example with one label.
    """
    views = [case.layout.theta_views(row, *case.sizes(i)) for row in case.mu[i]]
    answer = {}
    for block in case.layout.blocks:
        labels = np.array([view[block.name] for view in views])
        # A shared block is one row; the others have one per node or edge.
        rows = 1 if block.kind == "shared" else labels.shape[1]
        sums = labels.reshape(len(labels), rows, labels[0].size // max(rows, 1)).sum(axis=2)
        shared = (sums == sums[0]).all(axis=0) & (sums[0] != 0) & (len(labels) > 1)
        answer[block.name] = bool((labels >= 0).all()), sums[0], shared
    return answer


def check_constrained(case: Case, loss: Any) -> None:
    """``argmax_in_cone`` against enumeration, in cones whose sides go through labels.

    Structures with only a polytope are checked by :func:`structsolve.lp.ask_cones`.
    """
    cones = case.power("cones")
    if cones is None:
        return
    # Programs take time.
    draws = FEW_CONES if isinstance(getattr(cones, "relaxed", None), ProgramCones) else CONES
    for i in range(case.n):
        thetas = case.thetas(i)
        for kind in ("random", "tied", "zero"):
            theta = thetas[kind]
            cost, g0 = _cost(case, loss, i)
            h_all, g_all = case.mu[i] @ theta, case.mu[i] @ cost + g0
            for _ in range(draws):
                h0 = _offset(case, h_all, kind)
                _check_cone(case, i, kind, theta, cost, _cone(case, h_all + h0, g_all, h0, g0))


def _cost(case: Case, loss: Any, i: int) -> tuple[np.ndarray, float]:
    """Return the loss as costs of parts, or integer costs of nodes if it does not decompose."""
    native = case.loss(loss)
    cost = np.zeros(case.layout.theta_size(*case.sizes(i)))
    if native.decomposes:
        return case.augment(f"Loss {loss!r}", native, i, case.examples.label(i), 1.0, cost)
    cost[:] = case.rng.integers(0, 3, len(cost))
    cost[case.padding[i]] = 0
    return cost, 0.0


def _offset(case: Case, h: np.ndarray, kind: str) -> float:
    """Return an h0 with positive and negative h; an integer for integer scores."""
    offset = -case.rng.choice(h) + case.rng.choice([0.0, 1.0, 2.0])
    return float(offset if kind == "random" else np.round(offset))


def _cone(case: Case, h: np.ndarray, g: np.ndarray, h0: float, g0: float) -> ConePair:
    """Return a cone; most sides go through labels, exactly if h is a power of two."""
    positive = h > 0
    slopes = [0.0, *(g[positive] / h[positive])] if positive.any() else [0.0, 0.5, 1.0]
    beta, alpha = sorted(case.rng.choice(slopes, 2).tolist())
    beta = max(beta, 0.0)
    if case.rng.random() < 0.3 or alpha <= beta:
        alpha = np.inf
    if case.rng.random() < 0.3:
        beta = 0.0
    lam = float(case.rng.choice([0.25, 1.0, 4.0]))
    return ConePair(h0, g0, lam, alpha, beta, bool(case.rng.random() < 0.5))


def _inside(h: np.ndarray, g: np.ndarray, cone: ConePair, slack: float) -> np.ndarray:
    """Return which points are in the cone, widened by positive or narrowed by negative slack."""
    with np.errstate(invalid="ignore"):
        low, high = cone.beta * h, np.where(np.isinf(cone.alpha), np.inf, cone.alpha * h)
    if slack == 0:
        left = low <= g if cone.twin else low < g
        right = g < high if cone.twin else g <= high
    else:
        left, right = low <= g + slack, g - slack <= high
    return left & right & ((h >= -slack) | np.isfinite(cone.alpha))


def _check_cone(
    case: Case, i: int, kind: str, theta: np.ndarray, cost: np.ndarray, cone: ConePair
) -> None:
    what, where = "ConeOracle.argmax_in_cone", f"({kind} theta, {cone})"
    h, g = case.mu[i] @ theta + cone.h0, case.mu[i] @ cost + cone.g0
    values = h + cone.lam * g
    # Sums of integers are exact, and so are the sides of these cones through labels; others round.
    size = 1 + np.abs(h).max() * (1 + (cone.alpha if np.isfinite(cone.alpha) else 0))
    size += np.abs(g).max() + np.abs(values).max()
    rounding = TOLERANCE * size
    on_side = np.zeros(len(h), dtype=bool)
    for factor in (cone.beta, cone.alpha):
        if np.isfinite(factor):
            off = np.abs(g - factor * h)
            on_side |= (off > 0) & (off < rounding)
            if kind == "random":
                on_side |= off < rounding
    if np.isinf(cone.alpha) and kind == "random":
        on_side |= np.abs(h) < rounding
    inside = _inside(h, g, cone, 0.0)
    sure, possible = inside & ~on_side, inside | on_side
    best = values[sure].max(initial=-np.inf)
    answer = case.call(what, i, calls.argmax_in_cone, case.power("cones"), theta, cost, cone)
    if answer is None:
        if sure.any():
            row = int(np.where(sure, values, -np.inf).argmax())
            promise = f"finds a label if the cone has one {where}"
            case.fail(what, promise, i, "none", f"{case.labels[i][row]} at h={h[row]}, g={g[row]}")
        return
    mu, label, value = answer
    if label is not None:
        row = case.listed(what, i, label, where[1:-1])
        if not possible[row]:
            promise = f"returns a label in the cone {where}"
            case.fail(what, promise, i, f"{label} at h={h[row]}, g={g[row]}", "another, or kind 2")
        case.near(what, f"returns the value of its label {where}", i, value, values[row])
        slack = TOLERANCE * (1 + abs(best)) if sure.any() else 0.0
    else:
        _check_point(case, what, i, kind, mu)
        h_mu, g_mu = mu @ theta + cone.h0, mu @ cost + cone.g0
        if not _inside(np.array([h_mu]), np.array([g_mu]), cone, LOOSE * size)[0]:
            case.fail(what, f"returns a point in the closed cone {where}", i, (h_mu, g_mu), "one")
        case.near(what, f"returns the value of its mu {where}", i, value, h_mu + cone.lam * g_mu)
        slack = LOOSE * (1 + abs(best)) if sure.any() else 0.0
    if value < best - slack:
        promise = f"attains the best value in the cone {where}"
        case.fail(what, promise, i, value, f"at least {float(best)!r}")
