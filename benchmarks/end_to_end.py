"""Tagging words from dicts of features to tags: sklearn-crfsuite beside our pipeline.

The task is parts of speech in English (dep-ud-english-ewt), with the features of words that
sklearn-crfsuite's tutorial has.  Its `CRF` has the settings of the tutorial, or another algorithm
by default; ours is a `SequenceVectorizer` and a `StructuredSVM`, by default or with the CRF's
surrogate.  Times are CPU seconds of `fit` and `predict` on lists of dicts, everything included, and
the median over sentences of µs of `predict` on one: the least of five rounds, in which the models
take turns.

    STRUCTSOLVE_DATA=... python benchmarks/end_to_end.py --sentences 3000
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from common import Clock, header, ratio, table
from datasets import data_path
from environments import enter, missing
from latency import names

from structsolve import SequenceVectorizer, StructuredSVM


def part(name: str, most: int | None = None) -> tuple[list[list[dict[str, Any]]], list[list[str]]]:
    """Features and tags of sentences of the treebank."""
    from structsolve.plugins.dependency.conllu import read_conllu

    path = data_path("dep-ud-english-ewt", f"en_ewt-ud-{name}.conllu.gz")
    sentences = read_conllu(path)[0][:most]
    features = [names([(form, "") for form in sentence.forms]) for sentence in sentences]
    return features, [list(sentence.upos) for sentence in sentences]


def models() -> dict[str, Any]:
    """Estimators by name; the peer's if it can be imported."""
    from sklearn.pipeline import make_pipeline

    made: dict[str, Any] = {
        "ours, by default": make_pipeline(SequenceVectorizer(), StructuredSVM("chain")),
        "ours, surrogate crf": make_pipeline(
            SequenceVectorizer(), StructuredSVM("chain", surrogate="crf")
        ),
    }
    try:
        from sklearn_crfsuite import CRF
    except ImportError:
        return made
    tutorial = {"c1": 0.1, "c2": 0.1, "max_iterations": 100, "all_possible_transitions": True}
    return made | {
        "sklearn-crfsuite, lbfgs": CRF(algorithm="lbfgs", **tutorial),
        "sklearn-crfsuite, ap": CRF(algorithm="ap"),
        "sklearn-crfsuite, pa": CRF(algorithm="pa"),
    }


def single(models: list[Any], X: list[Any], rounds: int = 5) -> list[float]:
    """µs of `predict` on one sentence, by model."""
    spent = np.empty((rounds, len(models), len(X)))
    for r in range(rounds):
        for k, model in enumerate(models):
            for i, sentence in enumerate(X):
                with Clock() as one:
                    model.predict([sentence])
                spent[r, k, i] = 1e6 * one.cpu
    return [float(x) for x in np.median(spent.min(axis=0), axis=1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, default=3000)
    args = parser.parse_args()
    enter("sklearn-crfsuite")
    header("From dicts to tags")
    print(missing("sklearn-crfsuite"))
    warnings.simplefilter("ignore")
    (X, Y), (X_test, Y_test) = part("train", args.sentences), part("test")
    words, truth = sum(map(len, Y)), np.concatenate(Y_test)
    lines: list[list[Any]] = []
    fitted = models()
    for name, model in fitted.items():
        with Clock() as fit:
            model.fit(X, Y)
        with Clock() as many:
            told = model.predict(X_test)
        right = float(np.mean(np.concatenate([*map(list, told)]) == truth))
        lines.append([name, fit.cpu, 1e6 * many.cpu / len(X_test), f"{100 * right:.2f} %"])
        print(f"<!-- {lines[-1]} -->", flush=True)
    rows: list[list[Any]] = []
    for line, one in zip(lines, single([*fitted.values()], X_test[:300]), strict=True):
        figures = [*line[1:3], one]
        first = rows[0][1:4] if rows else figures
        beside = [ratio(theirs, mine) for theirs, mine in zip(figures, first, strict=True)]
        rows.append([line[0], *figures, line[3], *beside])
    print(f"{len(X)} sentences of {words} words, {len(X_test)} to test; ratios over the first\n")
    columns = ["model", "fit, CPU s", "predict, µs a sentence", "one sentence, µs", "right"]
    print(table([*columns, "fit", "predict", "one"], rows))


if __name__ == "__main__":
    main()
