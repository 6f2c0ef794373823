"""Tree-reweighted sums of wide graphs: bounds, points of the local polytope, training."""

import numpy as np
import pytest
from checks import refused
from graph_cases import LAYOUTS, STATES, Graph, all_scores, random_graph
from scipy.special import entr

from structsolve import StructuredSVM, batch
from structsolve.plugins.mrf import MRFStructure, decode, graph_operators, grid_edges
from structsolve.plugins.mrf.decoders import graph_plans
from structsolve.plugins.mrf.elimination._sums import EliminationSums
from structsolve.plugins.mrf.relaxation._spanning_trees import SpanningTrees
from structsolve.plugins.mrf.relaxation._tree_reweighted import TreeReweightedSums
from structsolve.structure import calls, projection_calls
from structsolve.structure.ask import ask_projection, make_layout
from structsolve.testing._case import Case
from structsolve.testing._projections import check_projections

RING = [[0, 1], [1, 2], [2, 0]]


def relaxed_sums(graph, most=0.0):
    shape = graph.space.graphs(graph.bound)
    plans = graph_plans(shape, graph.bound, most)
    return TreeReweightedSums(SpanningTrees(shape), plans, shape, graph.bound)


def parts_of(graph, state):
    """Marginals of nodes, and a table per edge, of a state."""
    sizes = [*graph.states, *(graph.states[u] * graph.states[v] for u, v in graph.edges)]
    pieces = np.split(state[: sum(sizes)], np.cumsum(sizes)[:-1])
    tables = [
        piece.reshape(graph.states[u], -1) for (u, _), piece in zip(graph.edges, pieces[graph.n :])
    ]
    return pieces[: graph.n], tables


def entropy_of(graph, shares, state):
    nodes, tables = parts_of(graph, state)
    total = sum(entr(p).sum() for p in nodes)
    for share, p, (u, v) in zip(shares, tables, graph.edges):
        total += share * (entr(p).sum() - entr(nodes[u]).sum() - entr(nodes[v]).sum())
    return total


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_bounds_and_relaxed_marginals(layout):
    rng = np.random.default_rng(len(str(layout)))
    for k in range(10):
        states = STATES[k % 4]
        if layout[2] == "own":
            states = (int(rng.choice(states)),)
        graph = Graph(*random_graph(rng, 6, states, k % 5 == 0), "exact", *layout)
        sums = relaxed_sums(graph)
        shape = graph.space.graphs(graph.bound)
        shares = SpanningTrees(shape).shares(0 if shape.one_graph else graph.number)
        for kind in ("normal", "ties", "equal", "negative", "wide", "forbidden parts"):
            theta = graph.theta(kind, rng)
            scores = graph.scores(theta)
            if scores.max() == -np.inf:
                continue  # the relaxation may allow something
            total = scores.max() + np.log(np.exp(scores - scores.max()).sum())
            state, value, bound = projection_calls.project_state(sums, graph.number, theta)
            close = 1e-9 * graph.scale(theta)
            assert bound >= total - close and value <= bound
            assert bound - value <= 1e-3 * max(1, abs(bound))
            mu = projection_calls.pool(sums, graph.number, state)
            assert not mu[graph.unused].any() and not mu[np.isneginf(theta)].any()
            nodes, tables = parts_of(graph, state)
            np.testing.assert_allclose([p.sum() for p in nodes], 1)
            for (u, v), p in zip(graph.edges, tables):
                # Forbidden pairs are exactly 0, even where edges would need them to agree.
                if kind != "forbidden parts":
                    np.testing.assert_allclose(p.sum(axis=1), nodes[u], atol=1e-12)
                    np.testing.assert_allclose(p.sum(axis=0), nodes[v], atol=1e-12)
            finite = np.where(mu > 0, theta, 0)
            expected = finite @ mu + entropy_of(graph, shares, state)
            if kind != "forbidden parts":
                assert value == pytest.approx(expected, abs=close)
                # No direction rises by more than the gap: to labels, and to another point.
                there = [
                    projection_calls.state_of(sums, graph.number, label)
                    for label in np.ascontiguousarray(graph.labels[:3], np.int32)
                ]
                other = graph.theta("normal", rng)
                there.append(projection_calls.project_state(sums, graph.number, other)[0])
                for b in there:
                    middle = 0.99 * state + 0.01 * b
                    moved = projection_calls.pool(sums, graph.number, middle)
                    term = projection_calls.term(sums, graph.number, middle)
                    assert term + theta @ moved <= bound + close
            if len(graph.edges) < graph.n and len(np.unique(shares)) == 1 and graph.number == 0:
                assert bound == pytest.approx(total, abs=1e-5 * graph.scale(theta))


