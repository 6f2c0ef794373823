"""Weights of nodes of chains and trees; for graphs and pictures, see test_void_labels."""

import pickle

import numpy as np
import pytest
from checks import LOSS, refused
from sklearn.base import clone

import structsolve
from structsolve import (
    ClassWeights,
    ConditionalRiskMinimizer,
    CostMatrix,
    LatentSVM,
    StructuredSVM,
    StructuredSVMCV,
    WeightedLabels,
    get_structure,
)
from structsolve.plugins.chain import ChainStructure
from structsolve.plugins.mrf import MRFStructure
from structsolve.plugins.tree import TreeStructure
from structsolve.structure._weighted_losses import CountedZeroOne, WeightedNodeLoss
from structsolve.structure.ask import ask_loss, make_layout
from structsolve.structure.calls import loss_value
from structsolve.structure.pack import learn_space
from structsolve.testing import check_structure

LOSSES = [
    "hamming",
    "normalized-hamming",
    ClassWeights({1: 4.0}),
    CostMatrix([[0, 1, 2], [3, 0, 1], [1, 1, 0]], normalized=True),
]


def heavier(Y):
    """Return labels whose nodes have increasing weights, and some weight 0."""
    return [WeightedLabels(y, np.arange(len(y)) % 3 * 0.75) for y in Y]


class WeightedChains(ChainStructure):
    """Chains whose nodes have different weights."""

    def sample(self, random_state, n=4, size=3):
        X, Y = super().sample(random_state, n, size)
        return X, heavier(Y)


class WeightedTrees(TreeStructure):
    """Trees whose nodes have different weights."""

    def sample(self, random_state, n=4, size=3):
        X, Y = super().sample(random_state, n, size)
        return X, heavier(Y)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("kind", [WeightedChains, WeightedTrees])
def test_conformance(kind, loss):
    # The kit's own score divides by the number of nodes: test_values has this one.
    only = tuple(check for check in LOSS if check != "predict")
    check_structure(kind(), loss=loss, n_cases=2, solvers=("bcfw",), only=only)
    space, examples = kind().make_space(*kind().sample(0))
    assert isinstance(ask_loss(space, loss)(make_layout(space, examples)), WeightedNodeLoss)


@pytest.mark.parametrize("structure", ["chain", "tree", "mrf"])
def test_values(structure):
    rng = np.random.default_rng(0)
    X, Y = get_structure(structure).sample(1, 6, 4)
    given = heavier(Y)
    space, examples = learn_space(get_structure(structure), X, given)
    layout, K = make_layout(space, examples), len(space.classes_)
    cost = rng.random((K, K))
    np.fill_diagonal(cost, 0)
    names = space.classes_.tolist()
    for loss, table, mean in [
        ("hamming", 1 - np.eye(K), False),
        ("normalized-hamming", 1 - np.eye(K), True),
        (CostMatrix(cost, names), cost, False),
        ("zero-one", None, None),
    ]:
        native = ask_loss(space, loss)(layout)
        for i in range(examples.n):
            truth, weights = examples.label(i), np.asarray(given[i].weights)
            for _ in range(20):
                label = rng.integers(0, K, len(truth)).astype(np.int32)
                if loss == "zero-one":
                    assert isinstance(native, CountedZeroOne)
                    expected = float(((truth != label) & (weights > 0)).any())
                else:
                    expected = weights @ table[truth, label]
                    expected /= (weights.sum() or 1.0) if mean else 1.0
                assert loss_value(native, i, truth, label) == pytest.approx(expected)


@pytest.mark.parametrize("loss", [*LOSSES[:3], "zero-one"], ids=str)
@pytest.mark.parametrize("structure", ["chain", "tree"])
def test_weights_of_one_change_nothing(structure, loss):
    X, Y = get_structure(structure).sample(0, 8, 5)
    plain = StructuredSVM(structure, loss=loss, alpha=0.1, tol=1e-4)
    ones = [WeightedLabels(y, np.ones(len(y))) for y in Y]
    a, b = clone(plain).fit(X, Y), clone(plain).fit(X, ones)
    # Sums in another order may break ties differently: the optimum is the same.
    assert a.history_[-1]["primal"] == pytest.approx(b.history_[-1]["primal"], rel=2e-4)
    assert a.score(X, Y) == pytest.approx(a.score(X, ones))


