"""Segmentation (semi-Markov): sequences are cut into labelled spans of bounded length."""

from itertools import chain, product

import numpy as np

from structsolve import Block, Examples, Named, Space, Structure, WeightLayout, hookimpl
from structsolve.examples import labels, packing


class SegmentStructure(Structure):
    """X is a list of feature matrices (length, d), Y a list of lists of spans (class, length)."""

    name = "segments"

    def __init__(self, max_length=4):
        self.max_length = max_length

    def make_space(self, X, Y, classes=None, fit_intercept=True):
        names = labels.learn_classes(np.array([name for name, _ in chain(*Y)]), classes)
        space = SegmentSpace(self, names, np.shape(X[0])[1], fit_intercept)
        return space, space.pack(X, Y)

    def space_from_state(self, state, arrays):
        return SegmentSpace(self, arrays["classes"], **state)

    def sample(self, random_state, n=4, size=3):
        rng = np.random.default_rng(random_state)
        X = [rng.integers(-2, 3, (k, 2)).astype(float) for k in rng.integers(1, size + 1, n)]
        return X, [[(int(c), 1) for c in rng.integers(2, size=len(x))] for x in X]


class SegmentSpace(Space):
    """A position is encoded as twice the number of its class, and 1 more where a span begins."""

    def __init__(self, structure, classes, n_features, intercept):
        K, self.most = len(classes), structure.max_length
        blocks = [
            Block("transition", "shared", (K, K), ("class", "class")),
            Block("length", "shared", (K, self.most), ("class", "length")),
            Block("node", "node", (K,), ("class",)),  # summed over the positions of a span
        ]
        super().__init__(structure, WeightLayout(blocks, n_features, intercept=intercept))
        self.classes_ = classes

    def pack(self, X, Y=None, unseen="error"):
        rows, offsets = packing.stack_rows(X, self.layout.n_features)
        examples = Examples(offsets, rows)
        if Y is not None:
            for i, (spans, length) in enumerate(zip(Y, np.diff(offsets), strict=True)):
                sizes = [size for _, size in spans]
                if sum(sizes) != length or not set(sizes) <= set(range(1, self.most + 1)):
                    raise ValueError(f"example {i}: {spans} do not make up {length} positions")
            names, sizes = zip(*chain(*Y))
            extra = len(self.classes_) if unseen == "extra" else None
            states = labels.encode(np.repeat(names, sizes), self.classes_, offsets, extra)
            examples.labels = 2 * states
            examples.labels[np.cumsum((0, *sizes[:-1]))] += 1
        return examples

    def spans(self, label):
        begins = np.flatnonzero(label % 2)
        return label[begins] // 2, np.diff(begins, append=len(label))

    def unpack_one(self, label, examples, i):
        classes, sizes = self.spans(label)
        return list(zip(self.classes_[classes].tolist(), sizes.tolist()))

    def enumerate_labels(self, examples, i):
        states = range(2 * len(self.classes_))
        every = np.array([*product(states, repeat=np.diff(examples.offsets)[i])], dtype=np.int32)
        same = (np.diff(every // 2) == 0) | (every[:, 1:] % 2 == 1)
        every = every[same.all(axis=1) & (every[:, 0] % 2 == 1)]
        return np.array([y for y in every if self.spans(y)[1].max() <= self.most])

    def parts(self, examples, i, label):
        pairs, length, _ = (np.zeros(block.shape) for block in self.layout.blocks)
        classes, sizes = self.spans(label)
        np.add.at(pairs, (classes[:-1], classes[1:]), 1)
        np.add.at(length, (classes, sizes - 1), 1)
        return {"transition": pairs, "length": length, "node": np.eye(len(pairs))[label // 2]}

    def argmax(self, examples, i, theta):
        n, K = theta["node"].shape
        best, back = np.full((n + 1, K), -np.inf), [None]
        best[0, 0] = 0  # nothing before the first span
        for end in range(1, n + 1):
            span, scores = np.zeros(K), []
            for size in range(1, min(end, self.most) + 1):
                span = span + theta["node"][end - size]
                link = theta["transition"] if size < end else 0
                span_score = span + theta["length"][:, size - 1]
                scores.append(best[end - size, :, None] + link + span_score)
            scores = np.reshape(scores, (-1, K))  # rows: size and class before
            back.append(scores.argmax(axis=0))
            best[end] = scores.max(axis=0)
        label, end, c = np.zeros(n, np.int32), n, best[n].argmax()
        while end:
            size, before = divmod(back[end][c], K)
            label[end - size - 1 : end] = 2 * c
            end, c = end - size - 1, before
            label[end] += 1
        return label

    def loss(self, examples, i, truth, label):
        return (truth // 2 != label // 2).sum()

    def loss_costs(self, examples, i, truth):
        return {"node": 1 - np.eye(len(self.classes_) + 1)[truth // 2, :-1]}, 0.0


@hookimpl
def structsolve_structures():
    return [Named("segments", SegmentStructure, "sequences cut into labelled spans")]
