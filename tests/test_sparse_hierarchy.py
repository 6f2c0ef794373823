"""Sparse weights of trees: the native steps against plain ones, memory, files, refusals."""

import networkx as nx
import numpy as np
import pytest
from checks import refused, reloaded
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

import structsolve
from structsolve import HierarchicalSVM
from structsolve.estimators.hierarchy.sparse_model import SparseModel, train
from structsolve.estimators.hierarchy.sparse_tree import SparseTree, best_leaves
from structsolve.plugins.dag import Hierarchy


def random_forest(rng, size):
    """Return a hierarchy whose nodes have shuffled numbers."""
    names = rng.permutation(size)
    edges = [(names[rng.integers(v)], names[v]) for v in range(1, size) if rng.random() < 0.9]
    graph = nx.DiGraph()
    graph.add_nodes_from(int(v) for v in rng.permutation(size))
    graph.add_edges_from((int(a), int(b)) for a, b in edges)
    return Hierarchy(graph)


def line(hierarchy, leaf):
    nodes = []
    while leaf >= 0:
        nodes.append(int(leaf))
        leaf = hierarchy.parent[leaf]
    return nodes


def reference(hierarchy, X, labels, scale, cost, loss, alpha, orders, weight):
    """Pegasos on dense weights, and the mean of its iterates weighted by their number."""
    n, d = X.shape
    M = len(hierarchy)
    W, mean, t = np.zeros((d, M)), np.zeros((d, M)), 0
    lines = {int(leaf): line(hierarchy, leaf) for leaf in hierarchy.leaves}
    # The order of nodes decides between equal leaves.
    leaves = [int(v) for v in hierarchy.order if int(v) in lines]
    for order in orders:
        for i in order:
            t += 1
            theta = scale * (X[i] @ W)
            truth = int(labels[i])
            best, most = None, -np.inf
            for leaf in leaves:
                apart = cost[list(set(lines[leaf]) ^ set(lines[truth]))].sum()
                extra = {"hamming": apart, "path": np.sqrt(apart), "zero-one": leaf != truth}[loss]
                value = theta[lines[leaf]].sum() + extra
                if value > most + 1e-12:
                    best, most = leaf, value
            W *= 1 - 1 / t
            gain = np.zeros(M)
            gain[lines[truth]] += scale[lines[truth]]
            gain[lines[best]] -= scale[lines[best]]
            W += weight[i] / (alpha * t) * np.outer(X[i], gain)
            mean += t * W
    return scale * mean * 2 / (t * (t + 1))


@settings(max_examples=150, deadline=None)
@drawn(st.integers(0, 10**6))
def test_steps_are_those_of_pegasos(seed):
    rng = np.random.default_rng(seed)
    hierarchy = random_forest(rng, int(rng.integers(2, 12)))
    n, d = int(rng.integers(1, 8)), int(rng.integers(1, 5))
    # Numbers that rounding cannot bring into another order.
    X = np.where(rng.random((n, d)) < 0.6, rng.normal(size=(n, d)), 0)
    labels = rng.choice(hierarchy.leaves, n)
    scale, cost = rng.random(len(hierarchy)) + 0.1, rng.random(len(hierarchy)) + 0.1
    loss = ["hamming", "path", "zero-one"][seed % 3]
    weight = rng.random(n) + 0.5
    weight /= weight.mean()
    if loss == "zero-one":
        # All rivals are equal at w = 0: the first leaf wins, in either order of summation.
        X[0] = 0
    alpha = float(rng.choice([0.1, 1.0]))
    settings = {"scale": scale, "cost": cost, "loss": loss, "alpha": alpha}
    model, history = train(
        hierarchy,
        sparse.csr_matrix(X),
        labels.astype(np.int32),
        **settings,
        passes=2,
        intercept=False,
        rng=np.random.default_rng(1),
        sample_weight=weight,
    )
    again = np.random.default_rng(1)
    orders = [again.permutation(n) for _ in range(2)]
    expected = reference(hierarchy, X, labels, scale, cost, loss, alpha, orders, weight)
    assert model.matrix.toarray() == pytest.approx(expected, rel=1e-9, abs=1e-10)
    assert history[-1]["nonzeros"] <= np.count_nonzero(X.any(axis=0)) * len(hierarchy)
    predicted, scores = model.predict(X)
    lines = [line(hierarchy, leaf) for leaf in hierarchy.leaves]
    totals = np.array([(X @ expected)[:, nodes].sum(axis=1) for nodes in lines])
    assert scores == pytest.approx(totals.max(axis=0), abs=1e-9)
    assert set(predicted) <= set(hierarchy.leaves)


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    tree = nx.DiGraph([("root", a) for a in "ab"] + [(a, a + b) for a in "ab" for b in "xyz"])
    names = np.array([a + b for a in "ab" for b in "xyz"])
    y = rng.integers(0, 6, 300)
    X = np.eye(6)[y] + 0.3 * rng.normal(size=(300, 6))
    return tree, X, names[y]


