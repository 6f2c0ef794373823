"""Why Shared SVM gains less here than in Figure 6.3 of the thesis: its objective, or its training?

Node weights that fall by a factor of 5, 10 or 20 a level, from the root to the leaves ("steep"),
those of "rho:2" (NHSVM), 1 at leaves and 0 elsewhere ("leaves alone", the flat machine) and learned
ones (Shared SVM) share all else: the loss is that of "rho:2", and alpha is chosen by accuracy on 20
% of the examples.  "above the bound": objective (6.17) over the certified lower bound of its joint
optimum, in per cent, at the alpha that the learned weights chose; the largest of all seeds for
them, the least for others.  If others lie above it, a better optimisation of (6.17) would move away
from them.  "weights by level" are means of inner nodes from below the root on, then of leaves.

"unbalanced" and "balanced" are the trees of `hierarchical_svm.py`.  The last table needs no data:
leaves' vectors are sums of nodes' vectors, which are orthogonal ("independent"), or opposite for
siblings, as in a split by a hyperplane, and whose length falls by a factor a level; a convex
program has the norm (6.19), squared, beside that of the leaves, to which the flat machine is
restricted, and its weights: inner nodes of the first and second level, and the mean of leaves.

    python benchmarks/shared_weights.py --seeds 5
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from common import header, of_grid, table
from hierarchical_svm import split
from norms import binary_tree

ALPHAS = (3e-4, 1e-4, 3e-5, 1e-5)
STEEP = (5, 10, 20)
TOL, PASSES = 0.01, 60
FACTORS = (1.0, 2.6)


def levels_of(hierarchy: Any) -> np.ndarray:
    """The depth of each node."""
    levels = np.zeros(len(hierarchy), dtype=int)
    for depth, nodes in enumerate(hierarchy.levels):
        levels[nodes] = depth
    return levels


def steep(hierarchy: Any, factor: float) -> np.ndarray:
    """Each inner node takes 1 - 1 / factor of what its ancestors leave, and a leaf the rest."""
    left = factor ** -np.maximum(levels_of(hierarchy) - 1.0, 0)
    weights = left * (1 - 1 / factor)
    weights[hierarchy.leaves] = left[hierarchy.leaves]
    weights[hierarchy.levels[0]] = 0
    return weights


def rules(tree: Any) -> dict[str, np.ndarray | None]:
    from structsolve.plugins.dag import Hierarchy
    from structsolve.plugins.dag.svm.weights import node_weights

    hierarchy = Hierarchy(tree)
    alone = np.zeros(len(hierarchy))
    alone[hierarchy.leaves] = 1
    chosen = {f"steep, {factor}": steep(hierarchy, factor) for factor in STEEP}
    rho = node_weights(hierarchy, "rho:2").values
    return {"leaves alone": alone, "rho:2 (NHSVM)": rho, **chosen, "learned (Shared SVM)": None}


class Fit:
    """A fit with given node weights, or learned ones: objective, bound, weights, accuracy."""

    def __init__(self, tree: Any, weights: np.ndarray | None, alpha: float, X: Any, y: Any):
        from structsolve import HierarchicalSVM

        self.alpha, self.bound = alpha, None
        if weights is None:
            model = HierarchicalSVM(
                tree,
                normalization="learned",
                alpha=alpha,
                tol=TOL,
                max_iter=PASSES,
                fit_intercept=False,
            ).fit(X, y)
            last = model.history_[-1]
            self.objective, self.bound = last["objective"], last["objective"] - last["joint_gap"]
            self.weights, self.predict = model.node_weights_, model.predict
            return
        self.weights = weights
        self._fit(tree, X, y)

    def _fit(self, tree: Any, X: Any, y: Any) -> None:
        from structsolve import Problem
        from structsolve.plugins.dag import DagStructure, PathCost
        from structsolve.plugins.dag.svm.weights import node_weights
        from structsolve.solvers import BCFW
        from structsolve.solvers.driver import drive
        from structsolve.solvers.run import Start

        structure = DagStructure(tree, labels="single-leaf")
        space, examples = structure.make_space(X, y, fit_intercept=False)
        loss = PathCost(node_weights(space.hierarchy, "rho:2").values)
        problem = Problem(space, examples, loss, node_scale=np.sqrt(self.weights))
        start = Start(problem, self.alpha, np.random.default_rng(0), tol=TOL / 3)
        outcome = drive(BCFW().start(start), 5 * PASSES, TOL / 3)
        self.objective = outcome.history[-1]["primal"]
        U = space.layout.view(problem.model_weights(outcome.w), space.layout.node.name)
        paths, names = space.hierarchy.paths, np.asarray(list(space.hierarchy.nodes))
        leaves = names[space.hierarchy.leaves]
        self.predict = lambda rows: leaves[np.argmax(rows @ (paths @ U.T).T, axis=1)]

    def accuracy(self, part: Any) -> float:
        return 100 * float(np.mean(self.predict(part[0]) == part[1]))


def run(name: str, seed: int, d: int, more: int) -> dict[str, tuple[float, float, np.ndarray]]:
    """Test accuracy, per cent above the joint problem's bound, and weights by level, of rules."""
    from structsolve.plugins.dag import Hierarchy

    tree, train, held, test = split(name, seed, d, more)
    both = tuple(np.concatenate(pair) for pair in zip(train, held))
    hierarchy, results = Hierarchy(tree), {}
    joint: Any = None
    for rule, weights in reversed(rules(tree).items()):
        alpha = max(ALPHAS, key=lambda a: Fit(tree, weights, a, *train).accuracy(held))
        fit = Fit(tree, weights, alpha, *both)
        joint = joint or fit
        same = fit if alpha == joint.alpha else Fit(tree, weights, joint.alpha, *both)
        leaf = np.zeros(len(hierarchy), dtype=bool)
        leaf[hierarchy.leaves] = True
        levels = levels_of(hierarchy)
        inner = [fit.weights[~leaf & (levels == k)].mean() for k in (1, 2)]
        above = 100 * (same.objective / joint.bound - 1)
        by_level = np.array([*inner, fit.weights[leaf].mean()])
        results[rule] = fit.accuracy(test), above, by_level
        told = f"{results[rule][0]:.2f}, alpha {of_grid(alpha, ALPHAS)}"
        print(f"<!-- {name}, seed {seed}, {rule}: {told} -->", flush=True)
    return results


