"""StructuredSVMCV and HierarchicalSVMCV: folds, scores, files, conventions."""

import pickle
import warnings

import numpy as np
import pytest
from checks import refused
from data import chains, flat
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

import structsolve
from structsolve import (
    ConditionalRiskMinimizer,
    HierarchicalSVM,
    HierarchicalSVMCV,
    StructuredSVM,
    StructuredSVMCV,
)
from structsolve.evaluation.alpha_path import given_alphas
from structsolve.evaluation.scorers import scorer_of

ALPHAS = [1.0, 0.1, 0.01]
TREE = [("r", "a"), ("r", "s"), ("s", "b"), ("s", "c")]


EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": "repeated rows fall into other folds",
    "check_sample_weight_equivalence_on_sparse_data": "repeated rows fall into other folds",
}


@parametrize_with_checks(
    [StructuredSVMCV("multiclass", alphas=[0.1], cv=2, max_iter=5)],
    expected_failed_checks=lambda estimator: EXPECTED,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("structure", "solver"),
    [("chain", "bcfw"), ("multiclass", "bcfw"), ("multiclass", "cutting-plane")],
)
def test_scores_are_those_of_cold_fits(structure, solver):
    X, y = chains(15, noise=2) if structure == "chain" else flat()
    settings = {"solver": solver, "max_iter": 3000}
    settings["tol"] = 1e-6 if solver == "bcfw" and structure == "multiclass" else 1e-3
    folds = KFold(3) if structure == "chain" else StratifiedKFold(3)
    model = StructuredSVMCV(structure, alphas=ALPHAS[::-1], cv=folds, **settings).fit(X, y)
    plain = StructuredSVM(structure, **settings)
    grid = GridSearchCV(plain, {"alpha": ALPHAS}, cv=folds).fit(X, y)
    assert model.alphas_.tolist() == ALPHAS
    results = [grid.cv_results_[f"split{k}_test_score"] for k in range(3)]
    np.testing.assert_allclose(model.scores_, results, atol=0.03)
    assert model.passes_.shape == (3, 3) and model.passes_.min() >= 1
    again = clone(plain).set_params(alpha=model.alpha_).fit(X, y)
    for name, rows in again.coef_.items():
        np.testing.assert_array_equal(model.coef_[name], rows)
    assert model.score(X, y) == again.score(X, y)


@pytest.mark.parametrize("seed", [0, None, "state"])
def test_threads_change_nothing(seed):
    X, y = chains(12, noise=2)
    fits = []
    for jobs in (1, 3):
        state = np.random.RandomState(5) if seed == "state" else seed
        model = StructuredSVMCV("chain", alphas=3, cv=3, tol=0.1, n_jobs=jobs, random_state=state)
        fits.append(model.fit(X, y))
    np.testing.assert_array_equal(fits[0].alphas_, fits[1].alphas_)
    if seed is not None:
        np.testing.assert_array_equal(fits[0].scores_, fits[1].scores_)
        np.testing.assert_array_equal(fits[0].passes_, fits[1].passes_)
        np.testing.assert_array_equal(fits[0].flat_weights(), fits[1].flat_weights())


def sorted_rows():
    """Classes in order, as files often have them."""
    X, y = flat(90)
    order = np.argsort(y, kind="stable")
    return X[order], y[order]


@pytest.mark.parametrize("structure", ["multiclass", "ordinal"])
def test_folds_of_a_number_are_shuffled_and_stratified(structure):
    X, y = sorted_rows()
    if structure == "ordinal":
        y = np.searchsorted(np.unique(y), y)
    seen = []

    def scorer(model, X_test, y_test):
        seen.append(np.unique(y_test, return_counts=True)[1].tolist())
        return float(len(seen) % 7)

    settings = {"alphas": [0.1], "cv": 5, "scoring": scorer, "refit": False, "tol": 0.1}
    for labels in (y, y[:, None]):
        StructuredSVMCV(structure, **settings).fit(X, labels)
    counts = np.unique(y, return_counts=True)[1]
    for fold in seen:
        assert np.abs(np.array(fold) - counts / 5).max() < 1
    scores = [
        StructuredSVMCV(structure, alphas=[0.1], cv=3, refit=False, random_state=seed).fit(X, y)
        for seed in (0, 0, 1, 2)
    ]
    assert np.array_equal(scores[0].scores_, scores[1].scores_)
    assert any(not np.array_equal(scores[0].scores_, other.scores_) for other in scores[2:])


