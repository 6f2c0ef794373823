"""Kernel models against sklearn.svm.SVC: time and accuracy; cache limits: time and memory.

    STRUCTSOLVE_DATA=../shared/data python benchmarks/kernels.py

SVC trains one machine per pair of classes, ours one for all classes (Crammer and Singer), to the
printed relative gap.  Each picks C and bandwidth on a validation set; the time is the median of
three fits with these.  Each cache limit trains on letters in a separate process to measure peaks.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from common import Clock, header, median_time, of_grid
from datasets import data_path, mc_letter

SIZES = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
GAMMAS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
CACHES = (200.0, 24.0, 8.0)


def split(name: str) -> list[np.ndarray]:
    """X and y of training (60 %), validation (20 %) and test, standardised."""
    with np.load(data_path(f"mc-{name}", "data.npz")) as data:
        X, y = data["X"].astype(float), data["y"]
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], y[order]
    a, b = int(0.6 * len(X)), int(0.8 * len(X))
    spread = X[:a].std(axis=0)
    X = (X - X[:a].mean(axis=0)) / np.where(spread > 0, spread, 1)
    return [X[:a], y[:a], X[a:b], y[a:b], X[b:], y[b:]]


def ours(C: float, gamma: float, n: int, tol: float, **settings: Any) -> Any:
    from structsolve import StructuredSVM

    return StructuredSVM(
        "multiclass", kernel="rbf", kernel_params={"gamma": gamma}, alpha=1 / (C * n), tol=tol,
        max_iter=1000, **settings
    )  # fmt: skip


def svc(C: float, gamma: float, n: int, tol: float) -> Any:
    from sklearn.svm import SVC

    return SVC(C=C, gamma=gamma)


def compare(name: str, tol: float) -> None:
    X, y, X_val, y_val, X_test, y_test = split(name)
    print(f"\n{name}: {len(X)} training rows, {X.shape[1]} features, {len(set(y))} classes")
    seconds = {}
    for label, make in (("SVC", svc), ("structsolve", ours)):
        best = max(
            (make(C, g, len(X), tol).fit(X, y).score(X_val, y_val), -C, -g)
            for C in SIZES
            for g in GAMMAS
        )
        C, gamma = -best[1], -best[2]
        cpu, wall, model = median_time(lambda: make(C, gamma, len(X), tol).fit(X, y))  # noqa: B023
        seconds[label] = cpu
        rest = ""
        if label == "structsolve":
            last = model.history_[-1]
            rest = f", {model.n_iter_} passes, relative gap {last['gap'] / last['primal']:.1e}"
        print(
            f"  {label:12s} C {of_grid(C, SIZES)}, gamma {of_grid(gamma, GAMMAS)}: "
            f"fit {cpu:.3f} s CPU, {wall:.3f} s wall, "
            f"test accuracy {model.score(X_test, y_test):.4f}, {len(model.support_)} support{rest}"
        )
    print(f"  structsolve takes {seconds['structsolve'] / seconds['SVC']:.2f} times SVC's time")


def limited(megabytes: float, rows: int) -> None:
    """One fit with a limited cache, in a separate process."""
    X, y, X_test, y_test = mc_letter()
    X, y = X[:rows], y[:rows]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with Clock() as clock:
        model = ours(10.0, 1.0, rows, 0.01, cache_size=megabytes).fit(X, y)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"  cache {megabytes:6g} MB: {clock}, data and cache {model.memory_['examples'] / 1e6:.1f} "
        f"MB, duals and scores {model.memory_['weights'] / 1e6:.1f} MB, peak {peak / 1e3:.0f} MB "
        f"({before / 1e3:.0f} MB before), dual {model.history_[-1]['dual']:.15g}, test accuracy "
        f"{model.score(X_test, y_test):.4f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=["segment", "vehicle"])
    parser.add_argument("--tol", type=float, default=0.01, help="relative duality gap")
    parser.add_argument("--rows", type=int, default=2000, help="letters for the cache limits")
    parser.add_argument("--cache", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cache is not None:
        limited(options.cache, options.rows)
        return
    header("Kernel models against SVC")
    for name in options.sets:
        compare(name, options.tol)
    whole = 8e-6 * options.rows**2
    print(f"\n{options.rows} letters; the whole kernel matrix has {whole:.0f} MB", flush=True)
    for megabytes in CACHES:
        subprocess.run(
            [sys.executable, __file__, "--cache", str(megabytes), "--rows", str(options.rows)],
            check=True,
        )


if __name__ == "__main__":
    main()
