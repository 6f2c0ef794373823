"""The small quadratic program of a cutting-plane model: solved by Clarabel, certified by us.

The model of ``min alpha/2 ||w||^2 + R(w)`` subject to ``A w <= c`` keeps, for every group of cuts
(one group in the one-slack form, one per example in the n-slack form), the maximum of its cuts:

    min_w  alpha/2 ||w||^2 + sum_g cap_g max(0, max_{j in g} b_j - <g_j, w>)    s.t.  A w <= c.

With ``M`` the rows ``-A`` and ``g_j``, ``q`` the numbers ``-c`` and ``b_j``, its dual is

    max_x  <q, x> - 1/(2 alpha) ||M' x||^2,   x >= 0,  sum_{j in g} x_j <= cap_g,

where coordinates of w outside the norm (the intercept) turn into equations ``(M' x)_free = 0``.
Any feasible x is a lower bound of the training problem itself, so what a solver returns is made
feasible first (:func:`certify`): its accuracy decides how good the bound is, not whether it is one.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np

logger = logging.getLogger("structsolve.solvers")

# What rounding may leave of (M' x)_free, which has terms of size 1 for an intercept; and the size
# of the optimal free weights, relative to those found, up to which it is charged to the bound.
FREE_ROUNDING, FREE_RADIUS = 1e-12, 100
# Below so many columns of w the sparse form is never slow, and it is the more accurate one.
FEW_COLUMNS = 100
# Up to so many entries a program is put together densely: scipy's blocks cost more than its zeros.
SMALL = 100_000
# Above so many sparse rows their Gram matrix is too large.
MANY_ROWS = 3000


@dataclass
class Model:
    """A cutting-plane model.

    Parameters
    ----------
    cuts : ndarray or scipy.sparse CSR of shape (m, dim)
        Rows ``g_j``.
    b : ndarray of shape (m,)
    group : ndarray of int of shape (m,)
        Which group each cut belongs to.
    caps : ndarray of shape (n_groups,)
        Weight of each group in the objective.
    alpha : float
    A : scipy.sparse CSR of shape (r, dim)
        Rows of the constraints on w; may have none.
    c : ndarray of shape (r,)
    equal : ndarray of bool of shape (r,)
        Rows that stand for ``A w = c``.
    free : ndarray of int
        Coordinates of w outside the norm.
    box : float
        Bound of the free weights while the model is too poor to bound them.
    scale : float
        Size of the objective; tolerances are relative to it.
    gram : ndarray of shape (r + m, r + m), optional
        ``M M'`` without the free columns, where the caller keeps it.
    """

    cuts: Any
    b: np.ndarray
    group: np.ndarray
    caps: np.ndarray
    alpha: float
    A: Any
    c: np.ndarray
    equal: np.ndarray
    free: np.ndarray
    box: float = 10.0
    scale: float = 1.0
    gram: np.ndarray | None = None

    @property
    def rows(self) -> int:
        """Number of constraints on w; their multipliers come first in x."""
        return len(self.c)

    @property
    def q(self) -> np.ndarray:
        """Linear term of the dual."""
        return np.concatenate([-self.c, self.b])

    def adjoint(self, x: np.ndarray) -> np.ndarray:
        """Return ``M' x``, of the size of w."""
        r = self.rows
        out = np.asarray(x[r:] @ self.cuts).ravel()
        return out - self.A.T @ x[:r] if r else out

    def columns(self, which: Any) -> np.ndarray:
        """Return some columns of M, dense."""
        cuts = self.cuts[:, which]
        cuts = cuts if isinstance(cuts, np.ndarray) else cuts.toarray()
        return np.vstack([-self.A[:, which].toarray(), cuts]) if self.rows else cuts

    def units(self) -> np.ndarray:
        """Return the size that each multiplier may be expected to have."""
        import scipy.sparse as sp

        size = np.sqrt(2 * self.alpha * self.scale)
        if self.gram is not None:
            norm = np.sqrt(np.diagonal(self.gram)[self.rows :])
        elif sp.issparse(self.cuts):
            norm = np.sqrt(np.asarray(self.cuts.multiply(self.cuts).sum(axis=1)).ravel())
        else:
            norm = np.sqrt(np.einsum("ij,ij->i", self.cuts, self.cuts))
        cap = self.caps[self.group]
        unit = np.where(size < norm * cap, size / np.maximum(norm, 1e-300), cap)
        return np.concatenate([np.full(self.rows, size), unit])

    def weights(self, x: np.ndarray, w_free: np.ndarray) -> np.ndarray:
        """Return the w that belongs to x."""
        w = self.adjoint(x) / self.alpha
        w[self.free] = w_free
        return w

    def slacks(self, w: np.ndarray) -> np.ndarray:
        """Return the model's value of every group at w."""
        xi = np.zeros(len(self.caps))
        np.maximum.at(xi, self.group, self.b - np.asarray(self.cuts @ w).ravel())
        return xi