@pytest.mark.parametrize("normalization", ["none", "rho:2", "maxmin"])
def test_learns_as_dense_weights_do(problem, normalization):
    tree, X, y = problem
    model = HierarchicalSVM(
        tree, normalization=normalization, sparse=True, solver="sgd", alpha=0.01, max_iter=20
    ).fit(X, y)
    dense = clone(model).set_params(sparse=False, solver="bcfw").fit(X, y)
    assert model.score(X, y) >= dense.score(X, y) - 0.02
    assert model.score(X, y) > 0.95
    W = model.coef_["node"].toarray()
    cosine = (W * dense.coef_["node"]).sum() / np.linalg.norm(W)
    assert cosine / np.linalg.norm(dense.coef_["node"]) > 0.9


def test_the_same_again_for_any_number_of_jobs_and_from_a_file(problem, tmp_path):
    tree, X, y = problem
    model = HierarchicalSVM(tree, sparse=True, solver="sgd", alpha=0.1, max_iter=2).fit(X, y)
    again = clone(model).fit(sparse.csr_matrix(X), y)
    assert (model.coef_["node"] != again.coef_["node"]).nnz == 0
    expected = model.predict(X)
    assert np.array_equal(model.set_params(n_jobs=2).predict(X), expected)
    loaded = reloaded(model, tmp_path)
    assert np.array_equal(loaded.predict(X), expected)
    assert loaded.sparse and loaded.score(X, y) == model.score(X, y)
    assert model.history_[-1]["nonzeros"] > 0 and model.memory_["weights"] > 0


def test_the_default_solver_is_one_that_works(problem):
    tree, X, y = problem
    default = HierarchicalSVM(tree, sparse=True, alpha=0.1, max_iter=2).fit(X, y)
    named = HierarchicalSVM(tree, sparse=True, solver="sgd", alpha=0.1, max_iter=2).fit(X, y)
    assert (default.coef_["node"] != named.coef_["node"]).nnz == 0
    dense = HierarchicalSVM(tree, alpha=0.1, max_iter=2).fit(X, y)
    assert type(dense.solver_).__name__ == "BCFW"


def test_callbacks_and_weights_of_examples(problem):
    tree, X, y = problem
    seen = []

    def second(record):
        seen.append(record)
        return len(seen) == 2

    model = HierarchicalSVM(tree, sparse=True, solver="sgd", alpha=0.1, max_iter=9)
    model.set_params(callbacks=[second])
    model.fit(X, y, sample_weight=np.ones(300))
    assert model.stop_reason_ == "callback" and model.n_iter_ == 2
    other = clone(model).set_params(callbacks=None, max_iter=2).fit(X, y)
    assert np.array_equal(model.coef_["intercept"], other.coef_["intercept"])


@pytest.mark.parametrize(
    "params, message",
    [
        ({"solver": "bcfw"}, "solver is 'bcfw', expected 'sgd'"),
        ({"normalization": "learned"}, "normalization is 'learned', which sparse=True"),
        ({"kernel": "rbf"}, "kernel is 'rbf', which sparse=True does not take"),
        ({"surrogate": "slack"}, "surrogate is 'slack'"),
        ({"loss": "hamming"}, "loss is 'hamming', expected 'auto'"),
        ({"labels": "closed", "close": True}, "found label sets, expected one leaf"),
        ({"oracle": "lp"}, "oracle is 'lp'"),
        ({"hierarchy": nx.DiGraph([(0, 2), (1, 2), (0, 3)])}, "a node with several parents"),
    ],
)
def test_refusals(problem, params, message):
    tree, X, y = problem
    model = HierarchicalSVM(tree, sparse=True, solver="sgd").set_params(**params)
    if "labels" in params:
        y = [[name] for name in y]
    if "hierarchy" in params:
        y = np.where(np.arange(300) < 9, 2, 3)
    refused(message, model.fit, X, y)


