"""MEMOIR as printed in its paper, Table 2 (batches) and Figure 1 (l1), with steps of two kinds.

    python benchmarks/extreme_memoir.py --sets mid lshtc --parts batches ends l1

"printed": each example of a batch makes a step of eta_t = .1 / (1 + .02 t), alpha = 1 (l2) or 1e-6
(l1).  "divided": the same numbers, with steps divided by the batch, because the objective is a
mean; the shapes of Table 2 and Figure 1 need this.  Table 3 is in ``extreme_inexact.py``.

The number of examples is the paper's, 2.2 passes, so T falls as batches grow.  The paper's largest
batch is .9 of LSHTC1's rows, and T is 3; on mid it is two times all rows, so one step is left.  The
ends of Table 2 are tested: by the paper's T, by class sums, which one step from zero gives, and by
rivals at random.

Prints errors, 1 - macro-F1, CPU seconds of training, MB (6 bytes a weight: float16 and a class
number) and the share of steps within the margin, which is 1 if no example has the required margin.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np
from common import Clock, machine
from extreme import FOLDER, data
from extreme_peers import errors, load, one_hot

from structsolve.plugins.extreme.solvers.base import ExtremeProblem
from structsolve.plugins.extreme.solvers.memoir import Memoir
from structsolve.plugins.extreme.solvers.rivals import make_rivals
from structsolve.plugins.extreme.weights.postings import Postings

KINDS = {
    "printed": {"steps": "printed"},
    "divided": {"steps": "mean", "eta0": 0.1, "eta_step": 0.02},
    "printed without the ball": {"steps": "printed", "ball": False},
}
#: Batches over the root of C.
BATCHES = (1000.0, 100.0, 10.0, 1.0, 0.1)
PAPER_BATCH, PAPER_LARGEST_T = 100.0, 3
#: Figure 1 has 1e-3 to 1e-7.
LAMBDAS = {"divided": (1e-3, 1e-4, 1e-5, 1e-6, 1e-7), "printed": (1e-1, 1e-2, 1e-3, 1e-6)}
RIVALS = "certified:.05"
TEST_ROWS = 5000


class Trials:
    """Runs on one set."""

    def __init__(self, X, y, test, n_classes):
        self.X, self.y, self.test, self.n_classes = X, y, test, n_classes
        self.root = math.sqrt(n_classes)

    def n_iter(self, batch: float) -> int:
        return max(1, round(2.2 * len(self.y) / (batch * self.root)))

    def line(self, name, kind, alpha, *, penalty="l2", rivals=RIVALS, batch=PAPER_BATCH, T=None):
        """Train, and print a row of the table."""
        solver = Memoir(batch=batch, n_iter=T or self.n_iter(batch), **KINDS[kind])
        given = {"penalty": penalty, "rivals": make_rivals(rivals), "max_iter": 100}
        problem = ExtremeProblem(self.X, self.y, self.n_classes, alpha, **given)
        with Clock() as clock:
            result = solver.fit(problem)
        active = np.mean([record["active"] for record in result.history])
        cells = f"{clock.cpu:.1f} | {6e-6 * result.weights.nnz:.2f} | {active:.3f}"
        self.row(f"{penalty} {kind}, {name}", result.weights, cells)

    def row(self, name: str, weights: Postings, cells: str = "- | - | -") -> None:
        X, y = self.test
        told = errors(weights.top(X, 5)[0], y, self.n_classes)
        words = " | ".join(f"{told[key]:.3f}" for key in ("error", "error5", "macro"))
        print(f"| {name} | {words} | {cells} |", flush=True)

    def batches(self) -> None:
        """Table 2."""
        head("Table 2")
        for batch in BATCHES:
            for kind in LAMBDAS:
                label = f"batch {batch:g} sqrt(C), T {self.n_iter(batch)}"
                self.line(label, kind, 1, batch=batch)

    def ends(self) -> None:
        """What the ends of Table 2 come from, and what the ball does to printed steps."""
        head("The ends of Table 2")
        sums = one_hot(self.y, self.n_classes).T.tocsr() @ self.X
        self.row("class sums", Postings.from_matrix(sums.astype(np.float32).T.tocsr()))
        for T in range(self.n_iter(BATCHES[0]) + 1, PAPER_LARGEST_T + 1):
            label = f"batch {BATCHES[0]:g} sqrt(C), T {T}"
            self.line(label, "divided", 1, batch=BATCHES[0], T=T)
        self.line(f"batch {PAPER_BATCH:g} sqrt(C)", "printed without the ball", 1)
        label = f"batch {BATCHES[-1]:g} sqrt(C), rivals at random"
        self.line(label, "divided", 1, rivals="random:1", batch=BATCHES[-1])

    def l1(self) -> None:
        """Figure 1."""
        head("Figure 1")
        for kind, lambdas in LAMBDAS.items():
            for alpha in lambdas:
                self.line(f"lambda {alpha:g}", kind, alpha, penalty="l1")


def head(title: str) -> None:
    print(f"\n{title}\n\n| run | top-1 | top-5 | macro | train s | MB | within the margin |")
    print("|" + " --- |" * 7)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where sets are, or are made")
    parser.add_argument("--sets", nargs="+", default=["mid"])
    parser.add_argument("--parts", nargs="+", default=["batches", "ends", "l1"])
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
        for part in options.parts:
            getattr(trials, part)()


if __name__ == "__main__":
    main()
