"""Flat classes: time to liblinear's Crammer-Singer objective, against scikit-learn's LinearSVC.

``LinearSVC(multi_class="crammer_singer")`` is run at three tolerances.  One function computes
the objective of both sides, .5 |w|^2 + C sum_i max_j (1[j != y] + s_j - s_y), the intercept
penalised as liblinear does.  For ours, fits with growing max_iter are timed whole, packing
included; the time to a target is that of the shortest fit whose objective is not above it.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from common import Clock, header, median_time, ratio, structsolve_or_none, table
from datasets import mc_letter, ocr_split, sparse_classes

TOLERANCES = (0.1, 0.01, 1e-4)
PASSES = (*range(1, 13), 14, 16, 18, 20, 25, 30, 35, 40, 45, 50, 60, 80, 100, 150, 200, 300, 500)


def unit_rows(pixels: np.ndarray) -> np.ndarray:
    """Letters scaled to unit length: the setting of the published figures."""
    x = pixels.astype(float)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def problems() -> dict[str, Any]:
    """Name -> function that gives X_train, y_train, X_test, y_test, C."""

    def letters(train: str) -> Any:
        a, b = ocr_split(0, train)
        return unit_rows(a.pixels), a.labels, unit_rows(b.pixels), b.labels, 1.0

    return {
        "mc-letter, scaled to [-1, 1], C=1": lambda: (*mc_letter(), 1.0),
        "OCR single letters, fold 0, unit rows, C=1": lambda: letters("one"),
        "OCR single letters, nine folds, unit rows, C=1": lambda: letters("nine"),
        "generated sparse, 1000 classes, C=1": lambda: (*sparse_classes(), 1.0),
    }


def objective(x: Any, y: np.ndarray, coef: np.ndarray, intercept: np.ndarray, c: float) -> float:
    """`y` holds class numbers; computed a thousand rows at a time."""
    total = 0.5 * (float(np.sum(coef**2)) + float(np.sum(intercept**2)))
    for a in range(0, len(y), 1000):
        scores = np.asarray(x[a : a + 1000] @ coef.T) + intercept
        rows, truth = np.arange(len(scores)), y[a : a + 1000]
        own = scores[rows, truth]
        scores += 1.0
        scores[rows, truth] -= 1.0
        total += c * float(np.sum(scores.max(axis=1) - own))
    return total


def peer(x: Any, y: np.ndarray, c: float, tol: float, repeat: int) -> dict[str, Any]:
    from sklearn.svm import LinearSVC

    model = LinearSVC(multi_class="crammer_singer", C=c, tol=tol, max_iter=100_000, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cpu, wall, _ = median_time(lambda: model.fit(x, y), repeat)
    return dict(
        model=model, cpu=cpu, wall=wall, objective=objective(x, y, model.coef_, model.intercept_, c)
    )


def our_arrays(model: Any, d: int) -> tuple[np.ndarray, np.ndarray]:
    """(classes x features) weights and intercepts from the named arrays."""
    k = len(model.classes_)
    arrays = [np.asarray(a) for a in model.coef_.values()]
    intercept = next((a.ravel() for a in arrays if a.size == k), np.zeros(k))
    coef = next(a for a in arrays if a.size in (d * k, (d + 1) * k))
    coef = coef if coef.shape[0] == k and coef.shape[0] != d else coef.T
    if coef.shape[1] == d + 1:
        coef, intercept = coef[:, :d], coef[:, d]
    return coef, intercept


def our_times(
    structsolve: Any,
    x: Any,
    y: np.ndarray,
    c: float,
    targets: list[float],
    repeat: int,
    solver: str,
) -> tuple[list[tuple[float, int] | None], Any]:
    """For each objective to reach: CPU seconds and passes, or None."""
    found: list[tuple[float, int] | None] = [None] * len(targets)
    model = None
    for passes in PASSES:
        model = structsolve.StructuredSVM(
            structure="multiclass",
            solver=solver,
            alpha=1.0 / (c * len(y)),
            max_iter=passes,
            tol=0.0,
        )
        with Clock() as clock:
            model.fit(x, y)
        value = objective(x, y, *our_arrays(model, x.shape[1]), c)
        for t, target in enumerate(targets):
            if found[t] is None and value <= target:
                cpu = clock.cpu
                if repeat > 1:
                    cpu, _, _ = median_time(lambda m=model: m.fit(x, y), repeat)
                found[t] = cpu, passes
        if all(found) or clock.cpu > 120:
            break
    return found, model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="problems whose name contains this text")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each fit under 5 s (median)")
    parser.add_argument("--solver", nargs="*", default=["bcfw"], help="our solvers")
    args = parser.parse_args()
    header("Flat classes: the Crammer-Singer objective, ours against LinearSVC")
    structsolve = structsolve_or_none()
    for name, load in problems().items():
        if args.only and args.only not in name:
            continue
        x, y, xt, yt, c = load()
        rows = []
        repeat = args.repeat if "1000" not in name else 1
        runs = [peer(x, y, c, tol, repeat) for tol in TOLERANCES]
        targets = [run["objective"] for run in runs]
        ours: dict[str, Any] = {}
        if structsolve:
            ours = {
                solver: our_times(structsolve, x, y, c, targets, repeat, solver)
                for solver in args.solver
            }
        for t, (tol, run) in enumerate(zip(TOLERANCES, runs, strict=True)):
            error = float(np.mean(run["model"].predict(xt) != yt))
            row = [f"{tol:g}", run["cpu"], run["wall"], f"{run['objective']:.2f}", f"{error:.4f}"]
            for found, _ in ours.values():
                seconds, passes = found[t] or (None, None)
                row += [seconds, passes, ratio(run["cpu"], seconds)]
            rows.append(row)
        print(f"### {name}: {x.shape[0]} x {x.shape[1]}, {len(np.unique(y))} classes\n")
        columns = ["LinearSVC tol", "its CPU s", "its wall s", "objective", "test error"]
        for solver in ours:
            columns += [f"ours ({solver}), CPU s", "passes", "LinearSVC / ours"]
        print(table(columns, rows), flush=True)
        for solver, (_, model) in ours.items():
            error = float(np.mean(model.predict(xt) != yt))
            print(f"ours ({solver}), last fit: test error {error:.4f}\n", flush=True)


if __name__ == "__main__":
    main()
