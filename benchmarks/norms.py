"""Table 6.1 of the thesis: the shared norms of a matrix of classes beside Frobenius and trace norm.

The shared norm is ``min ||A||_{2 -> inf} ||V||_F`` over ``A V = U``: a semidefinite program.
That of a hierarchy has an A whose entry of leaf and node is 0 unless the node is the leaf or above
it, here with one strength for all leaves of a node (6.17).  Both are solved with cvxpy; the
table has them beside the values that the thesis proves for four kinds of U.

    python benchmarks/norms.py
"""

from __future__ import annotations

import argparse

import cvxpy as cp
import numpy as np
from common import header, table


def shared_norm(U: np.ndarray) -> float:
    """The shared Frobenius norm: rows of A of length 1, V as short as possible."""
    n, d = U.shape
    whole = cp.Variable((n + d, n + d), PSD=True)
    limits = [whole[:n, n:] == U, cp.diag(whole[:n, :n]) <= 1]
    problem = cp.Problem(cp.Minimize(cp.trace(whole[n:, n:])), limits)
    return float(np.sqrt(problem.solve(solver=cp.CLARABEL)))


def hierarchy_norm(U: np.ndarray, ancestors: np.ndarray) -> float:
    """The same for a hierarchy; ``ancestors`` of shape (leaves, nodes) has the leaf itself too."""
    nodes = ancestors.shape[1]
    V, strength = cp.Variable((nodes, U.shape[1])), cp.Variable(nodes)
    cost = sum(cp.quad_over_lin(V[k], strength[k]) for k in range(nodes))
    limits = [ancestors @ V == U, ancestors @ strength <= 1]
    return float(np.sqrt(cp.Problem(cp.Minimize(cost), limits).solve(solver=cp.CLARABEL)))


def binary_tree(depth: int) -> np.ndarray:
    """Leaves' ancestors in a complete binary tree, by heap order."""
    leaves = 2**depth
    ancestors = np.zeros((leaves, 2 * leaves - 1))
    for leaf in range(leaves):
        node = leaves - 1 + leaf
        while node >= 0:
            ancestors[leaf, node] = 1
            node = (node + 1) // 2 - 1
    return ancestors


def cases(rng: np.random.Generator) -> dict[str, tuple[np.ndarray, np.ndarray, list[float | None]]]:
    """U, its hierarchy, and the norms that the thesis proves: shared, hierarchy's, F, trace."""
    tree = binary_tree(2)
    leaves = len(tree)
    u, factors = rng.normal(size=5), rng.normal(size=leaves)
    length = float(np.linalg.norm(u))
    disjoint = np.zeros((leaves, 3 * leaves))
    for leaf in range(leaves):
        disjoint[leaf, 3 * leaf : 3 * leaf + 3] = rng.normal(size=3)
    lengths = np.linalg.norm(disjoint, axis=1)
    whole = float(np.linalg.norm(lengths))
    free = rng.normal(size=(leaves, 5))
    root = np.sqrt(leaves) * length
    scaled = float(np.linalg.norm(factors)) * length
    return {
        "full sharing": (np.tile(u, (leaves, 1)), tree, [length, length, root, root]),
        "no sharing: leaves alone": (
            free, np.eye(leaves), [None, float(np.linalg.norm(free)), None, None],
        ),
        "disjoint features": (disjoint, tree, [whole, whole, whole, float(lengths.sum())]),
        "factor scaling": (
            np.outer(factors, u), tree, [float(abs(factors).max()) * length, None, scaled, scaled],
        ),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    header("Shared norms")
    rows = []
    for seed in range(args.seeds):
        for name, (U, ancestors, proved) in cases(np.random.default_rng(seed)).items():
            ours = [
                shared_norm(U),
                hierarchy_norm(U, ancestors),
                float(np.linalg.norm(U)),
                float(np.linalg.norm(U, "nuc")),
            ]
            off = [abs(a / b - 1) for a, b in zip(ours, proved, strict=True) if b is not None]
            rows.append([name, seed, *(f"{value:.4f}" for value in ours), f"{max(off):.0e}"])
    columns = ["U", "seed", "shared", "of the hierarchy", "Frobenius", "trace"]
    print(table([*columns, "largest difference to what the thesis proves"], sorted(rows)))


if __name__ == "__main__":
    main()
