"""Metrics of label sets and hierarchies: by hand, through models, by name, from plugins."""

import pickle
from functools import partial
from types import ModuleType

import networkx as nx
import numpy as np
import pytest
from checks import plugged, refused
from reference.hierarchies import random_dag
from sklearn import metrics
from sklearn.metrics import precision_recall_fscore_support
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import structsolve
from structsolve import Named, StructuredSVM, get_scorer, hookimpl
from structsolve.evaluation.report import FIGURES
from structsolve.evaluation.scorers import OURS, get_scorer_names
from structsolve.plugins.dag import DagStructure, hierarchical_scores
from structsolve.plugins.multilabel.metrics import SET_METRICS, figures, label_set_report

ANIMALS = nx.DiGraph([("animal", "dog"), ("animal", "cat"), ("thing", "chair"), ("pet", "dog")])


@pytest.mark.parametrize("seed", range(20))
def test_hierarchical_figures_against_sets(seed):
    rng = np.random.default_rng(seed)
    hierarchy = random_dag(rng, 7)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(7))
    graph.add_edges_from(hierarchy.edges.tolist())
    truth, guess = rng.integers(0, 2, (2, 5, 7)) * rng.integers(0, 2, (2, 5, 7))
    lonely = len(hierarchy.roots) == 1
    both = guessed = there = 0
    each = []
    for rows in zip(truth, guess):
        a, b = (
            set().union(*({v, *nx.ancestors(graph, v)} for v in np.flatnonzero(row)))
            - (set(hierarchy.roots.tolist()) if lonely else set())
            for row in rows
        )
        both, guessed, there = both + len(a & b), guessed + len(b), there + len(a)
        parts = [(len(a & b), len(b)), (len(a & b), len(a)), (2 * len(a & b), len(a) + len(b))]
        each.append([above / below if below else 0 for above, below in parts])
    scores = hierarchical_scores(truth, guess, hierarchy)
    assert scores["precision"] == (both / guessed if guessed else 0)
    assert scores["recall"] == (both / there if there else 0)
    assert scores["f1"] == pytest.approx(2 * both / (guessed + there) if guessed + there else 0)
    assert scores["micro"]["f1"] == scores["f1"]
    macro = [scores["macro"][name] for name in ("precision", "recall", "f1")]
    assert macro == pytest.approx(np.mean(each, axis=0).tolist())
    doubled = hierarchical_scores(truth[[0, 0, 1]], guess[[0, 0, 1]], hierarchy)
    weighted = hierarchical_scores(truth[:2], guess[:2], hierarchy, [2.0, 1.0])
    for name in ("precision", "recall", "f1"):
        assert doubled[name] == pytest.approx(weighted[name])
        assert doubled["macro"][name] == pytest.approx(weighted["macro"][name])


def test_reports():
    truth, guess = np.array([[1, 1, 0, 0, 0, 0]]), np.array([[1, 0, 1, 0, 0, 0]])
    nodes = StructuredSVM(DagStructure(ANIMALS, close=True)).structure.hierarchy.nodes
    report = label_set_report(truth, guess, nodes, ANIMALS)
    assert report["exact_match"] == 0 and report["accuracy"] == pytest.approx(4 / 6)
    assert report["hierarchical"]["f1"] == pytest.approx(2 * 1 / 4 * 4 / 5)  # pet is above dog
    lines = str(report).splitlines()
    assert [line.split()[0] for line in lines[1:7]] == [*map(str, nodes)]
    assert [line.split()[0] for line in lines[8:13]] == [
        "micro", "macro", "weighted", "samples", "hierarchical",
    ]  # fmt: skip
    for average in ("micro", "macro", "weighted", "samples"):
        expected = metrics.f1_score(truth, guess, average=average, zero_division=0)
        assert report[average]["f1"] == pytest.approx(expected)
    refused("y_true has shape .*6 nodes", hierarchical_scores, [[1]], [[1]], ANIMALS)


def data(seed=0, n=60):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X + rng.normal(size=(n, 3)) > 0.5).astype(int)


