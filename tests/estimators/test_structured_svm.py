"""StructuredSVM as users call it: fit, predict, scikit-learn conventions, constraints, paths."""

import copy
import logging
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused, same
from data import chains, classes, fitted, needs_data, ocr_letters
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import structsolve
from structsolve import ClassWeights, CostMatrix, StructuredSVM
from structsolve.estimators.decode import Room
from structsolve.potentials.linear import LinearPotentials
from structsolve.solvers import BCFW, SGD, CuttingPlane

warnings.simplefilter("ignore", ConvergenceWarning)


# Equal weights and repeated rows have the same optimum; equality to 1e-7 of every score asks for
# more than any solver's tolerance.
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": "needs the optimum to 1e-7 in every weight",
    "check_sample_weight_equivalence_on_sparse_data": "needs the optimum to 1e-7 in every weight",
}


@parametrize_with_checks(
    [StructuredSVM("multiclass", alpha=0.01)],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_fit_twice_and_jobs_give_the_same_bits():
    X, Y = chains(40)
    for solver in ("bcfw", "cutting-plane", "sgd"):
        model = fitted(X, Y, solver=solver, max_iter=20)
        first = model.coef_["node"].copy()
        np.testing.assert_array_equal(model.fit(X, Y).coef_["node"], first)
        two = fitted(X, Y, solver=solver, max_iter=20, n_jobs=2)
        np.testing.assert_array_equal(two.coef_["node"], first)
        same(two.predict_marginals(X), model.predict_marginals(X))


def test_decisions_are_made_of_max_marginals():
    X, Y = chains(15)
    model = fitted(X, Y)
    for scores, labels in zip(model.decision_function(X), model.predict(X)):
        np.testing.assert_array_equal(model.classes_[scores.argmax(1)], labels)
        best = scores.max(1)
        np.testing.assert_allclose(best, best[0])
    for marginals in model.predict_marginals(X):
        np.testing.assert_allclose(marginals.sum(1), 1)


def test_too_little_memory_is_told():
    space, examples = structsolve.get_structure("multiclass").make_space([[2.0], [1.0]], [0, 1])
    potentials = LinearPotentials(examples, space.layout)
    message = "no memory for 1152921504606846976 bytes of scratch .* fewer labels"
    refused(message, Room, potentials, 2**60, error=MemoryError)


def test_kbest_starts_with_the_prediction():
    X, Y = chains(8)
    model = fitted(X, Y)
    for best, labels in zip(model.predict_kbest(X, 4), model.predict(X)):
        assert best[0][0].tolist() == labels.tolist()
        scores = [s for _, s in best]
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(y) for y, _ in best}) == len(best) == min(4, 3 ** len(labels))


def test_constraints_at_prediction():
    X, Y = chains(15, longest=8)
    model = fitted(X, Y)
    for labels in model.predict(X, forbidden=[(0, 1), (1, 2)]):
        pairs = set(zip(labels[:-1].tolist(), labels[1:].tolist()))
        assert not pairs & {(0, 1), (1, 2)}
    allowed = [[[1]] + [None] * (len(x) - 1) for x in X]
    allowed[3] = None
    predicted = model.predict(X, allowed=allowed)
    assert all(y[0] == 1 for i, y in enumerate(predicted) if i != 3)
    marginals = model.predict_marginals(X, allowed=allowed)
    np.testing.assert_allclose(marginals[0][0], [0, 1, 0], atol=0)
    with pytest.raises(ValueError, match="example 0: the constraints leave no label"):
        model.predict(
            [x for x in X if len(x) > 1], forbidden=[(a, b) for a in range(3) for b in range(3)]
        )
    refused(r"forbidden: found \(0, 'x'\)", model.predict, X, forbidden=[(0, "x")])
    with pytest.raises(ValueError, match="example 0, node 0: allowed is"):
        model.predict(X, allowed=[[["nope"]] * len(x) for x in X])
    told = "example 2, node 0: allowed names the label 7; known are .0, 1, 2."
    refused(told, model.predict, X, allowed=[None, None, [[1, 7]] * len(X[2]), *[None] * 12])
    for wrong in ({1: False}, [1, [2]]):
        refused(
            "example 0, node 0: allowed is", model.predict, X[:1], allowed=[[wrong] * len(X[0])]
        )


