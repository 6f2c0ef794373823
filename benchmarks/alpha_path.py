"""StructuredSVMCV: one warm path per fold against independent cold fits of the same values.

Both train each fold at each alpha of the path and score it on the held-out rows.  The peers are
scikit-learn's GridSearchCV over the same plain estimator, and LogisticRegressionCV on flat classes
(another loss, its own ten values).  All use one thread.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from common import Clock, header, table
from datasets import mc_letter, multilabel, ocr_split, sparse_classes
from hierarchical_svm import split


def sets(names: list[str]) -> Any:
    """Name, structure, X, y, X_test, y_test."""
    from structsolve import Sequences

    if "ocr" in names:
        train, test = ocr_split(0, "one")
        (X, y), (X_test, y_test) = (
            (
                Sequences(words.pixels.astype(float), np.diff(words.offsets)),
                np.split(words.labels, words.offsets[1:-1]),
            )
            for words in (train, test)
        )
        yield "ocr", "chain", X, y, X_test, y_test
    if "letter" in names:
        X, y, X_test, y_test = mc_letter()
        yield "letter", "multiclass", X[:3000], y[:3000], X_test, y_test
    if "text" in names:
        yield "text", "multiclass", *sparse_classes(2000, 5000, 50, 40, 1000)
    if "yeast" in names:
        yield "yeast", "multilabel", *multilabel("yeast")
    if "hierarchy" in names:
        # Ten classes of an unbalanced tree, weights of nodes by "rho:2".
        tree, fit, choose, test = split("unbalanced", 0, 100)
        X, y = (np.concatenate(parts) for parts in zip(fit, choose))
        yield "hierarchy", tree, X, y, *test


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=["ocr", "letter"])
    parser.add_argument("--folds", type=int, default=3)
    args = parser.parse_args()
    header("Alpha by cross-validation: a warm path against cold fits")
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.model_selection import GridSearchCV

    from structsolve import HierarchicalSVM, HierarchicalSVMCV, StructuredSVM, StructuredSVMCV

    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", FutureWarning)
    warnings.filterwarnings("ignore", "the best alpha")  # the table has it
    rows = []
    for name, structure, X, y, X_test, y_test in sets(args.sets):
        settings = {"tol": 0.01}
        named = isinstance(structure, str)
        chooser, estimator = (
            (StructuredSVMCV, StructuredSVM) if named else (HierarchicalSVMCV, HierarchicalSVM)
        )
        path = chooser(structure, cv=args.folds, **settings)
        with Clock() as clock:
            path.fit(X, y)
        passes = int(path.passes_.sum())
        score = float(path.score(X_test, y_test))
        rows.append([name, "path", len(path.alphas_), clock.cpu, passes, path.alpha_, score])
        passes = 0

        def count(record: dict[str, Any]) -> None:
            nonlocal passes
            passes += 1

        plain = estimator(structure, callbacks=[count], **settings)
        grid = GridSearchCV(plain, {"alpha": path.alphas_.tolist()}, cv=args.folds)
        with Clock() as clock:
            grid.fit(X, y)
        alpha, score = grid.best_params_["alpha"], float(grid.score(X_test, y_test))
        passes -= grid.best_estimator_.n_iter_
        rows.append([name, "cold", len(path.alphas_), clock.cpu, passes, alpha, score])
        default = float(estimator(structure, **settings).fit(X, y).score(X_test, y_test))
        rows.append([name, "default alpha", None, None, None, 1e-3, default])
        if structure == "multiclass" or not named:
            peer = LogisticRegressionCV(cv=args.folds, max_iter=1000)
            with Clock() as clock:
                peer.fit(X, y)
            score = float(peer.score(X_test, y_test))
            rows.append([name, "LogisticRegressionCV", 10, clock.cpu, None, None, score])
    columns = ["set", "way", "alphas", "CPU s", "passes in folds", "alpha", "test score"]
    print(table(columns, rows))


if __name__ == "__main__":
    main()
