"""
Horizontal shapes by a supermodular grid
========================================

Labels are ordered, such as depths, and neighbours tend to have similar labels. With
:class:`~structsolve.solvers.SuperModular`, in every iterate of training one minimum cut gives the
best labeling, exactly, even on a grid with cycles (:doc:`/max_sum`).
"""

import matplotlib.pyplot as plt
import numpy as np

from structsolve import StructuredSVM
from structsolve.plugins.mrf import MRFStructure, grid_edges
from structsolve.solvers import BCFW, SuperModular

rng = np.random.default_rng(3)
SHAPE = (20, 30)


def picture():
    """Three layers with two wavy lines between them."""
    row, column = np.indices(SHAPE)
    waves = [2 * np.sin(column / rng.uniform(3, 6) + rng.uniform(0, 6)) for _ in range(2)]
    return (row > 6 + waves[0]).astype(int) + (row > 13 + waves[1])


Y = [picture().ravel() for _ in range(12)]
X = [np.eye(3)[y] + 1.1 * rng.normal(size=(y.size, 3)) for y in Y]

# %%
# Every call of the oracle is a minimum cut: ``oracle="mincut"`` would refuse other tables.
edges = grid_edges(*SHAPE)
structure = MRFStructure(edges, oracle="mincut")
solver = BCFW(constraints=[SuperModular("pair")])
model = StructuredSVM(structure, solver=solver, alpha=1.0, tol=0.05)
model.fit(X[:8], Y[:8])
flat = StructuredSVM(MRFStructure([]), alpha=0.05, tol=0.05).fit(X[:8], Y[:8])
guesses = {
    "truth": Y[8:],
    "pixel by pixel": flat.predict(X[8:]),
    "one minimum cut": model.predict(X[8:]),
}

# %%
# The learned differences have no negative entry: near labels attract, far labels do not.
table = np.triu(model.coef_["pair"])
table = table + np.triu(table, 1).T  # (t, s) is the same part as (s, t)
print(np.round(table[:-1, :-1] + table[1:, 1:] - table[:-1, 1:] - table[1:, :-1], 3))

# %%
figure, grid = plt.subplots(3, 4, figsize=(9, 4.8), layout="constrained")
for line, (name, rows) in zip(grid, guesses.items()):
    wrong = np.mean([row != y for row, y in zip(rows, Y[8:])])
    for axes, labels in zip(line, rows):
        axes.imshow(np.reshape(labels, SHAPE), cmap="viridis", vmin=0, vmax=2)
        axes.set(xticks=[], yticks=[])
    line[0].set_ylabel(name if name == "truth" else f"{name}\n{wrong:.1%} wrong", fontsize=9)
