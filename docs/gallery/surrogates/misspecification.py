"""
Max-min v. margin v. CRF: when no class has half
================================================

The probabilities of three classes change along x, and in the middle no class has more than half.
There the margin does not find the best class. The max-min margin and the CRF do. For other losses,
the max-min margin also finds the class of least expected loss (:doc:`/theory/max_min`).
"""

import matplotlib.pyplot as plt
import numpy as np

from structsolve import CostMatrix, StructuredSVM

rng = np.random.default_rng(0)


def chances(x):
    """Probabilities of the three classes at x: none exceeds half between -0.5 and 0.5."""
    scores = np.column_stack([1.2 * x, 0.25 + 0 * x, -1.2 * x])
    return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)


def features(x):
    """Bumps over x, enough to fit any smooth score."""
    return np.exp(-((x[:, None] - np.linspace(-2.4, 2.4, 13)) ** 2) / 0.25)


x = rng.uniform(-2.2, 2.2, 3000)
y = (rng.uniform(size=(3000, 1)) > np.cumsum(chances(x), axis=1)).sum(axis=1)
costs = CostMatrix([[0, 1, 4], [1, 0, 1], [4, 1, 0]])

# %%
# Left: the 0-1 loss. Right: a loss with a high cost of confusing the outer classes.
line = np.linspace(-2, 2, 200)
figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained", sharey=True)
for ax, (name, loss) in zip(axes, {"0-1 loss": "zero-one", "costs 1 and 4": costs}.items()):
    table = 1 - np.eye(3) if loss == "zero-one" else np.asarray(costs.matrix)
    best = (chances(line) @ table).argmin(axis=1)
    rows = {"least loss": best}
    for surrogate in ("margin", "crf", "max-min"):
        model = StructuredSVM("multiclass", surrogate=surrogate, loss=loss, alpha=1e-4, tol=0.01)
        rows[surrogate] = model.fit(features(x), y).predict(features(line))
    for k, labels in enumerate(rows.values()):
        extra = (table[labels] * chances(line)).sum(axis=1).mean()
        extra -= (table[best] * chances(line)).sum(axis=1).mean()
        ax.imshow(
            labels[None], extent=(-2, 2, k + 0.85, k), aspect="auto", cmap="viridis", vmin=0, vmax=2
        )
        if k:
            ax.text(2.05, k + 0.42, f"+{max(extra, 0):.3f}", va="center", fontsize=9)
    ax.set(ylim=(len(rows), -0.1), yticks=np.arange(len(rows)) + 0.42, xlabel="x", title=name)
    ax.set_yticklabels(rows)
