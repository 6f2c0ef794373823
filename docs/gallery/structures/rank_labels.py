"""
Rank labels
===========

People with three known features rank six kinds of food. ``"permutation"`` gives every label its
rank in one assignment, and the footrule counts by how many ranks labels are off
(:doc:`/permutations`).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import RidgeCV

from structsolve import StructuredSVM
from structsolve.plugins.permutation import PermutationStructure

FOOD = ["soup", "rice", "fish", "beans", "bread", "cake"]
rng = np.random.default_rng(0)
X = rng.normal(size=(400, 3))
taste = X @ rng.normal(size=(3, 6)) + 0.4 * rng.normal(size=(400, 6))
Y = np.argsort(np.argsort(-taste, axis=1), axis=1)  # ranks: 0 is the best
train, test = slice(0, 200), slice(200, 400)

# %%
# ``weights="matrix"`` is for the picture: by default training would find that one score for each
# label is enough.
structure = PermutationStructure(weights="matrix")
model = StructuredSVM(structure, loss="spearman", alpha=0.01, tol=0.01)
model.fit(X[train], Y[train])
guess = model.predict(X[test])
ridge = RidgeCV().fit(X[train], Y[train]).predict(X[test]).argsort().argsort()
chance = np.array([rng.permutation(6) for _ in range(200)])
for name, ranks in {"by chance": chance, "ridge on ranks": ridge, "permutation": guess}.items():
    print(f"{name}: {np.abs(ranks - Y[test]).sum(axis=1).mean():.2f} ranks off a person")

# %%
# Ranks follow from linear scores here, so ridge regression is hard to beat. Left: predicted and
# true ranks. Right: the weight of the first of the three features for each label and rank.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
share = np.zeros((6, 6))
np.add.at(share, (Y[test].ravel(), guess.ravel()), 1 / 200)
image = left.imshow(share, cmap="Blues", vmin=0, vmax=1)
left.set(xlabel="predicted rank", ylabel="true rank", xticks=range(6), yticks=range(6))
figure.colorbar(image, label="share")
weights = model.coef_["node"][0]
image = right.imshow(weights, cmap="PuOr", vmin=-abs(weights).max(), vmax=abs(weights).max())
right.set(xlabel="rank", xticks=range(6), yticks=range(6), yticklabels=FOOD)
figure.colorbar(image, label="weight of the first feature")
