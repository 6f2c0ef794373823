"""A hierarchy of 50,000 nodes, 100,000 examples with 50 features each: memory, and a pass.

Each example belongs to one leaf of a tree whose nodes have 4 children.  A tenth of an example's
features come from the nodes of its path; the rest are random.  Dense weights would take features
times nodes times 8 bytes; `HierarchicalSVM(sparse=True)` keeps only weights that training changes.
Memory is that of the process, before fit and at its peak.

    python benchmarks/large_hierarchy.py [--nodes 50000] [--examples 100000] [--passes 2]
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

import numpy as np
from common import header, table
from scipy import sparse

COLUMNS = (
    "nodes", "examples", "non-zeros", "CPU s a pass", "weights kept", "kept, MB", "bytes each",
    "ms to predict", "before, MB", "peak of process, MB", "dense, MB", "accuracy",
)  # fmt: skip


def problem(nodes: int, examples: int, features: int, rng: np.random.Generator) -> tuple[Any, ...]:
    """Return the edges of a tree, CSR features, and leaves."""
    child = np.arange(1, nodes)
    edges = np.column_stack([(child - 1) // 4, child])
    leaves = np.setdiff1d(np.arange(nodes), edges[:, 0])
    # A few leaves have many examples, as in real hierarchies.
    chance = 1.0 / (1 + rng.permutation(len(leaves)))
    y = rng.choice(leaves, examples, p=chance / chance.sum())
    columns = rng.integers(0, features, (examples, 50))
    own = rng.integers(0, features, (nodes, 3))
    node, slot = y.copy(), 0
    while slot < 10:
        columns[:, slot] = own[node, rng.integers(0, 3, examples)]
        node, slot = np.maximum((node - 1) // 4, 0), slot + 1
    columns.sort(axis=1)
    rows = np.repeat(np.arange(examples), 50)
    X = sparse.csr_matrix((np.ones(rows.size), (rows, columns.ravel())), (examples, features))
    X.data[:] = 1
    return edges, X, y


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=50_000)
    parser.add_argument("--examples", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=100_000)
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--alpha", type=float, default=1e-4)
    args = parser.parse_args()
    from structsolve import HierarchicalSVM

    header("A large hierarchy, single leaves, sparse weights")
    rows = []
    for part in (10, 1):
        n, nodes = args.examples // part, args.nodes
        edges, X, y = problem(nodes, n, args.features, np.random.default_rng(0))
        model = HierarchicalSVM(edges, sparse=True, solver="sgd", alpha=args.alpha)
        model.set_params(max_iter=args.passes)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        start = time.process_time()
        model.fit(X, y)
        seconds = (time.process_time() - start) / args.passes
        kept, size = model.history_[-1]["nonzeros"], model.history_[-1]["bytes"]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        test = slice(0, 2000)
        start = time.process_time()
        accuracy = model.score(X[test], y[test])
        predict = (time.process_time() - start) * 1e3 / 2000
        rows.append(
            [
                nodes,
                n,
                X.nnz,
                f"{seconds:.1f}",
                kept,
                f"{size / 1e6:.0f}",
                f"{size / kept:.1f}",
                f"{predict:.2f}",
                f"{before:.0f}",
                f"{peak:.0f}",
                f"{8e-6 * args.features * nodes:.0f}",
                f"{accuracy:.3f}",
            ]
        )
    print(table(COLUMNS, rows))


if __name__ == "__main__":
    main()
