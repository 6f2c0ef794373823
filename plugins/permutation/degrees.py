"""Polynomials of the rank: weights whose number does not grow with the ranks, and smooth ones."""

from __future__ import annotations

from typing import Any

import numpy as np

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


def pair_table(basis: np.ndarray) -> Any:
    """Return the numbers that combine ``<w_kj, x>`` to the scores of labels at ranks.

    Parameters
    ----------
    basis : ndarray of shape (K, n)
        Polynomials at the ranks.

    Returns
    -------
    CSR matrix of shape (K * K, K * n)
        Row ``k K + r`` has ``basis[r]`` in the columns of label k.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.plugins.permutation.degrees import pair_table
    >>> pair_table(np.array([[1.0], [-1.0]])).toarray().tolist()
    [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
    """
    K, n = basis.shape
    columns = np.repeat(np.arange(K * n, dtype=np.int32).reshape(K, n), K, axis=0)
    ends = np.arange(0, K * K * n + 1, n, dtype=np.int32)
    return valid_csr(np.tile(basis.ravel(), K), columns.ravel(), ends, K * n, canonical=True)
