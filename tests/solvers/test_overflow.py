"""Numbers that overflow are refused; failed runs keep the best weights."""

import pickle

import numpy as np
import pytest
from checks import refused
from scipy import sparse

from structsolve import ConditionalRiskMinimizer, HierarchicalSVM, LatentSVM, StructuredSVM
from structsolve.solvers import CuttingPlane, qp

X, Y = np.random.default_rng(0).normal(size=(12, 2)), np.arange(12) % 3
SOLVERS = ("bcfw", "admm", "cutting-plane", "sgd", "gbcfw", "sdca")


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("value", [1.7e308, -1e150])
def test_huge_features_are_refused(value, solver, dense):
    wild = X.copy()
    wild[7, 1] = value
    surrogate = "crf" if solver in ("gbcfw", "sdca") else "margin"
    refused(
        rf"X: found {value:g} \(example 7, row 0\), expected numbers from -1e\+100 to 1e\+100"
        .replace("+308", r"\+308").replace("+150", r"\+150"),
        StructuredSVM("multiclass", solver=solver, surrogate=surrogate).fit,
        wild if dense else sparse.csr_matrix(wild), Y,
    )  # fmt: skip


def test_huge_features_of_edges_and_kernels_are_refused():
    nodes = [np.zeros((3, 2)) for _ in range(3)]
    edges = [np.zeros((2, 1)) for _ in range(3)]
    edges[1][1] = 1e200
    given = list(zip(nodes, edges)), [[0, 1, 0]] * 3
    refused(
        r"edge features: found 1e\+200 \(example 1, row 1\)", StructuredSVM("chain").fit, *given
    )
    refused(
        r"X: found [-0-9.]+e\+1[0-9]+ ",
        StructuredSVM("multiclass", kernel="linear").fit,
        X * 1e120,
        Y,
    )


@pytest.mark.filterwarnings("error")
def test_features_of_single_precision_train_without_warnings():
    ones = np.eye(3, dtype=np.float32)
    model = StructuredSVM("multiclass").fit(ones, [0, 1, 2])
    assert model.predict(ones).tolist() == [0, 1, 2]
    ones[1, 1] = np.inf
    refused("X: Input contains infinity .example 1", StructuredSVM("multiclass").fit, ones, [0] * 3)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("alpha", [1e-300, 1e300])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_weights_are_finite_whatever_alpha(solver, alpha):
    surrogate = "crf" if solver in ("gbcfw", "sdca") else "margin"
    model = StructuredSVM("multiclass", solver=solver, surrogate=surrogate, alpha=alpha, max_iter=8)
    try:
        last = model.fit(1e60 * X, Y).history_[-1]
    except ValueError as error:
        assert "check that the weights are finite" in str(error)
        return
    assert np.isfinite(model.flat_weights()).all()
    assert np.isfinite(last["primal"]) or not last["certified"]


def test_huge_weights_of_examples_do_not_overflow():
    model = StructuredSVM("multiclass").fit(X, Y, sample_weight=np.full(12, 1e308))
    assert (
        model.history_[-1]["primal"] == StructuredSVM("multiclass").fit(X, Y).history_[-1]["primal"]
    )


