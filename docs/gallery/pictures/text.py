"""
Ink and paper
=============

Neighbours prefer equal labels, and there are two labels, so one minimum cut gives the best
labeling, here for scores written by hand (:doc:`/graphs`).
"""

import numpy as np
from matplotlib.figure import Figure
from skimage import data, filters

from structsolve.plugins.mrf import decode, grid_edges

page = data.text()[:120, 40:300] / 255
page += 0.04 * np.random.default_rng(0).normal(size=page.shape)
ink = filters.threshold_local(page, 41, offset=0.03) - page  # above 0: darker than around it
unary = np.stack([np.zeros(page.size), 12 * ink.ravel()], axis=1)
best = decode(unary, grid_edges(*page.shape), 0.6 * np.eye(2), oracle="mincut")

pictures = {
    "photograph, noise": page,
    "local threshold": ink <= 0,
    "minimum cut": best.label.reshape(page.shape) == 0,
}
figure = Figure(figsize=(9, 1.7), layout="constrained")
for axes, (title, picture) in zip(figure.subplots(1, 3), pictures.items()):
    axes.imshow(picture, cmap="gray")
    axes.set_title(title, size=9)
    axes.axis("off")