def test_scores_by_name():
    X, Y = data()
    model = StructuredSVM("multilabel", alpha=0.05).fit(X, Y)
    guess, scores = model.predict(X), model.decision_function(X)
    expected = {
        "accuracy": model.score(X, Y),
        "exact-match": metrics.accuracy_score(Y, guess),
        "micro-f1": metrics.f1_score(Y, guess, average="micro"),
        "samples-recall": metrics.recall_score(Y, guess, average="samples", zero_division=0),
        "average-precision": metrics.label_ranking_average_precision_score(Y, scores),
        "neg-coverage": -metrics.coverage_error(Y, scores),
        "neg-ranking-loss": -metrics.label_ranking_loss(Y, scores),
    }
    weight = np.arange(len(X)) % 3 + 1
    twice = np.repeat(np.arange(len(X)), weight)
    for name in SET_METRICS:
        if name.startswith("hierarchical-"):
            refused("needs a hierarchy", model.score, X, Y, metric=name)
            continue
        value = model.score(X, Y, metric=name)
        assert value == pytest.approx(expected.get(name, value))
        assert value == pickle.loads(pickle.dumps(get_scorer(name)))(model, X, Y)
        weighted = model.score(X, Y, sample_weight=weight, metric=name)
        assert weighted == pytest.approx(model.score(X[twice], Y[twice], metric=name))
    refused("unknown metric 'f2'; known: ", model.score, X, Y, metric="f2")
    refused("metric is 3", model.score, X, Y, metric=3, error=TypeError)
    lines = make_pipeline(StandardScaler(), StructuredSVM("multilabel", alpha=0.05))
    values = cross_val_score(lines, X, Y, cv=3, scoring=get_scorer("macro-f1"), error_score="raise")
    plain = cross_val_score(lines, X, Y, cv=3, scoring="f1_macro")
    np.testing.assert_allclose(values, plain)
    chain = StructuredSVM("chain", max_iter=1, tol=9).fit([X[:2]], [["a", "b"]])
    refused(
        "'samples-f1' needs label sets", chain.score, [X[:2]], [["a", "b"]], metric="samples-f1"
    )
    assert chain.score([X[:2]], [["a", "b"]], metric="accuracy") == chain.score(
        [X[:2]], [["a", "b"]]
    )


@pytest.mark.parametrize("labels", ["closed", "single-leaf"])
def test_hierarchies_by_name(labels):
    X, _ = data()
    names = np.array(["dog", "cat", "chair"])
    y = names[X.argmax(axis=1)]
    model = StructuredSVM(DagStructure(ANIMALS, labels=labels, close=True), alpha=0.01)
    given = y if labels == "single-leaf" else [[name] for name in y]
    model.fit(X, given)
    space = model.space_
    guess = model.predict(X)
    column = {name: k for k, name in enumerate(space.hierarchy.nodes.tolist())}
    truth = np.zeros((len(X), len(column)), int)
    truth[np.arange(len(X)), [column[name] for name in y]] = 1
    if labels == "single-leaf":
        rows, guess = guess, np.zeros_like(truth)
        guess[np.arange(len(X)), [column[name] for name in rows]] = 1
    scores = hierarchical_scores(truth, guess, space.hierarchy)
    for figure in ("precision", "recall", "f1"):
        assert model.score(X, given, metric=f"hierarchical-{figure}") == pytest.approx(
            scores[figure]
        )
        macro = model.score(X, given, metric=f"hierarchical-macro-{figure}")
        assert macro == pytest.approx(scores["macro"][figure])
    if labels == "closed":
        assert model.score(X, given, metric="average-precision") > 0.5
        assert model.score(X, given, metric="micro-f1") == pytest.approx(
            metrics.f1_score(space.hierarchy.close(truth.astype(np.int32)), guess, average="micro")
        )


def test_plugins_bring_metrics():
    plugin = ModuleType("share")

    @hookimpl
    def structsolve_metrics():
        return [Named("share", lambda part=1.0: lambda model, X, y: part, "a constant")]

    plugin.structsolve_metrics = structsolve_metrics
    before = get_scorer_names()
    assert before[: len(OURS)] == [*OURS]
    with plugged(plugin, "share"):
        assert sorted(get_scorer_names()) == sorted([*before, "share"])
        X, Y = data()
        model = StructuredSVM("multilabel", alpha=0.05, max_iter=2, tol=9).fit(X, Y)
        assert model.score(X, Y, metric="share") == 1.0 == get_scorer("share")(model, X, Y)
        assert model.score(X, Y, metric="share:part=.25") == 0.25
        (listed,) = [p for p in structsolve.list_plugins() if p["name"] == "share"]
        assert listed["metrics"] == ["share"]


def counted(true, pred, weight):
    """Return precision, recall and F1 of each average by the sums that define them."""
    weight = np.ones(len(true)) if weight is None else weight

    def ratios(*sums):
        both, guessed, there = (np.asarray(one, float) for one in sums)
        pairs = (both, guessed), (both, there), (2 * both, guessed + there)
        return [np.divide(a, b, out=np.zeros_like(b), where=b > 0) for a, b in pairs]

    def mean(values, weights):
        return [value @ weights / weights.sum() if weights.sum() else 0.0 for value in values]

    sums = [weight @ m for m in (true & pred, pred, true)]
    return {
        "micro": ratios(*(one.sum() for one in sums)),
        "macro": mean(ratios(*sums), np.ones(true.shape[1])),
        "weighted": mean(ratios(*sums), sums[2]),
        "samples": mean(ratios(*(m.sum(axis=1) for m in (true & pred, pred, true))), weight),
    }


