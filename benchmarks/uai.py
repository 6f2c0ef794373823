"""Decoders of graphs on the UAI models: bounds, best labelings, and times.

Scores are natural logarithms of the networks' products.  The optimum is that of
``oracle="exact"``, which eliminates variables if the graph is narrow enough; the relaxation is the
linear program over the local polytope, by HiGHS.  toulbar2 reads the same file and searches under a
time limit; the table has its best labeling and its proved bound.  The set "generated" has factors
over three variables and more, which are nodes to our decoders and factors to toulbar2.
"""

from __future__ import annotations

import argparse
import gzip
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import header, structsolve_or_none, table
from scipy import sparse
from scipy.optimize import linprog

SETS = ("uai-grids", "uai-segmentation", "uai-objectdetection", "generated")
WIDEST = 2**22  # entries of a table of variable elimination
LEAST = 0.1  # seconds for which a call is repeated
COLUMNS = [
    "model",
    "optimum",
    "TRW-S, double: bound",
    "labeling",
    "ms",
    "local search after it",
    "ms",
    "roof duality bound",
    "halves",
    "ms",
    "LP (HiGHS)",
    "ms",
    "search",
    "bound",
    "ms",
    "elimination, ms",
    'oracle="exact", ms',
    "toulbar2",
    "bound",
    "ms",
]


def relaxation(model: Any) -> float:
    """Maximum over the local polytope: one variable per state and per pair of states."""
    n_unary, n_pair = len(model.unary), len(model.pair)
    left, right = model.states[model.ends[:, 0]], model.states[model.ends[:, 1]]
    size = left * right
    edge = np.repeat(np.arange(len(size)), size)
    place = np.arange(n_pair) - np.repeat(model.pair_at[:-1], size)
    s, t = place // right[edge], place % right[edge]
    # Rows: one per node, then one per state at the first end of each edge, then at the second.
    first_at = np.concatenate([[0], np.cumsum(left)])
    second_at = first_at[-1] + np.concatenate([[0], np.cumsum(right)])
    n = len(model.states)
    nodes = np.repeat(np.arange(n), model.states)
    ends = [np.repeat(model.unary_at[model.ends[:, i]], (left, right)[i]) for i in (0, 1)]
    within = [np.arange(k.sum()) - np.repeat(np.cumsum(k) - k, k) for k in (left, right)]
    rows = [nodes, n + first_at[edge] + s, n + second_at[edge] + t]
    rows += [n + np.arange(first_at[-1]), n + first_at[-1] + np.arange(len(ends[1]))]
    pair_columns = n_unary + np.arange(n_pair)
    columns = [np.arange(n_unary), pair_columns, pair_columns]
    columns += [ends[0] + within[0], ends[1] + within[1]]
    signs = [np.ones(n_unary), -np.ones(2 * n_pair), np.ones(len(ends[0]) + len(ends[1]))]
    shape = (n + int(second_at[-1]), n_unary + n_pair)
    index = np.concatenate(rows), np.concatenate(columns)
    matrix = sparse.csr_matrix((np.concatenate(signs), index), shape=shape)
    scores = np.concatenate([model.unary, model.pair])
    never = np.isneginf(scores)
    limits = np.stack([np.zeros(len(scores)), np.where(never, 0, 1)], axis=1)
    wanted = np.concatenate([np.ones(n), np.zeros(shape[0] - n)])
    answer = linprog(np.where(never, 0, -scores), A_eq=matrix, b_eq=wanted, bounds=limits)
    return -answer.fun if answer.status == 0 else float("nan")


