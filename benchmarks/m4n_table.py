"""Table 1 of Nowak-Vila et al. (2020): test losses of M3N, CRF and M4N with a Gaussian kernel.

Random splits have 60 % of the rows to train, 20 % to choose bandwidth and lambda = 1 / (C n), and
20 % to test; the chosen model is not retrained on both.  Features are standardised on the training
part.  The kernel is ``exp(-c |x - z|^2 / m)``, m the median squared distance of training rows.
Small sets use the whole kernel matrix as features F with F F' = K (without eigenvalues below 1e-7
of the largest), large sets Nystroem's features.  One decomposition therefore serves all C, from
small to large, each from the previous solution.  Among ties on the validation part, which are
frequent on the smallest sets, the middle C is taken, and among its ties the middle c.

The grids below were chosen on splits 0 to 13; the table begins at split 100.
Every finished (set, split, method) is appended to a file and is not run again:

    STRUCTSOLVE_DATA=... python benchmarks/m4n_table.py m4n.jsonl --sets iris wine --splits 100 101
    python benchmarks/m4n_table.py m4n.jsonl --report
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import Clock, header, table
from datasets import data_path, ocr

FIRST_SPLIT = 100
METHODS = {"M3N": "margin", "CRF": "crf", "M4N": "max-min"}
KINDS = {"mc": "0-1 %", "ord": "MAE", "rank": "Hamming %", "ocr": "Hamming %"}


@dataclass(frozen=True)
class Setting:
    """Settings of a set: folder, published losses, grids, accuracy, Nystroem's components."""

    folder: str
    published: dict[str, float]
    splits: int = 14
    bandwidths: tuple[float, ...] = (0.1, 0.3, 1.0)
    sizes: tuple[float, ...] = (1.0, 3.0, 10.0, 30.0, 100.0)
    passes: int = 50
    max_min_passes: int = 150
    components: int = 0

    @property
    def kind(self) -> str:
        return self.folder.split("-")[0]


def published(m3n: float, crf: float | None, m4n: float) -> dict[str, float]:
    errors = {"M3N": m3n, "CRF": crf, "M4N": m4n}
    return {name: x for name, x in errors.items() if x is not None}


RANKS: dict[str, Any] = dict(
    bandwidths=(0.1, 0.3, 1.0), sizes=(1.0, 3.0, 10.0, 30.0, 100.0), max_min_passes=50
)
LARGE: dict[str, Any] = dict(passes=15, max_min_passes=30)
SETS = {
    "iris": Setting("mc-iris", published(3.33, 3.08, 3.33)),
    "wine": Setting("mc-wine", published(2.56, 2.14, 2.35)),
    "vehicle": Setting(
        "mc-vehicle", published(24.6, 25.1, 24.0), sizes=(3.0, 10.0, 30.0, 100.0)
    ),
    "segment": Setting(
        "mc-segment", published(6.64, 6.43, 6.09), passes=30,
        bandwidths=(0.3, 1.0), sizes=(10.0, 30.0, 100.0),
    ),
    "letter": Setting(
        "mc-letter", published(14.6, 13.2, 13.5), **LARGE, splits=3,
        bandwidths=(1.0, 3.0), sizes=(3.0, 30.0), components=500,
    ),
    "wisconsin": Setting("ord-wisconsin", published(1.24, 1.26, 1.26)),
    "stocks": Setting(
        "ord-stocks", published(0.167, 0.168, 0.160), sizes=(3.0, 10.0, 30.0, 100.0)
    ),
    "abalone": Setting(
        "ord-abalone", published(0.520, 0.526, 0.520), **LARGE,
        bandwidths=(0.1, 0.5), sizes=(1.0, 10.0), components=200,
    ),
    "ocr": Setting(
        "ocr-letters", published(16.2, 16.3, 16.2), splits=5, passes=15, max_min_passes=15,
        bandwidths=(1.0,), sizes=(1.0, 10.0), components=300,
    ),
    "rank-glass": Setting("rank-glass", published(17.7, None, 17.4), **RANKS),
    "rank-bodyfat": Setting("rank-bodyfat", published(79.6, None, 79.6), **RANKS),
    "rank-wine": Setting("rank-wine", published(5.06, None, 4.34), **RANKS),
    "rank-vehicle": Setting("rank-vehicle", published(14.8, None, 15.0), **RANKS),
}  # fmt: skip


# -- data ---------------------------------------------------------------------------------------


