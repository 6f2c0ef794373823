"""Hierarchies in use: losses, forms of input, errors, training, saving."""

import pickle

import networkx as nx
import numpy as np
import pytest
from checks import refused, reloaded
from reference.hierarchies import (
    GRAPH,
    TREE,
    all_labels,
    ancestors,
    as_dict,
    dag_setting,
    hierarchical_loss,
    oracle_of,
    random_edges,
)
from reference.objectives import optimum
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV

from structsolve import ClassWeights, StructuredSVM
from structsolve.plugins.dag import DagStructure, Hierarchy
from structsolve.structure import calls
from structsolve.structure.ask import ask_loss, make_layout

# -- losses ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["closed", "leaf-union", "single-leaf"])
@pytest.mark.parametrize("forest", [True, False])
def test_losses_by_their_definitions(kind, forest):
    rng = np.random.default_rng(3)
    for _ in range(8):
        M = int(rng.integers(1, 7))
        edges = random_edges(rng, M, forest)
        space, examples = dag_setting(as_dict(M, edges), n=3, labels=kind)
        labels, above = all_labels(M, edges, kind), ancestors(M, edges)
        leaves = space.hierarchy.leaves
        weights = rng.integers(0, 4, M)
        given = ClassWeights(dict(enumerate(weights.tolist())))
        single = kind == "single-leaf"
        for i in range(3):
            truth = examples.label(i)
            if single:
                truth = np.array([v in above[truth[0]] for v in range(M)], dtype=np.int32)
            for label in labels[rng.permutation(len(labels))[:10]]:
                wrong = truth != label
                coded = label
                if single:
                    coded = leaves[label[leaves] == 1].astype(np.int32)
                for loss, expected in (
                    ("hamming", wrong.sum()),
                    ("normalized-hamming", wrong.mean()),
                    ("leaf", wrong[leaves].sum()),
                    ("zero-one", float(wrong.any())),
                    (given, weights[wrong].sum()),
                    ("hierarchical", hierarchical_loss(M, edges, truth, label)),
                ):
                    native = ask_loss(space, loss)(make_layout(space, examples))
                    value = calls.loss_value(native, i, examples.label(i), coded)
                    assert value == pytest.approx(expected, abs=1e-12), loss


@pytest.mark.parametrize("kind", ["closed", "single-leaf"])
@pytest.mark.parametrize("loss", ["hamming", "leaf", "hierarchical"])
def test_losses_of_trees_added_to_scores_are_the_losses(loss, kind):
    """The score with the loss added is the sum of both, for every label."""
    rng = np.random.default_rng(4)
    for _ in range(6):
        M = int(rng.integers(3, 8))
        edges = random_edges(rng, M, True)
        space, examples = dag_setting(as_dict(M, edges), n=2, labels=kind)
        native = ask_loss(space, loss)(make_layout(space, examples))
        labels = all_labels(M, edges, kind)
        leaves = space.hierarchy.leaves
        for i in range(2):
            theta = rng.normal(size=space.layout.node_size)
            added = theta.copy()
            constant = calls.augment(native, i, examples.label(i), 0.7, added)
            for label in labels:
                coded = label.astype(np.int32)
                if kind == "single-leaf":
                    coded = leaves[label[leaves] == 1].astype(np.int32)
                expected = 0.7 * calls.loss_value(native, i, examples.label(i), coded)
                assert constant + (added - theta)[:M] @ label == pytest.approx(expected, abs=1e-12)


def test_hierarchical_loss_on_trees_is_that_of_the_paper():
    # One root, which counts like any node: c_s = 1.
    edges = np.array([[0, 1], [0, 2], [1, 3], [1, 4]])
    labels = all_labels(5, edges)
    weight = [1, 0.5, 0.5, 0.25, 0.25]
    for t in labels:
        for y in labels:
            paper = y[0] + t[0] - 2 * t[0] * y[0]
            for j, k in edges:
                paper += weight[k] * (t[k] * y[j] + (t[j] - t[j] * t[k] - t[k]) * y[k])
            assert hierarchical_loss(5, edges, t, y) == pytest.approx(paper)