def test_forests_are_exact():
    rng = np.random.default_rng(0)
    for k in range(20):
        graph = Graph(*random_graph(rng, 12, STATES[k % 4], True), "exact")
        trees = ask_projection(graph.space, "entropy")(graph.bound)
        theta = graph.theta(("normal", "ties", "wide")[k % 3], rng)
        mu, value, bound = calls.project(relaxed_sums(graph), 0, theta)
        expected, total, _ = calls.project(trees, 0, theta)
        assert value == pytest.approx(total, rel=1e-6) and bound == pytest.approx(total, rel=1e-6)
        np.testing.assert_allclose(mu, expected, atol=1e-3)


def test_trees_cover_all_edges():
    rng = np.random.default_rng(1)
    for _ in range(30):
        n = int(rng.integers(2, 9))
        edges = rng.integers(0, n, (int(rng.integers(1, 20)), 2))
        edges = edges[edges[:, 0] != edges[:, 1]]  # several may join the same nodes
        if not len(edges):
            continue
        graph = Graph([2] * n, edges, "exact")
        shares = SpanningTrees(graph.space.graphs(graph.bound)).shares(0)
        parts = np.arange(n)
        for u, v in edges:
            parts[parts == parts[u]] = parts[v]
        assert shares.sum() == pytest.approx(n - len(np.unique(parts)))
        assert (shares > 0).all() and (shares <= 1).all()
    refused("g is 1", SpanningTrees(graph.space.graphs(graph.bound)).shares, 1)


@pytest.mark.parametrize("structure", [MRFStructure(), MRFStructure(edges=RING, n_states=2)])
def test_the_kit(structure, monkeypatch):
    monkeypatch.setattr(graph_operators, "SUMS", 0.0)
    case = Case(structure, 0, 0, 3)
    projection = ask_projection(case.space, "entropy")(make_layout(case.space, case.examples))
    assert isinstance(projection, TreeReweightedSums) and not projection.exact
    case.enumerate()
    check_projections(case)


def test_narrow_examples_beside_wide_ones_are_exact(monkeypatch):
    rng = np.random.default_rng(3)
    grid = [[a, b] for a in range(5) for b in range(a + 1, 5)]
    X = [(rng.normal(size=(3, 2)), RING), (rng.normal(size=(5, 2)), grid)]
    Y = [rng.integers(0, 2, 3), rng.integers(0, 2, 5)]
    space, examples = MRFStructure().make_space(X, Y)
    exact = ask_projection(space, "entropy")(make_layout(space, examples))
    assert isinstance(exact, EliminationSums)
    monkeypatch.setattr(graph_operators, "SUMS", 20.0)
    mixed = ask_projection(space, "entropy")(make_layout(space, examples))
    assert isinstance(mixed, TreeReweightedSums) and mixed.has_state
    assert not (mixed.has_samples or mixed.has_derivative or mixed.exact)
    for i in range(2):
        theta = np.zeros(mixed.layout.sizes(i)[0])
        views = space.layout.theta_views(theta, len(Y[i]), 0)
        views["node"][:, :2] = rng.normal(size=(len(Y[i]), 2))
        views["pair"][:2, :2] = [[1.0, -1.0], [0.0, 0.5]]
        one, two = calls.project(exact, i, theta), calls.project(mixed, i, theta)
        if i == 0:
            np.testing.assert_array_equal(one[0], two[0])
            assert one[1:] == two[1:]
        else:
            assert two[2] > one[1] + 1e-3
    refused("has_samples", projection_calls.sample, mixed, 0, theta, rng.random((1, 3)))


def test_training_minimises_the_bound(monkeypatch, caplog):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(10, 3, 2)), rng.integers(0, 2, (10, 3))
    structure = MRFStructure(edges=RING)
    settings = {"surrogate": "crf", "alpha": 0.1, "tol": 1e-4, "max_iter": 1000}
    exact = StructuredSVM(structure, **settings).fit(X, Y)
    assert "dual_of" not in exact.history_[-1]
    monkeypatch.setattr(graph_operators, "SUMS", 0.0)
    with caplog.at_level("INFO", logger="structsolve.plugins"):
        fits = [
            StructuredSVM(structure, solver=solver, **settings).fit(X, Y)
            for solver in ("auto", "sdca", "lbfgs", "cutting-plane")
        ]
    assert "'crf' minimises an upper bound of its objective" in caplog.text
    last = [model.history_[-1] for model in fits]
    assert all(model.stop_reason_ == "converged" for model in fits)
    assert all(record["dual_of"] == "relaxation" for record in last)
    assert max(r["primal"] for r in last) <= (1 + 2e-4) * min(r["primal"] for r in last)
    # The bound's objective is above that of the likelihood at every w, and at both minima.
    assert min(r["primal"] for r in last) >= exact.history_[-1]["dual"] - 1e-9
    p = fits[0].predict_marginals(X)
    np.testing.assert_allclose(np.sum(p, axis=-1), 1)
    refused("draws no samples of these examples, whose marginals are relaxed", fits[0].sample, X)


