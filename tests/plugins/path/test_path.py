"""Paths against enumeration on thousands of small graphs, and against other programs."""

import networkx as nx
import numpy as np
import pytest
from checks import refused, reloaded
from enumeration import NONE, Listed
from scipy import sparse
from scipy.sparse import csgraph

from structsolve import StructuredSVM, batch, get_structure
from structsolve.lp import ask_oracle
from structsolve.plugins.path import PathStructure, grid_steps, make_terrain_maps
from structsolve.plugins.path.graphs import stack_paths
from structsolve.plugins.path.labels import Graph
from structsolve.plugins.path.space import all_paths
from structsolve.solvers import BCFW, CuttingPlane, WeightBounds
from structsolve.structure import calls, projection_calls
from structsolve.structure.ask import make_layout
from structsolve.testing import check_structure

KINDS = ["normal", "ties", "equal", "wide", "huge", "forbidden", "heavy"]


def random_dag(rng, n):
    """Return a dict: edges in any order, nodes too, some of them beside all paths."""
    place, chance = rng.permutation(n), rng.uniform(0.2, 1)
    pairs = [(u, v) for u in range(n) for v in range(u + 1, n) if rng.random() < chance]
    pairs += [(0, n - 1)] * (n > 1)
    pairs += [pairs[rng.integers(len(pairs))] for _ in range(int(rng.integers(3)) if pairs else 0)]
    edges = place[np.array(pairs, int).reshape(-1, 2)]
    ends = {"source": int(place[0]), "sink": int(place[-1])}
    return {"edges": edges[rng.permutation(len(edges))], "node_features": np.zeros((n, 1)), **ends}


def random_graph(rng, n):
    """Return a dict of edges that may form cycles."""
    pairs = [(u, v) for u in range(n) for v in range(n) if u != v and rng.random() < 0.5]
    pairs += [(0, n - 1)] * (n > 1)
    return {"edges": np.array(pairs, int).reshape(-1, 2), "node_features": np.zeros((n, 1))}


class Case(Listed):
    """One graph and its paths."""

    states, rounding, rounding_of_marginals = (), 1e-12, 1e-13

    def __init__(self, x, scored):
        edges = {"edge_features": np.zeros((len(x["edges"]), 1))} if scored else {}
        self.examples = stack_paths([{**x, **edges}], PathStructure())
        self.labels = all_paths(self.examples, 0)
        self.space, _ = PathStructure().make_space([{**x, **edges}], [self.nodes(self.labels[0])])
        layout = make_layout(self.space, self.examples)
        self.oracle, self.parts = (
            make()(layout) for make in (self.space.make_oracle, self.space.make_parts)
        )
        self.kbest = self.space.make_power("kbest")(layout)
        self.layout, self.n, self.m = layout, self.examples.offsets[-1], len(x["edges"])
        self.scored = scored
        self.matrix = np.array([self.indicator(label) for label in self.labels])

    def nodes(self, label):
        return Graph(self.examples, 0).nodes(label)

    def indicator(self, label):
        row = np.zeros(self.layout.sizes(0)[0])
        row[self.nodes(label)] = 1
        if self.scored:
            row[self.n + label[label > 0] - 1] = 1
        return row

    def theta(self, kind, rng):
        size = self.matrix.shape[1]
        if kind == "ties":
            return rng.integers(-1, 2, size).astype(float)
        if kind == "equal":
            return np.ones(size)
        if kind == "heavy":
            return -rng.integers(0, 3, size).astype(float)
        if kind == "huge":
            return rng.choice([-1e4, 1e4, 0.0, 1e4 - 0.5], size)
        theta = rng.normal(size=size) * (120 if kind == "wide" else 1)
        if kind == "forbidden":
            theta[rng.random(size) < 0.2] = NONE
        return theta

    def check_best(self, theta):
        scores = self.scores(theta)
        if scores.max() == NONE:
            for call in (calls.argmax, lambda *given: calls.kbest(*given, 2)):
                operator = self.oracle if call is calls.argmax else self.kbest
                refused("example 0: scores of -inf block every path", call, operator, 0, theta)
            return
        label, value = self.check_argmax(theta)
        for k in (1, 2, 5, len(scores) + 2):
            labels, values = self.check_kbest(theta, k)
            assert values[0] == value and (labels[0] == label).all()

    def check_sums(self, theta, projection, rng):
        scores = self.scores(theta)
        if scores.max() == NONE:
            refused("example 0: scores of -inf block", calls.project, projection, 0, theta)
            return
        self.projection = projection
        weights, _ = self.check_distribution(theta)
        mean = weights @ self.matrix
        direction = rng.normal(size=len(theta))
        gain = weights * (self.matrix @ direction - mean @ direction) @ self.matrix
        moved = projection_calls.derivative(projection, 0, theta, direction)
        np.testing.assert_allclose(moved, gain, rtol=1e-9, atol=1e-12 * self.scale(theta))


