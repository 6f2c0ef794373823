"""Flows: the native oracle against linear programs and enumeration, continuous losses, refusals."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import structsolve
from structsolve import ConditionalRiskMinimizer, StructuredSVM, faces, registry
from structsolve.lp import Polytopes
from structsolve.plugins.flow import FlowStructure
from structsolve.plugins.flow.network import Network
from structsolve.problem import ask_oracle
from structsolve.testing import check_structure


def paths_network():
    """Unit flow from s to t in an acyclic network with five paths."""
    graph = nx.DiGraph([("s", "a"), ("s", "b"), ("a", "b"), ("a", "t"), ("b", "t"), ("s", "t")])
    graph.add_node("s", demand=-1)
    graph.add_node("t", demand=1)
    return graph


def wide_network():
    """Two sources, two sinks, a cycle, capacities of 1."""
    graph = nx.DiGraph()
    arcs = [(0, 2), (1, 2), (1, 3), (2, 3), (3, 2), (2, 4), (3, 4), (3, 5), (0, 5)]
    graph.add_edges_from(arcs, capacity=1)
    for v, d in {0: -1, 1: -1, 4: 1, 5: 1}.items():
        graph.add_node(v, demand=d)
    return graph


def random_network(rng, n=5, whole=True, widest=3):
    """A random network that some random flow meets; with cycles."""
    while True:
        graph = nx.gnp_random_graph(n, 0.5, seed=int(rng.integers(2**31)), directed=True)
        if graph.number_of_edges() >= 3:
            break
    flow = {}
    for u, v in graph.edges:
        c = int(rng.integers(0, widest + 1)) if whole else float(rng.exponential())
        graph[u][v]["capacity"] = c
        flow[u, v] = int(rng.integers(0, c + 1)) if whole else c * float(rng.random())
    for v in graph:
        inside = sum(flow[a] for a in graph.in_edges(v))
        graph.nodes[v]["demand"] = inside - sum(flow[a] for a in graph.out_edges(v))
    if not whole:  # what rounding leaves
        graph.nodes[0]["demand"] -= sum(d for _, d in graph.nodes(data="demand"))
    return graph


@pytest.mark.parametrize("network", [paths_network(), wide_network()], ids=["paths", "wide"])
def test_keeps_its_promises(network):
    check_structure(FlowStructure(network))


def oracle_of(graph):
    structure = FlowStructure(graph)
    X, Y = np.zeros((1, 1)), None
    space = structure.make_space(X, Y)
    examples = space.pack(X)
    return space, examples, ask_oracle(space, examples)


def best_by_program(polytope, theta):
    bounds = np.column_stack([polytope.lower, polytope.upper])
    found = linprog(-polytope.scores(theta), A_eq=polytope.A, b_eq=polytope.low, bounds=bounds)
    return -found.fun


def test_oracle_against_linear_programs():
    rng = np.random.default_rng(0)
    for number in range(200):
        graph = random_network(rng, int(rng.integers(3, 7)))
        space, examples, oracle = oracle_of(graph)
        m = space.network.m
        polytopes = registry.default().ask(
            "structsolve_polytope", Polytopes, space=space, examples=examples
        )
        polytope = polytopes.build(0)
        theta = np.zeros(space.layout.node_size)
        kinds = (rng.normal(size=m), rng.integers(-1, 2, m), 1e6 * rng.normal(size=m), np.zeros(m))
        theta[:m] = kinds[number % 4]
        label, value = faces.argmax(oracle, 0, theta, m)
        assert value == theta[:m] @ label or value == pytest.approx(theta[:m] @ label)
        space.network.check_flows(label[None].astype(float), 1)
        best = best_by_program(polytope, theta)
        assert value == pytest.approx(best, abs=1e-7 * (1 + np.abs(theta).max()))
        assert (polytope.decode(label.astype(float)) == label).all()
    assert polytopes.exact and "unimodular" in polytopes.note


def test_longest_paths_against_networkx():
    rng = np.random.default_rng(1)
    for _ in range(200):
        graph = nx.DiGraph()
        graph.add_nodes_from(range(6))
        graph.add_edges_from(
            (u, v) for u in range(6) for v in range(u + 1, 6) if rng.random() < 0.6
        )
        graph.add_edge(0, 5)
        amount = int(rng.integers(1, 4))
        graph.nodes[0]["demand"], graph.nodes[5]["demand"] = -amount, amount
        space, _, oracle = oracle_of(graph)
        theta = np.zeros(space.layout.node_size)
        theta[: space.network.m] = rng.integers(-3, 4, space.network.m)
        for (u, v), t in zip(graph.edges, theta.tolist()):
            graph[u][v]["weight"] = -t
        label, value = faces.argmax(oracle, 0, theta, space.network.m)
        assert value == -amount * nx.bellman_ford_path_length(graph, 0, 5)
        assert set(label.tolist()) <= {0, amount}


def test_trains_and_saves(tmp_path):
    rng = np.random.default_rng(2)
    graph = paths_network()
    X = rng.normal(size=(80, 2))
    space = FlowStructure(graph).make_space(X, None)
    W = rng.normal(size=(2, 6))
    labels = space.enumerate_labels(space.pack(X), 0)
    Y = labels[(X @ W @ labels.T).argmax(axis=1)]
    model = StructuredSVM(FlowStructure(graph), alpha=1e-4).fit(X, Y)
    assert model.score(X, Y) > 0.95
    risk = ConditionalRiskMinimizer(FlowStructure(graph), alphas=[1e-4, 1e-2]).fit(X, Y)
    assert risk.score(X, Y) > 0.9
    continuous = ConditionalRiskMinimizer(FlowStructure(graph), loss="absolute").fit(X, Y)
    for number, one in enumerate((model, risk, continuous)):
        one.save(tmp_path / str(number))
        again = structsolve.load(tmp_path / str(number))
        assert np.allclose(again.predict(X), one.predict(X))
