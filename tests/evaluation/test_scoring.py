"""Scores of label sequences through scikit-learn: ours by name; its own are never wrong."""

import copy
import pickle

import numpy as np
import pytest
from checks import refused
from sklearn import config_context, metrics
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    train_test_split,
)

from structsolve import (
    ConditionalRiskMinimizer,
    HiddenMarkovModel,
    HierarchicalSVM,
    LatentSVM,
    StructuredSVM,
    WeightedLabels,
    get_scorer,
    get_structure,
)
from structsolve.estimators.label_list import LabelList, guarded
from structsolve.evaluation.metrics import TOKEN_METRICS, hamming_loss, token_report, token_score
from structsolve.evaluation.scorers import get_scorer_names
from structsolve.plugins.chain.metrics import span_f1
from structsolve.plugins.cky.metrics import bracket_report
from structsolve.plugins.dag.metrics import hierarchical_scores
from structsolve.plugins.dependency.metrics import attachment_report
from structsolve.plugins.extreme.metrics import precision_at_k, propensity_precision_at_k
from structsolve.plugins.multilabel.metrics import SET_METRICS, label_set_report
from structsolve.plugins.permutation.metrics import ranking_report

rng = np.random.default_rng(0)
EQUAL = [rng.normal(size=(3, 2)) for _ in range(12)]
RAGGED = [rng.normal(size=(2 + i % 3, 2)) for i in range(12)]
SENTENCE = 'structsolve.get_scorer\\("macro-f1"\\)'


def noise(X, classes):
    labels = np.random.default_rng(1)
    return [[classes[k] for k in labels.integers(len(classes), size=len(x))] for x in X]


def chain():
    return StructuredSVM("chain", alpha=0.1, tol=0.1)


CLASS_OF = np.random.default_rng(2).integers(3, size=30)
CLASSES = ([0, 1], [0, 1, 2], ["O", "B-A"])


@pytest.mark.parametrize("X", [EQUAL, RAGGED], ids=["equal", "ragged"])
@pytest.mark.parametrize("classes", CLASSES, ids=str)
@pytest.mark.parametrize("scoring", ["f1_macro", "accuracy", "neg_mean_squared_error"])
def test_metrics_of_scikit_learn_are_refused_with_the_name_of_the_right_one(X, classes, scoring):
    Y = noise(X, classes)
    with pytest.raises(ValueError, match=SENTENCE):
        cross_val_score(chain(), X, Y, scoring=scoring, cv=3, error_score="raise")
    with pytest.raises(ValueError, match=SENTENCE):
        GridSearchCV(chain(), {"alpha": [1.0]}, scoring=scoring, cv=3, error_score="raise").fit(
            X, Y
        )


def test_by_default_a_refused_metric_gives_nan_and_the_sentence():
    with pytest.warns(UserWarning, match=SENTENCE):
        scores = cross_val_score(chain(), EQUAL, noise(EQUAL, [0, 1]), scoring="f1_macro", cv=3)
    assert np.isnan(scores).all()


@pytest.mark.parametrize("X", [EQUAL, RAGGED], ids=["equal", "ragged"])
def test_every_metric_of_two_label_lists_is_refused(X):
    Y = noise(X, [0, 1])
    answers = chain().fit(X, Y).predict(X)
    for metric in (
        metrics.accuracy_score,
        metrics.balanced_accuracy_score,
        metrics.classification_report,
        metrics.cohen_kappa_score,
        metrics.confusion_matrix,
        metrics.f1_score,
        metrics.hamming_loss,
        metrics.jaccard_score,
        metrics.matthews_corrcoef,
        metrics.mean_absolute_error,
        metrics.multilabel_confusion_matrix,
        metrics.precision_recall_fscore_support,
        metrics.r2_score,
        metrics.zero_one_loss,
    ):
        # Some make an array of y_true before they ask for any length: NumPy refuses ragged ones.
        # Older releases ask for lengths first.
        of_arrays = metric in (
            metrics.balanced_accuracy_score,
            metrics.cohen_kappa_score,
            metrics.confusion_matrix,
        )
        sentence = f"{SENTENCE}|inhomogeneous" if of_arrays and X is RAGGED else SENTENCE
        refused(sentence, metric, Y, answers)
        refused(f"{SENTENCE}|inhomogeneous", metric, answers, Y)


