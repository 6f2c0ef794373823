"""Every decoder of graphs on every kind of graph: values, milliseconds, where it is ahead.

Rows: the UAI sets, pictures, superpixels, label sets, and 1,000 random graphs of eight kinds.
Large graphs are decoded by `decode` with fresh arrays ("exact" stops after some CPU seconds), small
ones by calls of an oracle made before, as in training and prediction.  A loss is what a value
misses to the best one, in percent of what the best one gains over each node's own best state.
"lp" takes part up to a number of pairs of states.  Times are the least CPU time of a few calls.

The last table counts for each decoder the rows where it is ahead by more than 5 %: in value of all
others; in time of all others that reach the best value ("time"), or come within 5 % of it
("quick"); or as the only one that proves its labels.  "auto" chooses among them; it is measured
beside them.  "trws" and "expansion" are the same where TRW-S proves its label: neither is ahead of
the other there.

    STRUCTSOLVE_DATA=... python benchmarks/decoders.py
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from common import header, structsolve_or_none, table

DECODERS = ("exact", "mincut", "roof-duality", "trws", "expansion", "lp")
UAI = ("uai-grids", "uai-segmentation", "uai-objectdetection")
SAME = ("trws", "expansion")
# Reached: a loss in percent.  Ahead: 5 %.
REACHED, AHEAD, PROVEN = 0.01, 0.05, 1e-7
# Seconds up to which "exact" is measured as an oracle.
SHORT = 0.05


class Graph(NamedTuple):
    unary: Any  # array, or a list of arrays
    edges: np.ndarray
    pair: Any
    weights: Any = None


def uai(folder: Path) -> Iterator[Graph]:
    from structsolve.plugins.mrf.uai import read_uai

    for path in sorted(folder.glob("*.uai.gz")):
        network = read_uai(path)
        yield Graph(network.unary, network.ends, network.pair)


def pictures(rng: Any) -> Iterator[tuple[str, Graph]]:
    from scipy.ndimage import gaussian_filter

    from structsolve.plugins.mrf import grid_edges

    def noisy(side: int, states: int, noise: float = 1.5) -> np.ndarray:
        fields = [gaussian_filter(rng.normal(size=(side, side)), 4) for _ in range(states)]
        truth = np.argmax(fields, axis=0).ravel()
        return np.eye(states)[truth] + noise * rng.normal(size=(side * side, states))

    edges = grid_edges(128, 128, 4)
    yield "2 states, Potts, 128 x 128", Graph(noisy(128, 2), edges, 0.8 * np.eye(2))
    yield (
        "2 states, tables of both signs, 64 x 64",
        Graph(noisy(64, 2), grid_edges(64, 64, 4), rng.normal(size=(2 * 64 * 63, 2, 2))),
    )
    contrast = rng.random(len(edges))
    yield (
        "5 states, Potts with contrast, 128 x 128",
        Graph(noisy(128, 5), edges, np.eye(5), contrast),
    )
    noise = Graph(rng.random((128 * 128, 5)), edges, 0.5 * np.eye(5))
    yield "5 states, Potts, uniform noise, 128 x 128", noise
    far = np.abs(np.subtract.outer(np.arange(16), np.arange(16)))
    yield (
        "16 states, truncated linear, 64 x 64",
        Graph(noisy(64, 16, 0.5), grid_edges(64, 64, 4), -0.4 * np.minimum(far, 3)),
    )
    yield (
        "8 states, linear, 64 x 64",
        Graph(noisy(64, 8), grid_edges(64, 64, 4), -0.3 * far[:8, :8]),
    )
    yield (
        "4 states, random tables, 32 x 32",
        Graph(
            rng.normal(size=(1024, 4)), grid_edges(32, 32, 4), rng.normal(size=(2 * 32 * 31, 4, 4))
        ),
    )
    yield (
        "4 states, random tables, 7 x 300",
        Graph(rng.normal(size=(2100, 4)), grid_edges(7, 300, 4), rng.normal(size=(3893, 4, 4))),
    )


def superpixels(rng: Any, n: int, states: int, strength: float) -> Graph:
    """Neighbours of a Delaunay triangulation; contrast, and what goes with what."""
    from scipy.spatial import Delaunay

    corners = Delaunay(rng.random((n, 2))).simplices
    pairs = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]])
    edges = np.unique(np.sort(pairs, axis=1), axis=0)
    tables = rng.random(len(edges))[:, None, None] * np.eye(states)
    tables = strength * (tables + 0.3 * rng.normal(size=(states, states)))
    return Graph(rng.normal(size=(n, states)), edges, tables)


def complete(n: int) -> np.ndarray:
    return np.argwhere(np.triu(np.ones((n, n)), 1))


def branching(rng: Any, n: int) -> np.ndarray:
    return np.array([[rng.integers(v), v] for v in range(1, n)])


def label_sets(rng: Any) -> Iterator[tuple[str, list[Graph]]]:
    """As plugins/multilabel makes them: two states, a score of each label and each pair."""
    for name, n, edges in (
        ("6 labels, all pairs", 6, complete(6)),
        ("14 labels, all pairs", 14, complete(14)),
        ("50 labels, all pairs", 50, complete(50)),
        ("14 labels, tree", 14, branching(rng, 14)),
        ("100 labels, tree", 100, branching(rng, 100)),
    ):
        graphs = []
        for _ in range(20):
            both = np.zeros((len(edges), 2, 2))
            both[:, 1, 1] = rng.normal(size=len(edges)) * (2 / np.sqrt(n))
            field = rng.normal(size=n) - 0.5
            graphs.append(Graph(np.column_stack([np.zeros(n), field]), edges, both))
        yield name, graphs


def random_graph(rng: Any, kind: str) -> Graph:
    """A small graph of one of eight kinds."""
    from structsolve.plugins.mrf import grid_edges

    n, K, edges = 25, int(rng.integers(2, 5)), None
    if kind == "trees":
        edges = branching(rng, n)
    elif kind == "narrow":
        n, edges = 30, grid_edges(3, 10, 4)
    elif kind == "dense":
        n, K = 12, int(rng.integers(2, 4))
        edges = complete(n)
    elif kind in ("two states, attractive", "Potts"):
        n, edges = 36, grid_edges(6, 6, 8)
        K = 2 if kind != "Potts" else K + 1
    elif kind == "two states, both signs":
        n, K, edges = 36, 2, grid_edges(6, 6, 8)
    if edges is None:
        pairs = complete(n)
        edges = pairs[rng.permutation(len(pairs))[: 2 * n]]
    tables = rng.normal(size=(len(edges), K, K))
    if kind in ("two states, attractive", "Potts"):
        tables = rng.random(len(edges))[:, None, None] * np.eye(K)
    if kind == "forbidden":
        tables[rng.random(tables.shape) < 0.15] = -np.inf
    return Graph(rng.normal(size=(n, K)), edges, tables)


KINDS = ("trees", "narrow", "dense", "two states, attractive", "two states, both signs", "Potts",
         "general tables", "forbidden")  # fmt: skip


def own_best(graph: Graph) -> float:
    """The score of every node's own best state."""
    label = np.array([np.argmax(row) for row in graph.unary])
    u, v = label[graph.edges].T
    tables = np.asarray(graph.pair) if not isinstance(graph.pair, list) else None
    if tables is None:
        pairs = np.array([t[a, b] for t, a, b in zip(graph.pair, u, v)])
    else:
        pairs = tables[u, v] if tables.ndim == 2 else tables[np.arange(len(u)), u, v]
    weights = 1.0 if graph.weights is None else graph.weights
    return float(sum(np.max(row) for row in graph.unary) + (weights * pairs).sum())