def test_labels_allowed_at_every_node_hold_there():
    X, Y = chains(15, longest=8)
    model = fitted(X, Y)
    rng = np.random.default_rng(5)
    paths = [rng.integers(0, 3, len(x)) for x in X]
    predicted = model.predict(X, allowed=[[[int(k)] for k in path] for path in paths])
    for path, labels in zip(paths, predicted):
        np.testing.assert_array_equal(labels, path)
    # Only the last node.
    allowed = [[None] * (len(x) - 1) + [[int(path[-1])]] for x, path in zip(X, paths)]
    assert all(y[-1] == path[-1] for y, path in zip(model.predict(X, allowed=allowed), paths))
    # A boolean for each class means the same.
    masks = [np.eye(3, dtype=bool)[path] for path in paths]
    for path, labels in zip(paths, model.predict(X, allowed=masks)):
        np.testing.assert_array_equal(labels, path)
    with pytest.raises(ValueError, match="example 0, node 0: allowed has 2 booleans, expected one"):
        model.predict(X, allowed=[np.ones((len(x), 2), dtype=bool) for x in X])


@pytest.mark.parametrize("solver", ["cutting-plane", "sgd"])
def test_unpenalised_intercept(solver):
    X, y = classes(60)
    free = StructuredSVM(
        "multiclass", solver=solver, alpha=5.0, penalize_intercept=False, max_iter=300
    ).fit(X + 10, y)
    bound = StructuredSVM("multiclass", solver=solver, alpha=5.0, max_iter=300).fit(X + 10, y)
    assert np.abs(free.coef_["intercept"]).max() > np.abs(bound.coef_["intercept"]).max()
    assert free.history_[-1]["primal"] < bound.history_[-1]["primal"]


def test_bcfw_says_what_it_lacks():
    X, y = classes(20)
    with pytest.raises(ValueError, match="solver 'bcfw' cannot leave the intercept unpenalised"):
        StructuredSVM("multiclass", penalize_intercept=False).fit(X, y)
    assert not hasattr(StructuredSVM("multiclass"), "partial_fit")
    with pytest.raises(AttributeError) as caught:
        StructuredSVM("multiclass").partial_fit(X, y)
    assert "needs a solver that does not store examples" in str(caught.value)


def test_partial_fit_learns_from_batches():
    X, y = classes(200)
    model = StructuredSVM("multiclass", solver="sgd", alpha=0.01)
    for _epoch in range(5):
        for first in range(0, 200, 50):
            part = slice(first, first + 50)
            model.partial_fit(X[part], y[part], classes=[0, 1, 2])
    assert model.score(X, y) > 0.9
    assert [h["pass"] for h in model.history_] == list(range(1, 21))
    refused("example 0: label 7", model.partial_fit, X[:1], [7])


def test_path_equals_separate_fits():
    X, Y = chains(25)
    alphas = [0.5, 0.01, 0.1]
    base = StructuredSVM("chain", tol=1e-7, max_iter=1000)
    models = base.path(X, Y, alphas)
    assert not hasattr(base, "coef_")
    for alpha, model in zip(alphas, models):
        alone = clone(base).set_params(alpha=alpha).fit(X, Y)
        assert model.alpha == alpha
        assert model.history_[-1]["primal"] == pytest.approx(alone.history_[-1]["primal"], rel=1e-6)
        assert model.predict(X)[0].shape == Y[0].shape


@pytest.mark.parametrize("solver", ["bcfw", "cutting-plane"])
def test_warm_start_needs_fewer_passes(solver):
    X, Y = chains(40)
    cold = fitted(X, Y, solver=solver, tol=1e-4, max_iter=200)
    warm = fitted(X, Y, solver=solver, tol=1e-4, max_iter=200, warm_start=True)
    warm.set_params(alpha=0.049).fit(X, Y)
    assert warm.n_iter_ <= cold.n_iter_
    assert warm.stop_reason_ == cold.stop_reason_ == "converged"


@pytest.mark.parametrize("random_state", range(4))
def test_warm_start_of_sgd_keeps_what_it_has(random_state):
    X, Y = chains(40)
    options = {"solver": "sgd", "tol": 0, "random_state": random_state}
    cold = fitted(X, Y, max_iter=10, **options)
    warm = fitted(X, Y, max_iter=60, warm_start=True, **options)
    warm.set_params(alpha=0.049, max_iter=10).fit(X, Y)
    assert warm.history_[-1]["primal"] < 0.9 * cold.history_[-1]["primal"]


@pytest.mark.parametrize("form", [sp.coo_array, sp.dia_matrix, sp.bsr_matrix, "without rows"])
def test_early_stopping_splits_any_form(form):
    X, y = classes()
    settings = {"alpha": 0.01, "early_stopping": True, "max_iter": 20}
    expected = StructuredSVM("multiclass", **settings).fit(sp.csr_matrix(X), y)
    given, labels = (WithoutRows(X), WithoutRows(y)) if form == "without rows" else (form(X), y)
    model = StructuredSVM("multiclass", **settings).fit(given, labels)
    np.testing.assert_allclose(model.coef_["node"], expected.coef_["node"], atol=1e-9)


