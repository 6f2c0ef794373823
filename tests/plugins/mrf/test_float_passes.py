"""TRW-S in single precision: bounds that hold, messages in O(K), equivalent transformations."""

import networkx as nx
import numpy as np
import pytest
from reference.graphs import KINDS, enumerate_labels, random_model, scores_of, size

from structsolve.plugins.mrf import grid_edges
from structsolve.plugins.mrf._direct import WeightedModel
from structsolve.plugins.mrf.messages._float_passes import float_tree_reweighted
from structsolve.plugins.mrf.messages._trws import tree_reweighted
from structsolve.plugins.mrf.tables._model import GraphModel
from structsolve.plugins.mrf.tables._table_kinds import recognize


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_bounds_hold_and_agree_with_double_precision(seed, kind):
    rng = np.random.default_rng(seed)
    for _ in range(50):
        model = random_model(rng, 6, 4, kind)
        unit = size(model) * (1 + len(model.ends) + len(model.states))
        labels, scores = enumerate_labels(model)
        best = scores.max()
        label, value, bound, _ = float_tree_reweighted(model)
        assert bound >= best - 1e-14 * unit
        if best == -np.inf:
            assert value == -np.inf
            continue
        assert value == model.score(label) and value <= best + 1e-14 * unit
        # Single precision stops earlier; if double precision has converged, so has it.
        _, sure, expected, _ = tree_reweighted(model)
        assert bound == pytest.approx(expected, abs=1e-6 * unit)
        if sure >= expected - 1e-12 * unit:
            assert bound == pytest.approx(best, abs=1e-8 * unit)
        bounds = [float_tree_reweighted(model, k)[2] for k in (1, 2, 4, 8)]
        assert np.diff(bounds).max() <= 1e-6 * unit


@pytest.mark.parametrize("kind", ["normal", "ties", "zeros", "frustrated"])
@pytest.mark.parametrize("most", [8, 12, 16, 17, 33])
def test_messages_of_both_precisions_in_one_place(most, kind):
    # Float messages lie among the double ones if they fit: many states, or equally many everywhere.
    rng = np.random.default_rng(most)
    for _ in range(12):
        model = random_model(rng, 9, most, kind)
        unit = size(model) * (1 + len(model.ends) + len(model.states))
        for n_iter in (1, 3, 200):
            label, value, bound, _ = float_tree_reweighted(model, n_iter)
            # A last pass in double precision gives the bound.
            expected = tree_reweighted(model, n_iter + 1)[2]
            assert bound == pytest.approx(expected, abs=1e-6 * unit)
            assert bound >= value == model.score(label)


def distances(K, kind, rng):
    """Return a table of that kind, its expected kind, and its parameters."""
    d = abs(np.subtract.outer(np.arange(K), np.arange(K))) * 1.0
    same, slope = rng.integers(-3, 4), rng.integers(1, 4)
    cut = {"linear": slope * int(rng.integers(2, K)), "potts": slope}
    cut["quadratic"] = slope * int(rng.integers(3, (K - 1) ** 2 + 1))
    loss = np.minimum(slope * (d**2 if kind == "quadratic" else d), cut[kind])
    return same - loss, (same, slope, cut[kind])


@pytest.mark.parametrize("kind", ["potts", "linear", "quadratic"])
@pytest.mark.parametrize("K", [3, 5, 12, 20, 40, 130, 257])
def test_messages_of_distances_are_those_of_tables(K, kind):
    rng = np.random.default_rng(K)
    ends = grid_edges(3, 3)
    for _ in range(40 if K < 20 else 4 if K < 100 else 1):
        table, parameters = distances(K, kind, rng)
        assert recognize(table) == (kind, parameters)
        unary = rng.normal(size=9 * K) * 2
        model = GraphModel(np.full(9, K), ends, unary, table)
        # A second orientation of one entry makes the table a general one.
        other = table.copy()
        other[0, -1] -= 1e-12 * abs(table).max()
        assert recognize(other)[0] == "general"
        general = GraphModel(np.full(9, K), ends, unary, other)
        unit = size(model)
        for n_iter in (1, 5, 60):
            answer = float_tree_reweighted(model, n_iter)
            expected = float_tree_reweighted(general, n_iter)
            assert answer[2] == pytest.approx(expected[2], abs=1e-4 * unit / n_iter)
            assert answer[2] >= tree_reweighted(model, n_iter)[1]


