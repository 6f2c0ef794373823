"""
Labels that include others
==========================

Topics include their broader topics: "pop" implies "music". ``"dag"`` predicts only sets that
contain all ancestors of their labels (:doc:`/hierarchies`).
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

from structsolve import StructuredSVM
from structsolve.plugins.dag import DagStructure
from structsolve.plugins.multilabel import MultilabelStructure

topics = nx.DiGraph(
    [("art", "music"), ("art", "film"), ("music", "pop"), ("music", "opera"), ("film", "drama"),
     ("stage", "opera"), ("stage", "drama")]
)  # fmt: skip
names = list(topics)
rng = np.random.default_rng(0)


def draw(n):
    """Some leaves with all their ancestors, and noisy features."""
    Y = np.zeros((n, len(names)), int)
    for row in Y:
        for leaf in rng.choice(["pop", "opera", "drama", "film"], rng.integers(1, 3), False):
            row[[names.index(t) for t in {leaf, *nx.ancestors(topics, leaf)}]] = 1
    return Y @ MIX + 1.2 * rng.normal(size=(n, 12)), Y


MIX = rng.normal(size=(len(names), 12))
(X, Y), (X_test, Y_test) = draw(200), draw(600)
sets = {
    "each alone": StructuredSVM(MultilabelStructure(edges="none"), alpha=0.01),
    "closed sets": StructuredSVM(DagStructure(topics), alpha=0.01),
}
guesses = {name: model.fit(X, Y).predict(X_test) for name, model in sets.items()}

# %%
# A set is broken if a label is on and one of its parents is off.
edges = np.array([(names.index(a), names.index(b)) for a, b in topics.edges])
for name, G in guesses.items():
    broken = (G[:, edges[:, 1]] > G[:, edges[:, 0]]).any(axis=1).mean()
    print(f"{name}: {broken:.0%} broken, {(Y_test == G).all(axis=1).mean():.0%} all right")

# %%
# One text whose single labels are inconsistent: blue labels are on, orange ones break the rule.
odd = (guesses["each alone"][:, edges[:, 1]] > guesses["each alone"][:, edges[:, 0]]).any(axis=1)
right = (guesses["closed sets"] == Y_test).all(axis=1)
row = int(np.argmax(odd & right))
places = {"art": (0, 2), "stage": (2, 2), "music": (-0.6, 1), "film": (0.9, 1), "pop": (-1.2, 0),
          "opera": (0.6, 0), "drama": (2, 0)}  # fmt: skip
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for ax, (name, G) in zip(axes, guesses.items()):
    on = dict(zip(names, G[row]))
    colors = [
        "#dddddd" if not on[t] else "#56B4E9" if all(on[p] for p in topics.pred[t]) else "#E69F00"
        for t in names
    ]
    nx.draw_networkx(topics, places, ax=ax, node_color=colors, node_size=1500, font_size=9)
    ax.set_title(name)
    ax.axis("off")
    ax.margins(0.15)