@pytest.mark.parametrize("solver", ["bcfw", "cutting-plane"])
@pytest.mark.parametrize("surrogate", ["margin", "slack", "max-min"])
def test_chains_train_as_graphs_do(surrogate, solver):
    rng = np.random.default_rng(3)
    X, Y = ChainStructure(start_end=False).sample(2, 8, 5)
    graphs = [(x, np.array([[v, v + 1] for v in range(len(x) - 1)]).reshape(-1, 2)) for x in X]
    given = [WeightedLabels(y, rng.integers(0, 4, len(y))) for y in Y]
    base = StructuredSVM(
        ChainStructure(start_end=False), surrogate=surrogate, solver=solver, alpha=0.1, tol=1e-6,
        max_iter=300,
    )  # fmt: skip
    graph = MRFStructure(directed=True, oracle="exact")
    a, b = base.fit(X, given), clone(base).set_params(structure=graph).fit(graphs, given)
    assert a.stop_reason_ == b.stop_reason_ == "converged"
    assert a.history_[-1]["primal"] == pytest.approx(b.history_[-1]["primal"], rel=2e-6)
    plain = clone(base).fit(X, Y).history_[-1]["primal"]
    assert a.history_[-1]["primal"] != pytest.approx(plain, rel=1e-3)


@pytest.mark.parametrize("structure", ["chain", MRFStructure([])], ids=["chain", "mrf"])
def test_scores(structure):
    X, Y = [np.array([[-1.0], [1.0]])], [[0, 1]]
    model = StructuredSVM(structure, alpha=0.01).fit(X, Y)
    assert model.score(X, [WeightedLabels([0, 0], [3.0, 1.0])]) == 0.75
    for loss in ("normalized-hamming", "zero-one"):
        model.set_params(loss=loss)
        assert model.score(X, [WeightedLabels([0, 0], [1.0, 0.0])]) == 1
        assert model.score(X, [WeightedLabels([0, 0], [1.0, 1.0])]) < 1
    nothing = [WeightedLabels([0, 0], [0.0, 0.0])]
    refused("weighs nothing", model.score, X, nothing)
    refused("weighs nothing", model.score, X, nothing, metric="accuracy")
    unseen = [WeightedLabels([0, 9], [1.0, 3.0])]
    assert model.set_params(loss="hamming").score(X, unseen) == 0.25


def test_everything_around_takes_them(tmp_path):
    X, Y = ChainStructure().sample(5, 12, 5)
    given = [WeightedLabels(y, 0.5 + np.arange(len(y))) for y in Y]
    base = StructuredSVM("chain", alpha=0.1, max_iter=20)
    model = clone(base).fit(X, given)
    model.save(tmp_path / "model")
    for copy in (pickle.loads(pickle.dumps(model)), structsolve.load(tmp_path / "model")):
        assert copy.score(X, given) == model.score(X, given)
    folds = StructuredSVMCV("chain", alphas=[0.1], cv=3, max_iter=20).fit(X, given)
    assert np.array_equal(folds.flat_weights(), model.flat_weights())
    threads = clone(base).set_params(n_jobs=2, solver="cutting-plane").fit(X, given)
    single = clone(base).set_params(solver="cutting-plane").fit(X, given)
    assert np.array_equal(threads.flat_weights(), single.flat_weights())
    held = clone(base).set_params(early_stopping=True).fit(X, given)
    assert held.history_
    weighed = clone(base).set_params(class_weight={1: 2.0}).fit(X, given)
    direct = clone(base).set_params(loss=ClassWeights({1: 2.0})).fit(X, given)
    assert np.array_equal(weighed.flat_weights(), direct.flat_weights())
    partly = [
        WeightedLabels(y.labels, y.weights) if i % 2 else y.labels for i, y in enumerate(given)
    ]
    assert clone(base).fit(X, partly).coef_
    latent = LatentSVM("chain", n_hidden=1, alpha=0.1, max_iter=20).fit(X, given)
    assert latent.score(X, given) > 0.5


def test_a_checkpoint_is_of_its_weights(tmp_path):
    X, Y = ChainStructure().sample(5, 12, 5)
    base = StructuredSVM("chain", alpha=0.1, max_iter=2, checkpoint=tmp_path / "state")
    base.fit(X, heavier(Y))
    refused("checkpoint", clone(base).fit, X, Y)


def test_empty_chains_and_forbidden_neighbours():
    structure = ChainStructure(empty=True, forbidden=[(0, 1)])
    X = [np.zeros((0, 2)), np.ones((3, 2)), np.eye(2)]
    Y = [WeightedLabels([], []), WeightedLabels([0, 0, 2], [1, 0, 2]), [1, 2]]
    model = StructuredSVM(structure, alpha=0.1).fit(X, Y)
    assert model.score(X, Y) <= 1
    Y[1] = WeightedLabels([0, 1, 2], [1, 0, 2])
    refused("example 1", StructuredSVM(structure, alpha=0.1).fit, X, Y)


