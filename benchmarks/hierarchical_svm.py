"""Accuracy on synthetic hierarchies: flat, hierarchical, normalised hierarchical and Shared SVM.

Two trees, with 1000 features each.  "balanced": a complete binary tree with 8 leaves; the vectors
of its nodes and the examples are standard normal, an example belongs to the leaf of largest
potential.  "unbalanced": examples on the sphere; a random hyperplane through the origin splits off
a leaf, another one the rest, until there are 10 leaves.  60 % of the examples train while alpha is
chosen by accuracy on 20 %; then both train, and the last 20 % test.  Each seed draws a new tree.

    python benchmarks/hierarchical_svm.py --seeds 5
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import networkx as nx
import numpy as np
from common import Clock, header, table

ALPHAS = (1e-4, 3e-5, 1e-5)
# Accuracy in the thesis that the trees are taken from.
THESIS = {
    "balanced": {"flat": 60.5, "HSVM": 62.7, "NHSVM": 63.5, "SSVM": 63.6},
    "unbalanced": {"flat": 68.5, "HSVM": 68.6, "NHSVM": 73.1, "SSVM": 75.1},
}
NORMALIZATION = {"HSVM": "none", "NHSVM": "rho:2", "SSVM": "learned"}


def balanced(rng: np.random.Generator, n: int, d: int) -> tuple[Any, np.ndarray, np.ndarray]:
    tree = nx.balanced_tree(2, 3, create_using=nx.DiGraph)
    W, X = rng.normal(size=(len(tree), d)), rng.normal(size=(n, d))
    potentials = X @ W.T
    leaves = np.array([v for v in tree if tree.out_degree(v) == 0])
    scores = [potentials[:, [v, *nx.ancestors(tree, v)]].sum(axis=1) for v in leaves]
    return tree, X / np.sqrt(d), leaves[np.argmax(scores, axis=0)]


def unbalanced(rng: np.random.Generator, n: int, d: int) -> tuple[Any, np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    tree, y, node, rest = nx.DiGraph(), np.zeros(n, dtype=int), 0, np.ones(n, dtype=bool)
    for k in range(9):
        tree.add_edges_from([(node, 2 * k + 1), (node, 2 * k + 2)])
        side = X @ rng.normal(size=d) > 0
        y[rest & ~side] = 2 * k + 1
        rest &= side
        node = 2 * k + 2
    y[rest] = node
    return tree, X, y


def make(method: str, tree: Any, alpha: float, passes: int) -> Any:
    from structsolve import HierarchicalSVM, StructuredSVM

    options: dict[str, Any] = {"alpha": alpha, "tol": 0.02, "fit_intercept": False}
    options["max_iter"] = passes
    if method == "flat":
        return StructuredSVM("multiclass", **options)
    return HierarchicalSVM(tree, normalization=NORMALIZATION[method], max_alternations=5, **options)


def accuracy(method: str, tree: Any, X: Any, y: Any, passes: int) -> tuple[float, float]:
    """Test accuracy in per cent with alpha from the second split, and that alpha."""
    n = len(y)
    first, second = int(0.6 * n), int(0.8 * n)

    def hits(alpha: float, end: int, until: int) -> float:
        model = make(method, tree, alpha, passes).fit(X[:end], y[:end])
        return float(np.mean(model.predict(X[end:until]) == y[end:until]))

    best = max(ALPHAS, key=lambda alpha: hits(alpha, first, second))
    return 100 * hits(best, second, n), best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sets", nargs="+", default=list(THESIS), choices=list(THESIS))
    parser.add_argument("--methods", nargs="+", default=["flat", *NORMALIZATION])
    parser.add_argument("--passes", type=int, default=30, help="of each solve at most")
    arguments = parser.parse_args()
    header("Hierarchical SVMs on synthetic trees")
    warnings.simplefilter("ignore")
    for name in arguments.sets:
        recipe, n = (balanced, 8000) if name == "balanced" else (unbalanced, 10_000)
        found: dict[str, list[float]] = {m: [] for m in arguments.methods}
        chosen: dict[str, list[float]] = {m: [] for m in arguments.methods}
        seconds = dict.fromkeys(arguments.methods, 0.0)
        for seed in range(arguments.seeds):
            tree, X, y = recipe(np.random.default_rng(seed), n, 1000)
            for method in arguments.methods:
                with Clock() as clock:
                    score, alpha = accuracy(method, tree, X, y, arguments.passes)
                found[method].append(score)
                chosen[method].append(alpha)
                seconds[method] += clock.cpu / arguments.seeds
        rows = []
        for method in arguments.methods:
            scores = np.array(found[method])
            error = scores.std(ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else np.nan
            rows.append(
                [
                    method,
                    f"{scores.mean():.1f}",
                    f"{error:.1f}",
                    f"{THESIS[name][method]:.1f}",
                    " ".join(f"{a:g}" for a in sorted(set(chosen[method]))),
                    f"{seconds[method]:.0f}",
                ]
            )
        print(f"\n{name}, {arguments.seeds} seeds\n")
        print(table(["method", "accuracy", "std. error", "thesis", "alpha", "CPU s / seed"], rows))


if __name__ == "__main__":
    main()
