"""Columns of unlike scale: training as by default, on raw features, and in a pipeline.

All stop at the default gap or after 100 passes.  emotions has label
sets, the other sets have classes (a random half of the rows is for the test).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from common import Clock, header, table
from datasets import data_path, multilabel


def classes(name: str) -> tuple[Any, ...]:
    """An mc- set, cut in half at random."""
    with np.load(data_path(f"mc-{name}", "data.npz"), allow_pickle=False) as data:
        X, y = data["X"].astype(float), data["y"].astype(int)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[: len(y) // 2], order[len(y) // 2 :]
    return X[train], y[train], X[test], y[test]


def main() -> None:
    header("Columns of unlike scale: by default, unscaled, and with a scaler before the model")
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from structsolve import StructuredSVM

    warnings.simplefilter("ignore", UserWarning)
    StructuredSVM("multiclass", scale_features=True).fit([[0.0], [1.0]], [0, 1])  # imports
    rows = []
    for name, structure, data in (
        ("emotions", "multilabel", multilabel("emotions", scale=False)),
        ("segment", "multiclass", classes("segment")),
        ("wine", "multiclass", classes("wine")),
    ):
        X, y, X_test, y_test = data
        for way in ("default", "scale_features=False", "StandardScaler()"):
            model = StructuredSVM(structure, scale_features=False if "False" in way else "auto")
            fitted = make_pipeline(StandardScaler(), model) if "Scaler" in way else model
            with Clock() as clock:
                fitted.fit(X, y)
            last = model.history_[-1]
            gap = f"{100 * last['gap'] / last['primal']:.2g} %"
            score = float(fitted.score(X_test, y_test))
            rows.append([name, way, clock.cpu, model.n_iter_, gap, score])
    print(table(["set", "features", "CPU s", "passes", "relative gap", "test score"], rows))


if __name__ == "__main__":
    main()
