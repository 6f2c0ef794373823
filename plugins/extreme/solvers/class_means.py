"""Class means, which a first scan for rivals uses as weights."""

from __future__ import annotations

import numpy as np
from scipy import sparse


def class_means(
    X: sparse.csr_matrix,
    own: tuple[np.ndarray, np.ndarray],
    n_classes: int,
    weight: np.ndarray,
    cut: float,
) -> sparse.csr_matrix:
    """Return weighted class means of length one.

    Parameters
    ----------
    X : csr_matrix of shape (n, d)
    own : ndarray of int64 of shape (n + 1,), ndarray of int32
        Start of each row's classes, and the classes.
    n_classes : int
    weight : ndarray of shape (n,)
    cut : float
        Entries of at most this size are dropped.

    Returns
    -------
    csr_matrix of float32 of shape (n_classes, d)
    """
    start, classes = own
    shares = np.repeat(weight.astype(np.float32), np.diff(start))
    members = sparse.csc_matrix((shares, classes, start), shape=(n_classes, len(weight)))
    means = (members.tocsr() @ X).tocsr()
    lengths = np.sqrt(np.asarray(means.multiply(means).sum(axis=1), dtype=np.float64)).ravel()
    lengths[lengths == 0] = 1
    means.data /= np.repeat(lengths, np.diff(means.indptr)).astype(np.float32)
    means.data[np.abs(means.data) <= cut] = 0
    means.eliminate_zeros()
    means.sort_indices()
    return means
