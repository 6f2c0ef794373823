"""Oracle checks before training, at scores for which a given label must be the best."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..lp.oracle import ProgramRelaxation
from ..operators import AugmentedOracle, KBest, Relaxation
from ..structure import calls
from .problem import ROUNDING, Problem

# Relative error allowed for a relaxation at these scores.
ROUGH = 0.05


def operators_of(problem: Problem) -> list[Any]:
    """Return the label-finding operators that the surrogate calls.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    list of Oracle, Relaxation, KBest or AugmentedOracle
    """
    surrogate, task = problem.surrogate, problem.task
    if getattr(surrogate, "projection", None) is not None:
        return []
    plane = getattr(surrogate, "plane", None)
    relaxation, augmented = getattr(plane, "relaxation", None), task.power("augmented")
    ranking = [getattr(plane, "kbest", None)]
    ranking = [operator for operator in ranking if operator is not None]
    if relaxation is not None:
        return [relaxation]
    if task.loss.decomposes:
        whole = augmented is None or not task.oracle.exact or not augmented.knows(task.loss)
        return [task.oracle, *ranking] if whole else [augmented, *ranking]
    if augmented is not None and augmented.knows(task.loss):
        return [augmented]
    kbest = task.power("kbest")
    return [] if kbest is None else [kbest]


def ask(
    operator: Any, problem: Problem, i: int, label: np.ndarray, parts: Any = None
) -> str | None:
    """Check an operator at scores for which a given label is the best.

    Parameters
    ----------
    operator : Oracle, Relaxation, KBest or AugmentedOracle
    problem : Problem
    i : int
    label : ndarray of int32
        The true label, or another valid label of the example.
    parts : (index, value), optional
        What ``encode`` returns for the label, where it is known.

    Returns
    -------
    str or None
        The fault, or None.
    """
    if not isinstance(operator, AugmentedOracle):
        parts = parts or calls.encode(problem.task.parts, i, label)
        return _least_wrong(operator, problem, i, label, parts)
    truth = problem.examples.label(i)
    if np.array_equal(label, truth):
        return _most_wrong(operator, problem, i, truth)
    return _misses(operator, problem, i, truth, label)


def bound_of(operator: Any, i: int, theta: np.ndarray, size: float) -> float:
    """Return the upper bound on all labels' scores that an operator reports.

    Parameters
    ----------
    operator : Oracle, Relaxation or KBest
    i : int
    theta : ndarray
    size : float
        The scale of errors.

    Returns
    -------
    float
    """
    if isinstance(operator, Relaxation):
        # The dual bound may be good even if the primal value is poor; rough values come close.
        _, _, value, bound = calls.relax(operator, i, theta)
        if isinstance(operator, ProgramRelaxation) and operator.decoder.backend.ends_early:
            return float(bound)
        return float(min(bound, value + ROUGH * size))
    if isinstance(operator, KBest):
        _, values = calls.kbest(operator, i, theta, 2)
        return float(values[0]) if len(values) else -np.inf
    return float(calls.argmax(operator, i, theta)[2])


def _least_wrong(
    operator: Any, problem: Problem, i: int, label: np.ndarray, parts: tuple[np.ndarray, np.ndarray]
) -> str | None:
    task = problem.task
    theta = np.zeros(task.layout.sizes(i)[0])
    index, value = parts
    if task.loss.decomposes:
        calls.augment(task.loss, i, label, -1.0, theta)
    else:
        np.add.at(theta, index, value)
    expected = float(theta[index] @ value)
    rough, bound = isinstance(operator, Relaxation), -np.inf
    if not rough:
        bound = bound_of(operator, i, theta, 0.0)
    if bound >= expected:
        return None
    size = float(np.abs(theta).max(initial=0)) * (1 + float(np.abs(value).sum()))
    if rough:
        bound = bound_of(operator, i, theta, size)
    if bound >= expected - ROUNDING * size:
        return None
    own = np.array_equal(label, problem.examples.label(i))
    whose = "the true label" if own else "another's label"
    return (
        f"{type(operator).__name__} claims that no label scores more than {bound:g}, but "
        f"{whose} scores {expected:g}"
    )


def _most_wrong(oracle: Any, problem: Problem, i: int, truth: np.ndarray) -> str | None:
    task = problem.task
    theta = np.zeros(task.layout.sizes(i)[0])
    _, _, loss = calls.argmax_augmented(oracle, i, theta, truth)
    # The true label scores low, so that another label is best.
    index, value = calls.encode(task.parts, i, truth)
    np.add.at(theta, index, -value)
    _, total, known = calls.argmax_augmented(oracle, i, theta, truth)
    name, expected = type(oracle).__name__, float(theta[index] @ value)
    if loss < known - ROUNDING * abs(known):
        return (
            f"{name} returns a label of loss {loss:g} for scores of 0, but a label of loss "
            f"{known:g} is known"
        )
    if total < expected - ROUNDING * (abs(total) + abs(expected)):
        return (
            f"{name} returns a label that scores {total:g} with its loss, but the true label "
            f"scores {expected:g}"
        )
    return None


def _misses(
    oracle: Any, problem: Problem, i: int, truth: np.ndarray, label: np.ndarray
) -> str | None:
    task = problem.task
    theta = np.zeros(task.layout.sizes(i)[0])
    _, _, loss = calls.argmax_augmented(oracle, i, theta, truth)
    index, value = calls.encode(task.parts, i, label)
    # Scores are large compared to the loss.
    np.add.at(theta, index, (1 + 4 * abs(loss)) * value)
    _, total, _ = calls.argmax_augmented(oracle, i, theta, truth)
    expected = float(theta[index] @ value)
    if total >= expected - ROUNDING * (abs(total) + abs(expected)):
        return None
    return (
        f"{type(oracle).__name__} returns a label that scores {total:g} with its loss, but a label "
        f"of another example scores {expected:g} without its loss"
    )
