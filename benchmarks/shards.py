"""Rounds and seconds of training over shards, to a certified gap of 1 %.

On OCR letters the script counts rounds of consensus ADMM over shards in this process (C = .02 with
4, 16 and 64 shards, C = 1 with 4 and 16, in both metrics) and of one-slack cutting planes.  It also
counts rounds on rows of few features, with a fixed penalty and one that follows the residuals.
Shards are random words, as in a shuffled file.

The second part has at least 1000 sentences a shard: 64,000 generated ones, and CoNLL-2000.  Beside
the rounds stand the seconds that they take where every shard has a core of its own: the slowest
shard of each call, the sums of vectors in a tree, and what one process does between the calls.

The last part uses three local processes with Dask: seconds of fit, seconds of a round, and whether
the weights equal those of one process to the last bit.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from common import Clock, header, structsolve_or_none, table
from datasets import (
    attribute_matrices,
    chunking_attributes,
    conll2000,
    ocr_split,
    tagged_sentences,
)
from environments import enter

# C, shards, limit of rounds
CASES = ((0.02, 4, 10), (0.02, 16, 17), (0.02, 64, None), (1.0, 4, 30), (1.0, 16, None))
TOL = 0.01
# C, sentences and shards of the generated set, and shards of CoNLL-2000
SENTENCES = [(C, 64_000, shards) for C in (0.02, 0.1) for shards in (4, 16, 64)]
SENTENCES += [(0.1, 16_000, 4), (0.1, 16_000, 16), (0.1, 4_000, 4)]
CHUNKS = (2, 4, 8)
CUTS_OF = 16_000


def shuffled() -> tuple[list[Any], list[Any]]:
    """The words of nine folds in random order."""
    words, _ = ocr_split(0, "nine")
    order = np.random.default_rng(0).permutation(len(words.y_list()))
    X, Y = words.x_list("csr", True), words.y_list()
    return [X[i] for i in order], [Y[i] for i in order]


def timed_engine(parts: list[Any]) -> Any:
    """Shards one after the other, and seconds if each had a core: of shards, sums, the rest."""
    from structsolve.dask.engine import LocalEngine
    from structsolve.solvers.shard import GROUP, add, grouped

    class TimedEngine(LocalEngine):
        slowest = tree = total = 0.0

        def ask(self, method: str, *args: Any) -> Any:
            answers, shards, sums = [], [0.0], [0.0]
            for shard in self.shards:
                with Clock() as clock:
                    answers.append(getattr(shard, method)(*args))
                shards.append(clock.cpu)

            def timed_add(some: list[Any]) -> Any:
                with Clock() as clock:
                    answer = add(some)
                sums.append(clock.cpu)
                return answer

            answer = grouped(answers, timed_add)
            levels = np.ceil(np.log(max(self.n_shards, 2)) / np.log(GROUP))
            self.slowest += max(shards)
            self.tree += levels * max(sums)
            self.total += sum(shards) + sum(sums)
            return answer

    return TimedEngine(parts)


def local_run(X: Any, Y: list[Any], C: float, shards: int, solver: Any) -> Any:
    """Train over shards in this process; return the outcome, and CPU seconds of four kinds.

    These are of this process; and if every shard had a core, of the slowest shard in each call,
    of sums in a tree, and between calls.
    """
    from structsolve import Problem, get_structure
    from structsolve.dask.consensus import ShardedConsensusRun
    from structsolve.dask.cuts import ShardedCuttingPlaneRun
    from structsolve.dask.problem import RemoteProblem
    from structsolve.dask.shard import RemoteShard
    from structsolve.solvers.driver import drive
    from structsolve.solvers.run import Start

    space, _ = get_structure("chain").make_space(X, Y)
    parts = []
    for k, picks in enumerate(np.array_split(np.arange(len(X)), shards)):
        some = [X[i] for i in picks] if isinstance(X, list) else X[picks]
        own = space.pack(some, [Y[i] for i in picks])
        parts.append(RemoteShard(Problem(space, own), k, float(len(X)), float(len(picks)), 0))
    engine = timed_engine(parts)
    problem: Any = RemoteProblem(engine, space, engine.ask("facts").each)
    start = Start(problem, 1 / (C * len(X)), np.random.default_rng(0), 1, None, TOL)
    cutting = solver.name == "cutting-plane"
    engine.slowest = engine.tree = engine.total = 0.0
    with Clock() as clock:
        run = (ShardedCuttingPlaneRun if cutting else ShardedConsensusRun)(solver, start)
        outcome = drive(run, 300, TOL)
    return outcome, (clock.cpu, engine.slowest, engine.tree, clock.cpu - engine.total)


def simulated(X: list[Any], Y: list[Any], cuts: bool) -> None:
    from structsolve.dask import ConsensusADMM
    from structsolve.solvers import CuttingPlane

    rows = []

    def add(name: str, solver: Any, C: float, shards: int, asked: int | None = None) -> None:
        outcome, (cpu, *_) = local_run(X, Y, C, shards, solver)
        last = outcome.history[-1]
        rows.append([f"{name}, C={C:g}", shards, len(outcome.history), asked or "-", cpu])
        rows[-1] += [last["primal"], last["gap"] / last["primal"], last.get("metric", "-")]

    for C, shards, asked in CASES:
        add("ADMM", ConsensusADMM(metric="auto"), C, shards, asked)
    for C, shards in ((1.0, 4), (1.0, 16)):
        add("ADMM, the other metric", ConsensusADMM(), C, shards)
    add("ADMM, two passes", ConsensusADMM(metric="auto", passes=2), 1.0, 4)
    if cuts:
        add("one-slack", CuttingPlane(), 0.02, 4)
    columns = ("solver", "shards", "rounds", "target", "CPU s", "primal", "gap", "metric")
    print(table(columns, rows))


def few_features() -> None:
    """Rounds with shards in threads if the penalty of the first rounds is too weak."""
    from structsolve import Problem, get_structure
    from structsolve.solvers import ConsensusADMM
    from structsolve.solvers.driver import drive
    from structsolve.solvers.run import Start

    rng = np.random.default_rng(0)
    spread = np.geomspace(5, 0.2, 8)
    X = rng.normal(size=(400, 8)) * spread
    scores = (X / spread) @ rng.normal(size=(8, 5))
    y = np.argmax(scores + 1.5 * rng.normal(size=scores.shape), axis=1)
    problem = Problem(*get_structure("multiclass").make_space(X, y))
    rows = []
    for shards in (4, 16):
        for metric in ("identity", "spectral"):
            lengths = []
            for penalty in (max(12.0, shards), None):
                solver = ConsensusADMM(shards, penalty, metric=metric)
                start = Start(problem, 1e-3, np.random.default_rng(0), 1, None, TOL)
                lengths.append(len(drive(solver.start(start), 1000, TOL).history))
            rows.append([shards, metric, *lengths])
    print("400 rows of 8 features, 5 classes, alpha = .001: rounds, the penalty fixed or not")
    print(table(("shards", "metric", "fixed", "by residuals"), rows))


def alone(X: Any, Y: list[Any], C: float) -> tuple[int, float, float]:
    """Passes, CPU seconds and the primal of BCFW on one core, without packing."""
    from structsolve import Problem, get_structure
    from structsolve.solvers import BCFW
    from structsolve.solvers.driver import drive
    from structsolve.solvers.run import Start

    problem = Problem(*get_structure("chain").make_space(X, Y))
    start = Start(problem, 1 / (C * len(X)), np.random.default_rng(0), 1, None, TOL)
    with Clock() as clock:
        history = drive(BCFW().start(start), 300, TOL).history
    return len(history), clock.cpu, history[-1]["primal"]


def sentences(cases: list[tuple[str, Any, Any, float, list[int]]], cuts: bool) -> None:
    """Rounds and seconds with many sentences a shard."""
    from structsolve.dask import ConsensusADMM
    from structsolve.solvers import CuttingPlane

    rows = []
    for name, X, Y, C, counts in cases:
        what = [name, C, len(X)]
        passes, one, primal = alone(X, Y, C)
        rows.append([*what, "BCFW", 1, len(X), passes, one, None, None, None, 1.0, primal])
        solvers: list[tuple[str, Any, int]] = [
            ("ADMM", ConsensusADMM(), shards) for shards in counts
        ]
        if cuts and len(X) == CUTS_OF:
            solvers.append(("one-slack", CuttingPlane(), 4))
        for solver, made, shards in solvers:
            outcome, (cpu, *parts) = local_run(X, Y, C, shards, made)
            history = outcome.history
            rows.append([*what, solver, shards, len(X) // shards, len(history), cpu, *parts])
            rows[-1] += [one / sum(parts), history[-1]["primal"]]
    columns = ["set", "C", "sentences", "solver", "shards", "sentences a shard", "rounds", "CPU s"]
    columns += ["slowest shard s", "sums s", "between s", "speed-up", "primal"]
    print("\n" + table(columns, rows))


def many_sentences(fewer: int) -> list[tuple[str, Any, Any, float, list[int]]]:
    """The sets of the second part, with so many times fewer sentences."""
    cases: list[tuple[str, Any, Any, float, list[int]]] = []
    X, Y = tagged_sentences(64_000)
    for C, n in sorted({case[:2] for case in SENTENCES}):
        counts = [shards for *one, shards in SENTENCES if one == [C, n]]
        n //= fewer
        cases.append(("generated", X[:n], Y[:n], C, counts))
    real, tags = conll2000("train")
    n = len(real) // fewer
    attributes = [chunking_attributes(sentence) for sentence in real[:n]]
    X, _, _ = attribute_matrices(attributes, attributes[:1])
    order = np.random.default_rng(0).permutation(n)
    some = [X[i] for i in order], [tags[i] for i in order]
    return [*cases, ("CoNLL-2000", *some, 0.1, list(CHUNKS))]


def with_dask(X: list[Any], Y: list[Any], workers: int, C: float, shards: int) -> None:
    import dask
    import distributed

    from structsolve import StructuredSVM
    from structsolve.dask import DaskStructuredSVM

    warnings.filterwarnings("ignore", message="Sending large graph")
    pieces = np.array_split(np.arange(len(X)), shards)
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None}
    rows, weights = [], []
    begun = time.perf_counter()
    plain = StructuredSVM("chain", alpha=1 / (C * len(X)), tol=TOL).fit(X, Y)
    rows.append(["StructuredSVM", len(plain.history_), time.perf_counter() - begun, "-", "-"])
    for count in (1, workers):
        with (
            distributed.LocalCluster(n_workers=count, memory_limit=0, **options) as cluster,
            distributed.Client(cluster) as client,
        ):
            lazy = [
                dask.delayed(([X[i] for i in own], [Y[i] for i in own]), traverse=False)
                for own in pieces
            ]
            model = DaskStructuredSVM(
                "chain", alpha=1 / (C * len(X)), n_shards=shards, tol=TOL, client=client
            )
            begun = time.perf_counter()
            model.fit(lazy)
            wall = time.perf_counter() - begun
            rounds = [record["seconds"] for record in model.history_]
            weights.append(model.to_local().flat_weights())
            same = "yes" if np.array_equal(weights[0], weights[-1]) else "NO"
            rows.append([f"{count} processes", len(rounds), wall, float(np.median(rounds)), same])
    print(
        f"C = {C:g}, {shards} shards: wall seconds, start of the solver and shards included in fit"
    )
    print(table(("", "rounds", "fit s", "s a round", "same bits"), rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--cuts", action="store_true", help="one-slack cutting planes too")
    parser.add_argument("--only", choices=("rounds", "sentences", "dask"))
    parser.add_argument("--fewer", type=int, default=1, help="divide the sentences by this")
    given = parser.parse_args()
    enter("dask")
    header("Rounds over shards, to a certified gap of 1 %")
    if structsolve_or_none() is None:
        return
    X, Y = shuffled()
    if given.only in (None, "rounds"):
        print("OCR letters:\n")
        simulated(X, Y, given.cuts)
        few_features()
    if given.only in (None, "sentences"):
        sentences(many_sentences(given.fewer), given.cuts)
    if given.only in (None, "dask"):
        for C in (0.02, 1.0):
            with_dask(X, Y, given.workers, C, 4)


if __name__ == "__main__":
    main()