@pytest.mark.parametrize("X", [EQUAL, RAGGED], ids=["equal", "ragged"])
def test_names_work_as_scoring(X):
    Y = noise(X, ["O", "B-A", "I-A"])
    of_hierarchies = {name for name in get_scorer_names() if name.startswith("hierarchical-")}
    of_rankings = {"kendall-tau", "spearman-rho"}
    of_others = {*SET_METRICS, *of_hierarchies, *of_rankings} - {*TOKEN_METRICS}
    names = [name for name in get_scorer_names() if name not in of_others]
    scores = cross_validate(
        chain(),
        X,
        Y,
        cv=3,
        error_score="raise",
        return_estimator=True,
        return_indices=True,
        scoring={name: get_scorer(name) for name in names},
    )
    for fold, (model, rows) in enumerate(zip(scores["estimator"], scores["indices"]["test"])):
        true, answers = [Y[i] for i in rows], model.predict([X[i] for i in rows])
        report = token_report(true, answers)
        expected = {
            "accuracy": 1 - hamming_loss(true, answers),
            "macro-f1": report["macro"]["f1"],
            "weighted-recall": report["weighted"]["recall"],
            "sequence-accuracy": np.mean([list(a) == b for a, b in zip(answers, true)]),
            "span-f1": span_f1(true, answers)["f1"],
            "span-recall": span_f1(true, answers)["recall"],
        }
        for name, value in expected.items():
            assert scores[f"test_{name}"][fold] == pytest.approx(value)
    search = GridSearchCV(chain(), {"alpha": [1.0, 0.1]}, scoring=get_scorer("span-f1"), cv=3)
    assert 0 <= search.fit(X, Y).best_score_ <= 1


def test_columns_of_labels_are_scored_as_rows():
    X, y = np.array([[-1.0], [1.0], [0.5]]), np.array(["a", "b", "a"])
    model = StructuredSVM("multiclass", alpha=0.1).fit(X, y)
    for name in ("accuracy", "sequence-accuracy", "macro-f1"):
        assert model.score(X, y[:, None], metric=name) == model.score(X, y, metric=name)


@pytest.mark.parametrize("name", TOKEN_METRICS)
def test_weights_of_rows_are_those_of_scikit_learn(name):
    X, y, weight = rng.normal(size=(40, 2)), rng.integers(0, 3, 40), rng.random(40)
    model = StructuredSVM("multiclass", alpha=0.1).fit(X, y)
    score, guess = model.score(X, y, weight, metric=name), model.predict(X)
    if name.endswith("accuracy"):
        expected = metrics.accuracy_score(y, guess, sample_weight=weight)
    else:
        average, figure = name.split("-")
        theirs = getattr(metrics, f"{figure}_score")
        expected = theirs(y, guess, average=average, sample_weight=weight, zero_division=0)
    assert score == pytest.approx(expected)


@pytest.mark.parametrize("name", TOKEN_METRICS)
def test_a_weight_counts_an_example_so_often(name):
    Y, weight = [rng.integers(0, 3, len(x)) for x in RAGGED], rng.integers(0, 3, len(RAGGED))
    model = StructuredSVM("chain", alpha=0.1).fit(RAGGED, Y)
    often = np.repeat(np.arange(len(RAGGED)), weight)
    score = model.score([RAGGED[i] for i in often], [Y[i] for i in often], metric=name)
    assert model.score(RAGGED, Y, weight, metric=name) == pytest.approx(score)


@pytest.mark.parametrize("structure", ["chain", "grid"])
@pytest.mark.parametrize("name", TOKEN_METRICS)
def test_a_weight_of_a_node_counts_it_so_often(structure, name):
    X, Y = get_structure(structure).sample(0, 12, 3)
    model = StructuredSVM(structure, alpha=0.1, max_iter=5).fit(X, Y)
    own, some = rng.integers(0, 3, len(Y)), [rng.integers(0, 3, np.shape(y)) for y in Y]
    weighted = [WeightedLabels(y, w) for y, w in zip(Y, some, strict=True)]
    weighted[0], some[0] = Y[0], np.ones(np.shape(Y[0]), int)
    rows = zip(Y, model.predict(X), some, strict=True)
    pairs = [[np.repeat(np.ravel(y), w.ravel()) for y in (t, g)] for t, g, w in rows]
    if name == "sequence-accuracy":
        expected = np.average([(t == g).all() for t, g in pairs], weights=own)
    else:
        flat = [np.concatenate([np.tile(y, k) for y, k in zip(side, own)]) for side in zip(*pairs)]
        expected = token_score(*([y] for y in flat), name)
    assert model.score(X, weighted, own, metric=name) == pytest.approx(expected)
    told = r"y_true\[0\] is WeightedLabels; expected labels alone"
    refused(told, hamming_loss, weighted[1:], Y[1:])


