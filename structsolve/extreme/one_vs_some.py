"""The default solver for very many classes: a machine per class on its examples and its rivals'."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..utils.parallel import over_examples
from ..utils.params import check_types
from ._one_vs_some import LOSSES, Machines, Space, pair_lists, scatter
from .base import ExtremeProblem, ExtremeResult, ExtremeSolver
from .postings import Postings

if TYPE_CHECKING:
    from ..solvers.checkpoint import Checkpoint

# Non-zeros of rows per unit of work: over_examples hands out 20,000 units at a time.
ENTRIES_PER_UNIT = 16
# Between two of so many blocks of classes a checkpoint may be written.
BLOCKS = 16
# Entries of class means, which have length one, that are left out of the scan for rivals.
PRUNE = 0.02
# A machine is done when its gradient is this near to what is optimal.
ACCURACY = 0.1


class OneVsSome(ExtremeSolver):
    """One machine per class, on its own examples and on those that take it for a rival.

    The strongest rivals of each example under class means of length one become its negatives: the
    example is a negative of those classes' machines alone.  The objective is ``alpha / 2 ||W||^2 +
    sum_i s_i sum_c v_ic loss(+-w_c . x_i)`` over the kept pairs, with the shares ``s_i`` of the
    examples and ``v_ic`` the weight of positives or negatives: divided by alpha, each class is a
    machine with ``C_i = s_i v / alpha``.

    Parameters
    ----------
    loss : {"squared-hinge", "logistic"}, default="squared-hinge"
    n_rivals : int, default=20
        Negatives of each example that class means find.
    epsilon : float, default=0.1
        What the scan for them may miss in each score, of rows of length one.
    positive, negative : float, default=1
        Weights of the losses of a class's own examples, and of the others.
    bias : float, default=1
        Value of a constant feature, whose weight is penalised like the others; 0 for none.
    intercept : float, default=0
        Share of those weights that the model keeps.  Machines meet strong rivals alone in training,
        all classes in prediction: without the constant they compare better.
    keep : float, default=0.01
        Weights of at most this size are left out of the model.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from structsolve.extreme.base import ExtremeProblem
    >>> from structsolve.extreme.one_vs_some import OneVsSome
    >>> X = sparse.csr_matrix(np.eye(3, dtype=np.float32))
    >>> problem = ExtremeProblem(X, np.arange(3, dtype=np.int32), 3, 0.1, "squared-hinge")
    >>> OneVsSome().fit(problem).weights.top(X, 1)[0].ravel()
    array([0, 1, 2], dtype=int32)
    """

    name = "one-vs-some"

    def __init__(
        self,
        loss: str = "squared-hinge",
        n_rivals: int = 20,
        epsilon: float = 0.1,
        positive: float = 1.0,
        negative: float = 1.0,
        bias: float = 1.0,
        intercept: float = 0.0,
        keep: float = 0.01,
    ):
        self.loss = loss
        self.n_rivals = n_rivals
        self.epsilon = epsilon
        self.positive = positive
        self.negative = negative
        self.bias = bias
        self.intercept = intercept
        self.keep = keep

    def fit(
        self,
        problem: ExtremeProblem,
        after: Callable[[dict[str, Any]], bool] | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> ExtremeResult:
        """Train; see :meth:`ExtremeSolver.fit`."""
        self._check(problem)
        run = Run(self, problem)
        reason = "max_iter"
        try:
            run.scan()
            record = run.round()
            if after is not None and after(record):
                reason = "callback"
            elif record["gap"] <= problem.tol * record["primal"]:
                reason = "tol"
        except KeyboardInterrupt:
            reason = "interrupted"
        return ExtremeResult(run.weights, run.history, reason, run.settings)

    def _check(self, problem: ExtremeProblem) -> None:
        """Raise ValueError where an argument, or the problem, is none of this solver's."""
        check_types(self, "OneVsSome: ")
        if self.loss not in LOSSES:
            raise ValueError(f"loss is {self.loss!r}, expected one of {list(LOSSES)}")
        for name, least in (
            ("n_rivals", 1),
            ("epsilon", 0),
            ("bias", 0),
            ("intercept", 0),
            ("keep", 0),
        ):
            if not least <= getattr(self, name) < np.inf:
                raise ValueError(f"{name} is {getattr(self, name)!r}, expected at least {least}")
        for name in ("positive", "negative"):
            if not 0 < getattr(self, name) < np.inf:
                raise ValueError(f"{name} is {getattr(self, name)!r}, expected a positive number")
        if problem.penalty != "l2":
            raise ValueError(
                f"penalty is {problem.penalty!r}, expected 'l2' for one-vs-some; "
                "use solver='memoir'"
            )
        if problem.surrogate not in ("auto", *LOSSES):
            raise ValueError(
                f"surrogate is {problem.surrogate!r}, expected one of {['auto', *LOSSES]} for "
                "one-vs-some; other solvers know others"
            )
        if not problem.alpha > 0:
            raise ValueError(f"alpha is {problem.alpha!r}, expected a positive number")


