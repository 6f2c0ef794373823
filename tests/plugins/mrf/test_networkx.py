"""Networkx graphs: attributes, labels and answers by node, parallel edges, directions."""

import networkx as nx
import numpy as np
import pytest
from checks import refused

from structsolve import StructuredSVM, WeightedLabels, load
from structsolve.evaluation.metrics import make_token_scorer, token_report, token_score
from structsolve.plugins.mrf import MRFStructure, decode
from structsolve.plugins.tree import TreeStructure

LABELS = np.array(["a", "b", "c"])


def network(rng, kind=nx.MultiGraph, tree=False):
    """A small graph with attributes x (two numbers) and z (one), f at edges, and labels."""
    graph, n = kind(), int(rng.integers(1, 5))
    for v in rng.permutation(n).tolist():
        label = str(rng.choice(LABELS))
        graph.add_node(f"n{v}", x=rng.integers(-2, 3, 2), z=float(rng.integers(-2, 3)), label=label)
    for v in range(1, n):
        for _ in range(1 if tree else int(rng.integers(0, 4))):
            ends = [f"n{v}", f"n{rng.integers(v)}"]
            ends = ends[::-1] if tree else rng.permutation(ends).tolist()
            graph.add_edge(*ends, f=rng.integers(-2, 3, 2).astype(float))
    return graph


def labels(graph):
    return dict(graph.nodes(data="label"))


def best(model, graph, tables, directed):
    """Return the largest score of a labeling, by enumeration with explicit scores."""
    names, number = list(graph.nodes), {v: i for i, v in enumerate(graph.nodes)}
    x = np.array([[*graph.nodes[v]["x"], graph.nodes[v]["z"], 1.0] for v in names])
    unary = x @ np.vstack([model.coef_["node"], model.coef_["intercept"]])
    W = model.coef_["pair"]
    full = W if directed else np.triu(W) + np.swapaxes(np.triu(W, 1), -1, -2)
    scores = {}
    for y in np.ndindex(*[len(model.classes_)] * len(names)):
        score = unary[np.arange(len(names)), y].sum()
        for u, v, data in graph.edges(data=True):
            table = full if tables == "shared" else np.tensordot(data["f"], full, 1)
            score += table[y[number[u]], y[number[v]]]
        scores[y] = score
    return scores, names


@pytest.mark.parametrize("tables", ["shared", "features"])
@pytest.mark.parametrize("kind", [nx.MultiGraph, nx.MultiDiGraph, nx.Graph, nx.DiGraph])
@pytest.mark.parametrize("oracle", ["exact", "auto"])
def test_scores_of_parallel_edges_add_up(tables, kind, oracle):
    rng = np.random.default_rng(len(tables) + len(kind.__name__))
    graphs = [network(rng, kind) for _ in range(40)]
    directed = graphs[0].is_directed()
    structure = MRFStructure(
        tables=tables, directed=directed, oracle=oracle, node_features=["x", "z"], edge_features="f"
    )
    model = StructuredSVM(structure, alpha=0.1, tol=0.1).fit(graphs[:20], graphs[:20])
    by_dict = StructuredSVM(structure, alpha=0.1, tol=0.1)
    by_dict.fit(graphs[:20], [labels(graph) for graph in graphs[:20]])
    assert all(np.array_equal(model.coef_[name], by_dict.coef_[name]) for name in model.coef_)
    for graph, answer in zip(graphs, model.predict(graphs)):
        scores, names = best(model, graph, tables, directed)
        assert list(answer) == names
        chosen = tuple(model.classes_.tolist().index(answer[v]) for v in names)
        assert scores[chosen] >= max(scores.values()) - 1e-9


def test_scores_and_files(tmp_path):
    rng = np.random.default_rng(5)
    graphs = [network(rng) for _ in range(12)]
    structure = MRFStructure(node_features="x")
    model = StructuredSVM(structure, alpha=0.1, tol=0.1).fit(graphs, graphs)
    predicted = model.predict(graphs)
    right = [answer[v] == graph.nodes[v]["label"] for graph, answer in zip(graphs, predicted)
             for v in graph]  # fmt: skip
    assert model.score(graphs, graphs) == pytest.approx(np.mean(right))
    assert model.score(graphs, predicted) == 1
    model.save(tmp_path / "m.structsolve")
    assert load(tmp_path / "m.structsolve").predict(graphs) == predicted
    other = MRFStructure(node_features="x", node_labels="kind")
    for graph in graphs:
        nx.set_node_attributes(graph, labels(graph), "kind")
    again = StructuredSVM(other, alpha=0.1, tol=0.1).fit(graphs, graphs)
    assert np.array_equal(again.coef_["pair"], model.coef_["pair"])


