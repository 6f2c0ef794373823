"""Sparse weights of trees: the native steps against plain ones, memory, files, errors."""

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
from structsolve.plugins.dag import Hierarchy
from structsolve.plugins.dag.svm.leaf_search import LeafSearch
from structsolve.plugins.dag.svm.sparse_model import SparseModel, train
from structsolve.plugins.dag.svm.sparse_tree import SparseTree
from structsolve.plugins.extreme.weights.postings import Postings
from structsolve.utils import container


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


def best_leaf(hierarchy, theta, truth, cost, loss):
    """Check all leaves; the order of nodes decides ties."""
    own = set(line(hierarchy, truth)) if truth is not None else set()
    best, most = None, -np.inf
    for leaf in hierarchy.order:
        if leaf not in hierarchy.leaves:
            continue
        nodes = line(hierarchy, leaf)
        value = theta[nodes].sum()
        if truth is not None:
            apart = cost[list(set(nodes) ^ own)].sum()
            value += {"hamming": apart, "path": np.sqrt(apart), "zero-one": leaf != truth}[loss]
        if value > most + 1e-12:
            best, most = int(leaf), value
    return best, most


def reference(hierarchy, X, labels, scale, cost, loss, alpha, orders, weight):
    """Pegasos on dense weights, and the mean of its iterates weighted by their number."""
    n, d = X.shape
    M = len(hierarchy)
    W, mean, t, chosen = np.zeros((d, M)), np.zeros((d, M)), 0, []
    for order in orders:
        for i in order:
            t += 1
            truth = int(labels[i])
            best, _ = best_leaf(hierarchy, scale * (X[i] @ W), truth, cost, loss)
            chosen.append(best)
            W *= 1 - 1 / t
            gain = np.zeros(M)
            gain[line(hierarchy, truth)] += scale[line(hierarchy, truth)]
            gain[line(hierarchy, best)] -= scale[line(hierarchy, best)]
            W += weight[i] / (alpha * t) * np.outer(X[i], gain)
            mean += t * W
    return scale * mean * 2 / (t * (t + 1)), chosen


def in_float32(hierarchy, X, labels, scale, cost, loss, alpha, orders, weight):
    """The same in the stored sums: of steps, and of steps times their number."""
    n, d = X.shape
    M = len(hierarchy)
    total, moment = np.zeros((d, M), np.float32), np.zeros((d, M), np.float32)
    t, chosen = 0, []
    for order in orders:
        for i in order:
            theta = X[i] @ total.astype(float) / max(t, 1)
            truth = int(labels[i])
            best, _ = best_leaf(hierarchy, theta, truth, cost, loss)
            chosen.append(best)
            t += 1
            gain = np.zeros(M)
            gain[line(hierarchy, truth)] += weight[i] / alpha
            gain[line(hierarchy, best)] -= weight[i] / alpha
            change = np.outer(X[i], gain * scale**2)
            total = (total + change).astype(np.float32)
            moment = (moment + t * change).astype(np.float32)
    return 2 / (t * (t + 1)) * ((t + 1) * total.astype(float) - moment), chosen


