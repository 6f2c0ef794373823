"""Learning super-modular grids: seconds of a pass beside a BCFW loop in Python with PyMaxflow.

Both minimise ``alpha/2 |w|^2 + mean hinge`` with the Hamming loss over pictures of two classes:
three features a pixel and an intercept, one symmetric table.  The loop is a straightforward BCFW
around a graph cut: numpy for scores and joint features, one cut per visit, none kept.  It clips
tables that are not super-modular to independent pixels; ours enforces super-modularity by a
constraint.  Passes are CPU seconds, medians over the same passes of both, without certificates: 3
to 8, when weights change much between visits, and 9 to 16, when the flow of the previous visit is
nearly right.  The script also times one cut of K ordered labels beside TRW-S, by K, and learning
with K ordered labels, with ``--programs`` also by linear programs.

    python benchmarks/learn_binary.py --sizes 64 128 256
"""

from __future__ import annotations

import argparse
import warnings
from time import process_time
from typing import Any

import numpy as np
from common import header, structsolve_or_none, table

N, ALPHA, PASSES = 20, 0.1, 16
EARLY, LATE = slice(2, 8), slice(8, PASSES)  # passes 3 to 8 and later


def discs(n: int, size: int, seed: int) -> tuple[list[Any], list[Any]]:
    """Pictures of four discs under noise, as lists of pixels."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        down, right = np.mgrid[:size, :size]
        y = np.zeros((size, size), int)
        for _ in range(4):
            top, left = rng.uniform(0, size, 2)
            y |= (down - top) ** 2 + (right - left) ** 2 < rng.uniform(size / 10, size / 4) ** 2
        X.append((y[..., None] + 0.8 * rng.normal(size=(size, size, 3))).reshape(-1, 3))
        Y.append(y.ravel())
    return X, Y


def blocks(n: int, size: int, states: int, seed: int) -> tuple[list[Any], list[Any]]:
    """Pictures of 4 x 4 blocks of ordered classes, one noisy feature for each class."""
    rng = np.random.default_rng(seed)
    shape = (-(-size // 4),) * 2
    Y = [
        rng.integers(0, states, shape).repeat(4, 0).repeat(4, 1)[:size, :size].ravel()
        for _ in range(n)
    ]
    return [np.eye(states)[y] + rng.normal(size=(size * size, states)) for y in Y], Y


class PythonBCFW:
    """The peer: w = (W of shape (2, 4), t00, t01, t11)."""

    def __init__(self, X: list[Any], Y: list[Any], edges: Any, size: int):
        self.X = [np.column_stack([x, np.ones(len(x))]) for x in X]
        self.Y, self.edges, self.size, n = Y, edges, size, len(X)
        self.w, self.kept, self.losses, self.loss = (
            np.zeros(11),
            np.zeros((n, 11)),
            np.zeros(n),
            0.0,
        )
        self.flow = 0.0

    def joint_features(self, x: Any, y: Any) -> Any:
        ends = y[self.edges[:, 0]] + y[self.edges[:, 1]]
        on = x[y == 1].sum(0)
        return np.concatenate([x.sum(0) - on, on, np.bincount(ends, minlength=3).astype(float)])

    def oracle(self, x: Any, y: Any) -> Any:
        import maxflow

        W, (t0, t1, t2) = self.w[:8].reshape(2, 4), self.w[8:]
        scores = x @ W.T
        scores[np.arange(len(y)), 1 - y] += 1
        D = max(t0 + t2 - 2 * t1, 0.0)
        degree = np.bincount(self.edges.ravel(), minlength=len(y))
        gain = (scores[:, 1] - scores[:, 0] + degree * (t1 - t0 + D / 2)).reshape(self.size, -1)
        graph = maxflow.GraphFloat()
        nodes = graph.add_grid_nodes((self.size, self.size))
        right_down = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0]])
        graph.add_grid_edges(nodes, D / 2, structure=right_down, symmetric=True)
        graph.add_grid_tedges(nodes, np.maximum(gain, 0), np.maximum(-gain, 0))
        begun = process_time()
        graph.maxflow()
        self.flow += process_time() - begun
        return (~graph.get_grid_segments(nodes)).astype(int).ravel()

    def one_pass(self, rng: Any) -> float:
        n = len(self.X)
        for i in rng.permutation(n):
            x, y = self.X[i], self.Y[i]
            label = self.oracle(x, y)
            step = (self.joint_features(x, y) - self.joint_features(x, label)) / (ALPHA * n)
            loss = np.sum(label != y) / n
            change = self.kept[i] - step
            share = ALPHA * change @ self.w - self.losses[i] + loss
            share = min(max(share / max(ALPHA * change @ change, 1e-12), 0), 1)
            self.w -= share * change
            self.loss += share * (loss - self.losses[i])
            self.kept[i] -= share * change
            self.losses[i] += share * (loss - self.losses[i])
        return self.loss - ALPHA / 2 * self.w @ self.w


def ours(structsolve: Any, structure: Any, X: Any, Y: Any, solver: Any, **more: Any) -> Any:
    settings = {"alpha": ALPHA, "random_state": 0, **more}
    return structsolve.StructuredSVM(structure, solver=solver, **settings).fit(X, Y)


def one_size(structsolve: Any, size: int) -> list[Any]:
    X, Y = discs(N, size, 0)
    edges = np.arange(size * size).reshape(size, size)
    edges = np.vstack(
        [
            np.column_stack([edges[:, :-1].ravel(), edges[:, 1:].ravel()]),
            np.column_stack([edges[:-1].ravel(), edges[1:].ravel()]),
        ]
    )
    rng, times, flows = np.random.default_rng(0), [], []
    loop = PythonBCFW(X, Y, edges, size)
    for _ in range(PASSES):
        loop.flow, begun = 0.0, process_time()
        dual = loop.one_pass(rng)
        times.append(process_time() - begun)
        flows.append(loop.flow)
    row: list[Any] = [f"{size} x {size}"]
    peers = [float(np.median(times[part])) for part in (EARLY, LATE)]
    row += [f"{peers[0]:.4f}", f"{np.median(flows[EARLY]):.4f}", f"{peers[1]:.4f}"]
    if structsolve is None:
        return [*row, f"{dual:.1f}"]
    from structsolve.plugins.mrf import MRFStructure
    from structsolve.solvers import BCFW, SuperModular

    for oracle in ("mincut", "roof-duality"):
        constraints = [SuperModular("pair")]
        marks: list[float] = []
        model = ours(
            structsolve,
            MRFStructure(edges, oracle=oracle),
            X,
            Y,
            BCFW(constraints=constraints, certify_every=10**6),
            tol=1e-9,
            max_iter=PASSES + 1,  # the last pass ends with a certificate
            callbacks=[lambda _, marks=marks: marks.append(process_time())],
        )
        seconds = [0.0, *np.diff(marks)]  # the first pass is not measured
        for part, peer in zip((EARLY, LATE), peers):
            spent = float(np.median(seconds[part]))
            row += [f"{spent:.4f}", f"{spent / peer:.2f}"]
        if oracle == "mincut":
            reached = model.history_[PASSES - 1]["dual"]
    return [*row, f"{dual:.1f}", f"{reached:.1f}"]


def ordered(structsolve: Any, states: int, oracle: str, preset: bool) -> list[list[str]]:
    from structsolve.plugins.mrf import MRFStructure, grid_edges
    from structsolve.solvers import BCFW, CuttingPlane, SuperModular

    size = 16
    X, Y = blocks(N, size, states, 0)
    tests = blocks(N, size, states, 1)
    rows = []
    for kind in (BCFW, CuttingPlane):
        constraints = [SuperModular("pair")] if preset else None
        structure = MRFStructure(grid_edges(size, size), oracle=oracle)
        begun = process_time()
        model = ours(
            structsolve,
            structure,
            X,
            Y,
            kind(constraints=constraints),
            alpha=0.01,
            tol=0.01,
            max_iter=300,
        )
        seconds, last = process_time() - begun, model.history_[-1]
        rows.append(
            [
                str(states),
                oracle,
                kind.name,
                f"{seconds:.2f}",
                str(len(model.history_)),
                f"{last['gap'] / last['primal']:.4f}",
                f"{model.score(*tests):.4f}",
            ]
        )
    return rows


def decoders(states: int) -> list[list[str]]:
    """One labeling of noise on 64 x 64 with linear and quadratic tables, by cut and TRW-S."""
    from structsolve.plugins.mrf import decode, grid_edges

    edges, rng = grid_edges(64, 64), np.random.default_rng(0)
    unary = rng.normal(size=(64 * 64, states))
    apart = np.abs(np.subtract.outer(np.arange(states), np.arange(states))).astype(float)
    rows = []
    for name, pair in (("linear", -0.5 * apart), ("quadratic", -0.5 * apart**2)):
        seconds, answers = {"mincut": np.inf, "trws": np.inf}, {}
        for _ in range(3):
            for oracle in seconds:
                begun = process_time()
                answers[oracle] = decode(unary, edges, pair, oracle=oracle)
                seconds[oracle] = min(seconds[oracle], process_time() - begun)
        best = answers["mincut"].value
        missed = (best - answers["trws"].value) / abs(best)
        times = [f"{1e3 * spent:.1f}" for spent in seconds.values()]
        rows.append([str(states), name, *times, f"{missed:.1e}"])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="*", default=[64, 128, 256])
    parser.add_argument("--states", type=int, nargs="*", default=[3, 5])
    parser.add_argument("--decoders", type=int, nargs="*", default=[3, 4, 5, 8, 16])
    parser.add_argument("--programs", action="store_true", help="K = 3 by HiGHS as well, a minute")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    structsolve = structsolve_or_none()
    header("Learning super-modular grids, twenty pictures")
    rows = [one_size(structsolve, size) for size in options.sizes]
    heads = ["grid", "Python + PyMaxflow, passes 3 to 8, s", "flow alone", "9 to 16, s"]
    if structsolve is not None:
        for oracle in ("mincut", "roof duality"):
            heads += [f"{oracle}, 3 to 8, s", "ratio", "9 to 16, s", "ratio"]
        heads += ["dual of the loop after 16 passes", "ours"]
    else:
        heads += ["dual after 16 passes"]
    print(table(heads, rows))
    if structsolve is None:
        return
    print("\nOne call of decode on 64 x 64, ms, best of three in turns:\n")
    rows = [row for K in options.decoders for row in decoders(K)]
    print(table(["labels", "tables", "mincut", "trws", "trws misses by"], rows))
    if not options.states:
        return
    print("\nOrdered labels on 16 x 16, alpha = .01, to a gap of 1 %:\n")
    rows = [row for K in options.states for row in ordered(structsolve, K, "mincut", True)]
    if options.programs:
        rows += ordered(structsolve, 3, "lp", True)
    print(table(["labels", "oracle", "solver", "s", "passes", "gap", "test accuracy"], rows))


if __name__ == "__main__":
    main()
