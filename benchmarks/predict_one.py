"""CPU time of predicting one short sequence, against LinearSVC.predict on one row.

What a call costs besides its work: a chain of 8 nodes with 5 states and 20 features, decoded by a
fitted model, and one row of 20 features through scikit-learn's LinearSVC, in turns in one process.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

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
    ours = StructuredSVM("chain", tol=0.1).fit(X, Y)
    theirs = LinearSVC().fit(np.vstack(X), np.concatenate(Y))
    one, row = [X[0]], X[0][:1]
    rounds = [
        (
            spent(lambda: ours.predict(one), args.repeat),
            spent(lambda: theirs.predict(row), args.repeat),
        )
        for _ in range(args.rounds)
    ]
    mine, peer = np.median(rounds, axis=0)
    ratio = np.median([a / b for a, b in rounds])
    header("Predicting one sequence, µs of CPU")
    print(
        table(
            ["structsolve", "LinearSVC", "ours / theirs"],
            [[f"{1e6 * mine:.1f}", f"{1e6 * peer:.1f}", f"{ratio:.2f}"]],
        )
    )


if __name__ == "__main__":
    main()
