"""Best labelings within a cone, against enumeration and linear programs."""

from functools import partial

import numpy as np
import pytest
from enumeration import NONE
from graph_cases import Graph, random_graph
from reference.cones import in_cone

from structsolve import ConePair
from structsolve.lp.base import cone_rows
from structsolve.lp.cones import RelaxedCones
from structsolve.plugins.mrf import decoders
from structsolve.structure import calls


def cones(rng, h, g):
    """Sides through labels; integers over powers of two, so nothing is rounded."""
    slopes = [0.0, 0.5, 1.0, *(b / a for a, b in zip(h, g) if a in (1, 2, 4))]
    beta, alpha = sorted(rng.choice(slopes, 2).tolist())
    if rng.random() < 0.3 or alpha == beta:
        alpha = np.inf
    return alpha, max(beta, 0.0) if rng.random() < 0.7 else 0.0


@pytest.mark.parametrize("states", [(2,), (1, 2, 3)], ids=str)
def test_constrained_by_enumeration(states):
    rng = np.random.default_rng(4)
    empty = full = 0
    for k in range(150):
        graph = Graph(*random_graph(rng, 5 if k % 10 else 10, states if k % 10 else (2,)), "auto")
        own = graph.power("cones")
        theta, cost = (np.zeros(graph.size) for _ in range(2))
        for view in graph.views(theta).values():
            view[...] = rng.integers(-2, 3, view.shape)
        graph.views(cost)["node"][...] = rng.integers(0, 2, graph.views(cost)["node"].shape)
        if k % 5 == 1:
            graph.views(theta)["node"][rng.random((graph.n, len(graph.space.classes_))) < 0.2] = (
                NONE
            )
        scores, costs = graph.scores(theta), graph.matrix @ cost
        if not np.isfinite(scores).any():
            continue
        for _ in range(10):
            h0 = float(-rng.choice(scores[np.isfinite(scores)]) + rng.integers(0, 3))
            h, g = scores + h0, costs
            alpha, beta = cones(rng, h, g)
            lam = float(rng.choice([0.5, 1, 2]))
            cone = ConePair(h0, 0.0, lam, alpha, beta, bool(rng.integers(2)))
            inside = in_cone(cone, h, g)
            answer = calls.argmax_in_cone(own, 0, theta, cost, cone)
            if not inside.any():
                assert answer is None
                empty += 1
                continue
            _, label, value = answer
            row = graph.rows(label)
            assert inside[row]
            assert value == (h + lam * g)[row] == (h + lam * g)[inside].max()
            full += 1
    assert empty > 100 and full > 300


@pytest.mark.parametrize("oracle", ["lp", "cvxpy:CLARABEL"])
def test_constrained_programs(oracle):
    rng = np.random.default_rng(5)
    kinds = set()
    for k in range(6 if oracle != "lp" else 40):
        graph = Graph(*random_graph(rng, 4, (2,) if k % 2 else (1, 2, 3)), oracle)
        own = graph.power("cones")
        for _ in range(5):
            theta, cost = graph.theta("normal", rng), np.zeros(graph.size)
            graph.views(cost)["node"][...] = rng.integers(0, 2, graph.views(cost)["node"].shape)
            h0 = float(-rng.choice(graph.scores(theta)) + rng.normal())
            h, g = graph.scores(theta) + h0, graph.matrix @ cost
            alpha, beta = cones(rng, np.round(h), g)
            cone = ConePair(h0, 0.0, 1.5, alpha, beta, False)
            inside = in_cone(cone, h, g)
            best = (h + 1.5 * g)[inside].max(initial=NONE)
            answer = calls.argmax_in_cone(own, 0, theta, cost, cone)
            if answer is None:
                assert not inside.any()
                kinds.add(0)
                continue
            mu, label, value = answer
            assert value >= best - 1e-6 * (1 + abs(best))
            if label is not None:
                row = graph.rows(label)
                assert inside[row] and value == pytest.approx((h + 1.5 * g)[row])
                kinds.add(1)
            else:
                assert in_cone(cone, mu @ theta + h0, mu @ cost, tol=1e-6)
                assert value == pytest.approx(mu @ theta + h0 + 1.5 * (mu @ cost))
                kinds.add(2)
    assert kinds >= {1, 2}


@pytest.mark.parametrize("most", [2, 1])
def test_relaxed_cones_against_programs(most, monkeypatch):
    """Answers of the relaxation alone find the optimum of the program with two more rows."""
    monkeypatch.setattr(decoders, "CONSTRAINED", 0.0)
    rng = np.random.default_rng(6)
    kinds = dict.fromkeys([None, False, True], 0)
    for k in range(250):
        n = int(rng.integers(1, 8))
        ends = [(u, v) for u in range(n) for v in range(u) if rng.random() < 0.6]
        if most == 1:
            ends = [(v, int(rng.integers(v))) for v in range(1, n)]
        states = [2] * n if most == 2 else [int(rng.integers(1, 4)) for _ in range(n)]
        graph, program = Graph(states, ends, "auto"), Graph(states, ends, "lp")
        own = graph.power("cones")
        assert type(own) is RelaxedCones
        theta, cost = (np.zeros(graph.size) for _ in range(2))
        draws = rng.normal if k % 3 else partial(rng.integers, -2, 3)
        for view in graph.views(theta).values():
            view[...] = draws(size=view.shape)
        for view in graph.views(cost).values():
            view[...] = rng.integers(0, 3, view.shape)
        if k % 5 == 1:
            view = graph.views(theta)["node"]
            view[rng.random(view.shape) < 0.2] = NONE
        scores = graph.scores(theta)
        for _ in range(8 if np.isfinite(scores).any() else 0):
            h0 = float(-rng.choice(scores[np.isfinite(scores)]) + rng.integers(-1, 3))
            beta = float(rng.choice([0, 0.5, 1, 3 * rng.random()]))
            alpha = float(rng.choice([np.inf, beta + 0.25, beta + 5 * rng.random()]))
            lam = float(rng.choice([1e-3, 0.5, 2, 1e3]))
            cone = ConePair(h0, 0.0, lam, alpha, beta, bool(rng.integers(2)))
            answer = calls.argmax_in_cone(own, 0, theta, cost, cone)
            best = calls.argmax_in_cone(program.power("cones"), 0, theta, cost, cone)
            assert (answer is None) == (best is None)
            if answer is None:
                kinds[None] += 1
                continue
            mu, label, value = answer
            kinds[label is None] += 1
            if label is not None:
                row = graph.rows(label)
                h, g = scores[row] + h0, graph.matrix[row] @ cost
                assert in_cone(cone, h, g)
            else:
                h, g = mu @ np.where(mu == 0, 0.0, theta) + h0, mu @ cost
                assert g >= beta * h - 1e-9 and (np.isinf(alpha) or g <= alpha * h + 1e-9)
                assert h >= -1e-9 or np.isfinite(alpha)
            assert value == pytest.approx(h + lam * g)
            assert value == pytest.approx(best[2], abs=1e-9 * (1 + lam) * (1 + abs(h0)))
    assert min(kinds.values()) > 50


def test_cone_rows_of_infinite_alpha_ask_for_h_alone():
    cone = ConePair(1.0, 2.0, 1.0, np.inf, 0.0, False)
    (low, least), (high, floor) = cone_rows(np.array([3.0]), 1.0, np.array([5.0]), 2.0, cone)
    # Of moderate size: divided by powers of two.
    assert (low.tolist(), least) == ([5.0 / 4], -2.0 / 4)
    assert (high.tolist(), floor) == ([3.0 / 2], -1.0 / 2)
