"""The default solver for very many classes: a machine per class on its examples and its rivals'."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..solvers.checkpoint import check_state
from ..utils.memory import refuse_too_large
from ..utils.parallel import effective_jobs
from ..utils.params import check_types
from ._one_vs_some import LOSSES, Space
from .base import ExtremeProblem, ExtremeResult, ExtremeSolver
from .one_vs_some_run import TINY, Run

if TYPE_CHECKING:
    from ..solvers.checkpoint import Checkpoint

# Settings that may be 0.
FREE = ("prior", "bias", "intercept", "keep", "means")
# Bytes of a pair, of an example's rival (number and score), and of a kept weight.
PAIR_BYTES, RIVAL_BYTES, WEIGHT_BYTES = 24, 8, 12
# Costs of examples that float32 has numbers for are from TINY to this.
HUGE = 1e38


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

    Each round's record has the objective of the model over all kept pairs, after class means are
    added and small weights left out, as ``primal``, and as ``dual`` what no machines are below:
    ``gap`` is what the model has more than the best for these pairs, by design for the larger part.
    ``machines_gap`` is that of the machines before, which are solved to a share of ``tol``;
    ``pairs`` and ``visits`` count the pairs and the steps that were tried.

    A class without an example, as ``partial_fit`` may name them, has no class mean.  It is no
    rival of anyone, so it has no weights: it scores 0 for every row.

    Parameters
    ----------
    loss : {"squared-hinge", "logistic"}, default="squared-hinge"
        Where the problem's surrogate is "auto"; else that is the loss.
    n_rivals : int, default=25
        Negatives of each example that class means find.
    epsilon : float, default=0.1
        Error that the scan for them may make in each score, for rows of length one.
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
        self.refuse_large(problem)
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
        if reason == "max_iter" and last:
            solved = last["machines_gap"]
            reason = "tol" if solved <= problem.tol * (last["dual"] + solved) else reason
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

    def refuse_large(self, problem: ExtremeProblem) -> None:
        """Refuse what would take more memory than allowed, with the estimate.

        Parameters
        ----------
        problem : ExtremeProblem

        Raises
        ------
        ValueError
            Naming the estimate and what to do.
        """
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
