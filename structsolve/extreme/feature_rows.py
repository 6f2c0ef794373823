"""Weights of very many classes by feature, while they grow: a sparse matrix and a lazy factor."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from .postings import Postings


class FeatureRows:
    """Growing weights; each change of them makes a new sparse matrix, so changes come in batches.

    Parameters
    ----------
    n_features, n_classes : int

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from structsolve.extreme.feature_rows import FeatureRows
    >>> X, rows = sp.csr_matrix(np.eye(2, dtype=np.float32)), FeatureRows(2, 3)
    >>> rows.add_rows(X, np.array([0, 1]), np.array([2, 0], np.int32), np.array([1.0, -0.5]))
    >>> rows.shrink(0.5)
    >>> rows.freeze().to_matrix().toarray().tolist()
    [[0.0, 0.0, 0.5], [-0.25, 0.0, 0.0]]
    """

    def __init__(self, n_features: int, n_classes: int):
        self.n_features, self.n_classes, self._factor = n_features, n_classes, 1.0
        self._matrix = sparse.csr_matrix((n_features, n_classes), dtype=np.float32)
        self._frozen: Postings | None = None

    @classmethod
    def from_postings(cls, postings: Postings) -> FeatureRows:
        """Return weights that begin as others are.

        Parameters
        ----------
        postings : Postings

        Returns
        -------
        FeatureRows
        """
        rows = cls(postings.n_features, postings.n_classes)
        rows._matrix = postings.to_matrix().astype(np.float32)
        return rows

    def freeze(self) -> Postings:
        """Return the weights as they are.

        Returns
        -------
        Postings
        """
        if self._frozen is None:
            matrix = self._matrix
            if self._factor != 1:
                data = (matrix.data * self._factor).astype(np.float32)
                matrix = sparse.csr_matrix((data, matrix.indices, matrix.indptr), matrix.shape)
            self._frozen = Postings.from_matrix(matrix)
        return self._frozen

    def top(self, X, k, epsilon=0.0, exclude=None, n_jobs=1):
        """Return the best classes of rows.

        Parameters
        ----------
        X, k, epsilon, exclude, n_jobs
            As of :meth:`Postings.top`.

        Returns
        -------
        ids, scores, bounds, entries
            As of :meth:`Postings.top`.
        """
        return self.freeze().top(X, k, epsilon=epsilon, exclude=exclude, n_jobs=n_jobs)

    def scores(self, X: sparse.csr_matrix, classes: np.ndarray) -> np.ndarray:
        """Return scores of chosen classes.

        Parameters
        ----------
        X, classes
            As of :meth:`Postings.scores`.

        Returns
        -------
        ndarray of float32 of shape (n, m)
        """
        return self.freeze().scores(X, classes)

    def norm2(self) -> float:
        """Return the squared norm of all weights.

        Returns
        -------
        float
        """
        data = self._matrix.data.astype(np.float64)
        return float(data @ data) * self._factor**2

    def shrink(self, factor: float) -> None:
        """Multiply all weights with a factor.

        Parameters
        ----------
        factor : float
            Above 0.
        """
        self._factor, self._frozen = self._factor * float(factor), None

    def add_rows(
        self, X: sparse.csr_matrix, rows: np.ndarray, classes: np.ndarray, factors: np.ndarray
    ) -> None:
        """Add ``factors[j] * X[rows[j]]`` to the weights of class ``classes[j]``.

        Parameters
        ----------
        X : csr_matrix of float32 of shape (n, n_features)
        rows, classes, factors : ndarray of shape (m,)
            Of int64, int32 and float64.
        """
        shape = (X.shape[0], self.n_classes)
        parts = sparse.csr_matrix((factors / self._factor, (rows, classes)), shape)
        self._matrix = self._matrix + (X.T.tocsr() @ parts).astype(np.float32)
        self._frozen = None

    def soft_threshold(self, classes: np.ndarray, cut: float) -> None:
        """Move the weights of some classes towards 0, those below the cut to 0.

        Parameters
        ----------
        classes : ndarray of int32
        cut : float
            At least 0.
        """
        some = np.zeros(self.n_classes, bool)
        some[classes] = True
        data, cut = self._matrix.data, np.float32(cut / self._factor)
        place = np.flatnonzero(some[self._matrix.indices])
        data[place] -= np.clip(data[place], -cut, cut)
        self._matrix.eliminate_zeros()
        self._frozen = None
