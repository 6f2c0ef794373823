"""ExtremeSVM as users call it: fit, predict, scikit-learn conventions, external solvers."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused, reloaded, same
from extreme_cases import Plain, documents
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils.estimator_checks import parametrize_with_checks

import structsolve.plugins.extreme.prediction as module
from structsolve import ExtremeSVM
from structsolve.plugins.extreme.solvers.base import RECORD
from structsolve.plugins.extreme.solvers.dual import ExtremeDual
from structsolve.plugins.extreme.solvers.memoir import Memoir
from structsolve.plugins.extreme.solvers.one_vs_some import OneVsSome
from structsolve.plugins.extreme.training import SOLVERS, choose_solver, is_incremental

NAMES = np.array([f"class {c:02}" for c in range(12)])


def plain(**settings):
    return ExtremeSVM(**{"solver": Plain(), "max_iter": 3, **settings})


@pytest.fixture(scope="module")
def data():
    X, y = documents()
    return X, NAMES[y]


@pytest.fixture(scope="module")
def model(data):
    return plain().fit(*data)


# Equal weights and repeated rows have the same optimum; equality to 1e-7 of every score asks for
# more than the tolerance of our solvers.
NOT_TO_THE_LAST_DIGIT = {
    f"check_sample_weight_equivalence_on_{kind}_data": "needs the optimum to 1e-7 in every weight"
    for kind in ("dense", "sparse")
}


@parametrize_with_checks(
    [plain(max_iter=20), ExtremeSVM()],
    expected_failed_checks=lambda estimator: (
        NOT_TO_THE_LAST_DIGIT if estimator.solver == "auto" else {}
    ),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# -- training ---------------------------------------------------------------------------------


def test_learns(model, data):
    assert model.score(*data) > 0.85
    X, y = documents(200, seed=3)
    assert model.score(X, NAMES[y]) > 0.7
    np.testing.assert_array_equal(model.classes_, NAMES)
    assert model.n_features_in_ == 60 and model.n_iter_ == len(model.history_) == 3
    assert model.stop_reason_ == "max_iter" and model.solver_.name == "plain"
    assert model.settings_ == {
        "solver": "plain",
        "surrogate": "margin",
        "alpha": 1 / 120,
        "steps": 30,
    }


def test_any_form_of_the_same_rows_gives_the_same_model(data):
    X, y = data
    expected = plain().fit(X, y).coef_
    wide = sp.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    jumbled = sp.coo_matrix((X.tocoo().data, X.tocoo().coords), X.shape)
    order = np.random.default_rng(0).permutation(X.nnz)
    jumbled.row, jumbled.col = jumbled.row[order], jumbled.col[order]
    jumbled.data = jumbled.data[order]
    halves = sp.coo_matrix(
        (np.tile(X.data / 2, 2), (np.tile(X.tocoo().row, 2), np.tile(X.indices, 2))), X.shape
    )
    for other in (
        X.toarray(),
        np.asfortranarray(X.toarray()),
        X.toarray().astype(np.float64),
        X.toarray().tolist(),
        wide,
        X.tocsc(),
        sp.csr_array(X),
        jumbled,
        halves,
    ):
        given = other.copy()
        again = plain().fit(other, y)
        same(again.coef_.toarray(), expected.toarray())
        same(again.predict(other), again.predict(X))
        if sp.issparse(other):  # what users give stays as it is
            same(given.toarray(), other.toarray())
            assert given.dtype == other.dtype and given.nnz == other.nnz


def test_fit_again_and_on_any_number_of_threads(data):
    one = plain()
    first = one.fit(*data).coef_.toarray()
    same(first, one.fit(*data).coef_.toarray())
    threads = plain(n_jobs=3).fit(*data)
    same(first, threads.coef_.toarray())
    one.set_params(n_jobs=2)
    same(one.predict_topk(data[0], 4), threads.predict_topk(data[0], 4))


def test_sample_weights_count_like_repetition(data):
    X, y = data
    weights = np.arange(len(y)) % 3
    repeated = np.repeat(np.arange(len(y)), weights)
    weighted = plain().fit(X, y, sample_weight=weights)
    again = plain().fit(X[repeated], y[repeated])
    np.testing.assert_allclose(weighted.coef_.toarray(), again.coef_.toarray(), atol=1e-5)
    assert weighted.settings_["alpha"] == again.settings_["alpha"] == 1 / weights.sum()
    scaled = plain(alpha=0.1).fit(X, y, sample_weight=5.0 * weights)
    by_share = plain(alpha=0.1).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(scaled.coef_.toarray(), by_share.coef_.toarray(), atol=1e-6)


@pytest.mark.parametrize("solver", [*SOLVERS])
def test_rows_of_weight_0_are_as_if_absent(data, solver):
    """They counted among the rows, by which solvers choose constants and draw."""
    X, y = data
    weights = np.ones(len(y))
    weights[::4] = 0
    kept = np.flatnonzero(weights)
    assert {*y[kept]} == {*y}
    weighted = plain(solver=solver).fit(X, y, sample_weight=weights)
    absent = plain(solver=solver).fit(X[kept], y[kept], sample_weight=weights[kept])
    same(weighted.coef_.toarray(), absent.coef_.toarray())
    assert weighted.history_[-1]["primal"] == absent.history_[-1]["primal"]
    # Weights that are all equal are as if there were none.
    same(absent.coef_.toarray(), plain(solver=solver).fit(X[kept], y[kept]).coef_.toarray())


def test_labels_are_strings_or_integers_in_any_order(data):
    X, y = data
    numbers = np.searchsorted(NAMES, y)
    by_number = plain().fit(X, 1000 - 7 * numbers)
    same(by_number.classes_, 1000 - 7 * np.arange(12)[::-1])
    by_name = plain().fit(X, y.tolist())
    np.testing.assert_allclose(by_number.coef_.toarray()[::-1], by_name.coef_.toarray(), atol=1e-6)
    same(by_number.predict(X), 1000 - 7 * np.searchsorted(NAMES, by_name.predict(X)))
    as_objects = plain().fit(X, y.astype(object))
    same(as_objects.predict(X).tolist(), by_name.predict(X).tolist())


def test_partial_fit_goes_on_from_the_weights(data):
    X, y = data
    model = plain(alpha=0.01)
    model.partial_fit(X[:60], y[:60], classes=NAMES)
    first = model.coef_.toarray()
    model.partial_fit(X[60:], y[60:])
    assert model.n_iter_ == 2 and [record["pass"] for record in model.history_] == [1, 2]
    assert np.abs(model.coef_.toarray() - first).max() > 0.01
    # One call with all rows is a pass of fit().
    whole = plain(alpha=0.01, max_iter=1).fit(X, y)
    same(plain(alpha=0.01).partial_fit(X, y).coef_.toarray(), whole.coef_.toarray())
    whole.partial_fit(X, y)
    twice = plain(alpha=0.01, max_iter=2).fit(X, y)
    np.testing.assert_allclose(whole.coef_.toarray(), twice.coef_.toarray(), atol=1e-4)


def test_callbacks_stop_and_see_the_records(data):
    seen = []

    def second(record):
        seen.append(record["pass"])
        record.clear()  # a copy
        return len(seen) == 2

    model = plain(max_iter=10, callbacks=[second]).fit(*data)
    assert seen == [1, 2] and model.stop_reason_ == "callback" and model.n_iter_ == 2
    assert model.history_[1]["primal"] < model.history_[0]["primal"]


def test_an_interrupt_keeps_the_model(data, caplog):
    def interrupt(record):
        if record["pass"] == 2:
            raise KeyboardInterrupt

    model = plain(max_iter=10, callbacks=[interrupt]).fit(*data)
    assert model.stop_reason_ == "interrupted" and model.n_iter_ == 2
    assert "interrupted after 2 passes: keeping the best model" in caplog.text
    same(model.predict(data[0]), plain(max_iter=2).fit(*data).predict(data[0]))


def test_a_checkpoint_goes_on(data, tmp_path):
    def crash(record):
        if record["pass"] == 2:
            raise RuntimeError("killed")

    path = tmp_path / "run.checkpoint"
    settings = {"max_iter": 5, "checkpoint": path}
    refused("killed", plain(**settings, callbacks=[crash]).fit, *data, error=RuntimeError)
    passes = []
    model = plain(**settings, callbacks=[lambda record: passes.append(record["pass"])]).fit(*data)
    assert passes == [2, 3, 4, 5] or passes == [3, 4, 5]
    same(model.coef_.toarray(), plain(max_iter=5).fit(*data).coef_.toarray())
    refused("other data or settings", plain(alpha=3.0, **settings).fit, *data)
    X, y = data
    refused("other data or settings", plain(**settings).fit, X[:-1], y[:-1])
    path.write_bytes(path.read_bytes()[:-30])
    refused("cut short or damaged", plain(**settings).fit, *data)


@pytest.mark.parametrize(
    "settings",
    [
        {"solver": "softmax"},
        {"solver": "memoir", "alpha": 0.01},
        {"solver": "memoir", "penalty": "l1", "alpha": 1e-4},
    ],
    ids=str,
)
def test_our_solvers_go_on_from_checkpoints_and_keep_the_model(data, tmp_path, settings):
    def stop(error):
        def after_two(record):
            if record["pass"] == 2:
                raise error

        return after_two

    settings = {**settings, "max_iter": 3}
    whole = ExtremeSVM(**settings).fit(*data)
    path = tmp_path / "run.checkpoint"
    crashed = ExtremeSVM(**settings, checkpoint=path, callbacks=[stop(RuntimeError("killed"))])
    refused("killed", crashed.fit, *data, error=RuntimeError)
    again = ExtremeSVM(**settings, checkpoint=path).fit(*data)
    same(again.coef_.toarray(), whole.coef_.toarray())
    kept = ExtremeSVM(**settings, callbacks=[stop(KeyboardInterrupt)]).fit(*data)
    assert kept.stop_reason_ == "interrupted" and kept.n_iter_ == 2
    assert kept.score(*data) > 0.5


def test_progress_is_told(data, capsys):
    plain(verbose=2, max_iter=2).fit(*data)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4 and "plain pass 2/2: primal" in lines[3]
    assert lines[0].startswith("ExtremeSVM: alpha='auto' is ")
    assert lines[1].startswith("plain: preparing ")


# -- prediction -------------------------------------------------------------------------------


def scores_of(model, X):
    """All scores, by dense products of float64."""
    return X.toarray().astype(float) @ model.coef_.toarray().T.astype(float) + model.intercept_


@pytest.mark.parametrize("intercept", [False, True])
def test_scores_are_those_of_the_weights(data, intercept):
    X, y = data
    model = plain(solver=Plain(intercept=intercept)).fit(X, y)
    assert np.any(model.intercept_) == intercept and model.coef_.shape == (12, 60)
    expected = scores_of(model, X)
    scores = model.decision_function(X)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    same(model.predict(X), NAMES[scores.argmax(1)])
    for k in (1, 3, 12):
        classes, best = model.predict_topk(X, k)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        same(classes, NAMES[order])
        same(best, np.take_along_axis(scores, order, 1))
    same(model.predict_topk(X), model.predict_topk(X, 5))


def test_scores_of_chosen_classes(model, data):
    X, _ = data
    scores = model.decision_function(X)
    for chosen in ([3], [7, 0], [2, 2, 11, 5, 0, 1], np.arange(12)[::-1]):
        same(model.decision_function(X, classes=NAMES[chosen]), scores[:, chosen])
    same(model.decision_function(X, classes=["class 07"]), scores[:, 7:8])


def test_scores_in_blocks_are_the_same(model, data, monkeypatch):
    X, _ = data
    model = copy.deepcopy(model).calibrate(*data, kept=5)
    scores, few = model.decision_function(X), model.decision_function(X, classes=NAMES[:1])
    shares, best = model.predict_proba(X), model.predict_proba(X, 3).toarray()
    monkeypatch.setattr(module, "_BLOCK", 8 * 12 * 7)
    same(model.decision_function(X), scores)
    same(model.predict_proba(X), shares)
    same(model.predict_proba(X, 3).toarray(), best)
    same(model.decision_function(X, classes=NAMES[:1]), few)


def test_two_classes_have_one_score():
    X, y = documents(40, 2, 20)
    model = plain().fit(X, y)
    difference = model.decision_function(X)
    assert difference.shape == (40,)
    both = model.decision_function(X, classes=[0, 1])
    same(difference, both[:, 1] - both[:, 0])
    same(model.predict(X), (difference > 0).astype(y.dtype))


def test_empty_rows_are_scored_by_the_intercept(data):
    X, y = data
    X = sp.vstack([X, sp.csr_matrix((4, 60))], format="csr")
    y = np.append(y, ["class 05"] * 4)
    empty = sp.csr_matrix((2, 60))
    with_one = plain(solver=Plain(intercept=True)).fit(X, y)
    same(with_one.decision_function(empty), np.tile(with_one.intercept_, (2, 1)))
    assert with_one.predict(empty).tolist() == ["class 05"] * 2
    without = plain().fit(X, y)
    same(without.decision_function(empty), np.zeros((2, 12), np.float32))
    assert without.predict(empty).tolist() == ["class 00"] * 2


def test_score_is_the_accuracy_and_unseen_classes_are_errors(model, data):
    X, y = data
    assert model.score(X, y) == accuracy_score(y, model.predict(X))
    weights = np.arange(len(y), dtype=float)
    expected = accuracy_score(y, model.predict(X), sample_weight=weights)
    assert model.score(X, y, weights) == pytest.approx(expected)
    other = y.copy()
    other[:30] = "never seen"
    assert model.score(X, other) == np.mean(model.predict(X) == other)


# -- conventions ------------------------------------------------------------------------------


def test_as_many_classes_as_examples_warn_of_nothing():
    X, y = sp.identity(40, format="csr"), np.arange(40)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = plain(max_iter=10).fit(X, y)
        assert model.score(X, y) == 1


def test_parameters_of_parts_are_reached(data):
    model = plain()
    assert model.get_params()["solver__steps"] == 30
    other = clone(model).set_params(solver__steps=1)
    assert (model.solver.steps, other.solver.steps) == (30, 1)
    search = GridSearchCV(model, {"solver__steps": [1, 30], "alpha": [1e-3]}, cv=2)
    assert search.fit(*data).best_params_["solver__steps"] in (1, 30)
    assert repr(clone(model)) == repr(model)


def test_in_a_pipeline(data):
    X, y = data
    piped = make_pipeline(Normalizer(), plain()).fit(3 * X, y)
    assert piped.score(X, y) > 0.85


@pytest.mark.pandas
def test_names_of_features(data):
    pd = pytest.importorskip("pandas")
    X, y = data
    frame = pd.DataFrame(X.toarray(), columns=[f"word {f}" for f in range(60)])
    model = plain().fit(frame, y)
    assert model.feature_names_in_[7] == "word 7"
    refused("feature names", model.predict, frame[frame.columns[::-1]])
    model.fit(X, y)
    assert not hasattr(model, "feature_names_in_")


def test_pickles(model, data):
    again = pickle.loads(pickle.dumps(model))
    same(again.predict_topk(data[0]), model.predict_topk(data[0]))
    assert repr(again) == repr(model) and again.history_ == model.history_


def test_unfitted():
    X, _ = documents(20)
    for call in ("predict", "predict_topk", "decision_function"):
        refused("not fitted", getattr(plain(), call), X, error=NotFittedError)
    refused("not fitted", plain().save, "nowhere", error=NotFittedError)
    refused("not fitted", plain().sparsify, error=NotFittedError)
    refused("not fitted", lambda: plain().coef_, error=NotFittedError)


@pytest.mark.parametrize(
    "solver, surrogate, penalty, incremental, expected",
    [
        ("auto", "auto", "l2", False, ("choice", "auto")),
        ("one-vs-some", "auto", "l2", False, ("one-vs-some", "squared-hinge")),
        ("auto", "squared-hinge", "l2", False, ("one-vs-some", "squared-hinge")),
        ("auto", "logistic", "l2", False, ("one-vs-some", "logistic")),
        ("auto", "margin", "l2", False, ("dual", "margin")),
        ("auto", "crf", "l2", False, ("softmax", "crf")),
        ("auto", "max-min", "l2", False, ("dual", "max-min")),
        ("softmax", "auto", "l2", False, ("softmax", "crf")),
        ("auto", "auto", "l1", False, ("memoir", "margin")),
        ("auto", "auto", "l2", True, ("memoir", "margin")),
        ("dual", "auto", "l2", False, ("dual", "margin")),
    ],
)
def test_what_auto_stands_for(solver, surrogate, penalty, incremental, expected):
    made, chosen = choose_solver(solver, surrogate, penalty, incremental)
    assert (made.name, chosen) == expected


def test_rivals_leave_the_choice_to_solvers_that_ask_them():
    assert choose_solver("auto", "auto", "l2", False, True)[0].name == "one-vs-some"
    assert choose_solver("auto", "margin", "l2", False, True)[0].name == "dual"


def test_which_solvers_go_on():
    given = ("auto", "memoir", Memoir(), Plain(), "dual", "one-vs-some", "softmax")
    assert [is_incremental(one) for one in given] == [True] * 4 + [False] * 3
    assert hasattr(ExtremeSVM(), "partial_fit")
    assert not hasattr(ExtremeSVM(solver="dual"), "partial_fit")


def test_batches_go_on_with_falling_steps(data):
    X, y = data
    model = ExtremeSVM(solver="memoir", alpha=1e-3, random_state=0)
    steps, scores = [], []
    for _ in range(60):
        model.partial_fit(X, y, classes=NAMES)
        settings = model.settings_
        steps.append(settings["eta0"] / (1 + settings["eta_step"]))
        scores.append(model.score(X, y))
    assert model.solver_.name == "memoir" and model.n_iter_ == 60
    # 1 / (alpha (1 + t)), one step per call.
    np.testing.assert_allclose(steps, 1 / (1e-3 * (2 + np.arange(60))))
    assert scores[-1] > 0.85


def test_an_outsiders_solver_in_a_file(model, data, tmp_path):
    again = reloaded(model, tmp_path)
    assert again.solver == "plain"
    same(again.predict(data[0]), model.predict(data[0]))
    refused("solver is 'plain', expected 'auto', 'choice'", again.fit, *data)
    same(again.set_params(solver=Plain()).fit(*data).coef_.toarray(), model.coef_.toarray())


# -- our solvers ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"surrogate": "logistic"},
        {"surrogate": "margin", "rivals": "exact"},
        {"surrogate": "crf"},
        {"solver": "dual", "surrogate": "crf"},
        {"solver": "dual", "surrogate": "max-min"},
        {"solver": OneVsSome(n_rivals=5)},
        {"solver": "memoir", "rivals": "lsh:32", "max_iter": 100},
        {"solver": ExtremeDual(epsilon=0.0)},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_our_solvers(data, tmp_path, settings):
    model = ExtremeSVM(**settings).fit(*data)
    assert model.score(*data) > 0.85
    X, y = documents(200, seed=3)
    assert model.score(X, NAMES[y]) > 0.65
    last = model.history_[-1]
    assert set(RECORD) <= set(last)
    assert last["dual"] is None or last["primal"] >= last["dual"]
    same(clone(model).set_params(n_jobs=2).fit(*data).coef_.toarray(), model.coef_.toarray())
    again = reloaded(model, tmp_path)
    assert repr(again) == repr(model)
    same(again.predict(X), model.predict(X))
    same(again.fit(*data).coef_.toarray(), model.coef_.toarray())
    assert hasattr(model, "predict_proba") == (model.settings_["surrogate"] == "crf")


def test_defaults_warn_of_nothing(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ExtremeSVM().fit(*data)
    with pytest.warns(ConvergenceWarning, match="stopped after max_iter=1 passes with a relative"):
        ExtremeSVM(solver="dual", surrogate="crf", max_iter=1).fit(*data)
