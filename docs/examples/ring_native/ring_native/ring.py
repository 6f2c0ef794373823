"""A structure in plain Python: label sequences around a ring, such as hours of a day."""

import numpy as np

from structsolve import Block, Examples, Named, NodeSpace, Structure, WeightLayout, hookimpl
from structsolve.examples import labels, packing


class RingStructure(Structure):
    """Label sequences in which the first label follows the last."""

    name = "ring"

    def make_space(self, X, Y, classes=None, fit_intercept=True):
        rows, offsets = packing.stack_rows(X)
        flat = labels.flatten(Y, offsets)
        classes = labels.learn_classes(flat, classes)
        space = RingSpace(self, classes, rows.shape[1], fit_intercept)
        return space, Examples(offsets, rows, space.encode(flat, offsets))

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
        blocks = [
            Block("transition", "shared", (K, K), ("class", "class")),
            Block("node", "node", (K,), ("class",)),
        ]
        super().__init__(structure, WeightLayout(blocks, n_features, intercept=intercept), classes)

    def stack(self, X):
        rows, offsets = packing.stack_rows(X, self.layout.n_features)
        return Examples(offsets, rows)

    def parts(self, examples, i, label):
        K, ones = len(self.classes_), np.ones(len(label))
        pairs = label * K + np.roll(label, -1)  # repeated pairs count each time
        return {"transition": (pairs, ones), "node": (np.arange(len(label)) * K + label, ones)}

    def argmax(self, examples, i, theta):
        node, transition = theta["node"], theta["transition"]
        best, label = -np.inf, None
        for first in range(node.shape[1]):  # Viterbi for each first label
            value = np.full(node.shape[1], -np.inf)
            value[first] = node[0, first]
            back = []
            for row in node[1:]:
                scores = value[:, None] + transition
                back.append(scores.argmax(axis=0))
                value = scores.max(axis=0) + row
            value = value + transition[:, first]
            if value.max() > best:
                best, label = value.max(), [int(value.argmax())]
                for pointers in reversed(back):
                    label.append(int(pointers[label[-1]]))
        return label[::-1]


@hookimpl
def structsolve_structures():
    return [Named("ring", RingStructure, "label sequences that close to a ring")]
