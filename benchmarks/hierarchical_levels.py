"""Classes of a hierarchy given as tables of levels: `HierarchicalSVM` beside HiClass, both tuned.

Data: a generated tree of four levels where a fifth of the paths ends early, and imclef07a (X-ray
pictures, three levels, 63 leaves).  HiClass trains LogisticRegression per node or per parent node,
or LinearSVC per parent node (per node it asks for probabilities, which LinearSVC lacks).  Every
model is fitted at each value of its constant on half of the training rows, the best on the other
half is fitted on all of them; seconds are those of this last fit.

    STRUCTSOLVE_DATA=../shared/data python benchmarks/hierarchical_levels.py
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import Clock, header, of_grid, table
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

CONSTANTS = (1e-3, 0.01, 0.1, 1.0, 10.0)
ALPHAS = (0.1, 0.01, 1e-3, 1e-4, 1e-5)


def generated(seed: int = 0) -> tuple[np.ndarray, ...]:
    """3000 training and 2000 test rows of a tree: each node adds its own direction to the mean."""
    rng = np.random.default_rng(seed)
    widths, d, n = (4, 4, 3, 3), 40, 5000
    means: dict[str, np.ndarray] = {"": np.zeros(d)}
    X, Y = np.empty((n, d)), np.zeros((n, 4), dtype="U8")
    for i in range(n):
        name = ""
        depth = 4 if rng.random() > 0.2 else rng.integers(2, 4)
        for level in range(depth):
            above = name
            name += str(min(rng.geometric(0.4) - 1, widths[level] - 1))
            if name not in means:
                means[name] = means[above] + rng.normal(size=d) / (level + 1) ** 0.5
            Y[i, level] = name
        X[i] = means[name] + 1.5 * rng.normal(size=d)
    return X[:3000], Y[:3000], X[3000:], Y[3000:]


def imclef() -> tuple[np.ndarray, ...]:
    data = np.load(Path(os.environ["STRUCTSOLVE_DATA"], "hmc-imclef07a", "data.npz"))
    parent = {child: above for child, above in data["edges"].tolist()}

    def depth(v: int) -> int:
        return 0 if parent[v] < 0 else 1 + depth(parent[v])

    sides = []
    for side in ("train", "test"):
        sets = data[f"Y_{side}_indices"].reshape(-1, 3).tolist()
        paths = [[data["node_names"][v] for v in sorted(row, key=depth)] for row in sets]
        sides += [data[f"X_{side}"].astype(float), np.array(paths)]
    order = np.random.default_rng(0).permutation(len(sides[0]))
    return sides[0][order], sides[1][order], sides[2], sides[3]


def models() -> dict[str, tuple[tuple[float, ...], Callable[[float], Any]]]:
    from hiclass import LocalClassifierPerNode, LocalClassifierPerParentNode

    from structsolve import HierarchicalSVM

    def ours(**settings: Any) -> Callable[[float], Any]:
        return lambda alpha: HierarchicalSVM(alpha=alpha, tol=1e-2, **settings)

    peers = {"per node": LocalClassifierPerNode, "per parent": LocalClassifierPerParentNode}
    bases: dict[str, Callable[[float], Any]] = {
        "LinearSVC": lambda C: LinearSVC(C=C),
        "LogisticRegression": lambda C: LogisticRegression(C=C, max_iter=300),
    }
    made: dict[str, tuple[tuple[float, ...], Callable[[float], Any]]] = {
        "HierarchicalSVM": (ALPHAS, ours()),
        'HierarchicalSVM, "learned"': (ALPHAS, ours(normalization="learned")),
        "HierarchicalSVM, crf": (ALPHAS, ours(surrogate="crf")),
    }
    for name, peer in peers.items():
        for base, make in bases.items():
            if (name, base) == ("per node", "LinearSVC"):
                continue

            def build(C: float, peer: Any = peer, make: Any = make) -> Any:
                return peer(make(C), n_jobs=1)

            made[f"HiClass {name}, {base}"] = (CONSTANTS, build)
    return made


def compare(name: str, data: tuple[np.ndarray, ...], only: str | None) -> None:
    from structsolve.plugins.dag import hierarchical_scores

    X, Y, X_test, Y_test = data
    half = len(X) // 2
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    rows = []
    for label, (values, make) in models().items():
        if only and only not in label:
            continue

        def f1_at(value: float, make: Any = make) -> float:
            guess = make(value).fit(X[:half], Y[:half]).predict(X[half:])
            return hierarchical_scores(Y[half:], guess)["f1"]

        best = max(values, key=f1_at)
        with Clock() as fit:
            model = make(best).fit(X, Y)
        with Clock() as predict:
            guess = model.predict(X_test)
        guess = np.asarray(guess, dtype=str)
        scores = hierarchical_scores(Y_test, guess)
        exact = float((guess == Y_test).all(axis=1).mean())
        figures = [scores["f1"], scores["macro"]["f1"], exact]
        cells = [f"{100 * figure:.2f}" for figure in figures]
        cells += [f"{fit.cpu:.2f}", f"{1e3 * predict.cpu:.1f}"]
        rows.append([label, of_grid(best, values), *cells])
    levels = Y.shape[1]
    print(f"{name}: {len(X)} training rows, {len(X_test)} test rows, {levels} levels\n")
    columns = [
        "model",
        "constant",
        "hierarchical F1",
        "macro",
        "whole paths",
        "fit s",
        "predict ms",
    ]
    print(table(columns, rows), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=["generated", "imclef07a"])
    parser.add_argument("--only", help="models whose name holds this")
    args = parser.parse_args()
    header("classes of a hierarchy as tables of levels")
    warnings.simplefilter("ignore")
    for name, make in (("generated", generated), ("imclef07a", imclef)):
        if name in args.sets:
            compare(name, make(), args.only)


if __name__ == "__main__":
    main()