def test_hierarchical_loss_trains_on_trees_and_scores_on_graphs():
    X, Y = DagStructure(TREE).sample(1, n=20)
    model = StructuredSVM(DagStructure(TREE), loss="hierarchical", alpha=0.1, tol=0.01).fit(X, Y)
    assert model.stop_reason_ == "converged"
    structure = DagStructure(nx.DiGraph(GRAPH))
    X, Y = structure.sample(1, n=20)
    with pytest.raises(ValueError, match="HierarchicalLoss does not decompose"):
        StructuredSVM(structure, loss="hierarchical").fit(X, Y)
    model = StructuredSVM(structure, tol=0.1).fit(X, Y)
    model.loss = "hierarchical"
    assert -1 <= model.score(X, Y) <= 1


@pytest.mark.parametrize(
    "weights, message",
    [
        (ClassWeights({"x": 1}), "'x' is no node"),
        (ClassWeights({"a": -1}), "weights of at least 0"),
        (ClassWeights([1]), "expected a dict"),
    ],
)
def test_weights_are_checked(weights, message):
    refused(message, ask_loss, dag_setting(TREE)[0], weights)


@pytest.mark.parametrize("kind", ["closed", "leaf-union", "single-leaf"])
def test_crf_and_max_min_train_to_a_certificate(kind):
    rng = np.random.default_rng(0)
    X, Y = DagStructure(TREE, labels=kind).sample(1, n=30)
    X = X + rng.normal(size=X.shape)
    structure = DagStructure(TREE, labels=kind)
    for surrogate in ("crf", "sparsemap", "max-min"):
        tol = 0.1 if surrogate == "max-min" else 1e-3
        model = StructuredSVM(structure, surrogate=surrogate, alpha=0.1, tol=tol).fit(X, Y)
        assert model.stop_reason_ == "converged", surrogate
    crf = StructuredSVM(structure, surrogate="crf", alpha=0.1, tol=1e-3).fit(X, Y)
    chances = crf.predict_proba(X)
    assert chances.shape == (30, 4 if kind == "single-leaf" else 7)
    drawn = np.array(crf.sample(X, 300, random_state=0))
    if kind == "single-leaf":
        assert np.allclose(chances.sum(axis=1), 1)
        drawn = (drawn[..., None] == crf.classes_).astype(int)
    assert np.abs(drawn.mean(axis=0) - chances).max() < 0.15


# -- input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        nx.DiGraph(TREE),
        {"a": ["b", "c"], "b": ["d", "e"], "c": [], "f": ["g"]},
        np.array([["a", "b"], ["a", "c"], ["b", "d"], ["b", "e"], ["f", "g"]]),
        [("a", "b"), ("a", "c"), ("b", "d"), ("b", "e"), ("f", "g")],
        np.array([("a", "b"), ("a", "c"), ("b", "d"), ("b", "e"), ("f", "g")], dtype=object),
    ],
    ids=["graph", "mapping", "array", "list", "objects"],
)
def test_forms_of_hierarchies(given):
    h = Hierarchy(given)
    assert set(h.nodes.tolist()) == set("abcdefg") and h.forest
    named = {tuple(pair) for pair in h.nodes[h.edges].tolist()}
    assert named == {("a", "b"), ("a", "c"), ("b", "d"), ("b", "e"), ("f", "g")}
    rank = h.rank
    assert (rank[h.edges[:, 0]] < rank[h.edges[:, 1]]).all()
    assert h.nodes[h.roots].tolist() == ["a", "f"]
    assert sorted(h.nodes[h.leaves].tolist()) == ["c", "d", "e", "g"]
    if not isinstance(given, (nx.DiGraph, dict)):
        assert h.nodes.tolist() == list("abcdefg")
    else:
        assert h.nodes.tolist() == list(dict.fromkeys([*given, *"abcdefg"]))


