"""Sums over the labelings of graphs with cycles: elimination against enumeration, as a model."""

import numpy as np
import pytest
from checks import refused
from graph_cases import LAYOUTS, STATES, Graph, random_graph

from structsolve import StructuredSVM
from structsolve.plugins.mrf import MRFStructure, graph_operators, grid_edges
from structsolve.plugins.mrf.decoders import graph_plans
from structsolve.plugins.mrf.elimination import _sums
from structsolve.plugins.mrf.elimination._sums import EliminationSums
from structsolve.plugins.multilabel import MultilabelStructure
from structsolve.structure import calls, projection_calls
from structsolve.structure.ask import ask_projection, make_layout
from structsolve.testing._case import Case
from structsolve.testing._projections import check_projections

RING = [[0, 1], [1, 2], [2, 0], [3, 2]]
STATES_OF_RING = [2, 3, 1, 4]
CYCLES = [
    MRFStructure(),
    MRFStructure(tables="features", directed=True),
    MRFStructure(edges=RING, tables="per-edge", n_states=STATES_OF_RING),
    MRFStructure(edges=RING, n_states=STATES_OF_RING, directed=True),
    MRFStructure(edges=[[0, 1], [1, 0], [1, 2], [2, 0]], n_states=2),  # two parallel edges
    MultilabelStructure(edges="full"),
    MultilabelStructure(edges=[[2, 1], [0, 1], [0, 2]]),
]


def sums_of(space, examples, most=2.0**23):
    layout = make_layout(space, examples)
    shape = space.graphs(layout)
    return EliminationSums(graph_plans(shape, layout, most), shape, layout)


@pytest.mark.parametrize("structure", CYCLES, ids=repr)
def test_the_kit_of_projections(structure):
    for number in range(2):
        case = Case(structure, number, number, 3)
        projection = ask_projection(case.space, "entropy")(make_layout(case.space, case.examples))
        assert isinstance(projection, EliminationSums) or number
        case.enumerate()
        check_projections(case)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_small_graphs_against_enumeration(layout):
    """Marginals, log-partition, samples, and the derivative, by the covariance of all labelings."""
    rng = np.random.default_rng(len(str(layout)))
    for k in range(40):
        states = STATES[k % 4]
        if layout[2] == "own":
            states = (int(rng.choice(states)),)
        graph = Graph(*random_graph(rng, 6, states, k % 5 == 0), "exact", *layout)
        graph.projection = sums_of(graph.space, graph.examples)
        for kind in ("normal", "ties", "equal", "negative", "wide", "huge", "forbidden parts"):
            theta = graph.theta(kind, rng)
            scores = graph.scores(theta)
            if scores.max() == -np.inf:
                refused("every labeling is forbidden", calls.project, graph.projection,
                        graph.number, theta)  # fmt: skip
                continue
            graph.check_marginals(theta)
            p = np.exp(scores - scores.max())
            p /= p.sum()
            direction = np.where(graph.unused, 0, rng.normal(size=graph.size))
            along = graph.matrix @ direction
            moved = projection_calls.derivative(graph.projection, graph.number, theta, direction)
            expected = (p * (along - p @ along)) @ graph.matrix
            np.testing.assert_allclose(moved, expected, atol=1e-9 * graph.scale(theta))
            uniforms = rng.random((5, graph.n))
            drawn = projection_calls.sample(graph.projection, graph.number, theta, uniforms)
            assert (p[graph.rows(drawn)] > 0).all()


def test_forests_have_the_same_sums_as_trees():
    rng = np.random.default_rng(0)
    for k in range(40):
        graph = Graph(*random_graph(rng, 30, STATES[k % 4], True), "exact")
        trees = ask_projection(graph.space, "entropy")(graph.bound)
        sums = sums_of(graph.space, graph.examples)
        for kind in ("normal", "ties", "wide", "forbidden pairs"):
            theta = graph.theta(kind, rng)
            try:
                expected = calls.project(trees, 0, theta)
            except ValueError:
                refused("every labeling is forbidden", calls.project, sums, 0, theta)
                continue
            marginals, value, bound = calls.project(sums, 0, theta)
            np.testing.assert_allclose(marginals, expected[0], rtol=1e-9, atol=1e-11)
            assert bound == value == pytest.approx(expected[1], rel=1e-12, abs=1e-10)
            uniforms = rng.random((4, graph.n))
            assert projection_calls.sample(sums, 0, theta, uniforms).shape == uniforms.shape


def test_samples_have_the_marginals():
    rng = np.random.default_rng(1)
    graph = Graph([2, 3, 2, 3], [[0, 1], [1, 2], [2, 3], [3, 0]], "exact")
    sums, theta = sums_of(graph.space, graph.examples), graph.theta("normal", rng)
    drawn = projection_calls.sample(sums, 0, theta, rng.random((40000, 4)))
    seen = graph.matrix[graph.rows(drawn)].mean(axis=0)
    np.testing.assert_allclose(seen, calls.project(sums, 0, theta)[0], atol=0.015)


