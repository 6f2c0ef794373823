"""MEMOIR (Belyy, Sholokhov 2019): subgradient steps on batches, with inexact rivals."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

from structsolve.plugins.extreme.solvers.base import (
    After,
    ExtremeProblem,
    ExtremeResult,
    ExtremeSolver,
    take_passes,
)
from structsolve.plugins.extreme.solvers.memoir_run import MemoirRun
from structsolve.solvers.checkpoint import Checkpoint
from structsolve.utils.params import parameters


@parameters
class Memoir(ExtremeSolver):
    """Algorithms 1 (l2) and 2 (l1) of MEMOIR, with printed or averaged steps.

    Iteration t draws a batch b of examples with replacement (by their weights), freezes the
    weights, gets rivals from an index, and steps by ``eta_t = eta0 / (1 + eta_step t)`` along the
    subgradients.  l2: the weights shrink by ``1 - alpha eta_t`` before the step and are scaled into
    a ball after it.  l1: soft thresholds ``(C / |R|) eta_t`` times alpha (printed) or alpha / 2
    (the subgradient of the objective) apply to the classes R of the batch and its rivals.  The
    factor ``C / |R|`` compensates for the other classes.

    Parameters
    ----------
    steps : {"mean", "printed"}, default="mean"
        "printed": each example of a batch makes a step of eta_t; with alpha = 1 each batch then
        erases earlier ones.  "mean": steps are divided by ``|b|``.
    batch : "auto", int or float, default="auto"
        Number of examples; a float is a factor of the square root of the number of classes.
        "auto": 100.0, at most n.
    n_iter : int, optional
        T; by default the iterations of ``max_iter`` passes over the data.
    eta0, eta_step : float or "auto"
        "auto", printed: .1 and .02 (Table 4).  Means, l2: 1 / alpha and 1, which are the steps
        1 / (alpha (1 + t)) of Theorem 2.  Means, l1: ``.1 |b|`` and .02.
    ball : bool, default=True
        l2: project on ``||W|| <= 1 / sqrt(alpha)``, or ``sqrt(2 H(0) / alpha)`` for surrogates
        other than "margin".  The ball contains the minimum.
    k : int, default=1
        Rivals per example that the surrogate uses.
    averaging : bool, default=False
        l2: return the mean of all iterates, which has a bound; takes twice the memory.

    Notes
    -----
    The primal of records is estimated from 1000 rows, drawn once; up to 1000 rows it is that of
    all.  It uses the true class and its k best rivals; the index's bounds are added to their
    scores.  For "margin" and "squared-hinge", which use one rival, it is at least the objective
    over all classes; for other surrogates it is no bound of that objective.  If an index returns
    infinite bounds, the rows of the primal are scanned exactly.  "mean_epsilon" is the mean bound
    of the rivals' scores over all draws.  The solver computes no dual and no certain gap.  With
    ``averaging``, "margin" and the steps of Theorem 2, a record has an "expected_gap": the
    corrected bound of that theorem for the mean of T iterates.  With R the largest ``||x||``, D =
    ``||W_1|| + 1 / sqrt(alpha)`` and e the mean bound over all draws of batches ::

        E F(mean) - F* <= [alpha (D^2 + ||W_1||^2 / 2) + R^2 sum_t eta_t] / T + e

    The printed order (shrink, then step) is a proximal step of the penalty.  So G contains only the
    hinge, with subgradients of at most ``sqrt(2) R``; the printed c = sqrt(alpha) + 2 + e, which
    should be squared, is not needed.  Training ends when the expected gap is at most ``tol`` times
    the primal.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from structsolve.plugins.extreme.solvers.base import ExtremeProblem
    >>> from structsolve.plugins.extreme.solvers.memoir import Memoir
    >>> X, y = sp.csr_matrix(np.eye(3, dtype=np.float32)), np.arange(3, dtype=np.int32)
    >>> result = Memoir().fit(ExtremeProblem(X, y, 3, alpha=0.01, max_iter=50))
    >>> result.weights.top(X, 1)[0].ravel().tolist()
    [0, 1, 2]
    """

    name = "memoir"
    unit_rows = True

    steps: str = "mean"
    _: KW_ONLY
    batch: Any = "auto"
    n_iter: int | None = None
    eta0: Any = "auto"
    eta_step: Any = "auto"
    ball: bool = True
    k: int = 1
    averaging: bool = False

    def fit(
        self, problem: ExtremeProblem, after: After = None, checkpoint: Checkpoint | None = None
    ) -> ExtremeResult:
        """Train; see :meth:`ExtremeSolver.fit`."""
        run = MemoirRun(self, problem)
        reason = take_passes(run, after, checkpoint)
        return ExtremeResult(run.result(), run.history, reason, run.settings)
