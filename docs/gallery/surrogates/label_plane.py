"""
Slack rescaling in the label plane
==================================

Every label of one sequence is a point: its score minus that of the truth (h), and its loss (g).
Slack rescaling maximises (1 + h) g. An oracle that weighs h against g returns only corners of the
hull. The convex hull search begins at a guess and follows psi's tangents (:doc:`/surrogates`).
"""

import numpy as np

import structsolve
from structsolve import StructuredSVM
from structsolve.evaluation.plotting import plot_label_plane
from structsolve.potentials.calls import score
from structsolve.structure import calls
from structsolve.surrogates import Slack

# Noisy sequences of three classes, and a model of them.
rng = np.random.default_rng(5)
X = [rng.normal(size=(7, 3)) for _ in range(30)]
Y = [np.argmax(x + rng.normal(size=x.shape), axis=1) for x in X]
model = StructuredSVM("chain", surrogate=Slack(relaxed=True), alpha=0.1).fit(X, Y)

# One example: the path of the search, and every label.
i = 3
examples = model.space_.pack(X, Y)
problem = structsolve.Problem(model.space_, examples, surrogate=Slack(relaxed=True))
result = problem.trace(i, model)
theta = score(problem.potentials, i, model.flat_weights())
labels, truth = model.space_.enumerate_labels(examples, i), examples.label(i)
points = []
for label in labels:
    index, value = calls.difference(problem.parts, i, truth, label)
    points.append((-theta[index] @ value, calls.loss_value(problem.loss, i, truth, label)))

figure = plot_label_plane(points, result.path, psi=lambda h, g: np.maximum(1 + h, 0) * g)