def test_other_answers_are_refused(problem):
    tree, X, y = problem
    model = HierarchicalSVM(tree, sparse=True, solver="sgd", max_iter=1).fit(X, y)
    refused("gives predict and score alone", model.decision_function, X)
    refused("without constraints", model.predict, X, allowed=[None] * 300)


def test_numbers_that_are_none_are_refused(problem):
    tree, X, y = problem
    model = HierarchicalSVM(tree, sparse=True, solver="sgd", max_iter=1).fit(X, y)
    bad = X.copy()
    bad[7, 2] = np.nan
    for call in (lambda: clone(model).fit(bad, y), lambda: model.predict(bad)):
        refused("example 7", call)
    refused("example 7", model.score, sparse.csr_matrix(bad), y)


def test_other_ways_to_fit(problem, tmp_path):
    tree, X, y = problem
    model = HierarchicalSVM(tree, sparse=True, solver="sgd", max_iter=1).fit(X, y)
    refused("needs all examples at once", model.partial_fit, X, y)
    model.set_params(sparse=False).save(tmp_path / "m.structsolve")
    assert (
        structsolve.load(tmp_path / "m.structsolve").predict(X).tolist()
        == model.predict(X).tolist()
    )
    model.set_params(warm_start=True, solver="bcfw", max_iter=5).fit(X, y)
    assert isinstance(model.coef_["node"], np.ndarray)


def test_every_callback_is_called_and_true_alone_ends_training(problem):
    tree, X, y = problem
    seen = []
    calls = [lambda record: 1, lambda record: True, lambda record: seen.append(record["pass"])]
    model = HierarchicalSVM(tree, sparse=True, solver="sgd", max_iter=1, callbacks=calls).fit(X, y)
    assert seen == [1] and model.stop_reason_ == "callback"
    assert model.set_params(callbacks=calls[:1], max_iter=2).fit(X, y).stop_reason_ == "max_iter"


def test_native_entry_points_check_what_they_are_given():
    one, up = np.ones(3), np.array([-1, 0, 0])
    for given, message in (
        ((up, one, one, "hinge", 2), "loss is 'hinge'"),
        ((up, one, one, "path", 0), "n_features is 0"),
        ((up, one[:2], one, "path", 2), r"expected \(3,\) as parent"),
        ((np.array([-1, 2, 0]), one, one, "path", 2), "node 1: its parent is 2"),
    ):
        refused(message, SparseTree, *given)
    tree = SparseTree(up, one, one, "path", 2)
    X = sparse.csr_matrix(np.eye(2))
    rows = X.indptr, X.indices, X.data
    for given, message in (
        ((X.indptr, X.indices + 5, X.data, [1, 2], [0]), "columns beyond 2"),
        ((X.indptr[:2], X.indices, X.data, [1], [0]), "not those of a CSR"),
        ((*rows, [1, 7], [0]), "expected 2 nodes below 3"),
        ((*rows, [1, 2], [3]), "expected examples below 2"),
    ):
        refused(message, tree.run, *given, 0.1)
    refused("alpha is 0", tree.run, *rows, [1, 2], [0], 0.0)
    with pytest.raises(ValueError, match="columns beyond 3"):
        best_leaves(up, (np.array([0, 1]), np.array([3]), np.ones(1)), rows)
    with pytest.raises(ValueError, match="an earlier node"):
        best_leaves(np.array([0]), (np.array([0, 0, 0]), np.zeros(0), np.zeros(0)), rows)
    empty = sparse.csr_matrix((2, 3))
    model = SparseModel(Hierarchy({0: [1, 2]}), empty, False)
    assert model.predict(np.zeros((4, 2)))[0].tolist() == [1] * 4


def test_memory_follows_what_is_touched():
    rng = np.random.default_rng(3)
    M, d, n = 5000, 20_000, 400
    tree = Hierarchy(np.column_stack([(np.arange(1, M) - 1) // 4, np.arange(1, M)]))
    X = sparse.random(n, d, density=10 / d, format="csr", random_state=rng)
    y = rng.choice(tree.nodes[tree.leaves], n)
    model = HierarchicalSVM(
        tree, sparse=True, solver="sgd", normalization="none", max_iter=1, fit_intercept=False
    ).fit(X, y)
    depth = 2 * int(np.ceil(np.log(M) / np.log(4)) + 1)
    assert 0 < model.history_[-1]["nonzeros"] <= X.nnz * depth
    assert model.memory_["weights"] <= 32 * d + 40 * model.history_[-1]["nonzeros"] + 100 * d
