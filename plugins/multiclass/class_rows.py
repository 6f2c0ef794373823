"""Rows with one of K classes, enumerated: scores, sums and Newton systems of all their labels."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrf, dpotrs

from structsolve.solvers.problem import Problem
from structsolve.structure.calls import augment, encode

# Features are well-conditioned if the squares of their lengths, and of what is left of each beside
# those before it, are at least this share of the largest.
ALIKE = 1e-3
# Singular values below this share of the largest are rounding.
RANK = 1e-15
# Relative error of scores that are compared with losses.
ROUNDING = 1e-15
# Added to a diagonal of ones until the system can be solved.
RIDGES = (0.0, 1e-14, 1e-12, 1e-10)
# Trials of a step, each half as long as the one before; after those, rounding dominates.
MOST_HALVINGS = 40


def row_sums(table: np.ndarray) -> np.ndarray:
    """Return the sums of the rows, by a product, which is faster for few columns.

    Parameters
    ----------
    table : ndarray of shape (n, K)

    Returns
    -------
    ndarray of shape (n, 1)
    """
    return table @ _ones(table.shape[1])


@lru_cache(maxsize=16)
def _ones(rows: int) -> np.ndarray:
    return np.ones((rows, 1))


class ClassRows:
    """The enumerated classes of all rows of positive weight: their parts, losses and weights.

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
    basis : ndarray
        Columns are directions that span the weights without padding; all of them, until
        :meth:`turned`.
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
        if problem.surrogate_name == "crf":  # which does not depend on the loss
            self.losses = np.zeros((n, K))
        elif costs is not None:
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
        part = self.u[:, 0] > 0
        if not part.all():  # nothing pulls the others towards the path: they would stop every step
            self.truths, self.losses = self.truths[part], self.losses[part]
            self.u, self.X = self.u[part], self.X[part]
        self.ones = np.ones(len(self.u))
        #: Places of the truths in flat tables.
        self.own = K * np.arange(len(self.truths)) + self.truths
        self.basis: Any = np.eye(len(self.places))

    @cached_property
    def size(self) -> float:
        """The largest number of all rows."""
        return float(np.abs(self.X).max(initial=0) * np.abs(self.A).max(initial=0))

    def scores(self, v: np.ndarray) -> np.ndarray:
        """Return ``<psi_ik, v>`` for weights along the basis.

        Parameters
        ----------
        v : ndarray

        Returns
        -------
        ndarray of shape (n, K)
        """
        T, m = self.A.shape[1], self.shared
        out = self.X @ (v[m:].reshape(-1, T - m) @ self.A[:, m:].T)
        out += self.A[:, :m] @ v[:m]
        out -= out.take(self.own)[:, None]
        return out

    def gather(self, q: np.ndarray) -> np.ndarray:
        """Return ``sum_ik u_i q_ik psi_ik`` along the basis.

        Parameters
        ----------
        q : ndarray of shape (n, K)

        Returns
        -------
        ndarray
        """
        q = self.u * q
        q.reshape(-1)[self.own] -= row_sums(q)[:, 0]
        m, sums = self.shared, self.ones @ q
        return np.concatenate([sums @ self.A[:, :m], (self.X.T @ (q @ self.A[:, m:])).ravel()])

    def matrix(self, D: np.ndarray) -> np.ndarray:
        """Return ``sum_i u_i sum_k D_ik (psi_ik - m_i) (psi_ik - m_i)'`` along the basis.

        Parameters
        ----------
        D : ndarray of shape (n, K)

        Returns
        -------
        ndarray, a square matrix
        """
        A, X, u, m = self.A, self.X, self.u, self.shared
        T, d = A.shape[1], X.shape[1]
        # Centred at the class of the largest D: differences of large terms would lose digits.
        top = np.argmax(D, axis=1)
        W = D.copy()
        W[np.arange(len(D)), top] = 0
        near, rest, total = A[top], row_sums(W), row_sums(D)
        B = W @ A
        shift = (B - rest * near) / total  # m_i less the top's parts
        out = np.empty((m + d * (T - m), m + d * (T - m)))
        nodes = out[m:, m:].reshape(d, T - m, d, T - m)
        cross = out[m:, :m].reshape(d, T - m, m)
        C, uB = A[:, :m], u * B[:, :m]
        first = (C.T * (u[:, 0] @ W)) @ C
        turned = uB.T @ near[:, :m]
        weighted = u * total
        out[:m, :m] = first - turned - turned.T
        out[:m, :m] += near[:, :m].T @ (u * rest * near[:, :m])
        out[:m, :m] -= shift[:, :m].T @ (weighted * shift[:, :m])
        for t in range(T - m):
            # Covariances of a node part with all parts, row by row.
            away = W * (A[:, m + t] - near[:, m + t, None])
            C = u * (away @ A - row_sums(away) * (near + shift))
            cross[:, t] = X.T @ C[:, :m]
            for r in range(T - m):
                nodes[:, t, :, r] = (X.T * C[:, m + r]) @ X
        out[:m, m:] = out[m:, :m].T
        return out

    def padded(self, v: np.ndarray) -> np.ndarray:
        """Return weights in the solver's form.

        Parameters
        ----------
        v : ndarray
            Along the basis.

        Returns
        -------
        ndarray of shape (dim,)
        """
        w = np.zeros(self.dim)
        w[self.places] = self.basis @ v
        return w

    def turned(self) -> ClassRows:
        """Return the same rows in orthonormal directions that separate large and small features.

        Features of a large mean, or nearly equal features, have small differences, which a Newton
        system of their products loses.  In the directions of a singular value decomposition they
        are a separate column.  Directions without variation are left out.  Features of which none
        is large or nearly a mixture of others, a constant one included, stay as they are.

        Returns
        -------
        ClassRows
        """
        A, m, d = self.A, self.shared, self.X.shape[1]
        inner, outer = A[:, :m] - A[0, :m], A[:, m:] - A[0, m:]
        if outer.shape[1] == 1 and outer.any() and _is_well_conditioned(self.X):
            return self
        X, along = self.X, np.zeros(m)
        if m and outer.shape[1] == 1:
            # If shared parts can replace a constant feature, it becomes one of the columns.
            mixture = np.linalg.lstsq(inner, outer[:, 0], rcond=None)[0]
            size = float(np.linalg.norm(mixture))
            if size > 0 and np.allclose(inner @ mixture, outer[:, 0], rtol=0, atol=1e-12):
                along = mixture / size
                X = np.hstack([X, np.full((len(X), 1), 1 / size)])
        columns, parts = _directions(X), _directions(outer)
        rest = np.eye(m)
        if along.any():
            rest = np.linalg.svd(rest - np.outer(along, along))[2][:-1].T
        other = copy(self)
        other.X = X @ columns
        other.A = np.ascontiguousarray(np.hstack([A[:, :m] @ rest, A[:, m:] @ parts]))
        other.shared = rest.shape[1]
        node = np.kron(columns[:d], parts)
        both = np.outer(along, np.kron(columns[d:], parts)) if X is not self.X else 0
        other.basis = np.zeros((len(self.places), rest.shape[1] + node.shape[1]))
        other.basis[:m, : rest.shape[1]] = rest
        other.basis[:m, rest.shape[1] :] = both
        other.basis[m:, rest.shape[1] :] = node
        return other