def toulbar2(path: Path, seconds: int) -> tuple[np.ndarray, float, float] | None:
    """Best labeling, gap to its bound, milliseconds; None without toulbar2."""
    try:
        import pytoulbar2
    except ImportError:
        return None
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "network.uai")  # toulbar2 checks the suffix, and reads no gzip
        text.write_bytes(gzip.decompress(path.read_bytes()))
        spent, calls = 0.0, 0
        while spent < LEAST:  # a search uses up its network; reading is not counted, as for ours
            network = pytoulbar2.CFN(resolution=6)
            network.Read(str(text))
            # Its timer stays; some systems then count the time of processes in ticks of 4 ms.
            begun = time.thread_time()
            network.Solve(timeLimit=seconds)
            spent, calls = spent + time.thread_time() - begun, calls + 1
    cost, label = network.GetSolutions()[-1]
    # toulbar2's costs are logarithms times an internal factor.
    problem = network.CFN.wcsp
    one, two = (problem.Cost2LogProb(problem.DoubletoCost(x)) for x in (1.0, 2.0))
    left = (one - two) * max(0.0, cost - network.GetDDualBound())
    return np.array(label), left, 1e3 * spent / calls


def completed(network: Any, label: np.ndarray) -> np.ndarray:
    """A labeling of all nodes; nodes of factors get the entry given by their variables."""
    scores = [unary.copy() for unary in network.unary]
    for (u, v), agreement in zip(network.ends, network.pair):
        if v >= network.n_variables:
            scores[v] += agreement[label[u]]
    rest = [int(row.argmax()) for row in scores[network.n_variables :]]
    return np.concatenate([label, rest]).astype(int)


def generate(folder: Path) -> None:
    """Networks with larger factors: squares of a grid, triples, and parity checks under noise."""
    rng = np.random.default_rng(0)
    cell = np.arange(64).reshape(8, 8)
    squares = np.stack([cell[:-1, :-1], cell[:-1, 1:], cell[1:, :-1], cell[1:, 1:]], axis=-1)
    triples = [rng.permutation(24)[:3] for _ in range(36)]
    checks = [np.flatnonzero(row) for row in regular_checks(rng, 48, 24, 3)]
    parity = {d: 1.0 - np.indices((2,) * d).sum(axis=0) % 2 for d in map(len, checks)}
    sets: dict[str, tuple[int, int, list[tuple[np.ndarray, np.ndarray]]]] = {
        "squares_8x8": (64, 2, [(s, np.exp(rng.normal(size=16))) for s in squares.reshape(-1, 4)]),
        "triples_24": (24, 3, [(s, np.exp(2 * rng.normal(size=27))) for s in triples]),
        "parity_48": (48, 2, [(check, parity[len(check)]) for check in checks]),
    }
    for name, (n, k, factors) in sets.items():
        factors += [(np.array([v]), np.exp(rng.normal(size=k))) for v in range(n)]
        lines = [f"MARKOV {n}", " ".join([str(k)] * n), str(len(factors))]
        lines += [" ".join(map(str, [len(scope), *scope])) for scope, _ in factors]
        lines += [
            " ".join([str(table.size), *(f"{entry:.6f}" for entry in table.ravel())])
            for _, table in factors
        ]
        (folder / f"{name}.uai.gz").write_bytes(gzip.compress("\n".join(lines).encode()))


def regular_checks(rng: np.random.Generator, n: int, checks: int, each: int) -> np.ndarray:
    """A 0/1 matrix with `each` ones in every column and nearly equal row sums."""
    matrix = np.zeros((checks, n), dtype=int)
    for v in range(n):
        lightest = np.lexsort([rng.random(checks), matrix.sum(axis=1)])
        matrix[lightest[:each], v] = 1
    return matrix


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """The result, and CPU milliseconds of a call."""
    calls = 0
    begun, begin = time.thread_time(), time.perf_counter()
    while calls == 0 or time.perf_counter() - begin < LEAST:
        result = call()
        calls += 1
    return result, 1e3 * (time.thread_time() - begun) / calls


