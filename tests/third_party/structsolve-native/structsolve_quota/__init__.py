"""Choose at most a few of many: the structure, whose space makes its operators."""

from functools import partial

import numpy as np

from structsolve import Block, Examples, Named, NodeSpace, Structure, WeightLayout, hookimpl
from structsolve.examples import packing


class QuotaStructure(Structure):
    """Which rows to choose: at most ``most`` of them, with a score for how many.

    Parameters
    ----------
    most : int, default=2

    Notes
    -----
    X is a list of (length, n_features) arrays, Y a list of 0/1 lists.
    """

    name = "quota"

    def __init__(self, most=2):
        self.most = most

    def make_space(self, X, Y, classes=None, fit_intercept=True):
        nodes, offsets = packing.stack_rows(X)
        space = QuotaSpace(self, nodes.shape[1], fit_intercept)
        return space, Examples(offsets, nodes, space.encode(space.flatten(Y, offsets), offsets))

    def space_from_state(self, state, arrays):
        return QuotaSpace(self, **state)

    def sample(self, random_state, n=4, size=3):
        rng = np.random.default_rng(random_state)
        X = [rng.integers(-2, 3, (size + 1, 2)).astype(float) for _ in range(n)]
        Y = [rng.permutation([1] * k + [0] * (size + 1 - k)) for k in rng.integers(0, 3, n)]
        return X, Y


class QuotaSpace(NodeSpace):
    """Quotas over given features."""

    def __init__(self, structure, n_features, intercept):
        blocks = [
            Block("count", "shared", (structure.most + 1,)),
            Block("node", "node", (2,), ("class",)),
        ]
        super().__init__(
            structure, WeightLayout(blocks, n_features, 0, intercept), np.array([0, 1])
        )

    def stack(self, X):
        nodes, offsets = packing.stack_rows(X, self.layout.n_features)
        return Examples(offsets, nodes)

    def flatten(self, Y, offsets):
        flat = super().flatten(Y, offsets)
        for i in range(len(offsets) - 1):
            chosen = int((flat[offsets[i] : offsets[i + 1]] == 1).sum())
            if chosen > self.structure.most:
                raise ValueError(
                    f"example {i}: {chosen} rows are chosen, expected at most "
                    f"most={self.structure.most}"
                )
        return flat

    def state(self):
        layout = self.layout
        return {"n_features": layout.n_features, "intercept": layout.intercept}, {}

    def enumerate_labels(self, examples, i):
        rows = super().enumerate_labels(examples, i)
        return rows[rows.sum(axis=1) <= self.structure.most]

    def make_oracle(self):
        from ._operators import QuotaOracle

        return partial(QuotaOracle, self.structure.most)

    def make_parts(self):
        from ._operators import QuotaParts

        return QuotaParts


@hookimpl
def structsolve_structures():
    return [Named("quota", QuotaStructure, "at most a few chosen of many")]
