"""A structure: readings of a machine that runs well up to some moment, and is worn from then on."""

import numpy as np

from structsolve import Block, Examples, Named, NodeSpace, Structure, WeightLayout, hookimpl
from structsolve.examples import labels, packing


class WearStructure(Structure):
    """Label sequences of two classes that never go back from the second to the first."""

    name = "wear"

    def make_space(self, X, Y, classes=None, fit_intercept=True):
        rows, offsets = packing.stack_rows(X)
        flat = labels.flatten(Y, offsets)
        classes = labels.learn_classes(flat, classes)
        if len(classes) != 2:
            raise ValueError(f"y: found the classes {classes.tolist()}, expected two")
        space = WearSpace(self, classes, rows.shape[1], fit_intercept)
        return space, Examples(offsets, rows, space.encode(flat, offsets))

    def space_from_state(self, state, arrays):
        return WearSpace(self, arrays["classes"], **state)

    def sample(self, random_state, n=4, size=3):
        rng = np.random.default_rng(random_state)
        lengths = rng.integers(1, size + 1, n)
        X = [rng.integers(-2, 3, (length, 2)).astype(float) for length in lengths]
        Y = [np.arange(length) >= rng.integers(0, length + 1) for length in lengths]
        Y[0][:], Y[-1][:] = 0, 1  # both classes occur
        return X, [y.astype(int) for y in Y]


class WearSpace(NodeSpace):
    """Labels over given classes and features, their parts, and an argmax over them."""

    def __init__(self, structure, classes, n_features, intercept):
        blocks = [Block("node", "node", (2,), ("class",))]
        super().__init__(structure, WeightLayout(blocks, n_features, intercept=intercept), classes)

    def stack(self, X):
        rows, offsets = packing.stack_rows(X, self.layout.n_features)
        return Examples(offsets, rows)

    def contains(self, label, examples, i):
        return bool((np.diff(label) >= 0).all())

    def parts(self, examples, i, label):
        return {"node": np.eye(2)[label]}

    def argmax(self, examples, i, theta):
        well, worn = theta["node"].T  # -inf where a rule at prediction forbids the class
        before = np.append(0.0, np.cumsum(well))  # score of being well up to each moment
        after = np.append(np.cumsum(worn[::-1])[::-1], 0.0)
        return (np.arange(len(well)) >= (before + after).argmax()).astype(int)


@hookimpl
def structsolve_structures():
    return [Named("wear", WearStructure, "well up to some moment, worn from then on")]