def row(path: Path, steps: float, largest_lp: int, seconds: int) -> list[Any]:
    from structsolve.plugins.mrf import decode
    from structsolve.plugins.mrf.cuts._roof_duality import roof_duality
    from structsolve.plugins.mrf.elimination._elimination import best_labelings
    from structsolve.plugins.mrf.exact._search import ExactSearch
    from structsolve.plugins.mrf.local_search._climb import local_search
    from structsolve.plugins.mrf.messages._trws import tree_reweighted
    from structsolve.plugins.mrf.tables._model import GraphModel
    from structsolve.plugins.mrf.uai import read_uai

    # No variable is observed in these sets.
    network = read_uai(path)
    model, constant = GraphModel(*network[:4]), network.constant

    def searched() -> tuple[Any, float, float, bool]:
        search = ExactSearch(model)
        proven = search.advance(0) or search.advance(steps)
        return search.label, search.value, search.bound, proven

    (label, value, bound, _), trws_ms = timed(lambda: tree_reweighted(model))
    (_, better), local_ms = timed(lambda: local_search(model, label))
    (_, best, proof, proven), exact_ms = timed(searched)
    (labels, values), narrow_ms = timed(lambda: best_labelings(model, WIDEST, np.inf))
    narrow, narrow_ms = (None, None) if labels is None else (float(values[0]), narrow_ms)
    pairs = [
        model.pair[start : start + model.states[u] * model.states[v]].reshape(model.states[u], -1)
        for (u, v), start in zip(model.ends, model.pair_at)
    ]
    unary = np.split(model.unary, model.unary_at[1:-1])
    decoded, decode_ms = timed(lambda: decode(unary, model.ends, pairs, oracle="exact"))
    optimum = decoded.value + constant
    for value_of in [narrow] * (narrow is not None) + [best] * proven:
        assert abs(value_of - decoded.value) <= 1e-9 * abs(decoded.value), "optima differ"
    cells: list[Any] = [path.name.removesuffix(".uai.gz"), optimum]
    cells += [bound + constant, value + constant, trws_ms, better + constant, local_ms]
    if model.states.max() <= 2:
        (roof, state, _), roof_ms = timed(lambda: roof_duality(model))
        cells += [roof + constant, f"{int((state == 2).sum())} of {len(state)}", roof_ms]
    else:
        cells += [None] * 3
    if len(model.pair) <= largest_lp:
        relaxed, lp_ms = timed(lambda: relaxation(model))
        cells += [relaxed + constant, lp_ms]
    else:
        cells += [None] * 2
    cells += [best + constant, proof + constant, exact_ms, narrow_ms, decode_ms]
    peer = toulbar2(path, seconds)
    if peer is None:
        return [*cells, None, None, None]
    theirs, open_gap, their_ms = peer
    reached = model.score(completed(network, theirs))
    # toulbar2's costs have six decimals per table.
    assert reached <= decoded.bound + 1e-3, "toulbar2 is above our bound"
    return [*cells, reached + constant, reached + open_gap + constant, their_ms]


def show(cells: list[Any]) -> list[Any]:
    """Scores with four decimals, since bounds differ in late digits; times unchanged."""
    times = {i for i, name in enumerate(COLUMNS) if name.endswith("ms")}
    return [
        f"{cell:.4f}" if isinstance(cell, float) and i not in times else cell
        for i, cell in enumerate(cells)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=float, default=1e9, help="limit of the search")
    parser.add_argument("--largest-lp", type=int, default=30_000, help="pairs of states")
    parser.add_argument("--seconds", type=int, default=8, help="toulbar2's, for each model")
    parser.add_argument("--only", nargs="*", choices=SETS, default=SETS)
    args = parser.parse_args()
    header("Decoders of graphs on UAI models")
    if structsolve_or_none() is None:
        return
    limits = args.steps, args.largest_lp, args.seconds
    with tempfile.TemporaryDirectory() as generated:
        generate(Path(generated))
        for name in args.only:
            data = os.environ["STRUCTSOLVE_DATA"]
            folder = Path(generated) if name == "generated" else Path(data, name)
            rows = [row(path, *limits) for path in sorted(folder.glob("*.uai.gz"))]
            print(f"### {name}\n")
            print(table(COLUMNS, [show(cells) for cells in rows]), flush=True)


if __name__ == "__main__":
    main()
