"""Sparse conditional random fields, by the same objective as CRFsuite's OWL-QN.

Both minimise ``sum_i -log p(y_i | x_i) + c1 ||w||_1 + c2 ||w||^2`` over all pairs of attributes and
labels and all transitions.  CRFsuite ends when an iteration gains less than its delta; ours ends at
a certified gap.  The first table has the objective at the final weights of each, computed by our
code for both.  The second has a grid of c1 on generated sentences with rare names: how far each
objective is above the best one found, as passes go on, beside the certified gap, which lags.

    STRUCTSOLVE_DATA=... python benchmarks/sparse_crf.py
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from common import Clock, header, structsolve_or_none, table
from datasets import attribute_matrices, chunked_sentences, rare_names
from peers import Crfsuite

# c1, c2
PENALTIES = ((1.0, 0.0), (0.3, 0.03))
# c1 of the second table.
GRID = (1.0, 0.3, 0.1, 0.03)


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


def train(structsolve: Any, X: Any, y: Any, c1: float, c2: float, **settings: Any) -> Any:
    """Our model of CRFsuite's objective."""
    from structsolve.solvers import LBFGS

    return structsolve.StructuredSVM(
        structsolve.get_structure("chain", start_end=False),
        surrogate="crf",
        solver=LBFGS(l1_ratio=c1 / (c1 + 2 * c2)),
        alpha=(c1 + 2 * c2) / len(X),
        fit_intercept=False,
        **settings,
    ).fit(X, y)


def train_peer(peer: Crfsuite, c1: float, c2: float, passes: int) -> Clock:
    """CRFsuite's, over all pairs of attributes and labels."""
    possible = {"feature.possible_states": True, "feature.possible_transitions": True}
    return peer.train("lbfgs", c1=c1, c2=c2, max_iterations=passes, **possible)


def same_optimum(structsolve: Any, sentences: int, tol: float) -> None:
    """Print both objectives and models at the ends of training."""
    from structsolve.plugins.chain.metrics import span_f1

    items, y, test, y_test = chunked_sentences(sentences)
    attributes, test = ([without_bias(s) for s in part] for part in (items, test))
    X, X_test, names = attribute_matrices(attributes, test)
    n, rows = len(X), []
    for c1, c2 in PENALTIES:
        with Clock() as clock:
            model = train(structsolve, X, y, c1, c2, tol=tol, max_iter=1000)
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
        clock = train_peer(peer, c1, c2, 1000)
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
        predicted = peer.predict(peer.prepare(test))
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


def grid(structsolve: Any, passes: int) -> None:
    """Print the course of the objective, the gap, weights and F1 over c1, on rare names."""
    from structsolve.plugins.chain.metrics import span_f1

    attributes, y, test, y_test = rare_names(1000)
    attributes, test = ([without_bias(s) for s in part] for part in (attributes, test))
    X, X_test, _ = attribute_matrices(attributes, test)
    peer = Crfsuite(attributes, y)
    prepared, n, rows = peer.prepare(test), len(X), []
    for c1 in GRID:
        with Clock() as ours:
            model = train(structsolve, X, y, c1, 0.0, tol=1e-4, max_iter=passes)
        theirs = train_peer(peer, c1, 0.0, passes)
        courses = [[n * row["primal"] for row in model.history_], peer.losses]
        best = min(map(min, courses))
        last = model.history_[-1]
        gap = f"{100 * last['gap'] / last['primal']:.1f} %"
        learned = peer.tagger().info()
        weights = last["nonzero"], len(learned.state_features) + len(learned.transitions)
        guesses = model.predict(X_test), peer.predict(prepared)
        for k, (side, clock) in enumerate((("ours", ours), ("CRFsuite", theirs))):
            course = courses[k]
            excess = [
                100 * (course[min(after, len(course)) - 1] / best - 1) for after in (25, 50, passes)
            ]
            row = [side, f"{c1:g}", f"{course[-1]:.1f}", *(f"{e:.2f} %" for e in excess)]
            row += [None if k else gap, weights[k], len(course), clock.cpu]
            rows.append([*row, f"{100 * span_f1(y_test, guesses[k])['f1']:.2f}"])
    print(f"### c1 over a grid: {n} sentences with rare names, at most {passes} passes\n")
    columns = ["", "c1", "objective", "above the best after 25", "after 50", "at the end"]
    columns += ["certified gap", "weights", "passes", "CPU s", "span F1"]
    print(table(columns, rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--passes", type=int, default=100, help="of the grid over c1")
    args = parser.parse_args()
    header("Sparse CRFs")
    structsolve = structsolve_or_none()
    print(f"### {args.sentences} sentences of CoNLL-2000\n")
    same_optimum(structsolve, args.sentences, args.tol)
    grid(structsolve, args.passes)


if __name__ == "__main__":
    main()