def test_arrays_with_parallel_edges_are_graphs_with_them():
    rng = np.random.default_rng(6)
    graphs = [network(rng) for _ in range(20)]
    arrays, Y = [], []
    for graph in graphs:
        number = {v: i for i, v in enumerate(graph)}
        edges = np.array([(number[u], number[v]) for u, v, _ in graph.edges]).reshape(-1, 2)
        rows = [data for *_, data in graph.edges(data="f")]
        x = [graph.nodes[v]["x"] for v in graph]
        arrays.append((np.array(x), edges, np.reshape(rows, (-1, 2))))
        Y.append([graph.nodes[v]["label"] for v in graph])
    structure = MRFStructure(tables="features", node_features="x", edge_features="f")
    one = StructuredSVM(structure, alpha=0.1, tol=0.1).fit(graphs, graphs)
    other = StructuredSVM(structure, alpha=0.1, tol=0.1).fit(arrays, Y)
    assert np.array_equal(one.coef_["pair"], other.coef_["pair"])
    answers = [list(answer.values()) for answer in one.predict(graphs)]
    assert answers == [answer.tolist() for answer in other.predict(arrays)]


@pytest.mark.parametrize("oracle", ["auto", "exact", "trws", "expansion", "lp", "roof-duality"])
def test_tables_of_parallel_edges_add_up(oracle):
    rng = np.random.default_rng(7)
    for n in [2, 3, 5, 9, 16, 22, 34] * 3:
        K = 2 if oracle == "roof-duality" or n > 9 or rng.random() < 0.5 else 3
        base = [(v, int(rng.integers(max(0, v - 2), v))) for v in range(1, n)]
        base += [tuple(rng.choice(n, 2, replace=False)) for _ in range(n // 3)]
        edges = [e[:: rng.choice([-1, 1])] for e in base for _ in range(rng.integers(1, 4))]
        unary, pair = rng.normal(size=(n, K)), rng.integers(-2, 3, (len(edges), K, K)) * 0.7
        merged = {}
        for (u, v), table in zip(edges, pair):
            key, table = ((u, v), table) if u < v else ((v, u), table.T)
            merged[key] = merged.get(key, 0) + table
        best = decode(unary, list(merged), np.array(list(merged.values())), oracle="exact")
        answer = decode(unary, edges, pair, oracle=oracle)
        score = unary[np.arange(n), answer.label].sum()
        score += sum(t[answer.label[u], answer.label[v]] for (u, v), t in zip(edges, pair))
        assert answer.value == pytest.approx(score)
        assert answer.value <= best.value + 1e-9 <= answer.bound + 1e-6
        if oracle == "exact":
            assert answer.value == pytest.approx(best.value)


def test_the_first_axis_is_the_source():
    rng = np.random.default_rng(8)
    graphs = []
    for _ in range(30):
        graph, source = nx.DiGraph(), int(rng.integers(2))
        for v in range(2):
            graph.add_node(v, features=[0.0], label="source" if v == source else "target")
        graph.add_edge(source, 1 - source)
        graphs.append(graph)
    model = StructuredSVM(MRFStructure(directed=True), alpha=0.01).fit(graphs, graphs)
    assert model.score(graphs, graphs) == 1
    assert np.unravel_index(model.coef_["pair"].argmax(), (2, 2)) == (0, 1)
    # Without a direction nothing distinguishes the ends.
    assert StructuredSVM(MRFStructure(), alpha=0.01).fit(graphs, graphs).score(graphs, graphs) < 1


def test_scores_by_name_of_void_and_weighted_nodes():
    rng = np.random.default_rng(3)
    graphs = [network(rng) for _ in range(20)]
    graphs = [graph for graph in graphs if {*labels(graph).values()} != {"c"}]
    structure = MRFStructure(node_features=["x", "z"], void=["c"])
    model = StructuredSVM(structure, alpha=0.1, tol=0.1).fit(graphs, graphs)
    given, answers = [labels(graph) for graph in graphs], model.predict(graphs)
    counted = [[(y[v], z[v]) for v in z if y[v] != "c"] for y, z in zip(given, answers)]
    flat = [[[*side] for side in zip(*pairs)] for pairs in counted]
    sequences = [[y[v] for v in z] for y, z in zip(given, answers)]
    weighted = [WeightedLabels(y, np.full(len(y), 3.0)) for y in sequences]
    turned = [dict(reversed(one.items())) for one in given]
    for name in ("accuracy", "macro-f1", "sequence-accuracy"):
        expected = token_score(*map(list, zip(*flat, strict=True)), name)
        for y in (given, turned, graphs, sequences, weighted):
            assert model.score(graphs, y, metric=name) == pytest.approx(expected) != 1
    told = "y, example 0: WeightedLabels hold labels by node"
    refused(told, model.score, graphs[:1], [WeightedLabels(given[0], [1] * len(given[0]))])


def test_trees():
    rng = np.random.default_rng(9)
    graphs = [network(rng, nx.DiGraph, tree=True) for _ in range(30)]
    structure = TreeStructure(node_features=["z", "x"], edge_features="f")
    model = StructuredSVM(structure, alpha=0.1, tol=0.1).fit(graphs, graphs)
    by_dict = StructuredSVM(structure, alpha=0.1, tol=0.1)
    by_dict.fit(graphs, [labels(graph) for graph in graphs])
    assert np.array_equal(model.coef_["edge"], by_dict.coef_["edge"])
    assert model.coef_["node"].shape[0] == 3 and model.coef_["edge"].shape[0] == 2
    answers = model.predict(graphs)
    assert [list(answer) for answer in answers] == [list(graph) for graph in graphs]
    given = [labels(graph) for graph in graphs]
    flat = [*map(list, map(dict.values, given))], [*map(list, map(dict.values, answers))]
    for name in ("accuracy", "macro-f1", "sequence-accuracy"):  # orders of nodes do not matter
        turned = [dict(reversed(one.items())) for one in given]
        scores = {model.score(graphs, y, metric=name) for y in (given, turned, graphs)}
        assert scores == {make_token_scorer(name)(model, graphs, given)}
        assert scores == {token_score(*flat, name)} != {1.0}
    refused("example 0: y_true is .*dicts of the labels of the same nodes",
            token_report, [{"u": "a"}], [{"v": "a"}])  # fmt: skip
    parallel = nx.MultiDiGraph([("u", "v"), ("u", "v")])
    nx.set_node_attributes(parallel, 0.0, "features")
    refused("example 0, edges: edge 1 joins nodes", StructuredSVM("tree").fit, [parallel], [[0, 1]])


def broken(change):
    graph = nx.path_graph(3)
    graph.add_node("alone")
    nx.set_node_attributes(graph, 1.0, "x")
    nx.set_node_attributes(graph, "on", "label")
    change(graph)
    return graph


FINE = broken(lambda graph: None)


@pytest.mark.parametrize("change, message", [
    (lambda g: g.nodes[1].pop("x"),
     r"X, example 1: node 1 has no attribute 'x'.* it has \['label'\], and node_features="),
    (lambda g: g.nodes["alone"].clear(),
     r"X, example 1: node 'alone' \(which has no edge\) has no attribute 'x'"),
    (lambda g: g.nodes[2].update(x=[1.0, 2.0]),
     "X, example 1: attribute 'x' of node 2 has 2 numbers, expected 1 as before it"),
    (lambda g: g.nodes[2].update(x="red"), "attribute 'x' of node 2 is 'red', expected a number"),
    (lambda g: g.nodes[2].update(x=[[1.0]]), "attribute 'x' of node 2 is .*a vector of numbers"),
    (lambda g: g.nodes[2].pop("label"), "y, example 1: node 2 has no attribute 'label'"),
])  # fmt: skip
@pytest.mark.parametrize("structure", [MRFStructure, TreeStructure])
def test_what_is_wrong_is_named(structure, change, message):
    StructuredSVM(structure(node_features="x"), max_iter=2).fit([FINE, FINE], [FINE, FINE])
    graphs = [FINE, broken(change)]
    refused(message, StructuredSVM(structure(node_features="x")).fit, graphs, graphs)


def test_labels_and_parameters_that_do_not_fit():
    fit = StructuredSVM(MRFStructure(node_features="x")).fit
    short = labels(FINE)
    del short["alone"]
    refused("y, example 1: node 'alone' of X has no label", fit, [FINE] * 2, [FINE, short])
    refused("y, example 0: found a label of 7, which is no node of X", fit, [FINE],
            [{**labels(FINE), 7: "on"}])  # fmt: skip
    refused("y, example 0: labels by node are for examples that are networkx graphs", fit,
            [(np.zeros((2, 1)), [[0, 1]])], [{0: "on", 1: "off"}])  # fmt: skip
    directed = StructuredSVM(MRFStructure(directed=True, node_features="x"))
    refused("found a Graph, whose edges have no direction", directed.fit, [FINE], [FINE])
    for wrong in (None, [], [1]):
        model = StructuredSVM(MRFStructure(node_features=wrong))
        refused("node_features is", model.fit, [FINE], [FINE])
    model = StructuredSVM(MRFStructure([[0, 1]]))
    refused("edges= gives one graph for all", model.fit, [FINE], [FINE])
