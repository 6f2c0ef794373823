"""A plugin for contract 1.0 of structsolve, by its former hooks and methods."""

import json

import numpy as np
from scipy import sparse

from structsolve.plugin import (
    Block,
    CutSurrogate,
    Examples,
    Lazy,
    Named,
    NodeSpace,
    Polytope,
    Polytopes,
    Reader,
    Structure,
    TaskLoss,
    WeightLayout,
    flatten,
    hookimpl,
    learn_classes,
    stack_rows,
)
from structsolve.plugins.multilabel import MultilabelSpace, MultilabelStructure
from structsolve.structure import calls

STRUCTSOLVE_CONTRACT = "1.0"

wrapped = []  # what the wrappers below were given


class StepsStructure(Structure):
    """Sequences of ordered classes that never fall: X is a list of arrays, Y of label lists."""

    name = "steps"

    def make_space(self, X, Y, classes=None, fit_intercept=True):
        nodes, offsets = stack_rows(X)
        flat = flatten(Y, offsets)
        classes = learn_classes(flat, classes)
        space = StepsSpace(self, classes, nodes.shape[1], fit_intercept)
        return space, Examples(offsets, nodes, space.encode(flat, offsets))

    def space_from_state(self, state, arrays):
        return StepsSpace(self, arrays["classes"], **state)

    def sample(self, random_state, n=4, size=3):
        rng = np.random.default_rng(random_state)
        lengths = rng.integers(1, size + 1, n)
        X = [rng.integers(-2, 3, (length, 2)).astype(float) for length in lengths]
        return X, [np.sort(rng.integers(0, 3, length)) for length in lengths]


class StepsSpace(NodeSpace):
    """Steps over given classes and features."""

    def __init__(self, structure, classes, n_features, intercept):
        blocks = [Block("node", "node", (len(classes),), ("class",))]
        super().__init__(structure, WeightLayout(blocks, n_features, 0, intercept), classes)

    def stack(self, X):
        nodes, offsets = stack_rows(X, self.layout.n_features)
        return Examples(offsets, nodes)

    def contains(self, label, examples, i):
        return bool((np.diff(label) >= 0).all())

    def parts(self, examples, i, label):
        return {"node": np.eye(len(self.classes_))[label]}

    def argmax(self, examples, i, theta):
        best, origins = theta["node"][0], []
        for row in theta["node"][1:]:
            top = np.array([best[: k + 1].argmax() for k in range(len(best))])
            origins.append(top)
            best = best[top] + row
        label = [int(best.argmax())]
        for top in reversed(origins):
            label.append(int(top[label[-1]]))
        return label[::-1]


class StepsPolytopes(Polytopes):
    """One simplex a row, whose upper classes gain from row to row."""

    exact = True
    note = "a dynamic program over an order"

    def __init__(self, space, examples):
        self.n_classes, self.lengths = len(space.classes_), np.diff(examples.offsets)
        self.stride = space.layout.node.stride

    def key(self, i):
        return int(self.lengths[i])

    def build(self, i):
        L, K = int(self.lengths[i]), self.n_classes
        one = sparse.kron(sparse.eye(L), np.ones((1, K)))
        upper = np.array([np.arange(K) >= k for k in range(1, K)], dtype=float)
        gain = sparse.kron(sparse.eye(L - 1, L, 1) - sparse.eye(L - 1, L), upper)
        A = sparse.csr_matrix(sparse.vstack([one, gain]))
        low = np.concatenate([np.ones(L), np.zeros((L - 1) * (K - 1))])
        high = np.concatenate([np.ones(L), np.ones((L - 1) * (K - 1))])
        parts = (self.stride * np.arange(L)[:, None] + np.arange(K)).ravel()
        return Polytope(A, low, high, parts, lambda x: x.reshape(L, K).argmax(1).astype(np.int32))


class TagsStructure(MultilabelStructure):
    """Label sets, of which a subclass of their space overrides methods."""

    name = "tags"

    def make_space(self, X, Y, classes=None, fit_intercept=True):
        space, examples = super().make_space(X, Y, classes, fit_intercept)
        space.__class__ = TagsSpace
        return space, examples


class TagsSpace(MultilabelSpace):
    """Counts how often its methods are called."""

    made = []

    def make_max_min(self, loss, layout):
        projection = super().make_max_min(loss, layout)
        self.made.append(type(projection).__name__)
        return projection

    def make_polytopes(self, examples):
        polytopes = super().make_polytopes(examples)
        self.made.append(type(polytopes).__name__)
        return polytopes


class Falls(TaskLoss):
    """The number of wrong rows, times a factor."""

    def __init__(self, factor=1.0):
        self.factor = factor

    def loss(self, space, examples, i, truth, label):
        return self.factor * float((truth != label).sum())

    def loss_costs(self, space, examples, i, truth):
        return {"node": self.factor * (1.0 - np.eye(len(space.classes_))[truth])}, 0.0


class Perceptron(CutSurrogate):
    """What the best label scores above the true one."""

    name = "steps-perceptron"

    def cut(self, task, i, theta, truth):
        label, _, _ = calls.argmax(task.oracle, i, theta)
        return (*calls.difference(task.parts, i, truth, label), 0.0)


class StepsReader(Reader):
    """An example a line: {"x": rows of numbers, "y": labels}."""

    endings = (".steps",)

    def fit(self, path):
        return self.read(path)

    def read(self, path):
        lines = [json.loads(line) for line in self.lines(path)]
        return [np.array(line["x"], float) for line in lines], [line["y"] for line in lines]


def first_right(estimator, X, y):
    """The share of sequences whose first label is right."""
    return float(np.mean([a[0] == b[0] for a, b in zip(estimator.predict(X), y)]))


@hookimpl
def structsolve_structures():
    return [
        Named("steps", StepsStructure, "sequences that never fall"),
        Named("tags", TagsStructure, "label sets"),
    ]


@hookimpl(trylast=True)
def structsolve_polytope(space, examples):
    if isinstance(space, StepsSpace):
        return StepsPolytopes(space, examples)


@hookimpl(wrapper=True)
def structsolve_max_min(space, loss, layout):
    made = yield
    wrapped.append(type(made).__name__)
    return made


@hookimpl
def structsolve_loss(space, loss):
    if loss == "falls" and isinstance(space, NodeSpace):
        return Falls(2.0).bind(space)


@hookimpl
def structsolve_loss_names():
    return ["falls"]


@hookimpl
def structsolve_losses():
    return [Named("Falls", Falls, "wrong rows, times a factor")]


@hookimpl
def structsolve_surrogates():
    return [Named("steps-perceptron", Perceptron, "structured perceptron")]


@hookimpl
def structsolve_metrics():
    return [Named("first-right", lambda: first_right, "share of first labels")]


@hookimpl
def structsolve_readers():
    return [Named("steps", StepsReader, "a line of JSON an example")]


@hookimpl
def structsolve_estimators():
    return [Named("StepsCount", Lazy("structsolve_steps_shell:StepsCount"), "the commonest class")]
