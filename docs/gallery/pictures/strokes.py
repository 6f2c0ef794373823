"""
A few strokes on a picture
==========================

Strokes label a few pixels of one picture. The others are void pixels, which training ignores and
prediction labels. Neighbours of similar colour tend to have equal labels; training learns how
strongly (:doc:`/pictures`).
"""

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_sample_image

from structsolve import StructuredSVM
from structsolve.plugins.grid import GridStructure

photo = load_sample_image("china.jpg")[::4, ::4] / 255  # (107, 160, 3)
strokes = np.full(photo.shape[:2], -1)
strokes[3:6, 5:155] = strokes[10:40, 120:124] = strokes[10:35, 5:9] = 0  # sky and water
strokes[95:98, 5:155] = strokes[35:98, 55:59] = strokes[60:80, 140:144] = 1  # what is before them
structure = GridStructure(contrast="gaussian", void=-1)
model = StructuredSVM(structure, alpha=1.0).fit([photo], [strokes])
label = model.predict([photo])[0]

figure = Figure(figsize=(9, 2.2), layout="constrained")
marked = photo.copy()
marked[strokes >= 0] = np.array([[0, 0.4, 1], [1, 0.8, 0]])[strokes[strokes >= 0]]
cut_out = np.where(label[..., None] == 1, photo, 1)
for axes, picture in zip(figure.subplots(1, 3), [photo, marked, cut_out]):
    axes.imshow(picture)
    axes.axis("off")