@pytest.mark.parametrize(
    "given, message",
    [
        (None, "hierarchy is None, expected a networkx.DiGraph"),
        (nx.Graph([(0, 1)]), "hierarchy is a Graph, expected"),
        (nx.MultiDiGraph([(0, 1)]), "MultiDiGraph, expected"),
        ("abc", "hierarchy is a str"),
        (nx.DiGraph(), "found no nodes"),
        ({}, "found no nodes"),
        ([], "found no nodes"),
        (np.zeros((2, 3), int), r"shape \(2, 3\)"),
        (np.zeros((2, 2)), "dtype float64"),
        ([[0, 1], [2]], r"shape \(2,\)"),
        ([np.zeros((2, 2)), np.zeros((2, 3))], "not an array"),
        ([("a", "b"), ("a", 0)], "the node 0 of type int, expected strings, as"),
        ([(0, 1), (0, "a")], "the node 'a' of type str, expected all nodes"),
        ([("a", None)], "the node None of type NoneType"),
        (nx.DiGraph([("a", "b"), ("b", "c"), ("c", "a")]), "found the cycle '.' -> '.' -> '.'"),
        ({0: [1], 1: [2], 2: [1]}, "found the cycle (1 -> 2 -> 1|2 -> 1 -> 2);"),
        ({0: [0]}, "found the cycle 0 -> 0;"),
        ({0: [1, 1]}, "the edge from 0 to 1 twice"),
        ([[0, 1], [0, 1]], "the edge from 0 to 1 twice"),
        ({0: "ab"}, "children of 0 are 'ab'"),
        ({"a": [0]}, "the node 0 of type int, expected strings, as"),
        ({0: ["a"]}, "the node 'a' of type str, expected all nodes"),
        ({"a\0": ["b"]}, "'a..00' ends with a NUL, which NumPy drops"),
        ({0: [(1, 2)]}, r"the node \(1, 2\) of type tuple"),
        ({0: [True]}, "True of type bool"),
        ({0: [2**70]}, "no 64-bit integer"),
    ],
)
def test_hierarchies_that_are_none(given, message):
    refused(message, Hierarchy, given)


@pytest.mark.pandas
def test_forms_of_labels():
    pandas = pytest.importorskip("pandas")
    h = Hierarchy(TREE)
    X, Y = DagStructure(TREE).sample(3, n=12)
    model = StructuredSVM(DagStructure(TREE), tol=0.1).fit(X, Y)
    assert h.nodes.tolist() == model.classes_.tolist() == ["a", "b", "f", "c", "d", "e", "g"]
    expected = model.predict(X).tolist()
    lists = [[name for name, on in zip(h.nodes.tolist(), row) if on] for row in Y]
    frame = pandas.DataFrame(Y, columns=h.nodes)
    mixed = frame.astype({"a": "Int8", "b": bool})
    for form in (Y.astype(bool), Y.astype(float), sparse.csr_matrix(Y), frame, mixed, lists):
        assert (
            StructuredSVM(DagStructure(TREE), tol=0.1).fit(X, form).predict(X).tolist() == expected
        )
    assert model.score(X, lists) == model.score(X, Y)
    deepest = [[n for n in row if not any(c in row for c in TREE.get(n, []))] for row in lists]
    closing = StructuredSVM(DagStructure(TREE, close=True), tol=0.1).fit(X, deepest)
    assert closing.predict(sparse.csr_matrix(X)).tolist() == expected
    named = np.empty(12, dtype=object)
    named[:] = lists
    assert StructuredSVM(DagStructure(TREE), tol=0.1).fit(X, named).predict(X).tolist() == expected


def test_forms_of_single_leaves():
    structure = DagStructure(nx.DiGraph(GRAPH), labels="single-leaf")
    X, y = structure.sample(3, n=20)
    model = StructuredSVM(structure, loss="zero-one", alpha=0.1, tol=0.01).fit(X, y)
    assert is_classifier(model)
    assert model.classes_.tolist() == ["d", "e", "g"]
    expected = model.predict(X).tolist()
    h = model.space_.hierarchy
    above = nx.DiGraph(GRAPH)
    lists = [[leaf, *nx.ancestors(above, leaf)] for leaf in y]
    matrix = np.array([[node in names for node in h.nodes.tolist()] for names in lists])
    closed = clone(structure).set_params(close=True)
    for given, form in ((structure, lists), (structure, matrix), (closed, [[leaf] for leaf in y])):
        again = StructuredSVM(given, loss="zero-one", alpha=0.1, tol=0.01).fit(X, form)
        assert again.predict(X).tolist() == expected
    assert model.score(X, y) == pytest.approx(np.mean(model.predict(X) == y))
    decisions = model.decision_function(X)
    assert model.classes_[decisions.argmax(axis=1)].tolist() == expected


