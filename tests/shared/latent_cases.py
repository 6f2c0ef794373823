"""LatentSVM by brute force, and chains that need hidden states."""

import itertools

import numpy as np

from structsolve import get_structure
from structsolve.potentials.calls import score
from structsolve.solvers.problem import Problem
from structsolve.structure.calls import encode

SETS = (set, tuple, list, np.ndarray)


def sampled(name, seed, n=5, size=2, partial=0.0):
    """Small random examples of classes 0, 1, 2; some labels are sets, tuples, arrays or None."""
    rng = np.random.default_rng(seed)
    structure = get_structure(name)
    X, Y = structure.sample(int(rng.integers(2**31)), n=n, size=size)
    sizes = [1] * n if structure.single_node else [len(y) for y in Y]
    entries = [*rng.permutation(3).tolist(), *rng.integers(0, 3, sum(sizes) - 3).tolist()]
    for v in range(3, len(entries)):
        members = rng.permutation(3)[: rng.integers(1, 4)].tolist()
        kind = [set, tuple, list, np.array, lambda members: None][rng.integers(5)]
        entries[v] = kind(members) if rng.random() < partial else entries[v]
    if structure.single_node:
        return X, entries
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return X, [entries[a:b] for a, b in zip(starts[:-1], starts[1:])]


class BruteForce:
    """Return the objective and its terms by enumeration of all labels, from the definition."""

    def __init__(self, model, X, Y, n_hidden, cost, weights, normalized=False):
        space = model.space_
        owner = np.repeat(np.arange(3), n_hidden)
        examples = space.stack(X)
        examples.labels = np.zeros(int(examples.offsets[-1]), np.int32)
        self.problem = Problem(space, examples)
        entries = Y if space.structure.single_node else list(itertools.chain(*Y))
        self.labels, self.parts, self.losses, self.allowed = [], [], [], []
        for i in range(examples.n):
            labels = space.enumerate_labels(examples, i)
            nodes = entries[examples.offsets[i] : examples.offsets[i + 1]]
            loss, allowed = np.zeros(len(labels)), np.ones(len(labels), dtype=bool)
            for v, entry in enumerate(nodes):
                truths = (
                    [0, 1, 2]
                    if entry is None
                    else np.ravel(list(entry) if isinstance(entry, SETS) else entry)
                )
                predicted = owner[labels[:, v]]
                loss += np.min([cost[truth][predicted] for truth in truths], axis=0)
                allowed &= np.isin(predicted, truths)
            rows = np.zeros((len(labels), self.problem.task.layout.sizes(i)[0]))
            for row, label in zip(rows, labels):
                np.add.at(row, *encode(self.problem.parts, i, label))
            self.labels.append(labels)
            self.parts.append(rows)
            self.losses.append(loss / len(nodes) if normalized else loss)
            self.allowed.append(allowed)
        self.weights = weights / weights.sum()

    def scores(self, i, w):
        return self.parts[i] @ score(self.problem.potentials, i, w)

    def completion(self, i, w):
        return self.scores(i, w)[self.allowed[i]].max()

    def objective(self, w, alpha):
        terms = [
            (self.losses[i] + self.scores(i, w)).max() - self.completion(i, w)
            for i in range(len(self.labels))
        ]
        return 0.5 * alpha * w @ w + self.weights @ terms


def xor_chains(n, seed, noise=0.5):
    """Chains of 12 nodes in runs of 3; class a has the modes +-(1, 1), class b +-(1, -1)."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        y, h = np.repeat(rng.integers(0, 2, 4), 3), 2 * rng.integers(0, 2, 12) - 1
        modes = np.stack([np.ones(12), np.where(y == 0, 1, -1)], axis=1) * h[:, None]
        X.append(modes + noise * rng.normal(size=(12, 2)))
        Y.append(np.array(["a", "b"])[y])
    return X, Y
