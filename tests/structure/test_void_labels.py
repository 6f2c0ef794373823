"""Void nodes do not count, and nodes have the users' weights."""

import numpy as np
import pytest
from checks import LOSS, refused, same
from hypothesis import given, settings
from hypothesis import strategies as st

from structsolve import ClassWeights, CostMatrix, StructuredSVM, WeightedLabels
from structsolve.plugins.mrf import MRFStructure
from structsolve.plugins.mrf.node_labels import read_labels
from structsolve.structure import calls
from structsolve.structure._weighted_losses import CountedZeroOne, WeightedNodeLoss
from structsolve.structure.ask import ask_loss, make_layout
from structsolve.structure.node_losses import NodeLoss
from structsolve.structure.pack import pack
from structsolve.testing import check_structure

RING = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])


def rings(n=8, seed=0):
    rng = np.random.default_rng(seed)
    Y = [rng.integers(0, 3, 4) for _ in range(n)]
    X = [np.eye(3)[y] + 0.7 * rng.normal(size=(4, 3)) for y in Y]
    features = [rng.normal(size=(4, 2)) for _ in range(n)]
    return X, Y, features


def without(x, edges, features, y, v):
    """Return a graph and its labels without node v."""
    stay = (edges != v).all(axis=1)
    return np.delete(x, v, 0), edges[stay] - (edges[stay] > v), features[stay], np.delete(y, v)


@pytest.mark.parametrize("one_graph", [False, True])
@pytest.mark.parametrize("tables", ["shared", "features"])
def test_training_leaves_void_nodes_and_their_edges_out(tables, one_graph):
    X, Y, features = rings(5)
    voids = [None, 0, 3, 1, None]
    kept, labels, plain = [], [], []
    for x, y, f, v in zip(X, Y, features, voids):
        y = y.copy()
        if v is None:
            cut = x, RING, f, y
        else:
            cut = without(x, RING, f, y, v)
            y[v] = 255
        parts = cut[:3] if tables == "features" else cut[:2]
        kept.append(parts)
        labels.append(cut[3])
        plain.append(y)
    given = X if one_graph else [(x, RING) for x in X]
    if tables == "features":
        given = [(*(x if isinstance(x, tuple) else (x,)), f) for x, f in zip(given, features)]
    structure = MRFStructure(RING if one_graph else None, tables, void=255)
    model = StructuredSVM(structure, alpha=0.01, tol=1e-3).fit(given, plain)
    expected = StructuredSVM(MRFStructure(tables=tables), alpha=0.01, tol=1e-3).fit(kept, labels)
    same(dict(model.coef_), dict(expected.coef_))
    assert model.classes_.tolist() == [0, 1, 2]
    predicted = model.predict(given)
    assert [len(p) for p in predicted] == [4] * 5  # void ones as any other
    counted = np.concatenate(plain) != 255
    right = np.concatenate(predicted)[counted] == np.concatenate(plain)[counted]
    assert model.score(given, plain) == pytest.approx(right.mean())


def test_void_nodes_with_states_of_their_own():
    X = [np.zeros((3, 1)), np.ones((3, 1))]
    structure = MRFStructure([[0, 1], [1, 2]], n_states=[2, 3, 4], void="?", oracle="exact")
    refused("y mixes|y holds|label", StructuredSVM(structure).fit, X, [["a", "b", "c"]] * 2)
    structure.set_params(void=-1)
    space, examples = structure.make_space(X, [[1, -1, 3], [-1, 2, 0]])
    assert examples.topology["states"].tolist() == [2, 4, 3, 4]
    assert examples.labels.tolist() == [1, 3, 2, 0]
    assert examples.topology["ends"].tolist() == [[0, 1]]
    refused("example 0, node 0: y holds the state 2", structure.make_space, X, [[2, 0, 0]] * 2)


@pytest.mark.parametrize(
    "void, Y",
    [
        (-1, [[0, 1, -1], [1, -1, 0]]),
        ([None], [[0, 1, None], [1, None, 0]]),
        (float("nan"), [[0, 1, np.nan], [1, np.nan, 0]]),
        ("void", [["a", "b", "void"], ["b", "void", "a"]]),
        (["?", None], [["a", "b", None], ["b", "?", "a"]]),
        ([254, 255], [np.array([0, 1, 254], np.uint8), np.array([1, 255, 0], np.uint8)]),
        ("void", [[0, 1, "void"], [1, "void", 0]]),
    ],
    ids=str,
)
def test_forms_of_void(void, Y):
    X = [np.array([[-1.0], [1.0], [9.0]]), np.array([[1.0], [9.0], [-1.0]])]
    model = StructuredSVM(MRFStructure([], void=void), alpha=0.01).fit(X, Y)
    assert len(model.classes_) == 2
    assert model.score(X, Y) == 1.0
    first = model.classes_.tolist()[0]
    wrong = [[first] * 3] * 2
    assert model.score(X, wrong) == pytest.approx(2 / 6)


