"""Rows of a stream that ``partial_fit`` keeps, within a fixed amount of memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from structsolve.plugins.extreme.checks import read_rows

#: Values of all kept rows, of 8 bytes each: half a gigabyte.  A row has its non-zeros and ROW more.
MOST_VALUES, ROW = 2**26, 4
# Training waits until this share of the kept rows is new.
NEW = 0.05


@dataclass(frozen=True)
class KeptRows:
    """A uniform sample of the rows of a stream: all of them until they exceed `MOST_VALUES`.

    Each row draws a random key, and the rows of the smallest keys are kept.

    Parameters
    ----------
    X : csr_matrix of float32 of shape (n, n_features)
    y : ndarray of int32 of shape (n,)
        Numbers of classes.
    weight : ndarray of float64 of shape (n,)
    key : ndarray of float64 of shape (n,)
    new : ndarray of bool of shape (n,)
        Rows that no training has used.
    seen : int
        Rows of the stream.

    Examples
    --------
    >>> rows = sp.csr_matrix(np.eye(3, dtype=np.float32))
    >>> kept = KeptRows.of(rows, np.arange(3, dtype=np.int32), None)
    >>> kept = kept.joined(KeptRows.of(rows, kept.y, None, kept.seen))
    >>> len(kept.y), kept.seen, kept.due
    (6, 6, True)
    """

    X: sp.csr_matrix
    y: np.ndarray
    weight: np.ndarray
    key: np.ndarray
    new: np.ndarray
    seen: int

    @classmethod
    def of(
        cls, X: sp.csr_matrix, y: np.ndarray, weight: np.ndarray | None, before: int = 0
    ) -> KeptRows:
        """Return the rows of one batch.

        Parameters
        ----------
        X, y : a batch
        weight : ndarray of float64, optional
            1 by default.
        before : int, default=0
            Rows of the stream before them.

        Returns
        -------
        KeptRows
        """
        n = len(y)
        key = np.random.default_rng(before).random(n)
        weight = np.ones(n) if weight is None else weight
        return cls(X, y, weight, key, np.ones(n, bool), n)._cut()

    def joined(self, other: KeptRows) -> KeptRows:
        """Return these rows and those of a later batch, cut to the limit.

        Parameters
        ----------
        other : KeptRows

        Returns
        -------
        KeptRows
        """
        X = read_rows(sp.vstack([self.X, other.X], format="csr"), self.X.shape[1])
        y, weight, key, new = (
            np.concatenate([getattr(self, name), getattr(other, name)])
            for name in ("y", "weight", "key", "new")
        )
        return KeptRows(X, y, weight, key, new, self.seen + other.seen)._cut()

    def _cut(self) -> KeptRows:
        size = np.diff(self.X.indptr) + ROW
        if size.sum() <= MOST_VALUES:
            return self
        order = np.argsort(self.key, kind="stable")
        rows = np.sort(order[: max(1, int((np.cumsum(size[order]) <= MOST_VALUES).sum()))])
        X = read_rows(self.X[rows], self.X.shape[1])
        y, weight, key, new = (part[rows] for part in (self.y, self.weight, self.key, self.new))
        return KeptRows(X, y, weight, key, new, self.seen)

    @property
    def due(self) -> bool:
        """Whether enough rows are new to train again."""
        return bool(self.new.any() and self.new.mean() >= NEW)

    def trained(self) -> KeptRows:
        """Return the same rows after a training.

        Returns
        -------
        KeptRows
        """
        return replace(self, new=np.zeros(len(self.y), bool))

    def renumbered(self, old: np.ndarray, classes: np.ndarray) -> KeptRows:
        """Return the same rows with the numbers of more classes.

        Parameters
        ----------
        old, classes : ndarray
            Ascending; `classes` holds all of `old`.

        Returns
        -------
        KeptRows
        """
        return replace(self, y=np.searchsorted(classes, old).astype(np.int32)[self.y])
