"""The exact search that can be stopped, and "auto", which keeps the best of what it tries."""

import itertools
import textwrap

import hard_networks
import numpy as np
import pytest
from checks import refused
from programs import in_fork

from structsolve.plugins.mrf import decode, grid_edges
from structsolve.plugins.mrf.elimination._elimination import best_labelings
from structsolve.plugins.mrf.exact import search
from structsolve.plugins.mrf.exact._search import ExactSearch
from structsolve.plugins.mrf.tables._model import GraphModel
from structsolve.plugins.mrf.uai import read_uai


def small_graph(rng, kind):
    """Scores with ties or zeros and parallel edges, and the scores of all labelings."""
    n = int(rng.integers(1, 7))
    states = rng.integers(1, 4, n)
    edges = [pair for pair in itertools.combinations(range(n), 2) if rng.random() < 0.7]
    if edges and rng.random() < 0.2:
        edges.append(edges[0][::-1])
    make = rng.normal if kind == "normal" else lambda size: rng.integers(-2, 3, size) * 1.0
    unary = [make(size=k) for k in states]
    pair = [make(size=(states[u], states[v])) for u, v in edges]
    if kind != "normal":
        for table in unary:
            table[rng.random(table.shape) < 0.1] = -np.inf
        for table in pair:
            table[rng.random(table.shape) < 0.3] = -np.inf
    total = np.zeros(states)
    for v, row in enumerate(unary):
        total = total + row.reshape([-1 if w == v else 1 for w in range(n)])
    for (u, v), given in zip(edges, pair):
        table = given if u < v else given.T
        total = total + table.reshape([states[w] if w in (u, v) else 1 for w in range(n)])
    return unary, edges, pair, total


def model_of(unary, edges, pair):
    states = [len(row) for row in unary]
    return GraphModel(states, np.array(edges, dtype=int).reshape(-1, 2), unary, pair)


@pytest.mark.parametrize("kind", ["normal", "ties and zeros"])
@pytest.mark.parametrize("steps", [20.0, 1e9])
def test_search_against_enumeration(kind, steps):
    rng = np.random.default_rng(0)
    for _ in range(1500):
        unary, edges, pair, total = small_graph(rng, kind)
        model = model_of(unary, edges, pair)
        # From a labeling, or from messages of TRW-S.
        start = [int(rng.integers(len(row))) for row in unary] if rng.random() < 0.5 else None
        search = ExactSearch(model, start)
        slices = 0
        while not search.advance(steps):
            # A search that is stopped has a label and a bound.
            assert search.bound >= total.max() - 1e-9 and search.value <= total.max() + 1e-9
            slices += 1
            assert slices < 10_000
        assert search.value == pytest.approx(total.max(), abs=1e-9)
        assert search.bound == pytest.approx(total.max(), abs=1e-9)
        if total.max() > -np.inf:
            assert model.score(search.label) == pytest.approx(total.max(), abs=1e-9)


def test_decode_against_enumeration():
    rng = np.random.default_rng(1)
    for i in range(600):
        unary, edges, pair, total = small_graph(rng, ("normal", "ties and zeros")[i % 2])
        for oracle in ("auto", "exact"):
            best = decode(unary, edges, pair, oracle=oracle)
            assert best.value == pytest.approx(total.max()) and best.status == "optimal"
            assert best.bound == pytest.approx(total.max())


def networks(rng):
    """Diagnosis, colourings and crosswords whose best labeling takes well below a second."""
    yield hard_networks.diagnosis(rng, 30, 60, observed=0.6, leak=0.0)
    yield hard_networks.diagnosis(rng, 40, 80, parents=5, observed=0.6, leak=0.0)
    yield hard_networks.diagnosis(rng, 60, 90)
    yield hard_networks.colouring(rng, 30, 4, 3)
    yield hard_networks.colouring(rng, 25, 7, 4)
    yield hard_networks.crossword(rng, 3, 40)


@pytest.mark.parametrize("seed", range(3))
def test_auto_keeps_the_best_of_what_it_tried(tmp_path, seed):
    rng = np.random.default_rng(seed)
    for states, factors in networks(rng):
        hard_networks.write(tmp_path / "a.uai", states, factors)
        graph = read_uai(tmp_path / "a.uai")
        scores = graph.unary, graph.ends, graph.pair
        best = decode(*scores, oracle="exact")
        assert best.status == "optimal" and best.value == best.bound
        auto = decode(*scores)
        assert auto.value <= best.value + 1e-9 <= auto.bound + 2e-9
        others = ["trws", "expansion"]
        others += ["roof-duality"] * (max(map(len, graph.unary)) == 2)
        for other in others:
            assert auto.value >= decode(*scores, oracle=other).value
        # The best labeling in the network's own terms.
        label, total = best.label[: len(states)], graph.constant + best.value
        product = np.prod([table[tuple(label[list(scope)])] for scope, table in factors])
        assert product == pytest.approx(np.exp(total), rel=1e-6)  # 0: nothing is allowed
        again = decode(*scores)
        assert (again.label == auto.label).all() and again.value == auto.value