def test_ones_own_folds_stay_as_they_are():
    X, y = sorted_rows()
    tested = []

    def scorer(model, X_test, y_test):
        tested.append(X_test.tolist())
        return 0.5

    for cv in (KFold(3), list(KFold(3).split(X)), (fold for fold in KFold(3).split(X))):
        tested.clear()
        model = StructuredSVMCV("multiclass", alphas=[0.1], cv=cv, scoring=scorer, refit=False)
        model.fit(X, y)
        assert tested == [X[test].tolist() for _, test in KFold(3).split(X)]
    halves = np.arange(90) < 45
    masks = StructuredSVMCV("multiclass", alphas=[0.1], cv=[(halves[::-1], halves)], refit=False)
    assert masks.fit(X[::-1], y[::-1]).scores_.shape == (1, 1)
    for folds, message in (
        ([([0, 1], [99])], "the test rows of fold 0 hold 99; expected rows of X, 0 to 89"),
        (GroupKFold(3), r"cv: GroupKFold\(.*\) cannot split these examples \(.*groups"),
        ([([0, -91], [2])], "the training rows of fold 0 hold -91"),
        ([([0, 1], [2]), ([0, 1], [])], "the test rows of fold 1 are none"),
        ([([0.5, 1], [2])], "the training rows of fold 0 are float64"),
        ([([0, 1], [[2]])], "the test rows of fold 0 are int64 of shape"),
        ([[0, 1, 2]], "fold 0 is .*; expected a pair"),
        ([3], "fold 0 is 3; expected a pair"),
        ([], "has no folds"),
        (1, "cv is 1, expected"),
        ("three", "cv is 'three', expected"),
        (0.5, "cv is 0.5, expected"),
        (True, "cv is True, expected"),
    ):
        with pytest.raises(ValueError, match=message):
            StructuredSVMCV("multiclass", alphas=[0.1], cv=folds).fit(X, y)
    model = StructuredSVMCV("multiclass", alphas=[0.1], cv=[(halves, ~halves)])
    for rows, which in ((halves, "test"), (~halves, "training")):
        with pytest.raises(ValueError, match=f"sample_weight is zero for all {which} rows of fold"):
            model.fit(X, y, sample_weight=rows.astype(float))


def test_what_chose_is_told(caplog):
    X, y = flat(60)
    with caplog.at_level("INFO", logger="structsolve.solvers"):
        model = StructuredSVMCV("multiclass", alphas=[0.1, 0.01], cv=3).fit(X, y)
    assert model.scoring_ == "1 - mean loss (hamming)"
    told = f"alpha {model.alpha_:.4g} of 2 tried, by 1 - mean loss (hamming): "
    assert any(told in record.message for record in caplog.records)
    named = StructuredSVMCV("multiclass", alphas=[0.1], cv=3, scoring="f1_macro").fit(X, y)
    assert named.scoring_ == "f1_macro"
    mine = StructuredSVMCV("multiclass", alphas=[0.1], cv=3, scoring=lambda *given: 1.0)
    assert mine.fit(X, y).scoring_ == "<lambda>"


