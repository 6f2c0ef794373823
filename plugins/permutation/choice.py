"""The default weights of rankings: a score for each label, or for each label and rank."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.examples.given import HUGE

# Rows and numbers of targets that are looked at; fewer rows than LEAST cannot tell.
ROWS, NUMBERS, LEAST = 1000, 2 * 10**6, 10
# Penalties to try, as multiples of the mean eigenvalue of the features.
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
# By how many standard errors a score for each label, or any weights of ranks, have to be nearer.
ERRORS = 2.0


def better_weights(X: Any, ranks: np.ndarray, sample_weight: Any = None) -> str:
    """Return "scores" or "matrix" if rows that are left out say so clearly, else "smooth".

    Two ridge regressions predict every row from the others, in closed form: one the ranks, which
    are then sorted, the other the distance of each rank from the true one, for each label, with the
    assignment of the least sum.  Where one of them has a smaller footrule by two standard errors,
    rankings follow one score for each label, or weights that differ from rank to rank.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, n_features)
    ranks : ndarray of int of shape (n, K)
    sample_weight : ndarray of shape (n,), optional
        Rows of weight 0 are left out; others count alike.

    Returns
    -------
    {"scores", "smooth", "matrix"}

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.plugins.permutation.choice import better_weights
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 20))
    >>> scores = X @ rng.normal(size=(20, 4)) + rng.normal(size=(200, 4))
    >>> better_weights(X, scores.argsort(axis=1).argsort(axis=1))
    'scores'
    >>> better_weights(X, (scores[:, :1] > 0) * np.array([2, 0, -2, 0]) + np.array([0, 1, 2, 3]))
    'smooth'
    >>> better_weights(X, np.where(scores[:, :1] > 0, [0, 1, 2, 3], [3, 1, 2, 0]))
    'matrix'
    """
    from structsolve.plugins.permutation.assign import assign  # compiled: not to list structures

    rows = np.arange(len(ranks)) if sample_weight is None else np.flatnonzero(sample_weight)
    n, K = len(rows), ranks.shape[1]
    most = min(n, ROWS, NUMBERS // max(K * K, 1))
    if most < LEAST or K < 3:
        return "smooth"
    kept = rows[np.linspace(0, n - 1, most).astype(int)]
    truth = ranks[kept].astype(np.float64)
    X = X[kept]
    if not (np.abs(X.data if hasattr(X, "tocsr") else X) <= HUGE).all():
        return "smooth"  # training refuses them, and names the example
    vectors, values = _principal(X)
    if not len(values):
        return "smooth"
    order = _left_out(vectors, values, truth).argsort(axis=1, kind="stable")
    distances = np.abs(truth[:, :, None] - np.arange(K))
    costs = _left_out(vectors, values, distances.reshape(most, -1)).reshape(distances.shape)
    by_score = np.abs(order.argsort(axis=1) - truth).sum(axis=1)
    by_rank = np.abs(assign(costs, maximize=False).columns - truth).sum(axis=1)
    nearer = by_rank - by_score
    clear = np.abs(nearer.mean()) > ERRORS * nearer.std() / np.sqrt(most)
    return ("scores" if nearer.mean() > 0 else "matrix") if clear else "smooth"


def _principal(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return left singular vectors of the standardised columns, and the squared singular values."""
    if hasattr(X, "tocsr"):
        X = X.astype(np.float64)
        mean = np.asarray(X.mean(axis=0)).ravel()
        spread = np.sqrt(np.maximum(np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2, 0))
        real = spread > 1e-7 * np.abs(mean)  # less is rounding
        X = X.multiply(np.divide(1, spread, out=np.zeros(len(mean)), where=real)).tocsr()
        gram = (X @ X.T).toarray()
        gram -= gram.mean(axis=0)
        gram -= gram.mean(axis=1)[:, None]
    else:
        X = np.asarray(X, dtype=np.float64)
        mean = X.mean(axis=0)
        X = X - mean
        spread = X.std(axis=0)
        X = X / np.where(spread > 1e-12 * np.abs(mean), spread, np.inf)
        gram = X.T @ X if X.shape[1] < len(X) else X @ X.T
    values, vectors = np.linalg.eigh(gram)
    real = values > 1e-10 * max(values[-1], 1e-300)
    values, vectors = values[real], vectors[:, real]
    return (vectors if len(gram) == X.shape[0] else X @ vectors / np.sqrt(values)), values


def _left_out(vectors: np.ndarray, values: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return ridge predictions of every row by the others, with the penalty of least error."""
    mean = targets.mean(axis=0)
    inner = vectors.T @ (targets - mean)
    best, least = targets, np.inf
    for penalty in PENALTIES:
        kept = values / (values + penalty * values.mean())
        own = np.minimum(vectors**2 @ kept + 1 / len(targets), 1 - 1e-9)
        residual = (targets - mean - (vectors * kept) @ inner) / (1 - own)[:, None]
        error = float(np.square(residual).sum())
        if error < least:
            best, least = targets - residual, error
    return best