def test_labels_that_are_no_classes_by_accident():
    X = [np.zeros((3, 1)), np.ones((3, 1))]
    fit = StructuredSVM(MRFStructure([])).fit
    refused("example 1, node 2: y holds -1.*void=-1", fit, X, [[0, 1, 1], [0, 1, -1]])
    refused("example 0, node 1: Input y contains None.*void=", fit, X, [[0, None, 1], [0, 1, 1]])
    refused("example 0, node 0: Input y contains NaN", fit, X, [[np.nan, 1, 1], [0, 1, 1]])
    refused("example 0, node 0: .* NaN", fit, X, [np.array([np.nan, 1, 1]), np.ones(3)])
    # Signs, and numbers further below, are classes; so is -1 if users say so.
    for void, Y in (
        (None, [[-1, 1, 1], [1, 1, -1]]),
        (None, [[-2, -1, 0], [0, 0, -1]]),
        ((), [[-1, 0, 1], [0, 0, 0]]),
    ):
        model = StructuredSVM(MRFStructure([], void=void), tol=0.1).fit(X, Y)
        assert model.classes_.tolist() == np.unique(Y).tolist()
        assert model.score(X, Y) <= 1
    model = StructuredSVM(MRFStructure([]), tol=0.1).fit(X, [[0, 1, 1]] * 2)
    refused("example 0, node 0: y holds -1", model.score, X, [[-1, 1, 1], [0, 1, 1]])


def test_void_everywhere():
    X = [np.zeros((2, 1)), np.ones((2, 1))]
    structure = MRFStructure([], void=-1)
    refused("all labels are void", StructuredSVM(structure).fit, X, [[-1, -1]] * 2)
    refused(
        "y, example 1: all 2 nodes are void.*leave the example out",
        StructuredSVM(structure).fit,
        X,
        [[0, 1], [-1, -1]],
    )
    model = StructuredSVM(structure, tol=0.1).fit(X, [[0, 1]] * 2)
    assert model.score(X, [model.predict(X)[0], [-1, -1]]) == 1  # counts for nothing
    refused("all labels are void", model.score, X, [[-1, -1]] * 2)
    refused(
        "void is 255, which takes edges out", MRFStructure(RING, "per-edge", void=255).check_params
    )
    refused("void is <object", MRFStructure(void=object()).check_params)


# -- losses -------------------------------------------------------------------------------------


def bound(loss, weights, normalized=False):
    """Return a loss with weights, and without, of chains of 3, 1 and 2 nodes."""
    X = [(np.zeros((k, 1)), [(v, v + 1) for v in range(k - 1)]) for k in (3, 1, 2)]
    space, examples = MRFStructure(directed=True).make_space(X, [[0, 1, 2], [1], [0, 0]])
    plain = ask_loss(space, loss)(make_layout(space, examples))
    examples.topology["node_weights"] = np.asarray(weights)
    return space, examples, plain, ask_loss(space, loss)(make_layout(space, examples))


LOSSES = ["hamming", "normalized-hamming", CostMatrix([[0, 1, 2], [3, 0, 1], [1, 5, 0]])]


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_weighted_losses_are_their_sums(data):
    loss = data.draw(st.sampled_from([*LOSSES, "zero-one"]))
    numbers = st.sampled_from([0.0, 0.5, 1.0, 3.0])
    weights = np.array(data.draw(st.lists(numbers, min_size=6, max_size=6)))
    space, examples, _, native = bound(loss, weights)
    cost = loss.cost(space.classes_) if isinstance(loss, CostMatrix) else 1 - np.eye(3)
    truths = examples.labels.copy()
    for i in range(3):
        rows = slice(*examples.offsets[i : i + 2])
        w, truth = weights[rows], truths[rows]
        label = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(w), max_size=len(w))))
        errors = w * cost[truth, label]
        expected = errors.sum()
        if loss == "normalized-hamming":
            expected = errors.sum() / w.sum() if w.sum() else 0.0
        elif loss == "zero-one":
            expected = float((errors > 0).any())
        label = label.astype(np.int32)
        assert calls.loss_value(native, i, truth, label) == pytest.approx(expected)
        size = {"normalized-hamming": w.sum() > 0, "zero-one": w.sum() > 0}
        assert native.sizes[i] == (
            w.sum() if not isinstance(loss, str) else size.get(loss, w.sum())
        )


