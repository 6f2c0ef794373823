"""Problems of conditional risk."""

import numpy as np

from structsolve import ClassWeights, CostMatrix

COSTS = CostMatrix([[0, 1, 4], [2, 0, 1], [5, 3, 0]])
CASES = [
    ("multiclass", "hamming"),
    ("multiclass", COSTS),
    ("multiclass", ClassWeights({1: 3.0})),
    ("ordinal", "absolute"),
    ("ordinal", "hamming"),
    ("multilabel", "hamming"),
    ("multilabel", "normalized-hamming"),
    ("permutation", "hamming"),
    ("permutation", "spearman"),
    ("chain", "hamming"),
    ("chain", COSTS),
]


def sample(structure, rng, n):
    X = rng.normal(size=(n, 2))
    if structure == "multilabel":
        return X, rng.integers(0, 2, (n, 3))
    if structure == "permutation":
        return X, np.array([rng.permutation(3) for _ in range(n)])
    if structure == "chain":
        X, y = list(rng.normal(size=(n, 2, 2))), list(rng.integers(0, 3, (n, 2)))
        y[0], y[1] = np.array([0, 1]), np.array([2, 2])
        return X, y
    return X, np.concatenate([[0, 1, 2], rng.integers(0, 3, n - 3)])
