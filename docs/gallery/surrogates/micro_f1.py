"""
Rare labels: F1 in place of errors
==================================

Few labels are on in these label sets. A prediction of no labels is nearly always right but useless,
and a slightly over-regularised margin predicts that. ``"micro-f1"`` trains for the reported score
and tolerates a larger alpha. With the best alpha of each, the three surrogates are equal here
(:doc:`/surrogates`).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import f1_score

from structsolve import StructuredSVM
from structsolve.plugins.multilabel import MultilabelStructure

rng = np.random.default_rng(0)
B = rng.normal(size=(10, 8))


def draw(n):
    """Eight labels, each on in few rows; the features explain them in part."""
    X = rng.normal(size=(n, 10))
    return X, (X @ B + 1.5 * rng.normal(size=(n, 8)) > 6).astype(int)


(X, Y), (X_test, Y_test) = draw(400), draw(2000)
print(f"labels that are on: {Y.mean():.1%}")
alphas = np.geomspace(1e-4, 1, 7)
scores = {"margin": [], "beta:0.5": [], "micro-f1": []}
for name, line in scores.items():
    for alpha in alphas:
        model = StructuredSVM(
            MultilabelStructure(edges="none"), surrogate=name, alpha=alpha, tol=0.02
        )
        guess = model.fit(X, Y).predict(X_test)
        line.append(f1_score(Y_test, guess, average="micro", zero_division=0))

# %%
figure, axes = plt.subplots(figsize=(5.5, 3.8), layout="constrained")
for (name, line), color in zip(scores.items(), ["#D55E00", "#009E73", "#0072B2"]):
    axes.plot(alphas, line, color=color, marker="o", label=name)
axes.set(xscale="log", xlabel="alpha", ylabel="micro-F1 on new rows", ylim=(0, None))
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
