"""HierarchicalSVM against general convex solvers; use of its weights; files."""

from types import SimpleNamespace

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
from checks import refused, reloaded
from reference.hierarchies import brute_paths
from reference.objectives import optimum
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.model_selection import GridSearchCV

import structsolve
from structsolve import HierarchicalSVM, HierarchicalSVMCV
from structsolve.plugins.dag import Hierarchy, PathCost, node_weights
from structsolve.plugins.dag.svm import alternation
from structsolve.plugins.dag.svm.alternation import _State, first_weights
from structsolve.plugins.dag.svm.shared import best_weights, penalty

TREE = nx.DiGraph([("r", "a"), ("r", "b"), ("b", "c"), ("b", "d"), ("d", "e"), ("d", "f")])
GRAPH = nx.DiGraph([("r", "a"), ("r", "b"), ("s", "b"), ("s", "c"), ("b", "d"), ("b", "e")])
GRAPHS = {"tree": TREE, "graph": GRAPH}


def leaves_of(graph):
    return sorted(n for n in graph if graph.out_degree(n) == 0)


def leaf_data(graph, n=24, n_features=3, seed=0):
    rng = np.random.default_rng(seed)
    leaves = leaves_of(graph)
    X = rng.normal(size=(n, n_features))
    y = (X @ rng.normal(size=(n_features, len(leaves)))).argmax(axis=1)
    y[: len(leaves)] = np.arange(len(leaves))
    return X, np.array(leaves)[y]


def written_out(graph, X, y, alpha, loss):
    """Return the single-leaf problem as difference vectors (in U) and losses."""
    hierarchy = Hierarchy(graph)
    paths = brute_paths(hierarchy)
    names = hierarchy.nodes[hierarchy.leaves]
    problem = []
    for x, truth in zip(np.c_[X, np.ones(len(X))], y):
        t = int(np.flatnonzero(names == truth)[0])
        between = np.abs(paths - paths[t])
        losses = {
            "path": np.sqrt(between @ alpha),
            "hamming": between.sum(axis=1),
            "zero-one": (np.arange(len(paths)) != t).astype(float),
        }[loss]
        problem.append((np.array([np.kron(paths[t] - p, x) for p in paths]), losses))
    return problem


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("normalization", ["none", "rho:2", "rho:1.5", "maxmin"])
def test_single_leaves_reach_the_optimum(kind, normalization):
    graph = GRAPHS[kind]
    X, y = leaf_data(graph)
    a = node_weights(graph, normalization).values
    loss = "hamming" if normalization == "none" else "path"
    written = written_out(graph, X, y, a, loss)
    scaled = [(d * np.repeat(np.sqrt(a), 4), costs) for d, costs in written]
    best = optimum(scaled, 0.05)
    model = HierarchicalSVM(graph, normalization=normalization, alpha=0.05, tol=1e-6, max_iter=2000)
    model.fit(X, y)
    assert model.stop_reason_ == "converged"
    assert model.history_[-1]["primal"] == pytest.approx(best.value, rel=2e-6)
    np.testing.assert_allclose(model.node_weights_, a, rtol=1e-12)
    expected = (best.w.reshape(-1, 4) * np.sqrt(a)[:, None]).T
    np.testing.assert_allclose(
        np.r_[model.coef_["node"], model.coef_["intercept"][None]], expected, atol=5e-3
    )
    assert (model.nodes_ == Hierarchy(graph).nodes).all()
    assert model.score(X, y) == pytest.approx(np.mean(model.predict(X) == y))


