"""Share of zeros at which sparse rows become faster than dense rows, by the number of labels.

Each step computes the scores of all labels and changes the weights of two, on rows of 200 features.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
from common import header, median_time, table

SHARES = (0.25, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def seconds(problem: object, w: np.ndarray) -> float:
    from structsolve.solvers.passes import subgradient

    return min(median_time(lambda: subgradient(problem, w), 3)[0] for _ in range(3))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", nargs="*", type=int, default=[4, 16, 64, 256, 1024])
    options = parser.parse_args()
    header("Dense rows with zeros")
    import scipy.sparse as sp

    import structsolve
    from structsolve.examples.packed import Examples
    from structsolve.solvers import problem as packing

    packing.sparsify = lambda X: X  # dense rows stay dense

    rng, rows = np.random.default_rng(0), []
    for K in options.labels:
        n = max(200_000 // (K + 50), 3 * K)
        row: list[object] = [K]
        for share in SHARES:
            X = rng.normal(size=(n, 200)) * (rng.random((n, 200)) < share)
            y = np.arange(n) % K  # n is several times K
            times = []
            space, examples = structsolve.get_structure("multiclass").make_space(X, y)
            for made in (X, sp.csr_matrix(X)):
                forced = Examples(examples.offsets, made, examples.labels)
                problem = structsolve.Problem(space, forced)
                times.append(seconds(problem, rng.normal(size=problem.dim)))
            row.append(times[0] / times[1])
        rows.append(row)
    print("Dense seconds over sparse ones, by the share of non-zeros.\n")
    print(table(["labels", *map(str, SHARES)], rows))


if __name__ == "__main__":
    main()