@dataclass
class Solution:
    """Minimiser of a model, its multipliers, and the lower bound that they prove."""

    x: np.ndarray
    w: np.ndarray
    lower: float
    at_box: bool


class Contradiction(ValueError):
    """The constraints on w leave no w."""


def solve(model: Model) -> Solution:
    """Solve the model's quadratic program.

    Clarabel's answer is taken if it is solved, or if its own gap is small all the same; otherwise
    cvxpy is asked for its other solvers.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from structsolve.solvers.qp import Model, solve
    >>> none = np.zeros(0)
    >>> model = Model(np.array([[1.0]]), np.ones(1), np.zeros(1, int), np.ones(1), 0.5,
    ...               sp.csr_matrix((0, 1)), none, none.astype(bool), none.astype(int))
    >>> found = solve(model)        # min .25 w^2 + max(0, 1 - w)
    >>> round(float(found.w[0]), 6), round(found.lower, 6)
    (1.0, 0.25)
    """
    if not len(model.b) and not model.rows:
        return Solution(np.zeros(0), np.zeros(model.cuts.shape[1]), 0.0, False)
    tried = []
    for attempt in (_clarabel, _cvxpy):
        for x, w_free, status, settled in attempt(model):
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
    """Make multipliers feasible; return them, and the lower bound that they prove.

    Negative ones become zero, groups above their cap are scaled down, and the equations of the
    free coordinates are restored by a small change in proportion to x, which leaves the sums of
    the groups (with what is left of their caps) as they are.
    """
    r, caps = model.rows, model.caps
    x = np.where(np.concatenate([model.equal, np.zeros(len(model.b), bool)]), x, np.maximum(x, 0))
    total = np.bincount(model.group, x[r:], len(caps))
    x[r:] *= np.minimum(1, caps / np.maximum(total, 1e-300))[model.group]
    charge = 0.0
    if model.free.size:
        E = model.columns(model.free)
        rounding = FREE_ROUNDING * model.caps.sum() * max(1.0, np.abs(E).max(initial=0))
        # What an interior-point method leaves on idle rows is noise that nothing balances.
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
    # x = 0 proves 0, where no constraint on w says more.
    return x, max(lower, 0.0) if np.isfinite(lower) else 0.0


def _balance(model: Model, x: np.ndarray, E: np.ndarray) -> np.ndarray:
    """Change x in proportion to itself until ``E' x = 0``, as far as that goes.

    Each group, with what is left of its cap, keeps its sum.
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
    """Value of the model at w."""
    inside = w.copy()
    inside[model.free] = 0
    return 0.5 * model.alpha * float(inside @ inside) + float(model.caps @ model.slacks(w))


def _clarabel(model: Model) -> Any:
    """Yield answers of Clarabel, in the form that suits the sizes, then in the other one."""
    import scipy.sparse as sp

    m, width = model.rows + len(model.b), _used_columns(model).size
    primal = width <= max(m, FEW_COLUMNS) or (sp.issparse(model.cuts) and m > MANY_ROWS)
    forms = (_primal_form, _gram_form) if primal else (_gram_form, _primal_form)
    for form in forms:
        x, w_free, status, settled = form(model)
        if "Infeasible" in status and not _feasible(model):
            raise Contradiction("constraints contradict each other: no weights satisfy them all")
        yield x, w_free, status, settled


def _feasible(model: Model) -> bool:
    """Tell whether any w meets the constraints: a solver's word alone may be rounding."""
    from scipy.optimize import linprog

    if not model.rows:
        return True
    return linprog(
        np.zeros(model.A.shape[1]),
        A_ub=model.A[~model.equal],
        b_ub=model.c[~model.equal],
        A_eq=model.A[model.equal],
        b_eq=model.c[model.equal],
        bounds=(None, None),
    ).success


