"""The model of a graph: its content, and its and the decoders' errors."""

import numpy as np
import pytest
from checks import refused
from reference.graphs import KINDS, eliminate, enumerate_labels, exact_search, random_model

from structsolve.plugins.mrf import MRFStructure
from structsolve.plugins.mrf.cuts._roof_duality import roof_duality
from structsolve.plugins.mrf.local_search._climb import local_search
from structsolve.plugins.mrf.messages._trws import tree_reweighted
from structsolve.plugins.mrf.tables._model import GraphModel
from structsolve.structure.ask import make_layout


@pytest.mark.parametrize("kind", KINDS)
def test_scores_and_adjacency(kind):
    rng = np.random.default_rng(0)
    for _ in range(30):
        model = random_model(rng, 5, 3, kind)
        labels, scores = enumerate_labels(model)
        own = [model.score(label) for label in labels]
        np.testing.assert_allclose(own, scores, rtol=1e-12, atol=1e-9)
        for v in range(len(model.states)):
            near = model.near[model.near_at[v] : model.near_at[v + 1]]
            assert near.tolist() == np.flatnonzero((model.ends == v).any(axis=1)).tolist()
        flat = GraphModel(model.states, model.ends, model.unary, model.pair)
        assert flat.score(labels[-1]) == own[-1]
        with pytest.raises(ValueError, match="read-only"):
            flat.unary[0] = 1


def test_a_table_that_edges_share():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(2, 2))
    ends = [[0, 1], [2, 1], [3, 0], [2, 3], [0, 2]]
    unary = rng.normal(size=8)
    shared = GraphModel([2] * 4, ends, unary, table)
    apart = GraphModel([2] * 4, ends, unary, [table] * 5)
    assert shared.pair.size == 4 and apart.pair.size == 20
    for call in (roof_duality, tree_reweighted, exact_search, eliminate):
        for answer, expected in zip(call(shared), call(apart)):
            np.testing.assert_array_equal(answer, expected)
    for label in enumerate_labels(apart)[0]:
        assert shared.score(label) == apart.score(label)
        assert local_search(shared, label)[1] == local_search(apart, label)[1]
    with pytest.raises(
        ValueError, match=r"pair of edge 1: found shape \(2, 2\), expected \(3, 2\)"
    ):
        GraphModel([2, 2, 3], [[0, 1], [2, 0]], np.zeros(7), table)
    refused("pair of edge 0: found nan", GraphModel, [2] * 4, ends, unary, table * np.nan)


@pytest.mark.parametrize("directed", [False, True])
def test_graphs_keep_the_scores_of_a_shared_table_once(directed):
    X = [(np.zeros((4, 1)), [[0, 1], [2, 1], [3, 0]]), (np.zeros((2, 1)), [[1, 0]])]
    whole, _ = MRFStructure(n_states=3, directed=directed).make_space(X, [[0, 1, 2, 0], [1, 0]])
    layout = make_layout(whole, whole.pack(X))
    shape = whole.graphs(layout)
    assert (shape.one_table, shape.max_pair, shape.max_cells) == (True, 9, 27)
    rng = np.random.default_rng(0)
    for i, (_, edges) in enumerate(X):
        theta = rng.normal(size=layout.sizes(i)[0])
        table = theta[layout.starts["pair"] :][:12].reshape(3, 4)[:, :3]  # padded rows
        if not directed:
            table = np.triu(table) + np.triu(table, 1).T
        _, ends, _, pair = shape.model(i, theta)
        np.testing.assert_array_equal(ends, edges)
        np.testing.assert_array_equal(pair.reshape(-1, 3, 3), [table] * len(edges))
    # Nodes with fewer states than the table has use parts of it.
    states = MRFStructure(edges=[[0, 1]], n_states=[2, 3], directed=directed)
    space, _ = states.make_space(np.zeros((1, 2, 1)), [[0, 2]])
    parts = space.graphs(make_layout(space, space.pack(np.zeros((1, 2, 1)))))
    assert (parts.one_table, parts.max_pair) == (False, 6)


GOOD = ([2, 3], [[0, 1]], [[0, 0], [0, 0, 0]], [np.zeros((2, 3))])


@pytest.mark.parametrize(
    "place, bad, message",
    [
        (0, [], r"states: found shape \(0,\), expected at least one node"),
        (0, [2, 0], "states of node 1: found 0, expected at least 1"),
        (0, [2.0, 3.0], "states: found dtype float64, expected integers"),
        (0, [2, 2**40], "expected at most"),
        (1, [[0, 2]], r"ends: edge 0 is \(0, 2\), expected nodes 0 to 1"),
        (1, [[-1, 0]], "ends: edge 0 is"),
        (1, [[1, 1]], "ends: edge 0 joins node 1 with itself"),
        (1, [0, 1], r"ends: found an array of int64, shape \(2,\)"),
        (2, [[0, 0]], "unary: found 1 arrays, expected 2, one per node"),
        (2, [[0, 0], [0, 0]], r"unary of node 1: found shape \(2,\), expected \(3,\)"),
        (2, np.zeros(4), "unary: found 4 scores, expected 5"),
        (2, [[0, 0], [0, np.nan, 0]], "unary of node 1: found nan, expected finite scores"),
        (2, [[np.inf, 0], [0, 0, 0]], "unary of node 0: found inf"),
        (3, [np.zeros((3, 2))], r"pair of edge 0: found shape \(3, 2\), expected \(2, 3\)"),
        (3, np.array([0, 0, 0, 0, 0, np.nan]), "pair of edge 0: found nan"),
        (3, [], "pair: found 0 arrays, expected 1, one per edge"),
    ],
)
def test_models_that_are_refused(place, bad, message):
    GraphModel(*GOOD)
    refused(message, GraphModel, *GOOD[:place], bad, *GOOD[place + 1 :])


def test_arguments_of_other_models_are_refused():
    for more, named in (((7,), {"strange": 3}), ((), {"weights": [1.0]})):
        with pytest.raises(TypeError, match=r"takes states, ends, unary and pair; found . more"):
            GraphModel(*GOOD, *more, **named)


def test_arguments_that_are_refused():
    model = GraphModel(*GOOD)
    for bad, message in [
        ([0], r"label: found shape \(1,\), expected \(2,\)"),
        ([0, 3], "label of node 1: found 3, expected 0 to 2"),
        ([-1, 0], "label of node 0: found -1, expected 0 to 1"),
        ([0.0, 1.0], "label: found dtype float64"),
    ]:
        for call in (model.score, lambda label: local_search(model, label)):
            refused(message, call, bad)
    refused("states of node 1: found 3, expected at most 2", roof_duality, model)
    refused("max_iter: found 0", tree_reweighted, model, 0)
    for bad in (-1.0, np.nan, np.inf):
        refused("tol: found", tree_reweighted, model, tol=bad)
    for call in (roof_duality, tree_reweighted, exact_search):
        with pytest.raises(TypeError):
            call(None)
