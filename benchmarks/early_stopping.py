"""Training that held-out examples end: the default solver beside those that one may name.

Words of one fold of handwritten words by C, and generated strips: StructuredSVM with
early_stopping=True and otherwise its defaults, by "auto" and by name; CPU seconds of fit, and the
score on the other words, each the mean over --seeds splits of the training examples.

    STRUCTSOLVE_DATA=... python benchmarks/early_stopping.py
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from common import Clock, header, table
from datasets import ocr_split

SOLVERS = ("auto", "bcfw", "admm", "lbfgs")


def sets() -> Iterator[tuple[str, str, float, Any, Any, Any, Any]]:
    """Name, surrogate, alpha, X, y, X_test, y_test."""
    from structsolve import make_strips

    parts = [part for words in ocr_split(0, "one") for part in (words.x_list(), words.y_list())]
    for surrogate in ("margin", "crf"):
        for C in (0.05, 1, 10):
            yield f"words, C = {C}", surrogate, 1 / (C * len(parts[0])), *parts
    train, test = make_strips(2000, 500)
    for alpha in (1e-4, 1e-5):
        parts = [train.pixels, train.labels, test.pixels, test.labels]
        yield f"strips, alpha = {alpha:g}", "margin", alpha, *parts


def main() -> None:
    from structsolve import StructuredSVM

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    header("Early stopping by solvers")
    warnings.filterwarnings("ignore")
    rows = []
    for name, surrogate, alpha, X, y, X_test, y_test in sets():
        for solver in SOLVERS[: None if surrogate == "crf" else -1]:
            seconds, scores, ends = [], [], set()
            for seed in range(args.seeds):
                model = StructuredSVM("chain", surrogate=surrogate, alpha=alpha, solver=solver)
                model.set_params(early_stopping=True, random_state=seed)
                with Clock() as clock:
                    model.fit(X, y)
                seconds.append(clock.cpu)
                scores.append(model.score(X_test, y_test))
                ends.add(model.stop_reason_)
            row = [name, surrogate, solver, model.solver_.name, f"{np.mean(seconds):.2f}"]
            rows.append([*row, f"{np.mean(scores):.4f}", ", ".join(sorted(ends))])
    columns = ["examples", "surrogate", "solver", "which is", "fit, CPU s", "score", "ended by"]
    print(table(columns, rows))


if __name__ == "__main__":
    main()
