"""Trees against enumeration on thousands of small forests, against other programs, and large."""

import networkx as nx
import numpy as np
import pytest
from checks import refused, reloaded, same
from edge_structures import EdgeTree
from enumeration import Enumerated
from random_cases import random_cases
from reference.programs import best_vertex

import structsolve
from structsolve import StructuredSVM
from structsolve.lp import ask_oracle
from structsolve.part_layout import PartLayout
from structsolve.plugins import chain
from structsolve.plugins.tree import TreeStructure, root_tree
from structsolve.plugins.tree._shape import order_nodes
from structsolve.structure import calls
from structsolve.structure.ask import make_layout
from structsolve.testing import check_structure

VARIANTS = [(t, r, e) for t in (True, False) for r in (True, False) for e in (True, False)]
SIZES = [(1, 1), (1, 2), (1, 9), (2, 1), (5, 1), (2, 2), (2, 5), (3, 3), (2, 9), (4, 4), (5, 3)]
KINDS = ["normal", "ties", "equal", "wide", "huge", "forbidden", "forbidden pairs"]


def random_parents(n, rng, connected=0.85):
    """Return a forest whose nodes are in any order; deep, broad or in between."""
    name, depth = rng.permutation(n), rng.integers(1, n + 1)
    parents = np.full(n, -1)
    for v in range(1, n):
        if rng.random() < connected:
            parents[name[v]] = name[rng.integers(max(0, v - depth), v)]
    return parents


