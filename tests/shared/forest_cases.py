"""Graphs without cycles, in Python and natively."""

import numpy as np

from structsolve.plugins.mrf import MRFStructure
from structsolve.plugins.multilabel import MultilabelStructure


class ForestMRF(MRFStructure):
    """Samples are forests whose edges point anywhere."""

    def sample(self, random_state, n=4, size=3):
        rng = np.random.default_rng(random_state)
        X, Y = [], []
        one = None if self.edges is None else np.asarray(self.edges)
        for _ in range(n):
            V = int(rng.integers(1, size + 2)) if one is None else int(one.max()) + 1
            name = rng.permutation(V)
            pairs = [(name[v], name[rng.integers(v)]) for v in range(1, V) if rng.random() < 0.8]
            edges = np.array([p if rng.random() < 0.5 else p[::-1] for p in pairs], int)
            edges = edges.reshape(-1, 2)
            x = [rng.integers(-2, 3, (V, 2)).astype(float)] + [edges] * (one is None)
            if self.tables == "features":
                x.append(rng.normal(size=(len(edges if one is None else one), 2)))
            X.append(tuple(x) if len(x) > 1 else x[0])
            states = np.broadcast_to(3 if self.n_states is None else self.n_states, V)
            Y.append(rng.integers(0, states))
        return X, Y


TREE = [[1, 0], [1, 2], [3, 1]]

FORESTS = [
    ForestMRF(),
    ForestMRF(directed=True),
    ForestMRF(tables="features"),
    ForestMRF(tables="features", directed=True),
    ForestMRF(edges=TREE, tables="per-edge"),
    ForestMRF(edges=TREE, tables="per-edge", n_states=[2, 3, 1, 4]),
    ForestMRF(edges=TREE, n_states=[2, 3, 1, 4], directed=True),
    ForestMRF(edges=TREE, n_states=2),
    MultilabelStructure(edges="tree"),
    MultilabelStructure(edges=[[2, 1]]),
]
