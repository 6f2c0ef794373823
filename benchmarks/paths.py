"""Shortest paths through maps of terrain: the oracle against SciPy's and networkx's Dijkstra.

All maps of a batch are solved from their costs, 8 neighbours; "monotone" ones have no cycles.  Ours
is `structsolve.batch.argmax`, as layers call it, with the graphs packed once; SciPy gets one CSR
matrix per map, whose data are written for each call.  The k best paths are compared with networkx's
`shortest_simple_paths`.  Costs of all paths agree, or the script fails.

    python benchmarks/paths.py
"""

from __future__ import annotations

import argparse
from itertools import islice
from typing import Any

import networkx as nx
import numpy as np
from common import header, median_time, table
from scipy import sparse
from scipy.sparse import csgraph

from structsolve import batch
from structsolve.plugins.path import PathStructure, grid_steps


def of_scipy(costs: np.ndarray, monotone: bool) -> np.ndarray:
    n, h, w = costs.shape
    tails, heads = grid_steps(h, w, 8, monotone)
    graph = sparse.csr_matrix((np.ones(len(tails)), (tails, heads)), (h * w, h * w))
    answers = np.empty(n)
    for i, flat in enumerate(costs.reshape(n, -1)):
        graph.data[:] = flat[graph.indices]
        distance, before = csgraph.dijkstra(graph, indices=0, return_predecessors=True)
        path = [h * w - 1]
        while path[-1]:
            path.append(before[path[-1]])
        answers[i] = distance[-1] + flat[0]
    return answers


def network(flat: np.ndarray, tails: np.ndarray, heads: np.ndarray) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_weighted_edges_from(zip(tails.tolist(), heads.tolist(), flat[heads].tolist()))
    return graph


def of_networkx(costs: np.ndarray, monotone: bool) -> np.ndarray:
    n, h, w = costs.shape
    steps = grid_steps(h, w, 8, monotone)
    graph = network(costs[0].ravel(), *steps)
    answers = []
    for flat in costs.reshape(n, -1):
        for u, v in graph.edges:
            graph[u][v]["weight"] = flat[v]
        answers.append(flat[0] + nx.dijkstra_path_length(graph, 0, h * w - 1))
    return np.array(answers)


def one_path(size: int, monotone: bool, n: int, rng: np.random.Generator) -> list[Any]:
    costs = rng.exponential(size=(n, size, size)) + 0.01
    space = batch.score_space(PathStructure(monotone=monotone))
    examples = space.pack_sizes([(size, size)] * n)
    scores = batch.Scores(-costs.ravel(), examples=examples)
    ours, _, answer = median_time(lambda: batch.argmax(space, scores, n_jobs=1), 5)
    scipy, _, theirs = median_time(lambda: of_scipy(costs, monotone), 5)
    np.testing.assert_allclose(-answer[1], theirs, rtol=1e-12)
    few = costs[: max(1, n // 10)]
    slow, _, theirs = median_time(lambda: of_networkx(few, monotone), 1)
    np.testing.assert_allclose(-answer[1][: len(few)], theirs, rtol=1e-12)
    slow *= n / len(few)
    times = [f"{1e6 * t / n:.1f}" for t in (ours, scipy, slow)]
    name = f"{size} x {size}, " + ("monotone" if monotone else "any steps")
    return [name, *times, f"{scipy / ours:.1f}", f"{slow / ours:.0f}"]


def k_best(size: int, k: int, n: int, rng: np.random.Generator) -> list[Any]:
    steps = grid_steps(size, size, 8)
    costs = rng.exponential(size=(n, size, size)) + 0.01
    space = batch.score_space("path")
    examples = space.pack_sizes([(size, size)] * n)
    scores = batch.Scores(-costs.ravel(), examples=examples)
    ours, _, answer = median_time(lambda: batch.k_best(space, scores, k), 5)

    def yen() -> list[Any]:
        values = []
        for flat in costs.reshape(n, -1):
            paths = nx.shortest_simple_paths(network(flat, *steps), 0, size**2 - 1, "weight")
            values.append([flat[path].sum() for path in islice(paths, k)])
        return values

    slow, _, theirs = median_time(yen, 1)
    np.testing.assert_allclose(-np.concatenate([*answer[1]]), np.ravel(theirs), rtol=1e-12)
    times = [f"{1e3 * t / n:.2f}" for t in (ours, slow)]
    return [f"{k} best, {size} x {size}", *times, f"{slow / ours:.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--maps", type=int, default=200)
    args = parser.parse_args()
    header("Shortest paths")
    rng = np.random.default_rng(0)
    rows = [one_path(size, m, args.maps, rng) for size in (12, 30) for m in (False, True)]
    print(
        table(
            ["map", "us ours", "us SciPy", "us networkx", "SciPy / ours", "networkx / ours"], rows
        )
    )
    rows = [k_best(12, 10, 3, rng)]
    print(table(["k best paths", "ms ours", "ms networkx", "networkx / ours"], rows))


if __name__ == "__main__":
    main()
