"""Interior-point steps: Newton systems in w, for rows of few features and one of K classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ..structure.calls import augment, encode
from .base import Run, Solver, Start, checked_weights
from .problem import Problem

# Share of the way to the border of the orthant that a step goes.
TO_BORDER = 0.995
# Steps that gain less than this share of the way mean that rounding has the upper hand.
STUCK = 1e-8
# Newton systems are built from n rows of dim^2 numbers, iterates are n rows of K: where these are
# at most so many numbers, "bcfw" leaves thresholds to interior-point steps.
FEW_PRODUCTS, FEW_SLACKS = 300_000_000, 5_000_000


class InteriorPoint(Solver):
    """Primal-dual interior-point steps on the margin's quadratic program (Mehrotra 1992).

    Each pass solves one Newton system of as many unknowns as there are weights, twice: some twenty
    passes lead to any gap, however small alpha is.  It is for rows with one of K classes, of which
    all are written out, and for few weights: ``"ordinal"`` with thresholds, which
    ``BCFW(steps="auto")`` hands over, and ``"multiclass"`` with few features and classes.

    Notes
    -----
    The program is ``min alpha/2 |w|^2 + sum_i u_i xi_i`` subject to
    ``s_ik = xi_i - L_ik - <psi_ik, w> >= 0`` for every class k of row i, psi being the difference
    of its features from the truth's.  Its dual has distributions q_i over the classes,
    ``w = -(1/alpha) sum_ik u_i q_ik psi_ik``.  With ``D = q / s`` the system's matrix is

        ``alpha I + sum_i u_i sum_k D_ik (psi_ik - m_i) (psi_ik - m_i)'``,  m_i the mean under D_i.

    Every q is a point of the dual, so every pass has a certificate: the primal is that of the
    better of w and the weights of q.

    Raises
    ------
    ValueError
        At fit, for another surrogate than the margin, other structures, or a kernel.

    Examples
    --------
    >>> from structsolve import StructuredSVM
    >>> from structsolve.solvers import InteriorPoint
    >>> model = StructuredSVM("multiclass", solver=InteriorPoint(), alpha=1e-6, tol=1e-8)
    >>> model = model.fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 1, 0])
    >>> model.stop_reason_, len(model.history_) < 30
    ('converged', True)
    """

    name = "interior-point"
    needs_dual = True
    needs_weights = True
    uses_gram = False

    def start(self, start: Start) -> InteriorPointRun:
        """Begin an optimisation; see :meth:`Solver.start`."""
        self.check(start.problem)
        return InteriorPointRun(self, start)

    def check(self, problem: Problem) -> None:
        """Raise ValueError for a problem that this solver cannot take; see :meth:`Solver.check`."""
        super().check(problem)
        if not _writes_out(problem):
            raise ValueError(
                f"solver {self.name!r} needs rows with one of K classes ('multiclass', 'ordinal'), "
                "the surrogate 'margin', a loss that decomposes, and no node_scale; found "
                f"{problem.space.structure.name!r}, {problem.surrogate_name!r} and the loss "
                f"{type(problem.loss).__name__}; use solver='bcfw'"
            )


def _writes_out(problem: Problem) -> bool:
    """Tell whether all labels of a problem are the classes, and its surrogate their margin."""
    return (
        hasattr(problem.space, "steps")
        and problem.surrogate_name == "margin"
        and problem.surrogate.exact
        and problem.loss.decomposes
        and problem.potentials.has_weights
        and problem.potentials.node_scale is None
    )


def suits(problem: Problem) -> bool:
    """Tell whether interior-point steps are the quickest way to train a problem.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    bool
        True for thresholds, where rows and weights are few enough.
    """
    steps = getattr(problem.space, "steps", False)
    if not (_writes_out(problem) and steps and problem.penalty is None):
        return False
    K = len(problem.space.classes_)
    return problem.n * problem.dim**2 <= FEW_PRODUCTS and problem.n * K <= FEW_SLACKS


def _row_sums(table: np.ndarray) -> np.ndarray:
    """Return the sums of the rows, of shape (n, 1): a product is quicker than sums of a few."""
    return table @ np.ones((table.shape[1], 1))


class _Classes:
    """The classes of every row, written out: their parts, their losses, and where w holds them.

    Parameters
    ----------
    problem : Problem

    Attributes
    ----------
    A : ndarray of shape (K, T)
        Parts of each class; shared ones before those of the node.
    losses : ndarray of shape (n, K)
        ``L_ik``.
    truths : ndarray of shape (n,)
    u : ndarray of shape (n, 1)
        Weights of the rows.
    """

    def __init__(self, problem: Problem):
        layout: Any = problem.space.layout
        n, labels = problem.n, np.asarray(problem.labels)
        size = layout.theta_size(1, 0)
        K = len(problem.space.classes_)
        # Parts without padding, and where they and their weights lie.
        position = np.arange(size, dtype=np.float64)
        places = layout.theta_views(position, 1, 0)
        shared = [places[block.name].ravel() for block in layout.shared]
        inner = np.concatenate([*shared, np.empty(0)]).astype(np.int64)
        node = places[layout.node.name].ravel().astype(np.int64)
        used = np.concatenate([inner, node])
        self.shared = len(inner)
        rows = layout.node_start + layout.node_size * np.arange(layout.node_rows)
        outer = rows[:, None] + (node - layout.shared_size)
        self.places = np.concatenate([inner, outer.ravel()])
        self.dim = problem.dim

        table = np.zeros((K, size))
        for k in range(K):
            index, value = encode(problem.parts, 0, np.array([k], np.int32))
            np.add.at(table[k], index, value)
        self.A = np.ascontiguousarray(table[:, used])
        self.truths = labels.astype(np.int64)
        costs = getattr(problem.loss, "class_costs", None)
        if costs is not None:
            self.losses = costs[self.truths]
        else:
            theta, constants = np.zeros((n, size)), np.empty((n, 1))
            for i in range(n):
                constants[i] = augment(problem.loss, i, labels[i : i + 1], 1.0, theta[i])
            self.losses = constants + theta[:, used] @ self.A.T
        self.u = problem.weights[:, None]
        X = problem.examples.nodes
        X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
        self.X = np.hstack([X, np.ones((n, 1))]) if layout.intercept else X

    def scores(self, v: np.ndarray) -> np.ndarray:
        """Return ``<psi_ik, v>`` for weights without padding, of shape (n, K)."""
        T, m = self.A.shape[1], self.shared
        out = self.X @ (v[m:].reshape(-1, T - m) @ self.A[:, m:].T)
        out += self.A[:, :m] @ v[:m]
        out -= out[np.arange(len(out)), self.truths][:, None]
        return out

    def gather(self, q: np.ndarray) -> np.ndarray:
        """Return ``sum_ik u_i q_ik psi_ik`` for any q of shape (n, K), without padding."""
        q = self.u * q
        q[np.arange(len(q)), self.truths] -= _row_sums(q)[:, 0]
        m = self.shared
        return np.concatenate(
            [q.sum(axis=0) @ self.A[:, :m], (self.X.T @ (q @ self.A[:, m:])).ravel()]
        )

    def matrix(self, D: np.ndarray) -> np.ndarray:
        """Return ``sum_i u_i sum_k D_ik (psi_ik - m_i) (psi_ik - m_i)'``, without padding."""
        A, X, u, m = self.A, self.X, self.u, self.shared
        T, d = A.shape[1], X.shape[1]
        # Around the class of the largest D: of two large equal terms nothing would be left.
        top = np.argmax(D, axis=1)
        W = D.copy()
        W[np.arange(len(D)), top] = 0
        near, rest, total = A[top], _row_sums(W), _row_sums(D)
        B = W @ A
        shift = (B - rest * near) / total  # m_i less the top's parts
        out = np.empty((m + d * (T - m), m + d * (T - m)))
        nodes = out[m:, m:].reshape(d, T - m, d, T - m)
        cross = out[m:, :m].reshape(d, T - m, m)
        C, uB = A[:, :m], u * B[:, :m]
        first = (C.T * (u * W).sum(axis=0)) @ C
        turned = uB.T @ near[:, :m]
        weighted = u * total
        out[:m, :m] = first - turned - turned.T
        out[:m, :m] += near[:, :m].T @ (u * rest * near[:, :m])
        out[:m, :m] -= shift[:, :m].T @ (weighted * shift[:, :m])
        for t in range(T - m):
            # Covariances of a node part with all parts, row by row.
            away = W * (A[:, m + t] - near[:, m + t, None])
            C = u * (away @ A - _row_sums(away) * (near + shift))
            cross[:, t] = X.T @ C[:, :m]
            for r in range(T - m):
                nodes[:, t, :, r] = (X.T * C[:, m + r]) @ X
        out[:m, m:] = out[m:, :m].T
        return out

    def padded(self, v: np.ndarray) -> np.ndarray:
        """Return weights as a solver holds them."""
        w = np.zeros(self.dim)
        w[self.places] = v
        return w


