"""Error of the max-min oracle by its iterations, with and without warm starts.

The script repeats Table 2 of Nowak-Vila et al. (2020).  First on its two sets, with the features of
``m4n_table.py`` and the settings of the paper's code: mirror prox with entropies, fixed steps, 201
passes, 30 % of the rows to test.  These classes are ordered, so a closed form stands beside it.
The paper's code prints the least test loss of all passes, the column "its least".

Then on one fold of OCR letters, where there is none.  Weights are those of GBCFW with an accurate
oracle, after every pass.  Each setting calls the oracle for every word at the weights of successive
passes, as in training.

The error is the certificate's gap, bound minus value, as a mean over the examples.  The tables of
words also have its share of the surrogate's bound and the CPU time in microseconds per word.

    STRUCTSOLVE_DATA=... python benchmarks/max_min_oracle.py
"""

from __future__ import annotations

import argparse
import os
from itertools import product
from typing import Any

import numpy as np
from common import Clock, header, in_processes, structsolve_or_none, table
from datasets import Words, ocr_split

ITERATIONS = (1, 2, 5, 10, 20, 50)
PASSES = (1, 3, 10, 60)
#: Set, alpha, and the published test losses and errors with warm and cold starts.  The first has
#: 199 rows here and 208 there.
ORDERED = {
    "ord-machine": (
        4.42e-2,
        "0.42/0.57, 0.41/0.43, 0.41/0.22, 0.41/0.13",
        "0.50/4.41, 0.50/2.74, 0.44/1.25, 0.42/0.63",
    ),
    "ord-auto": (
        5e-3,
        "0.56/1.55, 0.55/1.29, 0.51/0.81, 0.50/0.44",
        "0.61/2.66, 0.57/1.79, 0.53/0.89, 0.51/0.47",
    ),
}
ORDERED_PASSES = 201
ORDERED_ITERATIONS = (5, 10, 20, 50)


def ordered_run(name: str, surrogate: Any, split: int) -> list[float]:
    """Test loss, its least of all passes, and the mean error of the oracle after three of them."""
    from m4n_table import load

    import structsolve
    from structsolve.plugins.ordinal import OrdinalStructure
    from structsolve.solvers import GBCFW

    X, y = load(name)
    X = X[:, :-1]  # the model has the constant
    order = np.random.default_rng(split).permutation(len(X))
    test, train = np.split(order, [round(0.3 * len(X))])
    structure = OrdinalStructure(classes=np.unique(y))
    weights: list[np.ndarray] = []
    structsolve.StructuredSVM(
        structure,
        surrogate=surrogate,
        loss="absolute",
        solver=GBCFW(step="harmonic", averaging=False, certify_every=ORDERED_PASSES),
        alpha=ORDERED[name][0],
        max_iter=ORDERED_PASSES,
        tol=0.0,
        callbacks=[lambda record: weights.append(record["weights"]())],
    ).fit(X[train], y[train])
    space, examples = structure.make_space(X[train], y[train])
    losses = []
    for w in weights:
        *columns, intercept = space.layout.node_block(w)
        best = (X[test] @ np.array(columns) + intercept).argmax(axis=1)
        losses.append(float(np.abs(structure.classes[best] - y[test]).mean()))
    tests = [losses[-1], min(losses)]
    marks = [2, 9, len(weights) - 1]
    if surrogate.warm_start:
        runs = errors(space, examples, "absolute", surrogate, weights)
        return [*tests, *(runs[k][0] for k in marks)]
    runs = errors(space, examples, "absolute", surrogate, [weights[k] for k in marks])
    return [*tests, *(run[0] for run in runs)]


def ordered(splits: int, jobs: int) -> None:
    """The table of the paper's two sets, with standard errors over splits."""
    from structsolve.surrogates import MaxMin

    settings: list[tuple[str, object, Any]] = [("closed form", None, MaxMin(warm_start=False))]
    for warm, k in product((True, False), ORDERED_ITERATIONS):
        surrogate = MaxMin("entropy", max_iter=k, tol=0.0, warm_start=warm, closed_form=False)
        settings.append(("warm" if warm else "cold", k, surrogate))
    passes = [f"error, pass {p}" for p in (3, 10, ORDERED_PASSES)]
    for name, (alpha, *published) in ORDERED.items():
        tasks = [(name, one[2], split) for one in settings for split in range(splits)]
        told = in_processes(jobs, ordered_run, tasks)
        runs = np.array(told).reshape(len(settings), splits, -1)
        means = runs.mean(axis=1)
        spread = runs.std(axis=1, ddof=1) / np.sqrt(splits)
        rows: list[list[object]] = [
            [name, start, k, *(f"{m:.3f} ± {e:.3f}" for m, e in zip(*pair, strict=True))]
            for (start, k, _), *pair in zip(settings, means, spread, strict=True)
        ]
        print(f"{name}, alpha = {alpha:g}, means over {splits} splits\n")
        print(table(["set", "start", "iterations", "test MAE", "its least", *passes], rows))
        for start, figures in zip(("warm", "cold"), published, strict=True):
            print(f"Published, {start}, test MAE/error: {figures}\n", flush=True)