def load(setting: Setting) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels; rankings are ranks of labels."""
    with np.load(data_path(setting.folder, "data.npz"), allow_pickle=False) as data:
        if "X_train" in data:
            return (
                np.vstack([data["X_train"], data["X_test"]]).astype(float),
                np.concatenate([data["y_train"], data["y_test"]]).astype(int),
            )
        y = data["rank"] if setting.kind == "rank" else data["y"]
        return data["X"].astype(float), y.astype(int)


def parts(n: int, split: int) -> list[np.ndarray]:
    """Rows to train, to validate and to test."""
    order = np.random.default_rng(split).permutation(n)
    return np.split(order, [round(0.6 * n), round(0.8 * n)])


def median_distance(X: np.ndarray) -> float:
    from sklearn.metrics.pairwise import euclidean_distances

    rows = X[:: max(len(X) // 1000, 1)]
    distances = euclidean_distances(rows, squared=True)
    return float(np.median(distances[np.triu_indices(len(rows), 1)]))


def kernel_features(X: list[np.ndarray], gamma: float, components: int) -> list[np.ndarray]:
    """Features of all parts, made from the first one."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.metrics.pairwise import rbf_kernel

    if components:
        made = Nystroem(gamma=gamma, n_components=components, random_state=0).fit(X[0])
        return [made.transform(part) for part in X]
    values, vectors = np.linalg.eigh(rbf_kernel(X[0], gamma=gamma))
    kept = values > 1e-7 * values[-1]
    columns = vectors[:, kept] / np.sqrt(values[kept])
    return [rbf_kernel(part, X[0], gamma=gamma) @ columns for part in X]


def matrices(setting: Setting, split: int) -> tuple[Callable[[float], list[Any]], list[Any]]:
    """A function from c to the features of the three parts, and their labels."""
    X, y = load(setting)
    rows = parts(len(X), split)
    train = X[rows[0]]
    spread = train.std(axis=0)
    X = (X - train.mean(axis=0)) / np.where(spread > 0, spread, 1)
    given = [X[part] for part in rows]
    distance = median_distance(given[0])
    return (
        lambda c: kernel_features(given, c / distance, setting.components),
        [y[part] for part in rows],
    )


def sequences(setting: Setting, split: int) -> tuple[Callable[[float], list[Any]], list[Any]]:
    """The same for OCR words."""
    from sklearn.kernel_approximation import Nystroem

    from structsolve import NodeTransformer

    words, _ = ocr()
    given = [words.take(rows) for rows in parts(words.n_words, split)]
    distance = median_distance(given[0].pixels.astype(float))

    def features(c: float) -> list[Any]:
        made = Nystroem(gamma=c / distance, n_components=setting.components, random_state=0)
        nodes = NodeTransformer(made).fit(given[0].x_list("packed"))
        return [nodes.transform(part.x_list("packed")) for part in given]

    return features, [part.y_list() for part in given]


# -- training -----------------------------------------------------------------------------------


def model_of(setting: Setting, method: str, labels: Any, tol: float) -> Any:
    import structsolve
    from structsolve.plugins.ordinal import OrdinalStructure
    from structsolve.surrogates import MaxMin

    structure: Any = {"mc": "multiclass", "rank": "permutation", "ocr": "chain"}.get(setting.kind)
    if setting.kind == "ord":
        structure = OrdinalStructure(classes=np.unique(labels))
    surrogate: Any = METHODS[method]
    if method == "M4N":
        surrogate = MaxMin(tol=0.01)
    return structsolve.StructuredSVM(
        structure,
        surrogate=surrogate,
        loss="absolute" if setting.kind == "ord" else "hamming",
        solver="bcfw" if method == "M3N" else "gbcfw",
        tol=tol,
        max_iter=setting.max_min_passes if method == "M4N" else setting.passes,
        warm_start=True,
    )


def loss_of(setting: Setting, truth: Any, predicted: Any) -> float:
    if setting.kind == "ocr":
        truth, predicted = np.concatenate(truth), np.concatenate(predicted)
    if setting.kind == "ord":
        return float(np.abs(truth - predicted).mean())
    return 100 * float((np.asarray(truth) != np.asarray(predicted)).mean())


