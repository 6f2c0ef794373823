"""Flat classes: time to liblinear's Crammer-Singer objective, against scikit-learn's LinearSVC.

``LinearSVC(multi_class="crammer_singer")`` is run at three tolerances.  One function computes
the objective of both sides, .5 |w|^2 + C sum_i max_j (1[j != y] + s_j - s_y), the intercept
penalised as in liblinear.  For ours, complete fits with growing max_iter are timed, including
packing; the time to a target is that of the shortest fit whose objective is not above it.  Both
sides then take turns, and the fastest run of each counts.

The last tables have fits by default, ours, LinearSVC's and vowpalwabbit's one-against-all (logistic
loss, ten passes over a file of text that is there before).  vowpalwabbit's time includes reading.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import Clock, header, ratio, structsolve_or_none, table
from datasets import mc_letter, ocr_split, sparse_classes
from environments import enter, missing
from likelihood import generated

TOLERANCES = (0.1, 0.01, 1e-4)
PASSES = (*range(1, 13), *range(14, 51, 2), 60, 80, 100, 150, 200, 300, 500)


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


def by_default() -> dict[str, Any]:
    """The same of fits by default, with dense rows that no model separates."""
    known = {k: v for k, v in problems().items() if "mc-" in k or "generated" in k}
    return known | {"generated dense": lambda: (*generated(20_000, 50, 10)(), 1.0)}


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


def peer(c: float, tol: float) -> Any:
    """The model to compare with."""
    from sklearn.svm import LinearSVC

    return LinearSVC(multi_class="crammer_singer", C=c, tol=tol, max_iter=100_000, random_state=0)


def ours(structsolve: Any, n: int, c: float, passes: int, solver: str) -> Any:
    """Our model for the same problem."""
    return structsolve.StructuredSVM(
        structure="multiclass", solver=solver, alpha=1.0 / (c * n), max_iter=passes, tol=0.0
    )


def fit(model: Any, x: Any, y: np.ndarray) -> Clock:
    """Fit the model; return the clock."""
    with warnings.catch_warnings(), Clock() as clock:
        warnings.simplefilter("ignore")
        model.fit(x, y)
    return clock


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


def needed_passes(
    structsolve: Any, x: Any, y: np.ndarray, c: float, targets: list[float], solver: str
) -> tuple[list[int | None], Any]:
    """Fewest passes that reach each objective, or None; and the last model."""
    needed: list[int | None] = [None] * len(targets)
    model = None
    for passes in PASSES:
        model = ours(structsolve, len(y), c, passes, solver)
        clock = fit(model, x, y)
        value = objective(x, y, *our_arrays(model, x.shape[1]), c)
        for t, target in enumerate(targets):
            if needed[t] is None and value <= target:
                needed[t] = passes
        if all(needed) or clock.cpu > 120:
            break
    return needed, model


class OneAgainstAll:
    """vowpalwabbit's, with rows given as its text; labels from one."""

    def __init__(self, classes: int, columns: int) -> None:
        bits = int(np.ceil(np.log2(classes * columns))) + 1
        self.options = f"--oaa {classes} --loss_function logistic -b {max(18, bits)} --quiet"

    def fit(self, path: str, _: Any) -> OneAgainstAll:
        from vowpalwabbit import Workspace

        train = f"{self.options} -d {path} -c -k --passes 10 --holdout_off -f {path}.model"
        Workspace(train).finish()
        self.model = Workspace(f"-i {path}.model -t --quiet")
        return self

    def predict(self, rows: list[str]) -> np.ndarray:
        return np.array([self.model.predict(row) for row in rows])


def lines_of(x: Any) -> list[str]:
    """Rows in vowpalwabbit's format, without labels."""
    import scipy.sparse as sp

    x, lines = sp.csr_matrix(x), []
    for row in x:
        pairs = zip(row.indices.tolist(), row.data.tolist(), strict=True)
        lines.append("| " + " ".join(f"{j}:{value:.6g}" for j, value in pairs))
    return lines