@pytest.mark.parametrize("scored", [False, True])
def test_graphs_without_cycles_against_enumeration(scored):
    rng = np.random.default_rng(int(scored))
    for n in [1, 2, 3, 4, 5, 6, 7] * 25:
        case = Case(random_dag(rng, n), scored)
        projection = case.space.make_projection("entropy")(case.layout)
        for kind in KINDS:
            theta = case.theta(kind, rng)
            case.check_best(theta)
            case.check_sums(theta, projection, rng)


@pytest.mark.parametrize("scored", [False, True])
def test_graphs_with_cycles_against_enumeration(scored):
    rng = np.random.default_rng(int(scored))
    gains = 0
    for n in [1, 2, 3, 4, 5] * 30:
        case = Case(random_graph(rng, n), scored)
        # No cycle gains: scores of at most 0, ties of them; or these, moved by potentials.
        for kind in ("heavy", "normal", "wide", "moved"):
            theta = -np.abs(case.theta("normal" if kind == "moved" else kind, rng))
            if kind == "moved" and scored:
                height = rng.normal(size=n)
                graph = Graph(case.examples, 0)
                theta[n:] += height[graph.tails] - height[graph.heads]
                gains += (theta > 0).any()
            case.check_best(theta)
    assert not scored or gains > 50


def test_cycles_of_positive_score():
    rng = np.random.default_rng(0)
    refusals = 0
    for n in [3, 4, 5, 6] * 40:
        x = random_graph(rng, n)
        case = Case(x, True)
        theta = case.theta("ties", rng)
        inner = nx.DiGraph()
        for e, (u, v) in enumerate(x["edges"].tolist()):
            if v != 0 and u != n - 1:
                inner.add_edge(u, v, weight=-theta[v] - theta[n + e])
        live = nx.descendants(inner, 0) & nx.ancestors(inner, n - 1) | {0, n - 1}
        if not nx.negative_edge_cycle(nx.DiGraph(inner.subgraph(live))):
            case.check_best(theta)
            continue
        refusals += 1
        message = "example 0: a cycle of [2-6] nodes has a positive score"
        refused(message, calls.kbest, case.kbest, 0, theta, 2)
        label, value, bound = calls.argmax(case.oracle, 0, theta)
        scores = case.scores(theta)
        assert value == scores[case.rows(label)] and value <= scores.max() <= bound
        # Found without positive scores.
        steps = np.minimum(theta[x["edges"][:, 1]] + theta[n:], 0)
        clamped = [steps[one[one > 0] - 1].sum() for one in case.labels]
        assert steps[label[label > 0] - 1].sum() == max(clamped)
        most = np.zeros(n)
        kept = np.isin(x["edges"], list(live)).all(axis=1)
        kept &= (x["edges"][:, 1] != 0) & (x["edges"][:, 0] != n - 1)
        np.maximum.at(most, x["edges"][kept, 1], (theta[x["edges"][:, 1]] + theta[n:])[kept])
        assert bound == theta[0] + max(clamped) + most.sum()
    assert 20 < refusals < 140


def test_the_named_cycle_has_a_positive_score():
    graph = {"edges": [[0, 1], [1, 2], [2, 3], [3, 1], [2, 4]], "node_features": np.zeros((5, 1))}
    case = Case(graph, False)
    assert not case.oracle.exact
    refused(
        r"cycle of 3 nodes .*\[(1, 2, 3|2, 3, 1|3, 1, 2)\]",
        calls.kbest, case.kbest, 0, np.array([0, 1.0, 1.0, -1.5, 0]), 2,
    )  # fmt: skip
    case.check_best(np.array([0, 1.0, 1.0, -2.0, 0]))  # the cycle is worth 0