def test_tables_that_are_not_of_a_kind():
    rng = np.random.default_rng(0)
    d = abs(np.subtract.outer(np.arange(5), np.arange(5)))
    for table in (d, -np.sqrt(d), rng.normal(size=(5, 5)), -d[:, :4], np.triu(-d), [[2.0]]):
        assert recognize(table)[0] == "general"
    assert recognize(np.where(d > 1, -np.inf, 0))[0] == "general"
    assert recognize(np.zeros((4, 4))) == ("potts", (0, 0, 0))


@pytest.mark.parametrize("shared", ["potts", "linear", "quadratic", "general"])
def test_weights_are_those_of_a_table_per_edge(shared):
    rng = np.random.default_rng(0)
    for case in range(60):
        n, K = int(rng.integers(2, 6)), int(rng.choice([3, 5, 20]))
        graph = nx.gnp_random_graph(n, 0.7, seed=case) if case % 3 else nx.complete_graph(n)
        ends = np.array(graph.edges).reshape(-1, 2)
        if not len(ends):
            continue
        weights = rng.integers(0 if case % 2 else -2, 4, len(ends)) / 2
        table = rng.integers(-3, 4, (K, K)) * 1.0 if shared == "general" else None
        table = distances(K, shared, rng)[0] if table is None else table
        unary = rng.integers(-4, 5, n * K) * 1.0
        model = WeightedModel(np.full(n, K), ends, unary, table, weights)
        apart = GraphModel(np.full(n, K), ends, unary, [w * table for w in weights])
        label, value, bound, _, phi = float_tree_reweighted(model, reparametrize=True)
        assert value == pytest.approx(apart.score(label), abs=1e-12)
        expected = float_tree_reweighted(apart)
        assert bound == pytest.approx(expected[2], abs=1e-4)
        if K**n < 5000:
            assert bound >= enumerate_labels(apart)[1].max()
        assert phi.shape == (len(ends), 2, K)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "forbidden"])
def test_equivalent_transformations(kind):
    rng = np.random.default_rng(0)
    for _ in range(60):
        model = random_model(rng, 5, 3, kind)
        unit = size(model) * (1 + len(model.ends) + len(model.states))
        *_, bound, _, phi = float_tree_reweighted(model, reparametrize=True)
        unary = model.unary.copy()
        pair = model.pair.copy()
        for e, (u, v) in enumerate(model.ends.tolist()):
            a, b = model.states[u], model.states[v]
            unary[model.unary_at[u] :][:a] += phi[e, 0, :a]
            unary[model.unary_at[v] :][:b] += phi[e, 1, :b]
            table = pair[model.pair_at[e] :][: a * b].reshape(a, b)
            table -= phi[e, 0, :a, None] + phi[e, 1, :b]
        moved = GraphModel(model.states, model.ends, unary, pair)
        labels, scores = enumerate_labels(model)
        np.testing.assert_allclose(scores_of(moved, labels), scores, rtol=1e-9, atol=1e-11 * unit)
        maxima = sum(row.max() for row in np.split(unary, model.unary_at[1:-1]))
        maxima += sum(
            pair[a:b].max() for a, b in zip(model.pair_at[:-1], model.pair_at[1:]) if len(pair)
        )
        assert maxima == pytest.approx(bound, abs=1e-7 * unit)


def test_news_of_forbidden_pairs_does_not_go_astray():
    # A change to another order once read messages at the wrong end of edges, and found everything
    # impossible.
    for seed in (93, 124, 182, 347):
        model = random_model(np.random.default_rng(seed), 6, 4, "forbidden")
        best = enumerate_labels(model)[1].max()
        assert tree_reweighted(model)[2] >= best > -np.inf
