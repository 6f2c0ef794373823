"""A sparse conditional random field on CoNLL-2000, the same objective as CRFsuite's OWL-QN.

Both minimise ``sum_i -log p(y_i | x_i) + c1 ||w||_1 + c2 ||w||^2`` over all pairs of attributes and
labels and all transitions.  CRFsuite ends when an iteration gains less than its delta; ours ends at
a certified gap.  The table has the objective at the final weights of each, computed by our code for
both.

    STRUCTSOLVE_DATA=... python benchmarks/sparse_crf.py
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from common import Clock, header, structsolve_or_none, table
from datasets import attribute_matrices, chunking_attributes, conll2000
from peers import Crfsuite

# c1, c2
PENALTIES = ((1.0, 0.0), (0.3, 0.03))


def without_bias(sentence: list[list[str]]) -> list[list[str]]:
    """Attributes without the constant, which would be penalised like any other."""
    return [[name for name in word if name != "bias"] for word in sentence]


def weights_of(tagger: Any, columns: dict[str, int], classes: list[str]) -> dict[str, np.ndarray]:
    """CRFsuite's weights in the blocks of ours."""
    info, place = tagger.info(), {label: k for k, label in enumerate(classes)}
    node = np.zeros((len(columns), len(classes)))
    transition = np.zeros((len(classes), len(classes)))
    for (attribute, label), weight in info.state_features.items():
        node[columns[attribute], place[label]] = weight
    for (before, after), weight in info.transitions.items():
        transition[place[before], place[after]] = weight
    return {"node": node, "transition": transition}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--tol", type=float, default=1e-3)
    args = parser.parse_args()
    structsolve = structsolve_or_none()
    from structsolve.plugins.chain.metrics import span_f1
    from structsolve.solvers import LBFGS

    header(f"A sparse CRF on {args.sentences} sentences of CoNLL-2000")
    sentences, y = conll2000("train")
    sentences, y = sentences[: args.sentences], y[: args.sentences]
    test_sentences, y_test = conll2000("test")
    attributes = [without_bias(chunking_attributes(s)) for s in sentences]
    test_attributes = [without_bias(chunking_attributes(s)) for s in test_sentences]
    X, X_test, names = attribute_matrices(attributes, test_attributes)
    n, rows = len(X), []
    for c1, c2 in PENALTIES:
        alpha = (c1 + 2 * c2) / n
        ratio = c1 / (c1 + 2 * c2)
        with Clock() as clock:
            model = structsolve.StructuredSVM(
                structsolve.get_structure("chain", start_end=False),
                surrogate="crf",
                solver=LBFGS(l1_ratio=ratio),
                alpha=alpha,
                tol=args.tol,
                max_iter=1000,
                fit_intercept=False,
            ).fit(X, y)
        last = model.history_[-1]
        rows.append(
            [
                f"ours, gap {last['gap'] / last['primal']:.1e}",
                f"{c1:g}, {c2:g}",
                f"{n * last['primal']:.1f}",
                last["nonzero"],
                len(model.history_),
                f"{clock.cpu:.1f}",
                f"{100 * span_f1(y_test, model.predict(X_test))['f1']:.2f}",
            ]
        )
        peer = Crfsuite(attributes, y)
        clock = peer.train(
            "lbfgs",
            **{"c1": c1, "c2": c2, "max_iterations": 1000, "feature.possible_states": True},
            **{"feature.possible_transitions": True},
        )
        tagger = peer.tagger()
        columns = {name: k for k, name in enumerate(names)}
        blocks = weights_of(tagger, columns, list(model.classes_))
        layout = model.space_.layout
        w = np.zeros(layout.dim)
        for name, block in blocks.items():
            layout.view(w, name)[...] = block
        problem = structsolve.Problem(model.space_, model.space_.pack(X, y), surrogate="crf")
        bounds, _ = problem.bounds(w)
        value = float(bounds.sum()) + c1 * float(np.abs(w).sum()) + c2 * float(w @ w)
        predicted = peer.predict(peer.prepare(test_attributes))
        rows.append(
            [
                "CRFsuite lbfgs",
                f"{c1:g}, {c2:g}",
                f"{value:.1f}",
                int(np.count_nonzero(w)),
                None,
                f"{clock.cpu:.1f}",
                f"{100 * span_f1(y_test, predicted)['f1']:.2f}",
            ]
        )
    print(table(["", "c1, c2", "objective", "weights", "passes", "CPU s", "span F1"], rows))


if __name__ == "__main__":
    main()
