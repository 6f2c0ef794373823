"""Maximum flow against networkx, on thousands of small networks; then what that misses."""

import networkx as nx
import numpy as np
import pytest
from checks import refused
from random_cases import random_cases
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_flow

from structsolve.algorithms.max_flow import minimum_cut


def random_network(rng, kind):
    n, m = int(rng.integers(1, 8)), int(rng.integers(0, 20))
    arcs = rng.integers(0, n, (m, 2))

    def draw(shape):
        if kind == "ties":
            return rng.integers(0, 4, shape) * 1.0
        if kind == "tenths":
            return rng.integers(0, 9, shape) / 10
        if kind == "wide":
            return rng.random(shape) * 10.0 ** rng.integers(-6, 7, shape)
        values = rng.random(shape) * (rng.random(shape) < 0.7)
        return np.where(rng.random(shape) < 0.15, np.inf, values) if kind == "infinite" else values

    capacities = draw((m, 2)) if rng.random() < 0.5 else draw((m,))
    return n, arcs, capacities, draw((n,)), draw((n,))


def cut_values(n, arcs, capacities, source, sink):
    """Value of every cut, and the sets that hold the nodes on the source's side."""
    both = (
        capacities
        if capacities.ndim == 2
        else np.stack([capacities, np.zeros_like(capacities)], axis=1)
    )
    sides = np.indices([2] * n).reshape(n, -1).T.astype(bool)
    values = np.where(sides, sink, 0).sum(axis=1) + np.where(sides, 0, source).sum(axis=1)
    for (u, v), (ahead, back) in zip(arcs, both):
        values += np.where(sides[:, u] & ~sides[:, v], ahead, 0)
        values += np.where(sides[:, v] & ~sides[:, u], back, 0)
    return sides, values


@random_cases(3000, kind=["ties", "tenths", "wide", "infinite", ""])
def test_against_all_cuts(seed, kind):
    rng = np.random.default_rng(seed)
    network = n, arcs, capacities, source, sink = random_network(rng, kind)
    sides, values = cut_values(*network)
    if values.min() == np.inf:
        refused("expected a finite cut", minimum_cut, *network)
        return
    cut = minimum_cut(*network)
    finite = np.concatenate([capacities.ravel(), source, sink])
    close = 1e-12 * finite[np.isfinite(finite)].max(initial=1)
    assert cut.value == pytest.approx(values.min(), rel=1e-12, abs=close)
    if kind in ("ties", "infinite", ""):  # no two cuts are equal but for rounding
        best = sides[values <= values.min() + 1e-12]
        np.testing.assert_array_equal(cut.source_side, best.all(axis=0))
        np.testing.assert_array_equal(cut.sink_side, (~best).all(axis=0))
    assert cut.flow == pytest.approx(cut.value, rel=1e-12, abs=close)


@random_cases(300)
def test_against_networkx(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 25)), int(rng.integers(0, 150))
    arcs, capacities = rng.integers(0, n, (m, 2)), rng.random(m)
    source, sink = (rng.random(n) * (rng.random(n) < 0.3) * 3 for _ in range(2))
    graph = nx.DiGraph()
    graph.add_nodes_from([*range(n), "source", "sink"])
    for (u, v), capacity in zip(arcs.tolist(), capacities):
        before = graph.get_edge_data(u, v, {"capacity": 0})["capacity"]
        graph.add_edge(u, v, capacity=before + capacity)
    for v in range(n):
        graph.add_edge("source", v, capacity=source[v])
        graph.add_edge(v, "sink", capacity=sink[v])
    expected = nx.maximum_flow_value(graph, "source", "sink")
    cut = minimum_cut(n, arcs, capacities, source, sink)
    assert cut.value == pytest.approx(expected, abs=1e-12)
    assert cut.flow == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("side", [3, 40])
@pytest.mark.parametrize("noise", [1, 3])
def test_grids_against_scipy(side, noise):
    rng = np.random.default_rng(side)
    n = side * side
    place = np.arange(n).reshape(side, side)
    ends = [place[1:].ravel(), place[:, 1:].ravel()], [place[:-1].ravel(), place[:, :-1].ravel()]
    arcs = np.stack([np.concatenate(end) for end in ends], axis=1)
    both = rng.integers(0, 100, (len(arcs), 2))
    source, sink = rng.integers(0, 100 * noise, n), rng.integers(0, 100 * noise, n)
    rows = np.concatenate([arcs[:, 0], arcs[:, 1], np.full(n, n), place.ravel()])
    columns = np.concatenate([arcs[:, 1], arcs[:, 0], place.ravel(), np.full(n, n + 1)])
    values = np.concatenate([both[:, 0], both[:, 1], source, sink]).astype(np.int32)
    # SciPy before 1.15 takes indices of 32 bits only.
    places = rows.astype(np.int32), columns.astype(np.int32)
    matrix = coo_array((values, places), shape=(n + 2, n + 2)).tocsr()
    expected = maximum_flow(matrix, n, n + 1).flow_value
    assert minimum_cut(n, arcs, both, source, sink).value == expected


def test_arguments_that_are_refused():
    good = (2, [[0, 1]], [1.0], [1, 0], [0, 1])
    assert minimum_cut(*good).value == 1
    for place, bad, message in [
        (0, 0, "n_nodes: found 0, expected an integer of at least 1"),
        (0, 2.5, "n_nodes: found 2.5"),
        (1, [[0, 2]], r"arcs\[0\]: found \(0, 2\), expected nodes 0 to 1"),
        (1, [[-1, 0]], r"arcs\[0\]"),
        (1, [[0.0, 1.0]], "expected integers of shape"),
        (1, [0, 1], "expected integers of shape"),
        (2, [-1.0], r"capacities\[0\]: found -1.0, expected a number >= 0"),
        (2, [[1.0, np.nan]], r"capacities\[0, 1\]: found nan"),
        (2, [1.0, 2.0], r"capacities: found shape \(2,\)"),
        (3, [1.0], r"from_source: found shape \(1,\), expected \(2,\)"),
        (4, [0, np.nan], r"to_sink\[1\]: found nan"),
    ]:
        refused(message, minimum_cut, *good[:place], bad, *good[place + 1 :])
    refused("node 0 are both infinite", minimum_cut, 1, [], [], [np.inf], [np.inf])
    refused("infinite capacity", minimum_cut, 2, [[0, 1]], np.inf, [np.inf, 0], [0, np.inf])


def test_extremes():
    assert minimum_cut(1, [], [], [2], [3]).value == 2
    assert minimum_cut(3, [], [], [1, 0, 0], [0, 0, 1]).value == 0
    tiny = 5e-324
    assert minimum_cut(2, [[0, 1]], [tiny], [1, 0], [0, 1]).value == tiny
    assert minimum_cut(2, [[0, 1]], [1e308], [1e308, 0], [0, 1e308]).value == 1e308