def test_a_ladder_and_a_plan_made_for_others():
    """A long narrow graph: the log-partition by transfer matrices, node by node."""
    rng, n = np.random.default_rng(2), 400
    unary = rng.normal(size=(2 * n, 2))
    rails = [[2 * v + a, 2 * v + 2 + a] for v in range(n - 1) for a in (0, 1)]
    graph = Graph([2] * 2 * n, [[2 * v, 2 * v + 1] for v in range(n)] + rails, "exact")
    sums, theta = sums_of(graph.space, graph.examples), np.zeros(graph.size)
    graph.views(theta)["node"][:, :2] = unary
    pair = graph.views(theta)["pair"]
    pair[:, :2, :2] = rng.normal(size=(len(pair), 2, 2))
    total, row = 0.0, np.zeros((1, 4))
    for v in range(n):
        own = unary[2 * v][:, None] + unary[2 * v + 1] + pair[v, :2, :2]
        row = row + own.ravel()
        if v < n - 1:
            one, two = (pair[n + 2 * v + a, :2, :2] for a in (0, 1))
            across = (one[:, None, :, None] + two[None, :, None, :]).reshape(4, 4)
            row = row.T + across
            row = np.logaddexp.reduce(row, axis=0)[None]
    total = np.logaddexp.reduce(row.ravel())
    assert calls.project(sums, 0, theta)[1] == pytest.approx(total, rel=1e-12)
    other = Graph([2, 2], [[0, 1]], "exact")
    layout = make_layout(other.space, other.examples)
    refused("those of other graphs", EliminationSums, sums_plans(graph), shape_of(other), layout)
    narrow = graph_plans(shape_of(graph), graph.bound, 8.0)
    refused("graphs without one", EliminationSums, narrow, shape_of(graph), graph.bound)


def shape_of(graph):
    return graph.space.graphs(graph.bound)


def sums_plans(graph):
    return graph_plans(shape_of(graph), graph.bound, 2.0**20)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_scores_that_are_no_numbers(bad):
    graph = Graph([2, 2, 2], [[0, 1], [1, 2], [2, 0]], "exact")
    sums = sums_of(graph.space, graph.examples)
    for place in np.flatnonzero(~graph.unused):
        theta = np.zeros(graph.size)
        theta[place] = bad
        refused("example 0: every labeling is forbidden", calls.project, sums, 0, theta)


def test_a_model_of_triangles():
    """As a model of all labelings as classes, which has the same probabilities."""
    rng = np.random.default_rng(0)
    ring = [[0, 1], [1, 2], [2, 0]]
    X, Y = rng.normal(size=(12, 3, 2)), rng.integers(0, 2, (12, 3))
    settings = {"surrogate": "crf", "alpha": 0.1, "tol": 1e-6, "max_iter": 2000}
    fits = [
        StructuredSVM(MRFStructure(edges=ring), solver=solver, **settings).fit(X, Y)
        for solver in ("auto", "lbfgs", "cutting-plane")
    ]
    assert all(model.stop_reason_ == "converged" for model in fits)
    primals = [model.history_[-1]["primal"] for model in fits]
    assert max(primals) - min(primals) <= 1e-5 * max(primals)
    model = fits[0]
    w, space = model.flat_weights(), model.space_
    table = space.layout.view(w, "pair")
    node = space.layout.view(w, "node")
    labels = np.indices((2, 2, 2)).reshape(3, -1).T
    for x, p in zip(X, model.predict_proba(X)):
        unary = np.hstack([x, np.ones((3, 1))]) @ node
        total = unary[np.arange(3), labels].sum(axis=1)
        for u, v in ring:
            a, b = np.sort(labels[:, [u, v]], axis=1).T
            total = total + table[a, b]
        weights = np.exp(total - total.max())
        weights /= weights.sum()
        expected = [[weights[labels[:, v] == s].sum() for s in (0, 1)] for v in range(3)]
        np.testing.assert_allclose(p, expected, atol=1e-10)
    assert len(model.sample(X, 2)) == 2


def test_the_limit_of_states(monkeypatch):
    """Where a state for each example would not fit into memory, solvers go without states."""
    rng = np.random.default_rng(0)
    ring = MRFStructure(edges=[[0, 1], [1, 2], [2, 0]])
    X, Y = rng.normal(size=(8, 3, 2)), rng.integers(0, 2, (8, 3))
    settings = {"surrogate": "crf", "solver": "bcfw", "alpha": 0.1, "tol": 1e-5, "max_iter": 2000}
    space, examples = ring.make_space(X, Y)
    with_states = ask_projection(space, "entropy")(make_layout(space, examples))
    assert with_states.has_state and with_states.has_term
    fits = [StructuredSVM(ring, **settings).fit(X, Y)]
    size = 8.0 * sum(projection_calls.state_size(with_states, i) for i in range(8))
    for limit in (size, size - 1):
        monkeypatch.setattr(_sums, "STATES", limit)
        projection = ask_projection(space, "entropy")(make_layout(space, examples))
        assert projection.has_state == projection.has_term == (limit == size)
    fits.append(StructuredSVM(ring, **settings).fit(X, Y))
    assert [model.solver_.name for model in fits] == ["gbcfw", "bcfw"]
    one, two = (model.history_[-1]["primal"] for model in fits)
    assert one == pytest.approx(two, rel=2e-5)


def test_the_limit_of_width(monkeypatch):
    graph = Graph([2] * 16, grid_edges(4, 4), "exact")
    sums = sums_plans(graph).most_entries
    monkeypatch.setattr(graph_operators, "SUMS", sums)
    assert isinstance(graph.space.make_projection("entropy")(graph.bound), EliminationSums)