def joint_optimum(graph, written, alpha, n_rows):
    """Solve the Shared SVM by one convex program over U and the weights."""
    hierarchy = Hierarchy(graph)
    M = len(hierarchy)
    U, a, cost = cp.Variable((M, n_rows)), cp.Variable(M, nonneg=True), cp.Variable(M)
    xi = cp.Variable(len(written))
    u = cp.vec(U.T, order="F")
    rows = [cp.quad_over_lin(U[n], a[n]) <= cost[n] for n in range(M)]
    rows += [brute_paths(hierarchy) @ a <= 1]
    rows += [losses - d @ u <= xi[i] for i, (d, losses) in enumerate(written)]
    task = cp.Problem(cp.Minimize(alpha / 2 * cp.sum(cost) + cp.sum(xi) / len(written)), rows)
    task.solve(solver=cp.CLARABEL)
    return task.value, a.value


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("seed", range(3))
def test_learned_weights_reach_the_joint_optimum(kind, seed):
    graph = GRAPHS[kind]
    X, y = leaf_data(graph, seed=seed)
    hierarchy = Hierarchy(graph)
    loss = ["auto", "zero-one"][seed % 2]
    weights = node_weights(graph, "rho:2").values
    written = written_out(graph, X, y, weights, "path" if loss == "auto" else loss)
    best, _ = joint_optimum(graph, written, 0.05, 4)
    model = HierarchicalSVM(graph, normalization="learned", alpha=0.05, tol=1e-3, max_iter=200)
    model.set_params(loss=loss)
    model.fit(X, y)
    ends = [r for r in model.history_ if "objective" in r]
    objectives = [r["objective"] for r in ends]
    assert (np.diff(objectives) <= 1e-12).all()
    assert objectives[-1] == pytest.approx(best, rel=1.1e-3)
    # The certificate, at every alternation.
    for record in ends:
        assert record["objective"] - record["joint_gap"] <= best * (1 + 1e-6)
    assert model.stop_reason_ == "converged"
    assert ends[-1]["joint_gap"] <= 1e-3 * objectives[-1]
    assert (brute_paths(hierarchy) @ model.node_weights_).max() <= 1 + 1e-6
    assert [r["pass"] for r in model.history_] == list(range(1, len(model.history_) + 1))


def test_an_alternation_without_gain_tightens_the_next_problem():
    hierarchy, outcome = Hierarchy(GRAPHS["tree"]), SimpleNamespace(reason="converged", history=[])
    inner = []
    for gained in (0.01, 0.0):
        state = _State(hierarchy, 0.05, 1e-3, first_weights(hierarchy), 0.1, objective=1.0)
        state.gaps = [0.5]
        assert state.ended(outcome, gained, 50) is None
        inner.append(state.inner)
    assert inner == [0.1, 0.05]


def test_learned_weights_of_data_that_need_one_node_only():
    """Two leaves have data, the rest of the tree none: its weights vanish, nothing else does."""
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=40), np.zeros(40)]
    y = np.where(X[:, 0] > 0, "a", "e")
    model = HierarchicalSVM(
        TREE, normalization="learned", alpha=0.1, fit_intercept=False, tol=1e-3, max_iter=1000
    ).fit(X, y)
    assert model.stop_reason_ == "converged"
    weights = dict(zip(model.nodes_.tolist(), model.node_weights_))
    assert np.isfinite(list(weights.values())).all() and min(weights.values()) > 0
    assert weights["r"] < 1e-2 and weights["a"] > 0.95
    assert (model.predict(X) == y).all()
    assert np.isfinite(model.coef_["node"]).all()
    nothing = HierarchicalSVM(TREE, normalization="learned").fit(np.zeros((4, 2)), list("acef"))
    assert np.isfinite(nothing.node_weights_).all()


@pytest.mark.parametrize("solver", ["cutting-plane", "sgd"])
def test_other_solvers_learn_weights_too(solver):
    X, y = leaf_data(TREE)
    options = {"normalization": "learned", "alpha": 0.05, "max_iter": 300, "tol": 1e-3}
    bcfw = HierarchicalSVM(TREE, **options).fit(X, y)
    other = HierarchicalSVM(TREE, solver=solver, **options).fit(X, y)
    last = [m.history_[-1]["objective"] for m in (bcfw, other)]
    assert last[1] == pytest.approx(last[0], rel=0.02)
    assert other.history_[-1]["joint_gap"] is None
    objectives = [r["objective"] for r in other.history_ if "objective" in r]
    assert (np.diff(objectives) <= 1e-12).all()


# -- copies of nodes ----------------------------------------------------------------------------


def copied(n):
    """Return leaf a beside a tree of c and d, whose root b is repeated n times in a row."""
    names = ["b", *(f"b{k}" for k in range(1, n))]
    graph = nx.DiGraph([*zip(names, names[1:]), (names[-1], "c"), (names[-1], "d")])
    graph.add_node("a")
    return graph