class Run:
    """State of one training.

    Parameters
    ----------
    solver : OneVsSome
    problem : ExtremeProblem
    """

    def __init__(self, solver: OneVsSome, problem: ExtremeProblem):
        self.solver, self.problem = solver, problem
        self.begun = time.perf_counter()
        self.history: list[dict[str, Any]] = []
        loss = solver.loss if problem.surrogate == "auto" else problem.surrogate
        self.settings: dict[str, Any] = {"loss": loss, "n_rivals": solver.n_rivals}

    def scan(self) -> None:
        """Find the rivals of every example under class means."""
        problem, solver = self.problem, self.solver
        k = min(solver.n_rivals, problem.n_classes - 1)
        means = class_means(problem.X, problem.y, problem.n_classes, problem.shares, PRUNE)
        self.weights = Postings.from_matrix(means)
        rivals, scores, bounds, self.entries = self.weights.top(
            problem.X, k, exclude=problem.y, n_jobs=problem.n_jobs
        )
        # Classes that share nothing with the example are no rivals of it.
        rivals[scores == 0] = -1
        self.rivals, self.mean_epsilon = rivals, float(bounds.mean())

    def round(self) -> dict[str, Any]:
        """Solve the machines of all classes on the rivals that are known.

        Returns
        -------
        dict
            The record of the round.
        """
        problem, solver = self.problem, self.solver
        shares = problem.shares
        begin, rows = pair_lists(
            problem.y, self.rivals, problem.n_classes, (shares > 0).view(np.uint8)
        )
        own = problem.y[rows] == np.repeat(np.arange(problem.n_classes), np.diff(begin))
        cost = shares[rows] / problem.alpha * np.where(own, solver.positive, solver.negative)
        machines = Machines(
            problem.X,
            problem.y,
            begin,
            rows,
            cost.astype(np.float32),
            None,
            np.zeros(len(rows), np.float32),
            self.settings["loss"],
            solver.bias,
            problem.max_iter,
            ACCURACY,
            problem.seed,
        )
        entries = machines.entries()
        room = np.minimum(entries, problem.X.shape[1])

        def work(first: int, last: int, space: Space) -> Any:
            return machines.train(first, last, space, int(room[first:last].sum()), solver.keep)

        def make_space() -> Space:
            return Space(problem.X.shape[1], int(entries.max()), int(np.diff(begin).max()))

        units = np.concatenate([[0], np.cumsum(entries)]) // ENTRIES_PER_UNIT
        pieces = over_examples(work, units, problem.n_jobs, make_space)
        figures = np.vstack([piece[4] for piece in pieces]).sum(axis=0)
        intercept = None
        if solver.intercept > 0 and solver.bias > 0:
            intercept = np.concatenate([piece[3] for piece in pieces])
            intercept *= np.float32(solver.intercept)
        self.weights = assembled(pieces, problem.X.shape[1], intercept)
        primal, dual = problem.alpha * figures[0], problem.alpha * figures[1]
        record = {
            "pass": len(self.history) + 1,
            "primal": primal,
            "dual": dual,
            "gap": primal - dual,
            "mean_epsilon": self.mean_epsilon,
            "entries": self.entries,
            "seconds": time.perf_counter() - self.begun,
            "pairs": len(rows),
            "visits": int(figures[2]),
        }
        self.history.append(record)
        return record


def class_means(
    X: sparse.csr_matrix, y: np.ndarray, n_classes: int, weight: np.ndarray, cut: float
) -> sparse.csr_matrix:
    """Return weighted class means of length one, by feature.

    Parameters
    ----------
    X : csr_matrix of shape (n, d)
    y : ndarray of int32 of shape (n,)
    n_classes : int
    weight : ndarray of shape (n,)
    cut : float
        Entries of at most this size are left out.

    Returns
    -------
    csr_matrix of float32 of shape (d, n_classes)
    """
    n = len(y)
    members = sparse.csc_matrix(
        (weight.astype(np.float32), y, np.arange(n + 1)), shape=(n_classes, n)
    )
    means = (members.tocsr() @ X).tocsr()
    lengths = np.sqrt(np.asarray(means.multiply(means).sum(axis=1), dtype=np.float64)).ravel()
    lengths[lengths == 0] = 1
    means.data /= np.repeat(lengths, np.diff(means.indptr)).astype(np.float32)
    means.data[np.abs(means.data) <= cut] = 0
    means.eliminate_zeros()
    return means.T.tocsr()


def assembled(pieces: list[Any], n_features: int, intercept: np.ndarray | None) -> Postings:
    """Sort the classes' weights by feature, in 12 bytes a weight.

    Parameters
    ----------
    pieces : list of tuple
        What :meth:`Machines.train` returns, class after class.  It is emptied.
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
    # Weights first: those of a piece are given up before room for the classes is made.
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
