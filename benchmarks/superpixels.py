"""Training on superpixel graphs and on pictures: ms of a relaxed call and of a picture in a pass.

Graphs of 500 nodes, 1481 edges and 21 labels, generated like those of the Pascal and MSRC examples
of other libraries: 30 features a node, three features an edge (constant, contrast, vertical).  Each
oracle call solves the loss-augmented linear relaxation, at weights after some passes of our
training; the gap is bound minus value, relative to the bound.  HiGHS solves that of the first
picture.  In training, calls end at a tenth of the previous pass's gap; "allowed" repeats that.  The
other peer is a BCFW loop in Python around one round of alpha-expansion by thinqpbo, which gives no
bound.  Times are CPU seconds.

    python benchmarks/superpixels.py --pictures 20
"""

from __future__ import annotations

import argparse
import warnings
from time import process_time
from typing import Any

import numpy as np
from common import header, structsolve_or_none, table

NODES, LABELS, FEATURES, ALPHA = 500, 21, 30, 0.02


def superpixels(n: int, seed: int = 0) -> tuple[list[Any], list[Any]]:
    """Pictures of six regions, cut into Delaunay graphs of random points."""
    from scipy.spatial import Delaunay

    rng = np.random.default_rng(seed)
    means = np.random.default_rng(99).normal(size=(LABELS, FEATURES))
    X, Y = [], []
    for _ in range(n):
        place = rng.uniform(0, 1, (NODES, 2)) * [320, 213]
        corners = Delaunay(place).simplices
        pairs = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]])
        edges = np.unique(np.sort(pairs, axis=1), axis=0)
        seeds, classes = rng.uniform(0, 1, (6, 2)) * [320, 213], rng.integers(0, LABELS, 6)
        y = classes[((place[:, None] - seeds) ** 2).sum(2).argmin(1)]
        x = means[y] * 0.5 + 1.5 * rng.normal(size=(NODES, FEATURES))
        far = np.abs(place[edges[:, 0]] - place[edges[:, 1]])
        same = y[edges[:, 0]] == y[edges[:, 1]]
        contrast = np.exp(-rng.gamma(1 + 2 * ~same))
        vertical = far[:, 1] / (far.sum(1) + 1e-9)
        X.append((x, edges, np.column_stack([np.ones(len(edges)), contrast, vertical])))
        Y.append(y)
    return X, Y


def blobs(n: int, size: int = 32, labels: int = 5) -> tuple[list[Any], list[Any]]:
    """Smooth regions of `labels` classes under noise."""
    from scipy.ndimage import gaussian_filter

    rng = np.random.default_rng(0)
    X, Y = [], []
    for _ in range(n):
        fields = [gaussian_filter(rng.normal(size=(size, size)), 3) for _ in range(labels)]
        y = np.argmax(fields, axis=0).ravel()
        X.append(np.eye(labels)[y] + 1.5 * rng.normal(size=(size * size, labels)))
        Y.append(y)
    return X, Y


def trained(structsolve: Any, structure: Any, X: Any, Y: Any, alpha: float, passes: int) -> Any:
    from structsolve.surrogates import Margin

    return structsolve.StructuredSVM(
        structure,
        surrogate=Margin(relaxed=True),
        alpha=alpha,
        tol=1e-9,
        max_iter=passes,
        random_state=0,
    ).fit(X, Y)


def relaxed_calls(structsolve: Any, structure: Any, X: Any, Y: Any, alpha: float) -> Any:
    """ms and gap of the calls for all pictures, and HiGHS on the first, over training."""
    from structsolve.lp import Highs
    from structsolve.plugins.mrf.relaxation._linear import LinearRelaxation
    from structsolve.plugins.mrf.relaxation.programs import Programs
    from structsolve.potentials.calls import score
    from structsolve.solvers import driver
    from structsolve.structure import calls

    rows = []
    for passes in (1, 4, 8, 12):
        model = trained(structsolve, structure, X, Y, alpha, passes)
        space, examples = structure.make_space(X, Y)
        problem = structsolve.Problem(space, examples, loss="hamming")
        operator, layout = problem.task.power("relaxation"), problem.task.layout
        w, spent, gaps, whole, quick = model.flat_weights(), 0.0, [], 0, 0.0
        for i in range(len(X)):
            theta = score(problem.potentials, i, w)
            calls.augment(problem.task.loss, i, examples.label(i), 1.0, theta)
            begun = process_time()
            _, label, value, bound = calls.relax(operator, i, theta)
            spent += process_time() - begun
            gaps.append((bound - value) / bound)
            whole += label is not None
            operator.allow(driver.ALLOWED * model.history_[-1]["gap"])
            begun = process_time()
            calls.relax(operator, i, theta)
            quick += process_time() - begun
            operator.allow(0.0)
            if i == 0:
                peer = LinearRelaxation(Programs(Highs), space.graphs(layout), layout)
                begun = process_time()
                calls.relax(peer, i, theta)
                seconds = process_time() - begun
        rows.append(
            [
                str(passes),
                f"{1e3 * spent / len(X):.1f}",
                f"{np.mean(gaps):.1e}",
                f"{np.max(gaps):.1e}",
                f"{whole} of {len(X)}",
                f"{1e3 * quick / len(X):.1f}",
                f"{1e3 * seconds:.0f}",
            ]
        )
    return rows


