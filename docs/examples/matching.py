"""Learn to match the points of two sets."""

import numpy as np
from scipy.optimize import linear_sum_assignment

from structsolve import FunctionStructure, StructuredSVM


def features(x, y):
    """How near the partners are, in each coordinate."""
    left, right = x
    return -np.abs(left - right[y]).sum(axis=0)


def loss(y_true, y_pred):
    return float(np.sum(y_true != y_pred))


def oracle(w, x, y=None):
    left, right = x
    scores = -np.abs(left[:, None] - right[None]) @ w
    if y is not None:  # in training: add the loss of every pair
        scores += 1
        scores[np.arange(len(y)), y] -= 1
    return linear_sum_assignment(scores, maximize=True)[1]


def draw(n, rng):
    """Points whose first two coordinates move little and whose other four are noise."""
    X, Y = [], []
    for _ in range(n):
        y = rng.permutation(6)
        left = rng.normal(size=(6, 6))
        right = np.empty_like(left)
        right[y] = left + rng.normal(size=(6, 6)) * [0.1, 0.1, 3, 3, 3, 3]
        X.append((left, right))
        Y.append(y)
    return X, Y


rng = np.random.default_rng(0)
X, Y = draw(60, rng)
X_test, Y_test = draw(60, rng)
model = StructuredSVM(FunctionStructure(features, oracle, loss), alpha=0.01, tol=0.01).fit(X, Y)
guesses = model.predict(X_test)
right = np.mean([np.mean(a == b) for a, b in zip(guesses, Y_test)])
evenly = np.mean([np.mean(oracle(np.ones(6), x) == y) for x, y in zip(X_test, Y_test)])
print(f"partners found: {right:.2f}, with equal weights: {evenly:.2f}")
