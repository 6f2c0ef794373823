"""
A silhouette under noise
========================

A model learns weights from the right half of a picture and labels the left half (:doc:`/pictures`).
"""

import numpy as np
from matplotlib.figure import Figure
from skimage import data

from structsolve import StructuredSVM

horse = data.horse()[:320:2, :384:2].astype(int)  # (160, 192)
noisy = horse + np.random.default_rng(0).normal(size=horse.shape)
tiles = [np.s_[i : i + 32, j : j + 32] for i in range(0, 160, 32) for j in range(96, 192, 32)]
X, Y = [noisy[tile][..., None] for tile in tiles], [horse[tile] for tile in tiles]
model = StructuredSVM("grid", alpha=1.0, tol=0.05).fit(X, Y)

unseen, truth = noisy[:, :96], horse[:, :96]
pictures = {
    "truth": truth,
    "noise": unseen,
    "threshold": unseen > 0.5,
    "grid": model.predict([unseen[..., None]])[0],
}
figure = Figure(figsize=(9, 4), layout="constrained")
for axes, (title, picture) in zip(figure.subplots(1, 4), pictures.items()):
    axes.imshow(picture, cmap="gray", vmin=0, vmax=1)
    if title in ("threshold", "grid"):
        title += f", {(picture != truth).mean():.1%} wrong"
    axes.set_title(title, size=9)
    axes.axis("off")