def rows_of(name: str, runs: list[Any]) -> list[list[Any]]:
    rows = []
    for rule in runs[0]:
        scores = np.array([result[rule][0] for result in runs])
        lead = scores - np.array([result["leaves alone"][0] for result in runs])
        above = [result[rule][1] for result in runs]
        error = f"{lead.std(ddof=1) / np.sqrt(len(runs)):.1f}" if len(runs) > 1 else "-"
        weights = np.mean([result[rule][2] for result in runs], axis=0)
        rows.append(
            [
                f"{name}, {len(runs)} seeds",
                rule,
                f"{scores.mean():.1f}",
                f"{lead.mean():+.1f} ({error})",
                f"{max(above) if rule.startswith('learned') else min(above):.1f}",
                ", ".join(f"{weight:.2f}" for weight in weights),
            ]
        )
    return rows


def one_after_another(splits: int) -> np.ndarray:
    """Leaves' ancestors where every split takes off one leaf, in the order of `unbalanced`."""
    ancestors = np.zeros((splits + 1, 2 * splits + 1))
    for leaf in range(splits + 1):
        ancestors[leaf, 0 : 2 * leaf + 1 : 2] = 1
        ancestors[leaf, min(2 * leaf + 1, 2 * splits)] = 1
    return ancestors


def norms(factor: float) -> list[Any]:
    """The factor; for each tree, the norm of the hierarchy over that of the leaves, and weights."""
    import cvxpy as cp

    row: list[Any] = [f"{factor:g}"]
    for ancestors, opposite in (
        (binary_tree(3), False),
        (binary_tree(3), True),
        (one_after_another(9), True),
    ):
        count = ancestors.shape[1]
        # Nodes above a node have all its leaves, and others.
        below = ancestors.sum(axis=0)
        level = (ancestors.T @ ancestors == below).sum(axis=0) - 1
        leaf = below == 1
        vectors = np.diag(np.where(level > 0, factor ** -np.maximum(level - 1.0, 0), 0))
        if opposite:
            # Right children have the vectors of their siblings, negated.
            vectors[2::2] = -vectors[1::2]
        U = ancestors @ vectors
        V, strength = cp.Variable((count, count)), cp.Variable(count)
        cost = sum(cp.quad_over_lin(V[k], strength[k]) for k in range(count))
        limits = [ancestors @ V == U, ancestors @ strength <= 1]
        value = cp.Problem(cp.Minimize(cost), limits).solve(solver=cp.CLARABEL)
        weights = [abs(strength.value[~leaf & (level == k)].mean()) for k in (1, 2)]
        weights.append(strength.value[leaf].mean())
        row += [f"{value / np.sum(U**2):.4f}", ", ".join(f"{a:.2f}" for a in weights)]
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--features", type=int, default=80)
    parser.add_argument("--more", type=int, default=8000, help="test examples, besides 20 %%")
    parser.add_argument("--sets", nargs="+", default=["unbalanced", "balanced"])
    args = parser.parse_args()
    header("Shared SVM: learned node weights beside fixed ones")
    warnings.simplefilter("ignore")
    rows = []
    for name in args.sets:
        runs = [run(name, seed, args.features, args.more) for seed in range(args.seeds)]
        rows += rows_of(name, runs)
    columns = ["tree", "weights", "accuracy", "less leaves alone (s.e.)"]
    print(f"\n{table([*columns, 'above the bound, %', 'weights by level'], rows)}")
    columns = ["factor"]
    for tree in (
        "binary, independent siblings",
        "binary, opposite siblings",
        "unbalanced, opposite",
    ):
        columns += [f"{tree}: norm over flat", "weights"]
    print(table(columns, [norms(factor) for factor in FACTORS]))


if __name__ == "__main__":
    main()
