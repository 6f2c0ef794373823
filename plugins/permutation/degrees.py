"""Polynomials of the rank: weights whose number does not grow with the ranks, and smooth ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.examples.given import is_sparse
from structsolve.utils.sparse import valid_csr

# Found by trials (``benchmarks/rankings.py``): with 1 to 2.5, other sets are best.
DECAY = 1.5


def degrees(weights: Any) -> int:
    """Return the number of rank polynomials in a score, 0 for a weight per rank.

    Parameters
    ----------
    weights : {"auto", "smooth", "matrix", "scores", "rank:R"}
        "auto" counts as "smooth" until training data have decided it.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        For other values.

    Examples
    --------
    >>> from structsolve.plugins.permutation.degrees import degrees
    >>> degrees("matrix"), degrees("scores"), degrees("rank:2")
    (0, 1, 2)
    """
    number = str(weights).removeprefix("rank:")
    if weights in ("auto", "smooth", "matrix", "scores"):
        return int(weights == "scores")
    if (
        not isinstance(weights, str)
        or number == weights
        or not number.isdecimal()
        or not int(number)
    ):
        raise ValueError(
            f"weights is {weights!r}, expected 'auto', 'smooth', 'matrix', 'scores' or 'rank:R' "
            "with R at least 1"
        )
    return int(number)


def rank_polynomials(K: int, n: int) -> np.ndarray:
    """Return orthogonal polynomials of degrees 1 to n on the ranks; the first one falls.

    Parameters
    ----------
    K : int
        Number of ranks.
    n : int
        Less than K.

    Returns
    -------
    ndarray of shape (K, n)
        Columns are orthogonal to each other and to constants, with mean square 1.

    Examples
    --------
    >>> from structsolve.plugins.permutation.degrees import rank_polynomials
    >>> rank_polynomials(3, 1).ravel().round(3).tolist()
    [1.225, 0.0, -1.225]
    """
    powers = np.vander(np.linspace(1.0, -1.0, K), n + 1, increasing=True)
    basis = np.linalg.qr(powers)[0][:, 1:]
    return np.asarray(basis * np.sign(basis[0]) * np.sqrt(K)) + 0.0


def smooth_ranks(K: int) -> np.ndarray:
    """Return the metric of weights that change smoothly with the rank.

    Polynomials of the rank of degree j are its eigenvectors, with eigenvalues in proportion to
    ``j**-1.5``.  A constant, which changes no ranking, has that of the last.  The mean square of
    the eigenvalues is 1, as without a metric.

    Parameters
    ----------
    K : int
        Number of ranks.

    Returns
    -------
    ndarray of shape (K, K)
        Symmetric and positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.plugins.permutation.degrees import smooth_ranks
    >>> falls, bends = np.array([1.0, 0.0, -1.0]), np.array([1.0, -2.0, 1.0])
    >>> (smooth_ranks(3) @ falls).round(3).tolist(), (smooth_ranks(3) @ bends).round(3).tolist()
    ([1.549, 0.0, -1.549], [0.548, -1.095, 0.548])
    """
    basis = np.hstack([rank_polynomials(K, K - 1), np.ones((K, 1))]) / np.sqrt(K)
    values = np.append(np.arange(1.0, K), max(K - 1, 1)) ** -DECAY
    values *= np.sqrt(K / np.square(values).sum())
    M = (basis * values) @ basis.T
    return (M + M.T) / 2


def expand(nodes: Any, K: int, basis: np.ndarray, intercept: bool) -> Any:
    """Return features of every pair of a label and a rank.

    Pair (k, r) has ``x_f basis[r, j]`` in column ``(f K + k) n + j``, so that
    ``sum_j basis[r, j] <w_kj, x>`` is linear in them.

    Parameters
    ----------
    nodes : array or CSR matrix of shape (n_rows, n_features)
    K : int
    basis : ndarray of shape (K, n)
    intercept : bool
        Append a constant feature to x.

    Returns
    -------
    CSR matrix of shape (n_rows * K * K, (n_features + intercept) * K * n)
    """
    n, width = basis.shape[1], (nodes.shape[1] + intercept) * K * basis.shape[1]
    if is_sparse(nodes):
        sizes, indices, data = np.diff(nodes.indptr), nodes.indices, nodes.data
    else:
        X = np.asarray(nodes, np.float64)
        rows, indices = np.nonzero(X)
        if len(rows) == X.size:
            return _expand_full(np.hstack([X, np.ones((len(X), int(intercept)))]), K, basis)
        sizes, data = np.bincount(rows, minlength=len(X)), X[rows, indices]
    if intercept:
        ends, sizes = np.cumsum(sizes), sizes + 1
        indices, data = np.insert(indices, ends, nodes.shape[1]), np.insert(data, ends, 1)
    each = np.repeat(sizes, K * K)
    begin, first = np.append(0, np.cumsum(each)), np.cumsum(sizes) - sizes
    # The entry of X, and the pair, of each result but for degrees.
    entry = np.arange(begin[-1]) + np.repeat(np.repeat(first, K * K) - begin[:-1], each)
    label, rank = np.divmod(np.repeat(np.arange(len(each)) % (K * K), each), K)
    columns = ((indices[entry].astype(np.int64) * K + label) * n)[:, None] + np.arange(n)
    return _pairs_csr(data[entry][:, None] * basis[rank], columns, begin * n, width)


def _expand_full(X: np.ndarray, K: int, basis: np.ndarray) -> Any:
    """Return the features of pairs for rows without zeros."""
    (n_rows, d), n = X.shape, basis.shape[1]
    shape = n_rows, K, K, d, n  # rows, labels, ranks, features, degrees
    columns = (np.arange(d) * K + np.arange(K)[:, None])[:, None, :, None] * n + np.arange(n)
    values = X[:, None, None, :, None] * basis[:, None, :]
    indptr = np.arange(n_rows * K * K + 1) * (d * n)
    values, columns = np.broadcast_to(values, shape), np.broadcast_to(columns, shape)
    return _pairs_csr(values, columns, indptr, d * K * n)


def _pairs_csr(values: np.ndarray, columns: np.ndarray, indptr: np.ndarray, width: int) -> Any:
    kind = np.int32 if max(width, values.size) < 2**31 else np.int64
    columns, indptr = columns.astype(kind).ravel(), indptr.astype(kind)
    return valid_csr(values.ravel(), columns, indptr, width, canonical=True)
