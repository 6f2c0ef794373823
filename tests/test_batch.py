"""structsolve.batch: surrogates, labels and marginals where scores are given."""

import numpy as np
import pytest
from batch_cases import KINDS, random_batch, theta_of

from structsolve import registry
from structsolve.batch import argmax, marginals, value_and_gradient
from structsolve.lp import ask_oracle
from structsolve.structure import calls
from structsolve.structure.ask import ask_projection, make_layout
from structsolve.surrogates.calls import cut
from structsolve.surrogates.task import Task

SURROGATES = ["margin", "slack", "crf", "sparsemap", "probloss", "unit-margin", "max-min"]


def reference(space, scores, labels, surrogate, loss="hamming", weights=None):
    """Values and gradients, example by example, by the surrogate's cuts."""
    examples = scores.examples
    examples.labels = labels
    task = Task(space, examples, loss)
    bound = registry.default().make("surrogates", surrogate).bind(task)
    examples.labels = None
    values, dense = [], []
    for i in range(examples.n):
        theta = theta_of(space, scores, task.layout, i)
        truth = labels[examples.label_offsets[i] : examples.label_offsets[i + 1]]
        answer = cut(bound, i, theta, truth)
        gradient = np.zeros(len(theta))
        np.subtract.at(gradient, answer.index, answer.value)
        values.append(answer.bound)
        dense.append(gradient * (1 if weights is None else weights[i]))
    return np.array(values), dense


def blocks_of(space, scores, dense):
    """The arrays of gradients: rows in their places, shared blocks summed."""
    examples, layout = scores.examples, space.layout
    node, edge = (None if x is None else np.zeros(x.shape) for x in (scores.node, scores.edge))
    shared = {name: np.zeros(array.shape) for name, array in scores.shared.items()}
    edges = np.zeros(examples.n + 1, int) if edge is None else examples.edge_offsets
    rows = examples.offsets if scores.rows is None else scores.rows
    edge_rows = edges if scores.edge_rows is None else scores.edge_rows
    for i, theta in enumerate(dense):
        n, m = int(np.diff(examples.offsets)[i]), int(np.diff(edges)[i])
        for name, view in layout.theta_views(theta, n, m).items():
            kind = layout.block(name).kind
            if kind == "shared":
                shared[name] += view
            elif kind == "node":
                node[rows[i] : rows[i] + n] = view
            else:
                edge[edge_rows[i] : edge_rows[i] + m] = view
    return node, shared, edge


def assert_equal_blocks(gradient, expected, rtol=1e-9, atol=1e-9):
    node, shared, edge = expected
    for got, wanted in ((gradient.node, node), (gradient.edge, edge)):
        assert (got is None) == (wanted is None)
        if got is not None:
            np.testing.assert_allclose(got, wanted, rtol, atol)
    assert gradient.shared.keys() == shared.keys()
    for name, wanted in shared.items():
        np.testing.assert_allclose(gradient.shared[name], wanted, rtol, atol)


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("padded", [False, True])
def test_equals_cuts_one_by_one(kind, surrogate, padded):
    rng = np.random.default_rng(sum(map(ord, kind + surrogate)) + padded)
    for _ in range(3):
        space, scores, labels = random_batch(kind, rng, padded=padded)
        weights = rng.normal(size=4)
        values, gradient = value_and_gradient(space, scores, labels, surrogate, weights=weights)
        expected, dense = reference(space, scores, labels, surrogate, weights=weights)
        np.testing.assert_allclose(values, expected, 1e-9, 1e-9)
        assert_equal_blocks(gradient, blocks_of(space, scores, dense))


@pytest.mark.parametrize("kind", KINDS)
def test_labels_and_marginals(kind):
    rng = np.random.default_rng(3)
    for padded in (False, True):
        space, scores, _ = random_batch(kind, rng, padded=padded)
        layout = make_layout(space, scores.examples)
        labels, values, bounds = argmax(space, scores)
        oracle = ask_oracle(space)(layout)
        projection = ask_projection(space, "entropy")(layout)
        answer, log_partition = marginals(space, scores)
        dense = []
        for i in range(4):
            theta = theta_of(space, scores, layout, i)
            label, value, bound = calls.argmax(oracle, i, theta)
            mine = labels[scores.examples.label_offsets[i] : scores.examples.label_offsets[i + 1]]
            assert mine.tolist() == label.tolist()
            assert (values[i], bounds[i]) == (value, bound)
            own = calls.project(projection, i, theta)
            dense.append(own[0])
            assert log_partition[i] == own[1]
            for block in space.layout.shared:
                views = space.layout.theta_views(own[0], 0, 0)
                np.testing.assert_array_equal(answer.shared[block.name][i], views[block.name])
        node, _, edge = blocks_of(space, scores, dense)
        np.testing.assert_array_equal(answer.node, node)
        if edge is not None:
            np.testing.assert_array_equal(answer.edge, edge)


@pytest.mark.parametrize("kind", ["chain with edges", "dependency", "multilabel with pairs"])
@pytest.mark.parametrize("surrogate", ["margin", "crf"])
def test_threads_change_no_bit(kind, surrogate):
    rng = np.random.default_rng(4)
    space, scores, labels = random_batch(kind, rng, n=50)
    scores.node += rng.normal(size=scores.node.shape)
    weights = rng.normal(size=50)
    first = None
    for n_jobs in (1, 2, 3, 4):
        answer = value_and_gradient(
            space, scores, labels, surrogate, weights=weights, n_jobs=n_jobs
        )
        arrays = [answer[0], answer[1].node, answer[1].edge, *answer[1].shared.values()]
        bits = [b"" if array is None else array.tobytes() for array in arrays]
        first = bits if first is None else first
        assert bits == first
