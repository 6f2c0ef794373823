"""class_weight of estimators: the meaning of scikit-learn, of ClassWeights, and what is refused."""

import pickle
import warnings

import numpy as np
import pytest
from checks import refused
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.class_weight import compute_class_weight

import structsolve
from structsolve import (
    ClassWeights,
    ConditionalRiskMinimizer,
    HierarchicalSVM,
    HierarchicalSVMCV,
    StructuredSVM,
    StructuredSVMCV,
    WeightedLabels,
)
from structsolve.cli.main import main
from structsolve.cli.options import class_weight
from structsolve.estimators.class_weight import class_weights
from structsolve.estimators.fitting import hold_out
from structsolve.plugins.mrf import MRFStructure
from structsolve.structure.pack import learn_space

warnings.simplefilter("ignore", ConvergenceWarning)
rng = np.random.default_rng(7)
X = rng.normal(size=(60, 3))
y = np.where(X[:, 0] + rng.normal(size=60) > 1, "rare", np.where(X[:, 1] > 0, "some", "most"))
ROWS = np.split(X, [5, 11, 12, 30])
LABELS = np.split(y, [5, 11, 12, 30])


@pytest.mark.parametrize("surrogate", ["margin", "slack", "crf", "max-min", "sparsemap"])
@pytest.mark.parametrize("given", ["balanced", {"rare": 3.0, "most": 0.5}])
def test_with_one_node_weights_of_classes_are_weights_of_examples(surrogate, given):
    names = np.unique(y)
    table = compute_class_weight(given, classes=names, y=y)
    weights = table[np.searchsorted(names, y)]
    own = rng.random(60)
    base = StructuredSVM("multiclass", surrogate=surrogate, alpha=0.1, max_iter=20)
    expected = clone(base).fit(X, y, sample_weight=weights).flat_weights()
    weighted = clone(base).set_params(class_weight=given).fit(X, y)
    np.testing.assert_allclose(weighted.flat_weights(), expected, atol=1e-12)
    assert abs(expected - clone(base).fit(X, y).flat_weights()).max() > 1e-2
    if given != "balanced":
        expected = clone(base).fit(X, y, sample_weight=weights * own).flat_weights()
        weighted.fit(X, y, sample_weight=own)
        np.testing.assert_allclose(weighted.flat_weights(), expected, atol=1e-12)


