"""
ProbLoss: a smooth step
=======================

The loss jumps where a wrong label overtakes the right one; the margin and slack rescaling are lines
above that step. ProbLoss is a smooth step as long as the right label is ahead, and its tangent
beyond. With correct labels it makes slightly fewer errors than the margin. With a fifth of the
training labels wrong it needs more regularisation, because its tangent is steeper
(:doc:`/theory/probloss`).
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from structsolve import StructuredSVM, make_strips

train, test = make_strips(n_train=120, n_test=300)
rng = np.random.default_rng(0)
noisy = [np.where(rng.random(len(y)) < 0.2, rng.integers(0, 10, len(y)), y) for y in train.labels]
alphas = [0.03, 0.1, 0.3]
errors = {}
for name in ("margin", "probloss"):
    for kind, labels in {"labels that hold": train.labels, "a fifth is wrong": noisy}.items():
        for alpha in alphas:
            model = StructuredSVM(
                "chain", surrogate=name, solver="cutting-plane", alpha=alpha, tol=0.1, max_iter=200
            )
            error = 1 - model.fit(train.pixels, labels).score(test.pixels, test.labels)
            errors.setdefault((name, kind), []).append(error)

# %%
# Left: the cost of a label of loss 4, over its score ahead of the truth. Right: errors.
COLORS = {"margin": "#D55E00", "probloss": "#0072B2", "slack": "#009E73"}
h, g = np.linspace(-6, 3, 200), 4.0
curves = {
    "margin": np.maximum(h + g, 0),
    "slack": np.maximum((h + 1) * g, 0),
    "probloss": np.where(h < 0, 2 * g * norm.cdf(h, scale=np.sqrt(2 * g / np.pi)), g + g**0.5 * h),
}
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
left.step([-6, 0, 3], [0, 0, g], color="#333333", linewidth=1, linestyle=":", label="loss")
for name, curve in curves.items():
    left.plot(h, curve, color=COLORS[name], label=name)
left.set(xlabel="score ahead of the truth, h", ylabel="cost", ylim=(-0.2, 10))
for (name, kind), line in errors.items():
    style = "-" if kind == "labels that hold" else "--"
    right.plot(alphas, line, style, color=COLORS[name], marker="o", label=f"{name}, {kind}")
right.set(xscale="log", xlabel="alpha", ylabel="errors on clean labels", ylim=(0, None))
right.set_xticks(alphas, alphas)
right.minorticks_off()
for axes in (left, right):
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