@pytest.mark.parametrize(
    "options, Y, message",
    [
        ({}, [["b"], ["a"]], "the label 'b' without its parent 'a'.*close=True .*--close"),
        ({}, [["a"], ["x"]], "example 1: found the label 'x', which is no node"),
        ({}, [["a"], [["b"]]], "no node"),
        ({}, [["a"], "a"], "example 1: y holds 'a', expected the list"),
        ({}, [["a"]], "inconsistent numbers of samples"),
        ({}, np.zeros((2, 3)), r"found shape \(2, 3\), expected \(2, 7\)"),
        ({}, np.zeros((3, 7)), "inconsistent numbers of samples"),
        ({}, np.full((2, 7), 2), "example 0, label 'a': y holds 2"),
        ({}, np.full((2, 7), np.nan), "example 0, label 'a': y holds nan"),
        ({}, sparse.csr_matrix(([5], ([1], [1])), (2, 7)), "example 1, label 'b': y holds 5"),
        ({}, np.full((2, 7), "a"), "found dtype <U1"),
        ({}, None, "y is None"),
        ({}, "ab", "y is 'ab'"),
        ({"roots": "on"}, [["a", "f"], ["a"]], "example 1: found labels without the root 'f'"),
        (
            {"labels": "leaf-union"},
            [["a", "c"], ["a"]],
            "example 1: found the label 'a' without any",
        ),
        ({"labels": "leaf-union"}, [["a", "c"], []], "example 1: found no labels"),
        ({"labels": "single-leaf"}, ["c", "b"], "example 1: found the label 'b', which has child"),
        ({"labels": "single-leaf"}, ["c", "x"], "example 1: found the label 'x', which is no"),
        ({"labels": "single-leaf"}, ["c"], "inconsistent numbers"),
        ({"labels": "single-leaf"}, None, "y is None"),
        (
            {"labels": "single-leaf", "close": True},
            [["c"], ["c", "g"]],
            "example 1: found the leaves .'c', 'g'., expected one",
        ),
        ({"labels": "open"}, [["a"], []], "labels is 'open'"),
        ({"roots": "off"}, [["a"], []], "roots is 'off'"),
        ({"roots": "on", "labels": "leaf-union"}, [["a"], []], "roots is 'on', but labels is"),
        ({"close": "yes"}, [["a"], []], "close is 'yes'"),
    ],
)
def test_labels_that_are_none(options, Y, message):
    refused(message, StructuredSVM(DagStructure(TREE, **options)).fit, np.zeros((2, 1)), Y)


@pytest.mark.pandas
def test_data_frames_must_have_the_nodes_as_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.zeros((2, 7), int), columns=list("abcdefg"))
    with pytest.raises(ValueError, match="expected the nodes of the hierarchy in their order"):
        StructuredSVM(DagStructure(TREE)).fit(np.zeros((2, 1)), frame)


def test_native_calls_are_checked():
    space, examples = dag_setting(nx.DiGraph(GRAPH), labels="single-leaf")
    oracle = oracle_of(space, examples)
    refused("example 7 of 1", calls.argmax, oracle, 7, np.zeros(8))
    # An inner node is not a label, but does no harm.
    loss = ask_loss(space, "hamming")(make_layout(space, examples))
    inner = np.array([space.hierarchy.column["c"]], dtype=np.int32)
    assert calls.loss_value(loss, 0, examples.label(0), inner) >= 0
    with pytest.raises(ValueError, match="example 0: found the label 7, expected 0 to 6"):
        loss.check_truths(np.array([7], dtype=np.int32))
    scores = np.full(8, np.nan)
    calls.argmax(oracle_of(*dag_setting(nx.DiGraph(GRAPH))), 0, scores)


# -- models ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["closed", "leaf-union", "single-leaf"])
@pytest.mark.parametrize("hierarchy", [TREE, nx.DiGraph(GRAPH), np.array(GRAPH)], ids=type)
def test_save_load_clone(tmp_path, kind, hierarchy):
    structure = DagStructure(hierarchy, labels=kind)
    X, Y = structure.sample(2, n=12)
    model = StructuredSVM(structure, tol=0.1, max_iter=5).fit(X, Y)
    loaded = reloaded(model, tmp_path)
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert loaded.predict(X).tolist() == model.predict(X).tolist()
    assert pickle.loads(pickle.dumps(model)).predict(X).tolist() == model.predict(X).tolist()
    assert clone(loaded).fit(X, Y).predict(X).tolist() == clone(model).fit(X, Y).predict(X).tolist()


def test_grid_search_and_threads():
    structure = DagStructure(nx.DiGraph(GRAPH))
    X, Y = structure.sample(2, n=24)
    search = GridSearchCV(
        StructuredSVM(structure, tol=0.1), {"structure__roots": ["free"], "alpha": [0.1, 1]}, cv=2
    ).fit(X, Y)
    one = search.predict(X).tolist()
    search.best_estimator_.n_jobs = 3
    assert search.predict(X).tolist() == one


