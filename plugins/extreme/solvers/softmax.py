"""Softmax regression over very many classes by sampled stochastic gradients."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from structsolve.plugins.extreme.solvers._softmax import SoftmaxWeights
from structsolve.plugins.extreme.solvers.base import (
    After,
    ExtremeProblem,
    ExtremeResult,
    ExtremeSolver,
    refuse_overflow,
    take_passes,
)
from structsolve.plugins.extreme.weights.postings import Postings
from structsolve.solvers.checkpoint import Checkpoint
from structsolve.utils.memory import refuse_too_large
from structsolve.utils.parallel import effective_jobs
from structsolve.utils.params import check_types, parameters

# Rows per native call; interrupts take effect between calls.
ROWS_PER_CALL = 4096
# Bytes of a weight in a list, including free places.
TABLE_BYTES = 12
# Rows for the final objective, and the number of scores computed at a time.
PRIMAL_ROWS, SCORES = 1000, 2**18


@parameters
class SampledSoftmax(ExtremeSolver):
    """Multinomial logistic regression (the surrogate "crf") by stochastic gradients.

    The model is linear over all classes, with an intercept fixed at the logarithm of the class
    frequencies.  The gradient of a row covers the ``head`` most frequent classes, the row's own
    class, and one random block of the others, weighted by the number of blocks; up to 256 rows in
    turn share a block, so that it comes 16 times a pass at least.  Features in at least
    ``dense_from`` rows keep a weight for every class.  Rarer features keep a list of the classes
    with non-zero rounded gradients: entries below ``rounding`` are rounded to it or to zero, with
    the same mean.

    The solver computes no bound of the optimum: records have no dual and no gap.  ``primal`` and
    ``sampled_loss`` are the mean of the pass's sampled losses.  In the last record, ``primal`` is
    the objective of the returned weights over all classes, on ``primal_rows`` rows (at most 1000).
    Few passes from zero weights regularise; ``alpha`` shrinks the weights as in
    ``alpha / 2 ||W||^2``.

    Parameters
    ----------
    passes : int or None, default=5
        Passes over the examples, at most the problem's ``max_iter``; None for ``max_iter``.
    rate, last_rate : float, default=4, 0.1
        First and final step size, with a linear decrease, for rows of length one.
    head : int, default=128
    block : int, default=256
    whole : int, default=1024
        Up to this number of classes, the head holds all classes.
    dense_from : int, default=60
    rounding : float, default=0.5
        0 keeps exact gradients, which is slower and takes much more memory.
    batch : int, default=16
        Rows whose gradients are computed at the same weights, so that threads can share them.
    keep : float, default=0.3
        Weights of at most this size are dropped from the model.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from structsolve.plugins.extreme.solvers.base import ExtremeProblem
    >>> from structsolve.plugins.extreme.solvers.softmax import SampledSoftmax
    >>> X = sparse.csr_matrix(np.eye(3, dtype=np.float32))
    >>> problem = ExtremeProblem(X, np.arange(3, dtype=np.int32), 3, 1e-6, "crf")
    >>> SampledSoftmax().fit(problem).weights.top(X, 1)[0].ravel()
    array([0, 1, 2], dtype=int32)
    """

    name = "softmax"
    unit_rows = True

    passes: int | None = 5
    _: KW_ONLY
    rate: float = 4.0
    last_rate: float = 0.1
    head: int = 128
    block: int = 256
    whole: int = 1024
    dense_from: int = 60
    rounding: float = 0.5
    batch: int = 16
    keep: float = 0.3

    def check(self, problem: ExtremeProblem) -> None:
        """Check the arguments and the problem.

        Parameters
        ----------
        problem : ExtremeProblem

        Raises
        ------
        ValueError
            If an argument or the problem is not supported.
        """
        check_types(self, "SampledSoftmax: ")
        least = {"head": 1, "block": 1, "whole": 1, "dense_from": 1, "batch": 1, "keep": 0}
        for name, low in {**least, "rounding": 0, "rate": 0, "last_rate": 0}.items():
            if not low <= getattr(self, name) < np.inf:
                raise ValueError(f"{name} is {getattr(self, name)!r}, expected at least {low}")
        if self.passes is not None and self.passes < 1:
            raise ValueError(f"passes is {self.passes!r}, expected at least 1, or None")
        if problem.surrogate != "crf":
            raise ValueError(
                f"surrogate is {problem.surrogate!r}, expected 'crf' for the solver 'softmax'"
            )
        if problem.penalty != "l2":
            raise ValueError(f"penalty is {problem.penalty!r}, expected 'l2' for 'softmax'")
        if not 0 <= problem.alpha < np.inf:
            raise ValueError(f"alpha is {problem.alpha!r}, expected a number of at least 0")

    def layout(self, n_classes: int) -> tuple[int, int, int]:
        """Return the sizes of the head and of a block, and the number of blocks.

        Parameters
        ----------
        n_classes : int

        Returns
        -------
        head, block, blocks : int
        """
        head = n_classes if self.whole >= n_classes else min(self.head, n_classes)
        tail = n_classes - head
        block = min(self.block, tail)
        return head, block, -(-tail // block) if tail else 0

    def refuse_large(self, problem: ExtremeProblem) -> None:
        """Raise an error if training would take more memory than allowed.

        Parameters
        ----------
        problem : ExtremeProblem

        Raises
        ------
        ValueError
            With the estimate and advice.
        """
        rows = np.bincount(problem.X.indices, minlength=problem.X.shape[1])
        dense = rows >= self.dense_from
        head, block, blocks = self.layout(problem.n_classes)
        classes, most = head + blocks * block, problem.max_iter
        passes = most if self.passes is None else min(self.passes, most)
        reached = 2 + 1 / self.rounding if self.rounding else head + block
        table = TABLE_BYTES * min(reached * passes, classes) * int(rows[~dense].sum())
        size = 4.0 * int(dense.sum()) * classes + table
        advice = "raise dense_from, leave out rare features, or use solver='one-vs-some'"
        refuse_too_large(size, "weights of softmax regression", advice, problem.max_memory)

    def fit(
        self, problem: ExtremeProblem, after: After = None, checkpoint: Checkpoint | None = None
    ) -> ExtremeResult:
        """Train.

        Parameters
        ----------
        problem : ExtremeProblem
            With the surrogate "crf" and the penalty "l2".
        after : callable, optional
            Called with each record; True ends the training.
        checkpoint : Checkpoint, optional

        Returns
        -------
        ExtremeResult
            The records have no dual and no gap.
        """
        self.check(problem)
        self.refuse_large(problem)
        run = Run(self, problem)
        reason = take_passes(run, after, checkpoint)
        weights = run.postings()
        try:
            run.close(weights)
        except KeyboardInterrupt:  # a second one: the record stays an estimate
            reason = "interrupted"
        return ExtremeResult(weights, run.history, reason, {"head": run.head})


def _start_threads(pool: ThreadPoolExecutor, jobs: int) -> None:
    """Start all threads of a pool, which synchronise in every batch.

    Raises RuntimeError if a thread cannot start.
    """
    gate = threading.Barrier(jobs)
    try:
        for waiting in [pool.submit(gate.wait) for _ in range(jobs)]:
            waiting.result()
    except RuntimeError:
        gate.abort()
        raise


class Run:
    """State of one training.

    Parameters
    ----------
    solver : SampledSoftmax
    problem : ExtremeProblem
    """

    def __init__(self, solver: SampledSoftmax, problem: ExtremeProblem):
        self.solver, self.problem = solver, problem
        self.begun, self.spent = time.perf_counter(), 0.0
        self.history: list[dict[str, Any]] = []
        most = problem.max_iter
        self.passes = most if solver.passes is None else min(solver.passes, most)
        X, y = problem.X, problem.y
        shares = problem.shares
        self.share_of_class = np.bincount(y, weights=shares, minlength=problem.n_classes)
        self._number(self.share_of_class)
        dense = np.bincount(X.indices, minlength=X.shape[1]) >= solver.dense_from
        n = len(y)
        known = self.class_of >= 0
        self.intercept = np.full(len(self.class_of), -np.inf, np.float32)
        # Add half an example per class, so that classes without examples can be predicted.
        own = self.share_of_class[self.class_of[known]]
        self.intercept[known] = np.log((own * n + 0.5) / n)
        self.weights = SoftmaxWeights(
            (X.indptr, X.indices, X.data),
            self.number_of[y],
            (shares * n).astype(np.float32),
            self.intercept,
            head=self.head,
            block=self.block,
            dense=dense,
            batch=solver.batch,
            rounding=solver.rounding,
            seed=problem.seed,
        )
        if problem.start is not None:
            start = problem.start
            classes = self.number_of[start.classes]
            self.weights.load(start.indptr, classes, start.weights.astype(np.float32))

    def _number(self, share: np.ndarray) -> None:
        """Number classes by frequency; classes after the head are spread over the blocks."""
        C = len(share)
        order = np.argsort(-share, kind="stable")
        self.head, self.block, blocks = self.solver.layout(C)
        tail = C - self.head
        self.number_of = np.empty(C, np.int32)
        self.number_of[order[: self.head]] = np.arange(self.head)
        place = np.arange(tail)
        if tail:
            self.number_of[order[self.head :]] = (
                self.head + (place % blocks) * self.block + place // blocks
            )
        self.class_of = np.full(self.head + blocks * self.block, -1, np.int32)
        self.class_of[self.number_of] = np.arange(C)

    def more(self) -> bool:
        """Return whether passes are left.

        Returns
        -------
        bool
        """
        return len(self.history) < self.passes

    def reason(self) -> str:
        """Return why passes end: there is no bound to meet.

        Returns
        -------
        str
        """
        return "max_iter"

    def step(self) -> dict[str, Any]:
        """Make one pass.

        Returns
        -------
        dict
            Its record.
        """
        problem, done = self.problem, len(self.history)
        n, jobs = len(problem.y), effective_jobs(problem.n_jobs)
        rng = np.random.default_rng([problem.seed, done])
        order = rng.permutation(n)
        solver = self.solver
        fall = (solver.last_rate - solver.rate) / self.passes
        rates = solver.rate + fall * done, solver.rate + fall * (done + 1)
        losses, read = np.zeros(n), 0
        with ThreadPoolExecutor(jobs) as pool:
            _start_threads(pool, jobs)
            for first in range(0, n, ROWS_PER_CALL):
                last = min(first + ROWS_PER_CALL, n)
                given = {"pass_": done, "rates": rates, "alpha": problem.alpha, "losses": losses}
                steps = partial(self.weights.steps, order, first, last, **given)
                self.weights.begin()
                if jobs == 1:
                    read += steps(thread=0, threads=1)
                else:
                    tasks = [pool.submit(steps, thread=k, threads=jobs) for k in range(jobs)]
                    read += sum(task.result() for task in tasks)
        refuse_overflow(done, losses.sum())
        record = {
            "pass": done + 1,
            "primal": float(losses.sum() / n),
            "sampled_loss": float(losses.sum() / n),
            "dual": None,
            "gap": None,
            "mean_epsilon": None,
            "entries": read,
            "seconds": self.spent + time.perf_counter() - self.begun,
        }
        self.history.append(record)
        return record

    def close(self, weights: Postings) -> None:
        """Set the primal of the last record to the objective of the returned weights.

        Parameters
        ----------
        weights : Postings
        """
        if not self.history:
            return
        problem, lists = self.problem, (weights.weights, weights.classes, weights.indptr)
        matrix = sparse.csr_matrix(lists, shape=(weights.n_features, weights.n_classes))
        order = np.random.default_rng([problem.seed, 0, 2]).permutation(len(problem.y))
        rows, losses = np.sort(order[:PRIMAL_ROWS]), []
        for some in np.array_split(
            rows, min(-(-len(rows) * problem.n_classes // SCORES), len(rows))
        ):
            X = problem.X[some]  # with indices of 32 bits, lest those of the weights be copied
            X = sparse.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape)
            scores = (X @ matrix).toarray() + weights.intercept
            scores -= scores.max(axis=1, keepdims=True)
            own = scores[np.arange(len(some)), problem.y[some]]
            losses.append(np.log(np.exp(scores).sum(axis=1, dtype=np.float64)) - own)
        shares = problem.shares[rows]
        mean = np.concatenate(losses) @ shares / max(shares.sum(), np.finfo(float).tiny)
        size = np.einsum("i,i", weights.weights, weights.weights, dtype=np.float64)
        record = self.history[-1]
        record["primal"] = float(mean + problem.alpha / 2 * size)
        record["primal_rows"] = len(rows)

    def postings(self) -> Postings:
        """Return the kept weights.

        Returns
        -------
        Postings
            With the problem's class numbers.
        """
        starts, classes, values = self.weights.entries(self.solver.keep, self.number_of)
        shape = self.problem.X.shape[1], self.problem.n_classes
        matrix = sparse.csr_matrix((values, classes, starts), shape=shape)
        matrix.sort_indices()
        return Postings.from_matrix(matrix, self.intercept[self.number_of])

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the content of a checkpoint.

        Returns
        -------
        meta, arrays : dict
        """
        starts, numbers, values = self.weights.entries(-1.0, scaled=False)
        seconds = self.spent + time.perf_counter() - self.begun
        arrays = {"starts": starts, "numbers": numbers, "values": values}
        meta = {"history": self.history, "seconds": seconds, "scale": self.weights.scale}
        return meta, arrays

    def resume(self, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Resume from the content of a checkpoint.

        Parameters
        ----------
        meta, arrays : dict
            Result of :meth:`state`.

        Raises
        ------
        ValueError
            If the checkpoint belongs to another problem.
        """
        self.history, self.spent = list(meta["history"]), float(meta["seconds"])
        self.weights.load(arrays["starts"], arrays["numbers"], arrays["values"], meta["scale"])
