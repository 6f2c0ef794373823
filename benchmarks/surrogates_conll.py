"""Bi-criteria surrogates on CoNLL-2000 chunking: oracle calls per search, cost of a pass, span F1.

Margin rescaling against slack rescaling, beta scaling, ProbLoss and the micro-F1 surrogate, all
with SGD (which trains every one of them) and the affine ones with BCFW too.  The features are those
of `chunking.py`.  The CPU time of a pass is the median over the passes from the second to the last
but one; all runs are made in turn, `--repeat` times, and the best median counts.

    STRUCTSOLVE_DATA=... python benchmarks/surrogates_conll.py --repeat 2
"""

from __future__ import annotations

import argparse
from time import process_time
from typing import Any

import numpy as np
from common import header, structsolve_or_none, table
from datasets import chunk_matrices
from ours import over_hull

# name -> (surrogate, solver, C, passes)
RUNS = {
    "margin": ("margin", "sgd", 0.1, 10),
    "probloss": ("probloss", "sgd", 0.1, 10),
    "micro-f1": ("micro-f1:O", "sgd", 30.0, 10),
    "slack": ("slack", "sgd", 0.1, 10),
    "beta 1/2": ("beta:0.5", "sgd", 0.1, 10),
    "margin, bcfw": ("margin", "bcfw", 0.1, 10),
    "micro-f1, bcfw": ("micro-f1:O", "bcfw", 30.0, 10),
    "slack, bcfw": ("slack", "bcfw", 0.1, 10),
}


def make_solver(name: str, passes: int) -> Any:
    """Solvers whose passes can be compared: without certificates between them, or cheap passes."""
    from structsolve.solvers import BCFW, SGD

    if name == "sgd":
        return SGD(certify_every=passes)
    return BCFW(cached_passes=0, certify_every=passes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--runs", nargs="+", choices=list(RUNS), default=list(RUNS))
    args = parser.parse_args()
    structsolve = structsolve_or_none()
    from structsolve.plugins.chain.metrics import span_f1

    header("Surrogates on CoNLL-2000")
    X, y, X_test, y_test = chunk_matrices()
    runs: dict[str, dict[str, float]] = {}
    for _ in range(args.repeat):
        for name in args.runs:
            surrogate, solver, c, passes = RUNS[name]
            clock: list[float] = []
            model = structsolve.StructuredSVM(
                "chain",
                surrogate=over_hull(surrogate),
                solver=make_solver(solver, passes),
                alpha=1.0 / (c * len(X)),
                max_iter=passes,
                tol=0,
                callbacks=[lambda record, clock=clock: clock.append(process_time())],
            ).fit(X, y)
            history = model.history_[:-1]
            seconds = float(np.median(np.diff(clock[:-1])))
            calls = [record.get("calls_per_search", 1.0) for record in history]
            best = runs.setdefault(
                name,
                {
                    "seconds": np.inf,
                    "first": calls[0],
                    "calls": float(np.mean(calls)),
                    "warm": float(np.mean(calls[1:])),
                    "f1": span_f1(y_test, model.predict(X_test))["f1"],
                },
            )
            best["seconds"] = min(best["seconds"], seconds)
    rows = []
    for name, best in runs.items():
        peer = runs.get("margin, bcfw" if "bcfw" in name else "margin", best)
        rows.append(
            [
                name,
                f"C={RUNS[name][2]:g}",
                f"{best['first']:.2f}",
                f"{best['warm']:.2f}",
                f"{best['calls']:.2f}",
                f"{best['seconds']:.3f}",
                f"{best['seconds'] / peer['seconds']:.2f}",
                f"{100 * best['f1']:.2f}",
            ]
        )
    columns = [
        "surrogate",
        "",
        "calls, first pass (cold)",
        "calls, later ones (warm)",
        "calls, all",
        "s a pass",
        "x margin",
        "span F1",
    ]
    print(table(columns, rows))


if __name__ == "__main__":
    main()
