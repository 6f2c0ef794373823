"""Marginals by any projection, probabilities and samples of fitted models."""

import numpy as np
import pytest
from checks import refused, same
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

import structsolve
from structsolve import ExtremeSVM, StructuredSVM

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def data(name, rng):
    if name == "chain":
        X = [rng.normal(size=(length, 2)) for length in (1, 3, 2, 3, 2)]
        return "chain", X, [rng.integers(0, 3, len(x)) for x in X]
    X = rng.normal(size=(9, 2))
    if name == "multilabel":
        return structsolve.get_structure("multilabel", edges="none"), X, rng.integers(0, 2, (9, 3))
    return name, X, np.arange(9) % 3


def fitted(name, surrogate="crf", seed=0, **settings):
    structure, X, Y = data(name, np.random.default_rng(seed))
    settings = {"alpha": 0.05, "max_iter": 50, **settings}
    return StructuredSVM(structure, surrogate=surrogate, **settings).fit(X, Y), X


@pytest.mark.parametrize("name", ["multiclass", "ordinal", "chain", "multilabel"])
def test_samples_are_as_frequent_as_likely(name):
    model, X = fitted(name)
    n = 4000
    draws = model.sample(X, n, random_state=1)
    assert len(draws) == n
    marginals = model.predict_proba(X)
    for i in range(len(X)):
        drawn = np.array([labels[i] for labels in draws])
        expected = marginals[i]
        if name == "multilabel":
            shares = drawn.mean(axis=0)
        else:
            shares = (drawn[..., None] == model.classes_).mean(axis=0)
        np.testing.assert_allclose(shares, expected, atol=5 / np.sqrt(n))


def test_samples_do_not_depend_on_jobs_and_follow_the_seed():
    model, X = fitted("chain")
    first = model.sample(X, 5, random_state=3)
    other = model.set_params(n_jobs=2).sample(X, 5, random_state=3)
    same(first, other)
    again = model.sample(X, 5, random_state=4)
    assert any((x != y).any() for a, b in zip(first, again) for x, y in zip(a, b))
    # By default, the model's own seed.
    assert all((x == y).all() for x, y in zip(model.sample(X)[0], model.sample(X)[0]))
    for seed in (np.random.RandomState(0), np.random.default_rng(0)):
        assert len(model.sample(X, 2, random_state=seed)) == 2


@pytest.mark.parametrize("name", ["multiclass", "chain", "multilabel"])
def test_euclidean_marginals_are_the_nearest_point(name):
    model, X = fitted(name, "sparsemap")
    for rows in model.predict_marginals(X, projection="euclidean"):
        assert (np.asarray(rows) >= 0).all() and (np.asarray(rows) <= 1 + 1e-12).all()
        if name == "chain":
            np.testing.assert_allclose(rows.sum(axis=1), 1)
    if name == "multiclass":
        from structsolve.algorithms.simplex_projection import project_simplex

        scores = model.decision_function(X)
        nearest = model.predict_marginals(X, projection="euclidean")
        for row, score in zip(nearest, scores):
            np.testing.assert_allclose(row, project_simplex(score), atol=1e-12)


def test_probabilities_are_those_of_a_crf_alone():
    model, X = fitted("multiclass", "margin")
    assert not hasattr(model, "predict_proba")
    assert not hasattr(StructuredSVM(), "predict_proba")
    model, X = fitted("multiclass")
    assert hasattr(clone(model), "predict_proba")
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    np.testing.assert_array_equal(
        model.classes_[model.predict_proba(X).argmax(axis=1)], model.predict(X)
    )
    check_is_fitted(model)


@pytest.mark.parametrize("name", ["multiclass", "chain"])
def test_logarithms_of_probabilities(name):
    model, X = fitted(name)
    ours, p = model.predict_log_proba(X), model.predict_proba(X)
    for one, other in zip(ours, p, strict=True):
        np.testing.assert_allclose(one, np.log(other))
    assert not hasattr(fitted(name, "margin")[0], "predict_log_proba")


def test_logarithms_of_probabilities_of_other_models():
    X, y = [[-1.0], [1.0], [0.5], [-2.0]], ["a", "b", "b", "a"]
    model = ExtremeSVM().fit(X, y)
    assert not hasattr(model, "predict_log_proba")
    model.calibrate(X, y)
    with np.errstate(all="raise"):
        np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    states = structsolve.HiddenMarkovModel(2, random_state=0).fit(["abba", "ba"])
    (logs,), (p,) = states.predict_log_proba(["ab"]), states.predict_proba(["ab"])
    np.testing.assert_allclose(np.exp(logs), p)


def test_probabilities_are_logistic_regression():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
    alpha = 0.1
    ours = StructuredSVM("multiclass", surrogate="crf", alpha=alpha, tol=1e-8, max_iter=1000)
    ours.fit(np.hstack([X, np.ones((60, 1))]), y)
    theirs = LogisticRegression(C=1 / (alpha * 60), tol=1e-10, max_iter=10000, fit_intercept=False)
    # Our constant feature is one more column, penalised like all.
    wide = np.hstack([X, np.ones((60, 2))])
    theirs.fit(wide, y)
    np.testing.assert_allclose(
        ours.predict_proba(np.hstack([X, np.ones((60, 1))])), theirs.predict_proba(wide), atol=1e-4
    )


def test_refusals():
    model, X = fitted("chain")
    refused("n_samples is 0", model.sample, X, 0)
    refused("random_state is 'a'", model.sample, X, random_state="a")
    for call in (model.log_proba, model.expected_loss):
        refused("y is None: expected answers", call, X, None)
    classes = StructuredSVM("multiclass", alpha=0.1).fit(np.eye(2), [0, 1])
    refused("y is None: expected labels", classes.calibrate, np.eye(2), None)
    ordered = StructuredSVM("ordinal:thresholds=true", alpha=0.1).fit(np.eye(2), [0, 1])
    refused("calibrate needs max-marginals", ordered.calibrate, np.eye(2), [0, 1])
    refused("no plugin gives the projection 'flat'", model.predict_marginals, X, projection="flat")
    edges = np.array([[0, 1], [1, 2], [2, 0]])
    graphs = [(np.ones((3, 1)), edges), (np.zeros((3, 1)), edges)]
    other = StructuredSVM("mrf", max_iter=2).fit(graphs, [[0, 1, 0], [1, 1, 1]])
    assert len(other.sample(graphs, 3)) == 3
    assert len(other.predict_marginals(graphs, projection="euclidean")) == 2
