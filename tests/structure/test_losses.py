"""Losses over nodes: their values, how they enter the scores, and their errors."""

import numpy as np
import pytest
from checks import refused
from reference.chains import labelings

from structsolve.plugins.chain import ChainStructure
from structsolve.plugins.multiclass import MulticlassStructure
from structsolve.structure import calls
from structsolve.structure.ask import make_layout
from structsolve.structure.loss_values import losses
from structsolve.structure.losses import ClassWeights, CostMatrix
from structsolve.structure.node_losses import NodeCosts, make_node_loss
from structsolve.surrogates import calls as surrogate_calls
from structsolve.surrogates._margin import MarginRescaling
from structsolve.surrogates.task import Task

K = 3
COST = np.array([[0, 1, 2.5], [4, 0, 0.5], [3, 1, 0]])
TRUTHS = [[2, 0, 1], [1], [0, 0]]

LOSSES = {
    "hamming": lambda a, b: sum(x != y for x, y in zip(a, b)),
    "normalized-hamming": lambda a, b: sum(x != y for x, y in zip(a, b)) / len(a),
    "zero-one": lambda a, b: float(list(a) != list(b)),
    CostMatrix(COST): lambda a, b: sum(COST[x, y] for x, y in zip(a, b)),
    CostMatrix(COST, normalized=True): lambda a, b: sum(COST[x, y] for x, y in zip(a, b)) / len(a),
    ClassWeights({1: 3.0, 2: 0.0}): lambda a, b: sum([1, 3, 0][x] * (x != y) for x, y in zip(a, b)),
    ClassWeights({0: 2.0}, normalized=True): lambda a, b: (
        sum([2, 1, 1][x] * (x != y) for x, y in zip(a, b)) / len(a)
    ),
}


def chains(truths=TRUTHS, **params):
    X = [np.zeros((len(y), 2)) for y in truths]
    space, examples = ChainStructure(**params).make_space(X, truths, classes=range(K))
    return space, make_layout(space, examples)


def as_label(label):
    return np.array(label, np.int32)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("start_end", [True, False])
def test_value_and_augmented_scores(loss, start_end):
    rng = np.random.default_rng(0)
    space, layout = chains(start_end=start_end)
    native = make_node_loss(space, loss)(layout)
    native.check_truths(layout.examples.labels)
    parts = space.make_parts()(layout)
    assert native.zero_one == (loss == "zero-one")
    assert native.averaged == (
        loss == "zero-one" or "normalized" in str(loss).replace("normalized=False", "")
    )
    for i, truth in enumerate(map(as_label, TRUTHS)):
        theta = rng.normal(size=space.layout.theta_size(len(truth), len(truth) - 1))
        changed = theta.copy()
        if native.decomposes:
            constant = calls.augment(native, i, truth, 0.7, changed)
        else:
            refused("does not decompose", calls.augment, native, i, truth, 0.7, changed)
        for label in labelings(len(truth), K).astype(np.int32):
            expected = LOSSES[loss](truth, label)
            assert calls.loss_value(native, i, truth, label) == pytest.approx(expected)
            if native.decomposes:
                index, value = calls.encode(parts, i, label)
                gain = (changed - theta)[index] @ value + constant
                assert gain == pytest.approx(0.7 * expected, abs=1e-12)
        padding = np.ones_like(theta, bool)
        for view in space.layout.theta_views(padding, len(truth), len(truth) - 1).values():
            view[...] = False
        np.testing.assert_array_equal(changed[padding], theta[padding])


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_single_nodes(loss):
    y = [0, 2, 1, 2]
    space, examples = MulticlassStructure().make_space(np.zeros((4, 1)), y, classes=range(K))
    layout = make_layout(space, examples)
    native = make_node_loss(space, loss)(layout)
    for i, truth in enumerate(y):
        for s in range(K):
            value = calls.loss_value(native, i, as_label([truth]), as_label([s]))
            assert value == pytest.approx(LOSSES[loss]([truth], [s]))


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_margin_rescaling_finds_the_most_violated_label(loss, scale):
    rng = np.random.default_rng(0)
    space, layout = chains()
    parts = space.make_parts()(layout)
    surrogate = MarginRescaling(
        layout,
        space.make_oracle()(layout),
        parts,
        make_node_loss(space, loss)(layout),
        space.make_power("kbest")(layout),
    )
    keys = set()
    for _ in range(20):
        for i, truth in enumerate(TRUTHS):
            theta = scale * rng.normal(size=space.layout.theta_size(len(truth), len(truth) - 1))
            truth = np.array(truth, np.int32)

            def margin(label, i=i, theta=theta, truth=truth):
                index, value = calls.difference(parts, i, truth, label)
                return LOSSES[loss](truth, label) - theta[index] @ value

            cut = surrogate_calls.cut(surrogate, i, theta, truth)
            best = max(margin(y) for y in labelings(len(truth), K).astype(np.int32))
            assert cut.bound == pytest.approx(best, abs=1e-12)
            assert cut.b - theta[cut.index] @ cut.value == pytest.approx(best, abs=1e-12)
            keys.add(cut.key)
    assert len(keys) >= 3


