"""Watches what certificates rest on: oracles that find the best label, bounds that are bounds.

A certificate is only as good as the oracle. Where the oracle's own answers contradict it, and
checking costs nothing or a few calls, the run is notified: its records are no longer ``certified``,
it does not converge, and ``violation`` in the records says what was found.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Run, contradicts
from .known_labels import KnownLabels
from .problem import Problem
from .questions import ask, operators_of

# Examples whose oracle is asked, before training, for the label that is least wrong; so many are
# compared with known labels before a run ends, and one in every pass.
PROBED = 8


class Watch:
    """Judges the records of a run.

    Parameters
    ----------
    run : Run
    violation : str, optional
        The violation that the continued run saw before.

    Attributes
    ----------
    violation : str or None
        The first violation.
    """

    def __init__(self, run: Run, violation: str | None = None):
        self.run = run
        self.violation = violation or probe(run.given.problem)
        self.known: KnownLabels | None = None

    def judge(self, record: dict[str, Any], tol: float) -> None:
        """Take the certificate from a record that the oracle's answers contradict.

        Parameters
        ----------
        record : dict
            As of :class:`Run`; it is changed.
        tol : float
            Relative gap at which the run would end: it is then looked at more closely.
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
            ends = gap is not None and gap <= tol * abs(primal)
            if ends:
                self.violation = self.run.contradiction()
            if self.violation is None and problem.task.labels is not None:
                self.known = self.known or KnownLabels(problem)
                self.violation = self.known.fault(self.run.weights(), PROBED if ends else 1)
        if self.violation is not None:
            record["certified"], record["violation"] = False, self.violation


def _shortfall(problem: Problem) -> str | None:
    """Return what a surrogate has noticed of its oracle."""
    shortfalls = problem.surrogate.shortfalls()
    if shortfalls is None or not shortfalls.size:
        return None
    i = int(np.argmax(shortfalls))
    if not shortfalls[i] > 0:
        return None
    return (
        f"example {i}: a label that is known scores {shortfalls[i]:g} more than the bound of the "
        f"oracle's answer"
    )


def probe(problem: Problem) -> str | None:
    """Ask the oracle for the least wrong label of a few examples: no label scores more than it.

    The scores are the losses, negative, so that the true label is best; where the loss does not
    decompose, they are those that the true label's parts have of themselves.  An oracle that
    minimises returns another label.  One that adds the loss itself is asked for the most wrong
    label, which must be no less wrong than the one that it returns for other scores.

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
