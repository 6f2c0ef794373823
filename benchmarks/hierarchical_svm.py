"""Accuracy on hierarchies: flat, hierarchical, normalised hierarchical and Shared SVM.

"unit NHSVM" is the variant of the thesis that divides inside the maximum (6.13).

There are three kinds of synthetic hierarchies, with 1000 features each.  "balanced": a complete
binary tree with 8 leaves; the vectors of its nodes and the examples are standard normal, and an
example belongs to the leaf of largest potential.  "unbalanced": examples on the sphere; random
hyperplanes through the origin split off one leaf after the other until there are 10.  "graph": as
"balanced", but each of 16 leaves has two parents, one of four groups by rows and one of four by
columns, so weights on a path sum to at most T = 1.5 and not to 1 (Figure 6.4).  Each seed draws a
new one.  "imclef07a": X-ray images, one of 63 leaves each (standard scores of 80 features); each
seed is another split of all images.

60 % of the examples train while settings are chosen by accuracy on 20 %; then both parts train, and
the last 20 % test.  Trees of fewer features have fewer examples: their ratio sets the difficulty.

    python benchmarks/hierarchical_svm.py --seeds 5
    python benchmarks/hierarchical_svm.py --sets balanced unbalanced --features 250 --more 8000
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import networkx as nx
import numpy as np
from common import Clock, header, of_grid, table
from datasets import data_path

# Grids of each set and method.  Losses of HSVM grow with the length of paths, so its alphas are
# smaller by that factor.
ALPHAS: dict[str, dict[str, tuple[float, ...]]] = {
    "balanced": {"others": (3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6)},
    "unbalanced": {
        "flat": (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6),
        "HSVM": (1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 3e-7),
        "others": (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5),
    },
    "graph": {"others": (3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 3e-7)},
    "imclef07a": {"others": (3e-2, 1e-2, 3e-3, 1e-3, 3e-4)},
}
# Accuracy in the thesis, the source of the trees.
THESIS = {
    "balanced": {"flat": 60.5, "HSVM": 62.7, "NHSVM": 63.5, "SSVM": 63.6},
    "unbalanced": {"flat": 68.5, "HSVM": 68.6, "NHSVM": 73.1, "SSVM": 75.1},
    "graph": {},
    "imclef07a": {},
}
COLUMNS = [
    "method", "accuracy", "less flat (s.e.)", "thesis", "less flat", "chosen", "CPU s / seed",
    "largest gap, %",
]  # fmt: skip
# Chosen together with alpha.  The thesis uses rho = 2 on its trees and chooses between these three
# on other data.  It does not state for which losses SSVM keeps its margins fixed.
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "flat": [{}],
    "HSVM": [{"normalization": "none"}],
    "NHSVM": [{"normalization": "rho:2"}],
    "NHSVM, chosen": [
        {"normalization": "rho:2"},
        {"normalization": "rho:2", "directional": True},
        {"normalization": "maxmin"},
    ],
    "unit NHSVM": [{"normalization": "rho:2", "surrogate": "unit-margin"}],
    "SSVM": [{"normalization": "learned"}, {"normalization": "learned", "loss": "zero-one"}],
}


def by_potential(tree: Any, rng: np.random.Generator, n: int, d: int) -> tuple[Any, ...]:
    W, X = rng.normal(size=(len(tree), d)), rng.normal(size=(n, d))
    potentials = X @ W.T
    leaves = np.array([v for v in tree if tree.out_degree(v) == 0])
    scores = [potentials[:, [v, *nx.ancestors(tree, v)]].sum(axis=1) for v in leaves]
    return tree, X / np.sqrt(d), leaves[np.argmax(scores, axis=0)]


def balanced(rng: np.random.Generator, n: int, d: int) -> tuple[Any, ...]:
    return by_potential(nx.balanced_tree(2, 3, create_using=nx.DiGraph), rng, n, d)


def graph(rng: np.random.Generator, n: int, d: int) -> tuple[Any, ...]:
    crossed = nx.DiGraph([(0, group) for group in range(1, 9)])
    for row in range(4):
        for column in range(4):
            leaf = 9 + 4 * row + column
            crossed.add_edges_from([(1 + row, leaf), (5 + column, leaf)])
    return by_potential(crossed, rng, n, d)


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


def clef() -> tuple[Any, np.ndarray, np.ndarray]:
    """Tree, all rows and their leaves."""
    data = np.load(data_path("hmc-imclef07a", "data.npz"))
    tree = nx.DiGraph()
    tree.add_nodes_from(range(len(data["node_names"])))
    tree.add_edges_from((p, c) for c, p in data["edges"].tolist() if p >= 0)
    leaf = np.array([tree.out_degree(v) == 0 for v in sorted(tree)])
    parts = [p for p in ("train", "valid", "test") if f"X_{p}" in data.files]

    def leaves(part: str) -> np.ndarray:
        rows = np.split(data[f"Y_{part}_indices"], data[f"Y_{part}_indptr"][1:-1])
        single = [row[leaf[row]] for row in rows]
        assert all(len(row) == 1 for row in single), "some examples have no single leaf"
        return np.concatenate(single)

    X = np.vstack([data[f"X_{p}"] for p in parts]).astype(float)
    y = np.concatenate([leaves(p) for p in parts])
    return tree, X, y


def split(name: str, seed: int, d: int = 1000, more: int = 0) -> tuple[Any, Any, Any, Any]:
    """Tree; rows and leaves for training, for the choice of alpha, and for testing."""
    rng = np.random.default_rng(seed)
    if name == "imclef07a":
        tree, X, y = clef()
        order = rng.permutation(len(y))
        X, y = X[order], y[order]
    else:
        recipe, n = {
            "balanced": (balanced, 8 * d),
            "unbalanced": (unbalanced, 10 * d),
            "graph": (graph, 8 * d),
        }[name]
        tree, X, y = recipe(rng, n + more, d)
    n = len(y) - (more if name != "imclef07a" else 0)
    first, second = int(0.6 * n), int(0.8 * n)
    if name == "imclef07a":
        known = X[:second]
        X = (X - known.mean(axis=0)) / np.maximum(known.std(axis=0), 1e-12)
    parts = np.split(np.arange(len(y)), [first, second])
    return tree, *((X[part], y[part]) for part in parts)


def make(tree: Any, setting: dict[str, Any], alpha: float, passes: int) -> Any:
    from structsolve import HierarchicalSVM, StructuredSVM

    options: dict[str, Any] = {"alpha": alpha, "tol": 0.02, "fit_intercept": False}
    options["max_iter"] = passes
    if not setting:
        return StructuredSVM("multiclass", **options)
    return HierarchicalSVM(tree, max_alternations=20, **setting, **options)


def accuracy(method: str, parts: Any, alphas: Any, passes: int) -> tuple[float, str, float]:
    """Test accuracy in per cent with the best settings on the second part, these, largest gap.

    Where several settings are best, their test accuracies are averaged, and the first is named.
    """
    tree, train, held, test = parts

    def hits(choice: Any, rows: Any, new: Any) -> tuple[float, float]:
        model = make(tree, choice[0], choice[1], passes).fit(*rows)
        last = model.history_[-1]
        return float(np.mean(model.predict(new[0]) == new[1])), last["gap"] / last["primal"]

    choices = [(setting, alpha) for setting in SETTINGS[method] for alpha in alphas]
    right = [hits(choice, train, held)[0] for choice in choices]
    best = [choice for choice, share in zip(choices, right) if share == max(right)]
    both = tuple(np.concatenate(pair) for pair in zip(train, held))
    last = np.array([hits(choice, both, test) for choice in best])
    setting, alpha = best[0]
    name = "" if len(SETTINGS[method]) == 1 else " " + " ".join(map(str, setting.values()))
    return 100 * last[:, 0].mean(), of_grid(alpha, alphas) + name, last[:, 1].max()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="of the seeds")
    parser.add_argument("--sets", nargs="+", default=list(THESIS), choices=list(THESIS))
    parser.add_argument(
        "--methods",
        nargs="+",
        default=list(SETTINGS),
        choices=list(SETTINGS),
        help="flat first: others are compared with the first",
    )
    parser.add_argument("--features", type=int, default=1000, help="of trees, examples follow")
    parser.add_argument("--more", type=int, default=0, help="test examples of trees, besides 20 %%")
    parser.add_argument("--passes", type=int, default=40, help="of each solve at most")
    arguments = parser.parse_args()
    header("Hierarchical SVMs")
    warnings.simplefilter("ignore")
    for name in arguments.sets:
        scores_of: dict[str, list[float]] = {m: [] for m in arguments.methods}
        chosen: dict[str, list[str]] = {m: [] for m in arguments.methods}
        seconds = dict.fromkeys(arguments.methods, 0.0)
        gaps = dict.fromkeys(arguments.methods, 0.0)
        for seed in range(arguments.first, arguments.first + arguments.seeds):
            parts = split(name, seed, arguments.features, arguments.more)
            for method in arguments.methods:
                with Clock() as clock:
                    alphas = ALPHAS[name].get(method, ALPHAS[name]["others"])
                    score, choice, gap = accuracy(method, parts, alphas, arguments.passes)
                scores_of[method].append(score)
                chosen[method].append(choice)
                seconds[method] += clock.cpu / arguments.seeds
                gaps[method] = max(gaps[method], gap)
                print(f"<!-- {name}, {seed}, {method}: {score:.2f}, {choice} -->", flush=True)
        rows = []
        for method in arguments.methods:
            scores = np.array(scores_of[method])
            lead = scores - np.array(scores_of[arguments.methods[0]])
            several = len(scores) > 1
            error = f" ({lead.std(ddof=1) / np.sqrt(len(scores)):.1f})" if several else ""
            known = THESIS[name].get(method)
            rows.append(
                [
                    method,
                    f"{scores.mean():.1f}",
                    f"{lead.mean():+.1f}{error}",
                    known,
                    None if known is None else known - THESIS[name][arguments.methods[0]],
                    ", ".join(sorted(set(chosen[method]))),
                    f"{seconds[method]:.0f}",
                    f"{100 * gaps[method]:.1f}",
                ]
            )
        print(f"\n{name}, {arguments.seeds} seeds\n")
        print(table(COLUMNS, rows))


if __name__ == "__main__":
    main()