def test_equal_labels_of_all_examples_have_equal_keys():
    """Caches distinguish labels by keys, which depend on the label only."""
    rng = np.random.default_rng(1)
    space, layout = chains([[1, 0, 2]] * 5)
    task, truth = Task(space, layout.examples), as_label([1, 0, 2])
    surrogate = MarginRescaling(task.layout, task.oracle, task.parts, task.loss)
    seen = set()
    for _ in range(20):
        theta = 3 * rng.normal(size=space.layout.theta_size(3, 2))
        keys = {surrogate_calls.cut(surrogate, i, theta, truth).key for i in range(5)}
        assert len(keys) == 1
        seen |= keys
    assert len(seen) >= 5


@pytest.mark.parametrize("loss", ["hamming", "normalized-hamming", "zero-one"])
def test_labels_not_seen_in_training_always_count_as_errors(loss):
    space, _ = chains()
    X = [np.zeros((2, 2)), np.zeros((1, 2))]
    examples = space.pack(X, [[1, 7], [8]], unseen="extra")
    native = make_node_loss(space, loss)(make_layout(space, examples))
    native.check_truths(examples.labels)
    for label in labelings(2, K).astype(np.int32):
        expected = LOSSES[loss]([1, -1], label)
        assert calls.loss_value(native, 0, examples.label(0), label) == pytest.approx(expected)
    for s in range(K):
        assert calls.loss_value(native, 1, examples.label(1), as_label([s])) == 1
        if native.decomposes:
            theta = np.zeros(space.layout.theta_size(1, 0))
            constant = calls.augment(native, 1, examples.label(1), 1.0, theta)
            node = space.layout.theta_views(theta, 1, 0)["node"][0]
            np.testing.assert_allclose(node + constant, 1)


def test_named_costs_do_not_apply_to_unseen_labels():
    space, _ = chains()
    examples = space.pack([np.zeros((1, 2))], [[7]], unseen="extra")
    for loss in (CostMatrix(COST), ClassWeights({0: 2.0})):
        native = make_node_loss(space, loss)(make_layout(space, examples))
        message = "example 0: loss .* has no costs for a label that was not seen"
        refused(message, native.check_truths, examples.labels)
        refused(message, losses, native, examples.labels, as_label([0]))


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_losses_of_all_examples(loss):
    space, layout = chains()
    rng = np.random.default_rng(0)
    native, examples = make_node_loss(space, loss)(layout), layout.examples
    truths = examples.labels
    assert (losses(native, truths, truths) == 0).all()
    labels = as_label(rng.integers(0, K, len(truths)))
    ends = examples.label_offsets[1:-1]
    expected = [LOSSES[loss](t, y) for t, y in zip(np.split(truths, ends), np.split(labels, ends))]
    values = losses(native, truths, labels)
    np.testing.assert_allclose(values, expected)
    with pytest.raises(ValueError, match="truths and labels have 5 and 6 entries, expected 6"):
        losses(native, truths[1:], labels)


def test_truths_that_are_no_states_are_refused():
    space, layout = chains()
    native = make_node_loss(space, "hamming")(layout)
    good = layout.examples.labels
    for bad, message in (
        (None, "labels: found None"),
        (good[:-1], "labels: found 5 states, expected 6"),
        (np.where(np.arange(6) == 3, -1, good).astype(np.int32), "example 1: found the state -1"),
        (np.where(np.arange(6) == 4, 4, good).astype(np.int32), "example 2: found the state 4"),
    ):
        refused(message, native.check_truths, bad)
    refused("at least as many rows as columns", NodeCosts, np.zeros((2, 3)))