def test_auto_of_two_states_keeps_what_trws_has():
    rng = np.random.default_rng(3)
    n = 60
    edges = [pair for pair in itertools.combinations(range(n), 2) if rng.random() < 0.2]
    for _ in range(10):
        unary, pair = rng.normal(size=(n, 2)), rng.normal(size=(len(edges), 2, 2))
        auto = decode(unary, edges, pair)
        for other in ("trws", "expansion", "roof-duality"):
            answer = decode(unary, edges, pair, oracle=other)
            assert auto.value >= answer.value and auto.bound <= answer.bound + 1e-9


def frustrated(n=40):
    rng = np.random.default_rng(0)
    edges = list(itertools.combinations(range(n), 2))
    return rng.normal(size=(n, 3)), edges, rng.normal(size=(len(edges), 3, 3))


def test_time_limits_return_a_label_and_a_bound(monkeypatch):
    scores = frustrated()
    none = decode(*scores, oracle="exact", time_limit=0)
    assert none.status == "time limit" and none.value < none.bound
    assert model_of(*scores).score(none.label) == pytest.approx(none.value)
    now = itertools.count()
    monkeypatch.setattr(search.time, "monotonic", lambda: float(next(now)))
    seen = []
    more = decode(*scores, oracle="exact", time_limit=20, progress=lambda *now: seen.append(now))
    assert more.status == "time limit"
    assert none.value <= more.value < more.bound <= none.bound
    values, bounds, seconds = np.array(seen).T
    assert (np.diff(values) >= 0).all() and (np.diff(bounds) <= 0).all()
    assert seconds.min() >= 0 and seconds.max() <= 21
    easy = decode([[0, 1], [0, 0]], [[0, 1]], np.eye(2), oracle="exact", time_limit=0)
    assert easy.status == "optimal" and easy.value == 2


def test_interrupts_return_a_label_and_a_bound():
    code = """
        import itertools, signal
        import numpy as np
        from structsolve.plugins.mrf import decode

        signal.signal(signal.SIGINT, signal.default_int_handler)  # may be ignored in CI

        def interrupt(value, bound, seconds):
            signal.raise_signal(signal.SIGINT)

        rng = np.random.default_rng(0)
        edges = list(itertools.combinations(range(40), 2))
        scores = rng.normal(size=(40, 3)), edges, rng.normal(size=(len(edges), 3, 3))
        best = decode(*scores, oracle="exact", progress=interrupt, time_limit=60)
        print(best.status, best.value < best.bound < np.inf, best.label.shape)
    """
    status, out, error = in_fork(textwrap.dedent(code))
    assert status == 0, error
    assert out.split() == ["interrupted", "True", "(40,)"]


def test_narrow_graphs_are_eliminated_after_a_while(monkeypatch):
    rng = np.random.default_rng(2)
    edges = grid_edges(30, 8)
    unary, pair = 0.1 * rng.normal(size=(240, 2)), rng.normal(size=(len(edges), 2, 2))
    best = decode(unary, edges, pair, oracle="exact")
    runs = []

    def eliminate(*limits):
        runs.append(limits)
        return best_labelings(*limits)

    monkeypatch.setattr(search, "best_labelings", eliminate)
    for name, value in (("SPENT", 0.0), ("SPENT_EACH", 0.0), ("SHARE", 1e-9), ("SLICE", 1.0)):
        monkeypatch.setattr(search, name, value)
    same = decode(unary, edges, pair, oracle="exact")
    assert len(runs) == 1
    assert same.value == pytest.approx(best.value) and same.status == best.status == "optimal"


@pytest.mark.parametrize(
    "given, message",
    [
        ({"time_limit": 1}, "time_limit is 1, which is for oracle='exact', not 'auto'"),
        ({"oracle": "exact", "time_limit": -1}, "time_limit is -1, expected seconds, at least 0"),
        ({"oracle": "exact", "time_limit": "a"}, "time_limit is 'a', expected seconds"),
        ({"oracle": "exact", "time_limit": np.nan}, "time_limit is nan, expected seconds"),
        ({"oracle": "trws", "progress": print}, "progress is .*, which is for oracle='exact'"),
    ],
)
def test_stops_that_are_refused(given, message):
    refused(message, decode, np.zeros((2, 2)), [[0, 1]], np.eye(2), **given)


def test_progress_is_a_function():
    with pytest.raises(TypeError, match="progress is 3, expected a function"):
        decode(np.zeros((2, 2)), [[0, 1]], np.eye(2), oracle="exact", progress=3)
