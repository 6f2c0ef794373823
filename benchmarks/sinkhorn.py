"""Projections onto doubly stochastic matrices: ours against POT's Sinkhorn, to the same gap.

The objective is max -sum mu log mu + <theta, mu>. POT's `sinkhorn` and `sinkhorn_log` (stable at
any scale) get the least number of iterations, from a doubling list, whose rounded plan is within
1e-8 of our value; a dash means that 5120 do not suffice or that numbers overflow.  POT has no
Euclidean projection; only our time is printed.  Gaps are proved by ours, relative to the value.

    python benchmarks/sinkhorn.py
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from common import header, ratio, structsolve_or_none, table
from environments import enter, missing

GAP = 1e-8
LIMIT = 5_120
COLUMNS = (
    "n",
    "scale of theta",
    "ours, µs",
    "gap",
    "POT sinkhorn, µs",
    "iterations",
    "POT sinkhorn_log, µs",
    "its iterations",
    "sinkhorn/ours",
    "sinkhorn_log/ours",
    "euclidean, µs",
    "its gap",
)


def least(call: Callable[[], Any], runs: int = 3) -> float:
    times = []
    for _ in range(runs):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def rounded(plan: np.ndarray) -> np.ndarray:
    """A doubly stochastic matrix near the plan (Altschuler, Weed and Rigollet 2017)."""
    plan = plan * np.minimum(1, 1 / plan.sum(axis=1))[:, None]
    plan = plan * np.minimum(1, 1 / plan.sum(axis=0))
    a, b = 1 - plan.sum(axis=1), 1 - plan.sum(axis=0)
    return plan + np.outer(a, b) / max(a.sum(), 1e-300)


def value_of(theta: np.ndarray, plan: np.ndarray) -> float:
    positive = plan[plan > 0]
    return float((theta * plan).sum() - (positive * np.log(positive)).sum())


def pot_time(ot: Any, theta: np.ndarray, method: str, best: float) -> tuple[float | None, Any]:
    """CPU seconds of the shortest run within the gap, and its iterations."""
    n = len(theta)
    ones = np.full(n, 1 / n)
    cost = theta.max() - theta
    iterations = 10

    def run() -> np.ndarray:
        return ot.sinkhorn(ones, ones, cost, 1.0, method, iterations, 0.0, warn=False)

    while iterations <= LIMIT:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            plan = run() * n
            if not np.isfinite(plan).all() or not plan.any():
                return None, None
            if best - value_of(theta, rounded(plan)) <= GAP * max(1, abs(best)):
                return least(run), iterations
        iterations *= 2
    return None, None


def ours(projection: Any, theta: np.ndarray) -> tuple[float, float, float]:
    """CPU seconds of a call, the relative gap it proves, and the value."""
    from structsolve.structure import calls

    flat = theta.ravel()
    repeat = max(1, 400 // len(theta))

    def solve() -> None:
        for _ in range(repeat):
            calls.project(projection, 0, flat)

    _, value, bound = calls.project(projection, 0, flat)
    return least(solve) / repeat, (bound - value) / max(1, abs(value)), value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", nargs="+", type=int, default=(5, 10, 20, 50, 100))
    parser.add_argument("--scales", nargs="+", type=float, default=(1.0, 3.0, 10.0, 100.0))
    args = parser.parse_args()
    enter("pot")
    header("Projection onto doubly stochastic matrices")
    print(missing("pot"), end="")
    if structsolve_or_none() is None:
        return
    import ot

    from structsolve import Block, Examples
    from structsolve.part_layout import PartLayout
    from structsolve.plugins.permutation._projections import AssignmentProjection

    rng = np.random.default_rng(0)
    rows = []
    for n in args.sizes:
        # A matching of n points with n: one row of theta per pair.
        pairs, points = np.array([0, n * n]), np.array([0, n])
        examples = Examples(pairs, label_offsets=points, topology={"cols": np.array([n])})
        layout = PartLayout([Block("pair", "node", (1,))], examples)
        entropy = AssignmentProjection("entropy", layout)
        euclidean = AssignmentProjection("euclidean", layout)
        for scale in args.scales:
            theta = scale * rng.normal(size=(n, n))
            seconds, gap, best = ours(entropy, theta)
            other, other_gap, _ = ours(euclidean, theta)
            plain = pot_time(ot, theta, "sinkhorn", best)
            stable = pot_time(ot, theta, "sinkhorn_log", best)
            rows.append(
                [n, scale, 1e6 * seconds, f"{gap:.0e}"]
                + [x for t, k in (plain, stable) for x in (t and 1e6 * t, k)]
                + [ratio(plain[0], seconds), ratio(stable[0], seconds)]
                + [1e6 * other, f"{other_gap:.0e}"]
            )
    print(table(COLUMNS, rows))


if __name__ == "__main__":
    main()