def by_decode(graph: Graph, name: str, limit: float) -> tuple[float, float, float]:
    """Value, bound, seconds."""
    from structsolve.plugins.mrf import decode

    more = {"time_limit": limit} if name == "exact" else {}
    spent: list[float] = []
    while not spent or (len(spent) < 3 and sum(spent) < 0.1):
        begun = process_time()
        answer = decode(*graph[:3], oracle=name, weights=graph.weights, **more)
        spent.append(process_time() - begun)
    return answer.value, answer.bound, min(spent)


def by_oracle(graph: Graph, name: str, limit: float) -> tuple[float, float, float]:
    """The same of an oracle's call, which cannot be stopped."""
    from structsolve.plugins.mrf import MRFStructure
    from structsolve.structure.ask import make_layout
    from structsolve.structure.calls import argmax

    if name == "exact":
        long = by_decode(graph, name, limit)
        if long[2] > SHORT:
            return long
    n, K = graph.unary.shape
    structure = MRFStructure(graph.edges, "per-edge", n_states=[K] * n, oracle=name, directed=True)
    space = structure.score_space()
    layout = make_layout(space, space.pack([np.zeros((n, 0))]))
    theta = np.zeros(space.layout.theta_size(n, len(graph.edges)))
    views = space.layout.theta_views(theta, n, len(graph.edges))
    views["node"][:, :K] = graph.unary
    views["pair"][..., :K] = graph.pair
    oracle = space.make_oracle()(layout)
    spent: list[float] = []
    while not spent or (len(spent) < 3 and sum(spent) < 0.01):
        begun = process_time()
        _, value, bound = argmax(oracle, 0, theta)
        spent.append(process_time() - begun)
    return value, bound, min(spent)


