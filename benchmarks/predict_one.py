"""CPU time of predicting one small example, against LinearSVC.predict on one row.

What a call costs besides its work: a chain, a tree and a graph of 8 nodes with 5 states and 20
features, and one row of 20 features, decoded by fitted models; one such row through scikit-learn's
LinearSVC, in turns in one process.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from common import header, table


def spent(call: Callable[[], object], repeat: int) -> float:
    """CPU seconds a call, the mean of ``repeat``."""
    begun = time.process_time()
    for _ in range(repeat):
        call()
    return (time.process_time() - begun) / repeat


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15, help="medians are taken over these")
    parser.add_argument("--repeat", type=int, default=200, help="calls in a round")
    args = parser.parse_args()
    from sklearn.svm import LinearSVC

    from structsolve import StructuredSVM

    rng = np.random.default_rng(0)
    X = [rng.normal(size=(8, 20)) for _ in range(50)]
    Y = [rng.integers(0, 5, 8) for _ in X]
    trees = [(x, [-1, 0, 0, 1, 1, 2, 2, 3]) for x in X]
    graphs = [(x, [[0, 1], [1, 2], [2, 3], [3, 0], [4, 5], [6, 7]]) for x in X]
    rows, classes = np.vstack(X), np.concatenate(Y)
    ours = {
        "chain of 8": ("chain", X, Y),
        "tree of 8": ("tree", trees, Y),
        "graph of 8": ("mrf", graphs, Y),
        "one row": ("multiclass", rows, classes),
    }
    theirs, row = LinearSVC().fit(rows, classes), rows[:1]
    lines = []
    for name, (structure, inputs, labels) in ours.items():
        model, one = StructuredSVM(structure, tol=0.1).fit(inputs, labels), inputs[:1]
        rounds = [
            (
                spent(partial(model.predict, one), args.repeat),
                spent(partial(theirs.predict, row), args.repeat),
            )
            for _ in range(args.rounds)
        ]
        mine, peer = 1e6 * np.median(rounds, axis=0)
        ratio = np.median([a / b for a, b in rounds])
        lines.append([name, f"{mine:.1f}", f"{peer:.1f}", f"{ratio:.2f}"])
    header("Predicting one example, µs of CPU")
    print(table(["example", "structsolve", "LinearSVC", "ours / theirs"], lines))


if __name__ == "__main__":
    main()
