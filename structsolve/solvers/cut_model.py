"""The cutting-plane model: the cuts of each group, the constraints on w, and its dual's data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass
class Model:
    """A cutting-plane model; :mod:`structsolve.solvers.qp` has its formulas.

    Parameters
    ----------
    cuts : ndarray or scipy.sparse CSR of shape (m, dim)
        Rows ``g_j``.
    b : ndarray of shape (m,)
    group : ndarray of int of shape (m,)
        Group of each cut.
    caps : ndarray of shape (n_groups,)
        Weight of each group in the objective.
    alpha : float
    A : scipy.sparse CSR of shape (r, dim)
        Rows of the constraints on w; may have none.
    c : ndarray of shape (r,)
    equal : ndarray of bool of shape (r,)
        Equations ``A w = c``.
    free : ndarray of int
        Coordinates of w outside the norm.
    box : float
        Bound of the free weights while the model is too poor to bound them.
    scale : float
        Size of the objective; tolerances are relative to it.
    gram : ndarray of shape (r + m, r + m), optional
        ``M M'`` without the free columns, if the caller keeps it.
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
        """Return ``M' x``.

        Parameters
        ----------
        x : ndarray of shape (r + m,)

        Returns
        -------
        ndarray of shape (dim,)
        """
        r = self.rows
        out = np.asarray(x[r:] @ self.cuts).ravel()
        return out - self.A.T @ x[:r] if r else out

    def columns(self, which: Any) -> np.ndarray:
        """Return some columns of M, dense.

        Parameters
        ----------
        which : ndarray of int, or slice

        Returns
        -------
        ndarray of shape (r + m, number of columns)
        """
        cuts = self.cuts[:, which]
        cuts = cuts if isinstance(cuts, np.ndarray) else cuts.toarray()
        return np.vstack([-self.A[:, which].toarray(), cuts]) if self.rows else cuts

    def units(self) -> np.ndarray:
        """Return the expected size of each multiplier.

        Returns
        -------
        ndarray of shape (r + m,)
        """
        import scipy.sparse as sp  # heavy

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
        """Return the w that belongs to x.

        Parameters
        ----------
        x : ndarray of shape (r + m,)
        w_free : ndarray of shape (n_free,)

        Returns
        -------
        ndarray of shape (dim,)
        """
        w = self.adjoint(x) / self.alpha
        w[self.free] = w_free
        return w

    def slacks(self, w: np.ndarray) -> np.ndarray:
        """Return the model's value of every group at w.

        Parameters
        ----------
        w : ndarray of shape (dim,)

        Returns
        -------
        ndarray of shape (n_groups,)
        """
        values = np.zeros(len(self.caps))
        np.maximum.at(values, self.group, self.b - np.asarray(self.cuts @ w).ravel())
        return values
