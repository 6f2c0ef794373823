"""Labels of different shapes have no average, also where their numbers of nodes are equal."""

import networkx as nx
import numpy as np
import pytest
from checks import refused

from structsolve import ConditionalRiskMinimizer
from structsolve.plugins.path import PathStructure


@pytest.mark.parametrize(
    "structure, shapes, labels, told",
    [
        ("grid", [(3, 2), (2, 3)], [np.eye(3, 2, dtype=int), np.eye(2, 3, dtype=int)], "2 rows"),
        ("alignment", [(3, 2), (2, 3)], [[0, 1, -1], [0, 1]], "2 parts of a label"),
        ("permutation", [(1, 6), (2, 3)], [[3], [0, 1]], "2 parts of a label"),
    ],
)
def test_shapes_of_as_many_nodes(structure, shapes, labels, told):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(*shape, 1)) for shape in shapes]
    model = ConditionalRiskMinimizer(structure, kernel="linear", alpha=0.1)
    refused(f"example 1: found {told}, example 0 has", model.fit, X, labels)
    model.fit(X[:1] * 3, labels[:1] * 3)
    refused(f"example 1: found {told}, expected . as in training", model.predict, X)
    assert np.array_equal(model.predict(X[:1])[0], labels[0])


def diamond(edges, **more):
    one = np.ones((4, 1))
    return {"edges": edges, "node_features": one, "edge_features": one, **more}


def pair(nodes):
    graph = nx.Graph([nodes])
    for v in nodes:
        graph.nodes[v]["features"] = [1.0]
    return graph


def candidates(banned):
    X = np.ones((3, 2, 1))
    X[banned] = np.nan
    return X


LEFT, RIGHT = [(0, 1), (1, 3)], [(0, 2), (2, 3)]


@pytest.mark.parametrize(
    "structure, loss, X, labels, told",
    [
        ("path", "edge-hamming", [diamond(LEFT + RIGHT), diamond(RIGHT + LEFT)], [[0, 1, 3]] * 2,
         "edges"),
        ("path", "hamming", [diamond(LEFT + RIGHT), diamond(LEFT + RIGHT, sink=1)],
         [[0, 1, 3], [0, 1]], "source and sink"),
        ("dependency", "hamming", [candidates((2, 0)), candidates((1, 1))], [[0, 1], [2, 0]],
         "candidate arcs"),
        ("mrf", "hamming", [pair("ab"), pair("ba")], [{"a": 0, "b": 1}] * 2, "nodes"),
    ],
)  # fmt: skip
def test_other_nodes_and_edges_that_are_as_many(structure, loss, X, labels, told):
    model = ConditionalRiskMinimizer(structure, loss=loss, kernel="linear", alpha=0.1)
    refused(f"X, example 1: found other {told} than in example 0", model.fit, X, labels)
    model.fit(X[:1] * 3, labels[:1] * 3)
    refused(f"X, example 1: found other {told} than in example 0", model.predict, X)
    answer = model.predict(X[:1])[0]
    assert answer == labels[0] if isinstance(answer, dict) else [*answer] == labels[0]


def test_losses_whose_costs_differ_have_no_average():
    X = [{"cells": np.ones((2, 2, 1)), "costs": [0, 1, cost, 0]} for cost in (0, 2)]
    paths = [[(0, 0), (row, 1 - row), (1, 1)] for row in (1, 0)]
    model = ConditionalRiskMinimizer(
        PathStructure(neighbours=4, monotone=True), loss="regret", kernel="linear", alpha=0.1
    )
    refused("example 1: loss 'regret' counts its parts otherwise than", model.fit, X, paths)
    assert model.fit(X[:1] * 3, paths[:1] * 3).predict(X[:1]) == paths[:1]


def test_paths_through_other_edges_have_averages_of_nodes():
    X, paths = [diamond(LEFT + RIGHT), diamond(RIGHT + LEFT)], [[0, 1, 3], [0, 2, 3]]
    model = ConditionalRiskMinimizer("path", kernel="linear", alpha=0.1).fit(X, paths)
    assert model.conditional_risk(X, paths) == pytest.approx(model.predict_with_risk(X)[1])
