"""FunctionStructure: three callables train, predict, and report errors by example."""

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused
from python_structures import SubsetStructure, subset_features, subset_loss, subset_oracle
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from structsolve import FunctionStructure, StructuredSVM, get_structure
from structsolve.plugins.functions.label_table import LabelTable, default_key


@pytest.fixture(scope="module")
def data():
    return SubsetStructure().sample(3, n=8)


def make(**changes):
    given = {"features": subset_features, "oracle": subset_oracle, "loss": subset_loss}
    return FunctionStructure(**{**given, **changes})


@pytest.fixture(scope="module")
def plain(data):
    """Return the reference model."""
    X, Y = data
    return StructuredSVM(make(), alpha=0.05, tol=1e-8).fit(X, Y)


def objective(w, X, Y, alpha):
    total = sum(
        max(
            subset_loss(y, z) + w @ (subset_features(x, z) - subset_features(x, y))
            for z in SubsetStructure().labels(x)
        )
        for x, y in zip(X, Y)
    )
    return 0.5 * alpha * w @ w + total / len(X)


@pytest.mark.parametrize("solver", ["bcfw", "cutting-plane"])
def test_reaches_the_optimum(data, solver):
    import cvxpy as cp

    X, Y = data
    model = StructuredSVM(make(), solver=solver, alpha=0.05, tol=1e-8, max_iter=500).fit(X, Y)
    w = cp.Variable(3)
    hinges = [
        cp.max(
            cp.hstack(
                [
                    subset_loss(y, z) + (subset_features(x, z) - subset_features(x, y)) @ w
                    for z in SubsetStructure().labels(x)
                ]
            )
        )
        for x, y in zip(X, Y)
    ]
    best = cp.Problem(cp.Minimize(0.025 * cp.sum_squares(w) + sum(hinges) / len(X))).solve()
    reached = objective(model.coef_["weights"], X, Y, 0.05)
    assert reached == pytest.approx(best, rel=1e-6)
    assert model.history_[-1]["primal"] == pytest.approx(reached, rel=1e-9)


def test_sgd_comes_near(data, plain):
    X, Y = data
    best = plain.history_[-1]["primal"]
    model = StructuredSVM(make(), solver="sgd", alpha=0.05, max_iter=200).fit(X, Y)
    assert objective(model.coef_["weights"], X, Y, 0.05) < best * 1.1 + 1e-3


def test_predictions_are_the_callers_objects(data):
    X, Y = data
    model = StructuredSVM(make(), alpha=0.05).fit(X, Y)
    predicted = model.predict(X)
    assert predicted == [subset_oracle(model.coef_["weights"], x) for x in X]
    assert all(isinstance(y, tuple) for y in predicted)
    loss = np.mean([subset_loss(y, z) for y, z in zip(Y, predicted)])
    assert model.score(X, Y) == pytest.approx(1 - loss)
    assert StructuredSVM(make(), alpha=0.05, n_jobs=3).fit(X, Y).predict(X) == predicted


@pytest.mark.parametrize(
    "wrap",
    [
        lambda v: sp.csr_matrix(v),
        lambda v: sp.csc_matrix(v[:, None]),
        lambda v: sp.coo_array(v[None]),
        lambda v: list(v),
        lambda v: v.astype(np.float32),
    ],
    ids=["csr row", "csc column", "coo array", "list", "float32"],
)
def test_kinds_of_feature_vectors(data, plain, wrap):
    X, Y = data
    other = StructuredSVM(
        make(features=lambda x, y: wrap(subset_features(x, y))), alpha=0.05, tol=1e-8
    ).fit(X, Y)
    np.testing.assert_allclose(other.coef_["weights"], plain.coef_["weights"], atol=1e-9)


def test_a_buffer_used_again_does_no_harm(data, plain):
    X, Y = data
    vector, label = np.zeros(3), np.zeros(3, dtype=int)

    def features(x, y):
        vector[:] = subset_features(x, y)
        return vector

    def oracle(w, x, y=None):
        label[:] = subset_oracle(w, x, y)
        return label

    reused = StructuredSVM(make(features=features, oracle=oracle), alpha=0.05, tol=1e-8)
    reused.fit(X, [np.array(y) for y in Y])
    np.testing.assert_allclose(reused.coef_["weights"], plain.coef_["weights"], atol=1e-9)
    assert [tuple(y.tolist()) for y in reused.predict(X)] == plain.predict(X)


def test_labels_are_recognised():
    table = LabelTable(None)
    labels = ["a", [0, 1], np.array([0, 1]), {1, 2}, {"b": [1]}, (0, (1, [2]))]
    first = [table.number(y, 0) for y in labels]
    assert first == [0, 1, 2, 3, 4, 5]
    assert [table.number(y, 0) for y in labels] == first
    assert default_key(np.array([True, False])) == default_key(np.array([1, 0]))
    assert default_key(np.array([[1, 2]])) != default_key(np.array([1, 2]))
    own = LabelTable(str.lower)
    assert own.number("A", 0) == own.number("a", 1)

    class Odd:
        __hash__ = None

    refused("example 4: .*Odd cannot be hashed; give .* a key=", table.number, Odd(), 4)
    with pytest.raises(
        ValueError, match="example 1: key\\(y\\) returned \\[\\], which is not hash"
    ):
        LabelTable(lambda y: []).number("a", 1)


