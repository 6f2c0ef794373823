"""
Depth from two views
====================

The labels are how far each pixel of a motorcycle moved from one view to the other. TRW-S bounds the
distance of its labeling from the best one. White pixels have no known true disparity
(:doc:`/graphs`).
"""

import numpy as np
from matplotlib.figure import Figure
from skimage import data, transform

from structsolve.plugins.mrf import decode, grid_edges

size, levels = (100, 148), 14
left, right, truth = data.stereo_motorcycle()
scale = left.shape[1] / size[1]
left, right = (transform.resize(view, size, anti_aliasing=True) for view in (left, right))
truth = transform.resize(truth, size, order=0) / scale  # infinite where it is not known

# How badly each pixel of the left view fits the pixel of the right view d columns away.
cost = np.full((*size, levels), 0.25)
for d in range(levels):
    apart = np.abs(left[:, d:] - right[:, : size[1] - d]).mean(axis=2)
    cost[:, d:, d] = np.minimum(apart, 0.25)
step = np.abs(np.subtract.outer(np.arange(levels), np.arange(levels)))
smooth = -0.04 * np.minimum(step, 2.0)
best = decode(-cost.reshape(-1, levels), grid_edges(*size), smooth, oracle="trws")

pictures = {
    "left view": left,
    "true disparity": np.where(np.isfinite(truth), truth, np.nan),
    "pixel by pixel": cost.argmin(axis=2),
    f"as a graph: {best.value:.2f}, none above {best.bound:.2f}": best.label.reshape(size),
}
figure = Figure(figsize=(7, 5), layout="constrained")
for axes, (title, picture) in zip(figure.subplots(2, 2).flat, pictures.items()):
    axes.imshow(picture, vmin=0, vmax=levels - 1)
    axes.set_title(title, size=9)
    axes.axis("off")