def test_other_names_are_left_to_others():
    space, _ = chains()
    assert make_node_loss(space, "span-f1") is None
    assert make_node_loss(space, object()) is None


def test_order_of_classes():
    classes = np.array(["a", "b", "c"])
    matrix = CostMatrix(COST, classes=["c", "a", "b"]).cost(classes)
    assert matrix[0, 2] == COST[1, 0] and matrix[2, 1] == COST[0, 2]
    more = CostMatrix(COST, classes=["c", "a", "b"]).cost(classes[[0, 2]])
    np.testing.assert_array_equal(more, [[0, COST[1, 0]], [COST[0, 1], 0]])
    np.testing.assert_array_equal(CostMatrix(COST).cost(classes), COST)


@pytest.mark.pandas
def test_names_of_a_data_frame_of_costs():
    classes = np.array(["a", "b", "c"])
    frame = pytest.importorskip("pandas").DataFrame(COST, list("abc"), list("abc"))
    np.testing.assert_array_equal(CostMatrix(frame).cost(classes), COST)
    turned = frame.loc[["c", "a", "b"], ["c", "a", "b"]]
    for wrong in (turned, turned[["a", "b", "c"]], turned.T[["a", "b", "c"]].T):
        refused("CostMatrix: matrix: found the columns", CostMatrix(wrong).cost, classes)
    named = CostMatrix(turned, classes=["c", "a", "b"]).cost(classes)
    np.testing.assert_array_equal(named, COST)
    refused("columns", CostMatrix(frame, classes=["c", "a", "b"]).cost, classes)


@pytest.mark.parametrize(
    "loss, message",
    [
        (CostMatrix([[0, 1]]), r"shape \(1, 2\), expected a square"),
        (CostMatrix([[0, 1], [1, 0]]), r"shape \(2, 2\), expected \(3, 3\)"),
        (CostMatrix(-COST), "expected finite costs of at least 0"),
        (CostMatrix(COST + 1), "0 on the diagonal"),
        (CostMatrix(COST + np.nan), "expected finite costs"),
        (CostMatrix(COST + 0j), "CostMatrix: matrix: found no array .*Complex data"),
        (CostMatrix(COST, classes=[0, 1]), "2 distinct classes for a matrix of 3 rows"),
        (CostMatrix(COST, classes=[0, 1, 1]), "2 distinct classes for a matrix of 3 rows"),
        (CostMatrix(COST, classes=[0, 1, 5]), r"no costs for the classes \[2\]"),
        (ClassWeights({5: 1.0}), r"unknown classes \[5\]; known: \[0, 1, 2\]"),
        (ClassWeights({0: -1.0}), "expected finite weights of at least 0"),
        (ClassWeights({0: np.inf}), "expected finite weights of at least 0"),
        (ClassWeights([1.0]), "expected a dict of class to weight"),
    ],
)
def test_bad_costs(loss, message):
    refused(message, make_node_loss, chains()[0], loss)


def test_bad_arguments_are_refused():
    space, layout = chains()
    native, truth = make_node_loss(space, "hamming")(layout), layout.examples.label(0)
    for label in (None, [0, 0, 0], np.zeros(3), -np.ones(3, np.int32), np.zeros((1, 3), np.int32)):
        refused("label: ", calls.loss_value, native, 0, truth, label)
    refused("example -1", calls.loss_value, native, -1, truth, np.zeros(3, np.int32))
    theta = np.zeros(space.layout.theta_size(3, 2))
    theta.flags.writeable = False
    refused("read-only", calls.augment, native, 0, truth, 1.0, theta)
    for size, states in ((2, 0), (4, 0), (3, K)):
        refused("label: ", calls.loss_value, native, 0, truth, np.full(size, states, np.int32))
    refused("example 3", calls.loss_value, native, 3, truth, np.zeros(2, np.int32))
    refused("theta: ", calls.augment, native, 0, truth, 1.0, np.zeros(theta.size - 1))