@pytest.mark.parametrize("loss", [*LOSSES, ClassWeights({1: 4.0})], ids=str)
def test_weights_of_one_change_nothing(loss):
    X, Y, _ = rings()
    given = [(x, RING) for x in X]
    plain = StructuredSVM(MRFStructure(oracle="exact"), loss=loss, alpha=0.1, tol=1e-4)
    ones = [WeightedLabels(y, np.ones(4)) for y in Y]
    a, b = plain.fit(given, Y), StructuredSVM(**plain.get_params(deep=False)).fit(given, ones)
    for name in a.coef_:
        assert np.allclose(a.coef_[name], b.coef_[name], atol=1e-9)
    assert a.score(given, Y) == pytest.approx(b.score(given, ones))


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_conformance_of_weighted_losses(loss):
    class Weighted(MRFStructure):
        """The same nodes have the same weights at every call: the kit packs data more than once."""

        def sample(self, random_state, n=4, size=3):
            X, Y = super().sample(random_state, n, size)
            X.append((np.zeros((3, 2)), [[0, 1]]))
            Y.append(np.arange(3))
            return X, [WeightedLabels(y, 0.5 + np.arange(len(y))) for y in Y]

    # The kit's own score divides by the number of nodes: test_weighted_labels.py has this one.
    only = tuple(check for check in LOSS if check != "predict")
    check_structure(Weighted(oracle="exact"), loss=loss, n_cases=1, solvers=("bcfw",), only=only)
    structure = Weighted()
    space, examples = structure.make_space(*structure.sample(0))
    native = ask_loss(space, loss)(make_layout(space, examples))
    assert isinstance(native, WeightedNodeLoss)


def test_heavy_nodes_are_learned_first():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(30, 1)) for _ in range(10)]
    Y = [np.where(rng.random(30) < 0.3, 1, (x[:, 0] > 0).astype(int)) for x in X]
    heavy = [WeightedLabels(y, np.where(y == 1, 20.0, 1.0)) for y in Y]
    plain, more = (
        StructuredSVM(MRFStructure([]), alpha=0.1, tol=0.01).fit(X, y) for y in (Y, heavy)
    )
    balanced = StructuredSVM(
        MRFStructure([]), alpha=0.1, tol=0.01, loss=ClassWeights({1: 20.0})
    ).fit(X, Y)
    share = [np.mean(np.concatenate(m.predict(X))) for m in (plain, more, balanced)]
    assert share[1] > share[0]
    assert share[1] == pytest.approx(share[2], abs=0.05)


def test_bad_weights():
    X = [np.zeros((2, 1))]
    fit = StructuredSVM(MRFStructure([])).fit
    refused("example 0: found weights of shape .3,.", fit, X, [WeightedLabels([0, 1], np.ones(3))])
    refused("y, example 0: weights are no numbers .*, expected one finite number", fit, X,
            [WeightedLabels([0, 1], ["a", "b"])])  # fmt: skip
    refused("y is a WeightedLabels, expected a list", fit, X, WeightedLabels([[0, 1]], [[1, 1]]))
    refused("example 0, node 1: the weight is -1", fit, X, [WeightedLabels([0, 1], [1.0, -1.0])])
    refused("example 0, node 0: the weight is nan", fit, X, [WeightedLabels([0, 1], [np.nan, 1])])


def test_weights_and_void_together():
    X = [np.zeros((3, 1))]
    space, examples = MRFStructure([], void=9).make_space(
        X, [WeightedLabels([0, 9, 1], [2.0, 7.0, 3.0])]
    )
    assert examples.topology["node_weights"].tolist() == [2, 3]
    scored = pack(space, X, [WeightedLabels([0, 9, 1], [2.0, 7.0, 3.0])], unseen="extra")
    assert scored.topology["node_weights"].tolist() == [2, 0, 3]
    assert isinstance(ask_loss(space, "zero-one")(make_layout(space, scored)), CountedZeroOne)
    other = pack(space, X, [[0, 1, 1]])
    assert isinstance(ask_loss(space, "hamming")(make_layout(space, other)), NodeLoss)
    identities = [
        MRFStructure([], void=9).make_space(X, [y])[1].topology.get("identity")
        for y in ([0, 9, 1], [9, 0, 1], WeightedLabels([0, 9, 1], [1.0, 1.0, 2.0]))
    ]
    assert identities[0] != identities[2]


def test_early_stopping_and_void():
    X, Y, _ = rings(12)
    Y = [np.where(np.arange(4) == k % 4, 255, y) for k, y in enumerate(Y)]
    model = StructuredSVM(MRFStructure(RING, void=255), early_stopping=True, max_iter=5, tol=0.1)
    assert 0 <= model.fit(X, Y).history_[-1]["validation_score"] <= 1


def test_lengths_are_still_checked():
    refused(
        "example 0: X has 3 rows and y has 2 labels", read_labels, [[0, 255]], np.array([0, 3]), 255
    )
    for void in (None, 7):
        ragged = [[[0], [0, 1], 1]], np.array([0, 3]), void
        refused("y, example 0: found lists of different", read_labels, *ragged)
    refused("y is an int", read_labels, 3, np.array([0, 3]), 255)