@settings(max_examples=150, deadline=None)
@drawn(st.integers(0, 10**6))
def test_steps_are_those_of_pegasos(seed):
    rng = np.random.default_rng(seed)
    # In large trees, few nodes are touched.
    hierarchy = random_forest(rng, int(rng.integers(2, 12 if seed % 2 else 30)))
    n, d = int(rng.integers(1, 8)), int(rng.integers(1, 5))
    # Numbers whose order rounding cannot change.
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
    given = hierarchy, X, labels, scale, cost, loss, alpha, orders, weight
    expected, chosen = in_float32(*given)
    W = model.matrix.toarray()
    size = np.abs(expected).max()
    assert pytest.approx(expected, rel=1e-7, abs=1e-9 * size) == W
    exact, by_exact = reference(*given)
    if chosen == by_exact:  # rounding broke no tie
        assert pytest.approx(exact, rel=1e-6, abs=2e-6 * size) == W
    assert history[-1]["nonzeros"] <= np.count_nonzero(X.any(axis=0)) * len(hierarchy)
    predicted, scores = model.predict(X)
    lines = [line(hierarchy, leaf) for leaf in hierarchy.leaves]
    totals = np.array([(X @ W)[:, nodes].sum(axis=1) for nodes in lines])
    error = 1e-5 * (np.abs(X) @ np.abs(W)).sum(axis=1).max() + 1e-30
    assert scores == pytest.approx(totals.max(axis=0), abs=error)
    own = [totals[list(hierarchy.leaves).index(leaf), i] for i, leaf in enumerate(predicted)]
    assert own == pytest.approx(totals.max(axis=0), abs=error)


@settings(max_examples=200, deadline=None)
@drawn(st.integers(0, 10**6))
def test_the_best_leaf_is_that_of_all_whatever_is_looked_at(seed):
    rng = np.random.default_rng(seed)
    hierarchy = random_forest(rng, int(rng.integers(1, 30)))
    M = len(hierarchy)
    # Small whole numbers: many ties, and exact sums.
    theta = rng.integers(-2, 3, M) * (rng.random(M) < rng.random())
    cost = rng.integers(0, 3, M).astype(float)
    loss = ["hamming", "path", "zero-one"][seed % 3]
    order, rank = hierarchy.order, hierarchy.rank
    parent = np.where(hierarchy.parent[order] >= 0, rank[hierarchy.parent[order]], -1).astype(
        np.int32
    )
    search = LeafSearch(parent, cost[order], loss)
    truth = int(rng.choice(hierarchy.leaves))
    expected, most = best_leaf(hierarchy, theta.astype(float), truth, cost, loss)
    for all_nodes in (True, False, True):
        leaf, value = search.best_leaf(theta[order].astype(float), int(rank[truth]), all_nodes)
        assert (order[leaf], value) == (expected, pytest.approx(most, abs=1e-12))
    for all_nodes in (True, False):
        leaf, value = LeafSearch(parent).best_leaf(theta[order].astype(float), -1, all_nodes)
        assert (order[leaf], value) == best_leaf(hierarchy, theta.astype(float), None, cost, loss)


def test_more_nodes_than_a_list_has_numbers_for():
    """Two children of the root, one of them with 140,000 leaves: three lists per feature."""
    M, n, d = 140_003, 80, 6
    rng = np.random.default_rng(4)
    parent = np.full(M, 1, np.int32)
    parent[:3] = -1, 0, 0
    labels = rng.choice([2, 3, 65_534, 65_535, 65_536, 65_537, 131_072, 140_002], n)
    X = sparse.random(n, d, 0.5, format="csr", random_state=rng)
    tree = SparseTree(parent, np.ones(M), np.ones(M), "path", d)
    again = SparseTree(parent, np.ones(M), np.ones(M), "path", d)
    order = rng.permutation(n)
    tree.run(X.indptr, X.indices, X.data, labels, order, alpha=0.1)
    # A run that stops and resumes from its arrays.
    again.run(X.indptr, X.indices, X.data, labels, order[:15], alpha=0.1)
    half = SparseTree(parent, np.ones(M), np.ones(M), "path", d)
    half.restore(again.steps, again.to_arrays())
    half.run(X.indptr, X.indices, X.data, labels, order[15:], alpha=0.1)
    total, moment = np.zeros((d, M)), np.zeros((d, M))
    search = LeafSearch(parent, np.ones(M), "path")
    for t, i in enumerate(order):
        x = X[i].toarray().ravel()
        best, _ = search.best_leaf(x @ total / max(t, 1), int(labels[i]))
        for leaf, sign in ((labels[i], 10.0), (best, -10.0)):
            while leaf >= 0:
                total[:, leaf] += sign * x
                moment[:, leaf] += (t + 1) * sign * x
                leaf = parent[leaf]
    expected = 2 / (n * (n + 1)) * ((n + 1) * total - moment)
    for made in (tree, half):
        indptr, indices, data = made.weights()
        W = sparse.csr_matrix((data, indices, indptr), (d, M))
        assert (W.sum_duplicates(), W.nnz)[1] == made.sums.n_entries > 50
        assert abs(W - sparse.csr_matrix(expected)).max() < 1e-5 * np.abs(expected).max()
    assert tree.sums.nbytes <= 12 * tree.sums.n_entries + 16 * 3 * d


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


