"""Passes of cutting planes by the length of their step: 0.2, 1 (plain BMRM) and the default.

The default begins with 0.2 and adapts to the predicted and actual decrease.  The table has passes
to a certified relative gap of 1e-3, at most 300; the peer is the plain method in the same run.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from common import header, table
from datasets import mc_letter, multilabel, ocr_split
from sklearn.preprocessing import StandardScaler

STEPS = {"0.2": 0.2, "1": 1.0, "default": None}
ALPHAS = (10.0, 1.0, 0.1, 0.01)


def sets() -> Any:
    """Name, structure, X, y."""
    from structsolve import Sequences

    X, y, _, _ = mc_letter()
    yield "letter", "multiclass", X[:1000], y[:1000]
    X, Y, _, _ = multilabel("emotions")
    yield "emotions", "multilabel", StandardScaler().fit_transform(X), Y
    train, _ = ocr_split(0, "one")
    ends = train.offsets[:151]
    words = Sequences(train.pixels[: ends[-1]].astype(float), np.diff(ends))
    yield "ocr", "chain", words, np.split(train.labels[: ends[-1]], ends[1:-1])
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    scores = X @ rng.normal(size=(5, 6)) + 0.5 * rng.normal(size=(300, 6))
    yield "rankings", "permutation", X, np.argsort(np.argsort(scores, axis=1), axis=1)


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    header("Cutting planes: passes by the step")
    from structsolve import StructuredSVM
    from structsolve.solvers import CuttingPlane

    warnings.simplefilter("ignore")
    rows = []
    for name, structure, X, y in sets():
        for alpha in ALPHAS[: 3 if name == "ocr" else 4]:
            row: list[Any] = [name, alpha]
            for step in STEPS.values():
                solver = CuttingPlane(step=step)
                settings = {"alpha": alpha, "tol": 1e-3, "max_iter": 300, "solver": solver}
                model = StructuredSVM(structure, **settings).fit(X, y)
                row.append(model.n_iter_ if model.stop_reason_ == "converged" else "over 300")
            rows.append(row)
    print(table(["set", "alpha", *STEPS], rows))


if __name__ == "__main__":
    main()
