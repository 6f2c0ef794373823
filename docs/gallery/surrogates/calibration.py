"""
Marginals you can trust: calibration
====================================

If digits get a probability of 80 %, are 80 % of them right? A conditional random field is trained
for this, and does better with a weaker regulariser. The margin is not: its scores have the scale
that separates labels (:doc:`/probabilities`).
"""

import matplotlib.pyplot as plt
import numpy as np

from structsolve import StructuredSVM, make_strips

train, test = make_strips(n_train=400, n_test=200)
truth = np.concatenate(test.labels)
figure, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained", sharey=True)
for ax, surrogate in zip(axes, ["margin", "crf"]):
    model = StructuredSVM("chain", surrogate=surrogate, alpha=0.001, tol=0.05)
    model.fit(train.pixels, train.labels)
    chances = np.concatenate(model.predict_marginals(test.pixels))
    best = chances.argmax(axis=1)
    sure, right = chances.max(axis=1), model.classes_[best] == truth
    bins = np.digitize(sure, np.linspace(0, 1, 11)[1:-1])
    filled = [k for k in range(10) if (bins == k).sum() >= 10]
    means = [sure[bins == k].mean() for k in filled]
    shares = [right[bins == k].mean() for k in filled]
    off = sum(abs(s - m) * (bins == k).mean() for k, m, s in zip(filled, means, shares))
    ax.plot([0, 1], [0, 1], color="#999999", linewidth=1, linestyle=":")
    ax.plot(means, shares, color="#0072B2", marker="o")
    ax.set(title=f"{surrogate}: {off:.1%} off", xlabel="mean predicted probability", aspect="equal")
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("share of right digits")
