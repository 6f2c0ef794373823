"""Weights of very many classes, dense and in plain NumPy: a reference for storage by feature."""

import numpy as np
import scipy.sparse as sp

from structsolve.plugins.extreme.weights.postings import Postings


class DenseRows:
    """All weights as an array; the methods of Postings and FeatureRows that solvers call."""

    def __init__(self, W):
        self.W = np.array(W, float)
        self.n_features, self.n_classes = self.W.shape

    def freeze(self):
        return Postings.from_matrix(sp.csr_matrix(self.W.astype(np.float32)))

    def scores(self, X, classes):
        scores = np.take_along_axis(X @ self.W, classes.astype(int), 1).astype(np.float32)
        return np.where(classes < 0, np.float32(-np.inf), scores)

    def top(self, X, k, epsilon=0.0, exclude=None, n_jobs=1):
        n = X.shape[0]
        kept, rows = X.toarray().astype(float), np.arange(n)
        spread = np.abs(kept) * (np.maximum(self.W.max(1), 0) - np.minimum(self.W.min(1), 0))
        order = np.argsort(spread, axis=1, kind="stable")
        sums = np.cumsum(np.take_along_axis(spread, order, 1), axis=1)
        bounds = np.where(sums <= epsilon, sums, 0).max(1) if epsilon > 0 else np.zeros(n)
        left_out = np.zeros(kept.shape, bool)
        np.put_along_axis(left_out, order, (sums <= epsilon) & (epsilon > 0), 1)
        kept[left_out] = 0
        entries = int((kept != 0).sum(0) @ (self.W != 0).sum(1))
        scores, full = kept @ self.W, X @ self.W
        if exclude is not None:
            scores[rows[exclude >= 0], exclude[exclude >= 0]] = -np.inf
        ids = np.argsort(-scores.astype(np.float32), axis=1, kind="stable")[:, :k].astype(np.int32)
        ids[np.isinf(np.take_along_axis(scores, ids, 1))] = -1
        # The returned classes are scored in full.
        scores = np.where(ids < 0, -np.inf, np.take_along_axis(full, ids, 1)).astype(np.float32)
        order = np.argsort(-scores, axis=1, kind="stable")
        ids, scores = (np.take_along_axis(part, order, 1) for part in (ids, scores))
        return ids, scores, bounds, entries
