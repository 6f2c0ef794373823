"""
Grades: classes with an order
=============================

Five grades describe a disease after a year. An error of two grades is worse than an error of one:
``loss="absolute"`` counts the distance. With thresholds all grades share one direction
(:doc:`/ordinal`).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

from structsolve import StructuredSVM
from structsolve.plugins.ordinal import OrdinalStructure

X, progress = load_diabetes(return_X_y=True)
X = StandardScaler().fit_transform(X)
y = np.searchsorted(np.quantile(progress, [0.2, 0.4, 0.6, 0.8]), progress)
train, test = slice(0, 300), slice(300, None)
settings = {"alpha": 0.01, "tol": 0.01}
models = {
    "classes without order": StructuredSVM("multiclass", **settings),
    "order in the loss": StructuredSVM("ordinal", loss="absolute", **settings),
    "one direction, thresholds": StructuredSVM(
        OrdinalStructure(thresholds=True), loss="absolute", **settings
    ),
}
errors = {}
for name, model in models.items():
    far = np.abs(model.fit(X[train], y[train]).predict(X[test]) - y[test])
    errors[name] = [np.mean(far == k) for k in range(5)]
    print(f"{name}: {far.mean():.2f} grades off on average")

# %%
# Left: the errors of each model in grades. Right: the direction, with its four thresholds.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
for k, ((name, line), color) in enumerate(zip(errors.items(), ["#999999", "#56B4E9", "#0072B2"])):
    left.bar(np.arange(5) + 0.27 * (k - 1), line, width=0.25, label=name, color=color)
left.set(xlabel="grades off", ylabel="share of people")
left.legend(frameon=False, fontsize=9)
w, b = model.coef_["node"][:, 0], model.coef_["threshold"]
along = X[test] @ w
shift = 0.2 * np.random.default_rng(0).uniform(-1, 1, len(along))
right.scatter(along, y[test] + shift, c=y[test], cmap="viridis", s=14)
for threshold in b:
    right.axvline(threshold, color="#333333", linewidth=0.8, linestyle=":")
right.set(xlabel="w . x", ylabel="true grade", yticks=range(5))
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
