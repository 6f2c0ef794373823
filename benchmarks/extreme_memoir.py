"""MEMOIR as printed in its paper, Tables 2 (batches) and 3 and Figure 1 (l1), and mended.

    python benchmarks/extreme_memoir.py --sets mid lshtc --parts table3 batches l1

There are three kinds of steps.  "printed": each example of a batch makes a step of eta_t =
.1 / (1 + .02 t), alpha = 1 (l2) or 1e-6 (l1).  "divided": the same numbers, with steps divided by
the batch, because the objective is a mean; the shapes of Table 2 and Figure 1 need this.  "mended":
divided, with batch and first step chosen on a tenth of the training rows.

Prints errors, 1 - macro-F1, CPU seconds of training, MB (6 bytes a weight: float16 and a class
number) and the share of steps within the margin, which is 1 if no example has the required margin.
"""

from __future__ import annotations

import argparse
import itertools
import math
from pathlib import Path

import numpy as np
from common import Clock, machine
from extreme import FOLDER, data
from extreme_peers import errors, load

from structsolve.plugins.extreme.solvers.base import ExtremeProblem
from structsolve.plugins.extreme.solvers.memoir import Memoir
from structsolve.plugins.extreme.solvers.rivals import make_rivals

PRINTED = {"steps": "printed"}
DIVIDED = {"steps": "mean", "eta0": 0.1, "eta_step": 0.02}
#: Batches over the root of C; T falls as they grow, so the number of examples stays the paper's.
BATCHES = (1000.0, 100.0, 10.0, 1.0, 0.1)
PAPER_BATCH = 100.0
#: Figure 1 has 1e-3 to 1e-7.
LAMBDAS = {"divided": (1e-3, 1e-4, 1e-5, 1e-6, 1e-7), "printed": (1e-1, 1e-2, 1e-3, 1e-6)}
#: For mended steps: batches over the root of C, first steps over the batch.
SEARCH = ((100.0, 10.0), (0.1, 0.3, 1.0, 3.0))
MENDED_ALPHA = 1e-5
RIVALS = ("certified:.05", "lsh:64", "random:1")
TEST_ROWS = 5000


class Trials:
    """Runs on one set, each with as many examples as in the paper: 2.2 passes."""

    def __init__(self, X, y, test, n_classes):
        self.X, self.y, self.test, self.n_classes = X, y, test, n_classes
        self.root = math.sqrt(n_classes)

    def n_iter(self, batch: float) -> int:
        return max(1, round(2.2 * len(self.y) / (batch * self.root)))

    def line(self, name, steps, alpha, penalty="l2", rivals=RIVALS[0], batch=PAPER_BATCH):
        solver = Memoir(batch=batch, n_iter=self.n_iter(batch), **steps)
        made = make_rivals(rivals)
        given = {"penalty": penalty, "rivals": made, "max_iter": 100}
        problem = ExtremeProblem(self.X, self.y, self.n_classes, alpha, **given)
        with Clock() as clock:
            result = solver.fit(problem)
        X, y = self.test
        told = errors(result.weights.top(X, 5)[0], y, self.n_classes)
        active = np.mean([record["active"] for record in result.history])
        print(
            f"| {name} | {told['error']:.3f} | {told['error5']:.3f} | {told['macro']:.3f} | "
            f"{clock.cpu:.1f} | {6e-6 * result.weights.nnz:.2f} | {active:.3f} |",
            flush=True,
        )
        return told["error"]


def head(title: str) -> None:
    print(f"\n{title}\n\n| run | top-1 | top-5 | macro | train s | MB | within the margin |")
    print("|" + " --- |" * 7)


def held_out(trials: Trials) -> tuple[float, float]:
    """Batch and first step, both as in `SEARCH`, of least error on a tenth of the rows."""
    held = np.random.default_rng(0).random(len(trials.y)) < 0.1
    X, y = trials.X, trials.y
    inner = Trials(X[~held], y[~held], (X[held], y[held]), trials.n_classes)
    head("Mended steps on held-out training rows")
    misses = {}
    for batch, first in itertools.product(*SEARCH):
        name = f"batch {batch:g} sqrt(C), eta0 {first:g} times it"
        steps = mended(inner, batch, first)
        misses[batch, first] = inner.line(name, steps, MENDED_ALPHA, batch=batch)
    return min(misses, key=misses.__getitem__)


def mended(trials: Trials, batch: float, first: float) -> dict[str, object]:
    # eta falls with the number of examples as with the paper's batch.
    step = 0.02 * batch / PAPER_BATCH
    return {"steps": "mean", "eta0": first * batch * trials.root, "eta_step": step}


def table3(trials: Trials, graph: bool) -> None:
    batch, first = held_out(trials)
    head("Table 3")
    trials.line("l2 printed, certified:.05, without the ball", PRINTED | {"ball": False}, 1)
    for name, steps in (("printed", PRINTED), ("divided", DIVIDED)):
        for rivals in RIVALS:
            trials.line(f"l2 {name}, {rivals}", steps, 1, rivals=rivals)
        trials.line(f"l1 {name}, {RIVALS[0]}", steps, 1e-6, "l1")
    if graph:
        trials.line("l2 divided, graph", DIVIDED, 1, rivals="graph")
    for rivals in RIVALS:
        name = f"l2 mended, {rivals}, batch {batch:g} sqrt(C), eta0 {first:g} times it"
        steps = mended(trials, batch, first)
        trials.line(name, steps, MENDED_ALPHA, rivals=rivals, batch=batch)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where sets are, or are made")
    parser.add_argument("--sets", nargs="+", default=["mid", "lshtc"])
    parser.add_argument("--parts", nargs="+", default=["batches", "l1", "table3"])
    parser.add_argument("--graph", nargs="*", default=["mid"], help="sets with nmslib's graph too")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    print("## MEMOIR's own tables\n")
    print(machine())
    for name in options.sets:
        X, y, X_test, y_test = load(str(data(options.folder, name)))
        y, n_classes = y.astype(np.int32), int(max(y.max(), y_test.max())) + 1
        trials = Trials(X, y, (X_test[:TEST_ROWS], y_test[:TEST_ROWS]), n_classes)
        T = trials.n_iter(PAPER_BATCH)
        print(f"\n### {name}\n\n{n_classes} classes, {len(y)} rows; T = {T} at |b| = 100 sqrt(C)")
        if "batches" in options.parts:
            head("Table 2")
            for batch in BATCHES:
                for kind, steps in (("printed", PRINTED), ("divided", DIVIDED)):
                    count = trials.n_iter(batch)
                    label = f"l2 {kind}, batch {batch:g} sqrt(C), T {count}"
                    trials.line(label, steps, 1, batch=batch)
        if "l1" in options.parts:
            head("Figure 1")
            for kind, steps in (("divided", DIVIDED), ("printed", PRINTED)):
                for alpha in LAMBDAS[kind]:
                    trials.line(f"l1 {kind}, lambda {alpha:g}", steps, alpha, "l1")
        if "table3" in options.parts:
            table3(trials, name in options.graph)


if __name__ == "__main__":
    main()
