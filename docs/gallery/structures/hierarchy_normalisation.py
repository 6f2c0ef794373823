"""
Hierarchy with normalisation
============================

Classes of a hierarchy share the weights of their ancestors. A plain penalty favours deep classes,
because they spread their weights over more vectors. Node weights compensate for this
(:doc:`/normalized_hierarchies`).
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

from structsolve import HierarchicalSVM, StructuredSVM

# %%
# A tree that extends in one direction: leaf k is k + 1 levels down.
tree, leaves, inner = nx.DiGraph(), [], "root"
for level in range(8):
    tree.add_edge(inner, f"leaf{level}")
    leaves.append(f"leaf{level}")
    tree.add_edge(inner, f"inner{level}")
    inner = f"inner{level}"
tree.add_edge(inner, "leaf8")
leaves.append("leaf8")

rng = np.random.default_rng(1)
direction = {"root": np.zeros(40)}
for parent, child in nx.bfs_edges(tree, "root"):
    step = 0.8 * 0.7 ** nx.shortest_path_length(tree, "root", parent)  # upper nodes decide most
    direction[child] = direction[parent] + step * rng.normal(size=40)


def draw(n):
    """Rows around the directions of their leaves."""
    y = rng.choice(leaves, n)
    return np.array([direction[leaf] for leaf in y]) + rng.normal(size=(n, 40)), y


# %%
# Errors of three rules and of the model without a hierarchy, over alpha: means of four draws.
alphas = np.geomspace(0.003, 3, 7)
settings = {"loss": "zero-one", "tol": 0.02}
errors = {name: np.zeros(7) for name in ("flat", "none", "rho:2", "maxmin")}
for _ in range(4):
    (X, y), (X_test, y_test) = draw(100), draw(2000)
    for k, alpha in enumerate(alphas):
        for rule, line in errors.items():
            if rule == "flat":
                model = StructuredSVM("multiclass", alpha=alpha, **settings)
            else:
                model = HierarchicalSVM(tree, normalization=rule, alpha=alpha, **settings)
            line[k] += np.mean(model.fit(X, y).predict(X_test) != y_test) / 4

# %%
# The best alpha depends on the rule, and the best rule depends on the tree: choose both by
# cross-validation.
figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
for (name, line), color in zip(errors.items(), ["#999999", "#D55E00", "#0072B2", "#009E73"]):
    axes.plot(alphas, line, color=color, marker="o", label=name)
axes.set(xscale="log", xlabel="alpha", ylabel="share of errors")
figure.legend(loc="outside right upper", frameon=False, title="normalization")
axes.spines[["top", "right"]].set_visible(False)