@pytest.mark.parametrize("n_labels", [1, 2, 4])
def test_figures_are_those_of_scikit_learn_and_of_one_label_too(n_labels):
    rng = np.random.default_rng(n_labels)
    for number in range(200):
        n = int(rng.integers(1, 6))
        true, pred = (rng.random((n, n_labels)) < rng.choice([0, 0.3, 0.9]) for _ in range(2))
        weight = rng.integers(0, 3, n) + 0.5 if rng.random() < 0.5 else None
        report = label_set_report(true.astype(float), pred.astype(int).tolist())
        assert str(label_set_report(true.astype(object), pred)) == str(report)
        rows = [[row[k] for k in (*FIGURES, "support")] for row in report["per_class"].values()]
        for average, expected in counted(true, pred, weight).items():
            got = figures(true, pred, average, weight)
            assert np.allclose(got, expected, rtol=1e-9, atol=1e-12), average
        for row, column, guess in zip(rows, true.T, pred.T):
            expected = counted(column[:, None], guess[:, None], None)["micro"]
            assert np.allclose(row, [*expected, column.sum()])
        if number >= 40:  # scikit-learn takes ten times as long; above are the same sums
            continue
        # For scikit-learn a single column is classes 0 and 1: another label makes them sets.
        wide = [np.column_stack([m, np.zeros(n)]).astype(int) for m in (true, pred)]
        labels = range(n_labels)
        for average in ("micro", "macro", "weighted", "samples"):
            expected = precision_recall_fscore_support(
                *wide, labels=labels, average=average, sample_weight=weight, zero_division=0
            )
            assert figures(true, pred, average, weight) == pytest.approx(expected[:3], abs=1e-12)
        table = precision_recall_fscore_support(*wide, labels=labels, average=None, zero_division=0)
        assert np.allclose(rows, np.stack(table, axis=1))


def test_every_metric_of_one_label():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([[0], [0], [1], [1]])
    model = StructuredSVM("multilabel", alpha=1e-3).fit(X, y)
    expected = {name: 1.0 for name in SET_METRICS}
    expected |= {f"samples-{figure}": 0.5 for figure in FIGURES}  # rows without labels have 0
    expected |= {"neg-coverage": -0.5, "neg-ranking-loss": 0.0}
    for name, value in expected.items():
        assert model.score(X, y, metric=name) == value, name
    wrong = 1 - y
    for name in ("macro-f1", "weighted-f1", "micro-f1"):
        assert model.score(X, wrong, metric=name) == 0, name


def test_reports_name_what_does_not_fit():
    refused("y_true: expected rows of 0 and 1", label_set_report, [[0, 2]], [[0, 1]])
    refused("y_pred: expected rows of 0 and 1", label_set_report, [[0, 1]], [0, 1])
    refused(r"y_true has shape \(1, 2\), y_pred \(1, 3\)", label_set_report, [[0, 1]], [[0, 1, 1]])
    refused("names has 1 entries, expected 2", label_set_report, [[0, 1]], [[0, 1]], ["a"])


def test_bad_weights_rows_and_names_are_refused():
    Y = np.eye(4, 6, dtype=int)
    model = StructuredSVM("multilabel", alpha=0.1).fit(Y, Y)
    for weight, told in [([1], "has shape"), (-np.ones(4), "example 0 is -1"), (0.0, "is zero")]:
        for metric in ("micro-f1", "accuracy", "samples-f1", "average-precision"):
            score = partial(model.score, metric=metric, sample_weight=weight)
            refused(f"sample_weight.* {told}", score, Y, Y)
        refused(f"sample_weight.* {told}", hierarchical_scores, Y, Y, ANIMALS, weight)
    refused("y_true has 4 rows, y_pred 1", hierarchical_scores, Y, Y[:1], ANIMALS)
    refused("y_pred: found names, other numbers", hierarchical_scores, Y, 2 * Y, ANIMALS)
    refused("y_pred: found names, other numbers", hierarchical_scores, Y, 0.5 * Y, ANIMALS)
    refused("not empty", label_set_report, Y[:0], Y[:0])
    refused("names that differ", label_set_report, Y[:, :2], Y[:, :2], names=["a", "a"])


@pytest.mark.pandas
def test_names_and_hierarchies_are_those_of_data_frames():
    """They were taken by place, silently."""
    pd = pytest.importorskip("pandas")
    names = list(ANIMALS)
    Y = pd.DataFrame(np.eye(len(names), dtype=int), columns=names)
    plain, other = Y.to_numpy(), Y[names[::-1]]
    assert label_set_report(Y, plain, names, ANIMALS)["hierarchical"]["f1"] == 1
    for sides in ((other, plain), (plain, other)):
        refused("found the columns .* as names", label_set_report, *sides, names)
        refused("found the columns .* as nodes", label_set_report, *sides, hierarchy=ANIMALS)


def test_names_in_another_order_than_the_nodes_are_refused():
    names, Y = list(ANIMALS), np.eye(len(ANIMALS), dtype=int)
    told = "y_true: found the columns .* as nodes of the hierarchy"
    refused(told, label_set_report, Y, Y, names[::-1], ANIMALS)
    other = label_set_report(Y, Y, [f"{name}!" for name in names], ANIMALS)
    assert other["hierarchical"] == label_set_report(Y, Y, names, ANIMALS)["hierarchical"]
