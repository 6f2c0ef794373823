"""Watches what certificates rest on: oracles that find the best label, bounds that are bounds.

A certificate holds as far as the oracle tells the truth.  Where its own answers contradict it, and
seeing that costs nothing or a few calls, the run is told: its records are no longer ``certified``,
it does not converge, and ``violation`` in the records says what was found.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..lp.oracle import ProgramRelaxation
from ..operators import KBest, Relaxation
from ..structure import calls
from .base import Run, contradicts
from .problem import ROUNDING, Problem

# Examples whose oracle is asked, before training, for the label that is least wrong.
PROBED = 8
# How far a relaxation's answer to such a simple question may be from the best, in its scores.
ROUGH = 0.05


class Watch:
    """Judges the records of a run.

    Parameters
    ----------
    run : Run
    violation : str, optional
        What was found before, by a run that is continued.

    Attributes
    ----------
    violation : str or None
        What was found first.
    """

    def __init__(self, run: Run, violation: str | None = None):
        self.run = run
        self.violation = violation or probe(run.given.problem)

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
            if gap is not None and gap <= tol * abs(primal):
                self.violation = self.run.contradiction()
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
        What is wrong, with the example; None where nothing was found.
    """
    task, n = problem.task, problem.n
    if task.labels is None:
        return None
    asks = _questions(problem)
    for i in np.unique(np.linspace(0, n - 1, min(n, PROBED)).astype(int)):
        truth = problem.examples.label(int(i))
        for ask in asks:
            fault = ask(problem, int(i), truth)
            if fault is not None:
                return f"example {i}: {fault}"
    return None


def _questions(problem: Problem) -> list[Any]:
    """Return what is asked: of the operator that the surrogate calls."""
    surrogate, task = problem.surrogate, problem.task
    if getattr(surrogate, "projection", None) is not None:
        return []
    relaxation = getattr(getattr(surrogate, "plane", None), "relaxation", None)
    augmented = task.power("augmented")
    if relaxation is not None:
        return [lambda *given: _least_wrong(relaxation, *given)]
    if task.loss.decomposes:
        whole = augmented is None or not task.oracle.exact or not augmented.knows(task.loss)
        return [lambda *given: _least_wrong(task.oracle, *given)] if whole else [_most_wrong]
    if augmented is not None and augmented.knows(task.loss):
        return [_most_wrong]
    kbest = task.power("kbest")
    return [] if kbest is None else [lambda *given: _least_wrong(kbest, *given)]


def _bound(operator: Any, i: int, theta: np.ndarray, size: float) -> float:
    """Return what no label scores more than, says an operator."""
    if isinstance(operator, Relaxation):
        # Duals may prove a bound whatever the answer is worth; rough ones come near all the same.
        _, _, value, bound = calls.relax(operator, i, theta)
        if isinstance(operator, ProgramRelaxation) and operator.decoder.backend.ends_early:
            return float(bound)
        return float(min(bound, value + ROUGH * size))
    if isinstance(operator, KBest):
        _, values = calls.kbest(operator, i, theta, 2)
        return float(values[0]) if len(values) else -np.inf
    return float(calls.argmax(operator, i, theta)[2])


def _least_wrong(operator: Any, problem: Problem, i: int, truth: np.ndarray) -> str | None:
    task = problem.task
    theta = np.zeros(task.layout.sizes(i)[0])
    index, value = calls.encode(task.parts, i, truth)
    if task.loss.decomposes:
        calls.augment(task.loss, i, truth, -1.0, theta)
    else:
        np.add.at(theta, index, value)
    expected = float(theta[index] @ value)
    size = float(np.abs(theta).max(initial=0)) * (1 + float(np.abs(value).sum()))
    bound = _bound(operator, i, theta, size)
    if bound >= expected - ROUNDING * size:
        return None
    return (
        f"{type(operator).__name__} says that no label scores more than {bound:g}, and the true "
        f"label scores {expected:g}"
    )


def _most_wrong(problem: Problem, i: int, truth: np.ndarray) -> str | None:
    task = problem.task
    oracle = task.power("augmented")
    theta = np.zeros(task.layout.sizes(i)[0])
    _, _, loss = calls.argmax_augmented(oracle, i, theta, truth)
    # Scores that the true label has little of lead to another one.
    index, value = calls.encode(task.parts, i, truth)
    np.add.at(theta, index, -value)
    _, total, known = calls.argmax_augmented(oracle, i, theta, truth)
    name, expected = type(oracle).__name__, float(theta[index] @ value)
    if loss < known - ROUNDING * abs(known):
        return (
            f"{name} returns a label of loss {loss:g} where all scores are 0, and one of loss "
            f"{known:g} is known"
        )
    if total < expected - ROUNDING * (abs(total) + abs(expected)):
        return (
            f"{name} returns a label that scores {total:g} with its loss, and the true label "
            f"scores {expected:g}"
        )
    return None
