"""Rankings: Kendall's tau and time of "permutation" and of one classifier per pair of labels.

    STRUCTSOLVE_DATA=../shared/data python benchmarks/rankings.py

Five splits, forty of fewer than 300 rows of fewer than ten labels, have 60 % training and 40 % test
rows, with standardised features.  "default": the settings are those of
`StructuredSVM("permutation")`, alpha included, and the bandwidth of an RBF kernel.  One-vs-one: a
LogisticRegression, SVC or LinearSVC per pair of labels, with labels sorted by the pairs that they
win; the former two with their defaults.  The other sides pick their constant by the tau on a
quarter of the training rows.  Ridge: regression on the ranks, sorted.  The time is that of one fit.
The set "generated" has rankings by linear scores with noise, without sides of ours that pick.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from common import Clock, header, of_grid, table
from datasets import data_path

SETS = (
    "glass", "iris", "stock", "vehicle", "bodyfat", "vowel", "wine", "wisconsin", "generated"
)  # fmt: skip
ALPHAS = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
SIZES = (1e-3, 0.01, 0.1, 1.0, 10.0, 100.0)
PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
WEIGHTS = ("smooth", "matrix", "rank:2", "scores")


def kendall(a: np.ndarray, b: np.ndarray) -> float:
    """Mean over rows of Kendall's tau of two rankings."""
    pairs = list(combinations(range(a.shape[1]), 2))
    signs = [np.sign((a[:, j] - a[:, k]) * (b[:, j] - b[:, k])) for j, k in pairs]
    return float(np.mean(signs))


def ranks_of(scores: np.ndarray) -> np.ndarray:
    """Ranks of labels, 0 for the largest score."""
    return np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1, kind="stable")


def read(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features, and ranks from 0."""
    if name == "generated":
        rng = np.random.default_rng(0)
        X, W = rng.normal(size=(841, 70)), rng.normal(size=(70, 6))
        return X, ranks_of(X @ W / np.sqrt(70) + 0.3 * rng.normal(size=(841, 6)))
    with np.load(data_path(f"rank-{name}", "data.npz")) as data:
        X, Y = data["X"].astype(float), data["rank"].astype(int)
    return X, Y - Y.min()


class OneVsOne:
    """A machine per pair of labels."""

    def __init__(self, make: Any):
        self.make = make

    def fit(self, X: np.ndarray, Y: np.ndarray) -> OneVsOne:
        self.labels, self.models = Y.shape[1], {}
        for j, k in combinations(range(self.labels), 2):
            first = (Y[:, j] < Y[:, k]).astype(int)
            one = first.min() == first.max()
            self.models[j, k] = int(first[0]) if one else self.make().fit(X, first)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        won = np.zeros((len(X), self.labels))
        for (j, k), model in self.models.items():
            first = model if isinstance(model, int) else model.predict(X)
            won[:, j] += first
            won[:, k] += 1 - first
        return ranks_of(won)


class RidgeRanks:
    """Regression on ranks."""

    def __init__(self, penalty: float):
        self.penalty = penalty

    def fit(self, X: np.ndarray, Y: np.ndarray) -> RidgeRanks:
        from sklearn.linear_model import Ridge

        self.model = Ridge(alpha=self.penalty).fit(X, Y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return ranks_of(-self.model.predict(X))


def ours(weights: str) -> Any:
    from structsolve import StructuredSVM
    from structsolve.plugins.permutation import PermutationStructure

    def make(alpha: Any) -> Any:
        return StructuredSVM(
            PermutationStructure(weights=weights), loss="spearman", alpha=alpha, tol=0.01
        )

    return make


def sides() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import SVC, LinearSVC

    from structsolve import StructuredSVM

    made = {
        "default": (lambda _: StructuredSVM("permutation"), (None,)),
        "default, Hamming loss (earlier default)": (
            lambda _: StructuredSVM("permutation", loss="hamming"),
            (None,),
        ),
        "default, RBF kernel": (lambda _: StructuredSVM("permutation", kernel="rbf"), (None,)),
    }
    made |= {f"{w}, default alpha": (ours(w), ("auto",)) for w in ("smooth", "matrix", "scores")}
    made |= {f"ours, {w}": (ours(w), ALPHAS) for w in WEIGHTS}
    made |= {
        "one-vs-one LogisticRegression": (lambda _: OneVsOne(LogisticRegression), (None,)),
        "one-vs-one SVC": (lambda _: OneVsOne(SVC), (None,)),
        "one-vs-one LinearSVC": (lambda C: OneVsOne(partial(LinearSVC, C=C)), SIZES),
        "ridge on ranks": (RidgeRanks, PENALTIES),
    }
    return made


def one_split(X: np.ndarray, Y: np.ndarray, seed: int, sides: Any) -> dict[str, tuple[Any, ...]]:
    order = np.random.default_rng(seed).permutation(len(X))
    n = int(0.6 * len(X))
    train, test = order[:n], order[n:]
    spread = X[train].std(axis=0)
    Z = (X - X[train].mean(axis=0)) / np.where(spread > 0, spread, 1)
    held, rest = train[: n // 4], train[n // 4 :]
    answers = {}
    for name, (make, grid) in sides.items():
        value = grid[0]
        if len(grid) > 1:
            taus = [kendall(make(v).fit(Z[rest], Y[rest]).predict(Z[held]), Y[held]) for v in grid]
            value = grid[int(np.argmax(taus))]
        with Clock() as clock:
            model = make(value).fit(Z[train], Y[train])
        told = of_grid(value, grid) if len(grid) > 1 else "-"
        answers[name] = kendall(model.predict(Z[test]), Y[test]), clock.cpu, told
    return answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--splits", type=int, help="default: 5, or 40 of small sets")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # alpha 1e-4 ends at max_iter on some
    header("Rankings")
    known = sides()
    for name in options.sets:
        X, Y = read(name)
        own = {side: known[side] for side in known if name != "generated" or "ours," not in side}
        count = options.splits or (40 if len(X) < 300 and Y.shape[1] < 10 else 5)
        splits = [one_split(X, Y, seed, own) for seed in range(count)]
        rows = []
        for side in own:
            taus, seconds, told = zip(*(split[side] for split in splits))
            error = np.std(taus) / np.sqrt(max(len(taus) - 1, 1))
            rows.append([side, f"{np.mean(taus):.4f}", f"{error:.4f}", f"{np.median(seconds):.3f}"])
            rows[-1].append(", ".join(sorted(set(told))))
        size = f"{len(X)} rows, {X.shape[1]} features, {Y.shape[1]} labels"
        print(f"{name}: {size}, {count} splits\n")
        print(
            table(["side", "Kendall's tau", "s.e.", "CPU s of a fit", "chosen"], rows), flush=True
        )


if __name__ == "__main__":
    main()
