"""Surrogates with entropies on small data of every structure."""

import numpy as np
from reference import fenchel_young as reference

import structsolve
from structsolve import CostMatrix
from structsolve.plugins.ordinal import OrdinalStructure
from structsolve.plugins.permutation import PermutationStructure
from structsolve.potentials.calls import score
from structsolve.solvers.problem import Problem
from structsolve.structure import calls
from structsolve.surrogates import CRF, MaxMin, SparseMAP

COSTS = np.array([[0, 1, 4], [2, 0, 0.5], [1, 3, 0]])


def classes(rng):
    return "multiclass", rng.normal(size=(7, 2)), np.arange(7) % 3, "hamming"


def costly(rng):
    return "multiclass", rng.normal(size=(7, 2)), np.arange(7) % 3, CostMatrix(COSTS)


def ordered(rng):
    steps = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    return "multiclass", rng.normal(size=(8, 2)), np.arange(8) % 4, CostMatrix(steps)


def chain(rng):
    lengths = (1, 2, 3)
    X = [rng.normal(size=(length, 2)) for length in lengths]
    return "chain", X, [np.arange(length) % 3 for length in lengths], "hamming"


def costly_chain(rng):
    return *chain(rng)[:3], CostMatrix(COSTS)


def loose_chain(rng):
    structure = structsolve.get_structure("chain", transitions=False, start_end=False)
    return structure, *chain(rng)[1:]


def sets(rng):
    structure = structsolve.get_structure("multilabel", edges="none")
    return structure, rng.normal(size=(5, 2)), rng.integers(0, 2, (5, 3)), "hamming"


def pairs(rng):
    structure = structsolve.get_structure("multilabel", edges="full")
    return structure, rng.normal(size=(5, 2)), rng.integers(0, 2, (5, 3)), "hamming"


def ranks(rng):
    Y = np.array([rng.permutation(3) for _ in range(4)])
    return "permutation", rng.normal(size=(4, 2)), Y, "spearman"


def ranks_hamming(rng):
    return *ranks(rng)[:3], "hamming"


def matchings(rng):
    structure = PermutationStructure(kind="matching")
    return structure, *structure.sample(rng, 4, 3), "hamming"


def ordinal(rng):
    return "ordinal", rng.normal(size=(8, 2)), np.arange(8) % 4, "absolute"


def thresholds(rng):
    return OrdinalStructure(thresholds=True), *ordinal(rng)[1:]


def many_classes(rng):
    """Thresholds on small features: the direction's part is no probability, and steps are long."""
    y = rng.integers(0, 9, 12)
    y[:9] = np.arange(9)
    return OrdinalStructure(thresholds=True), 0.1 * rng.normal(size=(12, 2)), y, "absolute"


def costly_thresholds(rng):
    return OrdinalStructure(thresholds=True), *classes(rng)[1:3], CostMatrix(COSTS)


MAKERS = {
    f.__name__: f
    for f in (classes, costly, ordered, chain, costly_chain, loose_chain, sets, pairs, ranks,
              ranks_hamming, matchings, ordinal, thresholds, many_classes, costly_thresholds)
}  # fmt: skip

SURROGATES = {
    "crf": CRF(),
    "sparsemap": SparseMAP(),
    "max-min": MaxMin(geometry="euclidean", max_iter=3000, tol=1e-9),
}


class Case:
    """A problem and the enumeration of all its labels."""

    def __init__(self, kind, name, seed=0, surrogate=None):
        structure, X, Y, loss = MAKERS[name](np.random.default_rng(seed))
        if isinstance(structure, str):
            structure = structsolve.get_structure(structure)
        self.kind, self.structure, self.X, self.Y, self.loss = kind, structure, X, Y, loss
        space, examples = structure.make_space(X, Y)
        self.problem = Problem(space, examples, loss, surrogate or SURROGATES[kind])
        self.problem.loss_name = loss
        self.labels, self.mu, self.truths, self.nodes, self.losses = [], [], [], [], []
        layout = space.layout
        for i in range(examples.n):
            labels = space.enumerate_labels(examples, i)
            start = examples.label_offsets[i]
            truth = examples.labels[start : start + labels.shape[1]]
            mu = np.zeros((len(labels), self.size(i)))
            for row, label in zip(mu, labels):
                index, value = calls.encode(self.problem.parts, i, label)
                np.add.at(row, index, value)
            first = layout.shared_size
            count = int(examples.offsets[i + 1] - examples.offsets[i])
            self.labels.append(labels)
            self.mu.append(mu)
            nodes = mu[:, first : first + count * layout.node_size]
            # Thresholds: the squares are those of the classes' probabilities.
            self.nodes.append(np.eye(len(mu)) if hasattr(space, "state_rows") else nodes)
            self.truths.append(int(np.flatnonzero((labels == truth).all(axis=1))[0]))
            self.losses.append(reference.loss_matrix(self.problem, i, labels))

    def size(self, i):
        return self.problem.surrogate.layout.sizes(i)[0]

    def truth(self, i):
        """Return the true label in the form of operators."""
        return self.problem.examples.label(i)

    def value(self, i, theta):
        """Return H_i by enumeration."""
        scores = (self.mu[i] - self.mu[i][self.truths[i]]) @ theta
        if self.kind == "crf":
            return reference.crf_value(scores)
        if self.kind == "max-min":
            return reference.max_min_value(scores, self.losses[i])
        truth = self.nodes[i][self.truths[i]]
        return reference.sparsemap_value(scores, self.nodes[i]) + truth @ truth / 2

    def thetas(self, i, rng):
        """Return scores from weights, at several scales."""
        for scale in (0.0, 0.3, 1.0, 5.0):
            w = scale * rng.normal(size=self.problem.dim) * self.free
            yield score(self.problem.potentials, i, w)

    @property
    def free(self):
        """Return 1 where there is a weight, 0 in padding."""
        layout = self.problem.space.layout
        w = np.zeros(layout.dim)
        for block in layout.blocks:
            layout.view(w, block.name)[...] = 1
        return w

    def features(self):
        """Return ``Phi_i' mu(y)`` of all labels."""
        columns = np.flatnonzero(self.free)
        features = []
        for i in range(self.problem.n):
            scores = np.array(
                [score(self.problem.potentials, i, e) for e in np.eye(len(self.free))[columns]]
            )
            features.append(self.mu[i] @ scores.T)
        return features

    def optimum(self, alpha):
        return reference.optimum(
            self.kind, self.features(), self.truths, self.losses, self.nodes, alpha
        )