def row(graphs: list[Graph], small: bool, limit: float, largest: int) -> dict[str, Any]:
    """Mean loss in percent, whether all labels are proven, mean ms, of each decoder."""
    cells = sum(np.size(t) for t in graphs[0].pair) if np.ndim(graphs[0].pair) != 2 else (
        len(graphs[0].edges) * np.size(graphs[0].pair))  # fmt: skip
    names = [n for n in ("auto", *DECODERS) if n != "lp" or cells <= largest]
    told: dict[str, list[tuple[float, float, float]]] = {}
    for graph in graphs:
        for name in names:
            try:
                answer = (by_oracle if small else by_decode)(graph, name, limit)
            except ValueError:  # not for these graphs
                continue
            told.setdefault(name, []).append(answer)
    told = {name: answers for name, answers in told.items() if len(answers) == len(graphs)}
    best = np.max([[value for value, _, _ in answers] for answers in told.values()], axis=0)
    base = np.array([own_best(g) for g in graphs])
    usual = np.isfinite(base) & (best > base)  # not if something is forbidden
    scale = np.where(usual, best - np.where(usual, base, 0), np.abs(best) + 1e-300)
    out = {}
    for name, answers in told.items():
        value, bound, seconds = np.array(answers).T
        with np.errstate(invalid="ignore"):
            loss = np.where(value == best, 0, 100 * (best - value) / scale)
            proven = (bound - value <= PROVEN * np.maximum(1, np.abs(value))) | (value == bound)
        out[name] = float(loss.mean()), bool(proven.all()), 1e3 * float(seconds.mean())
    return out


def ahead(answers: dict[str, Any], name: str) -> str:
    """Why a row speaks for a decoder; empty if it does not."""
    loss, proven, ms = answers[name]
    same = SAME if proven and name in SAME else (name,)
    others = {o: a for o, a in answers.items() if o not in ("auto", *same)}
    if all(o[0] > loss + 100 * AHEAD for o in others.values()):
        return "value"
    for why, most in (("time", REACHED), ("quick", 100 * AHEAD)):
        rivals = [o[2] for o in others.values() if o[0] <= most]
        if loss <= most and all(ms < (1 - AHEAD) * r for r in rivals):
            return why
    if proven and not any(o[1] for o in others.values()):
        return "proof"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=1000, help="random graphs")
    parser.add_argument("--seconds", type=float, default=4, help="limit of exact")
    parser.add_argument("--largest-lp", type=int, default=20_000, help="pairs of states")
    args = parser.parse_args()
    header("Every decoder of graphs on every kind of graph")
    if structsolve_or_none() is None:
        return
    from structsolve.plugins.mrf.exact import search

    search.time = SimpleNamespace(monotonic=process_time)  # other processes do not count
    rng = np.random.default_rng(0)
    rows: list[tuple[str, list[Graph], bool]] = []
    for name in UAI:
        for k, graph in enumerate(uai(Path(os.environ["STRUCTSOLVE_DATA"], name))):
            rows.append((f"{name} {k + 1}", [graph], False))
    rows += [(f"picture: {name}", [graph], False) for name, graph in pictures(rng)]
    for n, states, strength in ((150, 6, 1.0), (500, 21, 1.0), (500, 21, 4.0)):
        graph = superpixels(rng, n, states, strength)
        rows.append((f"superpixels: {n}, {states} states, {strength:g}", [graph], False))
    rows += [(f"label sets: {name}", graphs, True) for name, graphs in label_sets(rng)]
    for kind in KINDS:
        graphs = [random_graph(rng, kind) for _ in range(args.graphs // len(KINDS))]
        rows.append((f"random: {kind}", graphs, True))
    print("Loss in percent, * if all labels are proven to be the best; milliseconds.\n")
    print(table(["graphs", "auto", *DECODERS], []), end="")
    whys = ("value", "time", "quick", "proof")
    reasons: dict[str, dict[str, list[str]]] = {n: {why: [] for why in whys} for n in DECODERS}
    for title, graphs, small in rows:
        answers = row(graphs, small, args.seconds, args.largest_lp)
        cells: list[Any] = [title]
        for name in ("auto", *DECODERS):
            if name not in answers:
                cells.append(None)
                continue
            loss, proven, ms = answers[name]
            cells.append(f"{loss:.2f} %{' *' if proven else ''}, {ms:.3g}")
            why = ahead(answers, name) if name != "auto" else ""
            if why:
                reasons[name][why].append(title)
        print("| " + " | ".join("-" if cell is None else cell for cell in cells) + " |", flush=True)
    print("\nRows where a decoder is ahead, and the first of them.\n")
    summary = []
    for name in DECODERS:
        for why, titles in reasons[name].items():
            if titles:
                summary.append([name, why, len(titles), titles[0]])
        if not any(reasons[name].values()):
            summary.append([name, "-", 0, None])
    print(table(["decoder", "ahead in", "rows", "such as"], summary))


if __name__ == "__main__":
    main()
