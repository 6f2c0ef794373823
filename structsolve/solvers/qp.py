"""Solve a cutting-plane model's small quadratic program with Clarabel; certify the solution.

The model of ``min alpha/2 ||w||^2 + R(w)`` subject to ``A w <= c`` keeps, for every group of cuts
(one group in the one-slack form, one per example in the n-slack form), the maximum of its cuts:

    min_w  alpha/2 ||w||^2 + sum_g cap_g max(0, max_{j in g} b_j - <g_j, w>)    s.t.  A w <= c.

With ``M`` the rows ``-A`` and ``g_j``, ``q`` the numbers ``-c`` and ``b_j``, its dual is

    max_x  <q, x> - 1/(2 alpha) ||M' x||^2,   x >= 0,  sum_{j in g} x_j <= cap_g,

where coordinates of w outside the norm (the intercept) become equations ``(M' x)_free = 0``.
Any feasible x gives a lower bound of the training problem itself.  :func:`certify` makes a solver's
x feasible first, so the bound always holds; the solver's accuracy affects only its tightness.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .cut_model import Model
from .qp_forms import clarabel_answers, cvxpy_answers, feasible

# Largest rounding error of (M' x)_free, which has terms of size 1 for an intercept; largest ratio
# of the optimal free weights to the solver's, for which the bound is lowered.
FREE_ROUNDING, FREE_RADIUS = 1e-12, 100


@dataclass
class Solution:
    """Minimiser of a model, its multipliers, and their lower bound.

    Parameters
    ----------
    x : ndarray of shape (r + m,)
        Multipliers of the constraints and of the cuts.
    w : ndarray of shape (dim,)
    lower : float
        A lower bound of the training problem.
    at_box : bool
        Whether free weights have reached the model's box.
    """

    x: np.ndarray
    w: np.ndarray
    lower: float
    at_box: bool


class Contradiction(ValueError):
    """No w satisfies the constraints on w."""


def solve(model: Model) -> Solution:
    """Solve the model's quadratic program.

    Clarabel's solution is used if its status is solved or its gap is small; otherwise cvxpy's other
    solvers are tried.

    Parameters
    ----------
    model : Model

    Returns
    -------
    Solution

    Raises
    ------
    Contradiction
        If no w satisfies the constraints.
    ArithmeticError
        If no solver comes close to the minimum.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from structsolve.solvers.cut_model import Model
    >>> from structsolve.solvers.qp import solve
    >>> none = np.zeros(0)
    >>> model = Model(np.array([[1.0]]), np.ones(1), np.zeros(1, int), np.ones(1), 0.5,
    ...               sp.csr_matrix((0, 1)), none, none.astype(bool), none.astype(int))
    >>> solution = solve(model)     # min .25 w^2 + max(0, 1 - w)
    >>> round(float(solution.w[0]), 6), round(solution.lower, 6)
    (1.0, 0.25)
    """
    if not len(model.b) and not model.rows:
        return Solution(np.zeros(0), np.zeros(model.cuts.shape[1]), 0.0, False)
    tried = []
    for answers in (clarabel_answers, cvxpy_answers):
        for x, w_free, status, settled in answers(model):
            if "Infeasible" in status and not feasible(model):
                raise Contradiction(
                    "constraints contradict each other: no weights satisfy them all"
                )
            if not (np.isfinite(x).all() and np.isfinite(w_free).all()):
                tried.append(status)
                continue
            x, lower = certify(model, x, w_free)
            w = model.weights(x, w_free)
            if settled or _value(model, w) - lower <= 1e-4 * model.scale:
                at_box = bool(w_free.size and np.abs(w_free).max() >= 0.99 * model.box)
                return Solution(x, w, lower, at_box)
            tried.append(status)
    raise ArithmeticError(
        f"no solver could minimise a cutting-plane model of {len(model.b)} cuts ({tried}); scale "
        "the features to values around 1, or use a larger alpha or solver='bcfw'"
    )


def certify(model: Model, x: np.ndarray, w_free: np.ndarray) -> tuple[np.ndarray, float]:
    """Make multipliers feasible; return them and their lower bound.

    Negative multipliers become zero, and groups above their cap are scaled down.  A small change in
    proportion to x restores the equations of the free coordinates and keeps the sums of the groups
    (including the rest of their caps).

    Parameters
    ----------
    model : Model
    x : ndarray of shape (r + m,)
        Multipliers of a solver.
    w_free : ndarray of shape (n_free,)
        The solver's free weights.

    Returns
    -------
    x : ndarray of shape (r + m,)
    lower : float
        At least 0.
    """
    r, caps = model.rows, model.caps
    x = np.where(np.concatenate([model.equal, np.zeros(len(model.b), bool)]), x, np.maximum(x, 0))
    total = np.bincount(model.group, x[r:], len(caps))
    x[r:] *= np.minimum(1, caps / np.maximum(total, 1e-300))[model.group]
    charge = 0.0
    if model.free.size:
        E = model.columns(model.free)
        rounding = FREE_ROUNDING * model.caps.sum() * max(1.0, np.abs(E).max(initial=0))
        # An interior-point method leaves noise on inactive rows, which cannot be balanced.
        for level in (0.0, 1e-10, 1e-8, 1e-6, 1e-4):
            balanced = _balance(model, np.where(np.abs(x) < level * model.units(), 0, x), E)
            rest = np.abs(E.T @ balanced)
            if (rest <= rounding).all():
                break
        else:
            return x, 0.0
        x = balanced
        charge = FREE_RADIUS * max(1.0, np.abs(w_free).max()) * rest.sum()
    v = model.adjoint(x)
    v[model.free] = 0
    lower = float(model.q @ x - (v @ v) / (2 * model.alpha) - charge)
    # x = 0 gives the bound 0.
    return x, max(lower, 0.0) if np.isfinite(lower) else 0.0


def _balance(model: Model, x: np.ndarray, E: np.ndarray) -> np.ndarray:
    """Change x in proportion to itself until ``E' x = 0``, as far as possible.

    The sum of each group, including the rest of its cap, is kept.
    """
    r, caps, group = model.rows, model.caps, model.group
    for _ in range(4):
        a = x[r:]
        total = np.bincount(group, a, len(caps))
        left = np.maximum(caps - total, 0)
        mean = np.zeros((len(caps), E.shape[1]))
        np.add.at(mean, group, a[:, None] * E[r:])
        mean /= np.maximum(left + total, 1e-300)[:, None]
        centred = E.copy()
        centred[r:] -= mean[group]
        weight = np.abs(x)
        S = centred.T @ (weight[:, None] * centred) + mean.T @ (left[:, None] * mean)
        change = centred @ np.linalg.lstsq(S, E.T @ x, rcond=1e-13)[0]
        if np.abs(change[weight > 0]).max(initial=0) >= 1:
            break
        x = x - weight * change
    return x


def _value(model: Model, w: np.ndarray) -> float:
    """Return the value of the model at w."""
    inside = w.copy()
    inside[model.free] = 0
    return 0.5 * model.alpha * float(inside @ inside) + float(model.caps @ model.slacks(w))
