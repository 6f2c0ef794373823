"""One machine per class, trained on its own examples and a few negatives."""

from __future__ import annotations

from dataclasses import KW_ONLY

import numpy as np

from structsolve.plugins.extreme.solvers._one_vs_some import LOSSES, Space
from structsolve.plugins.extreme.solvers.base import (
    After,
    ExtremeProblem,
    ExtremeResult,
    ExtremeSolver,
)
from structsolve.plugins.extreme.solvers.one_vs_some_run import COST, TINY, Run, train
from structsolve.solvers.checkpoint import Checkpoint
from structsolve.utils.memory import refuse_too_large
from structsolve.utils.parallel import effective_jobs
from structsolve.utils.params import check_types, parameters

# Settings that may be 0.
FREE = ("epsilon", "bias", "intercept", "keep", "means")
# Bytes per pair, per rival of an example (number and score), and per kept weight.
PAIR_BYTES, RIVAL_BYTES, WEIGHT_BYTES = 25, 8, 12
# Range of costs in float32: TINY to HUGE.
HUGE = 1e38


@parameters
class OneVsSome(ExtremeSolver):
    """One machine per class, on its own examples and on the examples whose rival it is.

    Class means of length one give the strongest rivals of each example.  The example is a negative
    only for the machines of these classes.  The objective is ``alpha / 2 sum_c
    ||w_c - 2 m_c||^2 + 10 sum_i s_i sum_c loss(+-w_c . x_i)`` over the kept pairs, with the class
    means ``m_c`` and the shares ``s_i`` of the examples: divided by alpha, each class is a machine
    with ``C_i = 10 s_i / alpha``.

    Machines are trained against strong rivals only, and small classes have few examples.  So after
    training, ``means / sqrt(1 + 2 n_c) m_c`` is added to the weights of each class, where ``n_c``
    is its number of examples; large classes change little.  With sample weights, ``n_c`` is the
    class's share of them times n.

    In the record, ``primal`` is the objective of the model over all kept pairs, after
    class means are added and small weights dropped.  ``dual`` is a lower bound of the objective
    for these pairs.  ``gap`` is their difference, which is mostly due to these two changes.
    ``machines_gap`` is the gap before them; machines are solved to a precision proportional to
    ``tol``.
    ``pairs`` and ``visits`` count the pairs and the attempted steps.

    A class without examples, possible with ``partial_fit``, has no class mean.  It is never a
    rival and has no weights, so it scores 0 for every row.

    Parameters
    ----------
    n_rivals : int, default=25
        Negatives of each example found with class means.
    epsilon : float, default=0.1
        Largest error of a score in this scan, for rows of length one.
    bias : float, default=0.5
        Value of a constant feature, whose weight is penalised like the others; 0 for none.
    intercept : float, default=0
        Factor of the constant feature's weights in the model.  Training compares strong rivals
        only, prediction all classes: scores without the constant compare better.
    keep : float, default=0.13
        Weights of at most this size are dropped from the model.
    means : float, default=2
        Factor of the class means added to the weights at the end; 0 for none.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from structsolve.plugins.extreme.solvers.base import ExtremeProblem
    >>> from structsolve.plugins.extreme.solvers.one_vs_some import OneVsSome
    >>> X = sparse.csr_matrix(np.eye(3, dtype=np.float32))
    >>> problem = ExtremeProblem(X, np.arange(3, dtype=np.int32), 3, 0.1, "squared-hinge")
    >>> OneVsSome().fit(problem).weights.top(X, 1)[0].ravel()
    array([0, 1, 2], dtype=int32)
    """

    name = "one-vs-some"
    unit_rows = True
    several = True

    n_rivals: int = 25
    _: KW_ONLY
    epsilon: float = 0.1
    bias: float = 0.5
    intercept: float = 0.0
    keep: float = 0.13
    means: float = 2.0

    def fit(
        self, problem: ExtremeProblem, after: After = None, checkpoint: Checkpoint | None = None
    ) -> ExtremeResult:
        """Train; see :meth:`ExtremeSolver.fit`.

        After Ctrl-C the model consists of the class means: scores of trained machines are not
        comparable with those of class means.
        """
        self._check(problem)
        self.refuse_large(problem)
        return train(Run(self, problem), after, checkpoint)

    def _check(self, problem: ExtremeProblem) -> None:
        """Raise ValueError if an argument is invalid or the problem is not supported."""
        check_types(self, "OneVsSome: ")
        for name, low in {"n_rivals": 1, **dict.fromkeys(FREE, 0)}.items():
            if not low <= getattr(self, name) < np.inf:
                raise ValueError(f"{name} is {getattr(self, name)!r}, expected at least {low}")
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
        problem.check_shares(TINY, HUGE, "what float32 bears", COST)

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
        n, nnz = len(problem.y), problem.X.nnz
        k = min(self.n_rivals, problem.n_classes - 1)
        # About one weight is kept per non-zero of X, and at most one in the class means.
        size = float(n * (k + 1) * (PAIR_BYTES + RIVAL_BYTES) + 2 * WEIGHT_BYTES * nnz)
        size += effective_jobs(problem.n_jobs) * self._space(problem, k)
        advice = "use fewer n_rivals, or fewer features"
        refuse_too_large(size, "one-vs-some", advice, problem.max_memory)

    def _space(self, problem: ExtremeProblem, k: int) -> float:
        """Bytes that a thread takes for the rows of the largest class.

        Its number of negatives is unknown before the scan.  The estimate is k times its own
        examples, the mean over classes, but at most n rows in total.
        """
        n, d = problem.X.shape
        pairs = int(min(n, (k + 1) * max(1, np.bincount(problem.own[1], minlength=1).max())))
        entries = int(np.sort(np.diff(problem.X.indptr))[n - pairs :].sum())
        return float(Space.size(d, entries, pairs))