def test_parameters(data):
    structure = make(dim=3)
    assert clone(structure).get_params() == structure.get_params()
    assert get_structure("functions", **structure.get_params()).dim == 3
    search = GridSearchCV(StructuredSVM(structure), {"alpha": [0.01, 10.0]}, cv=2)
    search.fit(*data)
    assert search.best_estimator_.structure is not structure


def test_not_saved_but_says_how(data, tmp_path):
    model = StructuredSVM(make(), alpha=0.05).fit(*data)
    refused("coef_", model.save, tmp_path / "m.structsolve")
    refused('cannot be saved without pickle.*coef_\\["weights"\\]', model.space_.state)
    with pytest.raises(ValueError, match="without pickle"):
        structure = make()
        structure.space_from_state({}, {})


def fails_at(index, X, function, answer):
    """Return ``function``, but with ``answer`` (called, if callable) for ``X[index]``."""

    def changed(*arguments):
        if any(a is X[index] for a in arguments):
            return answer() if callable(answer) else answer
        return function(*arguments)

    return changed


def explode():
    raise KeyError("boom")


@pytest.mark.parametrize(
    "what, answer, message",
    [
        ("oracle", explode, r"example 5: oracle\(w, x, y\) raised KeyError: 'boom'"),
        ("oracle", None, "example 5: oracle returned None, expected a label"),
        ("features", explode, r"example 5: features\(x, y\) raised KeyError: 'boom'"),
        ("features", np.zeros(4), r"example 5: features.* shape \(4,\), expected \(3,\)"),
        ("features", np.full(3, np.nan), r"example 5: features\(x, y\) holds NaN or infinity"),
        ("features", "text", r"example 5: features\(x, y\) returned 'text', expected an array"),
    ],
)
def test_errors_name_the_example(data, what, answer, message):
    X, Y = data
    function = {"oracle": subset_oracle, "features": subset_features}[what]
    structure = make(**{what: fails_at(5, X, function, answer)})
    refused(message, StructuredSVM(structure).fit, X, Y)


@pytest.mark.parametrize(
    "answer, message",
    [
        ("much", r"example \d: loss\(y_true, y_pred\) returned 'much', expected a number"),
        (np.nan, r"example \d: loss\(\) .* returned nan, expected a finite number"),
        (-1.0, r"example 0: loss.* returned -1 for the true label, expected at least 0, and 0"),
        (2.0, r"example 0: loss.* returned 2 for the true label, expected at least 0, and 0 for"),
    ],
)
def test_errors_of_the_loss(data, answer, message):
    with pytest.raises(ValueError, match=message):
        StructuredSVM(make(loss=lambda a, b: answer)).fit(*data)


def test_losses_below_0_are_refused_but_for_rounding(data):
    below = StructuredSVM(make(loss=lambda a, b: subset_loss(a, b) - 9.0 * (a != b)), alpha=0.05)
    refused(r"example \d: loss.* returned -\d.* for a label, expected at least 0", below.fit, *data)
    rounded = make(loss=lambda a, b: subset_loss(a, b) - 1e-15)
    assert StructuredSVM(rounded, alpha=0.05, tol=0.01).fit(*data).stop_reason_ == "converged"


@pytest.mark.parametrize(
    "changes, error, message",
    [
        ({"oracle": 3}, TypeError, "oracle is 3, expected a callable"),
        ({"key": "x"}, TypeError, "key is 'x', expected a callable"),
        ({"dim": 0}, ValueError, "dim is 0, expected an integer >= 1"),
        ({"dim": 5}, ValueError, r"example 0: features\(x, y\) returned 3 numbers, expected dim=5"),
        ({"features": lambda x, y: []}, ValueError, "example 0: features.* returned 0 numbers"),
        ({"features": lambda x, y: None}, ValueError, "example 0: features.* a NoneType of shape"),
        ({"features": lambda x, y: np.eye(2)}, ValueError, r"example 0: .* shape \(2, 2\), expe"),
    ],
)
def test_wrong_parameters(data, changes, error, message):
    with pytest.raises(error, match=message):
        StructuredSVM(make(**changes)).fit(*data)


def test_wrong_data(data):
    X, Y = data
    model = StructuredSVM(make())
    refused("X has 8 examples and y has 7", model.fit, X, Y[:7])
    refused("X is empty", model.fit, [], [])
    given = model.fit((x for x in X), Y).flat_weights()
    assert np.array_equal(given, model.fit(X, Y).flat_weights())
    with pytest.raises(ValueError, match="unknown loss 'f1' .*'functions'.*known: .*hamming"):
        model.set_params(loss="f1").fit(X, Y)


def test_an_oracle_that_misses_the_maximum_is_noticed(data):
    X, Y = data
    with pytest.warns(RuntimeWarning, match=r"example \d: oracle\(w, x, y\) returned a label with"):
        StructuredSVM(make(oracle=lambda w, x, y=None: (0, 0, 0))).fit(X, Y)


def test_any_objects_and_a_bare_vector():
    words = ["aab", "bba", "aaa", "bbb"]
    labels = [w.count("a") > 1 for w in words]

    def features(x, y):
        return np.array([x.count("a"), x.count("b"), 1.0]) * (1 if y else -1)

    def oracle(w, x, y=None):
        return max((False, True), key=lambda z: w @ features(x, z) + (y is not None and y != z))

    structure = FunctionStructure(features, oracle, lambda a, b: a != b)
    assert StructuredSVM(structure, alpha=1e-3).fit(words, labels).predict(words) == labels
