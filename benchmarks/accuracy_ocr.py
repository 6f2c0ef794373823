"""Handwritten words, settings and iterations chosen on a validation fold: error, training time.

Fold 0 is for the test, fold 1 for validation.  Each learner is trained on the other eight folds
with every setting and number of iterations; chosen is the quickest run whose letter error on fold 1
is within .002 of the learner's least.  With it the learner is trained on all nine folds.
Intervals are of 95 % by 2,000 bootstrap samples of the test words.  The table of the quickest has,
of ours, of CRFsuite and of its trainers of CRFs, the quickest whose interval reaches the least
error of all, or ours, trained in turn three times more.

Both sides see the 128 pixels, a bias and word ends: an intercept and start/end tables on our side,
the attributes "bias", "BOS" and "EOS" on theirs.  Their data is converted and appended before the
clock starts; ours is given as structsolve.Sequences and packed while the clock runs.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from common import Chosen, Clock, header, of_grid, quickest, table
from datasets import Words, ocr
from ours import chain_svm, plain_bcfw
from peers import Crfsuite

import structsolve

FEW = (3, 4, 5, 6, 8, 10, 15, 20)


def values(name: str, *given: float) -> list[dict[str, Any]]:
    """Settings of one number."""
    return [{name: value} for value in given]


# algorithm, its settings, iterations
PEERS: dict[str, tuple[str, list[dict[str, Any]], tuple[int, ...]]] = {
    "crfsuite lbfgs": ("lbfgs", values("c2", 0.1, 1.0, 10.0), (60, 100, 200)),
    "crfsuite ap": ("ap", [{}], (*FEW, 30)),
    "crfsuite pa": ("pa", values("c", 0.01, 0.1, 1.0), (*FEW, 30)),
    "crfsuite l2sgd": ("l2sgd", values("c2", 0.1, 1.0, 10.0), (5, 10, 20)),
}
# solver, C = 1 / (alpha n), passes
OURS: dict[str, tuple[Any, list[dict[str, Any]], tuple[int, ...]]] = {
    "ours, plain bcfw": (plain_bcfw, values("C", 0.1, 0.3, 1.0, 3.0), (*FEW, 40)),
    "ours, bcfw": ("bcfw", values("C", 0.1, 0.3, 1.0), FEW[:-1]),
    "ours, sgd": ("sgd", values("C", 0.1, 0.3, 1.0), (*FEW, 40)),
}
#: CPU seconds and the letters of the words to predict.
Train = Callable[[dict[str, Any], int], tuple[float, list[Any]]]


def crfsuite(algorithm: str, train: Words, new: Words) -> Train:
    peer = Crfsuite(train.crfsuite_items(), train.y_list())
    prepared = peer.prepare(new.crfsuite_items())

    def run(setting: dict[str, Any], iterations: int) -> tuple[float, list[Any]]:
        clock = peer.train(algorithm, **setting, max_iterations=iterations)
        return clock.cpu, [[int(label) for label in word] for word in peer.predict(prepared)]

    return run


def ours(solver: Any, train: Words, new: Words) -> Train:
    x, y, x_new = train.x_list("packed"), train.y_list(), new.x_list("packed")

    def run(setting: dict[str, Any], iterations: int) -> tuple[float, list[Any]]:
        made = solver() if callable(solver) else solver
        alpha = 1.0 / (setting["C"] * train.n_words)
        model = chain_svm(structsolve, alpha, iterations, ends=True, solver=made)
        with Clock() as clock:
            model.fit(x, y)
        return clock.cpu, model.predict(x_new)

    return run


def wrong(predicted: list[Any], words: Words) -> np.ndarray:
    """Wrong letters and letters of each word."""
    told = np.concatenate([np.asarray(word) for word in predicted])
    missed = np.add.reduceat(told != words.labels, words.offsets[:-1])
    return np.column_stack([missed, np.diff(words.offsets)])


def error(counts: np.ndarray) -> Any:
    """Share of wrong letters, summed over the axis before the last."""
    missed, letters = np.moveaxis(counts.sum(axis=-2), -1, 0)
    return missed / letters


def chosen(run: Train, valid: Words, settings: list[dict[str, Any]], iterations: Any) -> Any:
    """Setting, iterations and validation error of the quickest run near the least; that error."""
    tried = []
    for setting in settings:
        for count in iterations:
            seconds, predicted = run(setting, count)
            tried.append((seconds, float(error(wrong(predicted, valid))), setting, count))
    least = min(share for _, share, *_ in tried)
    near = (one for one in tried if one[1] <= least + 0.002)
    _, share, setting, count = min(near, key=lambda one: one[0])
    return setting, count, share, least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="learners whose name contains this text")
    args = parser.parse_args()
    header("OCR letters, settings chosen on a validation fold")
    warnings.filterwarnings("ignore", message="the model predicts")  # after very few passes
    words, folds = ocr()
    test, valid, fewer, whole = (
        words.take(rows) for rows in (folds == 0, folds == 1, folds > 1, folds > 0)
    )
    samples = np.random.default_rng(0).integers(test.n_words, size=(2000, test.n_words))
    rows, picked = [], {}
    for name, (kind, settings, iterations) in {**PEERS, **OURS}.items():
        if args.only not in name:
            continue
        begin = crfsuite if name in PEERS else ours
        setting, count, share, least = chosen(
            begin(kind, fewer, valid), valid, settings, iterations
        )
        run = begin(kind, whole, test)
        seconds, predicted = run(setting, count)
        each = wrong(predicted, test)
        low, high = np.percentile(error(each[samples]), [2.5, 97.5])
        told = ", ".join(
            f"{key} {of_grid(value, [one[key] for one in settings])}"
            for key, value in setting.items()
        )
        row = [f"{error(each):.4f}", f"{seconds:.2f}"]
        again = partial(lambda run, *given: run(*given)[0], run, setting, count)
        picked[name] = Chosen(seconds, -float(error(each)), -low, [name, row[0]], again)
        rows.append(
            [name, told or "-", of_grid(count, iterations), f"{least:.4f}", f"{share:.4f}", row[0]]
        )
        rows[-1] += [f"{low:.4f} to {high:.4f}", row[1]]
        print(f"<!-- {rows[-1]} -->", flush=True)
    columns = ["learner", "setting", "iterations", "least, validation", "its error, validation"]
    print("### learners\n\n" + table([*columns, "error, test", "95 %", "train CPU s"], rows))
    columns = ["of", "learner", "error, test", "train CPU s"]
    print("### the quickest\n\n" + table(columns, quickest(picked, rounds=3)))


if __name__ == "__main__":
    main()
