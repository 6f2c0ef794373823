"""Label sets: micro-F1, Hamming loss and accuracy of the surrogates and of one SVM per label.

The split is the given one.  alpha (and beta, and the loss of the peer) has the best micro-F1 on a
random quarter of the training rows after training on the rest, for small sets on average over
several quarters.  The search goes from the largest alpha of a grid downwards, on bibtex until six
in a row are no better than the best.  Ours are warm-started, with ten passes each.  The final model
is trained from scratch on all training rows, up to `--passes` or a gap of 1 %.  The peer is
scikit-learn's LinearSVC per label with C = 1 / (alpha n); its constant feature is regularised as
ours is.  No threshold is tuned.

    STRUCTSOLVE_DATA=... python benchmarks/multilabel.py --sets bibtex
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

import numpy as np
from common import Clock, header, of_grid, structsolve_or_none, table
from datasets import multilabel
from ours import over_hull

# Rows of unit length need smaller alphas than dense features of deviation 1.
DENSE = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 3e-3)
SPARSE = (3e-3, 1e-3, 6e-4, 3e-4, 2e-4, 1e-4, 7e-5, 5e-5, 3e-5, 2e-5, 1e-5, 3e-6)
# name -> pairs of labels with weights, grid, random validation quarters, patience.  All pairs if
# all label sets can be enumerated; for 159 labels the tree of largest mutual information, for which
# the best set is exact and cheap.
SETS = {
    "emotions": ("full", DENSE, 5, 7),
    "scene": ("full", DENSE, 3, 7),
    "yeast": ("full", DENSE, 1, 7),
    "bibtex": ("tree", SPARSE, 1, 6),
}
PASSES = 10  # per alpha on the way down
PEER = "one SVM per label"
# name -> (surrogate to choose from, no pairs)
RUNS: dict[str, tuple[tuple[str, ...], bool]] = {
    "margin, no pairs": (("margin",), True),
    "margin": (("margin",), False),
    "beta": (("beta:0.25", "beta:0.5", "beta:0.75"), False),
    "slack": (("slack",), False),
    "micro-f1": (("micro-f1",), False),
}
# micro-F1 (thesis)
THESIS = {"bibtex": {PEER: 0.423, "margin": 0.419, "beta": 0.444, "slack": 0.352}}


def micro_f1(truth: np.ndarray, predicted: np.ndarray) -> float:
    from sklearn.metrics import f1_score

    return float(f1_score(truth, predicted, average="micro", zero_division=0))


def measures(truth: np.ndarray, predicted: np.ndarray) -> list[str]:
    """micro-F1, Hamming loss and mean Jaccard index; two empty sets agree."""
    from sklearn.metrics import hamming_loss, jaccard_score

    accuracy = jaccard_score(truth, predicted, average="samples", zero_division=1)
    figures = (micro_f1(truth, predicted), hamming_loss(truth, predicted), accuracy)
    return [f"{x:.4f}" for x in figures]


def one_per_label(loss: str) -> Callable[[float, int], Any]:
    """Return a function that makes the peer."""

    def make(alpha: float, n: int) -> Any:
        from sklearn.multiclass import OneVsRestClassifier
        from sklearn.svm import LinearSVC

        return OneVsRestClassifier(LinearSVC(C=1 / (alpha * n), loss=loss, random_state=0))

    return make


def surrogate(structsolve: Any, name: str, edges: str, passes: int, warm: bool) -> Any:
    return structsolve.StructuredSVM(
        structsolve.get_structure("multilabel", edges=edges),
        surrogate=over_hull(name),
        loss="hamming",
        max_iter=passes,
        tol=1e-2,
        warm_start=warm,
    )


def down(
    ways: list[Iterator[Any]], grid: tuple[float, ...], parts: list[Any], patience: int
) -> tuple[float, float]:
    """The best mean micro-F1 on the validation parts and its alpha; see the top of the file.

    `ways` has an iterator per part, which yields a model for every alpha of the grid.
    """
    best, best_alpha, worse = 0.0, np.nan, 0
    for alpha, *models in zip(grid, *ways):
        scores = []
        for model, (X, Xv, Y, Yv) in zip(models, parts, strict=True):
            scores.append(micro_f1(Yv, model.fit(X, Y).predict(Xv)))
        score = float(np.mean(scores))
        if score > best:
            best, best_alpha, worse = score, alpha, 0
        elif best > 0:
            worse += 1
        if worse == patience:
            break
    return best, best_alpha


def warm_models(model: Any, grid: tuple[float, ...]) -> Iterator[Any]:
    """One estimator that continues from its last solution."""
    for alpha in grid:
        yield model.set_params(alpha=alpha)


def choose(
    structsolve: Any, name: str, run: str, edges: str, X: Any, Y: np.ndarray
) -> tuple[float, float, str]:
    """Validation score, alpha and surrogate (or the peer's loss) of a run; see the top."""
    from sklearn.model_selection import train_test_split

    _, grid, splits, patience = SETS[name]
    parts = [train_test_split(X, Y, test_size=0.25, random_state=seed) for seed in range(splits)]
    best: tuple[float, float, str] = (-1.0, np.nan, "")
    for way in ("hinge", "squared_hinge") if run == PEER else RUNS[run][0]:
        ways = []
        for _, _, used, _ in parts:
            if run == PEER:
                make = one_per_label(way)
                ways.append(map(make, grid, repeat(len(used))))
            else:
                model = surrogate(structsolve, way, edges, PASSES, warm=True)
                ways.append(warm_models(model, grid))
        best = max(best, (*down(ways, grid, parts, patience), way))
    return best


def of_set(structsolve: Any, name: str, args: argparse.Namespace) -> Iterator[list[Any]]:
    """Rows of the table."""
    pairs, grid, *_ = SETS[name]
    X, Y, Xt, Yt = multilabel(name)
    thesis = THESIS.get(name, {})
    print(
        f"### {name}: {X.shape[0]} + {Xt.shape[0]} x {X.shape[1]}, {Y.shape[1]} labels, "
        f"edges: {pairs}; alpha from {grid[0]:g} down to {grid[-1]:g}\n",
        flush=True,
    )
    for run in args.runs if structsolve is not None else [PEER]:
        edges = "none" if run != PEER and RUNS[run][1] else pairs
        with Clock() as choosing:
            if args.chosen:
                score, way, alpha = np.nan, args.chosen[0], float(args.chosen[1])
            else:
                score, alpha, way = choose(structsolve, name, run, edges, X, Y)
        if run == PEER:
            model = one_per_label(way)(alpha, len(Y))
        else:
            model = surrogate(structsolve, way, edges, args.passes, warm=False)
            model.set_params(alpha=alpha, checkpoint=args.checkpoint)
        with Clock() as clock:
            model.fit(X, Y)
        predicted = model.predict(Xt)
        cells = [f"{run} ({way})" if way != run.split(",")[0] else run]
        cells += [of_grid(alpha, grid), f"{score:.4f}", *measures(Yt, predicted)]
        cells += [f"{thesis[run]:.3f}" if run in thesis else ""]
        cells += [f"{predicted.sum(axis=1).mean():.2f}", f"{clock.cpu:.2f}", f"{choosing.cpu:.1f}"]
        if run == PEER:
            cells += [""] * 3
        else:
            last = model.history_[-1]
            calls = last.get("calls_per_search", 1.0)
            cells += [len(model.history_), f"{last['gap'] / last['primal']:.3f}", f"{calls:.2f}"]
        yield cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--runs", nargs="+", choices=[PEER, *RUNS], default=[PEER, *RUNS])
    parser.add_argument("--passes", type=int, default=200, help="of the last training")
    parser.add_argument(
        "--chosen", nargs=2, metavar=("SURROGATE", "ALPHA"), help="of one run: train it alone"
    )
    parser.add_argument("--checkpoint", help="a file from which an interrupted run continues")
    args = parser.parse_args()
    header("Label sets: surrogates against one SVM per label")
    structsolve = structsolve_or_none()
    # Warnings of labels that no row of a part has, and of SVMs that reach their step limit.
    warnings.filterwarnings("ignore")
    columns = ["learner", "alpha", "micro-F1, validation", "micro-F1, test", "Hamming loss"]
    columns += ["accuracy", "thesis: micro-F1", "labels a row", "train CPU s", "choosing CPU s"]
    columns += ["passes", "relative gap", "calls a search, last pass"]
    for name in args.sets:
        for i, row in enumerate(of_set(structsolve, name, args)):
            lines = table(columns, [row]).splitlines()
            print("\n".join(lines[2 if i else 0 :]), flush=True)
        print()


if __name__ == "__main__":
    main()