class Case(Enumerated):
    """One forest."""

    rounding, rounding_of_marginals = 2e-14, 1e-13

    def __init__(self, parents, k, transitions=True, root=True, edges=False):
        self.parents, self.n, self.k = np.asarray(parents), len(parents), k
        self.m = int((self.parents >= 0).sum())
        x = (np.zeros((self.n, 1)), self.parents)
        X = [(*x, np.zeros((self.m, 1)))] if edges else [x]
        structure = TreeStructure(transitions=transitions, root=root)
        self.bind(*structure.make_space(X, [np.zeros(self.n, int)], classes=range(k)))
        self.states = (k,) * self.n
        self.size = self.space.layout.theta_size(self.n, self.m)

    def views(self, theta):
        return self.space.layout.theta_views(theta, self.n, self.m)

    def enumerate(self):
        self.labels = self.space.enumerate_labels(self.examples, 0)
        self.matrix = np.array([self.indicator(label) for label in self.labels])
        return self

    def indicator(self, label):
        row = np.zeros(self.size)
        views = self.views(row)
        edge = 0
        for v, (p, s) in enumerate(zip(self.parents, label)):
            views["node"][v, s] = 1
            if p < 0:
                if "root" in views:
                    views["root"][s] += 1
                continue
            if "transition" in views:
                views["transition"][label[p], s] += 1
            if "edge" in views:
                views["edge"][edge, label[p], s] = 1
            edge += 1
        return row

    def check_all(self, theta, rng):
        self.check(theta)
        cost = np.zeros(self.size)
        self.views(cost)["node"][...] = rng.integers(0, 3, (self.n, self.k))
        largest = int((self.matrix @ cost).max())
        for most in (largest + 1, largest // 2):
            self.check_counts(theta, cost, most)


@pytest.mark.parametrize("variant", VARIANTS)
def test_against_enumeration(variant):
    rng = np.random.default_rng(VARIANTS.index(variant))
    for n, k in SIZES:
        case = Case(random_parents(n, rng), k, *variant).enumerate()
        for kind in KINDS:
            case.check_all(case.theta(kind, rng), rng)


@pytest.mark.slow
@random_cases(300, n=range(1, 7), k=range(1, 4), kind=KINDS)
def test_any_forest(seed, n, k, kind):
    rng = np.random.default_rng(seed)
    variant = VARIANTS[rng.integers(len(VARIANTS))]
    case = Case(random_parents(n, rng, rng.random()), k, *variant).enumerate()
    case.check_all(case.theta(kind, rng), rng)


@pytest.mark.parametrize("variant", VARIANTS)
def test_parts_against_enumeration(variant):
    rng = np.random.default_rng(0)
    for n, k in SIZES:
        Case(random_parents(n, rng), k, *variant).enumerate().check_parts(rng)


def test_ties_go_to_the_smallest_state_parents_first():
    rng = np.random.default_rng(1)
    for n, k in SIZES:
        parents = np.array([-1] + [rng.integers(v) for v in range(1, n)])
        case = Case(parents, k).enumerate()
        for kind in ("ties", "equal"):
            theta = case.theta(kind, rng)
            scores = case.scores(theta)
            first = case.labels[int(np.argmax(scores == scores.max()))]
            np.testing.assert_array_equal(calls.argmax(case.oracle, 0, theta)[0], first)


# -- other programs ------------------------------------------------------------------------------


def paths(n_chains, rng, edges=False):
    lengths = rng.integers(1, 7, n_chains)
    X = [rng.normal(size=(length, 3)) for length in lengths]
    E = [rng.normal(size=(length - 1, 2)) for length in lengths]
    Y = [rng.integers(0, 3, length) for length in lengths]
    chains = list(zip(X, E)) if edges else X
    trees = [(x, np.arange(len(x)) - 1, *([e] if edges else [])) for x, e in zip(X, E)]
    return chains, trees, Y


@pytest.mark.parametrize("edges", [False, True])
def test_paths_are_chains(edges):
    rng = np.random.default_rng(int(edges))
    chains, trees, Y = paths(6, rng, edges)
    a, first = chain.ChainStructure(start_end=False).make_space(chains, Y)
    b, second = TreeStructure(root=False).make_space(trees, Y)
    for i in range(first.n):
        n = len(Y[i])
        size = a.layout.theta_size(n, n - 1)
        assert size == b.layout.theta_size(n, n - 1)
        theta = np.zeros(size)
        for view in a.layout.theta_views(theta, n, n - 1).values():
            view[...] = rng.normal(size=view.shape)
        mine, theirs = (
            [
                bind(make_layout(space, examples))
                for bind in (space.make_power("kbest"), space.make_projection("entropy"))
            ]
            for space, examples in ((b, second), (a, first))
        )
        for answer, expected in zip(
            calls.kbest(mine[0], i, theta, 9), calls.kbest(theirs[0], i, theta, 9)
        ):
            np.testing.assert_allclose(answer, expected, rtol=1e-12)
        for answer, expected in zip(
            calls.project(mine[1], i, theta), calls.project(theirs[1], i, theta)
        ):
            np.testing.assert_allclose(answer, expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("surrogate", ["margin", "crf"])
def test_training_on_paths_is_training_on_chains(surrogate):
    chains, trees, Y = paths(10, np.random.default_rng(2))
    options = {"surrogate": surrogate, "alpha": 0.1, "tol": 1e-7, "max_iter": 3000}
    a = StructuredSVM(chain.ChainStructure(start_end=False), **options).fit(chains, Y)
    b = StructuredSVM(TreeStructure(root=False), **options).fit(trees, Y)
    for name in a.coef_:
        np.testing.assert_allclose(b.coef_[name], a.coef_[name], atol=2e-3)
    assert a.history_[-1]["primal"] == pytest.approx(b.history_[-1]["primal"], rel=1e-5)
    # At the optimum, labels of training examples may tie; those of other examples do not.
    chains, trees, _ = paths(40, np.random.default_rng(3))
    same(b.predict(trees), a.predict(chains))


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_polytope_has_the_labelings_as_vertices(variant):
    rng = np.random.default_rng(VARIANTS.index(variant))
    for n, k in [(1, 3), (4, 2), (6, 3), (9, 2)]:
        case = Case(random_parents(n, rng), k, *variant)
        polytopes = case.space.make_polytopes()(make_layout(case.space, case.examples))
        assert polytopes.exact and "forest" in polytopes.note
        polytope = polytopes.build(0)
        for kind in ("normal", "ties", "huge"):
            theta = case.theta(kind, rng)
            label, value, _ = calls.argmax(case.oracle, 0, theta)
            x, best = best_vertex(polytope, theta)
            assert best == pytest.approx(value, rel=1e-7, abs=1e-7)
            marginals = polytope.marginals(x, case.size)
            assert theta @ marginals == pytest.approx(value, rel=1e-7, abs=1e-7)
            if kind == "normal":
                np.testing.assert_allclose(x, np.round(x), atol=1e-7)
                np.testing.assert_array_equal(polytope.decode(x), label)


def test_every_check_of_the_kit():
    check_structure("tree", n_cases=2)


@pytest.mark.slow
@pytest.mark.parametrize("transitions", [True, False])
def test_every_check_of_the_kit_with_edge_features(transitions):
    check_structure(EdgeTree(transitions=transitions), n_cases=2, solvers=("bcfw",))


# -- size ----------------------------------------------------------------------------------------

SHAPES = {
    "path": lambda n: np.arange(n) - 1,
    "path, deepest first": lambda n: np.append(np.arange(1, n), -1),
    "star": lambda n: np.where(np.arange(n) == n // 2, -1, n // 2),
    "comb": lambda n: np.where(np.arange(n) % 2, np.arange(n) - 1, np.arange(n) - 2).clip(-1),
    "single nodes": lambda n: np.full(n, -1),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_deep_and_broad_trees(shape):
    n, rng = 200_000, np.random.default_rng(0)
    case = Case(SHAPES[shape](n), 3)
    theta = np.zeros(case.size)
    for view in case.views(theta).values():
        view[...] = rng.normal(size=view.shape)
    label, value, _ = calls.argmax(case.oracle, 0, theta)
    mu = np.zeros(case.size)
    np.add.at(mu, *calls.encode(case.parts, 0, label))
    assert theta @ mu == pytest.approx(value, rel=1e-10)
    best = calls.max_marginals(case.max_marginals, 0, theta, 3)
    np.testing.assert_allclose(best.max(axis=1), value, rtol=1e-10)
    np.testing.assert_array_equal(best.argmax(axis=1), label)
    _, values = calls.kbest(case.kbest, 0, theta, 3)
    np.testing.assert_allclose(values[1], np.partition(best, 1, axis=1)[:, 1].max(), rtol=1e-12)
    marginals, log_partition, _ = calls.project(case.projection, 0, theta)
    nodes = case.views(marginals)["node"]
    np.testing.assert_allclose(nodes.sum(axis=1), 1, rtol=1e-12)
    assert case.views(marginals)["transition"].sum() == pytest.approx(case.m)
    assert log_partition > value
    # The derivative of the log-partition.
    v, s, step = n // 3, 1, 1e-3
    place = case.space.layout.shared_size + v * 4 + s
    sides = []
    for sign in (1, -1):
        moved = theta.copy()
        moved[place] += sign * step
        sides.append(case.projection.log_partition(0, moved))
    assert (sides[0] - sides[1]) / (2 * step) == pytest.approx(nodes[v, s], abs=1e-4)


def test_children_that_pull_both_ways_do_not_vanish():
    # Two thousand children for state 0, then as many for state 1: products would underflow.
    n = 4001
    case = Case(np.where(np.arange(n) == 0, -1, 0), 2, root=False)
    theta = np.zeros(case.size)
    views = case.views(theta)
    views["transition"][...] = [[1.0, -1.0], [-1.0, 1.0]]
    views["node"][1:2001, 0] = views["node"][2001:, 1] = 5.0
    views["node"][0] = 0.25, 0.0
    marginals, *_ = calls.project(case.projection, 0, theta)
    odds = case.views(marginals)["node"][0]
    assert np.log(odds[0] / odds[1]) == pytest.approx(0.25, abs=1e-8)


# -- what users give -----------------------------------------------------------------------------


def test_all_forms_of_a_tree_are_the_same():
    rng = np.random.default_rng(0)
    for n in (1, 2, 7):
        parents = random_parents(n, rng)
        nodes = rng.normal(size=(n, 2))
        child = np.flatnonzero(parents >= 0)
        rows = rng.normal(size=(len(child), 2))
        shuffled = rng.permutation(len(child))
        edges = np.column_stack([parents[child], child])[shuffled]
        digraph = nx.DiGraph()
        for v in range(n):
            digraph.add_node(f"n{v}", features=nodes[v])
        for k, (p, v) in zip(shuffled, edges):
            digraph.add_edge(f"n{p}", f"n{v}", features=rows[k])
        forms = [(nodes, parents, rows), (nodes, edges, rows[shuffled]), digraph]
        space, _ = TreeStructure().make_space(forms, [np.zeros(n, int)] * 3)
        packed = space.pack(forms)
        assert (packed.topology["parents"].reshape(3, n) == parents).all()
        np.testing.assert_array_equal(packed.nodes.reshape(3, n, 2), [nodes] * 3)
        if len(child):
            np.testing.assert_array_equal(packed.edges.reshape(3, -1, 2), [rows] * 3)
        graph = digraph.to_undirected()
        expected = root_tree(edges, n)
        assert (space.pack([graph]).topology["parents"] == expected).all()


def test_rooting_and_ordering_agree_with_networkx():
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(1, 12))
        given = random_parents(n, rng)
        child = np.flatnonzero(given >= 0)
        edges = np.column_stack([given[child], child])
        parents = root_tree(edges, n)
        graph = nx.Graph()
        graph.add_nodes_from(range(n))
        graph.add_edges_from(edges.tolist())
        for piece in nx.connected_components(graph):
            root = min(piece)
            assert parents[root] == -1
            for u, v in nx.bfs_edges(graph, root):
                assert parents[v] == u
        order = order_nodes(parents, np.array([0, n]))
        order = np.arange(n) if order is None else order
        place = np.argsort(order)
        assert sorted(order) == list(range(n))
        assert all(place[p] < place[v] for v, p in enumerate(parents) if p >= 0)


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("order", [[1, 0, 2], [0, 0, 2], [0, 1, 3]], ids=str)
def test_an_order_that_is_none_is_refused_in_every_tree(which, order):
    """Nodes in an order with children first, a node twice, a node of no tree."""
    X = [(np.zeros((3, 1)), [-1, 0, 1])] * 3
    space, _ = TreeStructure().make_space(X, [[0, 1, 0]] * 3)
    examples = space.pack(X)
    orders = [[0, 1, 2]] * 3
    examples.topology["order"] = np.concatenate(orders).astype(np.int32)
    bind = ask_oracle(space)
    bind(make_layout(space, examples))
    orders[which] = order
    examples.topology["order"] = np.concatenate(orders).astype(np.int32)
    refused("order: expected every node of a tree once", bind, make_layout(space, examples))


NODES = np.zeros((3, 1))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ((NODES, [-1, 0]), "example 1, tree: found 2 parents for 3 nodes"),
        ((NODES, [-1, 0, 3]), "example 1, tree: node 2 has the parent 3, expected -1"),
        ((NODES, [-1, -2, 0]), "example 1, tree: node 1 has the parent -2"),
        ((NODES, [-1, 2, 1]), "example 1: node 2 is its own ancestor: the nodes 2, 1 form"),
        ((NODES, [1, 2, 0]), "example 1: node 0 is its own ancestor: the nodes 0, 1, 2 form"),
        ((NODES, [0, 0, 0]), "example 1: node 0 is its own ancestor"),
        ((NODES, [0.5, 0, 0]), "expected the parent of every node"),
        ((NODES, [[0, 1], [2, 1]]), "edges: node 1 has two parents, 0 .edge 0. and 2 .edge 1."),
        ((NODES, [[0, 1], [1, 3]]), "edge 1 is .1, 3., expected nodes 0 to 2"),
        ((NODES, [[0, 1], [1, 2], [2, 0]]), "node 0 is its own ancestor"),
        ((NODES, [-1, 0, 0], np.zeros((2, 1))), "found edge features, but the model was trained"),
        (NODES, "found ndarray, expected .node_features, tree."),
    ],
)
def test_bad_trees_are_refused(x, message):
    fine = (NODES, [-1, 0, 0])
    space, _ = TreeStructure().make_space([fine], [[0, 1, 0]])
    refused(message, space.pack, [fine, x])


def test_operators_refuse_what_is_no_forest():
    case = Case([-1, 0, 1], 2, edges=True)
    layout, good = case.space.layout, case.examples
    for topology, message in [
        ({"parents": [-1, 0]}, r"parents: found int32 of shape \(2,\), expected int32 \(3,\)"),
        ({"parents": [-1, 0, 3]}, "example 0: parents: found 3, which is no node of its tree"),
        ({"parents": [-1, 0, -2]}, "example 0: parents: found -2"),
        ({"parents": [-1, 2, 0]}, "example 0: order: expected every node of a tree once"),
        ({"parents": [-1, 0, 1], "order": [0, 2, 1]}, "example 0: order: expected"),
        ({"parents": [-1, 0, 1], "order": [0, 1, 1]}, "example 0: order: expected"),
        ({"parents": [-1, 0, 1], "order": [0, 1, 3]}, "example 0: order: expected"),
        ({"parents": [-1, 0, -1]}, "example 0: 2 rows of edges, expected 1"),
    ]:
        topology = {name: np.array(value, np.int32) for name, value in topology.items()}
        packed = structsolve.Examples(
            good.offsets, edge_offsets=good.edge_offsets, topology=topology
        )
        refused(message, case.space.make_oracle(), PartLayout(layout, packed))
    empty = structsolve.Examples(np.array([0, 0]), topology={"parents": np.zeros(0, np.int32)})
    with pytest.raises(ValueError, match="example 0: a tree of 0 nodes, expected at least 1"):
        case.space.make_oracle()(PartLayout(layout, empty))


def test_bad_edge_features_and_graphs_are_refused():
    rows = np.zeros((2, 2))
    space, _ = TreeStructure().make_space([(NODES, [-1, 0, 0], rows)], [[0, 1, 0]])
    refused("example 0: no edge features for 2 edges", space.pack, [(NODES, [-1, 0, 0])])
    with pytest.raises(ValueError, match="example 0: 3 rows of edge features for 2 edges"):
        space.pack([(NODES, [-1, 0, 0], np.zeros((3, 2)))])
    assert space.pack([(NODES, [-1, -1, -1], [])]).edges.shape == (0, 2)
    cycle = nx.cycle_graph(4)
    nx.set_node_attributes(cycle, [0.0], "features")
    with pytest.raises(ValueError, match="example 0, edges: the edges close a cycle of 4 nodes"):
        TreeStructure().make_space([cycle], [[0, 1, 0, 1]])
    refused("two of .0, 2. are in one tree", root_tree, [[0, 1], [1, 2]], 3, roots=[0, 2])
    with pytest.raises(ValueError, match="X is empty"):
        TreeStructure().make_space([], [])


def test_a_model_predicts_from_its_file_with_constraints(tmp_path):
    rng = np.random.default_rng(0)
    X, Y = TreeStructure().sample(rng, n=30, size=8)
    Y = [np.array(["a", "b", "c"])[y] for y in Y]
    model = StructuredSVM("tree", alpha=0.1, tol=1e-3).fit(X, Y)
    again = reloaded(model, tmp_path)
    same(again.predict(X), model.predict(X))
    predicted = model.predict(X, forbidden=[("a", "a"), ("b", "b"), ("c", "c")])
    for (_, parents), y in zip(X, predicted):
        assert all(y[p] != y[v] for v, p in enumerate(parents) if p >= 0)


def test_edge_features_in_any_sparse_format():
    from scipy import sparse

    rows = np.array([[1.0, 0.0], [0.0, 2.0]])
    tables = [rows, sparse.coo_matrix(rows), sparse.csr_matrix(rows)]
    fits = [
        StructuredSVM("tree", alpha=0.1).fit([(np.ones((3, 1)), [[1, 2], [0, 1]], t)], [[0, 1, 0]])
        for t in tables
    ]
    for model in fits[1:]:
        assert all(model.coef_[k] == pytest.approx(fits[0].coef_[k]) for k in model.coef_)