def test_whole_labels_may_be_records():
    structure = get_structure("dependency", labelled=True)
    X, Y = structure.sample(0, 12, 3)
    model = StructuredSVM(structure, alpha=0.1, max_iter=5).fit(X, Y)
    right = [y.tolist() == guess.tolist() for y, guess in zip(Y, model.predict(X), strict=True)]
    assert 0 < model.score(X, Y, metric="sequence-accuracy") == np.mean(right)


def test_pixels_are_scored_as_tokens():
    X, Y = get_structure("grid").sample(0, 12, 3)
    model = StructuredSVM("grid", alpha=0.1, max_iter=5).fit(X, Y)
    true, guess = (np.concatenate([*map(np.ravel, each)]) for each in (Y, model.predict(X)))
    for labels in (Y, [y.tolist() for y in Y]):
        assert model.score(X, labels, metric="accuracy") == np.mean(true == guess)
    macro = metrics.f1_score(true, guess, average="macro", zero_division=0)
    assert model.score(X, Y, metric="macro-f1") == pytest.approx(macro)
    turned = [y.T for y in Y]
    with pytest.raises(ValueError, match=r"y_true\[0\] has the shape \(1, 3\) and y_pred\[0\]"):
        model.score(X, turned, metric="accuracy")


def test_spans_have_no_weights():
    Y = [["B-A"] * len(x) for x in RAGGED]
    Y[0][0] = "O"
    model = StructuredSVM("chain", alpha=0.1).fit(RAGGED, Y)
    with pytest.raises(ValueError, match="'span-f1' counts spans, which have no weights"):
        model.score(RAGGED, Y, np.ones(len(RAGGED)), metric="span-f1")


REPORTS = [
    (token_report, [["a", "b"], ["a"]]),
    (span_f1, [["B-X", "O"], ["O"]]),
    (label_set_report, np.eye(2)),
    (ranking_report, np.array([[0, 1], [1, 0]])),
    (attachment_report, [[0, 1], [0]]),
    (bracket_report, [("S", ("A", "a"), ("B", "b"))]),
    (hierarchical_scores, [["a", "b"], ["a", "c"]]),
]


@pytest.mark.parametrize("report, given", REPORTS)
@pytest.mark.parametrize("bad", [None, 3, "ab", np.array(3), [None, None], [["a", None], [1]]])
def test_errors_name_the_argument(report, given, bad):
    refused("y_true", report, bad, given)
    refused("y_pred", report, given, bad)


def test_unknown_names_are_refused_with_those_there_are():
    for name in ("f1_macro", "f1", 3):
        refused("accuracy, sequence-accuracy, macro-f1.*span-recall", get_scorer, name)


def test_answers_stay_lists_in_all_else():
    Y = noise(EQUAL, [0, 1])
    answers = chain().fit(EQUAL, Y).predict(EQUAL)
    assert isinstance(answers, list) and len(answers) == 12 and len(list(iter(answers))) == 12
    assert np.asarray(answers).shape == (12, 3) and np.asarray(answers).dtype.kind == "i"
    assert type(answers[:2]) is list and type(answers + []) is list
    for other in (copy.copy(answers), copy.deepcopy(answers), pickle.loads(pickle.dumps(answers))):
        assert type(other) is LabelList and np.array_equal(other, answers)
    # Splitters and estimators accept them as labels, and a custom metric gets a list.
    train, test = train_test_split(answers, random_state=0)
    assert len(train) + len(test) == 12
    own = metrics.make_scorer(lambda true, predicted: float(len(predicted)))
    assert cross_val_score(chain(), EQUAL, answers, scoring=own, cv=3).tolist() == [4, 4, 4]
    assert cross_val_predict(chain(), EQUAL, answers, cv=3).shape == (12, 3)


def test_other_estimators_guard_their_answers_too():
    Y = noise(EQUAL, [0, 1])
    for model in (ConditionalRiskMinimizer("chain"), LatentSVM("chain", alpha=0.1, tol=0.1)):
        model.fit(EQUAL, Y)
        with pytest.raises(ValueError, match=SENTENCE):
            metrics.f1_score(Y, model.predict(EQUAL), average="macro")


def test_labels_of_one_part_and_label_sets_are_as_they_were():
    for answers in (["a", "b"], np.eye(2), [1, 2], []):
        assert guarded(answers) is answers
    X = rng.normal(size=(30, 2))
    Y = (X > 0).astype(int)
    scores = cross_val_score(StructuredSVM("multilabel"), X, Y, scoring="f1_macro", cv=3)
    assert scores.min() > 0.6
    scores = cross_val_score(StructuredSVM("multiclass"), X, Y[:, 0], scoring="accuracy", cv=3)
    assert scores.min() > 0.6


