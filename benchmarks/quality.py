"""Handwritten words against python-crfsuite on the same features, over all folds.

Ten folds, both ways (train on one fold and test on nine; train on nine and test on one).  Prints
markdown tables: letter error, word error, training CPU seconds.  Settings are fixed, not tuned;
names of our rows include the solver and C.

    STRUCTSOLVE_DATA=... python benchmarks/quality.py --folds 0 1 2
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from common import Clock, header, structsolve_or_none, table
from datasets import OCR_FOLDS, Words, ocr_split
from ours import chain_svm
from peers import ALGORITHMS, Crfsuite

# name -> (solver, C, passes): ours with an intercept and start and end tables
OURS_OCR = {
    "ours, bcfw C=.1, 10 passes": ("bcfw", 0.1, 10),
    "ours, bcfw C=.3, 10 passes": ("bcfw", 0.3, 10),
    "ours, sgd C=1, 10 passes": ("sgd", 1.0, 10),
}
Scores = dict[str, list[tuple[float, ...]]]


def scores_ocr(predicted: list[Any], test: Words) -> tuple[float, float]:
    """Share of wrong letters and of words with a wrong letter."""
    wrong = np.concatenate([np.asarray(p, dtype=int) for p in predicted]) != test.labels
    words = np.add.reduceat(wrong, test.offsets[:-1]) > 0
    return float(wrong.mean()), float(words.mean())


def one_ocr(structsolve: Any, train: Words, test: Words, learners: list[str], out: Scores) -> None:
    peer = Crfsuite(train.crfsuite_items(), train.y_list())
    prepared = peer.prepare(test.crfsuite_items())
    for name in learners:
        if name in ALGORITHMS:
            algorithm, parameters = ALGORITHMS[name]
            clock = peer.train(algorithm, **parameters)
            predicted: list[Any] = peer.predict(prepared)
        else:
            solver, c, passes = OURS_OCR[name]
            alpha = 1.0 / (c * train.n_words)
            model = chain_svm(structsolve, alpha, passes, ends=True, solver=solver)
            x, y = train.x_list("packed"), train.y_list()
            with Clock() as clock:
                model.fit(x, y)
            predicted = model.predict(test.x_list("packed"))
        out.setdefault(name, []).append((*scores_ocr(predicted, test), clock.cpu))


def ocr_task(structsolve: Any, folds: list[int], ways: list[str], peers: list[str]) -> None:
    learners = peers + (list(OURS_OCR) if structsolve else [])
    for way in ways:
        out: Scores = {}
        for fold in folds:
            one_ocr(structsolve, *ocr_split(fold, way), learners, out)
            print(
                f"<!-- {way} {fold}: "
                + ", ".join(f"{n} {v[-1][0]:.4f}" for n, v in out.items())
                + " -->",
                flush=True,
            )
        title = "one fold, tested on nine" if way == "one" else "nine folds, tested on one"
        print(f"\n### OCR letters, trained on {title}; mean and deviation of {len(folds)} runs\n")
        rows = []
        for name, values in out.items():
            v = np.array(values)
            rows.append(
                [
                    name,
                    f"{v[:, 0].mean():.4f} ± {v[:, 0].std():.4f}",
                    f"{v[:, 1].mean():.4f}",
                    f"{v[:, 2].mean():.2f}",
                ]
            )
        print(table(["learner", "letter error", "word error", "train CPU s"], rows), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folds", type=int, nargs="*", default=list(range(OCR_FOLDS)))
    parser.add_argument("--ways", choices=["one", "nine"], nargs="*", default=["one", "nine"])
    parser.add_argument("--peers", nargs="*", default=list(ALGORITHMS), choices=list(ALGORITHMS))
    args = parser.parse_args()
    header("Quality against python-crfsuite, same features")
    structsolve = structsolve_or_none()
    ocr_task(structsolve, args.folds, args.ways, args.peers)


if __name__ == "__main__":
    main()
