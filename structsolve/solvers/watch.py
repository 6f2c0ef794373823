"""Check the basis of certificates: oracles find the best label, and bounds hold.

A certificate is only as good as the oracle. If cheap checks find that the oracle's answers
contradict it, the run's records are no longer ``certified``, the run does not converge, and
``violation`` in the records describes the contradiction.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .known_labels import KnownLabels
from .problem import Problem
from .questions import ask, operators_of
from .run import Run, contradicts

# Number of examples probed for the least wrong label before training.  As many are compared with
# known labels before a run ends, and one in passes 1, 2, 4, 8 and so on: with FEW labels each, with
# up to MORE where the run converges.
PROBED, FEW, MORE = 8, 2, 8


class Watch:
    """Checks the records of a run.

    Parameters
    ----------
    run : Run
    violation : str, optional
        Violation found before the run was continued.

    Attributes
    ----------
    violation : str or None
        The first violation found.
    """

    def __init__(self, run: Run, violation: str | None = None):
        self.run = run
        self.violation = violation or probe(run.given.problem)
        self.known: KnownLabels | None = None
        self.judged = 0

    def judge(self, record: dict[str, Any], tol: float, last: bool) -> None:
        """Revoke the certificate of a record that the oracle's answers contradict.

        Parameters
        ----------
        record : dict
            Record of :class:`Run`; it is changed in place.
        tol : float
            Relative gap at which the run converges; most checks are then made.
        last : bool
            Whether it ends in any case.
        """
        problem = self.run.given.problem
        if self.violation is None:
            self.violation = problem.violation or _shortfall(problem)
        if self.violation is None and contradicts(record):
            self.violation = (
                f"the dual objective is {record['primal'] - record['gap']:g}, above the primal "
                f"one, {record['primal']:g}"
            )
        if self.violation is None and record.get("certified"):
            gap, primal = record["gap"], record["primal"]
            converges = gap is not None and gap <= tol * abs(primal)
            if converges:
                self.violation = self.run.contradiction()
            self.judged += 1
            count = PROBED if converges or last else self.judged & (self.judged - 1) == 0
            if self.violation is None and count and problem.task.labels is not None:
                self.known = self.known or KnownLabels(problem)
                asked = MORE if converges else FEW
                try:
                    self.violation = self.known.fault(self.run.weights(), int(count), asked)
                except ValueError:
                    # An operator may refuse scores on the way, as those of cycles.
                    if converges or not last:
                        raise
        if self.violation is not None:
            record["certified"], record["violation"] = False, self.violation


def _shortfall(problem: Problem) -> str | None:
    """Return the oracle's fault that the surrogate has noticed, or None."""
    shortfalls = problem.surrogate.shortfalls()
    if shortfalls is None or not shortfalls.size:
        return None
    i = int(np.argmax(shortfalls))
    if not shortfalls[i] > 0:
        return None
    return (
        f"example {i}: a known label scores {shortfalls[i]:g} more than the bound of the oracle's "
        "answer"
    )


def probe(problem: Problem) -> str | None:
    """Check that the oracle finds the least wrong label of a few examples.

    The scores are the negative losses, so that the true label is best.  If the loss does not
    decompose, they are the parts of the true label.  An oracle that minimises returns another
    label.  A loss-augmented oracle must find the most wrong label: its loss must be at least that
    of the label returned for other scores.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    str or None
        The fault, with the example; None if there is none.
    """
    task, n = problem.task, problem.n
    if task.labels is None:
        return None
    operators = operators_of(problem)
    for i in np.unique(np.linspace(0, n - 1, min(n, PROBED)).astype(int)):
        truth = problem.examples.label(int(i))
        for operator in operators:
            fault = ask(operator, problem, int(i), truth)
            if fault is not None:
                return f"example {i}: {fault}"
    return None