@pytest.mark.parametrize("kernel", [None, "rbf"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_models_with_weights_that_are_none_do_not_predict(kernel, value):
    model = StructuredSVM("multiclass", kernel=kernel).fit(X, Y)
    (model._model.weights if kernel is None else model._model.duals).flat[0] = value
    model = pickle.loads(pickle.dumps(model))  # weights are looked at when a model is made
    message = "weights that are NaN or infinite, expected finite numbers"
    for method in (model.predict, model.decision_function):
        refused(message, method, X)
    refused(message, model.score, X, Y)


LARGE = r"X: found -?[0-9.]+e\+[0-9]+ \(example 1, row 0\), expected numbers from -1e\+100 to"
ALONE = LARGE.replace("example 1", "example 0")


def predictions(model, y):
    names = "predict", "decision_function", "predict_kbest", "predict_marginals", "weights", "score"
    for method in (getattr(model, name) for name in names if hasattr(model, name)):
        more = {"predict_kbest": [2], "score": [y]}.get(method.__name__, [])
        yield lambda X, method=method, more=more: method(X, *more)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("surrogate", ["margin", "crf"])
@pytest.mark.parametrize("structure", ["multiclass", "chain", "ordinal", "mrf"])
def test_huge_features_do_not_predict(structure, surrogate, storage):
    """Scores were NaN or infinite, and the class any."""
    single = structure in ("multiclass", "ordinal")
    given = storage if single else lambda X: [storage(x[None]) for x in X]
    if structure == "mrf":
        given = lambda X: [(storage(x[None]), np.zeros((0, 2), int)) for x in X]  # noqa: E731
    model = StructuredSVM(structure, surrogate=surrogate, alpha=0.01, max_iter=5)
    labels = Y if single else [[y] for y in Y]
    model.fit(given(X), labels)
    model.predict(given(1e99 * X[:2]))
    for value in (1e101, 1.7e308):
        wild = X.copy()
        wild[1] = value, -value
        for predict in predictions(model, labels):
            refused(LARGE, predict, given(wild))
        for predict in predictions(model, labels[:1]):
            refused(ALONE, predict, given(wild[1:2]))


@pytest.mark.parametrize(
    "model",
    [
        *(StructuredSVM("multiclass", kernel=kernel) for kernel in ("linear", "rbf")),
        StructuredSVM("multiclass", scale_features="max-abs"),
        LatentSVM("multiclass", n_hidden=2),
        HierarchicalSVM({"root": ["a", "b", "c"]}),
        *(ConditionalRiskMinimizer("multiclass", kernel=kernel) for kernel in (None, "rbf")),
    ],
    ids=str,
)
def test_huge_features_do_not_predict_by_other_models(model):
    wild, labels = X.copy(), np.array(list("abc"))[Y]
    wild[1] = 1e120, -1e120
    refused(LARGE, model.fit, wild, labels)
    for predict in predictions(model.fit(X, labels), labels):
        refused(LARGE, predict, wild)


def test_huge_features_of_edges_do_not_predict():
    given = [(np.zeros((3, 2)), np.zeros((2, 1)))] * 3
    model = StructuredSVM("chain").fit(given, [[0, 1, 0]] * 3)
    wild = [given[0], (given[0][0], np.array([[0.0], [1e200]]))]
    refused(r"edge features: found 1e\+200 \(example 1, row 1\)", model.predict, wild)


def test_weights_that_are_huge_take_small_features():
    model = StructuredSVM("multiclass", fit_intercept=False).fit(X, Y)
    expected = model.predict(X)
    model._model.weights[:] *= 1e250 / np.abs(model._model.weights).max()
    model = pickle.loads(pickle.dumps(model))
    assert np.array_equal(model.predict(X), expected)
    refused(r"X: found .* \(example 0, row 0\), .* 1e\+50; scale", model.predict, 1e60 * X)
    model._model.weights[:] *= 1e55
    model = pickle.loads(pickle.dumps(model))
    assert np.array_equal(model.predict(1e-6 * X), expected)
    refused(r"X: found .* expected numbers from -1e-05 to 1e-05", model.decision_function, X[:1])


@pytest.mark.parametrize("slack", ["one", "n"])
@pytest.mark.parametrize("after", [1, 2])
def test_programs_that_fail_leave_the_best_weights(monkeypatch, slack, after):
    solve, calls = qp.solve, []

    def fails(model):
        calls.append(1)
        if len(calls) > after:
            raise ArithmeticError("no solver could minimise a cutting-plane model")
        return solve(model)

    whole = StructuredSVM("multiclass", solver=CuttingPlane(slack), alpha=0.01, tol=1e-9)
    whole.fit(X, Y)
    monkeypatch.setattr(qp, "solve", fails)
    model = StructuredSVM("multiclass", solver=CuttingPlane(slack), alpha=0.01, tol=1e-9)
    with pytest.warns(UserWarning, match=f"ended in pass {after + 1}, the best weights so far are"):
        model.fit(X, Y)
    last, best = model.history_[-1], whole.history_[-1]
    assert model.stop_reason_ == "failed" and "no solver" in last["failed"]
    assert last["dual"] <= best["primal"] and best["dual"] <= last["primal"]
    assert len(model.history_) == after + 1 and model.predict(X).shape == (12,)


@pytest.mark.filterwarnings("error:overflow:RuntimeWarning", "error:invalid:RuntimeWarning")
def test_streams_that_overflow_are_told():
    """A batch has no w = 0 to return to."""
    X, y = np.array([[1e99], [-2e99], [3e99]]), [0, 1, 2]
    model = StructuredSVM("multiclass", solver="sgd", alpha=1e-300)
    refused("steps led to an objective that is not finite; scale", model.partial_fit, X, y)


@pytest.mark.parametrize("room, fits", [(16 * 408, True), (16 * 408 - 1, False)])
def test_models_wider_than_memory_are_refused_before_training(monkeypatch, room, fits):
    """Twice the weights of 100 columns and an intercept, padded to 102 x 4, in 8 bytes."""
    monkeypatch.setattr("structsolve.utils.memory.memory_limit", lambda: room)
    wide = sparse.csr_matrix((np.ones(12), np.arange(12), np.arange(13)), shape=(12, 100))
    model = StructuredSVM("multiclass", fit_intercept=True)
    if fits:
        assert model.fit(wide, Y).coef_["node"].shape == (100, 3)
    else:
        refused("X: weights of 10[01] columns would take .* number columns", model.fit, wide, Y)


@pytest.mark.parametrize(
    "structure, Y",
    [
        ("chain", np.arange(10).reshape(5, 2)),  # 100 pairs
        ("permutation", np.tile(np.arange(10), (5, 1))),
        ("multiclass", np.arange(5) + 0),
        ("ordinal", np.arange(5)),
    ],
)
def test_errors_of_too_many_classes_blame_no_columns(monkeypatch, structure, Y):
    monkeypatch.setattr("structsolve.utils.memory.memory_limit", lambda: 16 * 5 * 5 - 1)
    X = [np.ones((2, 1))] * 5 if structure == "chain" else np.ones((5, 1))
    model = StructuredSVM(structure, alpha=0.1)
    refused("y: .* would take .*: train on fewer classes", model.fit, X, Y)