class WithoutRows:
    """An array that has nothing but its conversion, as that of another library."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return np.array(self.array, dtype)


def test_grid_search_reaches_into_structure_and_solver():
    X, Y = chains(24)
    grid = GridSearchCV(
        StructuredSVM(structsolve.get_structure("chain"), solver=BCFW()),
        {"structure__start_end": [True, False], "solver__steps": ["pairwise", "frank-wolfe"]},
        cv=KFold(2),
    ).fit(X, Y)
    assert grid.best_score_ > 0.5
    nested = grid.best_estimator_.get_params()
    assert {"structure__start_end", "solver__max_cuts", "alpha"} <= set(nested)


def test_pipeline_and_cross_validation_for_classes():
    X, y = classes(90)
    pipeline = make_pipeline(StandardScaler(), StructuredSVM("multiclass", alpha=0.01))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.8


def test_a_fold_without_a_class_scores():
    X, Y = chains(10)
    Y = [np.zeros_like(y) for y in Y[:5]] + Y[5:]
    model = fitted(X[:5], Y[:5])
    assert model.classes_.tolist() == [0]
    parts = np.concatenate(Y)
    assert model.score(X, Y) == pytest.approx((parts == 0).mean())


def test_score_is_one_minus_the_loss_per_part():
    X, Y = chains(20, noise=4)
    names = np.array(["a", "b", "c"])
    Y = [names[y] for y in Y]
    cost = CostMatrix([[0, 1, 2], [1, 0, 5], [3, 1, 0]])
    model = fitted(X, Y, loss=cost)
    index = {"a": 0, "b": 1, "c": 2}
    total = sum(
        np.asarray(cost.matrix)[index[t], index[p]]
        for ys, ps in zip(Y, model.predict(X))
        for t, p in zip(ys, ps)
    )
    assert model.score(X, Y) == pytest.approx(1 - total / sum(map(len, Y)))
    strict = fitted(X, Y, loss="zero-one", max_iter=50)
    wrong = [list(a) != list(b) for a, b in zip(Y, strict.predict(X))]
    assert strict.score(X, Y) == pytest.approx(1 - np.mean(wrong))
    mean = fitted(X, Y, loss="normalized-hamming", max_iter=50)
    rates = [np.mean(np.asarray(a) != b) for a, b in zip(Y, mean.predict(X))]
    assert mean.score(X, Y) == pytest.approx(1 - np.mean(rates))


def test_class_weights_move_the_decision():
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(0, 1, (60, 1)), rng.normal(1, 1, (60, 1))]
    y = np.r_[["common"] * 60, ["rare"] * 60]
    plain = StructuredSVM("multiclass").fit(X, y)
    heavy = StructuredSVM("multiclass", loss=ClassWeights({"rare": 10.0})).fit(X, y)
    assert (heavy.predict(X) == "rare").sum() > (plain.predict(X) == "rare").sum() + 10


def test_callbacks_see_passes_and_can_stop():
    X, Y = chains(20)
    seen = []

    def stop_at_three(record):
        seen.append((record["pass"], record["primal"], record["weights"]().shape))
        return record["pass"] == 3

    model = fitted(X, Y, callbacks=[stop_at_three], tol=0)
    assert [s[0] for s in seen] == [1, 2, 3]
    assert model.stop_reason_ == "callback"
    assert model.n_iter_ == 3


def test_interrupt_keeps_the_best_model(caplog):
    X, Y = chains(20)

    def interrupt(record):
        if record["pass"] == 4:
            raise KeyboardInterrupt

    with caplog.at_level(logging.WARNING, "structsolve"):
        model = fitted(X, Y, callbacks=[interrupt], tol=0)
    assert model.stop_reason_ == "interrupted"
    assert len(model.history_) == 4
    assert model.score(X, Y) > 0.5
    assert "interrupted after 4 passes" in caplog.text


def test_an_interrupt_before_any_weight_has_moved_leaves_no_model(monkeypatch, caplog):
    def interrupt(run):
        raise KeyboardInterrupt

    model = StructuredSVM("chain", solver="cutting-plane")
    with monkeypatch.context() as patch:
        patch.setattr("structsolve.solvers.cutting_plane.CuttingPlaneRun.step", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.fit(*chains(20))
    assert not hasattr(model, "coef_") and "keeping" not in caplog.text
    model.set_params(warm_start=True).fit(*chains(20))
    monkeypatch.setattr("structsolve.solvers.cutting_plane.CuttingPlaneRun.step", interrupt)
    assert model.fit(*chains(20)).stop_reason_ == "interrupted" and model.coef_["node"].any()


def test_early_stopping():
    X, Y = chains(60, noise=3)
    model = fitted(
        X,
        Y,
        early_stopping=True,
        n_iter_no_change=2,
        solver=BCFW(certify_every=1),
        tol=0,
        alpha=1e-4,
        max_iter=300,
    )
    assert model.stop_reason_ == "early_stopping"
    scores = [h["validation_score"] for h in model.history_]
    assert len(scores) - 1 - int(np.argmax(scores)) == 2
    given = StructuredSVM("chain", early_stopping=True, max_iter=20).fit(
        X[:40], Y[:40], validation=(X[40:], Y[40:])
    )
    best = max(h.get("validation_score", -1) for h in given.history_)
    assert given.score(X[40:], Y[40:]) == pytest.approx(best)


def test_history_has_what_it_promises():
    X, Y = chains(20)
    for solver in (BCFW(certify_every=1), CuttingPlane()):
        model = fitted(X, Y, solver=solver, tol=1e-4)
        for record in model.history_:
            assert {"pass", "primal", "dual", "gap", "oracle_calls", "seconds"} <= set(record)
            assert record["dual"] <= record["primal"] + 1e-12
        assert model.history_[-1]["gap"] <= 1e-4 * model.history_[-1]["primal"]
    sgd = fitted(X, Y, solver=SGD(), max_iter=5)
    assert sgd.history_[-1]["primal"] > 0


def test_convergence_warning_names_gap_and_remedy():
    X, Y = chains(20)
    with pytest.warns(ConvergenceWarning, match="raise max_iter or tol"):
        StructuredSVM("chain", alpha=1e-6, max_iter=1).fit(X, Y)


def test_not_fitted():
    with pytest.raises(NotFittedError):
        StructuredSVM("chain").predict([[[1.0]]])


def test_fitted_models_pickle():
    X, Y = chains(10)
    model = fitted(X, Y)
    # Also if they hold factories of their operators, which pickles omit.
    expected = [a.tolist() for a in model.predict(X)]
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert [a.tolist() for a in again.predict(X)] == expected


def test_operators_are_asked_for_once(monkeypatch):
    from structsolve import registry

    X, Y = chains(10)
    model, asked, plugins = fitted(X, Y), [], registry.default()
    ask = plugins.ask

    def counted(hook, *arguments, **named):
        asked.append(hook)
        return ask(hook, *arguments, **named)

    monkeypatch.setattr(plugins, "ask", counted)
    for _ in range(3):
        model.predict(X[:2])
        model.predict_kbest(X[:2], 2)
        model.predict_marginals(X[:2])
        model.decision_function(X[:2])
        model.score(X, Y)
    assert asked.count("structsolve_oracle") == asked.count("structsolve_loss") == 1
    assert asked.count("structsolve_projection") == 1 and asked.count("structsolve_power") == 2
    # With another oracle there are other operators, and afterwards those of before.
    model.set_params(oracle="lp").predict(X[:2])
    refused("oracle='lp' has no k-best power", model.predict_kbest, X[:2], 2)
    model.set_params(oracle=None).predict_kbest(X[:2], 2)
    assert asked.count("structsolve_power") == 2


@needs_data
def test_ocr_letters_reach_the_certified_optimum():
    X, Y, fold = ocr_letters()
    train = np.flatnonzero(fold == 0)
    model = StructuredSVM(
        structsolve.get_structure("chain", start_end=False),
        alpha=1 / (0.1 * len(train)),
        fit_intercept=False,
        tol=2e-3,
        max_iter=2000,
    ).fit([X[i] for i in train], [Y[i] for i in train])
    scale = 0.1 * len(train)
    # Certified bounds of the optimum, found by other means.
    assert model.history_[-1]["primal"] * scale >= 202.29
    assert model.history_[-1]["dual"] * scale <= 203.88
    test = np.flatnonzero(fold != 0)[:1000]
    assert model.score([X[i] for i in test], [Y[i] for i in test]) > 0.75


def test_the_solver_that_ran_is_told():
    X, y = [[0.0], [1.0], [2.0]], [0, 1, 1]
    for surrogate, name in (("margin", "bcfw"), ("crf", "gbcfw")):
        model = StructuredSVM("multiclass", surrogate=surrogate, alpha=0.1).fit(X, y)
        assert model.solver_.name == name and model.solver == "auto"