def _used_columns(model: Model) -> np.ndarray:
    """Columns of w that any row touches, the free ones left out."""
    import scipy.sparse as sp

    used = np.zeros(model.cuts.shape[1], dtype=bool)
    for part in (model.cuts, model.A):
        used[part.indices if sp.issparse(part) else np.flatnonzero(part.any(axis=0))] = True
    used[model.free] = False
    return np.flatnonzero(used)


def _by_columns(M: Any) -> Any:
    """Return a matrix as CSC; scipy takes twice as long for a small array."""
    import scipy.sparse as sp

    if not isinstance(M, np.ndarray):
        return sp.csc_matrix(M)
    turned = M.T
    inside = turned != 0
    ends = np.concatenate([[0], np.cumsum(inside.sum(axis=1))]).astype(np.int32)
    rows = np.nonzero(inside)[1].astype(np.int32)
    return sp.csc_matrix((turned[inside], rows, ends), shape=M.shape)


def _run(P: Any, q: np.ndarray, A: Any, b: np.ndarray, cones: list[Any]) -> Any:
    """Ask Clarabel; P is the upper triangle."""
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    if hasattr(settings, "max_threads"):
        settings.max_threads = 1  # the same sums, in the same order, everywhere
    data = _by_columns(P), q, _by_columns(A), b, cones
    # Supernodal: twice as fast on large dense programs; not in every build.
    methods = ["faer", "qdldl"] if len(b) > 300 else ["qdldl"]
    for method in methods:
        settings.direct_solve_method = method
        try:
            answer = clarabel.DefaultSolver(*data, settings).solve()
            break
        except Exception:
            if method == methods[-1]:
                raise
    status = str(answer.status)
    return answer, status, status in ("Solved", "AlmostSolved")


def _gram_form(model: Model) -> tuple[np.ndarray, np.ndarray, str, bool]:
    """The dual: one variable per row, the Gram matrix of the rows; for many columns."""
    import clarabel
    import scipy.sparse as sp

    r, m, f = model.rows, len(model.b), model.free.size
    Q = model.gram
    if Q is None:
        rows = sp.vstack([-model.A, sp.csr_matrix(model.cuts)], format="csr")
        keep = np.ones(rows.shape[1])
        keep[model.free] = 0
        Q = (rows @ sp.diags_array(keep) @ rows.T).toarray()
    unit = model.units()
    size = r + m + 2 * f
    P = np.zeros((size, size)) if f else np.empty((size, size))
    P[: r + m, : r + m] = Q * np.outer(unit, unit / (model.alpha * model.scale))
    price = np.full(2 * f, model.box)
    q = np.concatenate([-model.q * unit, price]) / model.scale
    used, local = np.unique(model.group, return_inverse=True)
    k = len(used)
    signed = np.flatnonzero(np.concatenate([~model.equal, np.ones(m + 2 * f, bool)]))
    A = np.zeros((f + k + len(signed), size))  # no larger than P, and written at once
    if f:
        E = model.columns(model.free)
        A[:f] = np.hstack([(E * unit[:, None]).T, -np.eye(f), np.eye(f)])
    A[f + local, r + np.arange(m)] = unit[r:] / model.caps[model.group]
    A[f + k + np.arange(len(signed)), signed] = -1
    b = np.concatenate([np.zeros(f), np.ones(k), np.zeros(len(signed))])
    cones = [clarabel.ZeroConeT(f)] if f else []
    answer, status, settled = _run(
        np.triu(P), q, A, b, [*cones, clarabel.NonnegativeConeT(len(b) - f)]
    )
    w_free = np.array(answer.z[:f]) * model.scale
    return np.array(answer.x[: r + m]) * unit, w_free, f"clarabel: {status}", settled


