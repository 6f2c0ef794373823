"""
Matching landmarks
==================

Landmarks of one picture are matched to those of another, which was moved, turned and made noisy.
Every pair has features, an assignment finds the best matching, and training learns which features
are informative (:doc:`/permutations`).
"""

import matplotlib.pyplot as plt
import numpy as np

from structsolve import StructuredSVM
from structsolve.plugins.permutation import assign

rng = np.random.default_rng(0)


def pair(n=9):
    """Points with three descriptors, the same points moved, and the true matching."""
    points = rng.uniform(-1, 1, (n, 2))
    kind = rng.normal(size=(n, 3))
    angle, order = rng.uniform(-0.4, 0.4), rng.permutation(n)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    moved = points @ turn + 0.05 * rng.normal(size=(n, 2))
    seen = kind + rng.normal(size=(n, 3)) * [0.4, 1.5, 6.0]  # the last one is mostly noise
    return points, moved[order], kind, seen[order], np.argsort(order)


def features(points, moved, kind, seen, _):
    """How near each pair is, in place and in each descriptor."""
    place = np.sqrt(((points[:, None] - moved[None]) ** 2).sum(axis=2, keepdims=True))
    return -np.concatenate([place, np.abs(kind[:, None] - seen[None])], axis=2)


data = [pair() for _ in range(120)]
X, Y = [features(*one) for one in data], [one[-1] for one in data]
model = StructuredSVM("permutation", solver="cutting-plane", alpha=0.001, tol=0.01)
model.fit(X[:60], Y[:60])
even = [assign(x.sum(axis=2)).columns for x in X[60:]]
learned = model.predict(X[60:])
print("weights of place and descriptions:", model.coef_["pair"].round(2))

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
i = int(np.argmax([(a != y).sum() - 9 * (b != y).sum() for a, b, y in zip(even, learned, Y[60:])]))
points, moved = data[60 + i][0], data[60 + i][1] + [2.6, 0]
for ax, (name, rows) in zip(axes, {"even weights": even, "learned": learned}.items()):
    share = np.mean([row == y for row, y in zip(rows, Y[60:])])
    for k, column in enumerate(rows[i]):
        color = "#0072B2" if column == Y[60 + i][k] else "#D55E00"
        ax.plot(*np.transpose([points[k], moved[column]]), color=color, linewidth=1)
    ax.scatter(*points.T, color="#333333", s=25, zorder=3)
    ax.scatter(*moved.T, color="#333333", s=25, marker="s", zorder=3)
    ax.set_title(f"{name}: {share:.0%} right on 60 pairs of pictures", fontsize=10)
    ax.axis("off")
