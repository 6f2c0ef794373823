"""Minimum cuts: time to build and to solve against PyMaxflow, and from the previous flow.

The problems are grids with Potts and with random super-modular terms under random node scores; the
pictures of snakes, with each label's position by the cut of Schlesinger and Ishikawa; tsukuba, with
one expansion move and a part of it with all labels in one cut.  Both sides get the same arrays.
PyMaxflow takes capacities while it builds, ours while it solves: compare the sums.  Warm is the
next call of `CutNetwork.cut` after all node capacities have changed by the given share, as between
passes of training; cold is that call with ``warm_start=False``.

Whole calls are calls of `decode` with its defaults, beside PyMaxflow's graph, flow and segments.

    STRUCTSOLVE_DATA=... python benchmarks/cuts.py
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import process_time
from typing import Any

import numpy as np
from common import header, ratio, structsolve_or_none, table
from datasets import data_path

# Values with a larger relative difference are not equal.
EXACT = 1e-9
# PyMaxflow does not end on infinite capacities; this exceeds any cut of the models here.
ENOUGH = 1e7


@dataclass(frozen=True)
class CutProblem:
    """Arcs with capacities both ways, and capacities from the source and to the sink."""

    n: int
    arcs: np.ndarray
    capacities: np.ndarray
    source: np.ndarray
    sink: np.ndarray


def grid(height: int, width: int) -> np.ndarray:
    place = np.arange(height * width, dtype=np.int32).reshape(height, width)
    across = [place[:, :-1].ravel(), place[:, 1:].ravel()]
    down = [place[:-1].ravel(), place[1:].ravel()]
    return np.concatenate([np.column_stack(across), np.column_stack(down)])


def binary(arcs: np.ndarray, capacities: np.ndarray, scores: np.ndarray) -> CutProblem:
    """Score of the source's side minus the sink's, for each node."""
    source, sink = np.maximum(scores, 0), np.maximum(-scores, 0)
    return CutProblem(len(scores), arcs, capacities, source, sink)


def grids(kind: str, side: int, strength: float = 1.0) -> list[CutProblem]:
    """Node scores of variance 1; Potts terms of .5, or random capacities below 1 in each direction.

    All capacities of arcs are multiplied by `strength`; larger values make longer paths.
    """
    rng = np.random.default_rng(side)
    arcs = grid(side, side)
    potts = np.full((len(arcs), 2), 0.5)
    capacities = potts if kind == "Potts" else rng.random((len(arcs), 2))
    return [binary(arcs, strength * capacities, rng.normal(size=side * side))]


def across(height: int, width: int) -> list[CutProblem]:
    """Source on the left, sink on the right: every path is long, which is bad for trees."""
    rng = np.random.default_rng(width)
    arcs, scores = grid(height, width), np.zeros((height, width))
    scores[:, 0], scores[:, -1] = 1e3, -1e3
    return [binary(arcs, rng.random((len(arcs), 2)), scores.ravel())]


def ordered(costs: np.ndarray, edges: np.ndarray, weights: np.ndarray) -> CutProblem:
    """Costs of labels 0 to K - 1 and of |difference| on edges: n (K - 1) nodes, one cut.

    Node (v, k) is on the source's side if the label of v is more than k.
    """
    n, K = costs.shape
    place = np.arange(n * (K - 1), dtype=np.int32).reshape(n, K - 1)
    arcs = [np.stack([place[:, k - 1], place[:, k]], axis=1) for k in range(1, K - 1)]
    capacities = [np.stack([costs[:, k], np.full(n, np.inf)], axis=1) for k in range(1, K - 1)]
    arcs += [place[edges, k] for k in range(K - 1)]
    capacities += [np.stack([weights, weights], axis=1)] * (K - 1)
    source, sink = np.zeros((2, n, K - 1))
    source[:, 0] = costs[:, 0]
    sink[:, -1] += costs[:, -1]
    arrays = np.concatenate(arcs), np.concatenate(capacities)
    return CutProblem(n * (K - 1), *arrays, source.ravel(), sink.ravel())


def snakes() -> list[CutProblem]:
    """Every training picture: ordered labels, noisy costs of the truth."""
    data = np.load(data_path("mrf-snakes", "snakes.npz"))
    rng, problems, begin = np.random.default_rng(0), [], 0
    for height, width in data["shape_train"].astype(int):
        labels = data["Y_train"][begin : begin + height * width].astype(int)
        begin += height * width
        costs = np.abs(np.arange(11) - labels[:, None]) + rng.gamma(2.0, 2.0, (len(labels), 11))
        arcs = grid(height, width)
        problems.append(ordered(costs, arcs, rng.random(len(arcs))))
    return problems


def tsukuba() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    data = np.load(data_path("mrf-tsukuba", "tsukuba.npz"))
    return data["unary"].astype(float), data["edges"], data["weights"].astype(float)


def expansions(labels: list[int]) -> list[CutProblem]:
    """From the best label of each node: keep it (the source's side) or take one of `labels`."""
    costs, edges, weights = tsukuba()
    kept = costs.argmin(axis=1)
    (u, v), n = edges.T, len(costs)
    both = weights * (kept[u] != kept[v])
    problems = []
    for label in labels:
        second, first = weights * (kept[u] != label), weights * (kept[v] != label)
        scores = costs[:, label] - costs[np.arange(n), kept]
        scores += np.bincount(u, first - both, n) - np.bincount(v, first, n)
        capacities = np.stack([first + second - both, np.zeros(len(edges))], axis=1)
        problems.append(binary(edges, capacities, scores))
    return problems


def tsukuba_part() -> list[CutProblem]:
    """80 x 64 pixels with all 16 labels, at cost |difference| times the weight of the edge."""
    costs, edges, weights = tsukuba()
    taken = (np.arange(100, 180)[:, None] * 288 + np.arange(80, 144)).ravel()
    number = np.full(len(costs), -1)
    number[taken] = np.arange(len(taken))
    inside = (number[edges] >= 0).all(axis=1)
    return [ordered(costs[taken], number[edges[inside]], weights[inside])]


def with_pymaxflow(problem: CutProblem) -> tuple[float, list[float]]:
    """Value; seconds to build and to solve."""
    import maxflow

    capacities = np.minimum(problem.capacities, ENOUGH)
    begun = process_time()
    graph = maxflow.Graph[float](problem.n, len(problem.arcs))
    graph.add_nodes(problem.n)
    graph.add_edges(*problem.arcs.T, *capacities.T)
    graph.add_grid_tedges(np.arange(problem.n), problem.source, problem.sink)
    built = process_time()
    value = graph.maxflow()
    return value, [built - begun, process_time() - built]


def with_structsolve(share: float, problem: CutProblem) -> tuple[float, list[float]]:
    """Value; seconds to build, to solve, and to solve the next problem warm and cold."""
    from structsolve.algorithms.minimum_cut import CutNetwork

    times = [process_time()]
    network = CutNetwork(problem.n, problem.arcs)
    times.append(process_time())
    value = network.cut(problem.capacities, problem.source, problem.sink).value
    times.append(process_time())
    scores = problem.source - problem.sink
    scores *= 1 + share * np.random.default_rng(1).normal(size=problem.n)
    changed = problem.capacities, np.maximum(scores, 0), np.maximum(-scores, 0)
    times.append(process_time())
    warm = network.cut(*changed).value
    times.append(process_time())
    cold = network.cut(*changed, warm_start=False).value
    times.append(process_time())
    assert abs(warm - cold) <= EXACT * (1 + abs(cold))
    build, solve, _, again, anew = np.diff(times)
    return value, [build, solve, again, anew]


def timed(
    call: Callable[[CutProblem], tuple[float, list[float]]],
    problems: Sequence[CutProblem],
) -> tuple[np.ndarray, np.ndarray]:
    """Values; milliseconds of each step, all problems together."""
    answers = [call(problem) for problem in problems]
    values, seconds = zip(*answers)
    return np.array(values), 1e3 * np.sum(seconds, axis=0)


def best_of(
    calls: list[Callable[[CutProblem], tuple[float, list[float]]]],
    problems: Sequence[CutProblem],
    rounds: int,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Values and least times of each; the calls take turns because the load changes."""
    runs = [[timed(call, problems) for call in calls] for _ in range(rounds)]
    return [(runs[0][i][0], np.min([run[i][1] for run in runs], axis=0)) for i in range(len(calls))]


def whole_calls(sides: Sequence[int], rounds: int) -> list[list[Any]]:
    """`decode` of pictures of two labels beside PyMaxflow code, each with fresh arrays."""
    import maxflow

    from structsolve.plugins.mrf import decode, grid_edges

    eight = np.array([[0, 0, 0], [0, 0, 1], [1, 1, 1]])

    def ours(scores: np.ndarray, edges: np.ndarray, weights: Any) -> float:
        table = np.eye(2) if weights is not None else 0.5 * np.eye(2)
        return decode(scores.reshape(-1, 2), edges, table, weights=weights).value

    def theirs(scores: np.ndarray, edges: np.ndarray, weights: Any) -> float:
        shape = scores.shape[:2]
        graph = maxflow.Graph[float](scores.size // 2, len(edges))
        nodes = graph.add_grid_nodes(shape)
        if weights is not None:
            graph.add_edges(*edges.T, weights, weights)
        elif len(edges) > scores.size:
            graph.add_grid_edges(nodes, 0.5, structure=eight, symmetric=True)
        else:
            graph.add_grid_edges(nodes, 0.5)
        graph.add_grid_tedges(nodes, scores[..., 1], scores[..., 0])
        graph.maxflow()
        labels = (~graph.get_grid_segments(nodes)).ravel()
        agree = labels[edges[:, 0]] == labels[edges[:, 1]]
        pairs = agree.sum() * 0.5 if weights is None else weights[agree].sum()
        return float(np.where(labels, scores[..., 1].ravel(), scores[..., 0].ravel()).sum() + pairs)

    rows = []
    for side in sides:
        for neighbours in (4, 8):
            edges = grid_edges(side, side, neighbours)
            for kind in ("uniform", "per edge"):
                spent = []
                for r in range(rounds):
                    rng = np.random.default_rng(r)
                    weights = rng.random(len(edges)) if kind == "per edge" else None
                    scores = rng.normal(size=(side, side, 2))
                    values, times = [], []
                    turn = 1 - 2 * (r % 2)  # who comes first clears pages for both
                    for call in (theirs, ours)[::turn]:
                        begun = process_time()
                        values.append(call(scores.copy(), edges.copy(), weights))
                        times.append(process_time() - begun)
                    assert np.isclose(*values, rtol=EXACT)
                    spent.append(times[::turn])
                peer, own = 1e3 * np.median(spent, axis=0)
                rows.append([f"{side} x {side}", neighbours, kind, peer, own, own / peer])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sides", type=int, nargs="+", default=[50, 128, 256, 512])
    parser.add_argument("--pictures", type=int, nargs="+", default=[128, 256, 512, 1024])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--share", type=float, default=0.02, help="how much nodes change")
    args = parser.parse_args()
    header("Minimum cuts against PyMaxflow, milliseconds")
    ours = structsolve_or_none() is not None
    cases: list[tuple[str, Callable[[], list[CutProblem]]]] = []
    for kind in ("Potts", "random"):
        for side in args.sides:
            cases.append((f"{kind} grid {side} x {side}", partial(grids, kind, side)))
    cases += [
        ("random grid 256 x 256, arcs 3 times as strong", partial(grids, "random", 256, 3.0)),
        ("random grid 50 x 150, from left to right", partial(across, 50, 150)),
        ("200 snakes, 11 labels", snakes),
        ("tsukuba, expansions of 16 labels", partial(expansions, list(range(16)))),
        ("part of tsukuba, 16 labels", tsukuba_part),
    ]
    rows = []
    calls: list[Any] = [with_pymaxflow, partial(with_structsolve, args.share)][: 1 + ours]
    for name, make in cases:
        problems = make()
        (truth, peer), *rest = best_of(calls, problems, args.rounds)
        row = [name, sum(problem.n for problem in problems), *peer]
        for values, (build, solve, warm, cold) in rest:
            assert np.allclose(values, truth, rtol=EXACT, atol=EXACT)
            row += [build, solve, ratio(peer.sum(), build + solve), warm, cold]
        rows.append(row)
    columns = ["cut", "nodes", "PyMaxflow builds", "solves"]
    columns += ["we build", "solve", "over ours", "warm", "cold"] * ours
    print(table(columns, rows))
    if ours:
        print("### Whole calls: scores in, labels out\n")
        columns = ["picture", "neighbours", "weights", "PyMaxflow", "decode", "decode / PyMaxflow"]
        print(table(columns, whole_calls(args.pictures, args.rounds)))


if __name__ == "__main__":
    main()
