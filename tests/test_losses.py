"""Losses over nodes: their value, how they enter the scores, and what they refuse."""

import numpy as np
import pytest
from reference.chains import labelings

from structsolve.structure import calls

from structsolve.surrogates import calls as surrogate_calls
from structsolve.structure.losses import ClassWeights, CostMatrix
from structsolve.structure.node_losses import make_node_loss
from structsolve.plugins.chain import ChainStructure, structsolve_oracle, structsolve_parts
from structsolve.plugins.multiclass import MulticlassStructure
from structsolve.potentials.linear import LinearPotentials
from structsolve.surrogates._margin import MarginRescaling

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
    space = ChainStructure(**params).make_space(X, truths, classes=range(K))
    return space, space.pack(X, truths)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("start_end", [True, False])
def test_value_and_augmented_scores(loss, start_end):
    rng = np.random.default_rng(0)
    space, examples = chains(start_end=start_end)
    native = make_node_loss(space, examples, loss)
    parts = structsolve_parts(space, examples)
    assert native.zero_one == (loss == "zero-one")
    assert native.averaged == (
        loss == "zero-one" or "normalized" in str(loss).replace("normalized=False", "")
    )
    for i, truth in enumerate(TRUTHS):
        theta = rng.normal(size=space.layout.theta_size(len(truth), len(truth) - 1))
        changed = theta.copy()
        if native.decomposes:
            constant = calls.augment(native, i, 0.7, changed)
        else:
            with pytest.raises(ValueError, match="does not decompose"):
                calls.augment(native, i, 0.7, changed)
        for label in labelings(len(truth), K).astype(np.int32):
            expected = LOSSES[loss](truth, label)
            assert calls.loss_value(native, i, label) == pytest.approx(expected)
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
    space = MulticlassStructure().make_space(np.zeros((4, 1)), y, classes=range(K))
    native = make_node_loss(space, space.pack(np.zeros((4, 1)), y), loss)
    for i, truth in enumerate(y):
        for s in range(K):
            found = calls.loss_value(native, i, np.array([s], np.int32))
            assert found == pytest.approx(LOSSES[loss]([truth], [s]))


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_margin_rescaling_finds_the_most_violated_label(loss, scale):
    rng = np.random.default_rng(0)
    space, examples = chains()
    parts = structsolve_parts(space, examples)
    surrogate = MarginRescaling(
        LinearPotentials(examples, space.layout),
        structsolve_oracle(space, examples),
        parts,
        make_node_loss(space, examples, loss),
        examples.labels,
        examples.label_offsets,
    )
    keys = set()
    for _ in range(20):
        for i, truth in enumerate(TRUTHS):
            theta = scale * rng.normal(size=space.layout.theta_size(len(truth), len(truth) - 1))
            truth = np.array(truth, np.int32)

            def margin(label, i=i, theta=theta, truth=truth):
                index, value = calls.difference(parts, i, truth, label)
                return LOSSES[loss](truth, label) - theta[index] @ value

            cut = surrogate_calls.cut(surrogate, i, theta)
            best = max(margin(y) for y in labelings(len(truth), K).astype(np.int32))
            assert cut.bound == pytest.approx(best, abs=1e-12)
            assert cut.b - theta[cut.index] @ cut.value == pytest.approx(best, abs=1e-12)
            keys.add(cut.key)
    assert len(keys) >= 3


@pytest.mark.parametrize("loss", ["hamming", "normalized-hamming", "zero-one"])
def test_labels_not_seen_in_training_always_count_as_errors(loss):
    space, _ = chains()
    X = [np.zeros((2, 2)), np.zeros((1, 2))]
    examples = space.pack(X, [[1, 7], [8]], unseen="extra")
    native = make_node_loss(space, examples, loss)
    for label in labelings(2, K).astype(np.int32):
        expected = LOSSES[loss]([1, -1], label)
        assert calls.loss_value(native, 0, label) == pytest.approx(expected)
    for s in range(K):
        assert calls.loss_value(native, 1, np.array([s], np.int32)) == 1
        if native.decomposes:
            theta = np.zeros(space.layout.theta_size(1, 0))
            constant = calls.augment(native, 1, 1.0, theta)
            node = space.layout.theta_views(theta, 1, 0)["node"][0]
            np.testing.assert_allclose(node + constant, 1)


def test_named_costs_do_not_apply_to_unseen_labels():
    space, _ = chains()
    examples = space.pack([np.zeros((1, 2))], [[7]], unseen="extra")
    for loss in (CostMatrix(COST), ClassWeights({0: 2.0})):
        with pytest.raises(ValueError, match="no costs for a label that was not seen"):
            make_node_loss(space, examples, loss)


def test_other_names_are_left_to_others():
    assert make_node_loss(*chains(), "span-f1") is None
    assert make_node_loss(*chains(), object()) is None


def test_order_of_classes():
    classes = np.array(["a", "b", "c"])
    matrix = CostMatrix(COST, classes=["c", "a", "b"]).cost(classes)
    assert matrix[0, 2] == COST[1, 0] and matrix[2, 1] == COST[0, 2]
    more = CostMatrix(COST, classes=["c", "a", "b"]).cost(classes[[0, 2]])
    np.testing.assert_array_equal(more, [[0, COST[1, 0]], [COST[0, 1], 0]])
    np.testing.assert_array_equal(CostMatrix(COST).cost(classes), COST)


@pytest.mark.parametrize(
    "loss, message",
    [
        (CostMatrix([[0, 1]]), r"shape \(1, 2\), expected a square"),
        (CostMatrix([[0, 1], [1, 0]]), r"shape \(2, 2\), expected \(3, 3\)"),
        (CostMatrix(-COST), "expected finite costs of at least 0"),
        (CostMatrix(COST + 1), "0 on the diagonal"),
        (CostMatrix(COST + np.nan), "expected finite costs"),
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
    with pytest.raises(ValueError, match=message):
        make_node_loss(*chains(), loss)


def test_bad_arguments_are_refused():
    space, examples = chains()
    native = make_node_loss(space, examples, "hamming")
    for label in (None, [0, 0, 0], np.zeros(3), -np.ones(3, np.int32), np.zeros((1, 3), np.int32)):
        with pytest.raises(ValueError, match="label: "):
            calls.loss_value(native, 0, label)
    with pytest.raises(ValueError, match="example -1"):
        calls.loss_value(native, -1, np.zeros(3, np.int32))
    theta = np.zeros(space.layout.theta_size(3, 2))
    theta.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        calls.augment(native, 0, 1.0, theta)
    if not hasattr(native, "limits"):
        return
    for size, states in ((2, 0), (4, 0), (3, K)):
        with pytest.raises(ValueError, match="label: "):
            calls.loss_value(native, 0, np.full(size, states, np.int32))
    with pytest.raises(ValueError, match="example 3"):
        calls.loss_value(native, 3, np.zeros(2, np.int32))
    with pytest.raises(ValueError, match="theta: "):
        calls.augment(native, 0, 1.0, np.zeros(theta.size - 1))
