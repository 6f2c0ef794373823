"""Chains and trees with features of edges, in Python."""

import numpy as np

from structsolve.plugins.chain.space import ChainStructure
from structsolve.plugins.tree import TreeStructure


class EdgeChain(ChainStructure):
    """Chains with edge features."""

    def sample(self, random_state, n=4, size=3):
        X, Y = super().sample(random_state, n, size)
        rng = np.random.default_rng(random_state)
        return [(x, rng.integers(-2, 3, (len(x) - 1, 2)).astype(float)) for x in X], Y


class EdgeTree(TreeStructure):
    """Samples have edge features."""

    def sample(self, random_state, n=4, size=3):
        X, Y = super().sample(random_state, n, size)
        rng = np.random.default_rng(random_state)
        sizes = [int((np.asarray(p) >= 0).sum()) for _, p in X]
        return [(x, p, rng.integers(-2, 3, (m, 2)).astype(float)) for (x, p), m in zip(X, sizes)], Y