BEHIND_HUGE = [  # the cycle is within rounding of the largest score, until its step is left out
    (7, [(2, 0), (3, 6), (0, 4), (5, 4), (1, 4), (0, 6), (0, 2), (2, 6), (4, 1), (0, 1), (1, 6),
         (4, 3)], [-0.2, -0.2, 0.3, -0.2, 0.2, -0.2, 1e13, 0.3, 0.2, 0.3, 0.3, -1.0]),
    (7, [(0, 5), (0, 1), (1, 2), (2, 1), (1, 3), (2, 3), (3, 6), (5, 6)],
        [1e13, 0.0, 0.3, 0.2, 0.0, 0.0, 0.0, 0.0]),
]  # fmt: skip


@pytest.mark.parametrize(("n", "edges", "scores"), BEHIND_HUGE)
def test_a_cycle_that_shows_only_after_the_best_path(n, edges, scores):
    space = batch.score_space(PathStructure(), edge=True)
    examples = space.pack_sizes([n], edges=[edges])
    given = batch.Scores(np.zeros(n), edge=np.array(scores), examples=examples)
    labels, _ = batch.k_best(space, given, 1)
    assert len(labels[0]) == 1
    refused("example 0: a cycle of 2 nodes", batch.k_best, space, given, 5)


def test_ties_go_to_the_first_edges():
    edges = [[0, 2], [0, 1], [2, 3], [1, 3], [1, 3]]
    case = Case({"edges": edges, "node_features": np.zeros((4, 1))}, False)
    labels, _ = calls.kbest(case.kbest, 0, np.zeros(4), 3)
    assert labels.tolist() == [[1, 0, 3, 0], [2, 4, 0, 0], [2, 5, 0, 0]]


def test_parts():
    rng = np.random.default_rng(0)
    for n in [1, 2, 4, 6] * 10:
        case = Case(random_dag(rng, n), bool(rng.integers(2)))
        size = case.matrix.shape[1]
        for one, other in rng.integers(len(case.labels), size=(5, 2)):
            index, value = calls.encode(case.parts, 0, case.labels[one])
            np.testing.assert_array_equal(np.bincount(index, value, size), case.matrix[one])
            index, value = calls.difference(case.parts, 0, case.labels[one], case.labels[other])
            apart = case.matrix[one] - case.matrix[other]
            np.testing.assert_array_equal(np.bincount(index, value, size), apart)
            assert len(index) == np.count_nonzero(apart)


# -- the kit, and the structure's other forms of X -----------------------------------------------


class Grids(PathStructure):
    """Samples are small monotone grids with costs."""

    def sample(self, random_state, n=4, size=3):
        rng = np.random.default_rng(random_state)
        X = []
        for _ in range(n):
            shape = rng.integers(1, 4, 2)
            cells = rng.integers(-2, 3, (*shape, 2)).astype(float)
            X.append({"cells": cells, "costs": rng.integers(1, 4, shape).astype(float)})
        space, examples = self.make_space(X, self.cheapest(X))
        return X, space.unpack(examples.labels, examples)

    def cheapest(self, X):
        examples = stack_paths(X, self)
        paths = []
        for i, x in enumerate(X):
            graph = Graph(examples, i)
            each = [graph.nodes(label) for label in all_paths(examples, i)]
            best = int(np.argmin([x["costs"].ravel()[path].sum() for path in each]))
            paths.append([graph.name(v) for v in each[best]])
        return paths


def test_conformance():
    check_structure(PathStructure(), n_cases=2)
    check_structure("path", "edge-hamming", n_cases=1, only=["loss", "augmented"])


@pytest.mark.parametrize("neighbours", [4, 8])
def test_grids_conform(neighbours):
    check_structure(Grids(neighbours, True), "regret", n_cases=2)
    check_structure(Grids(neighbours, True), "missed", n_cases=1, only=["loss", "augmented"])


