"""Pictures of the docs' gallery that need data sets: snakes, and disparities of Tsukuba.

The pictures are written to `docs/pictures` and kept there, because the docs are built without the
data.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from common import one_thread
from datasets import data_path
from snakes import SETTINGS, pictures

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"


def snakes(shown: int = 8) -> None:
    """Some test pictures, their labels, and the predictions of two models."""
    from matplotlib.figure import Figure

    from structsolve import StructuredSVM
    from structsolve.plugins.grid import GridStructure

    (X, Y), (Xt, Yt) = pictures("train"), pictures("test")
    with np.load(data_path("mrf-snakes", "snakes.npz"), allow_pickle=False) as data:
        shapes, pixels = data["shape_test"].astype(int), data["X_test"]
    bounds = np.cumsum(shapes.prod(axis=1))[:-1]
    photos = [x.reshape(*shape, 3) for x, shape in zip(np.split(pixels, bounds), shapes)]
    rows = {"picture": photos, "labels": Yt}
    for name, settings in SETTINGS.items():
        structure = GridStructure(**settings, oracle="exact")
        model = StructuredSVM(structure, alpha=10 / len(X), tol=0.01, max_iter=12).fit(X, Y)
        rows[f"{name}\n{model.score(Xt, Yt):.1%}"] = model.predict(Xt)
    figure = Figure(figsize=(9, 1.4 * len(rows)), layout="constrained")
    for (name, row), line in zip(rows.items(), figure.subplots(len(rows), shown)):
        for axes, picture in zip(line, row):
            axes.imshow(picture, cmap="turbo", vmin=0, vmax=10)
            axes.set(xticks=[], yticks=[])
        line[0].set_ylabel(name, size=9)
    figure.savefig(FOLDER / "snakes.png", dpi=80)


def tsukuba() -> None:
    """The disparities of the best labeling, beside the best disparity of each pixel alone."""
    from matplotlib.figure import Figure

    from structsolve.plugins.mrf import decode

    with np.load(data_path("mrf-tsukuba", "tsukuba.npz"), allow_pickle=False) as data:
        cost, edges, weights = data["unary"].astype(float), data["edges"], data["weights"]
        rows, columns = data["size"]
    differ = 1 - np.eye(cost.shape[1])
    best = decode(-cost, edges, -differ, weights=weights, oracle="trws")
    print(f"tsukuba: score {best.value:.0f}, bound {best.bound:.1f}")
    titles = {
        "pixel by pixel": cost.argmin(axis=1),
        f"score {best.value:.0f}, none above {best.bound:.0f}": best.label,
    }
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    for axes, (title, label) in zip(figure.subplots(1, 2), titles.items()):
        axes.imshow(label.reshape(columns, rows).T, cmap="gray")  # nodes run down the columns
        axes.set_title(title, size=9)
        axes.axis("off")
    figure.savefig(FOLDER / "tsukuba.png", dpi=60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", nargs="*", choices=["snakes", "tsukuba"], default=["snakes", "tsukuba"]
    )
    args = parser.parse_args()
    one_thread()
    warnings.filterwarnings("ignore", message="stopped after max_iter")
    FOLDER.mkdir(exist_ok=True)
    for name in args.only:
        {"snakes": snakes, "tsukuba": tsukuba}[name]()


if __name__ == "__main__":
    main()
