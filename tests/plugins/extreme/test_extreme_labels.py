"""Rows of several labels: one-vs-rest against another optimiser, forms of y, predictions, files."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused
from extreme_cases import documents, rows
from scipy.optimize import minimize
from sklearn.metrics import f1_score, label_ranking_average_precision_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import structsolve
from structsolve import ExtremeSVM
from structsolve.evaluation.scorers import get_scorer
from structsolve.plugins.extreme.label_sets import form_of, read_label_sets
from structsolve.plugins.extreme.metrics import precision_at_k
from structsolve.plugins.extreme.solvers._one_vs_rest import BLOCK, RestMachines, RestSpace
from structsolve.plugins.extreme.solvers.base import ExtremeProblem
from structsolve.plugins.extreme.solvers.one_vs_rest import OneVsRest
from structsolve.plugins.extreme.solvers.one_vs_some import OneVsSome
from structsolve.solvers.checkpoint import Checkpoint

pytestmark = pytest.mark.filterwarnings("ignore:X. .* far from length 1:UserWarning")


def label_sets(rng, n, n_labels):
    """Indicators; some rows and some labels have none."""
    Y = (rng.random((n, n_labels)) < 0.3).astype(np.float32)
    Y[rng.integers(0, n)] = 0
    Y[:, rng.integers(0, n_labels)] = 0
    return Y


def problem(rng, n=40, d=12, n_labels=7, **more):
    Y = sp.csr_matrix(label_sets(rng, n, n_labels))
    first = np.full(n, -1, np.int32)
    some = np.diff(Y.indptr) > 0
    first[some] = Y.indices[Y.indptr[:-1][some]]
    given = {"alpha": 1 / n, "surrogate": "squared-hinge", "max_iter": 20} | more
    return ExtremeProblem(rows(rng, n, d), first, n_labels, labels=Y, **given)


@pytest.fixture(scope="module")
def data():
    """Documents of one or two of twelve labels."""
    X, y = documents(200)
    Y = np.zeros((200, 12), np.int64)
    Y[np.arange(200), y] = 1
    pairs = sp.csr_matrix(X[:100] + X[100:])
    pairs.data /= np.repeat(
        np.sqrt(np.asarray(pairs.multiply(pairs).sum(axis=1)).ravel()), np.diff(pairs.indptr)
    )
    X = sp.vstack([X, pairs], format="csr")
    return X, np.vstack([Y, np.minimum(Y[:100] + Y[100:], 1)])


def same(a, b):
    np.testing.assert_array_equal(a.toarray() if sp.issparse(a) else a, b)


# -- the machines -----------------------------------------------------------------------------


def test_one_vs_rest_reaches_the_optimum_that_another_optimiser_has():
    rng = np.random.default_rng(0)
    for trial in range(30):
        n, d, C = int(rng.integers(2, 20)), int(rng.integers(1, 7)), int(rng.integers(2, 40))
        X, Y = rows(rng, n, d), label_sets(rng, n, C)
        cost = rng.choice([0.01, 1, 7], n).astype(np.float32)
        bias, columns = float(trial % 3), sp.csc_matrix(Y)
        machines = RestMachines(
            X, columns.indptr.astype(np.int64), columns.indices, cost, bias, 20_000, 1e-5, trial
        )
        space, first = RestSpace(n, d), 0
        while first < C:  # blocks of any size, with the same memory
            last = min(C, first + int(rng.integers(1, BLOCK + 1)))
            sizes, features, weights, b, figures = machines.train(first, last, space, 0.0)
            W = np.zeros((last - first, d))
            W[np.repeat(np.arange(last - first), sizes), features] = weights
            dense = np.column_stack([X.toarray(), np.full(n, bias)]).astype(float)
            for c in range(first, last):
                sign = 2.0 * Y[:, c] - 1

                def value(w, sign=sign, dense=dense, cost=cost):
                    lack = np.maximum(0, 1 - sign * (dense @ w))
                    return w @ w / 2 + cost @ lack**2, w - 2 * dense.T @ (cost * sign * lack)

                best = minimize(value, np.zeros(d + 1), jac=True, options={"gtol": 1e-8}).fun
                own = np.append(W[c - first], b[c - first] / bias if bias else 0)
                primal, dual, _, kept = figures[c - first]
                assert value(own)[0] == pytest.approx(best, rel=1e-4, abs=1e-6)
                assert primal == pytest.approx(value(own)[0], rel=1e-5, abs=1e-6)
                assert kept == pytest.approx(primal, rel=1e-9)
                assert best - 1e-4 * best - 1e-6 <= dual + 2e-4 * best
                assert dual <= best + 1e-5 * best + 1e-6
            first = last


def test_figures_are_those_of_the_weights_however_early_the_end_is():
    rng = np.random.default_rng(1)
    for passes in (1, 2, 5):
        given = problem(rng, max_iter=passes, n_labels=21)
        keep, bias = 0.2, 0.5
        result = OneVsRest(cost=2.0, bias=bias, keep=keep).fit(given)
        record = result.history[0]
        W, b = result.weights.to_matrix().toarray(), result.weights.intercept
        assert (abs(W[W != 0]) > keep).all()
        sign = 2 * given.labels.toarray() - 1
        lack = np.maximum(0, 1 - sign * (given.X @ W + b))
        primal = given.alpha / 2 * ((W**2).sum() + (b / bias) @ (b / bias))
        primal += 2.0 * (lack**2).sum() / len(given.y)
        assert record["primal"] == pytest.approx(primal, rel=1e-5)
        best = OneVsRest(cost=2.0, bias=bias, keep=0.0).fit(problem_like(given)).history[0]
        assert record["dual"] <= best["primal"] * (1 + 1e-5)
        assert best["gap"] <= 1e-3 * best["primal"]


def problem_like(given):
    more = {"labels": given.labels, "max_iter": 2000, "tol": 1e-4}
    surrogate = "squared-hinge"
    return ExtremeProblem(given.X, given.y, given.n_classes, given.alpha, surrogate, **more)


def test_one_class_per_row_is_a_set_of_one():
    rng = np.random.default_rng(2)
    X, y = rows(rng, 60, 12), rng.integers(0, 6, 60).astype(np.int32)
    sets = sp.csr_matrix((np.ones(60, np.float32), y, np.arange(61)), (60, 6))
    for solver in (OneVsRest(), OneVsSome(n_rivals=2)):
        alone = solver.fit(ExtremeProblem(X, y, 6, 1 / 60, "squared-hinge"))
        given = solver.fit(ExtremeProblem(X, y, 6, 1 / 60, "squared-hinge", labels=sets))
        same(alone.weights.to_matrix(), given.weights.to_matrix().toarray())


def test_weights_of_rows_are_repeated_rows():
    rng = np.random.default_rng(3)
    for solver in (OneVsRest(keep=0.0), OneVsSome(keep=0.0, means=0.0, n_rivals=6, epsilon=0.0)):
        given = problem(rng, max_iter=3000, tol=1e-6)
        weight = rng.integers(0, 3, len(given.y)).astype(float)
        picked = np.repeat(np.arange(len(given.y)), weight.astype(int))
        settings = {"max_iter": 3000, "tol": 1e-6}
        more = {**settings, "labels": given.labels, "sample_weight": weight}
        weighted = ExtremeProblem(given.X, given.y, 7, 0.02, "squared-hinge", **more)
        repeated = ExtremeProblem(
            given.X[picked], given.y[picked], 7, 0.02, "squared-hinge",
            labels=given.labels[picked], **settings,
        )  # fmt: skip
        one, two = solver.fit(weighted).weights, solver.fit(repeated).weights
        np.testing.assert_allclose(one.to_matrix().toarray(), two.to_matrix().toarray(), atol=2e-3)


@pytest.mark.parametrize("solver", ["one-vs-rest", "one-vs-some"])
def test_threads_change_nothing(data, solver):
    one, three = (ExtremeSVM(solver=solver, n_jobs=jobs).fit(*data) for jobs in (1, 3))
    same(one.coef_, three.coef_.toarray())
    assert one.history_[0]["visits"] == three.history_[0]["visits"]


class Due(Checkpoint):
    """Due after each block, and interrupted after some."""

    def __init__(self, path, writes):
        super().__init__(path, "same")
        self.left = writes

    def due(self):
        return True

    def write(self, state):
        super().write(state)
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def test_a_run_resumes_from_a_checkpoint_and_keeps_solved_labels(tmp_path):
    given = problem(np.random.default_rng(4), n_labels=70)
    whole = OneVsRest().fit(given)
    path = tmp_path / "state"
    some = OneVsRest().fit(given, checkpoint=Due(path, 2))
    assert some.stop_reason == "interrupted"
    expected = whole.weights.to_matrix().toarray()
    expected[:, 32:] = 0
    same(some.weights.to_matrix(), expected)
    again = OneVsRest().fit(given, checkpoint=Due(path, -1))
    same(again.weights.to_matrix(), whole.weights.to_matrix().toarray())
    assert again.history[0]["primal"] == whole.history[0]["primal"]


# -- forms of y -------------------------------------------------------------------------------


def test_forms_of_y_give_one_model_and_predictions_of_their_form(data, tmp_path):
    X, Y = data
    names = np.array([f"label {c:02d}" for c in range(12)])
    lists = [names[row > 0].tolist() for row in Y]
    array, sparse = ExtremeSVM().fit(X, Y), ExtremeSVM().fit(X, sp.csc_matrix(Y))
    listed, sets = ExtremeSVM().fit(X, lists), ExtremeSVM().fit(X, [set(row) for row in lists])
    nested = ExtremeSVM().fit(X, Y.tolist())
    for model in (sparse, listed, sets, nested):
        same(model.coef_, array.coef_.toarray())
    assert array.classes_.tolist() == list(range(12))
    assert listed.classes_.tolist() == sets.classes_.tolist() == names.tolist()
    told = array.predict(X)
    assert isinstance(told, np.ndarray) and told.dtype == Y.dtype
    same(array.decision_function(X) > 0, told)
    assert (told == Y).mean() > 0.95
    assert sp.issparse(sparse.predict(X))
    same(sparse.predict(X), told)
    assert listed.predict(X) == sets.predict(X) == [names[row > 0].tolist() for row in told]
    for model in (array, sparse, listed):
        model.save(tmp_path / "model")
        again = structsolve.load(tmp_path / "model")
        assert type(again.predict(X)) is type(model.predict(X))
        assert again.score(X, lists if model is listed else Y) == model.score(X, Y)


def test_the_score_is_the_precision_of_the_best_label(data):
    X, Y = data
    model = ExtremeSVM().fit(X[:250], Y[:250])
    best = model.predict_topk(X[250:], 1)[0]
    assert model.score(X[250:], Y[250:]) == precision_at_k(Y[250:], best, 1) > 0.8
    lists = [np.flatnonzero(row).tolist() + [99] for row in Y[250:]]
    assert model.score(X[250:], lists) == precision_at_k(lists, best, 1)
    weight = np.arange(50.0)
    right = Y[250:][np.arange(50), best[:, 0]]
    expected = np.average(right, weights=weight)
    assert model.score(X[250:], Y[250:], weight) == pytest.approx(expected)
    assert model.sparsify(error=0.0, X=X[250:], y=Y[250:]).score(X[250:], Y[250:]) >= expected - 1


def test_two_labels_have_two_columns_of_scores(data):
    X, Y = data
    model = ExtremeSVM().fit(X, Y[:, :2])
    assert model.decision_function(X).shape == (300, 2)
    same(model.decision_function(X) > 0, model.predict(X))


def test_lists_are_read_as_written_out_by_hand():
    rng = np.random.default_rng(5)
    for _ in range(200):
        n, names = int(rng.integers(1, 6)), np.array(["a", "b", "c", "d"])
        picked = rng.random((n, 4)) < 0.5
        picked[0, :2] = True
        lists = [rng.permutation(names[row]).tolist() for row in picked]
        labels, classes = read_label_sets(lists, form_of(lists), n)
        same(labels, picked[:, picked.any(axis=0)])
        assert classes.tolist() == names[picked.any(axis=0)].tolist()
        few, _ = read_label_sets(lists, "lists", n, np.array(["b", "d"]))
        same(few, picked[:, [1, 3]])
    assert form_of([[0, 1, 0], [1, 0, 0]]) == "array"
    assert form_of([[0, 1], [1, 0]]) == form_of([[1, 1, 0]]) == "array"
    assert form_of([[0, 1], [1, 0]], "lists") == "lists"
    assert form_of([[0, 1], [1]]) == form_of([{0, 1}, {0, 1}]) == form_of(((), (3,))) == "lists"
    assert form_of([1, 2]) is form_of(["ab", "cd"]) is form_of(np.ones((3, 1))) is None


def test_rows_and_labels_without_any_are_fine(data):
    X, Y = data
    empty = Y.copy()
    empty[::3], empty[:, 4] = 0, 0
    for solver in ("one-vs-rest", "one-vs-some"):
        model = ExtremeSVM(solver=solver).fit(X, empty)
        assert model.score(X[1::3], Y[1::3]) > 0.8
        assert (model.predict_topk(X, 1)[0] != 4).all()


def test_many_labels_are_trained_on_some_rows(data, monkeypatch):
    monkeypatch.setattr("structsolve.plugins.extreme.training._ALL_ROWS", 1000)
    model = ExtremeSVM().fit(*data)
    assert model.settings_["solver"] == "one-vs-some" and model.score(*data) > 0.8


@pytest.mark.parametrize(
    "y, message",
    [
        (2 * np.eye(300), "not 0 and 1 alone"),
        (np.eye(300)[:, :2] / 2, "not 0 and 1 alone"),
        (np.full((300, 2), "a"), "not 0 and 1 alone"),
        (np.full((300, 2), None), "not 0 and 1 alone"),
        (np.eye(299), "inconsistent numbers of samples: 300 rows of X, 299"),
        (sp.csr_matrix((300, 1)), "found 1 labels, expected at least 2"),
        ([[]] * 300, "found no label in any row"),
        ([["a", "b", "a"]] * 300, "example 0: found 'a' twice"),
        ([["a"], ["b", 1]] * 150, "y: Unknown label type: found .*int.*str"),
        ([["a"]] * 300, "found 1 labels"),
        ([["a", "b"]] * 299, "300 rows of X, 299 rows of labels in y"),
    ],
)
def test_labels_that_are_refused(data, y, message):
    refused(message, ExtremeSVM().fit, data[0], y)


@pytest.mark.parametrize(
    "settings",
    [
        {"solver": "softmax"}, {"solver": "choice"}, {"solver": "dual"}, {"solver": "memoir"},
        {"surrogate": "crf"}, {"penalty": "l1"},
    ],
)  # fmt: skip
def test_solvers_of_one_class_per_row_refuse_several(data, settings):
    message = "y: found rows of several labels, but solver .* takes one class per row: use solver"
    refused(message, ExtremeSVM(**settings).fit, *data)


def test_methods_of_one_class_per_row_refuse_several(data):
    X, Y = data
    model = ExtremeSVM().fit(X, Y)
    assert model.score(X, Y.astype(object)) == model.score(X, Y)  # as frames of several types
    refused("calibrate: the model was trained on rows of several labels", model.calibrate, X, Y)
    refused("y: found one class per row, but the model was", model.score, X, np.arange(300) % 12)
    refused("y has 3 columns of labels, expected 12", model.score, X, Y[:, :3])
    refused("y: found rows of several labels, but partial_fit", ExtremeSVM().partial_fit, X, Y)
    alone = ExtremeSVM().fit(X, np.arange(300) % 12)
    with pytest.raises(ValueError):
        alone.score(X, Y)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"cost": 0.0}, "cost is 0.0, expected a positive number"),
        ({"bias": -1.0}, "bias is -1.0, expected at least 0"),
        ({"keep": np.inf}, "keep is inf, expected at least 0"),
        ({"cost": 1e30}, "alpha is .*: an example has a share of .* expected 1e-18 to 1e\\+18"),
    ],
)
def test_settings_that_are_refused(data, settings, message):
    refused(message, ExtremeSVM(solver=OneVsRest(**settings)).fit, *data)


def test_memory_and_rivals(data):
    refused(
        "one-vs-rest would .* GB, more than max_memory of 1e-07 GB",
        ExtremeSVM(max_memory=100).fit,
        *data,
    )
    settings = {"solver": "one-vs-rest", "rivals": "exact"}
    refused("which solver 'one-vs-rest' does not take", ExtremeSVM(**settings).fit, *data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asked = ExtremeSVM(rivals="exact").fit(*data)
    assert asked.settings_["solver"] == "one-vs-some"


@pytest.mark.parametrize("form", ["array", "sparse", "lists"])
def test_scorers_by_name_compare_sets(form):
    """As indicators they were sequences of tokens, and averages were over 0 and 1."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 10)) * (rng.random((200, 10)) < 0.4)
    Y = (X @ rng.normal(size=(10, 4)) > 1).astype(int)
    weight = rng.random(200)
    y = {"array": Y, "sparse": sp.csr_matrix(Y), "lists": [np.flatnonzero(row) for row in Y]}[form]
    model = make_pipeline(MaxAbsScaler(), ExtremeSVM()).fit(X, y)
    told = model[-1].label_indicators(model.predict(X))
    for average in ("micro", "macro", "samples"):
        expected = f1_score(Y, told, average=average, sample_weight=weight, zero_division=0)
        scorer = get_scorer(f"{average}-f1")
        assert scorer(model, X, y, sample_weight=weight) == pytest.approx(expected)
    assert get_scorer("exact-match")(model, X, y) == (told == Y).all(axis=1).mean()
    assert get_scorer("accuracy")(model, X, y) == (told == Y).mean()
    scores = label_ranking_average_precision_score(Y, model.decision_function(X))
    assert get_scorer("average-precision")(model, X, y) == pytest.approx(scores)
    refused("y: found one class per row", get_scorer("macro-f1"), model, X, np.zeros(200, int))


@pytest.mark.parametrize("row", [[np.arange(2), np.arange(2)], [{}, 1]])
def test_what_is_no_label_is_refused(row):
    refused("y", ExtremeSVM().fit, np.eye(3), [row] * 3)


def test_lists_of_0_and_1_after_training_on_lists():
    """Both labels of a row, in any order, are no indicators then."""
    X, y = np.eye(3), [[0], [0, 1], [1]]
    model = ExtremeSVM(alpha=1e-3).fit(X, y)
    best, _ = model.predict_topk(X, 1)
    assert best.ravel()[[0, 2]].tolist() == [0, 1]
    both = [[0, 1], [1, 0], [0, 1]]
    assert model.score(X, both) == 1
    assert model.score(X[:1], [[1, 0]]) == model.score(X[2:], [[0, 1]]) == 1
    assert model.label_indicators(both).tolist() == [[1, 1]] * 3