def test_losses_of_two_paths():
    space, examples = get_structure("path").make_space(
        [{"cells": np.ones((2, 3)), "costs": np.arange(6)}], [[(0, 0), (0, 1), (0, 2), (1, 2)]]
    )
    layout = make_layout(space, examples)
    other = space.encode([[(0, 0), (1, 1), (1, 2)]], examples)
    for name, expected in (("hamming", 3), ("missed", 2), ("regret", 1), ("zero-one", 1)):
        loss = space.make_loss(name)(layout)
        assert calls.loss_value(loss, 0, examples.labels, other) == expected
    assert space.make_loss("edge-hamming") is None  # edges have no scores


def test_checkpoints_know_the_costs(tmp_path):
    def fit(cost):
        X = [{"cells": np.arange(4.0).reshape(2, 2), "costs": [0, 1, cost, 0]}]
        model = StructuredSVM(PathStructure(4, True), loss="regret", checkpoint=tmp_path / "c")
        model.fit(X, [[(0, 0), (0, 1), (1, 1)]])

    fit(2)
    refused("it belongs to other data", fit, 9)


def test_regret_needs_the_cheapest_path():
    x = {"cells": np.zeros((2, 2)), "costs": [[1, 5], [2, 1]]}
    model = StructuredSVM("path", loss="regret")
    refused("example 0: the true path costs 4 and another one 2",
            model.fit, [x], [[(0, 0), (1, 0), (1, 1)]])  # fmt: skip
    refused("costs: found 3 numbers", model.fit, [{**x, "costs": [1, 2, 3]}], [[(0, 0), (1, 1)]])


def test_labels_of_any_form():
    structure, x = get_structure("path"), np.arange(6.0).reshape(2, 3)
    path = [(0, 0), (1, 1), (0, 2), (1, 2)]
    space, examples = structure.make_space([x], [path])
    picture = np.array([[1, 0, 1], [0, 1, 1]])
    used = np.zeros(len(examples.topology["tails"]), bool)
    used[examples.labels[examples.labels > 0] - 1] = True
    for form in (np.array(path), used):
        np.testing.assert_array_equal(space.pack([x], [form]).labels, examples.labels)
    straight = np.array([[1, 0, 0], [0, 1, 1]])
    labels = space.pack([x], straight[None]).labels
    assert space.unpack(labels, examples) == [[(0, 0), (1, 1), (1, 2)]]
    assert space.unpack(examples.labels, examples) == [path]
    for wrong, message in (
        (picture, r"from cell \(1, 1\) the picture has 2 ways on"),
        (np.array([[1, 0, 1], [1, 1, 1]]), r"from cell \(0, 0\) the picture has 2 ways"),
        (np.array([[1, 1, 1], [0, 0, 0]]), r"from cell \(0, 2\) the picture has 0 ways"),
        (np.ones(len(used), bool), "22 edges, which are no path"),
        (path[:-1], r"expected a path from \(0, 0\) to \(1, 2\)"),
        ([(0, 0), (0, 2), (1, 2)], r"a step from \(0, 0\) to \(0, 2\), which is no edge"),
        ([(0, 0), (1, 1), (0, 0), (1, 1), (1, 2)], "passes no node twice"),
        ([(0, 0), (5, 1)], "expected nodes of the graph"),
        ([(0, 0, 0), (1, 1, 2)], "expected nodes of the graph"),  # not three cells of two numbers
        (3, "expected nodes of the graph"),
    ):
        refused(f"y, example 0: .*{message}", space.pack, [x], [wrong])
    refused("y: found 2 paths, expected one for each of 1 examples", space.pack, [x], [path] * 2)


@pytest.mark.parametrize("path", [[0, 1.7, 2], [0, "1", 2], [0, np.nan, 2], np.array([0, 1.5, 2]),
                                  [False, True, 2], np.array([False, True, True])])  # fmt: skip
def test_nodes_of_labels_are_integers(path):
    x = {"edges": [[0, 1], [1, 2]], "node_features": np.zeros((3, 1))}
    space, _ = get_structure("path").make_space([x, x], [[0, 1, 2], np.array([0.0, 1.0, 2.0])])
    refused("y, example 1: found .*, expected nodes of the graph",
            space.pack, [x, x], [[0, 1, 2], path])  # fmt: skip