def _primal_form(model: Model) -> tuple[np.ndarray, np.ndarray, str, bool]:
    """The program in w and one slack per group: sparse where the rows are; for few columns."""
    import clarabel
    import scipy.sparse as sp

    r, m, f, unit = model.rows, len(model.b), model.free.size, model.units()
    columns = np.concatenate([_used_columns(model), model.free])
    used, local = np.unique(model.group, return_inverse=True)
    d, k = len(columns), len(used)
    omega = np.sqrt(model.scale / model.alpha)  # w in units in which the norm is about 1
    n_norm = d - f
    P = sp.csc_matrix(
        (np.ones(n_norm), np.arange(n_norm), np.minimum(np.arange(d + k + 1), n_norm)),
        shape=(d + k, d + k),
    )
    q = np.concatenate([np.zeros(d), np.ones(k)])
    row = unit[r:] / model.scale
    share = unit[r:] / model.caps[model.group]
    A, c = model.A[:, columns], model.c / omega
    order = np.concatenate([np.flatnonzero(model.equal), np.flatnonzero(~model.equal)])
    height = r + m + k + 2 * f
    if isinstance(model.cuts, np.ndarray) and height * (d + k) <= SMALL:
        rows = np.zeros((height, d + k))
        if r:
            rows[:r, :d] = A[order].toarray()
        rows[r : r + m, :d] = (-omega * row)[:, None] * model.cuts[:, columns]
        rows[r + np.arange(m), d + local] = -share
        rows[r + m + np.arange(k), d + np.arange(k)] = -1
        rows[r + m + k + np.arange(f), d - f + np.arange(f)] = 1
        rows[r + m + k + f + np.arange(f), d - f + np.arange(f)] = -1
    else:
        cuts = sp.diags_array(-omega * row) @ sp.csr_matrix(model.cuts[:, columns])
        slack = sp.csr_matrix((-share, (np.arange(m), local)), shape=(m, k))
        on_w = sp.hstack([A[order], sp.csr_matrix((r, k))])
        box = sp.eye_array(d + k, format="csr")[d - f : d]
        rows = sp.vstack(
            [
                on_w,
                sp.hstack([cuts, slack]),
                -sp.eye_array(d + k, format="csr")[d:],
                box,
                -box,
            ]
        )
    limit = np.full(2 * f, model.box / omega)
    b = np.concatenate([c[order], -model.b * row, np.zeros(k), limit])
    n_equal = int(model.equal.sum())
    cones = [clarabel.ZeroConeT(n_equal)] if n_equal else []
    answer, status, settled = _run(
        P, q, rows, b, [*cones, clarabel.NonnegativeConeT(len(b) - n_equal)]
    )
    z = np.array(answer.z)
    x = np.empty(r + m)
    x[order] = z[:r] * model.scale / omega
    x[r:] = z[r : r + m] * unit[r:]
    w_free = np.array(answer.x[d - f : d]) * omega
    return x, w_free, f"clarabel: {status}", settled


def _cvxpy(model: Model) -> Any:
    """Yield answers of the other solvers that cvxpy finds."""
    import cvxpy as cp
    import scipy.sparse as sp

    columns = np.concatenate([_used_columns(model), model.free])
    f = model.free.size
    w, xi = cp.Variable(len(columns)), cp.Variable(len(model.caps), nonneg=True)
    inside = w[: len(columns) - f]
    cuts = model.b - sp.csr_matrix(model.cuts[:, columns]) @ w <= xi[model.group]
    conditions = [cuts]
    A = model.A[:, columns]
    if (~model.equal).any():  # cvxpy before 1.8 has no constraints without rows
        conditions += [A[~model.equal] @ w <= model.c[~model.equal]]
    if model.equal.any():
        conditions += [A[model.equal] @ w == model.c[model.equal]]
    if f:
        conditions += [cp.abs(w[len(columns) - f :]) <= model.box]
    value = model.alpha / 2 * cp.sum_squares(inside) + model.caps @ xi
    task = cp.Problem(cp.Minimize(value / model.scale), conditions)
    for name in ("OSQP", "SCS", "PROXQP", "PIQP", "ECOS"):
        if name not in cp.installed_solvers():
            continue
        options = {
            "OSQP": {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iter": 100_000},
            "SCS": {"eps": 1e-9, "max_iters": 100_000},
        }.get(name, {})
        try:
            task.solve(solver=name, **options)
        except (cp.error.SolverError, ValueError):
            logger.warning("%s failed on a cutting-plane model", name)
            continue
        if w.value is None:
            continue
        x = np.zeros(model.rows + len(model.b))
        x[model.rows :] = np.ravel(cuts.dual_value)
        if model.rows:
            x[: model.rows][~model.equal] = np.ravel(conditions[1].dual_value)
            x[: model.rows][model.equal] = np.ravel(conditions[2].dual_value)
        settled = task.status == cp.OPTIMAL
        yield x * model.scale, w.value[len(columns) - f :], f"{name}: {task.status}", settled
