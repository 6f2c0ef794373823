"""Dual ascent over very many classes: seconds until the gap of the margin machine is small.

    python benchmarks/extreme_dual.py --sets small --systems ours exact certified liblinear bcfw

All minimise Crammer and Singer's objective, with C = 1 for each example.  Gaps are relative to the
primal.  Ours and those of StructuredSVM are certified.  LinearSVC has no certificate, so its
objective is compared with our best dual bound.  Seconds are CPU seconds; entries are weights read
in scans, in millions.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from common import header
from extreme import FOLDER, MOST, data
from extreme_data import ExtremeSet

GOALS = (0.1, 0.01, 1e-3)
SYSTEMS = ("ours", "exact", "certified", "liblinear", "bcfw")
MOST_PASSES = 30


def ours(X, y, n_classes, epsilon, limit):
    from structsolve.plugins.extreme.solvers.base import ExtremeProblem
    from structsolve.plugins.extreme.solvers.dual import ExtremeDual

    given = {"tol": GOALS[-1], "max_iter": MOST_PASSES}
    problem = ExtremeProblem(X, y.astype(np.int32), n_classes, 1 / len(y), **given)
    trace, begun = [], time.process_time()

    def told(record):
        trace.append((time.process_time() - begun, record["primal"], record["gap"]))
        return trace[-1][0] > limit

    result = ExtremeDual(epsilon=epsilon).fit(problem, told)
    return trace, result.weights.to_matrix(), result.history


def liblinear(X, y, n_classes, limit):
    """One run for each tolerance, since LinearSVC reports no progress."""
    from sklearn.svm import LinearSVC

    X = X.copy()
    X.indptr = X.indptr.astype(np.int32)  # required type
    trace, begun = [], time.process_time()
    for tol in (1.0, 0.1, 0.01):
        clock = time.process_time()
        model = LinearSVC(multi_class="crammer_singer", C=1.0, tol=tol, fit_intercept=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        W = np.zeros((X.shape[1], n_classes))
        W[:, model.classes_] = model.coef_.T
        trace.append((time.process_time() - clock, objective(X, y, W), None))
        if time.process_time() - begun > limit:
            break
    return trace, W, []


def bcfw(X, y, n_classes, limit):
    from structsolve import StructuredSVM

    trace, begun = [], time.process_time()

    def told(record):
        if record.get("gap") is not None:
            trace.append((time.process_time() - begun, record["primal"], record["gap"]))
        return time.process_time() - begun > limit

    model = StructuredSVM(
        "multiclass",
        alpha=1 / len(y),
        tol=GOALS[-1],
        fit_intercept=False,
        max_iter=1000,
        callbacks=[told],
    )
    model.fit(X, y)
    return trace, None, []


def objective(X, y, W) -> float:
    """``1/(2n) ||W||^2`` and the mean hinge of dense weights."""
    total = 0.0
    for first in range(0, len(y), 1000):
        scores = X[first : first + 1000] @ W + 1.0
        rows, own = np.arange(len(scores)), y[first : first + 1000]
        scores[rows, own] -= 1.0
        total += float((scores.max(1) - scores[rows, own]).sum())
    return 0.5 / len(y) * float((W**2).sum()) + total / len(y)


def error(X, y, W) -> str:
    if W is None:
        return ""
    wrong = 0
    for first in range(0, len(y), 1000):
        scores = X[first : first + 1000] @ W
        scores = scores.toarray() if hasattr(scores, "toarray") else scores
        wrong += int((scores.argmax(1) != y[first : first + 1000]).sum())
    return f"{wrong / len(y):.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=["small"])
    parser.add_argument("--systems", nargs="+", default=SYSTEMS, choices=SYSTEMS)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--limit", type=float, default=100.0, help="seconds of a system at most")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    header("Many classes: time to a gap of the margin machine")
    for name in given.sets:
        whole = ExtremeSet.load(data(given.folder, name))
        X, y, test, test_y = whole.X, whole.y, whole.X_test[:MOST], whole.y_test[:MOST]
        n_classes, best = int(max(y.max(), test_y.max())) + 1, -np.inf
        print(f"\n{name}: {n_classes} classes, {X.shape[0]} rows, {X.shape[1]} features\n")
        print("| system |" + "".join(f" s to gap {goal:g} |" for goal in GOALS), end="")
        print(" primal | last gap | mean epsilon | entries (10^6) | error |")
        print("|---" * (len(GOALS) + 6) + "|")
        for system in given.systems:
            if system in ("ours", "exact", "certified"):
                epsilon = {"ours": None, "exact": 0.0, "certified": 0.05}[system]
                trace, W, history = ours(X, y, n_classes, epsilon, given.limit)
                best = max(best, *(record["dual"] for record in history))
            else:
                solver = {"liblinear": liblinear, "bcfw": bcfw}[system]
                trace, W, history = solver(X, y, n_classes, given.limit)
            gaps = [(s, p, (p - best if gap is None else gap) / p) for s, p, gap in trace]
            cells = [next((f"{s:.1f}" for s, _, g in gaps if g <= goal), "-") for goal in GOALS]
            last = gaps[-1] if gaps else (0.0, np.nan, np.nan)
            told = ["", ""]
            if history:
                entries = sum(record["entries"] for record in history)
                told = [f"{history[-1]['mean_epsilon']:.2g}", f"{entries / 1e6:.0f}"]
            row = [system, *cells, f"{last[1]:.5f}", f"{last[2]:.2g}", *told]
            print("| " + " | ".join([*row, error(test, test_y, W)]) + " |", flush=True)


if __name__ == "__main__":
    main()
