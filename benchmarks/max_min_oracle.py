"""Error of the max-min oracle by its iterations, with and without warm starts.

The script repeats Table 2 of Nowak-Vila et al.  (2020) on one fold of OCR letters.  Weights are
those of GBCFW with an accurate oracle, after every pass.  Each setting calls the oracle for every
word at the weights of successive passes, as in training.  The error is the certificate's gap, bound
minus value, as a mean over the words after some of the passes.  The table also has its share of the
surrogate's bound and the oracle's CPU time in microseconds per word.  While weights move far
between passes, a warm start is no better than a cold one; after many passes it is.  The paper's two
sets have ordered classes, for which our oracle is a closed form without iterations.

    STRUCTSOLVE_DATA=... python benchmarks/max_min_oracle.py
"""

from __future__ import annotations

import argparse
from itertools import product
from typing import Any

import numpy as np
from common import Clock, header, structsolve_or_none, table
from datasets import Words, ocr_split

ITERATIONS = (1, 2, 5, 10, 20, 50)
PASSES = (1, 3, 10, 60)


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
    structsolve: Any,
    words: Words,
    weights: list[np.ndarray],
    geometry: str,
    iterations: int,
    warm: bool,
) -> list[tuple[float, float, float]]:
    """Mean error, mean surrogate (its bound) and CPU seconds a word at every weight vector."""
    from structsolve.potentials import calls as potential_calls
    from structsolve.solvers.problem import Problem
    from structsolve.structure import calls
    from structsolve.surrogates import MaxMin

    x, y = words.x_list("packed"), words.y_list()
    space, examples = structsolve.get_structure("chain").make_space(x, y)
    surrogate = MaxMin(geometry, max_iter=iterations, tol=0.0, warm_start=warm)
    problem = Problem(space, examples, "hamming", surrogate)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--C", type=float, default=1.0, help="alpha = 1 / (C n)")
    parser.add_argument("--iterations", nargs="+", type=int, default=list(ITERATIONS))
    parser.add_argument("--geometries", nargs="+", default=["labels", "euclidean"])
    parser.add_argument("--words", type=int, default=200, help="only so many words")
    args = parser.parse_args()
    header("The max-min oracle on OCR letters: warm and cold starts")
    structsolve = structsolve_or_none()
    if structsolve is None:
        return
    words, _ = ocr_split(0, "one")
    if args.words:
        words = words.take(np.arange(min(args.words, words.n_words)))
    weights = drifting_weights(structsolve, words, 1 / (args.C * words.n_words), max(PASSES))
    columns = ["geometry", "start", "iterations"]
    columns += [f"error, pass {p}" for p in PASSES] + [f"share, pass {p}" for p in PASSES]
    columns += [f"us a word, pass {max(PASSES)}"]
    print(f"{words.n_words} words, C = {args.C:g}\n")
    begun = False
    for geometry, iterations, warm in product(args.geometries, args.iterations, (True, False)):
        # A cold start uses nothing from the passes between.
        kept = weights if warm else [weights[p - 1] for p in PASSES]
        runs = errors(structsolve, words, kept, geometry, iterations, warm)
        runs = [runs[p - 1] for p in PASSES] if warm else runs
        row = [geometry, "warm" if warm else "cold", iterations]
        row += [f"{run[0]:.4f}" for run in runs]
        row += [f"{100 * run[0] / run[1]:.1f} %" for run in runs]
        row += [f"{1e6 * runs[-1][2]:.0f}"]
        lines = table(columns, [row]).splitlines()
        print("\n".join(lines[2 if begun else 0 :]), flush=True)
        begun = True


if __name__ == "__main__":
    main()
