"""Training time against the number of nodes of a hierarchy: Figure 2a of Goh and Jaillet (2017).

The hierarchy of eisen-go (a graph) is truncated to its first nodes from the roots on, and label
sets lose what is cut off.  ECRM with an intercept at a fixed alpha, which solves one linear system
whatever the labels are; HSVM, the max-margin method for such label sets (in the paper HM3N), by the
second of which a pass costs; and one LinearSVC per node.  The rows are standardised.

    STRUCTSOLVE_DATA=... python benchmarks/ecrm_nodes.py
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import networkx as nx
import numpy as np
from common import Clock, header, structsolve_or_none, table
from ecrm_hierarchies import load

SIZES = (30, 100, 300, 1000, 3573)


def truncated(graph: Any, Y: np.ndarray, size: int) -> tuple[Any, np.ndarray]:
    """The first nodes from the roots on, and their labels in the order of the new hierarchy."""
    from structsolve.plugins.dag import Hierarchy

    order = list(Hierarchy(graph).nodes)
    column = {node: k for k, node in enumerate(order)}
    roots = [node for node in graph if graph.in_degree(node) == 0]
    depth = nx.multi_source_dijkstra_path_length(graph, roots)
    kept = sorted(order, key=lambda node: (depth[node], column[node]))[:size]
    # With all ancestors, so that label sets stay closed.
    above = {up for node in kept for up in nx.ancestors(graph, node)}
    small = graph.subgraph(above.union(kept)).copy()
    return small, Y[:, [column[node] for node in Hierarchy(small).nodes]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    args = parser.parse_args()
    header("Training time against the nodes of a hierarchy")
    if structsolve_or_none() is None:
        return
    from sklearn.svm import LinearSVC

    from structsolve import ConditionalRiskMinimizer, StructuredSVM
    from structsolve.plugins.dag import DagStructure

    warnings.filterwarnings("ignore")
    graph, X, Y, x, _ = load("eisen-go")
    rows = []
    for size in args.sizes:
        small, labels = truncated(graph, Y, size)
        varied = [j for j in range(labels.shape[1]) if 0 < labels[:, j].mean() < 1]
        structure = DagStructure(small)
        with Clock() as ecrm:
            risk = ConditionalRiskMinimizer(structure, alpha=0.1, fit_intercept=True)
            risk.fit(X, labels)
        with Clock() as answer:
            risk.predict(x)
        with Clock() as hsvm:
            StructuredSVM(structure, alpha=0.1, max_iter=1, tol=0).fit(X, labels)
        with Clock() as svms:
            for j in varied:
                LinearSVC(C=0.1).fit(X, labels[:, j])
        clocks = (ecrm, answer, hsvm, svms)
        rows.append([len(small), len(varied), *(f"{clock.cpu:.2f}" for clock in clocks)])
        print(f"<!-- {rows[-1]} -->", flush=True)
    print(f"\n{len(X)} rows of {X.shape[1]} columns, {len(x)} to predict; CPU seconds\n")
    columns = ["nodes", "that vary", "ECRM, fit", "ECRM, predict", "HSVM, first pass"]
    print(table([*columns, "LinearSVC per node, fit"], rows))


if __name__ == "__main__":
    main()
