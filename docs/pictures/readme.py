"""The picture of the README: strips read as chains, strokes that spread, and a gap that closes.

Run from anywhere; writes `readme.png` beside itself, where it is kept.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

from structsolve import StructuredSVM, get_structure, make_strips
from structsolve.plugins.grid import GridStructure
from structsolve.solvers import BCFW

BLUE, RED, INK = "#0072B2", "#D55E00", "#333333"


def title(axes, text):
    """Put a title over the left edge."""
    axes.set_title(text, loc="left", fontsize=11, fontweight="bold", color=INK)


def strips(axes):
    """Draw two strips of digits and what two models read there."""
    train, test = make_strips(n_train=300, n_test=60)
    alone = get_structure("chain", transitions=False, start_end=False)
    rows = {}
    for name, structure in {"one by one": alone, "as a chain": "chain"}.items():
        model = StructuredSVM(structure, alpha=0.01, tol=0.01).fit(train.pixels, train.labels)
        rows[name] = model.predict(test.pixels)
    wrong = [(row != truth).sum() for row, truth in zip(rows["one by one"], test.labels)]
    right = [(row == truth).all() for row, truth in zip(rows["as a chain"], test.labels)]
    chosen = np.argsort(np.where(right, wrong, -1), kind="stable")[-2:]
    for k, i in enumerate(chosen):
        top, truth = 3.0 * k, test.labels[i]
        for t, image in enumerate(test.images[i]):
            axes.imshow(image, cmap="gray_r", extent=(t, t + 0.94, top + 1, top))
        for y, (name, labels) in zip((top + 1.4, top + 2.1), rows.items()):
            axes.text(-0.3, y, name, ha="right", va="center", fontsize=9, color=INK)
            for t, (label, true) in enumerate(zip(labels[i], truth)):
                style = {"color": INK}
                if label != true:
                    box = {"boxstyle": "round,pad=0.15", "fc": RED, "ec": "none"}
                    style = {"color": "white", "bbox": box}
                axes.text(t + 0.47, y, str(label), ha="center", va="center", fontsize=10, **style)
    axes.set(xlim=(-2.6, 10), ylim=(5.6, -0.1))
    axes.axis("off")
    title(axes, "Sequences: neighbours help")


def strokes(left, right):
    """Draw a photograph with strokes on it, and what they say of all pixels."""
    photo = load_sample_image("china.jpg")[::4, ::4] / 255
    marks = np.full(photo.shape[:2], -1)
    marks[3:6, 5:155] = marks[10:40, 120:124] = marks[10:35, 5:9] = 0
    marks[95:98, 5:155] = marks[35:98, 55:59] = marks[60:80, 140:144] = 1
    structure = GridStructure(contrast="gaussian", void=-1)
    label = StructuredSVM(structure, alpha=1.0).fit([photo], [marks]).predict([photo])[0]
    shown = photo.copy()
    shown[marks >= 0] = np.array([[0, 0.4, 1], [1, 0.8, 0]])[marks[marks >= 0]]
    left.imshow(shown)
    right.imshow(np.where(label[..., None] == 1, photo, 1))
    title(left, "Pictures: from strokes ...")
    title(right, "... to all pixels")
    for axes in (left, right):
        axes.axis("off")


def certificate(axes):
    """Draw the objective and its lower bound over passes."""
    train, _ = make_strips(n_train=300, n_test=1)
    model = StructuredSVM("chain", solver=BCFW(certify_every=1), alpha=0.01, tol=0.002)
    history = model.fit(train.pixels, train.labels).history_
    places = np.arange(1, len(history) + 1)
    primal = np.minimum.accumulate([one["primal"] for one in history])
    dual = np.maximum.accumulate([one["dual"] for one in history])
    axes.fill_between(places, dual, primal, color="#cccccc", linewidth=0, label="gap")
    axes.plot(places, primal, color=RED, marker="o", markersize=3, label="objective")
    axes.plot(places, dual, color=BLUE, marker="o", markersize=3, label="lower bound")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("passes over the data", color=INK, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8, colors=INK)
    axes.legend(frameon=False, fontsize=9)
    title(axes, f"Training: within {(primal[-1] - dual[-1]) / primal[-1]:.1%} of the best, proved")


def main():
    """Draw and write it."""
    figure = plt.figure(figsize=(10, 5.4), layout="constrained")
    parts = figure.subplot_mosaic([["strips", "gap"], ["left", "right"]])
    strips(parts["strips"])
    strokes(parts["left"], parts["right"])
    certificate(parts["gap"])
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=90)


if __name__ == "__main__":
    main()
