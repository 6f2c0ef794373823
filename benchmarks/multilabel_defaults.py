"""Label sets by the public calls: defaults, against one LinearSVC per label.

`StructuredSVM("multilabel")` and `OneVsRestClassifier(LinearSVC())` in the same process, both with
their defaults, on the given splits of the sets, and on generated documents of two shapes: few
documents of many words, and many documents of very many labels.  "full" and "none" are the other
words for pairs of labels, where they end in reasonable time; "hamming" is the loss of before, in
which a missed label costs no more than an extra one.

Micro-F1 depends on how many labels are predicted.  So the table has both, and micro-F1 at the
threshold, one for all labels, at which as many are predicted as the peer predicts.

    STRUCTSOLVE_DATA=... python benchmarks/multilabel_defaults.py --sets yeast
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import Clock, header, structsolve_or_none, table
from datasets import multilabel
from multilabel import micro_f1

# name -> training documents, test documents, words, labels, words and labels of a document
GENERATED = {
    "333 documents": (333, 645, 1449, 45, 13, 1.25),
    "12,920 documents": (12920, 3185, 500, 983, 24, 20.0),
}
# name -> words for pairs, or the loss, beside the default
SETS = {
    "yeast": ("hamming", "none", "full"),
    "scene": ("hamming", "none"),
    "bibtex": ("hamming", "none"),
    "333 documents": ("hamming", "none", "full"),
    "12,920 documents": ("hamming",),
}


def documents(train: int, test: int, words: int, labels: int, length: int, size: float) -> Any:
    """X, Y, Xt, Yt of documents with words of their labels, and some that all share.

    A label brings its partner with a probability that gives `size` labels a document; long label
    sets come from one topic, a range of the labels, in which some labels are frequent.
    """
    rng = np.random.default_rng(0)
    words_of = rng.dirichlet(np.full(words, 0.02), labels)
    common = rng.dirichlet(np.full(words, 0.1))
    share = 1 / np.arange(1, labels + 1) ** 0.8
    rows = []
    Y = np.zeros((train + test, labels), dtype=int)
    for y in Y:
        first = rng.choice(labels, p=share / share.sum())
        y[first] = 1
        if size < 2:
            y[(first + 1) % labels] |= rng.random() < size - 1
        else:
            topic = (first // 40 * 40 + np.arange(40)) % labels
            y[topic] |= rng.random(40) < size / 20 * rng.permuted(np.linspace(0, 1, 40))
        p = 0.75 * words_of[y == 1].mean(axis=0) + 0.25 * common
        rows.append(rng.multinomial(max(2, rng.poisson(length)), p / p.sum()) > 0)
    X = sp.csr_matrix(np.array(rows), dtype=float)
    return X[:train], Y[:train], X[train:], Y[train:]


def fitted(model: Any, data: Any, count: int = 0) -> tuple[float, list[str], int]:
    """CPU seconds of fit, and scores on the test rows, the last with `count` labels predicted.

    The scores are micro-F1, Hamming loss and micro-F1; 0 is the model's own count, also returned.
    """
    X, Y, Xt, Yt = data
    with Clock() as clock:
        model.fit(X, Y)
    labels, scores = model.predict(Xt), model.decision_function(Xt)
    count = count or int(labels.sum())
    most = scores >= np.sort(scores, axis=None)[-count]
    cells = [f"{micro_f1(Yt, labels):.4f}", f"{labels.sum() / len(Yt):.2f}"]
    cells += [f"{(labels != Yt).mean():.4f}", f"{micro_f1(Yt, most.astype(int)):.4f}"]
    return clock.cpu, cells, count


def main() -> None:
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    args = parser.parse_args()
    header("Label sets by default against one LinearSVC per label")
    warnings.filterwarnings("ignore", module="sklearn")
    structsolve = structsolve_or_none()
    columns = ["set", "learner", "train CPU s", "times the peer's", "micro-F1, test"]
    columns += ["labels a row", "Hamming loss", "micro-F1, the peer's count"]
    columns += ["pairs", "passes", "relative gap"]
    first = True
    for name in args.sets:
        data = documents(*GENERATED[name]) if name in GENERATED else multilabel(name)
        peer, scores, count = fitted(OneVsRestClassifier(LinearSVC(random_state=0)), data)
        rows: list[list[object]] = [
            [name, "LinearSVC per label", f"{peer:.2f}", "", *scores, "", "", ""]
        ]
        for way in ("default", *SETS[name]) if structsolve is not None else ():
            settings = {"edges": way} if way in ("none", "full") else {}
            structure = structsolve.get_structure("multilabel", **settings)
            loss = way if way == "hamming" else "auto"
            model = structsolve.StructuredSVM(structure, loss=loss)
            seconds, scores, _ = fitted(model, data, count)
            last = model.history_[-1]
            cells = [name, way, f"{seconds:.2f}"]
            cells += [f"{seconds / peer:.1f}", *scores, str(len(model.space_.edges_))]
            rows.append([*cells, len(model.history_), f"{last['gap'] / last['primal']:.4f}"])
        lines = table(columns, rows).splitlines()
        print("\n".join(lines[0 if first else 2 :]), flush=True)
        first = False


if __name__ == "__main__":
    main()