def test_copies_of_a_node_matter_less_and_less_as_rho_falls():
    X, y = leaf_data(copied(1), n=40, seed=1)
    fresh = np.random.default_rng(5).normal(size=(2000, 3))
    distances, decisions = [], []
    for rho in (5.0, 2.0, 1.5, 1.3, 1.2, 1.1):
        scores = []
        for copies in (1, 6):
            model = HierarchicalSVM(
                copied(copies), normalization=f"rho:{rho}", alpha=0.3, tol=1e-6, max_iter=3000
            )
            values = model.fit(X, y).decision_function(fresh)
            scores.append(values - values.mean(axis=1, keepdims=True))
        distances.append(np.linalg.norm(scores[0] - scores[1]) / np.linalg.norm(scores[0]))
        decisions.append(np.mean(scores[0].argmax(axis=1) != scores[1].argmax(axis=1)))
    assert (np.diff(distances) < 0).all(), distances
    assert distances[0] > 0.2 and distances[-1] < 0.02, distances
    assert decisions[0] > 0.05 and decisions[-1] < 0.01, decisions


# -- sets of labels -----------------------------------------------------------------------------


def set_data(graph, n=30, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    leaves = np.array(leaves_of(graph))
    on = X @ rng.normal(size=(3, len(leaves))) > 0.5
    on[np.arange(n), rng.integers(len(leaves), size=n)] = True
    return X, [
        sorted({v for leaf in leaves[row] for v in [leaf, *nx.ancestors(graph, leaf)]})
        for row in on
    ]


@pytest.mark.parametrize("normalization", ["none", "rho:2", "maxmin", "learned"])
@pytest.mark.parametrize("labels", ["auto", "closed"])
def test_sets_of_labels(normalization, labels):
    X, Y = set_data(TREE)
    model = HierarchicalSVM(TREE, normalization=normalization, labels=labels, alpha=0.02)
    predicted = model.fit(X, Y).predict(X)
    assert predicted.shape == (30, 7)
    parents, children = zip(*((list(TREE).index(p), list(TREE).index(c)) for p, c in TREE.edges))
    assert (predicted[:, children] <= predicted[:, parents]).all()
    truth = np.array([[name in names for name in TREE] for names in Y])
    assert model.score(X, Y) == pytest.approx((predicted == truth).mean())
    assert model.score(X, Y) > 0.8
    assert model.structure.labels == ("leaf-union" if labels == "auto" else "closed")


# -- conventions --------------------------------------------------------------------------------


@pytest.mark.parametrize("normalization", ["none", "rho:1.01", "maxmin", "learned"])
def test_files_and_clones(normalization, tmp_path):
    X, y = leaf_data(TREE)
    model = HierarchicalSVM(TREE, normalization=normalization, alpha=0.05, max_iter=300)
    again = clone(model)
    model.fit(X, y)
    again.fit(sparse.csr_matrix(X), y.tolist())
    assert again.predict(X).tolist() == model.predict(X).tolist()
    first = model.coef_["node"].copy()
    assert model.fit(X, y).coef_["node"].tolist() == first.tolist()
    loaded = reloaded(model, tmp_path)
    assert isinstance(loaded, HierarchicalSVM)
    assert loaded.predict(X).tolist() == model.predict(X).tolist()
    assert loaded.log_node_weights_.tolist() == model.log_node_weights_.tolist()
    assert loaded.nodes_.tolist() == model.nodes_.tolist()
    assert loaded.get_params()["normalization"] == normalization
    assert loaded.fit(X, y).coef_["node"].tolist() == first.tolist()


def test_search_warm_starts_paths_validation_and_kernels():
    X, y = leaf_data(TREE, n=40)
    grid = {"normalization": ["none", "rho:2", "learned"], "alpha": [0.1, 0.01]}
    search = GridSearchCV(HierarchicalSVM(TREE, max_iter=50), grid, cv=2).fit(X, y)
    assert search.best_score_ > 0.5
    base = HierarchicalSVM(TREE, alpha=0.05, tol=1e-4, max_iter=1000)
    fitted = clone(base).fit(X, y)
    for solver in ("bcfw", "sgd"):
        warm = clone(base).set_params(warm_start=True, solver=solver).fit(X, y)
        warm.fit(X, y)
        assert np.mean(warm.predict(X) == fitted.predict(X)) > 0.9
    path = base.path(X, y, [0.5, 0.05])
    np.testing.assert_allclose(path[1].coef_["node"], fitted.coef_["node"], atol=0.05)
    assert path[1].node_weights_.tolist() == fitted.node_weights_.tolist()
    early = clone(base).set_params(early_stopping=True, random_state=1).fit(X, y)
    assert any("validation_score" in r for r in early.history_)
    kernel = clone(base).set_params(kernel="linear").fit(X, y)
    expected = fitted.decision_function(X)
    np.testing.assert_allclose(kernel.decision_function(X), expected, atol=0.05)
    step = HierarchicalSVM(TREE, solver="sgd", alpha=0.05)
    for _ in range(30):
        step.partial_fit(X, y)
    assert np.mean(step.predict(X) == fitted.predict(X)) > 0.8


@pytest.mark.parametrize(
    "options, message",
    [
        ({"normalization": "rho:1"}, "normalization is"),
        ({"normalization": "maxmin", "slack": 0.5}, "slack is"),
        ({"labels": "leaves"}, "labels is"),
        ({"normalization": "learned", "kernel": "rbf"}, "kernel is given"),
        ({"normalization": "learned", "slack": 2.0}, "slack is given"),
        ({"normalization": "learned", "early_stopping": True}, "early_stopping is given"),
        ({"normalization": "learned", "warm_start": True}, "warm_start is given"),
        ({"normalization": "learned", "max_alternations": 0}, "max_alternations is 0"),
        ({"normalization": "learned", "alpha": -1.0}, "alpha is"),
        ({"hierarchy": None}, "hierarchy is None"),
        ({"hierarchy": nx.DiGraph([("a", "b"), ("b", "a")])}, "cycle"),
    ],
    ids=lambda given: given if isinstance(given, str) else "-".join(given),
)
def test_refusals(options, message):
    X, y = leaf_data(TREE)
    refused(message, HierarchicalSVM(**{"hierarchy": TREE, **options}).fit, X, y)


def test_more_refusals():
    X, y = leaf_data(TREE)
    refused("'zebra'", HierarchicalSVM(TREE).fit, X, ["zebra", *y[1:]])
    with pytest.raises(ValueError, match="all examples at once"):
        HierarchicalSVM(TREE, normalization="learned", solver="sgd").partial_fit(X, y)
    with pytest.raises(ValueError, match="validation is given"):
        HierarchicalSVM(TREE, normalization="learned").fit(X, y, validation=(X, y))


def test_saved_with_any_form_of_hierarchy_and_a_loss_of_paths(tmp_path):
    graph = nx.DiGraph([("root", "a"), ("root", "b")])
    X, y = np.eye(2), ["a", "b"]
    forms = graph, {"root": {"a": 1, "b": 2}.keys()}, Hierarchy(graph)
    for number, hierarchy in enumerate(forms):
        model = HierarchicalSVM(hierarchy, loss=PathCost([0.5, 0.5, 0.5])).fit(X, y)
        model.save(tmp_path / f"{number}")
        assert structsolve.load(tmp_path / f"{number}").predict(X).tolist() == y


def test_allowed_leaves():
    graph = nx.DiGraph([("root", "a"), ("root", "b")])
    model = HierarchicalSVM(graph).fit(np.eye(2), ["a", "b"])
    assert model.predict(np.eye(2), allowed=[["b"], None]).tolist() == ["b", "b"]
    best = model.predict_kbest(np.eye(2), 2, allowed=[["a"], ["a", "b"]])
    assert [len(row) for row in best] == [1, 2]


@pytest.mark.parametrize(
    "y, message",
    [
        (None, "y is None, expected one leaf per row of X"),
        (5, "y is 5, expected one leaf per row of X"),
        ([1.5, 2.0], "example 0: found the label 1.5, which is no node"),
        ([["root", "a"], None], "example 1: y holds None, expected the list of its labels"),
    ],
)
def test_labels_that_are_none_are_refused(y, message):
    graph = nx.DiGraph([("root", "a"), ("root", "b")])
    refused(message, HierarchicalSVM(graph).fit, np.eye(2), y)


def test_sets_in_an_array_of_objects_are_sets():
    graph = nx.DiGraph([("root", "a"), ("root", "b")])
    y = np.empty(2, dtype=object)
    y[:] = [("root", "a"), ("root", "a", "b")]
    assert HierarchicalSVM(graph).fit(np.eye(2), y).predict(np.eye(2)).shape == (2, 3)


def test_learned_weights_end_where_problems_stay_unsolved_or_the_gap_stands_still(monkeypatch):
    X, y = leaf_data(TREE)
    options = {"normalization": "learned", "alpha": 1e-4, "tol": 1e-9}
    monkeypatch.setattr(alternation, "UNSOLVED", 4)
    with pytest.warns(ConvergenceWarning, match="joint gap of .* max_iter=2 passes did not solve"):
        short = HierarchicalSVM(TREE, max_iter=2, **options).fit(X, y)
    assert (short.stop_reason_, short.n_iter_) == ("max_iter", 4)
    monkeypatch.setattr(alternation, "UNSOLVED", 10**9)
    monkeypatch.setattr(alternation, "PACE", 2)
    with pytest.warns(ConvergenceWarning, match="too slowly for max_alternations=9; raise"):
        slow = HierarchicalSVM(TREE, max_iter=3, max_alternations=9, **options).fit(X, y)
    ends = [record for record in slow.history_ if "objective" in record]
    assert slow.stop_reason_ == "settled" and 3 <= len(ends) < 9
    # The bound never falls.
    bounds = [record["objective"] - record["joint_gap"] for record in ends]
    assert all(b >= a * (1 - 1e-6) for a, b in zip(bounds, bounds[1:]))


@pytest.mark.parametrize("seed", range(20))
def test_shared_weights_of_graphs_from_other_multipliers(seed):
    rng = np.random.default_rng(seed)
    hierarchy = Hierarchy(GRAPH)
    squares = rng.exponential(size=len(hierarchy)) * (rng.random(len(hierarchy)) < 0.7)
    cold, multipliers = best_weights(hierarchy, squares, 1e-10, None)
    others = squares * rng.exponential(size=len(hierarchy)) + (rng.random(len(hierarchy)) < 0.3)
    exact, _ = best_weights(hierarchy, others, 1e-10, None)
    warm, _ = best_weights(hierarchy, others, 1e-10, multipliers)
    assert penalty(others, warm) == pytest.approx(penalty(others, exact), rel=1e-8)
    assert (hierarchy.paths @ warm <= 1 + 1e-12).all()


@pytest.mark.pandas
@pytest.mark.parametrize("names", ["integers", "strings"])
def test_a_column_of_leaves_is_1d(names):
    graph = nx.DiGraph([(10, 1), (10, 2), (20, 3), (20, 4)])
    graph = graph if names == "integers" else nx.relabel_nodes(graph, str)
    X, y = leaf_data(graph)
    flat = HierarchicalSVM(graph, alpha=0.1).fit(X, y)
    columns = [y[:, None]]
    pandas = pytest.importorskip("pandas")
    columns.append(pandas.DataFrame({"y": y}))
    for column in columns:
        with pytest.warns(DataConversionWarning, match="column-vector y"):
            model = HierarchicalSVM(graph, alpha=0.1).fit(X, column)
            chosen = HierarchicalSVMCV(graph, alphas=[0.1], cv=2).fit(X, column)
            score = model.score(X, column)
            by_name = [model.score(X, column, metric=m) for m in ("accuracy", "hierarchical-f1")]
        assert model.predict(X).tolist() == flat.predict(X).tolist() == chosen.predict(X).tolist()
        assert score == pytest.approx(flat.score(X, y))
        assert by_name == [flat.score(X, y, metric=m) for m in ("accuracy", "hierarchical-f1")]


@pytest.mark.parametrize("labels", ["leaf-union", "closed"])
def test_indicators_of_the_only_node(labels):
    X, y = np.array([[1.0], [2.0]]), np.array([[1], [1 - (labels == "closed")]])
    model = HierarchicalSVM({"a": []}, labels=labels, alpha=0.1).fit(X, y)
    assert model.predict(X).shape == (2, 1) and model.score(X, y) >= 0.5
