"""Graphs of small width, decoded exactly by elimination: labels, k best, plans and memory."""

import networkx as nx
import numpy as np
import pytest
from graph_cases import complete
from random_cases import random_cases
from reference.graphs import (
    KINDS,
    NONE,
    eliminate,
    enumerate_labels,
    exact_search,
    random_model,
    size,
)

from structsolve.plugins.mrf.elimination._elimination import best_labelings
from structsolve.plugins.mrf.elimination._plan import Plans, is_wide
from structsolve.plugins.mrf.tables._model import GraphModel


@random_cases(800, kind=KINDS, most=range(1, 5))
def test_elimination(seed, kind, most):
    model = random_model(np.random.default_rng(seed), 6, most, kind)
    best = enumerate_labels(model)[1].max()
    label, value = eliminate(model)
    assert model.score(label) == value
    assert value == best or value == pytest.approx(best, abs=1e-12 * size(model))


@random_cases(300, most=range(1, 5))
def test_a_plan_within_its_own_cost_exists(seed, most):
    """The bound that spares the rules of large graphs is below what they reach."""
    rng = np.random.default_rng(seed)
    n, ends = int(rng.integers(1, 12)), []
    for v in range(1, n):
        ends += [(int(u), v) for u in rng.permutation(v)[: rng.integers(0, 3)]]
    ends += ends[:2]
    states = rng.integers(1, most + 1, n)
    pair = [np.zeros((states[u], states[v])) for u, v in ends]
    model = GraphModel(states, ends, [np.zeros(k) for k in states], pair)
    cost = Plans(model, 2**20, 2.0**40).most_entries
    assert (
        Plans(model, 2**20, cost).most_entries == cost < Plans(model, 2**20, cost - 1).most_entries
    )
    # What is called wide has no plan, and too many labelings to enumerate.
    labelings = np.prod(states, dtype=float)
    for sums in (1, cost / 2, cost - 1, cost):
        assert not is_wide(model, sums) or (sums < cost and sums < labelings)
    assert not is_wide(model, labelings)


@random_cases(400, kind=KINDS, most=range(1, 5))
def test_kbest_by_elimination(seed, kind, most):
    rng = np.random.default_rng(seed)
    model, k = random_model(rng, 6, most, kind), int(rng.choice([2, 3, 10, 5000]))
    scores = enumerate_labels(model)[1]
    possible = np.sort(scores[scores > NONE])[::-1][:k]
    labels, values = best_labelings(model, 2**12, 2**20, k)
    if not len(possible):
        assert values.tolist() == [NONE]
        return
    np.testing.assert_allclose(values, possible, rtol=0, atol=1e-12 * size(model))
    assert len({tuple(label) for label in labels.tolist()}) == len(possible)
    for label, value in zip(labels, values):
        assert model.score(label) == pytest.approx(value, abs=1e-12 * size(model))


@pytest.mark.parametrize("states", [257, 2, 3])
def test_elimination_of_many_states_and_of_stars(states):
    # Choices take one bit, one byte or four; nodes of one state widen no table.
    rng = np.random.default_rng(states)
    star = [(0, v) for v in range(1, 40)]
    for n, ends, sizes in (
        (3, [(0, 1), (1, 2), (2, 0)], [2, states, 3]),
        (40, star, [2] + [1] * 39),
        (5, [(0, 1), (1, 2), (2, 3), (3, 0), (4, 2)], [states, 2, 3, 2, 2]),
    ):
        pair = [rng.normal(size=(sizes[u], sizes[v])) for u, v in ends]
        model = GraphModel(sizes, ends, [rng.normal(size=s) for s in sizes], pair)
        scores = enumerate_labels(model)[1] if n < 40 else np.array([exact_search(model)[1]])
        label, value = eliminate(model)
        assert value == pytest.approx(scores.max(), rel=1e-13) == model.score(label)


def test_long_narrow_graphs_reuse_memory():
    # A ladder of 2000 rungs: all orders except the fill's; and a torus, whose tables wait long.
    rng = np.random.default_rng(3)
    ladder = nx.convert_node_labels_to_integers(nx.ladder_graph(1500))
    ends = np.array(ladder.edges)
    model = GraphModel([2] * 3000, ends, rng.normal(size=6000), rng.normal(size=4 * len(ends)))
    best = best_labelings(model, 2**10, 2**20)[1][0]
    assert best == pytest.approx(best_labelings(model, 2**10, 2**20, 2)[1][0], rel=1e-13)
    # Reversed, it is another order of the same nodes.
    turned = GraphModel(
        [2] * 3000, 2999 - ends, model.unary.reshape(-1, 2)[::-1].ravel(), model.pair
    )
    assert eliminate(turned)[1] == pytest.approx(best, rel=1e-12)
    torus = nx.convert_node_labels_to_integers(nx.grid_2d_graph(4, 5, periodic=True))
    ends = np.array(torus.edges)
    model = GraphModel([2] * 20, ends, rng.normal(size=40), rng.normal(size=4 * len(ends)))
    value = exact_search(model)[1]
    assert eliminate(model)[1] == pytest.approx(value, rel=1e-13)


def test_graphs_that_are_too_wide_have_no_plan():
    model = complete(np.random.default_rng(0), 12)
    assert best_labelings(model, 2**10, 1e9)[0] is None
    assert best_labelings(model, 2**12, 2**8)[0] is None
    many = GraphModel([1] * 5000, [], np.zeros(5000), [])
    assert best_labelings(many, 2**10, 1e9)[0] is None
    ends = nx.convert_node_labels_to_integers(nx.grid_2d_graph(40, 40)).edges
    grid = GraphModel([3] * 1600, list(ends), np.zeros(4800), np.zeros(9 * len(ends)))
    assert [is_wide(grid, 2.0**14), is_wide(grid, 2.0**16), is_wide(many, 1.0)] == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("shape, states", [((4, 12), 2), ((12, 3), 3), ((1, 40), 5)])
def test_elimination_against_exact_search(shape, states):
    rng = np.random.default_rng(0)
    ends = np.array(nx.convert_node_labels_to_integers(nx.grid_2d_graph(*shape)).edges)
    n, m = shape[0] * shape[1], len(ends)
    pair = rng.normal(size=m * states**2)
    model = GraphModel([states] * n, ends, rng.normal(size=n * states), pair)
    label, value, _, proven = exact_search(model)
    assert proven and eliminate(model)[1] == pytest.approx(value, rel=1e-13)
    if min(shape) > 1:
        assert best_labelings(model, 8, np.inf)[0] is None