class InteriorPointRun(Run):
    """One optimisation by :class:`InteriorPoint`.

    Parameters
    ----------
    solver : InteriorPoint
    start : Start
    """

    def __init__(self, solver: InteriorPoint, start: Start):
        self.solver, self.given = solver, start
        self.classes = _Classes(start.problem)
        self.best_w = np.zeros(start.problem.dim) if start.w is None else np.array(start.w)
        self._begin()

    def _begin(self) -> None:
        """Set out from the middle, with w = 0."""
        losses = self.classes.losses
        K = losses.shape[1]
        self.v = np.zeros(len(self.classes.places))
        self.q = np.full_like(losses, 1 / K)
        # Slacks of the size of the losses: with the q they are near the central path.
        room = max(float(losses.max(initial=0)), 1e-3)
        self.xi = losses.max(axis=1) + room
        self.best_primal, self.best_dual = np.inf, -np.inf
        self.spent = self._keep_best([self.best_w])

    def _reach(self, s: np.ndarray, ds: np.ndarray, dq: np.ndarray) -> float:
        """Return how far a step may go, 1 at most, with slacks and q at least 0."""
        worst = min(float((ds / s).min()), float((dq / self.q).min()))
        return 1.0 if worst >= -1 else -1 / worst

    def step(self) -> dict[str, Any]:
        """Take a predicted and corrected Newton step, and certify where it leads."""
        classes, alpha, q = self.classes, self.given.alpha, self.q
        u, K = classes.u, q.shape[1]
        s = self.xi[:, None] - classes.losses - classes.scores(self.v)
        if not s.min() > 0:
            return self._record("slacks have become as small as rounding errors")
        mu = float((u * (q * s)).sum()) / K
        D = q / s
        total = _row_sums(D)
        H = classes.matrix(D)
        H.flat[:: len(H) + 1] += alpha
        residual = alpha * self.v + classes.gather(q)
        failed = None
        try:
            factor = cho_factor(H, overwrite_a=True)
        except (LinAlgError, ValueError):
            failed = "rounding has spoilt the Newton system"
        else:

            def direction(c: np.ndarray) -> tuple[np.ndarray, ...]:
                # s dq + q ds = c s, the rows of dq sum to 0, and the residual goes to 0.
                pushed = _row_sums(c)
                dv = cho_solve(
                    factor,
                    -residual - classes.gather(c - D * (pushed / total)),
                    check_finite=False,
                )
                t = classes.scores(dv)
                dxi = (pushed + _row_sums(D * t)) / total
                ds = dxi - t
                return dv, dxi[:, 0], ds, c - D * ds

            _, _, ds, dq = direction(-q)
            far = self._reach(s, ds, dq)
            left = float((u * ((q + far * dq) * (s + far * ds))).sum()) / K
            target = mu * min(left / mu, 1.0) ** 3 if mu > 0 else 0.0
            dv, dxi, ds, dq = direction((target - ds * dq) / s - q)
            far = min(1.0, TO_BORDER * self._reach(s, ds, dq))
            self.v, self.xi = self.v + far * dv, self.xi + far * dxi
            self.q = q + far * dq
            self.q /= _row_sums(self.q)
            if far < STUCK:
                failed = "steps have become as short as rounding errors"
        return self._record(failed)

    def _record(self, failed: str | None) -> dict[str, Any]:
        """Return the certified record of a pass, with why no further one helps."""
        record = self.certify()
        record["oracle_calls"] += self.spent
        self.spent = 0
        if failed is not None and record["gap"] > self.given.tol * abs(record["primal"]):
            record["failed"] = f"{failed}; scale the features, or use solver='cutting-plane'"
        return record

    def certify(self) -> dict[str, Any]:
        """Return primal, dual and gap of the present w and q, or of better ones before."""
        classes, alpha = self.classes, self.given.alpha
        of_q = classes.gather(self.q) / -alpha
        # Of all mixtures of q and the truth the one with the largest dual.
        loss = float((classes.u * (self.q * classes.losses)).sum())
        curvature = alpha * float(of_q @ of_q)
        share = max(loss, 0.0) / curvature if loss < curvature else 1.0
        of_q, value = share * of_q, share * (loss - 0.5 * share * curvature)
        self.best_dual = max(self.best_dual, value)
        spent = self._keep_best([classes.padded(self.v), classes.padded(of_q)])
        dual = self.best_dual
        # Rounding may lift it above the primal; contradicts() tells what is more than that.
        if dual <= self.best_primal * (1 + 1e-9):
            dual = min(dual, self.best_primal)
        return {
            "primal": self.best_primal,
            "dual": dual,
            "gap": self.best_primal - dual,
            "certified": True,
            "oracle_calls": spent,
        }

    def weights(self) -> np.ndarray:
        """Return a copy of the best weights."""
        return self.best_w.copy()

    def memory(self) -> dict[str, int]:
        """Return the bytes held by the classes of all rows, dual variables and weights."""
        classes = self.classes
        held = classes.losses.nbytes + classes.X.nbytes
        return {"examples": held, "duals": self.q.nbytes, "weights": 2 * self.best_w.nbytes}

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything a checkpoint needs; see :meth:`Run.state`."""
        meta = {
            "best_primal": self.best_primal,
            "best_dual": self.best_dual,
            "alpha": self.given.alpha,
            "spent": self.spent,
        }
        return meta, {"best_w": self.best_w, "v": self.v, "xi": self.xi, "q": self.q}

    def restore(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Continue from a checkpoint."""
        (best_w,) = checked_weights(self, arrays, ["best_w"])
        for name in ("v", "xi", "q"):
            here, given = getattr(self, name), arrays[name]
            if given.shape != here.shape or not np.isfinite(given).all():
                raise ValueError(
                    f"{name}: found the shape {given.shape}, expected finite numbers of the shape "
                    f"{here.shape}"
                )
        s = arrays["xi"][:, None] - self.classes.losses - self.classes.scores(arrays["v"])
        if not (s.min() > 0 and arrays["q"].min() > 0):
            raise ValueError("the checkpoint's slacks or dual variables are not above 0")
        self.v, self.xi, self.q = (arrays[name].copy() for name in ("v", "xi", "q"))
        self.best_w, self.given.alpha, self.spent = best_w, meta["alpha"], meta["spent"]
        self.best_primal, self.best_dual = meta["best_primal"], meta["best_dual"]

    def continue_at(self, alpha: float) -> None:
        """Go on with another alpha (a path over alpha): anew, with no worse weights than the best.

        Parameters
        ----------
        alpha : float
        """
        self.given.alpha = alpha
        self._begin()