def test_batches_on_wide_graphs(monkeypatch):
    monkeypatch.setattr(graph_operators, "SUMS", 0.0)
    rng = np.random.default_rng(0)
    space = MRFStructure(edges=RING).score_space(2)
    sizes = space.pack_sizes([3] * 4)
    scores = batch.Scores(rng.normal(size=(12, 2)), shared={"pair": np.eye(2)}, examples=sizes)
    labels = rng.integers(0, 2, 12).astype(np.int32)
    values, gradient = batch.value_and_gradient(space, scores, labels, "crf")
    assert (values > 0).all() and np.abs(gradient.node).max() < 1
    mu, bounds = batch.marginals(space, scores)
    np.testing.assert_allclose(mu.node.sum(axis=-1), 1)
    refused("derivative", batch.marginals_vjp, space, scores, mu)
    for call in (batch.entropy, batch.log_partition):
        refused("only a bound of the sum over labels of these examples", call, space, scores)


def test_marginals_of_decode(monkeypatch):
    rng = np.random.default_rng(0)
    states, edges = [2, 3, 2, 1, 3], [[0, 1], [1, 2], [2, 0], [3, 1], [2, 1]]
    unary = [rng.normal(size=k) for k in states]
    pair = [rng.normal(size=(states[u], states[v])) for u, v in edges]
    scores = all_scores(states, edges, unary, pair)
    p = np.exp(scores - scores.max())
    total = np.log(p.sum()) + scores.max()
    p /= p.sum()
    best = decode(unary, edges, pair, oracle="exact")
    assert best.marginals is None
    exact = decode(unary, edges, pair, return_marginals=True).marginals
    assert exact.exact and exact.gap == 0 and exact.log_partition == pytest.approx(total)
    for v, row in enumerate(exact.unary):
        axes = tuple(np.delete(np.arange(5), v))
        np.testing.assert_allclose(row, p.sum(axis=axes))
    for (u, v), table in zip(edges, exact.pair):
        both = p.sum(axis=tuple(np.delete(np.arange(5), [u, v])))
        np.testing.assert_allclose(table, both if u < v else both.T)
    monkeypatch.setattr(graph_operators, "SUMS", 0.0)
    relaxed = decode(unary, edges, pair, oracle="trws", return_marginals=True).marginals
    assert not relaxed.exact and relaxed.log_partition > total and relaxed.gap < 1e-4
    for (u, v), table in zip(edges, relaxed.pair):
        np.testing.assert_allclose(table.sum(axis=1), relaxed.unary[u])
        np.testing.assert_allclose(table.sum(axis=0), relaxed.unary[v])
    # One table with weights, of which sums need one for each edge.
    weights = rng.uniform(0, 2, len(edges))
    square = decode(np.ones((5, 2)), edges, np.eye(2), weights=weights, return_marginals=True)
    tables = [w * np.eye(2) for w in weights]
    same = decode(np.ones((5, 2)), edges, tables, return_marginals=True)
    assert square.marginals.log_partition == same.marginals.log_partition


def test_answers_that_may_have_a_gap():
    """In early passes of training messages stop sooner; bounds and values stay valid."""
    rng = np.random.default_rng(0)
    graph = Graph([2] * 16, grid_edges(4, 4), "exact")
    sums, theta = relaxed_sums(graph), 4 * graph.theta("normal", rng)
    _, value, bound = calls.project(sums, 0, theta)
    sums.allow(5.0)
    _, early, loose = calls.project(sums, 0, theta)
    assert early < value <= bound < loose <= early + 5
    sums.allow(0.0)
    assert calls.project(sums, 0, theta)[1:] == (value, bound)


@pytest.mark.parametrize(("seed", "cells"), [(1, "one"), (24, 0.8), (42, 0.3)])
def test_points_on_forbidden_pairs_have_no_value(seed, cells):
    # A point that puts a part of an edge's mass on forbidden pairs is none of the polytope.
    n, K = 10, 8
    rng = np.random.default_rng(seed)
    edges = [(u, v) for u in range(n) for v in range(u + 1, n)]
    if cells == "one":
        pair = np.full((K, K), -np.inf)
        pair[0, :2] = 0
    else:
        pair = np.where(rng.random((K, K)) < cells, -np.inf, rng.normal(size=(K, K)))
    space = batch.score_space(MRFStructure(edges), K)
    examples = space.pack_sizes([n])
    node = rng.normal(size=(n, K))
    projection = ask_projection(space, "entropy")(make_layout(space, examples))
    _, value, bound = projection_calls.project_state(
        projection, 0, np.concatenate([pair.ravel(), node.ravel()])
    )
    marginals, _ = batch.marginals(space, batch.Scores(node, {"pair": pair}, None, examples))
    mass = float(marginals.shared["pair"][0].sum())
    assert np.isfinite(bound) and value <= bound
    assert abs(mass - len(edges)) < 1e-6 or value == -np.inf, (mass, value, bound)
