"""Alpha-expansion against enumeration of all moves to a state, and of all labelings."""

import numpy as np
import pytest
from random_cases import random_cases
from reference.graphs import KINDS, NONE, enumerate_labels, random_model, scores, scores_of, size

from structsolve.plugins.mrf import decode, grid_edges
from structsolve.plugins.mrf.local_search._climb import local_search
from structsolve.plugins.mrf.local_search._expansion import expansion
from structsolve.plugins.mrf.tables._model import GraphModel


def start(rng, model):
    """Return a random labeling, mostly an allowed one if there is any."""
    for _ in range(50):
        label = rng.integers(0, model.states)
        if model.score(label) > NONE:
            break
    return label


def best_move(model, label, state):
    """Return the highest score of labelings in which nodes keep their state or take this one."""
    n = len(label)
    moves = np.indices((2,) * n).reshape(n, -1).T.astype(bool) & (state < model.states)
    return scores_of(model, np.where(moves, state, label)).max()


def metric(rng, states, kind):
    """Return a table for every edge with super-modular moves: a metric, minus something."""
    K = max(states)
    i = np.arange(K)
    far = np.abs(i[:, None] - i)
    if rng.random() < 0.5:
        far = np.minimum(far, rng.integers(1, K + 1))
    elif rng.random() < 0.5:
        points = scores(rng, kind, (K, 2))
        far = np.abs(points[:, None] - points).sum(axis=2)
    return -(far * rng.integers(0, 3) * (0.1 if kind == "tenths" else 1.0))


@random_cases(1200, kind=KINDS)
def test_scores_rise_and_are_those_of_labels(seed, kind):
    rng = np.random.default_rng(seed)
    model = random_model(rng, 6, 3, kind)
    before = start(rng, model)
    label, value = expansion(model, before)
    assert (label >= 0).all() and (label < model.states).all()
    assert value == model.score(label) >= model.score(before)
    if model.score(before) == NONE:
        assert label.tolist() == before.tolist()
    elif kind in ("ties", "forbidden", "zeros"):  # no rounding: each change has a gain
        assert value > model.score(before) or label.tolist() == before.tolist()


@random_cases(600, kind=["normal", "ties", "tenths"])
def test_no_move_is_left(seed, kind):
    rng = np.random.default_rng(seed)
    drawn = random_model(rng, 6, 4, kind)
    pair = []
    for u, v in drawn.ends:
        pair.append(metric(rng, drawn.states, kind)[: drawn.states[u], : drawn.states[v]])
    unary = drawn.unary.copy()
    unary[rng.random(len(unary)) < 0.1] = NONE
    model = GraphModel(drawn.states, drawn.ends, unary, pair)
    before = start(rng, model)
    label, value = expansion(model, before)
    if model.score(before) == NONE:
        assert value == NONE
        return
    for state in range(model.states.max()):
        assert best_move(model, label, state) <= value + 1e-12 * size(model)


@random_cases(400, kind=["normal", "ties", "tenths", "forbidden"])
def test_two_states_are_solved(seed, kind):
    """Super-modular tables: the last move is to a best labeling."""
    rng = np.random.default_rng(seed)
    drawn = random_model(rng, 7, 2, "normal")
    pair = []
    for u, v in drawn.ends:
        shape = drawn.states[[u, v]]
        table = scores(rng, "ties" if kind == "forbidden" else kind, shape)
        if shape.min() == 2:
            # Equal states get the missing amount; only pairs of different ones may be forbidden.
            table[1, 1] += max(0, table[0, 1] + table[1, 0] - table[0, 0] - table[1, 1])
            if kind == "forbidden":
                table[[0, 1], [1, 0]] += np.where(rng.random(2) < 0.3, NONE, 0)
        pair.append(table)
    model = GraphModel(drawn.states, drawn.ends, scores(rng, kind, drawn.unary.shape), pair)
    before = start(rng, model)
    value = expansion(model, before)[1]
    if model.score(before) > NONE:
        best = enumerate_labels(model)[1].max()
        assert value == pytest.approx(best, rel=0, abs=1e-12 * size(model))


@random_cases(300, kind=["normal", "ties", "forbidden"])
def test_weights_are_factors_of_tables(seed, kind):
    rng = np.random.default_rng(seed)
    model = random_model(rng, 6, 3, kind)
    weights = rng.integers(1 if kind == "forbidden" else -1, 3, len(model.ends)) * 1.0
    cells = np.diff(model.pair_at) if len(model.pair_at) > 1 else np.zeros(0, int)
    factors = np.repeat(weights, cells)
    same = GraphModel(model.states, model.ends, model.unary, factors * model.pair)
    before = start(rng, same)
    label, value = expansion(model, before, weights)
    other, expected = expansion(same, before)
    assert value == expected and label.tolist() == other.tolist()


@random_cases(300, kind=["normal", "ties", "forbidden"])
def test_oracle_bounds_all_scores(seed, kind):
    rng = np.random.default_rng(seed)
    n, K = int(rng.integers(1, 6)), int(rng.integers(1, 5))
    edges = np.argwhere(np.triu(rng.random((n, n)) < 0.7, 1))
    unary, pair = scores(rng, kind, (n, K)), scores(rng, kind, (len(edges), K, K))
    model = GraphModel([K] * n, edges, unary.ravel(), pair.ravel())
    highest = enumerate_labels(model)[1].max()
    best = decode(unary, edges, pair, oracle="expansion", max_iter=int(rng.integers(1, 4)))
    slack = 1e-12 * size(model) * (n + len(edges))
    assert best.value <= highest <= best.bound + slack
    assert best.value == pytest.approx(model.score(best.label), rel=0, abs=slack)
    if best.value > NONE:
        again = local_search(model, best.label)[1]
        assert again == pytest.approx(best.value, rel=0, abs=slack)


def test_pictures_gain_by_moves():
    """Noise under strong smoothing, where changes of a few nodes do not help."""
    rng = np.random.default_rng(0)
    edges, unary, potts = grid_edges(40, 40), rng.normal(size=(1600, 5)), np.eye(5) - 1
    plain = decode(unary, edges, potts, oracle="trws")
    moved = decode(unary, edges, potts, oracle="expansion")
    assert plain.value < moved.value <= moved.bound == plain.bound
    tables = rng.random(len(edges))[:, None, None] * potts
    weights = tables[:, 0, 1] / potts[0, 1]
    best = decode(unary, edges, potts, oracle="expansion", weights=weights)
    model = GraphModel([5] * 1600, edges, unary.ravel(), tables.ravel())
    assert best.value == pytest.approx(model.score(best.label), abs=1e-9)
    plain = decode(unary, edges, potts, oracle="trws", weights=weights)
    assert plain.value <= best.value <= best.bound == plain.bound
    assert decode(unary, edges, potts)[1:] == moved[1:]  # what "auto" takes


def test_refused():
    model = GraphModel([2, 2], [[0, 1]], [[0, 1], [0, 1]], [[[0, 1], [1, 0]]])
    with pytest.raises(ValueError, match="label of node 1: found 2, expected 0 to 1"):
        expansion(model, [0, 2])
