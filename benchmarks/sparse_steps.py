"""Milliseconds of a pass over sparse rows as columns grow, at the same non-zeros a row, per solver.

2000 rows (in chains of five where the structure is one) have 30 non-zeros in random columns.  In
the first table these are 5000 words, hashed into so many columns; in the second each non-zero is in
any column, so that the columns in use, and with them the weights to learn, grow up to 60,000.  A
time is the median of the passes after the first of a fit, in CPU milliseconds, cheap passes
included.

    python benchmarks/sparse_steps.py [--columns 10000 1000000] [--only bcfw sgd]
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from common import header, structsolve_or_none, table

ROWS, NONZEROS, WORDS, PASSES = 2000, 30, 5000, 12
# Structure, solver and surrogate of each kind of steps.
TASKS = {
    "bcfw, simplex": ("multiclass", "bcfw", "margin"),
    "bcfw, box": ("multilabel", "bcfw", "margin"),
    "bcfw, hull": ("dag", "bcfw", "margin"),
    "bcfw, kept cuts": ("chain", "bcfw", "margin"),
    "bcfw, batches": ("chain", "batch", "margin"),
    "gbcfw": ("chain", "gbcfw", "crf"),
    "sdca": ("chain", "sdca", "crf"),
    "sgd": ("chain", "sgd", "margin"),
    "admm": ("chain", "admm", "margin"),
    "cutting-plane": ("chain", "cutting-plane", "margin"),
    "lbfgs": ("chain", "lbfgs", "crf"),
}


def made(kind: str, columns: int, words: int) -> tuple[Any, Any, Any]:
    """Structure, sparse rows and random labels."""
    import networkx as nx
    import scipy.sparse as sp

    from structsolve import get_structure

    rng = np.random.default_rng(0)
    index = rng.integers(0, columns, words)[rng.integers(0, words, ROWS * NONZEROS)]
    ends = np.arange(ROWS + 1) * NONZEROS
    X = sp.csr_matrix((rng.normal(size=len(index)), index, ends), shape=(ROWS, columns))
    X.sum_duplicates()
    y, Y = rng.integers(0, 4, ROWS), rng.integers(0, 2, (ROWS, 6))
    if kind == "chain":
        starts = range(0, ROWS, 5)
        return kind, [X[k : k + 5] for k in starts], [y[k : k + 5] for k in starts]
    if kind == "multiclass":
        return kind, X, y
    if kind == "multilabel":
        return get_structure(kind, edges="none"), X, Y
    graph = nx.DiGraph([(0, 1), (0, 2), (1, 3), (1, 4), (2, 5)])
    return get_structure(kind, hierarchy=graph, close=True), X, Y


def milliseconds(name: str, columns: int, words: int) -> float:
    from structsolve import StructuredSVM
    from structsolve.solvers import BCFW

    kind, solver, surrogate = TASKS[name]
    structure, X, Y = made(kind, columns, words)
    ticks: list[float] = []
    StructuredSVM(
        structure,
        surrogate=surrogate,
        solver=BCFW(batch=16) if solver == "batch" else solver,
        alpha=1e-3,
        tol=0.0,
        max_iter=PASSES,
        callbacks=[lambda _: ticks.append(time.process_time())],
    ).fit(X, Y)
    return 1e3 * float(np.median(np.diff(ticks)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--columns", nargs="+", type=int, default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=list(TASKS), default=list(TASKS))
    args = parser.parse_args()
    header(f"A pass over {ROWS} sparse rows as columns grow")
    if structsolve_or_none() is None:
        return
    warnings.simplefilter("ignore")
    titles = [*(f"{columns:,} [ms]" for columns in args.columns), "last / first"]
    for words, what in ((WORDS, f"{WORDS} words, hashed"), (1 << 24, "Any column")):
        rows: list[list[Any]] = []
        for name in args.only:
            rounds = [
                [milliseconds(name, columns, words) for columns in args.columns]
                for _ in range(args.repeat)
            ]
            times = [min(column) for column in zip(*rounds)]
            rows.append([name, *times, times[-1] / times[0]])
        print(f"{what}:\n\n{table(['steps', *titles], rows)}", flush=True)


if __name__ == "__main__":
    main()