@pytest.mark.parametrize(
    ("alphas", "scores", "message"),
    [
        ([1, 0.1, 0.01], [0, 1, 2], "0.01, is the smallest of those tried; try smaller"),
        ([1, 0.1, 0.01], [2, 1, 0], "1, is the largest of those tried; try larger"),
        ([1, 0.1, 0.01], [0, 1, 0], None),
        ([1], [0], None),
        (3, [0, 1, 2], "is the smallest of those tried; try smaller"),
        (3, [2, 1, 0], "weights that are practically zero predict best"),
    ],
)
def test_a_best_alpha_at_an_end_is_told(alphas, scores, message):
    X, y = flat(20)
    given = iter(np.repeat(scores, 2))
    model = StructuredSVMCV(
        "multiclass", alphas=alphas, cv=2, refit=False, scoring=lambda *_: float(next(given))
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    told = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
    assert len(told) == (message is not None) and all(message in text for text in told)


def test_all_folds_have_scores_at_the_chosen_alpha():
    """By the leading three the last alpha is ruled out; by all five it is expected to be best."""
    table = np.array(
        [[0.8, 0.4, 0.7], [0.3, 0, 0.2], [0.9, 0.9, 0.6], [0.2, 0.5, 0], [0.1, 0.8, 0]]
    )
    X, y = flat(40)
    X[:, 0] = fold = np.arange(40) // 8
    folds = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(5)]
    alphas = []

    def scoring(model, rows, labels):
        if model.alpha not in alphas:
            alphas.append(model.alpha)
        return table[int(rows[0, 0]), alphas.index(model.alpha)]

    given = {"alphas": 3, "cv": folds, "scoring": scoring, "refit": False}
    model = StructuredSVMCV("multiclass", **given).fit(X, y)
    np.testing.assert_array_equal(model.scores_, table)
    assert model.alpha_ == model.alphas_[np.argmax(table.mean(axis=0))]


def test_groups_weights_and_splitters():
    X, y = flat(40)
    groups = np.arange(40) % 4
    model = StructuredSVMCV("multiclass", alphas=ALPHAS, cv=GroupKFold(4)).fit(X, y, groups=groups)
    for fold, (train, test) in enumerate(GroupKFold(4).split(X, y, groups)):
        plain = StructuredSVM("multiclass", alpha=1.0).fit(X[train], y[train])
        assert plain.score(X[test], y[test]) == pytest.approx(model.scores_[fold, 0], abs=0.11)
    weight = np.where(np.arange(40) < 30, 1.0, 0.0)
    split = [(np.arange(20), np.arange(20, 40))]
    half = StructuredSVMCV("multiclass", alphas=[0.1], cv=split).fit(X, y, sample_weight=weight)
    plain = StructuredSVM("multiclass", alpha=0.1).fit(X[:20], y[:20])
    assert half.scores_[0, 0] == pytest.approx(plain.score(X[20:30], y[20:30]), abs=0.11)
    with pytest.raises(ValueError, match="sample_weight"):
        half.fit(X, y, sample_weight=weight[:3])


def test_scorers():
    X, y = flat(30)
    X_chain, Y = chains(20, noise=2)
    folds = StratifiedKFold(2)
    model = StructuredSVMCV("multiclass", alphas=[0.1], cv=folds, scoring="f1_macro").fit(X, y)
    plain = StructuredSVM("multiclass")
    wanted = GridSearchCV(plain, {"alpha": [0.1]}, cv=folds, scoring="f1_macro")
    assert model.scores_.mean() == pytest.approx(wanted.fit(X, y).best_score_, abs=0.05)
    tokens = StructuredSVMCV("chain", alphas=[0.1], cv=KFold(2), scoring="macro-f1").fit(X_chain, Y)
    plain = StructuredSVM("chain", alpha=0.1)
    train, test = next(KFold(2).split(X_chain))
    plain.fit([X_chain[i] for i in train], [Y[i] for i in train])
    score = scorer_of("macro-f1", False)(plain, [X_chain[i] for i in test], [Y[i] for i in test])
    assert tokens.scores_[0, 0] == pytest.approx(score, abs=0.05)
    assert callable(scorer_of("span-recall", False)) and scorer_of(None, True) is None
    for name, plain_y, message in (
        ("f1_macro", False, "does not fit labels such as these"),
        ("f2", True, "or a name of scikit-learn's"),
        (3, False, "scoring is 3"),
    ):
        refused(message, scorer_of, name, plain_y)
    with pytest.raises(ValueError, match="does not fit"):
        StructuredSVMCV("chain", scoring="f1_macro").fit(X_chain, Y)
    X_pairs = np.random.default_rng(0).normal(size=(20, 2, 1))
    Y_pairs = (X_pairs[..., 0] > 0).astype(int)
    for form in (list, np.array):  # sequences of one length stay sequences in an array
        pairs = StructuredSVMCV("chain", alphas=[0.1], cv=KFold(2), scoring="accuracy")
        again = pairs.fit(form(X_pairs), form(Y_pairs)).scores_
        np.testing.assert_array_equal(
            again, pairs.set_params(scoring=None).fit(X_pairs, Y_pairs).scores_
        )
    with pytest.raises(
        ValueError, match="scoring returned nan at alpha=0.1 on the test rows of fold 0"
    ):
        StructuredSVMCV("multiclass", alphas=[0.1], scoring=lambda *given: np.nan).fit(X, y)


