"""Decoders of graphs on the UAI models: bounds, best labelings, and what they cost.

Scores are natural logarithms of the networks' products.  The optimum is the answer of
``oracle="exact"``, which eliminates where the graph is narrow enough; the relaxation is the linear
program over the local polytope, by HiGHS.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import Clock, header, structsolve_or_none, table
from scipy import sparse
from scipy.optimize import linprog

SETS = ("uai-grids", "uai-segmentation", "uai-objectdetection")
WIDEST = 2**22  # entries of a table of variable elimination
COLUMNS = [
    "model",
    "optimum",
    "TRW-S bound",
    "labeling",
    "ms",
    "local search after it",
    "ms",
    "roof duality bound",
    "halves",
    "ms",
    "LP (HiGHS)",
    "ms",
    "branch and bound",
    "bound",
    "ms",
    "elimination, ms",
    'oracle="exact", ms',
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


def timed(call: Callable[[], Any], repeat: int) -> tuple[Any, float]:
    """The result, and CPU milliseconds of the fastest of some calls."""
    best = np.inf
    for _ in range(repeat):
        with Clock() as clock:
            result = call()
        best = min(best, clock.cpu)
    return result, 1e3 * best


def row(path: Path, repeat: int, node_limit: int, largest_lp: int) -> list[Any]:
    from structsolve.io.uai import read_uai
    from structsolve.plugins.mrf import decode
    from structsolve.plugins.mrf._branch_and_bound import branch_and_bound
    from structsolve.plugins.mrf._local_search import local_search
    from structsolve.plugins.mrf._model import GraphModel
    from structsolve.plugins.mrf._roof_duality import roof_duality
    from structsolve.plugins.mrf._trws import tree_reweighted
    from structsolve.plugins.mrf.elimination import eliminate

    network = read_uai(path, str(path).replace(".uai.gz", ".uai.evid.gz"))
    model, constant = GraphModel(*network[:4]), network.constant
    (label, value, bound, _), trws_ms = timed(lambda: tree_reweighted(model), repeat)
    (_, better), local_ms = timed(lambda: local_search(model, label), repeat)
    (_, best, proof, proven), exact_ms = timed(lambda: branch_and_bound(model, node_limit), 1)
    try:
        (_, narrow), narrow_ms = timed(lambda: eliminate(model, WIDEST), 1)
    except ValueError:
        narrow, narrow_ms = None, None
    pairs = [
        model.pair[start : start + model.states[u] * model.states[v]].reshape(model.states[u], -1)
        for (u, v), start in zip(model.ends, model.pair_at)
    ]
    unary = np.split(model.unary, model.unary_at[1:-1])
    decoded, decode_ms = timed(lambda: decode(unary, model.ends, pairs, oracle="exact"), 1)
    optimum = decoded.value + constant
    for value_of in [narrow] * (narrow is not None) + [best] * proven:
        assert abs(value_of - decoded.value) <= 1e-9 * abs(decoded.value), "optima differ"
    cells: list[Any] = [path.name.removesuffix(".uai.gz"), optimum]
    cells += [bound + constant, value + constant, trws_ms, better + constant, local_ms]
    if model.states.max() <= 2:
        (roof, state, _), roof_ms = timed(lambda: roof_duality(model), repeat)
        cells += [roof + constant, f"{int((state == 2).sum())} of {len(state)}", roof_ms]
    else:
        cells += [None] * 3
    if len(model.pair) <= largest_lp:
        relaxed, lp_ms = timed(lambda: relaxation(model), 1)
        cells += [relaxed + constant, lp_ms]
    else:
        cells += [None] * 2
    return [*cells, best + constant, proof + constant, exact_ms, narrow_ms, decode_ms]


def show(cells: list[Any]) -> list[Any]:
    """Scores with four decimals, as bounds differ late; times as the table has them."""
    times = {i for i, name in enumerate(COLUMNS) if name.endswith("ms")}
    return [
        f"{cell:.4f}" if isinstance(cell, float) and i not in times else cell
        for i, cell in enumerate(cells)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--node-limit", type=int, default=10_000_000)
    parser.add_argument("--largest-lp", type=int, default=30_000, help="pairs of states")
    parser.add_argument("--only", nargs="*", choices=SETS, default=SETS)
    args = parser.parse_args()
    header("Decoders of graphs on UAI models")
    if structsolve_or_none() is None:
        return
    folder = Path(os.environ["STRUCTSOLVE_DATA"])
    for name in args.only:
        paths = sorted((folder / name).glob("*.uai.gz"))
        rows = [row(path, args.repeat, args.node_limit, args.largest_lp) for path in paths]
        print(f"### {name}\n")
        print(table(COLUMNS, [show(cells) for cells in rows]), flush=True)


if __name__ == "__main__":
    main()