def test_scores_that_would_overflow_are_refused(problem):
    """They were NaN, and the last leaf the answer."""
    tree, X, y = problem
    model = HierarchicalSVM(tree, sparse=True, alpha=1e-4, max_iter=2).fit(X / 10, y)
    refused("found 3e.38 for feature 0, expected values within", model.predict, [[3e38, -3e38] * 3])


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
        refused(message, tree.run, *given, alpha=0.1)
    refused("alpha is 0", tree.run, *rows, [1, 2], [0], alpha=0.0)
    refused("with children for example 1", tree.run, *rows, [1, 0], [0], alpha=0.1)
    refused("expected one of", LeafSearch, up, one, "hinge")
    refused("cost of node 1", LeafSearch, up, np.array([0, -1.0, np.nan]), "path")
    refused("an earlier node", LeafSearch, np.array([0]))
    search = LeafSearch(up)
    refused("truth is 0, expected a leaf", search.best_leaf, one, 0)
    refused("scores: found 2 entries", search.best_leaf, one[:2])
    with_loss = LeafSearch(up, one, "path")
    refused("truth is -1, expected a leaf below 3", with_loss.best_leaf, one)
    weights = Postings.from_matrix(sparse.eye(2, 3, format="csr"))
    x, columns = sparse.eye(2, dtype=np.float32, format="csr"), np.arange(3, dtype=np.int32)
    refused("made with a loss", with_loss.best_leaves, weights, x, columns)
    refused("expected FeatureLists", search.best_leaves, sparse.eye(2, 3), x, columns)
    refused("columns", search.best_leaves, weights, x, columns + 1)
    refused("columns", search.best_leaves, weights, x, columns[:2])
    refused("features, expected 2", search.best_leaves, weights, x[:, :1].tocsr(), columns)
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
    assert model.memory_["weights"] <= 12 * model.history_[-1]["nonzeros"] + 16 * d


def test_checkpoints_of_another_storage_are_refused(problem, tmp_path):
    tree, X, y = problem
    path = tmp_path / "run.checkpoint"
    model = HierarchicalSVM(tree, sparse=True, alpha=0.1, max_iter=1, checkpoint=path)
    model.set_params(random_state=2).fit(X, y)
    meta, arrays = container.read(path, "checkpoint")
    expected = clone(model).set_params(max_iter=3, checkpoint=None).fit(X, y)
    # Its own copy of the graph, as in another process.
    resumed = clone(model).set_params(max_iter=3, hierarchy=tree.copy()).fit(X, y)
    assert (expected.coef_["node"] != resumed.coef_["node"]).nnz == 0
    del meta["content"]["storage"]
    container.write(path, "checkpoint", meta, arrays)
    other = tree.copy()
    other.remove_edge("a", "ax")
    other.add_edge("b", "ax")
    refused("belongs to other data", clone(model).set_params(hierarchy=other).fit, X, y)
    refused("stored in another form than this version's; delete it", clone(model).fit, X, y)


def test_weights_beyond_float32_are_refused(problem):
    tree, X, y = problem
    model = HierarchicalSVM(tree, sparse=True, alpha=1e-30, max_iter=1)
    refused("weights of feature .* are beyond the range of float32", model.fit, X * 1e9, y)
