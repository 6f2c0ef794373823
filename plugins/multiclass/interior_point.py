"""Interior-point steps: Newton systems in w, for rows of few features and one of K classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError

from structsolve.plugins.multiclass.class_rows import (
    MOST_HALVINGS,
    ROUNDING,
    factor_system,
    row_sums,
)
from structsolve.plugins.multiclass.newton import NewtonRun
from structsolve.solvers.base import Solver
from structsolve.solvers.problem import Problem
from structsolve.solvers.run import Run, Start

# Share of the distance to the border of the orthant that a step may take.
TO_BORDER = 0.995
# A step is taken if the gap of the iterates falls by this share of the predicted decrease, ...
SUFFICIENT = 1e-2
# ... and no product q s is less than this share of their mean: steps from there stay long.
NEAR_PATH = 1e-4
# Largest ratio of the rows' weights with equal products on the path; largest ratio of products.
APART, MOST_APART = 100, 1e8
# Target of the products of a step towards the path, as a share of their mean.
TO_PATH = 0.3
# Newton systems are built from n rows of dim^2 numbers, and iterates have n rows of K.  Up to these
# sizes, "bcfw" uses interior-point steps for thresholds; up to CLOSED times as many products, they
# close the gaps that other passes leave open.
FEW_PRODUCTS, FEW_SLACKS, CLOSED = 300_000_000, 5_000_000, 10


class InteriorPoint(Solver):
    """Primal-dual interior-point steps on the margin's quadratic program (Mehrotra 1992).

    Each pass solves one Newton system, with one unknown per weight, twice. About twenty passes
    reach any gap, however small alpha is. It suits rows with one of K classes, which are
    enumerated, and few weights: ``"ordinal"`` with thresholds, for which ``BCFW(steps="auto")``
    uses it, and ``"multiclass"`` with few features and classes.

    Notes
    -----
    The program is ``min alpha/2 |w|^2 + sum_i u_i xi_i`` subject to
    ``s_ik = xi_i - L_ik - <psi_ik, w> >= 0`` for every class k of row i, psi being the difference
    of its features from the truth's.  Its dual has distributions q_i over the classes,
    ``w = -(1/alpha) sum_ik u_i q_ik psi_ik``.  With ``D = q / s`` the system's matrix is

        ``alpha I + sum_i u_i sum_k D_ik (psi_ik - m_i) (psi_ik - m_i)'``,  m_i the mean under D_i.

    Every q is a point of the dual, so every pass has a certificate: the primal is that of w, or of
    the weights of q where w is no better than before.  A step is taken where it lowers the gap of
    the iterates and stays near the central path; if Mehrotra's does not, one towards the path,
    halved until it does.

    ``"crf"`` has no border, and takes Newton's steps with the same system: D are the probabilities
    of the classes, which are also the point of the dual.

    Raises
    ------
    ValueError
        At fit, for other surrogates than the margin and ``"crf"``, other structures, or a kernel.

    Examples
    --------
    >>> from structsolve import StructuredSVM
    >>> from structsolve.plugins.multiclass import InteriorPoint
    >>> model = StructuredSVM("multiclass", solver=InteriorPoint(), alpha=1e-6, tol=1e-8)
    >>> model = model.fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 1, 0])
    >>> model.stop_reason_, len(model.history_) < 30
    ('converged', True)
    """

    name = "interior-point"
    needs_dual = True
    needs_weights = True
    uses_gram = False

    @classmethod
    def suits(cls, problem: Problem) -> bool:
        """Return True for thresholds with few enough rows and weights; see :meth:`Solver.suits`."""
        return getattr(problem.space, "steps", False) and _is_small(problem)

    @classmethod
    def closes(cls, problem: Problem) -> bool:
        """Return True for few enough rows, classes and weights; see :meth:`Solver.closes`."""
        return _is_small(problem, CLOSED)

    def start(self, start: Start) -> Run:
        """Begin an optimisation; see :meth:`Solver.start`."""
        self.check(start.problem)
        if start.problem.surrogate_name == "crf":
            return NewtonRun(self, start)
        return InteriorPointRun(self, start)

    def check(self, problem: Problem) -> None:
        """Raise ValueError for a problem that this solver cannot take; see :meth:`Solver.check`."""
        super().check(problem)
        if not _writes_out(problem):
            raise ValueError(
                f"solver {self.name!r} needs rows with one of K classes ('multiclass', 'ordinal'), "
                "the surrogate 'crf', or 'margin' and a loss that decomposes, and no node_scale; "
                f"found {problem.space.structure.name!r}, {problem.surrogate_name!r} and the loss "
                f"{type(problem.loss).__name__}; use solver='bcfw'"
            )


def _is_small(problem: Problem, times: int = 1) -> bool:
    if not _writes_out(problem) or problem.penalty is not None:
        return False
    slacks = problem.n * len(problem.space.classes_)
    return problem.n * problem.dim**2 <= times * FEW_PRODUCTS and slacks <= FEW_SLACKS


def _writes_out(problem: Problem) -> bool:
    """Return whether all labels of a problem are the classes, and its surrogate is one of two."""
    margin = problem.surrogate_name == "margin" and problem.loss.decomposes
    return (
        hasattr(problem.space, "steps")
        and (margin or problem.surrogate_name == "crf")
        and problem.surrogate.exact
        and problem.potentials.has_weights
        and problem.potentials.plain_nodes
    )


class InteriorPointRun(NewtonRun):
    """One optimisation of ``"margin"`` by :class:`InteriorPoint`.

    Parameters
    ----------
    solver : InteriorPoint
    start : Start
    """

    other = "cutting-plane"
    iterates = ("v", "xi", "q", "s")
    v: np.ndarray

    def _begin(self) -> None:
        """Start from the centre, with w = 0."""
        losses = self.classes.losses
        K = losses.shape[1]
        self.q = np.full_like(losses, 1 / K)
        # Products q s on the central path, as shares of their mean.  If weights differ by orders of
        # magnitude, u q s is the same for all rows; otherwise the path would be longer.
        u = self.classes.u
        self.path = np.ones_like(u)
        if u.max() > APART * u.min():
            self.path = np.minimum(1 / (len(losses) * u), MOST_APART)
            self.path /= float((u * self.path).sum())
        # Slacks of the size of the losses are near the central path for these q.
        room = max(float(losses.max(initial=0)), 1e-3)
        self.xi = losses.max(axis=1) + room * self.path[:, 0]
        self.least = ROUNDING * float(losses.max(initial=0))
        self.s = self.xi[:, None] - losses
        self.pull: np.ndarray | None = None  # of q, where it is known
        super()._begin()

    def _reach(self, s: np.ndarray, ds: np.ndarray, dq: np.ndarray) -> float:
        """Return the largest step, at most 1, that keeps slacks and q at least 0."""
        worst = min(float((ds / s).min()), float((dq / self.q).min()))
        return 1.0 if worst >= -1 else -1 / worst

    def step(self) -> dict[str, Any]:
        """Take a predicted and corrected Newton step, and certify where it leads.

        If that step does not lower the gap of the iterates, or leaves the neighbourhood of the
        central path, a step towards the path replaces it, halved until it does both: the gap is
        certain to fall along that direction.
        """
        classes, alpha, q, s = self.classes, self.given.alpha, self.q, self._slacks()
        u, K = classes.u, q.shape[1]
        mu = float(np.vdot(u * q, s)) / K
        path = self.path
        near = min(NEAR_PATH, float((q * s / path).min()) / mu)
        D = q / s
        total = row_sums(D)
        H = classes.matrix(D)
        H.flat[:: len(H) + 1] += alpha
        residual = alpha * self.v + (classes.gather(q) if self.pull is None else self.pull)
        gap = K * mu + float(residual @ residual) / (2 * alpha)
        try:
            factor = factor_system(H)
        except (LinAlgError, ValueError):
            return self._record("rounding has spoilt the Newton system")

        def direction(c: np.ndarray) -> tuple[np.ndarray, ...]:
            # s dq + q ds = c s, the rows of dq sum to 0, and the residual goes to 0.
            pushed = row_sums(c)
            dv = factor(-residual - classes.gather(c - D * (pushed / total)))
            t = classes.scores(dv)
            dxi = (pushed + row_sums(D * t)) / total
            ds = dxi - t
            return dv, dxi[:, 0], ds, c - D * ds

        def moved(way: tuple[np.ndarray, ...], target: float, trials: int) -> bool:
            # Go as far as the gap falls enough, near the central path; return whether such a step
            # was found.
            dv, dxi, ds, dq = way
            turn = alpha * dv + classes.gather(dq)
            promised = max(K * (mu - target), 0.0) + max(-float(residual @ turn) / alpha, 0.0)
            far = min(1.0, TO_BORDER * self._reach(s, ds, dq))
            for _ in range(trials):
                new = (q + far * dq) * (s + far * ds)
                mean, left = float(u[:, 0] @ row_sums(new)[:, 0]) / K, residual + far * turn
                there = K * mean + float(left @ left) / (2 * alpha)
                if (new / path).min() >= near * mean and there <= gap - SUFFICIENT * far * promised:
                    self.v, self.xi = self.v + far * dv, self.xi + far * dxi
                    self.q, self.s = q + far * dq, s + far * ds
                    self.q /= row_sums(self.q)
                    return True
                far /= 2
            return False

        _, _, ds, dq = direction(-q)
        far = self._reach(s, ds, dq)
        left = float(np.vdot(u * (q + far * dq), s + far * ds)) / K
        target = mu * min(left / mu, 1.0) ** 3
        if moved(direction((target * path - ds * dq) / s - q), target, 1):
            return self._record(None)
        if moved(direction(TO_PATH * mu * path / s - q), TO_PATH * mu, MOST_HALVINGS):
            return self._record(None)
        return self._record("steps have become as short as rounding errors")

    def _slacks(self) -> np.ndarray:
        """Return the slacks of v and xi; where rounding has spoilt them, what the steps made."""
        s = self.xi[:, None] - self.classes.losses - self.classes.scores(self.v)
        return np.where(s > self.s / 2, s, self.s)

    def certify(self) -> dict[str, Any]:
        """Return primal, dual and gap of the current w and q, or of better earlier ones."""
        classes, alpha = self.classes, self.given.alpha
        self.pull = classes.gather(self.q)
        of_q = self.pull / -alpha
        # The mixture of q and the truth with the largest dual.
        loss = float(np.vdot(classes.u * self.q, classes.losses))
        curvature = alpha * float(of_q @ of_q)
        share = max(loss, 0.0) / curvature if loss < curvature else 1.0
        of_q, value = share * of_q, share * (loss - 0.5 * share * curvature)
        return self._bounds(value, [self.v, of_q])

    def memory(self) -> dict[str, int]:
        """Return the bytes held by the classes of all rows, dual variables and weights."""
        classes = self.classes
        held = classes.losses.nbytes + classes.X.nbytes
        return {"examples": held, "duals": self.q.nbytes, "weights": 2 * self.best_w.nbytes}

    def restore(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Continue from a checkpoint."""
        super().restore(meta, arrays)
        self.pull = None
        if not (self.s.min() > 0 and self.q.min() > 0):
            raise ValueError("the checkpoint's slacks or dual variables are not above 0")
