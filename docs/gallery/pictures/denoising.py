"""
A photograph under noise
========================

The labels are thirty-two grey levels. The penalty on steps between neighbours is constant beyond
six levels (:doc:`/graphs`).
"""

import numpy as np
from matplotlib.figure import Figure
from skimage import data, transform

from structsolve.plugins.mrf import decode, grid_edges

size, levels, sigma = (128, 128), 32, 0.1
clean = transform.resize(data.camera()[:256, 96:352], size, anti_aliasing=True)
noisy = clean + sigma * np.random.default_rng(0).normal(size=size)

grey = (np.arange(levels) + 0.5) / levels
unary = -((noisy.reshape(-1, 1) - grey) ** 2) / (2 * sigma**2)
step = np.abs(np.subtract.outer(np.arange(levels), np.arange(levels)))
smooth = -0.36 * np.minimum(step, 6.0)
best = decode(unary, grid_edges(*size), smooth, oracle="trws", max_iter=30)
restored = grey[best.label].reshape(size)

figure = Figure(figsize=(9, 3.2), layout="constrained")
pictures = {"photograph": clean, "noise": noisy, "best labeling": restored}
for axes, (title, picture) in zip(figure.subplots(1, 3), pictures.items()):
    axes.imshow(picture, vmin=0, vmax=1, cmap="gray")
    error = ((picture - clean) ** 2).mean()
    axes.set_title(f"{title}, {-10 * np.log10(error):.1f} dB" if error else title, size=9)
    axes.axis("off")
