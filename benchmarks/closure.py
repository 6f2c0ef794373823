"""The best closed set of a hierarchy: our oracle against linear programs, from 50 to 50,000 nodes.

The hierarchies are random trees, and graphs in which half of the nodes have a second parent and a
fifth a third.  Every call has new normal scores. highspy keeps its model and its basis while only
costs change; cvxpy compiles a problem with parameters once.  All must give the same value.  Ours is
the time of the native call, as in training and prediction, and of a call from Python, which adds
checks and new arrays.

    python benchmarks/closure.py
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any

import numpy as np
from common import header, quiet, table

SIZES = (50, 100, 500, 2000, 10_000, 50_000)
CVXPY = ("HIGHS", "CLARABEL", "SCIPY")
# A peer that takes more seconds per call is left out at larger sizes.
PATIENCE = 5.0
# A value with a larger relative error is not the maximum.
EXACT = 1e-5


def hierarchy(kind: str, M: int, seed: int = 0) -> np.ndarray:
    """Edges (parent, child) of a random hierarchy, parents by columns before their children."""
    rng = np.random.default_rng(seed)
    child = np.arange(1, M)
    edges = [np.column_stack([(rng.random(M - 1) * child).astype(int), child])]
    if kind == "graph":
        for share in (0.5, 0.2):
            some = child[rng.random(M - 1) < share]
            edges.append(np.column_stack([(rng.random(len(some)) * some).astype(int), some]))
    return np.unique(np.concatenate(edges), axis=0)


def setting(kind: str, M: int) -> tuple[Any, Any]:
    """The space and one example, without features."""
    from structsolve.plugins.dag import DagSpace, DagStructure, Hierarchy

    made = Hierarchy(hierarchy(kind, M))
    space = DagSpace(DagStructure(made), made, 1, False)
    return space, space.pack(np.zeros((1, 1)))


def thetas(space: Any, n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    scores = np.zeros((n, space.layout.node_size))
    scores[:, : len(space.hierarchy)] = rng.normal(size=(n, len(space.hierarchy)))
    return list(scores)


def ours(space: Any, examples: Any, n: int) -> tuple[Any, Any, Any]:
    """Values, seconds a call from Python, seconds of the native call alone."""
    from structsolve.lp.ask import ask_oracle
    from structsolve.structure import calls
    from structsolve.structure.ask import make_layout

    oracle, M = ask_oracle(space)(make_layout(space, examples)), len(space.hierarchy)
    values, seconds, native = [], [], []
    for theta in thetas(space, n):
        begun = process_time()
        values.append(calls.argmax(oracle, 0, theta)[1])
        seconds.append(process_time() - begun)
        repeat = max(3, 100_000 // M)
        begun = process_time()
        calls.seconds_per_call(oracle, 0, theta, repeat=repeat)
        native.append((process_time() - begun) / repeat)
    return np.array(values), np.array(seconds), np.array(native)


def with_highs(space: Any, examples: Any, n: int) -> tuple[Any, Any]:
    """Values and seconds of changing the costs and running, warm."""
    import highspy

    from structsolve.lp.ask import ask_polytopes

    polytope = ask_polytopes(space, examples).build(0)
    with quiet():  # the banner of HiGHS 1.16 at construction
        highs = highspy.Highs()
    highs.silent()
    highs.setOptionValue("threads", 1)
    lp, M = highspy.HighsLp(), len(space.hierarchy)
    lp.num_col_, lp.num_row_ = M, polytope.A.shape[0]
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = np.zeros(M), polytope.lower, polytope.upper
    lp.row_lower_, lp.row_upper_ = polytope.low, polytope.high
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = polytope.A.indptr, polytope.A.indices
    lp.a_matrix_.value_ = polytope.A.data
    highs.passModel(lp)
    columns = np.arange(M, dtype=np.int32)
    values, seconds = [], []
    scores = thetas(space, n)
    # The first problem is solved twice, so that every timed call starts from a basis.
    for theta in [scores[0], *scores]:
        begun = process_time()
        highs.changeColsCost(M, columns, theta[:M])
        highs.run()
        seconds.append(process_time() - begun)
        values.append(highs.getInfo().objective_function_value)
        if seconds[-1] > 4 * PATIENCE:
            break
    return np.array(values[1:]), np.array(seconds[1:] or seconds)


def with_cvxpy(solver: str, space: Any, examples: Any, n: int) -> tuple[Any, Any]:
    """Values and seconds a call of ``solve`` on a problem that is compiled once."""
    import cvxpy as cp

    from structsolve.lp.ask import ask_polytopes

    polytope = ask_polytopes(space, examples).build(0)
    M = len(space.hierarchy)
    x, costs = cp.Variable(M), cp.Parameter(M)
    problem = cp.Problem(cp.Maximize(costs @ x), [polytope.A @ x >= 0, x >= 0, x <= 1])
    values, seconds = [], []
    scores = thetas(space, n)
    for theta in [scores[0], *scores]:
        costs.value = theta[:M]
        begun = process_time()
        problem.solve(solver=solver, warm_start=True)
        seconds.append(process_time() - begun)
        values.append(problem.value)
        if seconds[-1] > 4 * PATIENCE:
            break
    return np.array(values[1:]), np.array(seconds[1:] or seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--calls", type=int, default=7, help="scores that are solved for, each")
    args = parser.parse_args()
    header("Maximum closure: best closed set of a hierarchy")
    peers: dict[str, Callable[..., Any]] = {"highspy, warm": with_highs}
    peers |= {f"cvxpy {solver}": partial(with_cvxpy, solver) for solver in CVXPY}
    for kind in ("tree", "graph"):
        rows, native_times, impatient = [], [], set()
        for M in args.sizes:
            space, examples = setting(kind, M)
            values, seconds, native = ours(space, examples, args.calls)
            own = float(np.median(seconds))
            native_times.append(float(np.median(native)))
            row: list[object] = [M, len(space.hierarchy.edges), 1e6 * native_times[-1], 1e6 * own]
            for name, peer in peers.items():
                if name in impatient:
                    row += [None, None]
                    continue
                peer_values, taken = peer(space, examples, args.calls)
                known = values[: len(peer_values)]
                wrong = np.abs(peer_values - known) > EXACT * (1 + np.abs(known))
                took = float(np.median(taken))
                against = f"{took / native_times[-1]:.0f}x ({took / own:.0f}x)"
                row += [1e6 * took, against + (" wrong" if wrong.any() else "")]
                if took > PATIENCE:
                    impatient.add(name)
            rows.append(row)
        columns = ["nodes", "edges", "ours, native [us]", "ours, from Python [us]"]
        for name in peers:
            columns += [f"{name} [us]", "over ours"]
        print(f"### {kind}s\n\n{table(columns, rows)}", flush=True)
        large = [j for j, M in enumerate(args.sizes) if M >= 500]
        if len(large) > 1:
            sizes = np.log([args.sizes[j] for j in large])
            slope = np.polyfit(sizes, np.log([native_times[j] for j in large]), 1)[0]
            print(f"native time grows as nodes to the power {slope:.2f} (from 500 on)\n")


if __name__ == "__main__":
    main()
