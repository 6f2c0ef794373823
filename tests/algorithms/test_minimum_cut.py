"""Minimum cuts against all cuts, networkx and scipy; then cuts with warm starts."""

import networkx as nx
import numpy as np
import pytest
from checks import refused
from random_cases import random_cases
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_flow

from structsolve.algorithms.minimum_cut import CutNetwork, minimum_cut


def random_network(rng, kind, size=(None, None)):
    n, m = size
    n = n or int(rng.integers(1, 8))
    m = int(rng.integers(0, 20)) if m is None else m
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
    """Return the value of every cut, and the sets of nodes on the source's side."""
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


def grid(height, width):
    place = np.arange(height * width).reshape(height, width)
    ends = [place[1:].ravel(), place[:, 1:].ravel()], [place[:-1].ravel(), place[:, :-1].ravel()]
    return np.stack([np.concatenate(end) for end in ends], axis=1)


def by_scipy(n, arcs, both, source, sink):
    """Return the value of a maximum flow; all numbers are integers."""
    nodes = np.arange(n)
    rows = np.concatenate([arcs[:, 0], arcs[:, 1], np.full(n, n), nodes])
    columns = np.concatenate([arcs[:, 1], arcs[:, 0], nodes, np.full(n, n + 1)])
    values = np.concatenate([both[:, 0], both[:, 1], source, sink]).astype(np.int32)
    # SciPy before 1.15 accepts 32-bit indices only.
    places = rows.astype(np.int32), columns.astype(np.int32)
    matrix = coo_array((values, places), shape=(n + 2, n + 2)).tocsr()
    return maximum_flow(matrix, n, n + 1).flow_value


@pytest.mark.parametrize("side", [3, 40])
@pytest.mark.parametrize("noise", [1, 3])
def test_grids_against_scipy(side, noise):
    rng = np.random.default_rng(side)
    n, arcs = side * side, grid(side, side)
    both = rng.integers(0, 100, (len(arcs), 2))
    source, sink = rng.integers(0, 100 * noise, (2, n))
    expected = by_scipy(n, arcs, both, source, sink)
    assert minimum_cut(n, arcs, both, source, sink).value == expected


def changed(rng, network, kind):
    """The same nodes and arcs, some numbers changed."""
    n, arcs, *numbers = network
    fresh = random_network(rng, kind, (n, len(arcs)))[2:]
    if numbers[0].shape != fresh[0].shape:
        fresh = (np.resize(fresh[0], numbers[0].shape), *fresh[1:])
    share = rng.choice([0.0, 0.2, 1.0])
    return (n, arcs, *(np.where(rng.random(a.shape) < share, b, a) for a, b in zip(numbers, fresh)))


@random_cases(400, kind=["ties", "tenths", "wide", "infinite", ""])
def test_cuts_from_earlier_flows_are_those_from_none(seed, kind):
    rng = np.random.default_rng(seed)
    network = n, arcs, *_ = random_network(rng, kind, (int(rng.integers(1, 12)), None))
    kept = CutNetwork(n, arcs)
    for _ in range(6):
        network = changed(rng, network, kind)
        try:
            expected = minimum_cut(*network)
        except ValueError:
            refused("expected a finite cut", kept.cut, *network[2:])
            continue
        cut = kept.cut(*network[2:])
        finite = np.concatenate([np.ravel(x) for x in network[2:]])
        close = 1e-12 * finite[np.isfinite(finite)].max(initial=1)
        assert cut.value == pytest.approx(expected.value, rel=1e-12, abs=close)
        assert cut.flow == pytest.approx(cut.value, rel=1e-12, abs=close)
        if kind == "ties":  # sums of whole numbers have no rounding
            np.testing.assert_array_equal(cut.source_side, expected.source_side)
            np.testing.assert_array_equal(cut.sink_side, expected.sink_side)


@random_cases(60, noise=[1, 20])
def test_grids_that_drift(seed, noise):
    """Long paths, where trees are cut and grown again; compared with an independent program."""
    rng = np.random.default_rng(seed)
    height, width = rng.integers(2, 20, 2)
    arcs = grid(height, width)
    n = height * width
    source, sink = rng.integers(0, 100 * noise, (2, n))
    both = rng.integers(0, 100, (len(arcs), 2))
    kept = CutNetwork(n, arcs)
    for _ in range(3):
        expected = by_scipy(n, arcs, both, source, sink)
        for warm_start in (True, False):
            cut = kept.cut(both, source, sink, warm_start=warm_start)
            assert cut.value == cut.flow == expected
        np.testing.assert_array_equal(cut.source_side & cut.sink_side, False)
        source = np.maximum(source + rng.integers(-9, 10, n), 0)
        both = np.maximum(both + rng.integers(-9, 10, both.shape), 0)


def test_paths_that_wind():
    """One path through all nodes, of which each step is as long as the distances allow."""
    n = 3000
    arcs = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    ends = np.zeros((2, n))
    ends[0, 0] = ends[1, -1] = 7
    capacities = np.full(n - 1, 3.0)
    kept = CutNetwork(n, arcs[np.random.default_rng(0).permutation(n - 1)])
    assert kept.cut(capacities, *ends).value == 3
    cut = kept.cut(capacities, *ends[::-1])
    assert cut.value == 0 and cut.source_side.tolist() == [False] * (n - 1) + [True]


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
        (4, [0], r"to_sink: found shape \(1,\), expected \(2,\)"),
    ]:
        refused(message, minimum_cut, *good[:place], bad, *good[place + 1 :])
    refused("node 0 are both infinite", minimum_cut, 1, [], [], [np.inf], [np.inf])
    refused("infinite capacity", minimum_cut, 2, [[0, 1]], np.inf, [np.inf, 0], [0, np.inf])
    longer = 3, [[0, 1], [1, 2]], np.inf, [np.inf, 0, 0], [0, 0, np.inf]
    refused("infinite capacity", minimum_cut, *longer)


def test_extremes():
    assert minimum_cut(1, [], [], [2], [3]).value == 2
    assert minimum_cut(3, [], [], [1, 0, 0], [0, 0, 1]).value == 0
    tiny = 5e-324
    assert minimum_cut(2, [[0, 1]], [tiny], [1, 0], [0, 1]).value == tiny
    assert minimum_cut(2, [[0, 1]], [1e308], [1e308, 0], [0, 1e308]).value == 1e308


@pytest.mark.parametrize("large", [1e17, 1e300])
def test_a_start_from_a_much_larger_flow(large):
    """It rounded the capacities away: the cut's value was 3, that of the flow 0.75."""
    network = CutNetwork(2, [[0, 1], [1, 0]])
    assert network.cut(np.inf, [large, 0], [0, large]).value == large
    cut = network.cut(np.inf, [1, 2], [0.5, 0.25])
    assert (cut.value, cut.flow) == (0.75, 0.75)
    assert cut.source_side.all()
    # Both nodes reach the sink, and neither was said to.
    assert network.cut(np.inf, [large, 0], [0, large]).value == large
    cut = network.cut(np.inf, [4, 4], [9, 5])
    assert cut.value == cut.flow == 8 and cut.sink_side.all()
