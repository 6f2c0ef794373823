"""Ordered classes on one direction with thresholds: ours against mord's LogisticAT.

    STRUCTSOLVE_DATA=../shared/data python benchmarks/ordinal.py

mord minimises the all-threshold logistic loss plus 1/2 |w|^2, summed over rows, to its default
tolerance; ours the absolute loss rescaled by the margin plus alpha/2 (|w|^2 + |b|^2), the mean over
rows, to the printed relative gap.  alpha is 1 / n, as in mord, and 1e-4.  Features are
standardised, and 70 % of the rows train.  The objectives are different functions.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from common import header, median_time, table
from datasets import data_path

SETS = ("abalone", "stocks", "winequality-red", "wisconsin")


def split(name: str) -> tuple[np.ndarray, ...]:
    """X and y of training and test; classes from 0."""
    with np.load(data_path(f"ord-{name}", "data.npz")) as data:
        X, y = data["X"].astype(float), data["y"]
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], np.unique(y[order], return_inverse=True)[1]
    n = int(0.7 * len(X))
    mean, spread = np.nanmean(X[:n], axis=0), np.nanstd(X[:n], axis=0)
    X = np.where(np.isnan(X), 0, (X - mean) / np.where(spread > 0, spread, 1))
    return X[:n], y[:n], X[n:], y[n:]


def logistic(model: object, X: np.ndarray, y: np.ndarray) -> float:
    """mord's objective, divided by the number of rows."""
    margins = model.theta_[None, :] - (X @ model.coef_)[:, None]
    signs = np.where(np.arange(len(model.theta_)) >= y[:, None], 1, -1)
    loss = np.logaddexp(0, -signs * margins).sum(axis=1).mean()
    return float(loss + 0.5 * model.alpha * model.coef_ @ model.coef_ / len(X))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--tol", type=float, default=1e-3)
    options = parser.parse_args()
    header("Ordered classes with thresholds")
    import mord

    from structsolve import StructuredSVM
    from structsolve.plugins.ordinal import OrdinalStructure

    rows = []
    for name in options.sets:
        X, y, X_test, y_test = split(name)
        peer_cpu, _, peer = median_time(lambda: mord.LogisticAT().fit(X, y))  # noqa: B023
        error = np.abs(peer.predict(X_test) - y_test).mean()
        rows.append([name, "mord", "1/n", peer_cpu, "-", logistic(peer, X, y), error, "1.00"])
        for alpha in (1 / len(X), 1e-4):
            model = StructuredSVM(
                OrdinalStructure(thresholds=True),
                loss="absolute",
                alpha=alpha,
                tol=options.tol,
                max_iter=1000,
            )
            cpu, _, model = median_time(lambda: model.fit(X, y))  # noqa: B023
            last = model.history_[-1]
            error = np.abs(model.predict(X_test) - y_test).mean()
            gap = f"{last['gap'] / last['primal']:.1e}"
            ratio = f"{cpu / peer_cpu:.2f}"
            rows.append(
                [name, "ours", f"{alpha:.1e}", cpu, gap, float(last["primal"]), error, ratio]
            )
    columns = [
        "set",
        "side",
        "alpha",
        "CPU s",
        "relative gap",
        "objective",
        "test MAE",
        "ours / mord",
    ]
    print(table(columns, rows))


if __name__ == "__main__":
    main()
