"""The default solver for very many classes: a machine per class on its examples and its rivals'."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..solvers.checkpoint import check_state
from ..utils.memory import refuse_too_large
from ..utils.parallel import effective_jobs, over_examples, ranges
from ..utils.params import check_types
from ._one_vs_some import LOSSES, Machines, Space, pair_lists, scatter
from .base import ExtremeProblem, ExtremeResult, ExtremeSolver
from .postings import Postings
from .rival_checks import ask_rivals, check_rivals
from .rivals import RivalIndex

if TYPE_CHECKING:
    from ..solvers.checkpoint import Checkpoint

# Non-zeros of rows per unit of work: over_examples hands out 20,000 units at a time.
ENTRIES_PER_UNIT = 16
# Between two of so many blocks of classes a checkpoint may be written.
BLOCKS = 16
# Entries of class means, which have length one, that are left out.
PRUNE = 0.03
# A machine is done when its gradient, in units of scores, is optimal to this many times tol.
ACCURACY = 30
# Settings that may be 0.
FREE = ("prior", "bias", "intercept", "keep", "means")
# Bytes of a pair, of an example's rival (number and score), and of a kept weight.
PAIR_BYTES, RIVAL_BYTES, WEIGHT_BYTES = 24, 8, 12
# Answers of an index of rivals that are compared with a full scan, in each round.
CHECKED = 5
# Costs of examples that float32 has numbers for.
TINY, HUGE = 1e-38, 1e38
# What a piece of trained classes holds: `Machines.train` returns these.
PIECE = ("sizes", "features", "weights", "intercepts", "figures")


class OneVsSome(ExtremeSolver):
    """One machine per class, on its own examples and on those that take it for a rival.

    The strongest rivals of each example under class means of length one become its negatives: the
    example is a negative of those classes' machines alone.  The objective is ``alpha / 2 sum_c
    ||w_c - prior m_c||^2 + sum_i s_i sum_c v_ic loss(+-w_c . x_i)`` over the kept pairs, with the
    class means ``m_c``, the shares ``s_i`` of the examples and the weight ``v_ic`` of positives or
    negatives: divided by alpha, each class is a machine with ``C_i = s_i v / alpha``.

    Machines know their rivals alone, and those of few examples hardly more than these say.  So when
    they are solved, ``means / sqrt(1 + 2 n_c) m_c`` is added to the weights of each class, with its
    number of examples ``n_c``: to those of large classes little.  With sample weights ``n_c`` is
    the class's share of them times n.

    Each round's record has the primal and dual value of all kept pairs' machines together, with
    ``pairs`` and ``visits``, the steps that were tried.  The values are those of the machines
    before class means are added and small weights left out: the gap is not that of the model.

    A class without an example, as ``partial_fit`` may name them, has no class mean.  It is no
    rival of anyone, so it has no weights: it scores 0 for every row.

    Parameters
    ----------
    loss : {"squared-hinge", "logistic"}, default="squared-hinge"
        Where the problem's surrogate is "auto"; else that is the loss.
    n_rivals : int, default=25
        Negatives of each example that class means find.
    epsilon : float, default=0.1
        What the scan for them may miss in each score, of rows of length one.
    n_sampled : int, default=0
        More negatives of each example, drawn as often as their classes are frequent.
    rounds : int, default=1
        Later rounds solve the machines again, on more negatives.
    n_mistakes : int, default=8
        Negatives of each example that the model of the round before finds.
    prior : float, default=2
        Length of the class means that weights are drawn to.
    positive, negative : float, default=10
        Weights of the losses of a class's own examples, and of the others.
    bias : float, default=0.5
        Value of a constant feature, whose weight is penalised like the others; 0 for none.
    intercept : float, default=0
        Share of those weights that the model keeps.  Machines meet strong rivals alone in training,
        all classes in prediction: without the constant they compare better.
    keep : float, default=0.13
        Weights of at most this size are left out of the model.
    means : float, default=2
        How much of the class means is added to the weights in the end; 0 for none.

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
        n_rivals: int = 25,
        epsilon: float = 0.1,
        n_sampled: int = 0,
        rounds: int = 1,
        n_mistakes: int = 8,
        prior: float = 2.0,
        positive: float = 10.0,
        negative: float = 10.0,
        bias: float = 0.5,
        intercept: float = 0.0,
        keep: float = 0.13,
        means: float = 2.0,
    ):
        self.loss = loss
        self.n_rivals = n_rivals
        self.epsilon = epsilon
        self.n_sampled = n_sampled
        self.rounds = rounds
        self.n_mistakes = n_mistakes
        self.prior = prior
        self.positive = positive
        self.negative = negative
        self.bias = bias
        self.intercept = intercept
        self.keep = keep
        self.means = means

    def fit(
        self,
        problem: ExtremeProblem,
        after: Callable[[dict[str, Any]], bool] | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> ExtremeResult:
        """Train; see :meth:`ExtremeSolver.fit`.

        After Ctrl-C in the first round the model is that of the class means: machines of some
        classes alone do not compare with them.
        """
        self._check(problem)
        self._refuse_large(problem)
        run = Run(self, problem)
        held = None if checkpoint is None else checkpoint.read()
        if checkpoint is not None and held is not None:
            with checkpoint.blame():
                check_state(held, run.state())
                run.resume(*held)
        reason = "max_iter"
        try:
            while len(run.history) < self.rounds:
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
                    break
        except KeyboardInterrupt:
            reason = "interrupted"
        if checkpoint is not None:
            checkpoint.close()
        last = run.history[-1] if run.history else None
        if reason == "max_iter" and last and last["gap"] <= problem.tol * last["primal"]:
            reason = "tol"
        return ExtremeResult(run.weights, run.history, reason, run.settings)

    def _check(self, problem: ExtremeProblem) -> None:
        """Raise ValueError where an argument, or the problem, is none of this solver's."""
        check_types(self, "OneVsSome: ")
        if self.loss not in LOSSES:
            raise ValueError(f"loss is {self.loss!r}, expected one of {list(LOSSES)}")
        least = {"n_rivals": 1, "rounds": 1, "n_mistakes": 1, "n_sampled": 0, "epsilon": 0}
        for name, low in {**least, **dict.fromkeys(FREE, 0)}.items():
            if not low <= getattr(self, name) < np.inf:
                raise ValueError(f"{name} is {getattr(self, name)!r}, expected at least {low}")
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
        largest = float(problem.shares.max()) / problem.alpha
        factors = self.positive, self.negative
        if not TINY <= largest * min(factors) <= largest * max(factors) <= HUGE:
            raise ValueError(
                f"alpha is {problem.alpha!r}: an example has a share of {largest:g} times it, "
                f"expected {TINY:g} to {HUGE:g}, what float32 bears; take another alpha, or scale "
                "sample_weight"
            )

    def _refuse_large(self, problem: ExtremeProblem) -> None:
        """Refuse what would take more memory than allowed, with the estimate."""
        n, nnz = len(problem.y), problem.X.nnz
        k = min(self.n_rivals, problem.n_classes - 1)
        k += self.n_sampled + self.n_mistakes * (self.rounds - 1)
        # About a weight is kept for each number of X, and class means have one at most.
        size = float(n * (k + 1) * (PAIR_BYTES + RIVAL_BYTES) + 2 * WEIGHT_BYTES * nnz)
        size += effective_jobs(problem.n_jobs) * self._space(problem, k)
        advice = "use fewer n_rivals, or fewer features"
        refuse_too_large(size, "one-vs-some", advice)
        if problem.max_memory is not None and size > problem.max_memory:
            raise ValueError(
                f"max_memory is {problem.max_memory:.3g} bytes, but one-vs-some would take about "
                f"{size:.3g}: {advice}"
            )

    def _space(self, problem: ExtremeProblem, k: int) -> float:
        """Bytes that a thread takes for the rows of the largest class.

        Its negatives are known after the scan alone.  Taken as k times its own examples, the mean
        over classes, but no more than there are rows.
        """
        n, d = problem.X.shape
        pairs = int(min(n, (k + 1) * np.bincount(problem.y).max()))
        entries = int(np.sort(np.diff(problem.X.indptr))[n - pairs :].sum())
        return float(Space.size(d, entries, pairs))


class Run:
    """State of one training.

    Parameters
    ----------
    solver : OneVsSome
    problem : ExtremeProblem
    """

    def __init__(self, solver: OneVsSome, problem: ExtremeProblem):
        self.solver, self.problem = solver, problem
        self.begun, self.spent = time.perf_counter(), 0.0
        self.history: list[dict[str, Any]] = []
        self.rivals = np.empty((len(problem.y), 0), np.int32)
        self.entries = 0
        self.mean_epsilon: float | None = 0.0
        self.pieces: list[Any] = []
        self.trained = 0
        self.machines: Machines | None = None
        loss = solver.loss if problem.surrogate == "auto" else problem.surrogate
        self.settings: dict[str, Any] = {"surrogate": loss, "n_rivals": solver.n_rivals}
        self.means = class_means(problem.X, problem.y, problem.n_classes, problem.shares, PRUNE)
        self.weights = Postings.from_matrix(self.means.T.tocsr())

    def find(self) -> None:
        """Find the rivals of a round: under class means first, then the model's mistakes."""
        problem, solver = self.problem, self.solver
        if self.machines is None and not self.trained and self.rivals.shape[1] < self._wanted():
            k = solver.n_mistakes if self.history else solver.n_rivals
            strongest = self._scan(min(k, problem.n_classes - 1))
            drawn = np.empty((len(problem.y), 0), np.int32)
            if solver.n_sampled and not self.history:
                rng = np.random.default_rng(problem.seed)
                size = (len(problem.y), solver.n_sampled)
                drawn = problem.y[rng.choice(len(problem.y), size, p=problem.shares)]
            self.rivals = np.hstack([self.rivals, strongest, drawn])
        self._pair()

    def _wanted(self) -> int:
        """Columns of rivals that the round needs."""
        solver, others = self.solver, self.problem.n_classes - 1
        first = min(solver.n_rivals, others) + solver.n_sampled
        return first + min(solver.n_mistakes, others) * len(self.history)

    def _scan(self, k: int) -> np.ndarray:
        problem, epsilon = self.problem, self.solver.epsilon
        if problem.rivals is None:
            rivals, scores, bounds, self.entries = self.weights.top(
                problem.X, k, epsilon, exclude=problem.y, n_jobs=problem.n_jobs
            )
        else:
            rivals, scores, bounds = self._ask(problem.rivals, k)
            self.entries = problem.rivals.entries
        # Classes that share nothing with the example are no rivals of it.
        rivals[scores == 0] = -1
        missed = float(bounds.mean())
        self.mean_epsilon = missed if np.isfinite(missed) else None
        return rivals

    def _ask(self, index: RivalIndex, k: int) -> Any:
        """Ask an index for rivals; a few answers are compared with a full scan."""
        X, y, seed = self.problem.X, self.problem.y, self.problem.seed
        index.start(self.weights, seed, self.problem.n_jobs)
        index.batch(len(self.history))
        answer = ask_rivals(index, self.weights, X, y, k)
        few = np.random.default_rng([seed, len(self.history)]).permutation(len(y))[:CHECKED]
        claims = (answer[0][few], answer[1][few], answer[2][few])
        check_rivals(index, self.weights, X[few], y[few], claims, few)
        return np.array(answer[0]), *answer[1:]

    def _pair(self) -> None:
        """Make the machines of the rivals that are known."""
        problem, solver = self.problem, self.solver
        shares, C = problem.shares, problem.n_classes
        # Examples of so little weight that float32 has no number for it take no part.
        part = shares / problem.alpha * min(solver.positive, solver.negative) >= TINY
        begin, rows = pair_lists(problem.y, self.rivals, C, part.view(np.uint8))
        cost = (shares / problem.alpha).astype(np.float32)[rows]
        own = problem.y[rows] == np.repeat(np.arange(C, dtype=np.int32), np.diff(begin))
        cost *= np.where(own, np.float32(solver.positive), np.float32(solver.negative))
        counts = np.bincount(problem.y, shares, minlength=C) * len(problem.y)
        later = (solver.means / np.sqrt(1 + 2 * counts)).astype(np.float32)
        self.machines = Machines(
            problem.X,
            problem.y,
            begin,
            rows,
            cost,
            None,
            np.zeros(len(rows), np.float32),
            self.means,
            self.settings["surrogate"],
            solver.bias,
            problem.max_iter,
            ACCURACY * problem.tol,
            problem.seed,
            solver.prior,
            later if solver.means else None,
        )
        self.n_pairs, self.most = len(rows), int(np.diff(begin).max())
        self.work = self.machines.entries()
        self.blocks = ranges(np.concatenate([[0], np.cumsum(self.work)]), BLOCKS)

    def more(self) -> bool:
        """Tell whether classes of this round wait.

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
            return machines.train(first, last, space, int(room[first:last].sum()), self.solver.keep)

        units = np.concatenate([[0], np.cumsum(self.work[begin:end])]) // ENTRIES_PER_UNIT
        self.pieces += over_examples(
            work, units, problem.n_jobs, lambda: Space(d, largest, self.most)
        )
        self.trained = end

    def close(self) -> dict[str, Any]:
        """Take over the weights of a round.

        Returns
        -------
        dict
            Its record.
        """
        problem, solver = self.problem, self.solver
        primal, dual, visits = np.vstack([piece[4] for piece in self.pieces]).sum(axis=0).tolist()
        intercept = None
        if solver.intercept > 0 and solver.bias > 0:
            intercept = np.concatenate([piece[3] for piece in self.pieces])
            intercept *= np.float32(solver.intercept)
        self.weights = assembled(self.pieces, problem.X.shape[1], intercept)
        record = {
            "pass": len(self.history) + 1,
            "primal": problem.alpha * primal,
            "dual": problem.alpha * dual,
            "gap": problem.alpha * (primal - dual),
            "mean_epsilon": self.mean_epsilon,
            "entries": self.entries,
            "seconds": self.spent + time.perf_counter() - self.begun,
            "pairs": self.n_pairs,
            "visits": int(visits),
        }
        self.history.append(record)
        self.trained, self.machines = 0, None
        return record

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what a checkpoint keeps.

        Returns
        -------
        meta, arrays : dict
        """
        empty = (np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
        none = (*empty, np.zeros(0, np.float32), np.zeros((0, 3)))
        parts = list(zip(*[none, *self.pieces], strict=True))
        arrays = {name: np.concatenate(part) for name, part in zip(PIECE, parts, strict=True)}
        model, bare = self.weights, self.weights.intercept is None
        arrays |= {
            "rivals": self.rivals,
            "indptr": model.indptr,
            "classes": model.classes,
            "values": model.weights,
            "intercept": np.zeros(0, np.float32) if bare else model.intercept,
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
        """Go on from what a checkpoint kept.

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


def class_means(
    X: sparse.csr_matrix, y: np.ndarray, n_classes: int, weight: np.ndarray, cut: float
) -> sparse.csr_matrix:
    """Return weighted class means of length one.

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
    csr_matrix of float32 of shape (n_classes, d)
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
    means.sort_indices()
    return means


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
