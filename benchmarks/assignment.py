"""Linear assignment: our solver against SciPy's and, where it is installed, `lap`'s lapjv.

Each problem is solved many times: ours in a native loop (as training calls the oracle) and by
`assign`, which checks its argument and proves the optimum by prices; the others by their Python
functions in a Python loop.  The time is the least of several runs.  If a value differs from
SciPy's, or from the published optimum, the script ends.

    STRUCTSOLVE_DATA=... python benchmarks/assignment.py        # with `pip install lap`
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import header, ratio, structsolve_or_none, table

SIZES = (4, 6, 8, 10, 12, 14, 16, 18, 20, 30, 50, 100, 200, 400, 800)
KINDS = ("uniform", "integers to 100", "normal", "plane")
COLUMNS = ("problem", "n", "ours, µs", "assign", "SciPy", "lapjv", "SciPy/ours", "lapjv/ours")


def random_costs(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    if kind == "uniform":
        return rng.random((n, n))
    if kind == "normal":
        return rng.normal(size=(n, n))
    if kind == "plane":  # distances of points: many columns cost nearly the same
        return np.linalg.norm(rng.random((n, 1, 2)) - rng.random((1, n, 2)), axis=2)
    return rng.integers(1, 101, (n, n)).astype(float)


def least(calls: list[Callable[[int], Any]], repeat: int, runs: int) -> np.ndarray:
    """Least CPU seconds of one of `repeat` calls of each, over several runs in turn."""
    best = np.full(len(calls), np.inf)
    for _ in range(runs):
        for i, call in enumerate(calls):
            start = time.process_time()
            call(repeat)
            best[i] = min(best[i], (time.process_time() - start) / repeat)
    return best


def lapjv_or_none() -> Any:
    try:
        from lap import lapjv
    except ImportError:
        print("(lapjv skipped: the package `lap` is not installed)\n", flush=True)
        return None
    return lapjv


def times_of(problems: list[np.ndarray], lapjv: Any, optimum: float | None) -> list[float | None]:
    """Mean µs over the problems: ours, assign, SciPy, lapjv."""
    from scipy.optimize import linear_sum_assignment

    from structsolve.plugins.permutation import assign
    from structsolve.plugins.permutation._oracle import repeat_solve

    def loop(function: Callable[[np.ndarray], Any], costs: np.ndarray) -> Callable[[int], None]:
        def run(repeat: int) -> None:
            for _ in range(repeat):
                function(costs)

        return run

    total = np.zeros(4)
    for costs in problems:
        n = len(costs)
        repeat, runs = max(1, 40000 // n**2), 7
        rows, cols = linear_sum_assignment(costs)
        best = costs[rows, cols].sum()
        for value in (repeat_solve(costs, 1), assign(costs, maximize=False).value):
            if abs(value - best) > 1e-9 * n or (optimum is not None and value != optimum):
                raise SystemExit(f"n = {n}: found {value}, expected {best}, published {optimum}")
        calls: list[Callable[[int], Any]] = [
            lambda k, c=costs: repeat_solve(c, k),  # type: ignore[misc]
            loop(lambda c: assign(c, maximize=False), costs),
            loop(linear_sum_assignment, costs),
        ]
        if lapjv:
            calls.append(loop(lapjv, costs))
        total[: len(calls)] += least(calls, repeat, runs)
    if not lapjv:
        total[3] = np.nan
    return [None if np.isnan(x) else float(x) for x in 1e6 * total / len(problems)]


def published() -> Iterator[tuple[np.ndarray, float]]:
    folder = os.environ.get("STRUCTSOLVE_DATA")
    if not folder:
        print("(lap-orlib skipped: STRUCTSOLVE_DATA is not set)\n", flush=True)
        return
    with np.load(Path(folder, "lap-orlib", "assign.npz")) as data:
        for n, optimum in zip(data["n"].tolist(), data["optimum"].tolist()):
            yield data[f"cost{n}"].astype(np.float64), float(optimum)


def sparse_problems() -> None:
    """`assign` of sparse scores beside SciPy's matching, 100,000 pairs in growing squares."""
    from scipy import sparse
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    from structsolve.plugins.permutation import assign

    rng, rows = np.random.default_rng(0), []
    for n in (800, 1500, 3000, 5000):
        of_row = [np.append(rng.choice(n, 100_000 // n - 1, replace=False), i) for i in range(n)]
        row, column = np.repeat(np.arange(n), 100_000 // n), np.concatenate(of_row)
        costs = sparse.csr_array((rng.random(row.size) + 0.01, (row, column)), shape=(n, n))
        costs.sum_duplicates()
        ours = assign(costs, maximize=False)
        i, j = min_weight_full_bipartite_matching(costs)
        if abs(costs[i, j].sum() - ours.value) > 1e-9 * n:
            raise SystemExit(f"n = {n}: {ours.value} differs from SciPy's value")
        calls = [
            lambda _, costs=costs: assign(costs, maximize=False),
            lambda _, costs=costs: min_weight_full_bipartite_matching(costs),
        ]
        own, scipy = 1e3 * least(calls, 1, 7)
        rows.append([n, f"{own:.1f}", f"{scipy:.1f}", ratio(scipy, own)])
    print("Sparse scores, 100,000 pairs\n")
    print(table(["n", "assign, ms", "SciPy", "SciPy/ours"], rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    args = parser.parse_args()
    header("Linear assignment, in a loop")
    if structsolve_or_none() is None:
        return
    lapjv = lapjv_or_none()
    rng = np.random.default_rng(0)
    rows: list[list[Any]] = []

    def add(name: str, n: int, times: list[float | None]) -> None:
        ours, assigned, scipy, peer = times
        rows.append([name, n, ours, assigned, scipy, peer, ratio(scipy, ours), ratio(peer, ours)])

    for kind in KINDS:
        for n in args.sizes:
            count = 20 if n <= 20 else 6 if n <= 100 else 2
            problems = [random_costs(kind, n, rng) for _ in range(count)]
            add(kind, n, times_of(problems, lapjv, None))
        print(table(COLUMNS, rows), flush=True)
        rows.clear()
    for costs, optimum in published():
        n = len(costs)
        add(f"assign{n} (optimum {optimum:g})", n, times_of([costs], lapjv, optimum))
    print(table(COLUMNS, rows))
    sparse_problems()


if __name__ == "__main__":
    main()