def expansion(unary: Any, edges: Any, tables: Any, label: Any) -> Any:
    """One round of alpha-expansion from a labeling: a fusion move for each label."""
    import thinqpbo

    nodes, rows = range(len(unary)), np.arange(len(edges))
    u, v = edges.T
    for alpha in range(unary.shape[1]):
        graph = thinqpbo.QPBOFloat()
        graph.add_node(len(unary))
        for i, a, b in zip(nodes, -unary[np.arange(len(unary)), label], -unary[:, alpha]):
            graph.add_unary_term(i, a, b)
        keep = -tables[rows, label[u], label[v]], -tables[rows, label[u], alpha]
        move = -tables[rows, alpha, label[v]], -tables[:, alpha, alpha]
        for i, j, *cost in zip(u.tolist(), v.tolist(), *keep, *move):
            graph.add_pairwise_term(i, j, *cost)
        graph.solve()
        graph.compute_weak_persistencies()
        moved = np.array([graph.get_label(i) == 1 for i in nodes])
        label = np.where(moved, alpha, label)
    return label


def python_pass(X: Any, Y: Any, passes: int) -> float:
    """Seconds a picture of BCFW in Python around alpha-expansion, in its last pass."""
    W, P, n = np.zeros((LABELS, FEATURES)), np.zeros((3, LABELS, LABELS)), len(X)
    kept = [(np.zeros_like(W), np.zeros_like(P), 0.0) for _ in X]
    for _ in range(passes):
        begun = process_time()
        for i, ((x, edges, features), y) in enumerate(zip(X, Y)):
            unary = x @ W.T + 1
            unary[np.arange(len(y)), y] -= 1
            tables = np.tensordot(features, P, axes=(1, 0))
            label = expansion(unary, edges, tables, y.copy())
            dW, dP = np.zeros_like(W), np.zeros_like(P)
            for z, sign in ((y, 1), (label, -1)):
                np.add.at(dW, z, sign * x)
                ends = z[edges[:, 0]], z[edges[:, 1]]
                for k in range(3):
                    np.add.at(dP[k], ends, sign * features[:, k])
            dW, dP, loss = dW / (ALPHA * n), dP / (ALPHA * n), (label != y).mean() * len(y) / n
            oldW, oldP, old = kept[i]
            stepW, stepP = oldW - dW, oldP - dP
            size = (stepW**2).sum() + (stepP**2).sum()
            along = (stepW * W).sum() + (stepP * P).sum() - (old - loss) / ALPHA
            gamma = np.clip(along / size, 0, 1) if size else 0.0
            W, P = W - gamma * stepW, P - gamma * stepP
            kept[i] = oldW - gamma * stepW, oldP - gamma * stepP, old + gamma * (loss - old)
        seconds = process_time() - begun
    return seconds / n


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=int, default=5)
    parser.add_argument("--train", type=int, default=100, help="pictures of the training passes")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    structsolve = structsolve_or_none()
    header("Superpixel graphs and pictures by the linear relaxation")
    X, Y = superpixels(options.pictures)
    peer = python_pass(X[:3], Y[:3], 3)
    print(f"Python loop with thinqpbo's moves (alpha-expansion): {1e3 * peer:.0f} ms a picture\n")
    if structsolve is None:
        return
    from structsolve.plugins.mrf import MRFStructure, grid_edges

    heads = [
        "passes",
        "ms a call",
        "mean gap",
        "largest gap",
        "labelings",
        "allowed, ms",
        "HiGHS, ms",
    ]
    superpixel = MRFStructure(tables="features", oracle="trws")
    many, labels = superpixels(options.train)
    model = trained(structsolve, superpixel, many, labels, ALPHA, 6)
    print(f"Training on {len(many)} superpixel graphs (the last pass is certified):\n")
    rows = [
        [str(r["pass"]), f"{r['seconds']:.2f}", str(r["oracle_calls"]), f"{r['gap']:.1f}"]
        for r in model.history_
    ]
    print(table(["pass", "seconds", "calls", "gap"], rows) + "\n")
    print(table(heads, relaxed_calls(structsolve, superpixel, X, Y, ALPHA)))
    print("\n32 x 32 pictures of 5 labels, one symmetric table:\n")
    X, Y = blobs(options.pictures)
    picture = MRFStructure(grid_edges(32, 32), oracle="trws")
    print(table(heads, relaxed_calls(structsolve, picture, X, Y, 0.01)))


if __name__ == "__main__":
    main()
