"""Quality on real data against python-crfsuite on the same features: OCR letters, CoNLL-2000.

OCR: ten folds, both ways (train on one fold and test on nine; train on nine and test on one).
CoNLL-2000: chunking, trained on the 8936 training sentences, with word, shape, affix and
neighbour features of `structsolve.conll_features` on both sides.  Prints markdown tables: token
error, sequence error or span F1 (counted as in conlleval), training CPU seconds.  Settings are
fixed, not tuned on the test data; names of our rows include the solver and C.

    STRUCTSOLVE_DATA=... python benchmarks/quality.py --task ocr --folds 0 1 2
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from common import Clock, header, structsolve_or_none, table
from datasets import OCR_FOLDS, Words, attribute_matrices, chunking_attributes, conll2000, ocr_split
from ours import chain_svm
from peers import ALGORITHMS, Crfsuite

# name -> (solver, C, passes): ours with an intercept and start and end tables
OURS_OCR = {
    "ours, bcfw C=.1, 10 passes": ("bcfw", 0.1, 10),
    "ours, bcfw C=.3, 10 passes": ("bcfw", 0.3, 10),
    "ours, sgd C=1, 10 passes": ("sgd", 1.0, 10),
}
OURS_CONLL = {
    "ours, bcfw C=.1, 20 passes": ("bcfw", 0.1, 20),
    "ours, sgd C=.1, 10 passes": ("sgd", 0.1, 10),
    "ours, sgd C=.3, 30 passes": ("sgd", 0.3, 30),
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


def conll_task(structsolve: Any, peers: list[str], limit: int | None) -> None:
    from structsolve.plugins.chain.metrics import span_f1

    (train, y), (test, truth) = conll2000("train"), conll2000("test")
    train, y = train[:limit], y[:limit]
    with Clock() as features:
        items, items_test = ([chunking_attributes(s) for s in part] for part in (train, test))
    print(f"features of {len(train)} + {len(test)} sentences: {features}\n")
    rows = []

    def add(name: str, clock: Clock, decode: Callable[[], list[Any]]) -> None:
        with Clock() as tagging:
            predicted = decode()
        pairs = zip(predicted, truth, strict=True)
        wrong = sum(a != b for p, t in pairs for a, b in zip(p, t, strict=True))
        report = span_f1(truth, [list(map(str, p)) for p in predicted])
        rows.append(
            [
                name,
                f"{wrong / sum(map(len, truth)):.4f}",
                f"{100 * report['f1']:.2f}",
                f"{100 * report['precision']:.2f}",
                f"{100 * report['recall']:.2f}",
                f"{clock.cpu:.1f}",
                f"{tagging.cpu:.2f}",
            ]
        )
        print(f"<!-- {rows[-1]} -->", flush=True)

    if peers:
        peer = Crfsuite(items, y)
        prepared = peer.prepare(items_test)
        print(f"crfsuite: conversion of the training set {peer.conversion}\n")
        for name in peers:
            algorithm, parameters = ALGORITHMS[name]
            add(name, peer.train(algorithm, **parameters), lambda: peer.predict(prepared))
    if structsolve:
        with Clock() as conversion:
            x, xt, names = attribute_matrices(items, items_test)
        print(f"ours: CSR matrices with {len(names)} features: {conversion}\n")
        for name, (solver, c, passes) in OURS_CONLL.items():
            alpha = 1.0 / (c * len(x))
            model = chain_svm(structsolve, alpha, passes, ends=True, solver=solver)
            with Clock() as clock:
                model.fit(x, y)
            add(name, clock, lambda m=model: m.predict(xt))
    print(f"\n### CoNLL-2000 chunking, {len(train)} sentences, same features\n")
    print(
        table(
            [
                "learner",
                "token error",
                "span F1",
                "precision",
                "recall",
                "train CPU s",
                "tag CPU s",
            ],
            rows,
        ),
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", choices=["ocr", "conll"], nargs="*", default=["ocr", "conll"])
    parser.add_argument("--folds", type=int, nargs="*", default=list(range(OCR_FOLDS)))
    parser.add_argument("--ways", choices=["one", "nine"], nargs="*", default=["one", "nine"])
    parser.add_argument("--peers", nargs="*", default=list(ALGORITHMS), choices=list(ALGORITHMS))
    parser.add_argument("--sentences", type=int, help="CoNLL: train on the first so many only")
    args = parser.parse_args()
    header("Quality against python-crfsuite, same features")
    structsolve = structsolve_or_none()
    if "ocr" in args.task:
        ocr_task(structsolve, args.folds, args.ways, args.peers)
    if "conll" in args.task:
        conll_task(structsolve, args.peers, args.sentences)


if __name__ == "__main__":
    main()
