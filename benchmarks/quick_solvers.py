"""Solvers without a certificate beside CRFsuite's: perceptron, passive-aggressive steps, AROW.

On generated sentences with rare names, both sides get the same attributes.  Each learner's setting
and number of passes are those of the best span F1 on the last tenth of the training sentences; it
is then trained on all.  CPU seconds are those of ``fit`` and of ``Trainer.train``, without the
conversion of the attributes.  A pass costs the difference of runs of different lengths.  The last
table has our defaults (10 passes), and the margin by "auto" with a certificate, there and on
CoNLL-2000, whose tuned learners are in chunking.py.

    STRUCTSOLVE_DATA=... python benchmarks/quick_solvers.py
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

from common import Clock, header, of_grid, table
from datasets import attribute_matrices, chunked_sentences, rare_names
from peers import Crfsuite

from structsolve import StructuredSVM
from structsolve.plugins.chain.metrics import span_f1
from structsolve.solvers import AROW, PassiveAggressive, Perceptron

PASSES = (5, 10, 20)
# Learner: the values of its constant, ours and theirs.
OURS: dict[str, tuple[Callable[..., Any], list[dict[str, float]]]] = {
    "perceptron": (Perceptron, [{}]),
    "passive-aggressive": (PassiveAggressive, [{"C": c} for c in (0.01, 0.1, 1.0)]),
    "arow": (AROW, [{"r": r} for r in (10.0, 100.0, 1000.0)]),
}
THEIRS = {
    "perceptron": ("ap", [{}]),
    "passive-aggressive": ("pa", [{"c": c} for c in (0.01, 0.1, 1.0)]),
    "arow": ("arow", [{"gamma": g} for g in (10.0, 100.0, 1000.0)]),
}
# Trains with a setting and a number of passes: CPU seconds, and F1 of the other sentences.
Trial = Callable[[dict[str, float], int], tuple[float, float]]


def data(name: str) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """Attributes and tags for training, and those for the test."""
    if name == "rare names":
        return rare_names()
    return chunked_sentences()


class Side:
    """Trials of both libraries on training and test sentences."""

    def __init__(self, train: list[Any], y: list[Any], test: list[Any], y_test: list[Any]) -> None:
        self.X, self.X_test, _ = attribute_matrices(train, test)
        self.y, self.y_test = y, y_test
        self.peer = Crfsuite(train, y)
        self.prepared = self.peer.prepare(test)

    def ours(self, solver: Any, passes: int) -> tuple[float, float]:
        model = StructuredSVM("chain", solver=solver, max_iter=passes)
        with Clock() as clock:
            model.fit(self.X, self.y)
        return clock.cpu, 100 * span_f1(self.y_test, model.predict(self.X_test))["f1"]

    def theirs(self, algorithm: str, setting: dict[str, float], passes: int) -> tuple[float, float]:
        clock = self.peer.train(algorithm, max_iterations=passes, **setting)
        return clock.cpu, 100 * span_f1(self.y_test, self.peer.predict(self.prepared))["f1"]


def learners(side: Side) -> Iterator[tuple[str, str, list[dict[str, float]], Trial]]:
    """Each learner of each library, its settings, and its trial."""
    for name, (solver, settings) in OURS.items():
        yield name, "ours", settings, lambda s, p, solver=solver: side.ours(solver(**s), p)
        algorithm, settings = THEIRS[name]
        yield name, "CRFsuite", settings, lambda s, p, a=algorithm: side.theirs(a, s, p)


def tuned(train: list[Any], y: list[Any], whole: Side) -> Iterator[list[Any]]:
    """Rows of all learners, settings and passes chosen on the last tenth of the sentences."""
    cut = 9 * len(train) // 10
    tuning = Side(train[:cut], y[:cut], train[cut:], y[cut:])
    for (learner, side, settings, trial), (*_, final) in zip(learners(tuning), learners(whole)):
        tried = {
            (passes, k): trial(setting, passes)
            for k, setting in enumerate(settings)
            for passes in PASSES
        }
        passes, k = max(tried, key=lambda key: tried[key][1])
        seconds = tried[PASSES[-1], k][0] - tried[PASSES[0], k][0]
        spent, f1 = final(settings[k], passes)
        told = ", ".join(f"{key}={value:g}" for key, value in settings[k].items())
        row = [learner, side, told or "-", of_grid(passes, PASSES), f"{tried[passes, k][1]:.2f}"]
        yield [*row, seconds / (PASSES[-1] - PASSES[0]), spent, f"{f1:.2f}"]


def main() -> None:
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    header("Solvers without a certificate")
    defaults = []
    for name in ("rare names", "CoNLL-2000"):
        train, y, test, y_test = data(name)
        whole = Side(train, y, test, y_test)
        if name == "rare names":
            print(f"### {name}, {len(train)} sentences\n")
            columns = ["learner", "side", "setting", "passes", "validation F1", "s a pass", "CPU s"]
            print(table([*columns, "test F1"], tuned(train, y, whole)), flush=True)
        for solver in (*OURS, "auto"):
            spent, f1 = whole.ours(solver, 100 if solver == "auto" else 10)
            defaults.append([f"{name}, {len(train)}", solver, spent, f"{f1:.2f}"])
    print("### By default\n")
    print(table(["set, sentences", "learner", "CPU s", "test F1"], defaults))


if __name__ == "__main__":
    main()
