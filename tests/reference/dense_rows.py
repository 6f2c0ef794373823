"""Weights of very many classes, dense and in plain NumPy: what storage by feature must give."""

import numpy as np


class DenseRows:
    """All weights as an array; the methods of Postings and FeatureRows that solvers call."""

    def __init__(self, W):
        self.W = np.array(W, float)
        self.n_features, self.n_classes = self.W.shape

    def scores(self, X, classes):
        return np.take_along_axis(X @ self.W, classes.astype(int), 1).astype(np.float32)

    def top(self, X, k, epsilon=0.0, exclude=None, n_jobs=1):
        n = X.shape[0]
        ids, scores = np.full((n, k), -1, np.int32), np.full((n, k), -np.inf, np.float32)
        bounds, entries = np.zeros(n), 0
        for i in range(n):
            kept = X[[i]].toarray()[0].astype(float)
            spread = np.abs(kept) * (np.maximum(self.W.max(1), 0) - np.minimum(self.W.min(1), 0))
            for f in np.argsort(spread, kind="stable"):
                if kept[f] and epsilon > 0 and bounds[i] + spread[f] <= epsilon:
                    bounds[i] += spread[f]
                    kept[f] = 0
            entries += int((self.W[kept != 0] != 0).sum())
            row = (kept @ self.W).astype(np.float32)
            order = np.lexsort((np.arange(len(row)), -row))
            order = order[order != (-1 if exclude is None else exclude[i])][:k]
            ids[i, : len(order)], scores[i, : len(order)] = order, row[order]
        return ids, scores, bounds, entries
