"""A run of one-vs-some: rivals, blocks of classes, the state of a checkpoint."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from structsolve.plugins.extreme.solvers._grouping import pair_lists, scatter
from structsolve.plugins.extreme.solvers._one_vs_some import Machines, Space
from structsolve.plugins.extreme.solvers.base import After, ExtremeProblem, ExtremeResult, resumed
from structsolve.plugins.extreme.solvers.class_means import class_means
from structsolve.plugins.extreme.solvers.rival_checks import ask_rivals, check_rivals
from structsolve.plugins.extreme.solvers.rivals import RivalIndex
from structsolve.plugins.extreme.weights.postings import Postings
from structsolve.solvers.checkpoint import Checkpoint
from structsolve.utils.parallel import over_examples, ranges

if TYPE_CHECKING:
    from structsolve.plugins.extreme.solvers.one_vs_some import OneVsSome

# Non-zeros of rows per unit of work: over_examples hands out 20,000 units at a time.
ENTRIES_PER_UNIT = 16
# Number of blocks of classes; checkpoints may be written between blocks.
BLOCKS = 16
# Entries of the normalised class means up to this size are dropped.
PRUNE = 0.03
# A machine is done when its gradient, in units of scores, is optimal within ACCURACY * tol.
ACCURACY = 30
# Weight of the losses, and length of the class means towards which weights are regularised.
COST, PRIOR = 10.0, 2.0
# Answers of an index of rivals compared with a full scan.
CHECKED = 5
# The smallest cost of an example in float32.
TINY = 1e-38
# Arrays of a piece of trained classes, as returned by `Machines.train`.
PIECE = ("sizes", "features", "weights", "intercepts", "figures")


class Run:
    """State of one training.

    Parameters
    ----------
    solver : OneVsSome
    problem : ExtremeProblem
    """

    solver: OneVsSome

    def __init__(self, solver: Any, problem: ExtremeProblem):
        self.solver, self.problem = solver, problem
        self.begun, self.spent = time.perf_counter(), 0.0
        self.history: list[dict[str, Any]] = []
        self.rivals = np.empty((len(problem.y), 0), np.int32)
        self.entries = 0
        self.mean_epsilon: float | None = 0.0
        self.pieces: list[Any] = []
        self.trained = 0
        self.machines: Any = None
        self.settings: dict[str, Any] = {}
        self.weights = self._first()

    def _first(self) -> Postings:
        """Weights before the machines: class means."""
        problem = self.problem
        loss = "squared-hinge" if problem.surrogate == "auto" else problem.surrogate
        self.settings = {"surrogate": loss, "n_rivals": self.solver.n_rivals}
        self.means = class_means(problem.X, problem.own, problem.n_classes, problem.shares, PRUNE)
        return Postings.from_matrix(self.means.T.tocsr())

    def find(self) -> None:
        """Find the rivals with class means, if a checkpoint has none."""
        if not self.trained:
            self.rivals = self._scan(min(self.solver.n_rivals, self.problem.n_classes - 1))
        self._pair()

    def _scan(self, k: int) -> np.ndarray:
        problem, epsilon = self.problem, self.solver.epsilon
        if problem.rivals is None:
            rivals, scores, bounds, self.entries = self.weights.top(
                problem.X, k, epsilon, exclude=problem.y, n_jobs=problem.n_jobs
            )
        else:
            rivals, scores, bounds = self._ask(problem.rivals, k)
            self.entries = problem.rivals.entries
        # Classes without a feature of the example are not its rivals.
        rivals[scores == 0] = -1
        missed = float(bounds.mean())
        self.mean_epsilon = missed if np.isfinite(missed) else None
        return rivals

    def _ask(self, index: RivalIndex, k: int) -> Any:
        """Query an index for rivals, and compare a few answers with a full scan."""
        X, y, seed = self.problem.X, self.problem.y, self.problem.seed
        index.start(self.weights, seed, self.problem.n_jobs)
        index.batch(0)
        answer = ask_rivals(index, self.weights, X, y, k)
        few = np.random.default_rng([seed, 0]).permutation(len(y))[:CHECKED]
        claims = (answer[0][few], answer[1][few], answer[2][few])
        check_rivals(index, self.weights, X[few], y[few], claims, few)
        return np.array(answer[0]), *answer[1:]

    def _pair(self) -> None:
        """Create the machines for the known rivals."""
        problem, solver = self.problem, self.solver
        shares, C = problem.shares, problem.n_classes
        # Skip examples whose cost underflows float32.
        part = shares / problem.alpha * COST >= TINY
        start, classes = problem.own
        begin, rows, own = pair_lists(start, classes, self.rivals, C, part.view(np.uint8))
        cost = (shares / problem.alpha).astype(np.float32)[rows]
        cost *= np.float32(COST)
        counts = np.bincount(classes, np.repeat(shares, np.diff(start)), C) * len(problem.y)
        later = (solver.means / np.sqrt(1 + 2 * counts)).astype(np.float32)
        self.machines = Machines(
            problem.X,
            own,
            begin,
            rows,
            cost,
            dual=np.zeros(len(rows), np.float32),
            centres=self.means,
            loss=self.settings["surrogate"],
            bias=solver.bias,
            passes=problem.max_iter,
            accuracy=ACCURACY * problem.tol,
            seed=problem.seed,
            prior=PRIOR,
            later=later if solver.means else None,
        )
        self.n_pairs, self.most = len(rows), int(np.diff(begin).max())
        self.work = self.machines.entries()
        self.blocks = ranges(np.concatenate([[0], np.cumsum(self.work)]), BLOCKS)

    def more(self) -> bool:
        """Return whether there are untrained classes.

        Returns
        -------
        bool
        """
        return self.trained < self.problem.n_classes

    def block(self) -> None:
        """Solve the machines of the next block of classes."""
        problem, machines = self.problem, self.machines
        assert machines is not None
        d, largest = problem.X.shape[1], int(self.work.max())
        begin = self.trained
        end = next((last for _, last in self.blocks if last > begin), problem.n_classes)
        room = np.minimum(self.work, d)

        def work(first: int, last: int, space: Space) -> Any:
            first, last = begin + first, begin + last
            share = self.solver.intercept if self.solver.bias > 0 else 0.0
            most = int(room[first:last].sum())
            return machines.train(first, last, space, most, self.solver.keep, share)

        units = np.concatenate([[0], np.cumsum(self.work[begin:end])]) // ENTRIES_PER_UNIT
        self.pieces += over_examples(
            work, units, problem.n_jobs, lambda: Space(d, largest, self.most)
        )
        self.trained = end

    def close(self) -> dict[str, Any]:
        """Store the weights.

        Returns
        -------
        dict
            The record.
        """
        problem = self.problem
        figures = np.vstack([piece[4] for piece in self.pieces]).sum(axis=0)
        solved, dual, visits, primal = figures.tolist()
        intercept = self._intercept()
        self.weights = assembled(self.pieces, problem.X.shape[1], intercept)
        record = {
            "pass": 1,
            "primal": problem.alpha * primal,
            "dual": problem.alpha * dual,
            "gap": problem.alpha * (primal - dual),
            "machines_gap": problem.alpha * (solved - dual),
            "mean_epsilon": self.mean_epsilon,
            "entries": self.entries,
            "seconds": self.spent + time.perf_counter() - self.begun,
            "pairs": self.n_pairs,
            "visits": int(visits),
        }
        self.history.append(record)
        self.trained = 0
        return record

    def _intercept(self) -> np.ndarray | None:
        """Intercepts of the trained classes, if the model has any."""
        if not (self.solver.intercept > 0 and self.solver.bias > 0):
            return None
        trained = np.concatenate([piece[3] for piece in self.pieces])
        return trained * np.float32(self.solver.intercept)

    def partial(self) -> Postings:
        """Return the weights of a model that is interrupted now.

        Returns
        -------
        Postings
            Class means, unless all is trained: their scores are not comparable with those of
            trained machines.
        """
        return self.weights

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the content of a checkpoint.

        Returns
        -------
        meta, arrays : dict
        """
        empty = (np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
        none = (*empty, np.zeros(0, np.float32), np.zeros((0, 4)))
        parts = list(zip(*[none, *self.pieces], strict=True))
        arrays = {name: np.concatenate(part) for name, part in zip(PIECE, parts, strict=True)}
        model, intercept = self.weights, self.weights.intercept
        arrays |= {
            "rivals": self.rivals,
            "indptr": model.indptr,
            "classes": model.classes,
            "values": model.weights,
            "intercept": np.zeros(0, np.float32) if intercept is None else intercept,
        }
        meta = {
            "history": self.history,
            "trained": self.trained,
            "entries": int(self.entries),
            "mean_epsilon": self.mean_epsilon,
            "seconds": self.spent + time.perf_counter() - self.begun,
        }
        return meta, arrays

    def resume(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Resume from the content of a checkpoint.

        Parameters
        ----------
        meta, arrays : dict
        """
        self.history, self.trained = list(meta["history"]), meta["trained"]
        self.entries, self.mean_epsilon = meta["entries"], meta["mean_epsilon"]
        self.spent, self.rivals = float(meta["seconds"]), arrays["rivals"]
        C, bias = self.problem.n_classes, arrays["intercept"]
        if len(arrays["sizes"]) != self.trained or len(self.rivals) != len(self.problem.y):
            raise ValueError("its arrays are not those of its round")
        self.pieces = [tuple(arrays[name] for name in PIECE)] if self.trained else []
        self.weights = Postings(
            arrays["indptr"], arrays["classes"], arrays["values"], C, bias if len(bias) else None
        )


def train(run: Run, after: After, checkpoint: Checkpoint | None) -> ExtremeResult:
    """Train the machines, from a checkpoint if there is one.

    Parameters
    ----------
    run : Run
    after : callable, optional
    checkpoint : Checkpoint, optional
        As for :meth:`ExtremeSolver.fit`.

    Returns
    -------
    ExtremeResult
    """
    resumed(run, checkpoint)
    reason, weights = "max_iter", None
    try:
        if not run.history:
            run.find()
            while run.more():
                run.block()
                if checkpoint is not None and run.more() and checkpoint.due():
                    checkpoint.write(run.state)
            record = run.close()
            if checkpoint is not None:
                checkpoint.write(run.state)
            if after is not None and after(record):
                reason = "callback"
    except KeyboardInterrupt:
        reason, weights = "interrupted", run.partial()
    if checkpoint is not None:
        checkpoint.close()
    last = run.history[-1] if run.history else None
    if reason == "max_iter" and last:
        solved = last["machines_gap"]
        reason = "tol" if solved <= run.problem.tol * (last["dual"] + solved) else reason
    return ExtremeResult(weights or run.weights, run.history, reason, run.settings)


def assembled(pieces: list[Any], n_features: int, intercept: np.ndarray | None) -> Postings:
    """Sort the classes' weights by feature, with 12 bytes per weight.

    Parameters
    ----------
    pieces : list of tuple
        Results of :meth:`Machines.train` in the order of classes.  The list is emptied.
    n_features : int
    intercept : ndarray of float32 of shape (C,), optional

    Returns
    -------
    Postings
    """
    indptr = np.zeros(n_features + 1, dtype=np.int64)
    for _, features, *_ in pieces:
        indptr[1:] += np.bincount(features, minlength=n_features)
    np.cumsum(indptr, out=indptr)
    # Weights first: each piece's weights are freed before the classes are allocated.
    weights, place = np.empty(indptr[-1], np.float32), indptr[:-1].copy()
    lists = []
    while pieces:
        sizes, features, own, *_ = pieces.pop(0)
        scatter(features, own.view(np.int32), place, weights.view(np.int32))
        lists.append((sizes, features))
    classes, place, first = np.empty(indptr[-1], np.int32), indptr[:-1].copy(), 0
    for sizes, features in lists:
        own = np.repeat(np.arange(first, first + len(sizes), dtype=np.int32), sizes)
        scatter(features, own, place, classes)
        first += len(sizes)
    return Postings(indptr, classes, weights, first, intercept)
