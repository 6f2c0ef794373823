"""Weights of rankings whose number does not grow with the ranks: polynomials of the rank."""

from __future__ import annotations

from typing import Any

import numpy as np


def degrees(weights: Any) -> int:
    """Return the number of rank polynomials in a score, 0 for a weight per rank.

    Parameters
    ----------
    weights : {"auto", "matrix", "scores", "rank:R"}
        "auto" counts as "matrix" until training data have decided it.

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
    if weights in ("auto", "matrix", "scores"):
        return int(weights == "scores")
    if (
        not isinstance(weights, str)
        or number == weights
        or not number.isdecimal()
        or not int(number)
    ):
        raise ValueError(
            f"weights is {weights!r}, expected 'auto', 'matrix', 'scores' or 'rank:R' with R at "
            "least 1"
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
    import scipy.sparse as sp  # heavy

    X = sp.csr_matrix(nodes, dtype=np.float64)
    if intercept:
        X = sp.hstack([X, np.ones((X.shape[0], 1))], format="csr")
    n, width = basis.shape[1], X.shape[1] * K * basis.shape[1]
    sizes = np.diff(X.indptr)
    pairs = X[np.repeat(np.arange(X.shape[0]), K * K)]
    each = np.repeat(sizes, K * K)
    label = np.repeat(np.tile(np.repeat(np.arange(K), K), X.shape[0]), each)
    rank = np.repeat(np.tile(np.arange(K), X.shape[0] * K), each)
    columns = ((pairs.indices * K + label) * n)[:, None] + np.arange(n)
    values = pairs.data[:, None] * basis[rank]
    expanded = sp.csr_matrix(
        (values.ravel(), columns.ravel().astype(np.int32), np.append(0, np.cumsum(each)) * n),
        shape=(len(each), width),
    )
    expanded.has_canonical_format = True
    return expanded
