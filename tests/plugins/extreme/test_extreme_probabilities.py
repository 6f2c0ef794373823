"""Probabilities over the kept rivals of an example: fitted, summed, refused."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused, same
from extreme_cases import Plain, documents
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.ensemble import StackingClassifier
from sklearn.metrics import get_scorer

from structsolve import ExtremeSVM
from structsolve.estimators.calibration import Calibration, fit_calibration


@pytest.fixture(scope="module")
def calibrated():
    model = ExtremeSVM(solver=Plain(), max_iter=5).fit(*documents(150))
    return model.calibrate(*documents(400, seed=5), kept=4)


def draws(n, n_classes, factor, seed):
    """Scores, and classes drawn from a softmax of them."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, n_classes))
    drawn = (softmax(factor * scores, axis=1).cumsum(1) < rng.random((n, 1))).sum(1)
    return scores, np.minimum(drawn, n_classes - 1)


def best_of(scores, y, kept):
    order = np.argsort(-scores, axis=1, kind="stable")[:, :kept]
    hits = order == y[:, None]
    return np.take_along_axis(scores, order, 1), np.where(hits.any(1), hits.argmax(1), kept)


def log_likelihood(calibration, scores, places, weights):
    shares, rest = calibration.probabilities(scores)
    whole = np.column_stack([shares, rest])[np.arange(len(places)), places]
    return float(weights @ np.log(np.maximum(whole, 1e-300)) / weights.sum())


@pytest.mark.parametrize("factor", [0.5, 3.0])
@pytest.mark.parametrize("scale", [1.0, 1e-4, 1e4])
def test_the_factor_of_the_softmax_that_drew_the_classes(factor, scale):
    scores, y = draws(8_000, 6, factor, 0)
    fitted = fit_calibration(*best_of(scores / scale, y, 6), 6, np.ones(len(y)))
    assert fitted.factor == pytest.approx(factor * scale, rel=0.08)
    assert fitted.rest == -np.inf


@pytest.mark.parametrize("kept", [1, 2, 5])
@pytest.mark.parametrize("seed", range(3))
def test_the_likelihood_is_largest(kept, seed):
    scores, y = draws(300, 9, 1.5, seed)
    weights = np.random.default_rng(seed).random(300)
    given = best_of(scores, y, kept)
    fitted = fit_calibration(*given, 9, weights)
    reached = log_likelihood(fitted, *given, weights)

    def other(x):
        calibration = Calibration(np.exp(x[0]), min(x[1], np.log(9 - kept)), kept)
        return -log_likelihood(calibration, *given, weights)

    best = min(minimize(other, start, method="Nelder-Mead").fun for start in ([0, 0], [1, -2]))
    assert reached >= -best - 1e-5


@settings(max_examples=30, deadline=None)
@given(
    n_classes=st.integers(2, 6),
    kept=st.integers(1, 6),
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["ties", "equal", "certain", "huge", "any"]),
)
def test_any_scores_give_probabilities_in_their_order(n_classes, kept, seed, kind):
    kept = min(kept, n_classes)
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    scores = {
        "ties": rng.integers(0, 2, (n, n_classes)).astype(float),
        "equal": np.zeros((n, n_classes)),
        "certain": rng.normal(size=(n, n_classes)),
        "huge": rng.normal(size=(n, n_classes)) * 1e30,
        "any": rng.normal(size=(n, n_classes)),
    }[kind]
    y = scores.argmax(1) if kind == "certain" else rng.integers(0, n_classes, n)
    best, places = best_of(scores, y, kept)
    used = places < kept + (kept < n_classes)
    fitted = fit_calibration(best[used], places[used], n_classes, np.ones(used.sum()))
    shares, rest = fitted.probabilities(best)
    assert (shares >= 0).all() and (rest >= 0).all()
    np.testing.assert_allclose(shares.sum(1) + rest, 1)
    assert (shares[:, :-1] >= shares[:, 1:]).all()
    # A class that is not kept is not more probable than the last kept one.
    assert (rest <= shares[:, -1] * (n_classes - kept) * (1 + 1e-9)).all()