def test_balanced_crf_is_the_logistic_regression_of_scikit_learn():
    model = StructuredSVM(
        "multiclass", surrogate="crf", class_weight="balanced", alpha=0.1, tol=1e-9, max_iter=500,
        fit_intercept=False,
    ).fit(X, y)  # fmt: skip
    other = LogisticRegression(
        C=1 / (0.1 * len(y)), class_weight="balanced", fit_intercept=False, tol=1e-10
    ).fit(X, y)
    np.testing.assert_allclose(model.predict_marginals(X), other.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("surrogate", ["margin", "slack", "max-min"])
@pytest.mark.parametrize("loss", ["hamming", "normalized-hamming"])
def test_with_several_nodes_they_are_the_loss(surrogate, loss):
    settings = {"surrogate": surrogate, "alpha": 0.1, "max_iter": 10}
    model = StructuredSVM("chain", loss=loss, class_weight="balanced", **settings)
    model.fit(ROWS, LABELS)
    weights = ClassWeights.balanced(LABELS, normalized=loss != "hamming")
    other = StructuredSVM("chain", loss=weights, **settings).fit(ROWS, LABELS)
    assert np.array_equal(model.flat_weights(), other.flat_weights())
    assert model.history_[-1]["primal"] == other.history_[-1]["primal"]
    # The score uses the loss as given.
    wrong = [(a != b) for a, b in zip(model.predict(ROWS), LABELS)]
    means = [w.mean() for w in wrong]
    expected = 1 - (np.mean(np.concatenate(wrong)) if loss == "hamming" else np.mean(means))
    assert model.score(ROWS, LABELS) == pytest.approx(expected)


def test_weights_of_examples_and_void_nodes_count_in_balanced():
    for _ in range(20):
        sizes = np.full(4, rng.integers(1, 6))
        Y = [rng.integers(0, 3, size=n) for n in sizes]
        own, nodes = rng.random(4) + 0.1, [rng.random(n) for n in sizes]
        given = [WeightedLabels(a, b) for a, b in zip(Y, nodes)]
        rows = [rng.normal(size=(n, 2)) for n in sizes]
        space, examples = learn_space(MRFStructure([]), rows, given, sample_weight=own)
        flat, each = np.concatenate(Y), np.concatenate([a * b for a, b in zip(own, nodes)])
        classes = space.classes_.tolist()
        sums = np.array([each[flat == c].sum() for c in classes])
        expected = each.sum() / (len(classes) * sums)
        np.testing.assert_allclose(class_weights("balanced", space, examples), expected)


@pytest.mark.parametrize("structure", ["chain", "multiclass"])
def test_models_copy_pickle_and_save(structure, tmp_path):
    one = structure == "multiclass"
    data, labels = (X, y) if one else (ROWS, LABELS)
    for given in ("balanced", {"rare": 2.0}):
        model = StructuredSVM(structure, class_weight=given, alpha=0.1, max_iter=5)
        assert clone(model).class_weight == given and model.class_weight is given
        model.fit(data, labels)
        assert model.class_weight is given
        model.save(tmp_path / "model")
        for copy in (pickle.loads(pickle.dumps(model)), structsolve.load(tmp_path / "model")):
            assert copy.class_weight == given
            assert np.array_equal(copy.flat_weights(), model.flat_weights())


def test_cross_validation_takes_them():
    model = StructuredSVMCV(
        "multiclass", class_weight="balanced", alphas=[0.1], cv=2, max_iter=20
    ).fit(X, y)
    plain = StructuredSVM("multiclass", class_weight="balanced", alpha=0.1, max_iter=20).fit(X, y)
    assert np.array_equal(model.flat_weights(), plain.flat_weights())


TREE = [("animal", "bird"), ("bird", "owl"), ("bird", "duck"), ("animal", "cat"), ("thing", "car")]
LEAVES = np.array(["owl", "duck", "cat"])[np.arange(len(y)) % 7 % 3]  # and no car


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"normalization": "none", "loss": "hamming"},
        {"normalization": "learned", "max_alternations": 3},
        {"sparse": True},
        {"early_stopping": True, "validation_fraction": 0.3},
        {"kernel": "rbf"},
        {"solver": "cutting-plane", "fit_intercept": True, "penalize_intercept": False},
    ],
    ids=lambda settings: " ".join(settings) or "default",
)
@pytest.mark.parametrize("given", ["balanced", {"owl": 3.0, "cat": 0.5, "car": 9.0}], ids=str)
def test_leaves_of_hierarchies_weigh_as_examples(given, settings, tmp_path):
    settings = {"alpha": 0.1, "max_iter": 20, "tol": 1e-4, **settings}
    model = HierarchicalSVM(TREE, class_weight=given, **settings).fit(X, LEAVES)
    trained = LEAVES
    if "early_stopping" in settings:  # the rows that are held out do not count
        trained = hold_out(X, LEAVES, None, 0.3, np.random.default_rng(0))[1]
    table = dict(zip(*np.unique(trained, return_counts=True)))
    own = {name: len(trained) / (len(table) * n) for name, n in table.items()}
    own = own if given == "balanced" else {"duck": 1.0, **given}
    weights = np.array([own.get(name, 1.0) for name in LEAVES])
    expected = HierarchicalSVM(TREE, **settings).fit(X, LEAVES, sample_weight=weights)
    if "sparse" not in settings:
        primal = (each.history_[-1]["primal"] for each in (model, expected))
        np.testing.assert_allclose(*primal, rtol=1e-9)
        scores = (each.decision_function(X[:5]) for each in (model, expected))
        np.testing.assert_allclose(*scores, atol=1e-9)
    assert model.predict(X).tolist() == expected.predict(X).tolist()
    assert clone(model).class_weight == given
    model.save(tmp_path / "leaves")
    assert structsolve.load(tmp_path / "leaves").class_weight == given


def test_streams_and_folds_of_hierarchies_take_them():
    given = {"owl": 3.0}
    own = np.where(LEAVES == "owl", 3.0, 1.0)
    stream, expected = (
        HierarchicalSVM(TREE, class_weight=weights, solver="sgd", alpha=0.1)
        for weights in (given, None)
    )
    for _ in range(2):
        stream.partial_fit(X, LEAVES)
        expected.partial_fit(X, LEAVES, sample_weight=own)
    assert np.array_equal(stream.flat_weights(), expected.flat_weights())
    folds = HierarchicalSVMCV(TREE, class_weight=given, alphas=[0.1], cv=2, max_iter=20)
    plain = HierarchicalSVM(TREE, class_weight=given, alpha=0.1, max_iter=20).fit(X, LEAVES)
    assert np.array_equal(folds.fit(X, LEAVES).flat_weights(), plain.flat_weights())


def test_leaves_that_cannot_weigh():
    sets = [[name] for name in LEAVES]
    model = HierarchicalSVM(TREE, class_weight={}, close=True)
    refused("labels are sets of nodes", model.fit, X, sets)
    refused(
        r"unknown classes \['bird'\]; known: \['car', 'cat', 'duck', 'owl'\]",
        HierarchicalSVM(TREE, class_weight={"bird": 2}).fit, X, LEAVES,
    )  # fmt: skip
    refused(
        "no example of y weighs anything",
        HierarchicalSVM(TREE, class_weight=dict.fromkeys(LEAVES.tolist(), 0)).fit, X, LEAVES,
    )  # fmt: skip
    refused("class_weight is 'even'", HierarchicalSVM(TREE, class_weight="even").fit, X, LEAVES)


