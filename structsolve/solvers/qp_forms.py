"""Dual and primal forms of a cutting-plane model's quadratic program, for solvers.

Clarabel gets either form through its interface; other solvers get the primal form through cvxpy.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np

from .cut_model import Model

logger = logging.getLogger("structsolve.solvers")

# Below this many columns of w the sparse form is never slow, and it is more accurate.
FEW_COLUMNS = 100
# Up to this many entries a program is built densely: scipy's blocks cost more than the zeros.
SMALL = 100_000
# Above this many sparse rows their Gram matrix is too large.
MANY_ROWS = 3000

#: Multipliers, free weights, status, and whether the solver reports success.
Answer = tuple[np.ndarray, np.ndarray, str, bool]


def clarabel_answers(model: Model) -> Iterator[Answer]:
    """Yield solutions of Clarabel, in the form that suits the sizes, then in the other form.

    Parameters
    ----------
    model : Model

    Yields
    ------
    Answer
    """
    import scipy.sparse as sp  # heavy

    m, width = model.rows + len(model.b), _used_columns(model).size
    primal = width <= max(m, FEW_COLUMNS) or (sp.issparse(model.cuts) and m > MANY_ROWS)
    forms = (primal_form, gram_form) if primal else (gram_form, primal_form)
    for form in forms:
        yield form(model)


def feasible(model: Model) -> bool:
    """Return whether any w satisfies the constraints; solver statuses may be due to rounding.

    Parameters
    ----------
    model : Model

    Returns
    -------
    bool
    """
    from scipy.optimize import linprog  # heavy

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
    """Return the columns of w with entries in any row, without the free columns."""
    import scipy.sparse as sp  # heavy

    used = np.zeros(model.cuts.shape[1], dtype=bool)
    for part in (model.cuts, model.A):
        used[part.indices if sp.issparse(part) else np.flatnonzero(part.any(axis=0))] = True
    used[model.free] = False
    return np.flatnonzero(used)


def _by_columns(M: Any) -> Any:
    """Return a matrix as CSC, for small arrays twice as fast as scipy."""
    import scipy.sparse as sp  # heavy

    if not isinstance(M, np.ndarray):
        return M if M.format == "csc" else sp.csc_matrix(M)
    turned = M.T
    inside = turned != 0
    ends = np.concatenate([[0], np.cumsum(inside.sum(axis=1))]).astype(np.int32)
    rows = np.nonzero(inside)[1].astype(np.int32)
    return sp.csc_matrix((turned[inside], rows, ends), shape=M.shape)


def _run(P: Any, q: np.ndarray, A: Any, b: np.ndarray, cones: list[Any]) -> Any:
    """Run Clarabel on the upper triangle P; return solution, status, and whether it is solved."""
    import clarabel  # heavy

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    if hasattr(settings, "max_threads"):
        settings.max_threads = 1  # the same order of sums everywhere
    data = _by_columns(P), q, _by_columns(A), b, cones
    # faer is supernodal and twice as fast on large dense programs, but not in every build.
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


def gram_form(model: Model) -> Answer:
    """Solve the dual, with one variable per row and the rows' Gram matrix; for many columns.

    Parameters
    ----------
    model : Model

    Returns
    -------
    Answer
    """
    import clarabel  # heavy
    import scipy.sparse as sp  # heavy

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
    A = np.zeros((f + k + len(signed), size))  # no larger than P, and filled directly
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


def primal_form(model: Model) -> Answer:
    """Solve the program in w and one slack per group, sparse if rows are; for few columns.

    Parameters
    ----------
    model : Model

    Returns
    -------
    Answer
    """
    import clarabel  # heavy
    import scipy.sparse as sp  # heavy

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
    c = model.c / omega
    order = np.concatenate([np.flatnonzero(model.equal), np.flatnonzero(~model.equal)])
    height = r + m + k + 2 * f
    if max(height * (d + k), m * model.cuts.shape[1]) <= SMALL:
        cuts = model.cuts if isinstance(model.cuts, np.ndarray) else model.cuts.toarray()
        rows = np.zeros((height, d + k))
        if r:
            rows[:r, :d] = model.A[:, columns][order].toarray()
        rows[r : r + m, :d] = (-omega * row)[:, None] * cuts[:, columns]
        rows[r + np.arange(m), d + local] = -share
        rows[r + m + np.arange(k), d + np.arange(k)] = -1
        rows[r + m + k + np.arange(f), d - f + np.arange(f)] = 1
        rows[r + m + k + f + np.arange(f), d - f + np.arange(f)] = -1
    else:
        cuts = sp.diags_array(-omega * row) @ sp.csr_matrix(model.cuts[:, columns])
        slack = sp.csr_matrix((-share, (np.arange(m), local)), shape=(m, k))
        on_w = sp.hstack([model.A[:, columns][order], sp.csr_matrix((r, k))])
        box = sp.eye_array(d + k, format="csr")[d - f : d]
        rows = sp.vstack(
            [on_w, sp.hstack([cuts, slack]), -sp.eye_array(d + k, format="csr")[d:], box, -box]
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


def cvxpy_answers(model: Model) -> Iterator[Answer]:
    """Yield solutions of the other solvers installed for cvxpy.

    Parameters
    ----------
    model : Model

    Yields
    ------
    Answer
    """
    import cvxpy as cp  # heavy
    import scipy.sparse as sp  # heavy

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
