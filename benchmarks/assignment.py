"""Linear assignment: our solver against SciPy's, and lapjv of the packages `lap` and `lapjv`.

Each problem is solved many times by `assign`, which checks its argument and proves the optimum by
prices, and by the functions of the others.  The time is the least of several runs.  If a value
differs from SciPy's, or from the published optimum, the script ends.

    STRUCTSOLVE_DATA=... python benchmarks/assignment.py        # with `pip install lap`
"""

from __future__ import annotations

import argparse
import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import header, ratio, structsolve_or_none, table
from environments import enter, missing

SIZES = (4, 6, 8, 10, 12, 14, 16, 18, 20, 30, 50, 100, 200, 400, 800)
KINDS = ("uniform", "integers to 100", "normal", "plane")


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


def peers() -> dict[str, Callable[[np.ndarray], Any]]:
    """Functions of a matrix by package."""
    from scipy.optimize import linear_sum_assignment

    calls = {"SciPy": linear_sum_assignment}
    with contextlib.suppress(ImportError):
        from lap import lapjv

        calls["lap"] = lapjv
    with contextlib.suppress(ImportError):
        from lapjv import lapjv as in_single

        calls["lapjv"] = in_single
    return calls


#: The largest relative excess of the package lapjv over the optimum.
EXCESS = [0.0]


def times_of(problems: list[np.ndarray], optimum: float | None) -> np.ndarray:
    """Mean µs over the problems: assign, peers."""
    from structsolve.plugins.permutation import assign

    def loop(function: Callable[[np.ndarray], Any], costs: np.ndarray) -> Callable[[int], None]:
        def run(repeat: int) -> None:
            for _ in range(repeat):
                function(costs)

        return run

    others, total = peers(), 0.0
    for costs in problems:
        n = len(costs)
        repeat, runs = max(1, 40000 // n**2), 7
        rows, cols = others["SciPy"](costs)
        best = costs[rows, cols].sum()
        values = [assign(costs, maximize=False).value]
        values += [others["lap"](costs)[0]] if "lap" in others else []
        for value in values:
            if abs(value - best) > 1e-9 * n or (optimum is not None and value != optimum):
                raise SystemExit(f"n = {n}: found {value}, expected {best}, published {optimum}")
        if "lapjv" in others:
            value = costs[np.arange(n), others["lapjv"](costs)[0]].sum()
            EXCESS.append((value - best) / max(abs(best), 1e-9))
        calls = [
            loop(lambda c: assign(c, maximize=False), costs),
            *(loop(call, costs) for call in others.values()),
        ]
        total = total + least(calls, repeat, runs)
    return 1e6 * total / len(problems)


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
    enter("assignment")
    header("Linear assignment, µs a call")
    print(missing("assignment"))
    if structsolve_or_none() is None:
        return
    names = list(peers())
    columns = ["problem", "n", "assign", *names, *(f"{name}/assign" for name in names)]
    rng = np.random.default_rng(0)
    rows: list[list[Any]] = []

    def add(name: str, n: int, times: np.ndarray) -> None:
        ratios = [ratio(time, times[0]) for time in times[1:]]
        rows.append([name, n, *map(float, times), *ratios])

    for kind in KINDS:
        for n in args.sizes:
            count = 20 if n <= 20 else 6 if n <= 100 else 2
            problems = [random_costs(kind, n, rng) for _ in range(count)]
            add(kind, n, times_of(problems, None))
        print(table(columns, rows), flush=True)
        rows.clear()
    for costs, optimum in published():
        n = len(costs)
        add(f"assign{n} (optimum {optimum:g})", n, times_of([costs], optimum))
    print(table(columns, rows))
    print(f"lapjv, in float32, exceeds an optimum by at most {max(EXCESS):.0e} of it\n")
    sparse_problems()


if __name__ == "__main__":
    main()