def drifting_weights(structsolve: Any, words: Words, alpha: float, passes: int) -> list[np.ndarray]:
    """Weights after every pass."""
    from structsolve.solvers import GBCFW
    from structsolve.surrogates import MaxMin

    weights: list[np.ndarray] = []
    model = structsolve.StructuredSVM(
        "chain",
        surrogate=MaxMin(max_iter=20, tol=1e-3),
        solver=GBCFW(averaging=False, certify_every=1),
        alpha=alpha,
        max_iter=passes,
        tol=0.0,
        callbacks=[lambda record: weights.append(record["weights"]())],
    )
    model.fit(words.x_list("packed"), words.y_list())
    return weights


def errors(
    space: Any, examples: Any, loss: str, surrogate: Any, weights: list[np.ndarray]
) -> list[tuple[float, float, float]]:
    """Mean error, mean surrogate (its bound) and CPU seconds a word at every weight vector."""
    from structsolve.potentials import calls as potential_calls
    from structsolve.solvers.problem import Problem
    from structsolve.structure import calls

    problem = Problem(space, examples, loss, surrogate)
    projection, rows = problem.surrogate.projection, []
    for w in weights:
        thetas = [potential_calls.score(problem.potentials, i, w) for i in range(problem.n)]
        open_, whole = 0.0, 0.0
        with Clock() as clock:
            for i, theta in enumerate(thetas):
                _, value, bound = calls.project(projection, i, theta)
                open_ += bound - value
                whole += bound
        correct = sum(score_of_truth(problem, i, theta) for i, theta in enumerate(thetas))
        n = problem.n
        rows.append((open_ / n, (whole - correct) / n, clock.cpu / n))
    return rows


def score_of_truth(problem: Any, i: int, theta: np.ndarray) -> float:
    """Score of the truth of example i."""
    from structsolve.structure import calls

    examples = problem.examples
    label = examples.labels[examples.label_offsets[i] : examples.label_offsets[i + 1]]
    index, value = calls.encode(problem.parts, i, label)
    return float(theta[index] @ value)


def words_table(structsolve: Any, args: argparse.Namespace) -> None:
    """The table of words."""
    from structsolve.surrogates import MaxMin

    words, _ = ocr_split(0, "one")
    if args.words:
        words = words.take(np.arange(min(args.words, words.n_words)))
    weights = drifting_weights(structsolve, words, 1 / (args.C * words.n_words), max(PASSES))
    columns = ["geometry", "start", "iterations"]
    columns += [f"error, pass {p}" for p in PASSES] + [f"share, pass {p}" for p in PASSES]
    columns += [f"us a word, pass {max(PASSES)}"]
    print(f"{words.n_words} words, C = {args.C:g}\n")
    space, examples = structsolve.get_structure("chain").make_space(
        words.x_list("packed"), words.y_list()
    )
    begun = False
    for geometry, iterations, warm in product(args.geometries, args.iterations, (True, False)):
        # A cold start uses nothing from the passes between.
        kept = weights if warm else [weights[p - 1] for p in PASSES]
        surrogate = MaxMin(geometry, max_iter=iterations, tol=0.0, warm_start=warm)
        runs = errors(space, examples, "hamming", surrogate, kept)
        runs = [runs[p - 1] for p in PASSES] if warm else runs
        row = [geometry, "warm" if warm else "cold", iterations]
        row += [f"{run[0]:.4f}" for run in runs]
        row += [f"{100 * run[0] / run[1]:.1f} %" for run in runs]
        row += [f"{1e6 * runs[-1][2]:.0f}"]
        lines = table(columns, [row]).splitlines()
        print("\n".join(lines[2 if begun else 0 :]), flush=True)
        begun = True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--C", type=float, default=1.0, help="alpha = 1 / (C n)")
    parser.add_argument("--iterations", nargs="+", type=int, default=list(ITERATIONS))
    parser.add_argument("--geometries", nargs="+", default=["labels", "euclidean"])
    parser.add_argument("--words", type=int, default=200, help="only so many words")
    parser.add_argument("--splits", type=int, default=14, help="of the sets with ordered classes")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--only", choices=["ordered", "words"])
    args = parser.parse_args()
    header("The max-min oracle: warm and cold starts")
    structsolve = structsolve_or_none()
    if structsolve is None:
        return
    if args.only != "words":
        ordered(args.splits, args.jobs)
    if args.only != "ordered":
        words_table(structsolve, args)


if __name__ == "__main__":
    main()
