"""Class means, which a first scan for rivals uses as weights."""

from __future__ import annotations

import numpy as np
from scipy import sparse


def class_means(
    X: sparse.csr_matrix, y: np.ndarray, n_classes: int, weight: np.ndarray, cut: float
) -> sparse.csr_matrix:
    """Return weighted class means of length one.

    Parameters
    ----------
    X : csr_matrix of shape (n, d)
    y : ndarray of int32 of shape (n,)
    n_classes : int
    weight : ndarray of shape (n,)
    cut : float
        Entries of at most this size are dropped.

    Returns
    -------
    csr_matrix of float32 of shape (n_classes, d)
    """
    n = len(y)
    members = sparse.csc_matrix(
        (weight.astype(np.float32), y, np.arange(n + 1)), shape=(n_classes, n)
    )
    means = (members.tocsr() @ X).tocsr()
    lengths = np.sqrt(np.asarray(means.multiply(means).sum(axis=1), dtype=np.float64)).ravel()
    lengths[lengths == 0] = 1
    means.data /= np.repeat(lengths, np.diff(means.indptr)).astype(np.float32)
    means.data[np.abs(means.data) <= cut] = 0
    means.eliminate_zeros()
    means.sort_indices()
    return means