def test_files_pickles_and_settings(tmp_path):
    X, Y = chains(20, noise=2)
    model = StructuredSVMCV("chain", alphas=ALPHAS, cv=2, scale_features="std").fit(X, Y)
    model.save(tmp_path / "model")
    loaded = structsolve.load(tmp_path / "model")
    assert type(loaded) is StructuredSVM and loaded.alpha == model.alpha_
    assert loaded.scale_features == "std"
    copied = pickle.loads(pickle.dumps(model))
    for other in (loaded, copied):
        assert all(np.array_equal(a, b) for a, b in zip(other.predict(X), model.predict(X)))
    assert np.array_equal(copied.scores_, model.scores_)
    params = model.get_params()
    assert set(StructuredSVM().get_params()) - set(params) == {"alpha", "warm_start"}
    assert "alphas=[1.0, 0.1, 0.01]" in repr(model) and "kernel" not in repr(model)
    assert clone(model).get_params()["scale_features"] == "std"
    refused("alfas", StructuredSVMCV, "chain", alfas=3, error=TypeError)
    for name in ("path", "partial_fit"):
        assert not hasattr(model, name)


def test_only_scores_without_refit():
    X, y = flat(20)
    model = StructuredSVMCV("multiclass", alphas=ALPHAS, cv=2, refit=False).fit(X, y)
    assert model.alpha_ in ALPHAS
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.set_params(refit=True).fit(X, y).predict(X)
    model.set_params(refit=False).fit(X[:, :1], y)  # the model before is none of this alpha
    for call in (model.predict, model.save):
        with pytest.raises(NotFittedError):
            call(X)
    assert not hasattr(model, "coef_")


