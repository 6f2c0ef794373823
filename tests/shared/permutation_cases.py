"""Scores, rankings and matchings of permutations."""

import numpy as np

from structsolve.plugins.permutation import assign


def scores_of(rng, kind, rows, cols):
    normal = rng.normal(size=(rows, cols))
    return {
        "normal": normal,
        "ties": rng.integers(-1, 2, (rows, cols)).astype(float),
        "zeros": np.zeros((rows, cols)),
        "scaled": normal * 10.0 ** rng.integers(-250, 250),
        "mixed": normal * 10.0 ** rng.integers(-10, 10, (rows, cols)),
        "few": rng.integers(0, 3, (rows, cols)).astype(float),
        "metric": np.abs(rng.random((rows, 1)) - rng.random((1, cols))),
        "tenths": 0.1 * rng.integers(0, 5, (rows, cols)),  # ties but for rounding
        "product": 1.0 * np.outer(range(rows), range(cols)),  # searches pass many columns
    }[kind]


KINDS = ["normal", "ties", "zeros", "scaled", "mixed", "few", "metric", "tenths", "product"]


def rankings(n=60, n_features=4, K=4, seed=0):
    """Return ranks that follow linear scores of the labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    order = np.argsort(-(X @ rng.normal(size=(n_features, K))), axis=1)
    return X, np.argsort(order, axis=1)


def matchings(n=40, n_features=3, seed=0, noise=0.1):
    """Return features of pairs; the first is the truth with noise."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        rows = int(rng.integers(1, 6))
        x = rng.normal(size=(rows, rows + int(rng.integers(0, 3)), n_features))
        X.append(x)
        Y.append(assign(x[..., 0] + noise * rng.normal(size=x.shape[:2])).columns)
    return X, Y