@pytest.mark.parametrize("structure", ["chain", "tree"])
def test_weights_that_are_none(structure):
    X, _ = get_structure(structure).sample(0, 1, 2)
    size = len(X[0][0] if structure == "tree" else X[0])
    labels, fit = [0] * size, StructuredSVM(structure).fit
    for weights, message in (
        (np.ones(size + 1), rf"y, example 0: found weights of shape \({size + 1},\)"),
        (["a"] * size, "y, example 0: weights are no numbers"),
        (["1"] * size, "y, example 0: weights are no numbers"),
        (np.full(size, -1.0), "y, example 0, node 0: the weight is -1"),
        (np.full(size, np.inf), "y, example 0, node 0: the weight is inf"),
    ):
        refused(message, fit, X, [WeightedLabels(labels, weights)])


def test_labels_of_other_weights_have_no_average():
    rng = np.random.default_rng(0)
    X, Y, weights = (
        rng.normal(size=(6, 3, 2)),
        rng.integers(0, 2, (6, 3)),
        np.array([1.0, 2.0, 3.0]),
    )
    model = ConditionalRiskMinimizer("chain", kernel="linear", alpha=0.1, fit_intercept=False)
    given = [WeightedLabels(y, weights) for y in Y]
    _, risk = model.fit(X, given).predict_with_risk(X)
    gram = np.einsum("ivk,jvk->ij", X, X)
    own = np.linalg.solve(gram + 0.6 * np.eye(6), gram)
    labels = np.array([*np.ndindex(2, 2, 2)])
    losses = (labels[:, None] != Y) @ weights
    assert risk == pytest.approx((losses @ own).min(axis=0))
    assert model.conditional_risk(X, given) == pytest.approx(model.conditional_risk(X, Y))
    given[4] = WeightedLabels(Y[4], weights + 1)
    refused(
        "y, example 4: found other weights of nodes than in tr", model.conditional_risk, X, given
    )
    refused("y, example 4: found other weights of nodes than in example 0", model.fit, X, given)


@pytest.mark.parametrize("structure", ["dependency", "semi-markov", "cky", "alignment", "path"])
def test_labels_of_other_forms_take_no_weights(structure):
    X, Y = get_structure(structure).sample(0, 6, 3)
    model, given = StructuredSVM(structure, alpha=0.1, tol=0.1).fit(X, Y), [*Y]
    given[0] = WeightedLabels(Y[0], np.ones(len(Y[0])))
    told = "example 0: (y is|found).*(WeightedLabels|object of shape)"
    for ask in (model.fit, model.score):
        refused(told, ask, X, given)
    refused(f"{told}|weights of shape", model.score, X, given, metric="sequence-accuracy")


@pytest.mark.parametrize("structure", ["chain", "tree", "mrf", "factor-graph"])
def test_training_minimises_the_weighted_objective(structure):
    X, Y = get_structure(structure).sample(3, 8, 3)
    weights = [1.0 + np.arange(len(y)) for y in Y]
    given = [WeightedLabels(*both) for both in zip(Y, weights, strict=True)]
    model = StructuredSVM(structure, alpha=0.05, tol=1e-4).fit(X, given)
    value = 0.025 * sum((block**2).sum() for block in model.coef_.values())
    for best, y, w in zip(model.predict_kbest(X, 1000), Y, weights, strict=True):
        own = next(score for label, score in best if list(label) == list(y))
        rivals = (score + w @ (np.asarray(label) != y) for label, score in best)
        value += (max(rivals) - own) / len(Y)
    assert model.history_[-1]["primal"] == pytest.approx(value)


@pytest.mark.parametrize("structure", ["multiclass", "ordinal", "dag"])
def test_labels_that_are_no_classes_of_nodes_take_no_weights(structure):
    given = [WeightedLabels([0, 1], [1.0, 2.0])] * 2
    X = np.eye(2)
    made = get_structure(structure, hierarchy=[(0, 1)]) if structure == "dag" else structure
    with pytest.raises((TypeError, ValueError), match="WeightedLabels"):
        StructuredSVM(made).fit(X, given)


@pytest.mark.parametrize("structure", ["multiclass", "ordinal"])
def test_rows_with_one_label_have_weights_of_their_own(structure):
    model = structsolve.StructuredSVM(structure)
    y = [structsolve.WeightedLabels([label], [1.0]) for label in (0, 1)]
    refused("'WeightedLabels'.*fit's sample_weight", model.fit, [[0.0], [1.0]], y)
