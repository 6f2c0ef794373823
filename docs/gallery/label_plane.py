"""All labels of a short sequence in the plane, and a search for the slack-rescaled maximum."""

import itertools

import numpy as np

from structsolve.plotting import plot_label_plane

# Scores of 6 positions, 2 states and their transitions; every other label against the first.
rng = np.random.default_rng(3)
node, transition = rng.normal(size=(6, 2)), rng.normal(size=(2, 2))
labels = np.array(list(itertools.product((0, 1), repeat=6)))
scores = node[np.arange(6), labels].sum(axis=1)
scores += transition[labels[:, :-1], labels[:, 1:]].sum(axis=1)
truth = 21
h, g = 1 + scores - scores[truth], (labels != labels[truth]).sum(axis=1).astype(float)

# Bisection over lam: the oracle answers with the label of the largest h + lam g.
path, low, high = [], 0.05, 20.0
while high > 1.2 * low:
    lam = np.sqrt(low * high)
    best = np.argmax(h + lam * g)
    path.append({"lam": lam, "h": h[best], "g": g[best], "value": h[best] * g[best]})
    low, high = (lam, high) if lam * g[best] <= h[best] else (low, lam)

figure = plot_label_plane(np.c_[h, g], path, psi=lambda h, g: np.maximum(h, 0) * g)
