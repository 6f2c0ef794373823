"""Structures in plain Python, by enumeration: a copy of the native chain, and one of functions."""

from __future__ import annotations

import itertools

import numpy as np

from structsolve import Block, Examples, FunctionStructure, Space, Structure, WeightLayout
from structsolve.examples import packing
from structsolve.plugins.chain.space import ChainSpace, ChainStructure
from structsolve.structure.node_space import NodeSpace


class PyChainSpace(NodeSpace):
    """A chain space unknown to plugins: everything comes from the methods below."""

    projections = ("entropy",)

    @classmethod
    def of(cls, native):
        space = cls(native.structure, native.layout, native.classes_)
        space.n_edge_features = native.n_edge_features
        return space

    stack, state, mask = ChainSpace.stack, ChainSpace.state, ChainSpace.mask

    def parts(self, examples, i, label):
        K = len(self.classes_)
        L = len(label)
        states = np.eye(K)[label]
        mu = {"node": states}
        known = {block.name for block in self.layout.blocks}
        pairs = states[:-1, :, None] * states[1:, None, :]
        if "transition" in known:
            mu["transition"] = pairs.sum(axis=0)
        if "start" in known:
            mu |= {"start": states[0], "end": states[L - 1]}
        if "edge" in known:
            mu["edge"] = pairs
        return mu

    def score(self, examples, i, theta, label):
        mu = PyChainSpace.parts(self, examples, i, label)
        return sum(theta[name][mu[name] > 0] @ mu[name][mu[name] > 0] for name in mu)

    def scores(self, examples, i, theta):
        """Return all labels, and their scores."""
        labels = self.enumerate_labels(examples, i)
        K, length = len(self.classes_), labels.shape[1]
        # Those of all beginnings of a label, in the order of labels.
        total = theta["node"][0] + theta.get("start", 0.0)
        for k in range(1, length):
            step = theta["node"][k] + theta.get("transition", np.zeros((K, K)))
            if "edge" in theta:
                step = step + theta["edge"][k - 1]
            total = (total.reshape(-1, K, 1) + step).ravel()
        total = (total.reshape(-1, K) + theta.get("end", 0.0)).ravel()
        if len(labels) < len(total):
            total = total[labels @ K ** np.arange(length)[::-1]]
        return labels, total

    def ranked(self, examples, i, theta, k=None):
        labels, scores = self.scores(examples, i, theta)
        best = [scores.argmax()] if k == 1 else np.argsort(-scores, kind="stable")[:k]
        return labels[best], scores

    def argmax(self, examples, i, theta):
        return self.ranked(examples, i, theta, 1)[0][0]

    def kbest(self, examples, i, theta, k):
        return self.ranked(examples, i, theta, k)[0]

    def project(self, examples, i, theta, name):
        labels, scores = self.scores(examples, i, theta)
        weights = np.exp(scores - scores.max())
        total = weights.sum()
        mus = [PyChainSpace.parts(self, examples, i, y) for y in labels]
        mean = {
            block: sum(p * mu[block] for p, mu in zip(weights / total, mus)) for block in mus[0]
        }
        return mean, scores.max() + np.log(total)


class PyChainStructure(ChainStructure):
    """Chains whose oracle, parts, k-best and projection are Python."""

    name, space_class = "py-chain", PyChainSpace

    def make_space(self, X, Y, classes=None, fit_intercept=True):
        native, _ = super().make_space(X, Y, classes, fit_intercept)
        space = self.space_class.of(native)
        return space, space.pack(X, Y)

    def space_from_state(self, state, arrays):
        return self.space_class.of(super().space_from_state(state, arrays))


def py_chain(**methods):
    """A Python chain whose space has other methods."""
    space_class = type("BentSpace", (PyChainSpace,), methods)
    return type("BentChain", (PyChainStructure,), {"space_class": space_class})()


def subset_features(x, y):
    """Return the sum of the chosen rows, and their number."""
    return np.append(x[np.asarray(y, dtype=bool)].sum(axis=0), float(sum(y)))


def subset_loss(y_true, y_pred):
    """Return the Hamming loss."""
    return float(sum(a != b for a, b in zip(y_true, y_pred)))