def grids(
    name: str, split: int, methods: list[str], tol: float
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Validation and test loss of every c and C, for one method after the other."""
    setting = SETS[name]
    make = sequences if setting.kind == "ocr" else matrices
    features, labels = make(setting, split)
    everything = np.concatenate([np.ravel(y) for y in labels]) if setting.kind == "ord" else None
    made = [features(c) for c in setting.bandwidths]
    n = len(labels[0])
    for method in methods:
        cells = []
        with Clock() as clock:
            for c, X in zip(setting.bandwidths, made, strict=True):
                model = model_of(setting, method, everything, tol)
                for C in setting.sizes:
                    model.set_params(alpha=1 / (C * n)).fit(X[0], labels[0])
                    losses = [loss_of(setting, labels[k], model.predict(X[k])) for k in (1, 2)]
                    last = model.history_[-1]
                    cells.append(
                        [c, C, *losses, model.n_iter_, float(last["gap"] / last["primal"])]
                    )
        yield method, {"cpu": clock.cpu, "tol": tol, "cells": cells}


def append(path: Path, record: dict[str, Any]) -> None:
    """One line in one write, so that several processes may share the file."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, (json.dumps(record) + "\n").encode())
    finally:
        os.close(file)


def records(path: Path) -> dict[tuple[str, int, str], dict[str, Any]]:
    """Finished runs by set, split and method; an incomplete line is left out."""
    runs = {}
    if path.exists():
        for line in path.read_text().splitlines():
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                continue
            runs[record["set"], record["split"], record["method"]] = record
    return runs


# -- report -------------------------------------------------------------------------------------


def chosen(cells: list[list[float]]) -> list[float]:
    """The cell with the best validation loss; see the top of the file for ties."""
    least = min(cell[2] for cell in cells)
    best = [cell for cell in cells if cell[2] == least]
    for k in (1, 0):
        values = sorted(cell[k] for cell in best)
        best = [cell for cell in best if cell[k] == values[(len(values) - 1) // 2]]
    return best[0]


def report(path: Path) -> None:
    done = records(path)
    rows, below, ratios = [], [], []
    for name, setting in SETS.items():
        splits = sorted({split for s, split, _ in done if s == name})
        full = [
            split for split in splits if all((name, split, m) in done for m in setting.published)
        ]
        if not full:
            continue
        cells: list[object] = [name, KINDS[setting.kind], len(full)]
        means = {}
        digits = 3 if setting.kind == "ord" else 2
        seconds = 0.0
        for method in METHODS:
            if method not in setting.published:
                cells.append(None)
                continue
            runs = [done[name, split, method] for split in full]
            losses = np.array([chosen(run["cells"])[3] for run in runs])
            seconds += sum(run["cpu"] for run in runs)
            means[method] = losses.mean()
            text = f"{losses.mean():.{digits}f}"
            if len(losses) > 1:
                text += f" ± {losses.std(ddof=1) / np.sqrt(len(losses)):.{digits}f}"
            below.append(losses.mean() <= setting.published[method])
            cells.append(f"{text} ({setting.published[method]:g})")
        ratios.append(means["M4N"] / means["M3N"] if means["M3N"] else 1.0)
        rows.append([*cells, f"{ratios[-1]:.3f}", f"{seconds:.0f}"])
    columns = ["set", "loss", "splits", *[f"{m} (published)" for m in METHODS]]
    print("Test loss, mean ± standard error over splits; published means in brackets.\n")
    print(table([*columns, "M4N / M3N", "CPU s"], rows))
    if rows:
        print(
            f"M4N / M3N: geometric mean {np.exp(np.mean(np.log(ratios))):.3f}, mean "
            f"{np.mean(ratios):.3f}; at or below the published mean: {sum(below)} of {len(below)}\n"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="file of JSON lines; continued if it exists")
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--splits", nargs="+", type=int, help="default: as many as the set has")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--tol", type=float, default=0.03, help="relative duality gap")
    parser.add_argument("--report", action="store_true", help="print the table and run nothing")
    args = parser.parse_args()
    header("Max-min margin, margin and CRF with a Gaussian kernel")
    if not args.report:
        for name in args.sets:
            every = range(FIRST_SPLIT, FIRST_SPLIT + SETS[name].splits)
            for split in every if args.splits is None else args.splits:
                done = records(args.results)
                wanted = [m for m in args.methods if m in SETS[name].published]
                wanted = [m for m in wanted if (name, split, m) not in done]
                for method, figures in grids(name, split, wanted, args.tol) if wanted else ():
                    record = {"set": name, "split": split, "method": method, **figures}
                    append(args.results, record)
                    print(f"{name} {split} {method}: {figures['cpu']:.1f} s CPU", flush=True)
        print()
    report(args.results)


if __name__ == "__main__":
    main()
