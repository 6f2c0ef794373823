"""
Which label sets do people confuse?
===================================

The lit segments of a seven-segment display are a label set. If segments are classified one by one,
noisy pictures give sets that are no digit. With a score for every pair of labels, ``"multilabel"``
learns which labels occur together (:doc:`/graphs`).
"""

import matplotlib.pyplot as plt
import numpy as np

from structsolve import StructuredSVM
from structsolve.plugins.multilabel import MultilabelStructure

#            a  b  c  d  e  f  g: clockwise from the top, then the middle
DIGITS = np.array(
    [[1, 1, 1, 1, 1, 1, 0], [0, 1, 1, 0, 0, 0, 0], [1, 1, 0, 1, 1, 0, 1], [1, 1, 1, 1, 0, 0, 1],
     [0, 1, 1, 0, 0, 1, 1], [1, 0, 1, 1, 0, 1, 1], [1, 0, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0, 0],
     [1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 1, 1]]
)  # fmt: skip
rng = np.random.default_rng(0)
y = rng.integers(0, 10, 1200)
Y = DIGITS[y]
X = Y + 0.55 * rng.normal(size=Y.shape)  # how bright each segment looks
train, test = slice(0, 400), slice(400, 1200)

# %%
models = {
    "one by one": StructuredSVM(MultilabelStructure(edges="none"), alpha=0.003, tol=0.01),
    "all pairs": StructuredSVM(MultilabelStructure(edges="full"), alpha=0.003, tol=0.01),
}
guesses = {name: m.fit(X[train], Y[train]).predict(X[test]) for name, m in models.items()}
figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
names = [*map(str, range(10)), "none"]
for ax, (name, sets) in zip(axes, guesses.items()):
    same = (sets[:, None] == DIGITS).all(axis=2)
    read = np.where(same.any(axis=1), same.argmax(axis=1), 10)
    table = np.zeros((10, 11))
    np.add.at(table, (y[test], read), 1)
    ax.imshow(table / table.sum(axis=1, keepdims=True), cmap="Blues", vmin=0, vmax=1)
    right = (sets == Y[test]).all(axis=1).mean()
    ax.set(title=f"{name}: {right:.0%} of the sets right", xticks=range(11), yticks=range(10))
    ax.set_xticklabels(names, fontsize=8)
    ax.set(xlabel="read as", ylabel="digit")

# %%
# The weights of pairs: blue pairs tend to be lit together, red pairs do not.
pairs = models["all pairs"].coef_["pair"]
print("weights of pairs have the shape", pairs.shape)
edges = np.array([(a, b) for a in range(7) for b in range(a + 1, 7)])
liking = np.full((7, 7), np.nan)
together = pairs[:, 1, 1] + pairs[:, 0, 0] - pairs[:, 0, 1] - pairs[:, 1, 0]
liking[edges[:, 1], edges[:, 0]] = together
limit = np.nanmax(abs(liking))
image = axes[2].imshow(liking, cmap="RdBu", vmin=-limit, vmax=limit)
axes[2].set(title="which ones go together", xticks=range(7), yticks=range(7))
axes[2].set_xticklabels("abcdefg")
axes[2].set_yticklabels("abcdefg")
figure.colorbar(image, ax=axes[2])