def test_networkx_graphs():
    graph = nx.DiGraph(source="home", sink="work")
    for u, v, minutes in (("home", "park", 5), ("park", "work", 9), ("home", "work", 12)):
        graph.add_edge(u, v, features=[minutes])
    model = StructuredSVM("path", alpha=0.01).fit([graph], [["home", "work"]])
    assert model.predict([graph]) == [["home", "work"]]
    slow = graph.copy()
    slow["home"]["work"]["features"] = [60]
    assert model.predict([slow]) == [["home", "park", "work"]]
    both = graph.to_undirected()
    assert model.predict([both]) == [["home", "work"]]
    for sink in ("moon", ["work"]):
        both.graph["sink"] = sink
        refused("example 0: sink .* is no node", model.predict, [both])
    for costs in ({"home": 1.0}, [1.0, 2.0, 3.0]):
        graph.graph["costs"] = costs
        refused("example 0, costs: found .*, expected a dict", model.predict, [graph])


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ({"edges": [[0, 1], [2, 1]], "sink": 2}, "no way leads from 0 to 2"),
        ({"edges": [[0, 1]], "sink": 5}, "sink: found 5, expected a node of the graph"),
        ({"edges": [[0, 1.5]]}, "expected integers of shape"),
        ({"edges": [[0, 10**14]]}, "the nodes up to 100000000000000 would take"),
        ({"edges": [[0, 0]]}, "joins node 0 with itself"),
        ({"edges": [[0, 1]], "cells": np.ones((2, 2))}, "expected an array"),
        ({"edges": [[0, 1]], "edge": 3}, r"found \['edge'\]"),
        ({"cells": np.ones((2, 2)), "source": (2, 0)}, r"source: found \(2, 0\)"),
        ({"cells": np.ones(2)}, r"of shape \(2,\)"),
        ({"edges": [[0, 1]], "edge_features": np.ones((2, 1))}, "2 rows of edge features"),
    ],
)
def test_bad_graphs(x, message):
    fit = StructuredSVM("path").fit
    refused(message, fit, [x], [[0, 1]])
    good = {"edges": [[0, 1]]}
    if "edge_features" in x:
        good["edge_features"] = np.ones((1, 1))
    if "cells" not in x and "edges" in x:
        refused("example 1", fit, [good, x], [[0, 1]] * 2)


def test_sums_need_graphs_without_cycles():
    model = StructuredSVM("path", surrogate="crf")
    X, Y = [np.ones((1, 2)), np.ones((2, 2))], [[(0, 0), (0, 1)], [(0, 0), (1, 1)]]
    message = r"example 1: a sum over paths needs a graph without cycles, and 2 nodes form one"
    refused(message, model.fit, X, Y)
    refused("declares no polytope", StructuredSVM("path", oracle="lp").fit, X, Y)
    assert StructuredSVM("path", surrogate="slack", max_iter=2).fit(X, Y).predict(X) == Y
    assert StructuredSVM(PathStructure(monotone=True), surrogate="crf").fit(X, Y).score(X, Y) == 1


# -- other programs ------------------------------------------------------------------------------


def test_dijkstra_of_scipy_finds_paths_of_the_same_cost():
    rng = np.random.default_rng(0)
    structure = get_structure("path")
    space = structure.score_space()
    examples = space.pack_sizes([(9, 7), (1, 6), (8, 8)])
    oracle = space.make_oracle()(make_layout(space, examples))
    for i, (h, w) in enumerate(examples.topology["shapes"]):
        for _ in range(20):
            costs = rng.exponential(size=h * w)
            tails, heads = grid_steps(h, w)
            graph = sparse.csr_matrix((costs[heads], (tails, heads)), (h * w, h * w))
            expected = costs[0] + csgraph.dijkstra(graph, indices=0)[-1]
            np.testing.assert_allclose(-calls.argmax(oracle, i, -costs)[1], expected, rtol=1e-12)


def test_networkx_lists_the_same_shortest_simple_paths():
    rng = np.random.default_rng(1)
    space = get_structure("path", neighbours=4).score_space()
    examples = space.pack_sizes([(4, 4)])
    kbest = space.make_power("kbest")(make_layout(space, examples))
    for _ in range(5):
        costs = rng.exponential(size=16)
        graph = nx.DiGraph()
        for u, v in zip(*(a.tolist() for a in grid_steps(4, 4, 4))):
            graph.add_edge(u, v, weight=costs[v])
        labels, values = calls.kbest(kbest, 0, -costs, 40)
        paths = nx.shortest_simple_paths(graph, 0, 15, weight="weight")
        expected = [costs[next(paths)].sum() for _ in range(40)]
        np.testing.assert_allclose(-values, expected, rtol=1e-12)
        own = [costs[Graph(examples, 0).nodes(one)].sum() for one in labels]
        np.testing.assert_allclose(own, expected, rtol=1e-12)