def test_predictions_and_what_labels_add():
    structure = DagStructure(nx.DiGraph(GRAPH))
    X, Y = structure.sample(4, n=30)
    model = StructuredSVM(structure, alpha=0.01, tol=0.01).fit(X, Y)
    edges = model.space_.hierarchy.edges
    sets = all_labels(7, edges)
    values = (X @ model.coef_["node"] + model.coef_["intercept"]) @ sets.T
    assert model.predict(X).tolist() == sets[values.argmax(axis=1)].tolist()
    decisions = model.decision_function(X)
    on = np.stack([values[:, sets[:, v] == 1].max(axis=1) for v in range(7)], axis=1)
    off = np.stack([values[:, sets[:, v] == 0].max(axis=1) for v in range(7)], axis=1)
    assert np.allclose(decisions, on - off)
    best = model.predict_kbest(X, 3)
    assert np.allclose([[v for _, v in row] for row in best], -np.sort(-values, axis=1)[:, :3])
    some = model.predict(X, allowed=[["a", "b"]] * 30)
    assert not some[:, 2:].any() and model.classes_[:2].tolist() == ["a", "b"]
    refused("allowed has 1 entries", model.predict, X, allowed=[["a"]])
    for names in (5, "ab", {"a": False}):
        refused(
            "example 0: allowed is .*expected a list of", model.predict, X, allowed=[names] * 30
        )
    refused("a hierarchy has none", model.predict, X, forbidden=[("a", "b")])


@pytest.mark.parametrize("kind", ["closed", "single-leaf"])
@pytest.mark.parametrize("loss", ["hamming", "leaf"])
def test_training_reaches_the_optimum(kind, loss):
    structure = DagStructure(GRAPH, labels=kind)
    X, Y = structure.sample(5, n=10)
    model = StructuredSVM(structure, loss=loss, alpha=0.1, tol=1e-6, max_iter=500).fit(X, Y)
    space = model.space_
    edges, leaves = space.hierarchy.edges, space.hierarchy.leaves
    sets = all_labels(7, edges, kind)
    problem = []
    for x, y in zip(X, Y):
        if kind == "single-leaf":
            y = sets[sets[:, space.hierarchy.column[y]] == 1][0]
        wrong = sets != y
        cost = wrong.sum(axis=1) if loss == "hamming" else wrong[:, leaves].sum(axis=1)
        rows = [np.outer(np.append(x, 1), y - z).ravel() for z in sets]
        problem.append((np.array(rows, dtype=float), cost.astype(float)))
    best = optimum(problem, 0.1)
    assert model.history_[-1]["primal"] == pytest.approx(best.value, rel=1e-5)


def test_unions_of_graphs_train_on_the_relaxation():
    structure = DagStructure(GRAPH, labels="leaf-union")
    X, Y = structure.sample(5, n=8)
    model = StructuredSVM(structure, alpha=0.1, tol=0.01, max_iter=60).fit(X, Y)
    assert model.stop_reason_ == "converged"
    labels = {tuple(row) for row in all_labels(7, model.space_.hierarchy.edges, "leaf-union")}
    assert {tuple(row) for row in model.predict(X)} <= labels


@pytest.mark.parametrize(
    "labels, roots", [("closed", "free"), ("closed", "on"), ("leaf-union", "free")]
)
def test_no_entropy_on_graphs(labels, roots):
    """Refused with the reason; available if no node has two parents, and on leaves."""
    graph = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]
    structure = DagStructure(graph, labels=labels, roots=roots)
    X, Y = structure.sample(0)
    reason = "nodes have several parents takes exponential time, as to count them is #P-hard"
    with pytest.raises(ValueError, match=f"'crf' needs exact marginals.*{reason}; use surrogate="):
        StructuredSVM(structure, surrogate="crf").fit(X, Y)
    model = StructuredSVM(structure, alpha=0.1).fit(X, Y)
    refused(reason, model.predict_marginals, X)
    for given in (
        {"hierarchy": graph[:3], "labels": labels, "roots": roots},
        {"hierarchy": graph, "labels": "single-leaf"},
    ):
        structure = DagStructure(**given)
        X, Y = structure.sample(0)
        StructuredSVM(structure, surrogate="crf", alpha=0.1).fit(X, Y)
