"""Label sequences on a ring, in plain Python: the last position is a neighbour of the first."""

import numpy as np

from structsolve import plugin
from structsolve.plugin import (
    Block,
    Examples,
    Lazy,
    Named,
    NodeSpace,
    Structure,
    WeightLayout,
    hookimpl,
)

STRUCTSOLVE_CONTRACT = "1.0"


class RingStructure(Structure):
    """Cyclic sequences: X is a list of (length, n_features) arrays, Y a list of label lists.

    Parameters
    ----------
    transitions : bool, default=True
        Learn one score per pair of neighbouring classes.
    """

    name = "ring"

    def __init__(self, transitions=True):
        self.transitions = transitions

    def make_space(self, X, Y, classes=None, fit_intercept=True):
        nodes, offsets = plugin.stack_rows(X)
        flat = plugin.flatten(Y, offsets)
        classes = plugin.learn_classes(flat, classes)
        space = RingSpace(self, classes, nodes.shape[1], fit_intercept)
        return space, Examples(offsets, nodes, space.encode(flat, offsets))

    def space_from_state(self, state, arrays):
        return RingSpace(self, arrays["classes"], **state)

    def sample(self, random_state, n=4, size=3):
        rng = np.random.default_rng(random_state)
        lengths = rng.integers(1, size + 1, n)
        X = [rng.integers(-2, 3, (length, 2)).astype(float) for length in lengths]
        return X, [rng.integers(0, 3, length) for length in lengths]


class RingSpace(NodeSpace):
    """Rings over given classes and features."""

    def __init__(self, structure, classes, n_features, intercept):
        K = len(classes)
        blocks = [Block("node", "node", (K,), ("class",))]
        if structure.transitions:
            blocks.append(Block("transition", "shared", (K, K), ("class", "class")))
        super().__init__(structure, WeightLayout(blocks, n_features, 0, intercept), classes)

    def stack(self, X):
        nodes, offsets = plugin.stack_rows(X, self.layout.n_features)
        return Examples(offsets, nodes)

    def state(self):
        meta = {"n_features": self.layout.n_features, "intercept": self.layout.intercept}
        return meta, {"classes": self.classes_}

    def parts(self, examples, i, label):
        K = len(self.classes_)
        mu = {"node": np.eye(K)[label]}
        if self.structure.transitions:
            mu["transition"] = np.zeros((K, K))
            np.add.at(mu["transition"], (label, np.roll(label, -1)), 1.0)
        return mu

    def argmax(self, examples, i, theta):
        node = theta["node"]
        K = len(self.classes_)
        table = theta.get("transition", np.zeros((K, K)))
        # best[f, s]: best path from state f at the first position to state s at this one.
        best = np.where(np.eye(K, dtype=bool), node[0], -np.inf)
        origins = []
        for row in node[1:]:
            paths = best[:, :, None] + table
            origins.append(paths.argmax(axis=1))
            best = paths.max(axis=1) + row
        first, state = np.unravel_index((best + table.T).argmax(), (K, K))
        label = [state]
        for origin in reversed(origins):
            label.append(origin[first, label[-1]])
        return label[::-1]


@hookimpl
def structsolve_structures():
    return [Named("ring", RingStructure, "label sequences whose ends are neighbours")]


@hookimpl
def structsolve_estimators():
    return [Named("RingVote", Lazy("structsolve_ring_vote:RingVote"), "the commonest class")]