@pytest.mark.parametrize("structure", ["chain", "multiclass"])
def test_risk_minimisers_take_them(structure, tmp_path):
    data, labels = list(X.reshape(20, 3, 3)), list(y.reshape(20, 3))
    if structure == "multiclass":
        data, labels = X, y
    model = ConditionalRiskMinimizer(structure, class_weight="balanced").fit(data, labels)
    weights = ClassWeights.balanced(labels)
    other = ConditionalRiskMinimizer(structure, loss=weights).fit(data, labels)
    assert all(map(np.array_equal, model.predict(data), other.predict(data)))
    np.testing.assert_array_equal(
        model.conditional_risk(data, labels), other.conditional_risk(data, labels)
    )
    model.save(tmp_path / "risk")
    loaded = structsolve.load(tmp_path / "risk")
    np.testing.assert_allclose(
        model.conditional_risk(data, labels), loaded.conditional_risk(data, labels), atol=1e-12
    )


def test_margins_do_not_find_rare_labels_that_overlap_and_factors_do():
    # A tenth of the labels is rare, and no feature predicts them.  A missed one costs 12, more than
    # nine false ones.
    values, labels = np.zeros((40, 1)), np.array(["a"] * 36 + ["b"] * 4)
    weights = {"a": 1.0, "b": 12.0}
    for surrogate, expected in (("margin", "a"), ("slack", "b")):
        rows, many = list(values[:, None]), list(labels[:, None])
        loss = ClassWeights(weights)
        model = StructuredSVM("chain", surrogate=surrogate, loss=loss, alpha=1e-3, tol=1e-4)
        assert model.fit(rows, many).predict(rows)[0].tolist() == [expected]


def test_what_has_no_meaning_is_refused_by_name():
    fit = lambda **s: StructuredSVM(**s).fit  # noqa: E731
    refused("class_weight is 'even', expected", fit(class_weight="even"), ROWS, LABELS)
    with pytest.raises(TypeError, match="class_weight is 3, expected"):
        fit(class_weight=3)(ROWS, LABELS)
    refused("class 'rare' is -1", fit(class_weight={"rare": -1}), ROWS, LABELS)
    refused("class 'rare' is nan", fit(class_weight={"rare": np.nan}), ROWS, LABELS)
    refused("class 'rare' is 'x'", fit(class_weight={"rare": "x"}), ROWS, LABELS)
    refused(r"unknown classes \['no'\]", fit(class_weight={"no": 1}), ROWS, LABELS)
    whole = fit(class_weight={}, loss="zero-one")
    refused("loss is 'zero-one', expected one of", whole, ROWS, LABELS)
    nothing = dict.fromkeys(np.unique(np.concatenate(LABELS)), 0)
    refused("no example of y weighs anything", fit(class_weight=nothing), ROWS, LABELS)
    for surrogate in ("crf", "sparsemap"):
        refused(
            f"surrogate '{surrogate}' does not depend on the loss",
            fit(class_weight="balanced", surrogate=surrogate), ROWS, LABELS,
        )  # fmt: skip
    sets = np.eye(3, dtype=int)[[0, 1, 2] * 20]
    refused("give each node one class", fit(structure="multilabel", class_weight={}), X, sets)
    refused(
        "no example of y weighs anything",
        fit(structure="multiclass", class_weight=dict.fromkeys(np.unique(y), 0)), X, y,
    )  # fmt: skip
    stream = StructuredSVM("multiclass", solver="sgd", class_weight="balanced")
    refused("need all examples at once", stream.partial_fit, X, y)
    refused("unknown classes", ConditionalRiskMinimizer(class_weight={"no": 1}).fit, X, y)


def test_the_shell_takes_them(tmp_path):
    np.savez(tmp_path / "d.npz", X=X, y=y)
    for words, given in (
        (["balanced"], "balanced"),
        (["rare=3", "most=.5"], {"rare": 3.0, "most": 0.5}),
    ):
        told = ["fit", str(tmp_path / "d.npz"), "--model", str(tmp_path / "m"), "--quiet"]
        assert main([*told, "--structure", "multiclass", "--class-weight", *words]) == 0
        model = StructuredSVM("multiclass", class_weight=given).fit(X, y)
        assert np.array_equal(structsolve.load(tmp_path / "m").flat_weights(), model.flat_weights())
    assert class_weight(["1=2", "a=b=.5"]) == {1: 2.0, "a=b": 0.5}
    for words in (["rare"], ["=3"], ["rare=-1"], ["rare=nan"], ["balanced", "rare=1"]):
        refused("expected CLASS=WEIGHT", class_weight, words)
    refused("rare is given twice", class_weight, ["rare=1", "rare=2"])