@pytest.mark.parametrize("kept", [12, 4])
def test_held_out_classes_are_as_likely_as_said(calibrated, kept):
    X, _ = documents(8000, seed=6)
    scores = calibrated.decision_function(X).astype(float)
    rng = np.random.default_rng(0)
    y = (softmax(4 * scores, axis=1).cumsum(1) < rng.random((8000, 1))).sum(1)
    model = copy.deepcopy(calibrated).calibrate(X[:4000], y[:4000], kept=kept)
    shares, right = model.predict_proba(X[4000:]), model.predict(X[4000:]) == y[4000:]
    best = shares.max(1)
    edges = np.quantile(best, [0, 0.25, 0.5, 0.75, 1])
    for low, high in zip(edges[:-1], edges[1:]):
        inside = (best >= low) & (best <= high)
        assert abs(right[inside].mean() - best[inside].mean()) < 0.05
    held = -np.mean(np.log(shares[np.arange(4000), y[4000:]]))
    true = -np.mean(np.log(softmax(4 * scores, axis=1)[np.arange(4000, 8000), y[4000:]]))
    assert held < true + (0.002 if kept == 12 else 0.02)


def test_both_forms_agree(calibrated):
    X, _ = documents(50, seed=7)
    whole = calibrated.predict_proba(X)
    np.testing.assert_allclose(whole.sum(1), 1)
    same(calibrated.classes_[whole.argmax(1)], calibrated.predict(X))
    for k in (1, 3, 4):
        few = calibrated.predict_proba(X, k)
        assert sp.issparse(few) and few.shape == whole.shape and few.nnz == 50 * k
        assert few.has_sorted_indices
        classes, _ = calibrated.predict_topk(X, k)
        for i in range(50):
            same(np.sort(calibrated.classes_[few[i].indices]), np.sort(classes[i]))
        kept = few.toarray() > 0
        same(few.toarray()[kept], whole[kept])


def test_weights_of_held_out_examples(calibrated):
    X, y = documents(100, seed=8)
    weights = np.arange(100) % 3
    repeated = np.repeat(np.arange(100), weights)
    one = calibrated.calibrate(X, y, weights)._calibration
    two = calibrated.calibrate(X[repeated], y[repeated])._calibration
    assert one.factor == pytest.approx(two.factor, rel=1e-3)
    assert one.kept == 12
    other = y.copy()
    other[weights == 0] = 999  # never seen: left out
    assert calibrated.calibrate(X, other, weights)._calibration == one
    calibrated.calibrate(*documents(400, seed=5), kept=4)


def test_a_crf_has_probabilities_of_its_own():
    model = ExtremeSVM(solver=Plain(), surrogate="crf")
    assert hasattr(model, "predict_proba")
    X, y = documents()
    model.fit(X, y)
    expected = softmax(model.decision_function(X).astype(float), axis=1)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-6)
    few = model.predict_proba(X, 2).toarray()
    same(few[few > 0], model.predict_proba(X)[few > 0])
    model.sparsify(mb=0.01)
    assert hasattr(model, "predict_proba")


def test_scikit_learn_takes_them_for_probabilities():
    X, y = documents()
    y = y % 2
    model = ExtremeSVM(solver=Plain(), surrogate="crf").fit(X, y)
    brier = np.mean((model.predict_proba(X)[:, 1] - y) ** 2)
    assert get_scorer("neg_brier_score")(model, X, y) == pytest.approx(-brier)
    stacked = StackingClassifier([("model", ExtremeSVM(solver=Plain(), surrogate="crf"))], cv=2)
    assert stacked.fit(X, y).stack_method_ == ["predict_proba"]
    assert stacked.transform(X)[:, 0] == pytest.approx(model.predict_proba(X)[:, 1])


def test_scores_that_are_no_probabilities_are_refused_with_a_reason():
    X, y = documents()
    model = ExtremeSVM(solver=Plain())
    assert not hasattr(model, "predict_proba")
    model.fit(X, y)
    reason = "no probabilities: once fitted, call calibrate.* or train with surrogate='crf'"
    refused(reason, lambda: model.predict_proba(X), error=AttributeError)
    model.calibrate(X, y).sparsify(error=0.01, X=X, y=y)
    refused(r"call calibrate\(X, y\) again", lambda: model.predict_proba(X), error=AttributeError)
    model.calibrate(X, y).fit(X, y)
    refused(reason, lambda: model.predict_proba(X), error=AttributeError)


def test_wrong_calls(calibrated):
    X, y = documents(30)
    refused("k is 5, expected an integer from 1 to 4", calibrated.predict_proba, X, 5)
    refused("kept is 0, expected an integer from 1 to 12", calibrated.calibrate, X, y, kept=0)
    refused("kept is 'all', expected an integer", calibrated.calibrate, X, y, kept="all")
    refused("none of 30 examples is of a class", calibrated.calibrate, X, y + 100)
    refused("y to be passed", calibrated.calibrate, X, None)
    assert calibrated._calibration.kept == 4
