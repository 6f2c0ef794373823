"""Label sets of hierarchies: time, gap and test losses of a fit beside one LinearSVC per node.

A generated tree of 455 nodes with 1009 dense rows of 276 columns (the rows follow their nodes, with
noise), spo-fun (a tree) and eisen-go (a graph, where no hierarchical loss is defined). Both sides
take their default regularisation. Our fit ends at a certified gap of 1 % or after max_iter passes;
the steps of earlier versions, pairwise ones on kept label sets, get as much time. Ancestors of
nodes that an SVM predicts are added.  Ten thousand rows of the generated tree are also for the
default ConditionalRiskMinimizer (at most 10 s are asked), with its kernel and without.

    STRUCTSOLVE_DATA=... python benchmarks/hierarchical_sets.py --sets generated spo-fun
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import networkx as nx
import numpy as np
from common import Clock, header, structsolve_or_none, table
from ecrm_hierarchies import load, measured

# Maximum passes: a pass over the graph of eisen-go takes 10 s.
PASSES = {"generated": 100, "spo-fun": 100, "eisen-go": 3}
MANY = "10,000 rows"


def generated(n: int = 1009, test: int = 500, width: int = 276, nodes: int = 455) -> Any:
    """Tree, training rows and closed label sets of one to three leaves, and the same to test."""
    rng = np.random.default_rng(0)
    parents = [-1, 0] + [int(rng.integers((v - 1) // 6, v // 2 + 1)) for v in range(2, nodes)]
    graph = nx.DiGraph((p, v) for v, p in enumerate(parents) if p >= 0)
    leaves = np.array([v for v in range(nodes) if graph.out_degree(v) == 0])
    chance = 1 / (1 + rng.permutation(len(leaves)))
    Y = np.zeros((n + test, nodes), dtype=np.int64)
    for row in Y:
        for leaf in rng.choice(leaves, rng.integers(1, 4), False, chance / chance.sum()).tolist():
            while leaf >= 0:
                row[leaf] = 1
                leaf = parents[leaf]
    X = Y @ rng.normal(size=(nodes, width)) / np.sqrt(Y.sum(axis=1, keepdims=True))
    X += 2 * rng.normal(size=X.shape)
    from structsolve.plugins.dag import Hierarchy

    Y = Y[:, list(Hierarchy(graph).nodes)]
    return graph, X[:n], Y[:n], X[n:], Y[n:]


def node_svms(graph: Any, X: Any, Y: Any, x: Any) -> np.ndarray:
    from sklearn.svm import LinearSVC

    from structsolve.plugins.dag import Hierarchy

    predicted = np.tile(Y[0].astype(np.int32), (len(x), 1))
    for j in np.flatnonzero(Y.min(axis=0) != Y.max(axis=0)):
        predicted[:, j] = LinearSVC().fit(X, Y[:, j]).predict(x)
    return Hierarchy(graph).close(predicted)


def run(name: str) -> list[list[Any]]:
    from structsolve import StructuredSVM
    from structsolve.plugins.dag import DagStructure
    from structsolve.solvers import BCFW

    graph, X, Y, x, y = generated() if name == "generated" else load(name)
    tree = max(dict(graph.in_degree()).values()) < 2
    rows = []

    def note(who: str, seconds: float, gap: str, passes: Any, predicted: np.ndarray) -> None:
        losses = [
            measured(graph, loss, y, predicted) for loss in ["hamming", "hierarchical"][: 1 + tree]
        ]
        rows.append(
            [name, who, f"{seconds:.1f}", gap, passes, *(f"{v:.3f}" for v in losses), ""][:7]
        )

    def fit(who: str, solver: Any, **settings: Any) -> float:
        with Clock() as clock:
            model = StructuredSVM(DagStructure(graph), solver=solver, tol=0.01, **settings)
            model.fit(X, Y)
        last = model.history_[-1]
        gap = f"{100 * last['gap'] / last['primal']:.1f} %"
        note(who, clock.cpu, gap, len(model.history_), np.asarray(model.predict(x)))
        return clock.cpu

    seconds = fit("default", "bcfw", max_iter=PASSES[name])
    end = time.process_time() + seconds
    fit(
        "pairwise steps",
        BCFW(steps="pairwise"),
        max_iter=10_000,
        callbacks=[lambda _: time.process_time() > end],
    )
    with Clock() as clock:
        predicted = node_svms(graph, X, Y, x)
    note("LinearSVC per node", clock.cpu, "", "", predicted)
    return rows


def many(n: int = 10_000) -> list[list[Any]]:
    """Rows of ConditionalRiskMinimizer, by default and with a linear kernel, and of the margin."""
    from structsolve import ConditionalRiskMinimizer, StructuredSVM
    from structsolve.plugins.dag import DagStructure

    graph, X, Y, x, y = generated(n)
    structure = DagStructure(graph)
    rows = []
    for who, model in {
        "ConditionalRiskMinimizer": ConditionalRiskMinimizer(structure),
        "the same, kernel=None": ConditionalRiskMinimizer(structure, kernel=None),
        "StructuredSVM": StructuredSVM(structure),
    }.items():
        with Clock() as clock:
            model.fit(X, Y)
        last = getattr(model, "history_", [{}])[-1]
        gap = f"{100 * last['gap'] / last['primal']:.1f} %" if last else ""
        losses = [
            measured(graph, loss, y, model.predict(x)) for loss in ("hamming", "hierarchical")
        ]
        passes = len(model.history_) if last else ""
        rows.append([MANY, who, f"{clock.cpu:.1f}", gap, passes, *(f"{v:.3f}" for v in losses)])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=[*PASSES, MANY])
    given = parser.parse_args()
    if structsolve_or_none() is None:
        return
    warnings.filterwarnings("ignore")
    header("Label sets of hierarchies beside one LinearSVC per node")
    rows = [row for name in given.sets for row in (many() if name == MANY else run(name))]
    print(table(["set", "", "CPU s", "gap", "passes", "Hamming", "hierarchical"], rows))


if __name__ == "__main__":
    main()