@pytest.mark.parametrize("scored", [False, True])
def test_linear_programs_find_the_best_paths(scored):
    rng = np.random.default_rng(2)
    for n in (1, 2, 5, 8):
        case = Case(random_dag(rng, n), scored)
        oracle = ask_oracle(case.space, "lp")(case.layout)
        for kind in ("normal", "ties"):
            theta = case.theta(kind, rng)
            value = calls.argmax(case.oracle, 0, theta)[1]
            np.testing.assert_allclose(calls.argmax(oracle, 0, theta)[1], value, atol=1e-8)
        source = Graph(case.examples, 0).source
        theta[source] = -np.inf
        message = f"example 0: .*forbids part {source}, which every label"
        refused(message, calls.argmax, oracle, 0, theta)


# -- terrain -------------------------------------------------------------------------------------


def test_costs_of_terrain_are_learned(tmp_path):
    X, Y, costs = make_terrain_maps(60, (7, 8), pixels=2, noise=0.02, monotone=True)
    model = StructuredSVM(PathStructure(monotone=True), alpha=1e-3, max_iter=200, tol=0.01)
    model.fit(X[:40], Y[:40])

    def excess(paths):
        true, own = (
            sum(c[tuple(np.transpose(y))].sum() for c, y in zip(costs[40:], each))
            for each in (Y[40:], paths)
        )
        return own / true - 1

    straight = [[(min(j, 6), j) for j in range(8)]] * 20
    assert excess(model.predict(X[40:])) < 0.1 * excess(straight)
    again = reloaded(model, tmp_path)
    assert again.predict(X[40:]) == model.predict(X[40:])
    best = model.predict_kbest(X[:1], 3)
    assert best[0][0][0] == model.predict(X[:1])[0] if isinstance(best[0][0], tuple) else best


def test_costs_stay_positive_where_cells_have_cycles():
    X, Y, _ = make_terrain_maps(30, (5, 5), pixels=2, noise=0.02)
    solver = CuttingPlane(constraints=[WeightBounds("node", upper=0.0)])
    model = StructuredSVM(
        "path", loss="missed", solver=solver, alpha=1e-3, fit_intercept=False, tol=0.01
    ).fit(X, Y)
    assert model.coef_["node"].max() <= 0 and model.history_[-1]["gap"] < 0.02
    assert model.score(X, Y) > 0.9
    # Else the search has a bound.
    model = StructuredSVM("path", solver=BCFW(), max_iter=3).fit(X, Y)
    assert model.history_[-1]["gap"] > 0 and len(model.predict(X)) == 30


def test_terrain_maps():
    X, Y, costs = make_terrain_maps(2, (6, 5), pixels=3, random_state=3)
    assert X.shape == (2, 6, 5, 27) and X.min() >= 0 and X.max() <= 1
    for y, own in zip(Y, costs):
        assert y[0] == (0, 0) and y[-1] == (5, 4)
        tails, heads = grid_steps(6, 5)
        graph = sparse.csr_matrix((own.ravel()[heads], (tails, heads)), (30, 30))
        total = own[tuple(np.transpose(y))].sum()
        np.testing.assert_allclose(total, own[0, 0] + csgraph.dijkstra(graph, indices=0)[-1])


@pytest.mark.parametrize(
    "x, message",
    [
        ([[1, 2], [3]], r"found object of shape \(\)"),
        ({"edges": None}, "found edges None"),
        ({"edges": [[0, "a"]]}, "found edges"),
        ({"cells": np.zeros((2, 3)), "costs": "abc"}, "costs: found no array of numbers"),
    ],
)
def test_no_numbers_are_refused_with_the_example(x, message):
    cells, path = np.zeros((2, 3)), [(0, 0), (0, 1), (1, 2)]
    model = StructuredSVM(PathStructure())
    refused(f"X, example 1.*{message}", model.fit, [cells, x], [path, path])