def subset_oracle(w, x, y=None):
    """Return the best 0/1 vector with at most two ones, by enumeration."""
    return max(
        subset_labels(x),
        key=lambda z: w @ subset_features(x, z) + (0.0 if y is None else subset_loss(y, z)),
    )


def subset_labels(x):
    """Return all 0/1 vectors with at most two ones."""
    return [z for z in itertools.product((0, 1), repeat=len(x)) if sum(z) <= 2]


class SubsetStructure(FunctionStructure):
    """A structure that chooses at most two of a few rows, as three functions."""

    def __init__(self, features=subset_features, oracle=subset_oracle, loss=subset_loss):
        super().__init__(features, oracle, loss)

    def labels(self, x):
        return subset_labels(x)

    def sample(self, random_state, n=4, size=3):
        rng = np.random.default_rng(random_state)
        X = [rng.integers(-2, 3, (size, 2)).astype(float) for _ in range(n)]
        return X, [subset_labels(x)[rng.integers(len(subset_labels(x)))] for x in X]


class BudgetStructure(Structure):
    """Sets of rows, as 0 and 1: rows cost 1, 2, 3, 1, 2, 3, ... and a set at most 2."""

    name = "budget"

    def make_space(self, X, Y, classes=None, fit_intercept=True):
        space = self.space_from_state({"n_features": X[0].shape[1], "intercept": fit_intercept}, {})
        return space, space.pack(X, Y)

    def space_from_state(self, state, arrays):
        return self.space_class(self, WeightLayout([Block("node", "node", (1,))], **state))

    def sample(self, random_state, n=4, size=3):
        rng = np.random.default_rng(random_state)
        X = [rng.integers(-2, 3, (m, 2)).astype(float) for m in rng.integers(1, size + 1, n)]
        return X, [np.arange(len(x)) == rng.integers(2) for x in X]


class BudgetSpace(Space):
    """An oracle that takes rows by score over cost, with the bound of the fractional solution."""

    def pack(self, X, Y=None, unseen="error"):
        rows, offsets = packing.stack_rows(X, self.layout.n_features)
        return Examples(offsets, rows, None if Y is None else np.concatenate(Y).astype(np.int32))

    def costs_of(self, examples, i):
        return 1 + np.arange(examples.offsets[i + 1] - examples.offsets[i]) % 3

    def unpack_one(self, label, examples, i):
        return label

    def contains(self, label, examples, i):
        return bool(label @ self.costs_of(examples, i) <= 2)

    def enumerate_labels(self, examples, i):
        size = len(self.costs_of(examples, i))
        every = np.array([*itertools.product((0, 1), repeat=size)], np.int32)
        return (y for y in every if self.contains(y, examples, i))

    def parts(self, examples, i, label):
        return {"node": label[:, None]}

    def fractional(self, examples, i, theta):
        scores, costs = theta["node"][:, 0], self.costs_of(examples, i)
        x, left = np.zeros(len(scores)), 2.0
        for j in np.argsort(-scores / costs, kind="stable"):
            if scores[j] > 0:
                x[j] = min(1.0, left / costs[j])
                left -= x[j] * costs[j]
        return x

    def argmax(self, examples, i, theta):
        return self.argmax_bounded(examples, i, theta)[0]

    def argmax_bounded(self, examples, i, theta):
        x = self.fractional(examples, i, theta)
        return np.floor(x).astype(int), x @ theta["node"][:, 0]

    def loss(self, examples, i, truth, label):
        return float((truth != label).sum())

    def loss_costs(self, examples, i, truth):
        return {"node": 1.0 - 2 * truth[:, None]}, float(truth.sum())


class RelaxedBudgetSpace(BudgetSpace):
    """With its relaxation, which takes a third of a row that costs 3."""

    def relax(self, examples, i, theta):
        x = self.fractional(examples, i, theta)
        return {"node": x[:, None]}, (x.astype(int) if (x == np.floor(x)).all() else None)


def budget(space_class=BudgetSpace):
    """A structure whose oracle misses labels, and says by how much."""
    return type("Budget", (BudgetStructure,), {"space_class": space_class})()
