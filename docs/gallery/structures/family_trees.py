"""
Trees: what runs in families
============================

A trait is mostly inherited, and a test for it often errs. Each example is a family tree; ``"tree"``
labels all of its nodes together (:doc:`/trees`).
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

from structsolve import StructuredSVM
from structsolve.plugins.tree import TreeStructure

rng = np.random.default_rng(2)


def family(n=31):
    """Parents of a tree in which everyone has two children, a noisy test, and the trait."""
    parents = np.array([-1, *[(k - 1) // 2 for k in range(1, n)]])
    y = np.zeros(n, int)
    y[0] = rng.integers(2)
    for k in range(1, n):
        y[k] = y[parents[k]] if rng.random() < 0.9 else 1 - y[parents[k]]
    return (np.column_stack([y + 0.9 * rng.normal(size=n)]), parents), y


X, Y = zip(*[family() for _ in range(80)])
models = {
    "the test alone": StructuredSVM(TreeStructure(transitions=False), alpha=0.01, tol=0.01),
    "with the family": StructuredSVM("tree", alpha=0.01, tol=0.01),
}
for model in models.values():
    model.fit(X[:40], Y[:40])

# %%
# One family: filled nodes have the trait, orange nodes are errors.
i = 47
graph = nx.DiGraph([(p, k) for k, p in enumerate(X[i][1]) if p >= 0])
levels = [int(np.log2(k + 1)) for k in range(31)]
places = {k: ((k + 1.5 - 2**d) / 2**d, -d) for k, d in enumerate(levels)}
figure, axes = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
for ax, (name, model) in zip(axes, models.items()):
    guess = model.predict([X[i]])[0]
    edge = ["#0072B2" if a == b else "#D55E00" for a, b in zip(guess, Y[i])]
    fill = [e if a else "white" for a, e in zip(guess, edge)]
    nx.draw_networkx_nodes(graph, places, ax=ax, node_color=fill, edgecolors=edge, node_size=90,
                           nodelist=range(31), linewidths=1.8)  # fmt: skip
    nx.draw_networkx_edges(graph, places, ax=ax, arrows=False, edge_color="#999999")
    ax.set_title(f"{name}: {model.score(X[40:], Y[40:]):.1%} right", fontsize=10)
    ax.axis("off")
