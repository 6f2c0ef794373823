"""MEMOIR's Algorithms 1 and 2, line by line in plain Python on a dense matrix."""

import numpy as np


def memoir(X, y, n_classes, alpha, batches, eta0, eta_step, l1=False, mean=False, rival=None):
    """Return the weights of every iteration, (d, C), after shrinking and at its end.

    ``batches`` has the rows of each iteration; ``rival(t, j, i, scores)`` the rival of row i at
    place j of batch t: by default the class that scores best, of ties the lowest.
    """
    n_features = X.shape[1]
    W, shrunk, ends = np.zeros((n_features, n_classes)), [], []
    for t, rows in enumerate(batches, 1):
        eta = eta0 / (1 + eta_step * t)
        if not l1:
            W = (1 - alpha * eta) * W
        shrunk.append(W.copy())
        frozen, touched = W.copy(), set()
        for j, i in enumerate(rows):
            x, scores = X[i], X[i] @ frozen
            others = [c for c in range(n_classes) if c != y[i]]
            if rival is None:
                r = max(others, key=lambda c: (np.float32(scores[c]), -c))
            else:
                r = rival(t, j, i, scores)
            step = eta / len(rows) if mean else eta
            if 1 + scores[r] - scores[y[i]] > 0:
                W[:, r] -= step * x
                W[:, y[i]] += step * x
            touched |= {int(y[i]), int(r)}
        if l1:
            cut = n_classes / len(touched) * alpha * eta * (0.5 if mean else 1)
            for c in touched:
                w = W[:, c]
                W[:, c] = np.where(w > cut, w - cut, np.where(w < -cut, w + cut, 0))
        else:
            norm = np.sqrt((W**2).sum())
            if norm > 0:
                W = min(1, 1 / (np.sqrt(alpha) * norm)) * W
        ends.append(W.copy())
    return shrunk, ends


def objective(X, y, W, alpha, l1=False):
    """The objective of equations (10) and (11), with rho = 1."""
    scores = X @ W
    own = scores[np.arange(len(y)), y]
    scores[np.arange(len(y)), y] = -np.inf
    hinge = np.maximum(0, 1 + scores.max(1) - own).mean()
    return hinge + alpha / 2 * (np.abs(W).sum() if l1 else (W**2).sum())