def test_early_stopping_and_what_is_told(tmp_path, capsys):
    X, y = flat(40)
    settings = {"early_stopping": True, "max_iter": 15, "tol": 1e-6}
    calls = []
    model = StructuredSVMCV(
        "multiclass",
        alphas=[1e-4, 1e-5],
        cv=2,
        verbose=1,
        callbacks=[lambda record: calls.append(record["pass"])],
        checkpoint=tmp_path / "run",
        **settings,
    ).fit(X, y)
    assert calls == [record["pass"] for record in model.history_]
    assert (tmp_path / "run").exists() and "alpha path pass 2/2" in capsys.readouterr().err
    plain = StructuredSVM("multiclass", alpha=model.alpha_, **settings).fit(X, y)
    np.testing.assert_array_equal(model.coef_["node"], plain.coef_["node"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        StructuredSVMCV("multiclass", alphas=[1e-7], cv=3, max_iter=1).fit(X, y)
    told = [w for w in caught if issubclass(w.category, ConvergenceWarning)]
    assert len(told) == 1  # that of the model which is kept


@pytest.mark.parametrize(
    "settings",
    [
        {"max_iter": 10},
        {"normalization": "learned", "max_alternations": 2, "max_iter": 20},
        {"sparse": True},
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_hierarchies(settings, tmp_path):
    X, y = flat(30)
    alphas = [0.01, 0.001] if settings.get("sparse") else 3
    model = HierarchicalSVMCV(TREE, alphas=alphas, cv=3, tol=0.01, **settings).fit(X, y)
    assert model.scores_.shape[0] == 3 and model.scores_.max() > 0.5
    model.save(tmp_path / "model")
    loaded = structsolve.load(tmp_path / "model")
    assert type(loaded) is HierarchicalSVM and loaded.alpha == model.alpha_
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_allclose(loaded.node_weights_, model.node_weights_)


def test_label_sets_and_rare_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 3))
    sets = (X + rng.normal(size=X.shape) > 0).astype(int)
    for scoring in (None, "f1_micro"):
        model = StructuredSVMCV("multilabel", alphas=[0.1, 0.01], cv=3, scoring=scoring)
        assert model.fit(X, sets).scores_.shape == (3, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        few = StructuredSVMCV("multiclass", alphas=[0.1], cv=3).fit(X, np.arange(24) % 12)
    assert few.scores_.shape == (3, 1)


def test_ordered_classes_that_a_fold_lacks():
    y = np.concatenate([np.arange(30) % 4, [4], [5] * 6])  # of class 4 there is one row
    X = np.random.default_rng(0).normal(size=(len(y), 2)) + y[:, None]
    for cv in (3, list(KFold(3, shuffle=True, random_state=0).split(X))):
        model = StructuredSVMCV("ordinal", alphas=[0.1, 0.01, 0.001], cv=cv).fit(X, y)
        assert model.classes_.tolist() == [0, 1, 2, 3, 4, 5] and model.scores_.shape == (3, 3)
        assert model.get_params()["structure"] == "ordinal"


def test_refusals():
    X, y = flat(12)
    for alphas in ("way", 0, True, [], [0.1, -1], [np.inf], ["a"], ["1"], None):
        with pytest.raises(ValueError, match="alphas is"):
            StructuredSVMCV("multiclass", alphas=alphas).fit(X, y)
    assert given_alphas((0.1, 1, 0.1)) == [1.0, 0.1] and given_alphas(np.int64(4)) == 4
    for patience in (0, 1.5, True):
        with pytest.raises(ValueError, match="patience is"):
            StructuredSVMCV("multiclass", patience=patience).fit(X, y)
    with pytest.raises(ValueError, match="precomputed"):
        StructuredSVMCV("multiclass", kernel="precomputed").fit(X @ X.T, y)
    with pytest.raises(ValueError, match="list them"):
        HierarchicalSVMCV(TREE, sparse=True).fit(X, y)
    with pytest.raises(ValueError, match="max_iter is 0"):
        StructuredSVMCV("multiclass", max_iter=0).fit(X, y)
    with pytest.raises(ValueError, match=r"groups are given, .* cv=GroupKFold\(2\)"):
        StructuredSVMCV("multiclass", cv=2).fit(X, y, groups=np.arange(12) % 4)
    with pytest.raises(ValueError, match="did you mean 'f1_macro'"):
        StructuredSVMCV("multiclass", cv=2, scoring="f1_marco").fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        StructuredSVMCV("multiclass", cv=2).fit(X, np.zeros(12))  # one class: objectives of 0
    with pytest.raises(ValueError, match="cv is 13 folds, .* n_samples=12"):
        StructuredSVMCV("multiclass", cv=13).fit(X, y)
    for alphas in (["auto", 0.1], ["1"], 0.1, None):
        with pytest.raises(ValueError, match="alphas is .* expected a list of numbers"):
            StructuredSVM("multiclass").path(X, y, alphas=alphas)
    for validation in ((X,), (X, y, y), X, 3):
        with pytest.raises(ValueError, match=r"validation: found .* expected a pair \(X, y\)"):
            StructuredSVM("multiclass").fit(X, y, validation=validation)
    for alpha in ("x", None, [0.1], 0):
        with pytest.raises(ValueError, match="alpha"):
            ConditionalRiskMinimizer(alpha=alpha).fit(X, y)
    with pytest.raises(ValueError, match="alpha is 'x', expected a number > 0 or 'auto'"):
        ConditionalRiskMinimizer(alpha="x").fit(X, y)


def test_settings_may_name_a_class_that_a_fold_lacks():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(4, 3)) for _ in range(12)]
    Y = [["a", "b", "b", "a"] for _ in X]
    Y[3] = ["a", "b", "a", "rare"]
    settings = {"alphas": [1.0, 0.1], "cv": KFold(3), "random_state": 0}

    def scores(structure="chain", **params):
        return StructuredSVMCV(structure, **settings, **params).fit(X, Y).scores_

    plain = scores()
    np.testing.assert_array_equal(scores(class_weight={"rare": 1.0}), plain)
    assert scores(class_weight={"rare": 5.0}).shape == plain.shape
    barred = structsolve.get_structure("chain", forbidden=[("rare", "b")])
    np.testing.assert_array_equal(scores(barred)[1:], plain[1:])
    costs = structsolve.CostMatrix(1 - np.eye(3))
    np.testing.assert_allclose(scores(loss=costs), plain)
