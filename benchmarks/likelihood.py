"""Conditional likelihood of classes: ``surrogate="crf"`` beside scikit-learn's LogisticRegression.

Both models are fitted by default, and at one strength of regularisation: that of scikit-learn's
default C = 1, so alpha = 1 / n.  The objective is ours, ``alpha / 2 |w|^2`` plus the mean negative
log-likelihood; our intercept is in the norm, scikit-learn's is not, so that its objective is
counted without.  "gap" is our certified gap; scikit-learn stops by its gradient and tells none.
Rows of the letters are scaled to [-1, 1]; the generated rows overlap.

    STRUCTSOLVE_DATA=... python benchmarks/likelihood.py [--only letters] [--repeat 3]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from common import Clock, header, structsolve_or_none, table
from datasets import mc_letter, ocr_split
from scipy.special import logsumexp

Rows = tuple[Any, Any, Any, Any]


def pixels() -> Rows:
    train, test = ocr_split(0, "one")
    return train.pixels.astype(float), train.labels, test.pixels.astype(float), test.labels


def generated(n: int, columns: int, classes: int) -> Callable[[], Rows]:
    def make() -> Rows:
        from sklearn.datasets import make_classification

        X, y = make_classification(
            2 * n,
            columns,
            n_informative=columns // 2,
            n_classes=classes,
            n_clusters_per_class=1,
            random_state=0,
        )
        return X[:n], y[:n], X[n:], y[n:]

    return make


SETS: dict[str, Callable[[], Rows]] = {
    "letters": mc_letter,
    "handwritten letters, a fold": pixels,
    "generated": generated(2000, 20, 5),
    "generated, more": generated(20000, 50, 10),
}


def likelihood(scores: np.ndarray, y: np.ndarray, classes: np.ndarray) -> float:
    """Mean negative log-likelihood."""
    truth = scores[np.arange(len(y)), np.searchsorted(classes, y)]
    return float(np.mean(logsumexp(scores, axis=1) - truth))


def objective(model: Any, X: Any, y: np.ndarray, alpha: float) -> float:
    """The mean negative log-likelihood of training and the norm without an intercept."""
    w = model.coef_["node"][: X.shape[1]] if isinstance(model.coef_, dict) else model.coef_
    mean = likelihood(model.decision_function(X), y, model.classes_)
    return 0.5 * alpha * float(np.sum(np.asarray(w) ** 2)) + mean


def compared(name: str, load: Callable[[], Rows], repeat: int) -> list[list[Any]]:
    """A row for each model."""
    from sklearn.linear_model import LogisticRegression

    from structsolve import StructuredSVM

    X, y, Xt, yt = load()
    n = len(y)
    models: dict[str, Any] = {
        "ours by default": lambda: StructuredSVM("multiclass", surrogate="crf"),
        "LogisticRegression": LogisticRegression,
        "ours at alpha = 1 / n": lambda: StructuredSVM("multiclass", surrogate="crf", alpha=1 / n),
    }
    best: dict[str, tuple[float, Any]] = {}
    for _ in range(repeat):
        for title, make in models.items():
            with Clock() as clock:
                model = make().fit(X, y)
            if title not in best or clock.cpu < best[title][0]:
                best[title] = clock.cpu, model
    rows, theirs = [], best["LogisticRegression"][0]
    for title, (seconds, model) in best.items():
        last = getattr(model, "history_", [None])[-1]
        gap = "-" if last is None else f"{last['gap'] / last['primal']:.4f}"
        took = "lbfgs" if last is None else model.solver_.name
        error = float(np.mean(model.predict(Xt) != yt))
        unseen = likelihood(model.decision_function(Xt), yt, model.classes_)
        value = f"{objective(model, X, y, 1 / n):.5f}" if title != "ours by default" else "-"
        figures = seconds, gap, value, f"{error:.4f}", f"{unseen:.4f}", f"{seconds / theirs:.2f}x"
        rows.append([f"{name}, {title}", took, *figures])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--repeat", type=int, default=3, help="runs of each fit (fastest)")
    args = parser.parse_args()
    header("Conditional likelihood of classes, beside LogisticRegression")
    if structsolve_or_none() is None:
        return
    warnings.simplefilter("ignore")
    rows = [row for name in args.only for row in compared(name, SETS[name], args.repeat)]
    columns = ["set and model", "solver", "fit, CPU s", "gap", "objective at alpha = 1 / n"]
    print(table([*columns, "test error", "test log-loss", "time / LogisticRegression"], rows))


if __name__ == "__main__":
    main()