def defaults(structsolve: Any, title: str, load: Callable[[], Any]) -> None:
    """Print a table of fits by default: seconds, error, and time of predictions."""
    from sklearn.svm import LinearSVC

    x, y, xt, yt, _ = load()
    names, y = np.unique(y, return_inverse=True)
    lines, tests = lines_of(x), lines_of(xt)
    models: dict[str, Any] = {"LinearSVC": LinearSVC()}
    if structsolve:
        models = {"ours": structsolve.StructuredSVM("multiclass"), **models}
    models["vowpalwabbit, oaa"] = OneAgainstAll(len(names), x.shape[1])
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "train")
        path.write_text("\n".join(f"{c + 1} {line}" for c, line in zip(y, lines, strict=True)))
        for name, model in models.items():
            vowpal = isinstance(model, OneAgainstAll)
            given, new = (str(path), tests) if vowpal else (x, xt)
            try:
                clock = fit(model, given, y)
            except ImportError as error:
                print(f"{name}: {error}\n")
                continue
            with Clock() as many:
                told = model.predict(new)
            single = []
            for i in range(300):
                with Clock() as one:
                    model.predict(new[i : i + 1])
                single.append(1e6 * one.cpu)
            error = float(np.mean(names[told - vowpal] != yt))
            figures = clock.cpu, f"{error:.4f}", 1e6 * many.cpu / len(yt)
            rows.append([name, *figures, float(np.median(single))])
    print(f"### By default: {title}\n")
    print(table(["model", "fit, CPU s", "test error", "µs a row", "one row, µs"], rows), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="problems whose name contains this text")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each fit (fastest)")
    parser.add_argument("--defaults", action="store_true", help="the tables of defaults alone")
    parser.add_argument("--solver", nargs="*", default=["bcfw"], help="our solvers")
    args = parser.parse_args()
    enter("vowpalwabbit")
    header("Flat classes: the Crammer-Singer objective, ours against LinearSVC")
    print(missing("vowpalwabbit"))
    structsolve = structsolve_or_none()
    for name, load in problems().items():
        if args.defaults or (args.only and args.only not in name):
            continue
        x, y, xt, yt, c = load()
        peers = [peer(c, tol) for tol in TOLERANCES]
        clocks = [[fit(model, x, y)] for model in peers]
        targets = [objective(x, y, model.coef_, model.intercept_, c) for model in peers]
        needed: dict[str, Any] = {}
        if structsolve:
            for solver in args.solver:
                needed[solver] = needed_passes(structsolve, x, y, c, targets, solver)
        times: dict[str, list[list[float]]] = {s: [[] for _ in targets] for s in needed}
        # Both take turns, so that slow phases of the machine affect both.
        for _ in range(args.repeat if "1000" not in name else 1):
            for t, model in enumerate(peers):
                for solver, (passes, _) in needed.items():
                    if passes[t]:
                        own = ours(structsolve, len(y), c, passes[t], solver)
                        times[solver][t].append(fit(own, x, y).cpu)
                clocks[t].append(fit(model, x, y))
        rows = []
        for t, (tol, model) in enumerate(zip(TOLERANCES, peers, strict=True)):
            error = float(np.mean(model.predict(xt) != yt))
            cpu, wall = min(k.cpu for k in clocks[t]), min(k.wall for k in clocks[t])
            row: list[Any] = [f"{tol:g}", cpu, wall, f"{targets[t]:.2f}", f"{error:.4f}"]
            for solver, (passes, _) in needed.items():
                seconds = min(times[solver][t], default=None)
                row += [seconds, passes[t], ratio(cpu, seconds)]
            rows.append(row)
        print(f"### {name}: {x.shape[0]} x {x.shape[1]}, {len(np.unique(y))} classes\n")
        columns = ["LinearSVC tol", "its CPU s", "its wall s", "objective", "test error"]
        for solver in needed:
            columns += [f"ours ({solver}), CPU s", "passes", "LinearSVC / ours"]
        print(table(columns, rows), flush=True)
        for solver, (_, model) in needed.items():
            error = float(np.mean(model.predict(xt) != yt))
            print(f"ours ({solver}), last fit: test error {error:.4f}\n", flush=True)
    for name, load in by_default().items():
        if (args.only or "") in name:
            defaults(structsolve, name.partition(",")[0], load)


if __name__ == "__main__":
    main()