def _is_well_conditioned(X: np.ndarray) -> bool:
    """Return whether products of the features, and of a constant one, lose few digits."""
    products = np.empty((X.shape[1] + 1,) * 2)
    products[:-1, :-1] = X.T @ X
    products[-1, :-1] = products[:-1, -1] = X.sum(axis=0)
    products[-1, -1] = len(X)
    sizes = np.diagonal(products)
    if not sizes.min() > ALIKE * sizes.max():
        return False
    factor, failed = dpotrf(products)
    return not failed and bool((np.diagonal(factor) ** 2 > ALIKE * sizes).all())


def _directions(table: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the space of the rows, as columns; one column at least."""
    _, sizes, rows = np.linalg.svd(table, full_matrices=False)
    rank = int((sizes > RANK * sizes[0]).sum())
    return np.ascontiguousarray(rows[: max(rank, 1)].T)


def factor_system(H: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that solves a Newton system, with a larger diagonal if needed.

    Parameters
    ----------
    H : ndarray, a square matrix

    Returns
    -------
    callable
        From a right side to the solution.

    Raises
    ------
    LinAlgError
        If rounding makes it unsolvable.
    """
    scale = 1 / np.sqrt(np.diagonal(H))
    H = H * scale * scale[:, None]
    for more in RIDGES if np.isfinite(H).all() else ():
        H.flat[:: len(H) + 1] = 1 + more
        # cho_factor takes longer to look at its arguments than dpotrf to factor few weights.
        factor, failed = dpotrf(H)
        if not failed:
            return lambda b: scale * dpotrs(factor, scale * b)[0]
    raise LinAlgError("the system has no Cholesky factor")
