"""Learned matching against plain assignment: the CMU house by frame separation, cars by outliers.

As in Caetano, McAuley, Cheng, Le and Smola (Learning Graph Matching, PAMI 2009), linear assignment
uses features of pairs.  Every point has a shape context: the number of other points in each of 60
log-polar cells around it.  The features of a pair are minus the squared differences of the two
contexts, cell by cell; plain assignment weighs all cells alike.  Pairs of frames are split at
random into thirds that train, choose alpha, and test (pairs of different thirds may share a frame,
as in the paper).  The results are the percentage of wrong points, mean and standard error over
splits.

Cars: the inliers of image 1 against those of image 2 and some of its outliers, 30 pairs; features
are those above and those of the stored descriptors of each point.  Descriptors have other units, so
features are divided by their root mean square over the pairs of points of the training images.
Plain assignment runs with both raw and scaled features.

    STRUCTSOLVE_DATA=... python benchmarks/matching.py
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from common import Clock, header, of_grid, structsolve_or_none, table
from datasets import data_path

ALPHAS = (100.0, 10.0, 1.0, 0.1, 0.01, 1e-3)
RADII = np.array([0.125, 0.25, 0.5, 1.0, 2.0])  # of the mean distance
ANGLES = 12


def shape_contexts(points: np.ndarray) -> np.ndarray:
    """Number of other points in log-polar cells around each point, shape (points, 60)."""
    n = len(points)
    step = points[None] - points[:, None]
    distance = np.hypot(step[..., 0], step[..., 1])
    others = ~np.eye(n, dtype=bool)
    ring = np.searchsorted(RADII, distance / distance[others].mean())
    angle = np.arctan2(step[..., 1], step[..., 0]) / (2 * np.pi) % 1
    sector = np.minimum((angle * ANGLES).astype(int), ANGLES - 1)
    counts = np.zeros((n, len(RADII), ANGLES))
    a, b = np.nonzero(others & (ring < len(RADII)))
    np.add.at(counts, (a, ring[a, b], sector[a, b]), 1)
    return counts.reshape(n, -1)


def pair_features(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Minus the squared differences, feature by feature, shape (rows, columns, features)."""
    return -((a[:, None] - b[None]) ** 2)


def house(folder: Path, separation: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """All pairs of frames at a separation, the second with its points permuted."""
    with np.load(folder / "match-cmu-house" / "landmarks.npz") as data:
        points = data["points"]
    contexts = [shape_contexts(frame) for frame in points]
    rng = np.random.default_rng(separation)
    X, Y = [], []
    for s in range(len(points) - separation):
        order = rng.permutation(points.shape[1])
        X.append(pair_features(contexts[s], contexts[s + separation][order]))
        Y.append(np.argsort(order))
    return X, Y


def cars(folder: Path, outliers: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Inliers of image 1, and inliers and some outliers of image 2, permuted."""
    rng = np.random.default_rng(outliers)
    X, Y = [], []
    with np.load(folder / "match-cars" / "pairs.npz") as data:
        for k in range(1, 31):
            first, second = (data[f"p{k:02d}_f{j}"].astype(float) for j in (1, 2))
            truth = data[f"p{k:02d}_gtruth"].astype(int)
            rest = rng.permutation(np.setdiff1d(np.arange(len(second)), truth))[:outliers]
            order = rng.permutation(len(truth) + len(rest))
            columns = np.concatenate([truth, rest])[order]
            pairs = []
            for a, b in (
                (shape_contexts(first[: len(truth), :2]), shape_contexts(second[columns, :2])),
                (first[: len(truth), 2:], second[columns, 2:]),
            ):
                scale = np.concatenate([a, b]).std() + 1e-12
                pairs.append(pair_features(a / scale, b / scale))
            X.append(np.concatenate(pairs, axis=2))
            Y.append(np.argsort(order)[: len(truth)])
    return X, Y


def error(Y: list[np.ndarray], predicted: list[np.ndarray]) -> float:
    """Share of points matched wrongly, in percent."""
    return 100 * float(np.mean([np.mean(a != b) for a, b in zip(Y, predicted, strict=True)]))


def one_split(
    structsolve: Any, X: list[Any], Y: list[Any], seed: int, scaled: bool
) -> tuple[float, ...]:
    """Errors of plain, (scaled) and learned assignment on a random third, and the chosen alpha."""
    order = np.random.default_rng(seed).permutation(len(X))
    train, choose, test = (
        ([X[i] for i in rows], [Y[i] for i in rows]) for rows in np.array_split(order, 3)
    )
    errors = [_plain_error(*test)]
    if scaled:
        scale = np.sqrt(np.mean([(x**2).mean(axis=(0, 1)) for x in train[0]], axis=0))
        scale[scale == 0] = 1
        for part in (train, choose, test):
            part[0][:] = [x / scale for x in part[0]]
        errors.append(_plain_error(*test))
    # Few features and many pairs: steps on the weights are cheaper than steps on the parts.
    model = structsolve.StructuredSVM(
        "permutation", loss="normalized-hamming", solver="cutting-plane", max_iter=100, tol=0.01
    )
    fitted = model.path(*train, ALPHAS)
    # Among equally good alphas, the largest.
    best = min(fitted, key=lambda m: (error(choose[1], m.predict(choose[0])), -m.alpha))
    return *errors, error(test[1], best.predict(test[0])), best.alpha


def _plain_error(X: list[Any], Y: list[Any]) -> float:
    from structsolve.plugins.permutation import assign

    return error(Y, [assign(x.sum(axis=2)).columns for x in X])


def shown(values: tuple[float, ...]) -> str:
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):.1f} ± {error:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--separations", nargs="*", type=int, default=list(range(10, 100, 10)))
    parser.add_argument("--outliers", nargs="*", type=int, default=[0, 10, 20])
    args = parser.parse_args()
    header("Matching, learned and plain")
    structsolve = structsolve_or_none()
    if structsolve is None:
        return
    folder = data_path()
    for title, column, values, make in (
        ("CMU house, 30 landmarks", "frames apart", args.separations, house),
        ("Cars, 30 pairs", "outliers", args.outliers, cars),
    ):
        rows = []
        for value in values:
            X, Y = make(folder, value)
            with Clock() as clock:
                results = [
                    one_split(structsolve, X, Y, seed, make is cars) for seed in range(args.splits)
                ]
            *errors, alphas = zip(*results)
            middle = of_grid(np.median(alphas), ALPHAS)
            print(f"  done: {column} {value}, {clock.cpu:.0f} s", file=sys.stderr, flush=True)
            rows.append([value, len(X), *map(shown, errors), middle, f"{clock.cpu:.1f}"])
        if not rows:
            continue
        print(f"### {title}\n")
        names = [column, "pairs", "plain, % wrong", "plain, scaled", "learned, % wrong"]
        if make is house:
            names.remove("plain, scaled")
        print(table([*names, "alpha (median)", "CPU s"], rows), flush=True)


if __name__ == "__main__":
    main()