@pytest.mark.parametrize(
    "name, structure, Y",
    [
        ("macro-f1", "multiclass", CLASS_OF),
        ("macro-f1", "multilabel", np.eye(3, dtype=int)[CLASS_OF]),
        ("samples-f1", "multilabel", np.eye(3, dtype=int)[CLASS_OF]),
        (
            "kendall-tau",
            "permutation",
            np.stack([CLASS_OF, (CLASS_OF + 1) % 3, (CLASS_OF + 2) % 3], 1),
        ),
        (
            "hierarchical-f1",
            get_structure("dag", hierarchy={10: [0, 1, 2]}, close=True),
            [[k] for k in CLASS_OF],
        ),
    ],
)
def test_weights_are_routed_to_scores_by_name(name, structure, Y):
    """As to scikit-learn's own; they were left out, silently."""
    X, weights = np.eye(3)[CLASS_OF] + rng.normal(size=(30, 3)), rng.uniform(size=30) ** 4
    model = StructuredSVM(structure, alpha=0.01, tol=0.1)
    scorer = get_scorer(name)
    with config_context(enable_metadata_routing=True):
        model.set_fit_request(sample_weight=False)
        fold = {"params": {"sample_weight": weights}, "cv": [(np.arange(20), np.arange(20, 30))]}
        with pytest.raises(ValueError, match=r"Call .*\.set_score_request"):
            cross_validate(model, X, Y, scoring=scorer, **fold)
        scores = cross_validate(
            model, X, Y, scoring=scorer.set_score_request(sample_weight=True), **fold
        )
    model.fit(X[:20], Y[:20])
    weighted = scorer(model, X[20:], Y[20:], sample_weight=weights[20:])
    assert scores["test_score"][0] == weighted != scorer(model, X[20:], Y[20:])


@pytest.mark.pandas
@pytest.mark.parametrize(
    "report, rows, more",
    [
        (ranking_report, [[0, 1, 2], [2, 0, 1]], ()),
        (label_set_report, [[1, 0, 1], [1, 1, 0]], ()),
        (hierarchical_scores, [["x", "y", "z"], ["x", "y", ""]], ()),
        (hierarchical_scores, [[1, 0, 1], [1, 1, 0]], ({"a": ["b", "c"]},)),
    ],
)
def test_reports_refuse_columns_in_another_order(report, rows, more):
    true = pytest.importorskip("pandas").DataFrame(rows, columns=["a", "b", "c"])
    right = report(rows, rows, *more)
    for pred in (true, true.to_numpy(), true.set_axis([0, 1, 2], axis=1)):
        assert report(true, pred, *more) == right
    refused(r"y_pred: found the columns \['b', 'a'", report, true, true[["b", "a", "c"]], *more)


@pytest.mark.pandas
def test_columns_in_another_order_than_the_nodes():
    true = pytest.importorskip("pandas").DataFrame([[0, 1, 1]], columns=["c", "b", "a"])
    refused("y_true: .*nodes of", hierarchical_scores, true, true, {"a": ["b", "c"]})


CLASSES = np.arange(12) % 2


@pytest.mark.parametrize("y", [CLASSES, CLASSES.astype(str)], ids=["numbers", "names"])
@pytest.mark.parametrize(
    "model, form",
    [
        (StructuredSVM("multiclass"), lambda y: y),
        (ConditionalRiskMinimizer(), lambda y: y),
        (LatentSVM("multiclass"), lambda y: y),
        (StructuredSVM("chain"), lambda y: [y]),
        (HiddenMarkovModel(emission="gaussian"), lambda y: [y]),
        (HierarchicalSVM(), lambda y: np.column_stack([y, y])),
    ],
)
def test_numbers_are_no_names(model, form, y):
    X = y[:, None].astype(float)
    X = [X] if len(form(y)) == 1 else X
    assert model.fit(X, form(y)).score(X, form(y)) == 1
    other = y.astype(int if y.dtype.kind == "U" else str)
    refused("y: found n|y holds labels such as '?0'? and the", model.score, X, form(other))


@pytest.mark.parametrize(
    "score",
    [
        lambda one, other: hierarchical_scores([one], [other]),
        lambda one, other: precision_at_k([set(), one], [other, other], k=1),
        lambda one, other: propensity_precision_at_k([one], [one], 1, y_train=[other] * 3),
    ],
)
def test_scores_tell_numbers_from_names(score):
    for one, other in (([1, 2], ["1", "2"]), (["1", "2"], [1, 2])):
        score(one, one)
        refused("holds labels such as .* expected strings in both", score, one, other)
