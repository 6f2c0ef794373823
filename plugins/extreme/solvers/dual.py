"""Dual coordinate ascent with a certificate, over rivals that scans find."""

from __future__ import annotations

import numpy as np

from structsolve.plugins.extreme.solvers._dual import MOST_RIVALS
from structsolve.plugins.extreme.solvers.base import (
    After,
    ExtremeProblem,
    ExtremeResult,
    ExtremeSolver,
    take_passes,
)
from structsolve.plugins.extreme.solvers.dual_run import DualRun, surrogate_name
from structsolve.solvers.checkpoint import Checkpoint
from structsolve.utils.params import check_count, check_types, parameters

# Bounds on the largest share divided by alpha, which is the sum of that example's dual variables.
LEAST_SHARE, MOST_SHARE = 1e-30, 1e14


@parameters
class ExtremeDual(ExtremeSolver):
    """Dual coordinate ascent over cached rivals, with a certificate.

    Each example keeps a few rivals, with a dual variable each.  A pass visits each example a few
    times; each visit solves for the example's dual variables exactly.  The pass then scans all
    classes for better rivals, exactly or within a bound epsilon.  The scan gives the certificate:

    * primal: ``alpha/2 ||W||^2 + sum_i s_i (H_i + epsilon_i)``, where H_i is the surrogate on the
      rivals that the scan found and epsilon_i bounds what the others can add;
    * dual: the value of the dual variables, a lower bound of the optimum whatever the scans missed.

    Scans skip small weights, which are the most numerous and change scores least.  epsilon_i sums
    their largest possible contributions over the features of the example.  Other indexes of rivals
    return their own bounds; with an infinite bound, primal and gap are None.

    The objective of the returned weights is at most the gap above the optimum, up to the rounding
    of float32 weights (about 1e-6 of the objective).

    Parameters
    ----------
    max_rivals : int, default=64
        Maximum number of rivals per example.  An example with this many dual variables takes no
        other rivals; the gap then does not close, and ``moved`` in the records falls to 0.  A scan
        returns 16 of an example, and for surrogates other than the hinges all classes if there
        are at most so many.
    inner : int, default=8
        Visits of each example between two scans; unchanged examples skip a few visits.
    epsilon : float, optional
        Error of a scanned score, in the mean over the examples; 0 scans exactly.  By default it
        decreases with the gap.  The problem's ``rivals="exact"`` and ``"certified:EPSILON"``
        override it.

    Notes
    -----
    Surrogates: "margin" (Crammer and Singer's), its square "squared-hinge"
    ``max(0, max_r 1 + w_r x - w_y x)^2``, "sparsemap", "max-min" (0-1 loss) and "crf".  All but
    "crf" need few dual variables, so their gap closes.  With "sparsemap" and "max-min" a gap
    remains if more classes are within the margin than a scan returns.  With "crf" a gap
    remains if there are more classes than ``max_rivals``: every class has positive probability,
    but the dropped classes count in full in the primal bound (their number times the exponential
    of the best score among them) and not at all in the dual.

    The solver learns no intercept; add a constant column to X for a penalised one.
    ``penalty="l1"`` and ``start`` raise an error: weights alone do not determine dual variables.
    Scans use threads, visits do not.

    Block steps: Crammer and Singer (2001), Keerthi et al. (2008); epsilon-subgradients: MEMOIR.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from structsolve.plugins.extreme.solvers.base import ExtremeProblem
    >>> from structsolve.plugins.extreme.solvers.dual import ExtremeDual
    >>> X = sparse.csr_matrix(np.eye(3, dtype=np.float32))
    >>> y = np.arange(3, dtype=np.int32)
    >>> result = ExtremeDual().fit(ExtremeProblem(X, y, n_classes=3, alpha=0.1))
    >>> result.stop_reason, bool(result.history[-1]["gap"] < 0.01)
    ('tol', True)
    """

    name = "dual"

    max_rivals: int = 64
    inner: int = 8
    epsilon: float | None = None

    def fit(
        self, problem: ExtremeProblem, after: After = None, checkpoint: Checkpoint | None = None
    ) -> ExtremeResult:
        """Train; see :meth:`ExtremeSolver.fit`."""
        self._check(problem)
        run = DualRun(self, problem)
        reason = take_passes(run, after, checkpoint)
        settings = {"rivals_per_scan": run.k, "max_rivals": run.most, "epsilon": run.epsilon}
        return ExtremeResult(run.weights(), run.history, reason, settings)

    def _check(self, problem: ExtremeProblem) -> None:
        """Raise ValueError if an argument is invalid or the problem is not supported."""
        check_types(self, "ExtremeDual: ")
        for name, most in (("max_rivals", MOST_RIVALS), ("inner", None)):
            check_count(f"ExtremeDual: {name}", getattr(self, name), most)
        if self.epsilon is not None and not 0 <= self.epsilon < np.inf:
            raise ValueError(
                f"ExtremeDual: epsilon is {self.epsilon!r}, expected a finite number of at least 0"
            )
        surrogate_name(problem.surrogate)
        if problem.penalty != "l2":
            raise ValueError(
                f"penalty is {problem.penalty!r}, expected 'l2': solver 'dual' knows the dual of "
                "no other; use solver='memoir'"
            )
        if problem.start is not None:
            raise ValueError(
                "start: solver 'dual' cannot go on from weights, which tell no dual variables; use "
                "a checkpoint, or solver='memoir'"
            )
        why = "beyond which dual variables have no digits left"
        problem.check_shares(LEAST_SHARE, MOST_SHARE, why)
