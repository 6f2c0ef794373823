"""Detection of models that have collapsed, by their predictions of training examples."""

from __future__ import annotations

import numpy as np

from ..potentials.calls import score
from ..solvers.problem import Problem
from ..structure import calls

# Examples that are looked at, and how few tell nothing.
LOOKED_AT, FEWEST = 100, 20
# Label sets: this many times more labels than are true count as a collapse.
TOO_MANY = 5


def collapse(problem: Problem, w: np.ndarray) -> str:
    """Return in words how a model has collapsed, "" where it has not.

    Up to 100 training examples are decoded.  A model has collapsed that gives all nodes one state
    where there are several, that turns on no label or five times as many as are true, or whose loss
    is not below that of weights of zero.

    Parameters
    ----------
    problem : Problem
    w : ndarray of shape (dim,)
        As a solver has it.

    Returns
    -------
    str
    """
    numbers = np.flatnonzero(problem.weights > 0)
    if len(numbers) < FEWEST:
        return ""
    numbers = np.unique(numbers[np.linspace(0, len(numbers) - 1, LOOKED_AT).astype(int)])
    zero = np.zeros(problem.dim)
    truths, labels, losses = [], [], np.zeros(2)
    for i in numbers.tolist():
        truth = problem.examples.label(i)
        for k, weights in enumerate((w, zero)):
            label, *_ = calls.argmax(problem.oracle, i, score(problem.potentials, i, weights))
            losses[k] += calls.loss_value(problem.loss, i, truth, label)
            if k == 0:
                truths.append(truth)
                labels.append(label)
    true, own = np.concatenate(truths), np.concatenate(labels)
    shown = f"for {len(numbers)} training examples"
    if getattr(problem.space.structure, "label_sets", False):
        size, right = own.sum() / len(numbers), true.sum() / len(numbers)
        if right > 0 and (size == 0 or size > TOO_MANY * right):
            return f"predicts {size:.3g} labels a row {shown}, where {right:.3g} are true"
    elif own.min() == own.max() and true.min() < true.max():
        classes = getattr(problem.space, "classes_", None)
        state = own[0] if classes is None or own[0] >= len(classes) else classes[own[0]]
        return f"predicts {state!s} alone {shown}, whose labels differ"
    if losses[1] > 0 and losses[0] >= losses[1]:
        return f"is no better {shown} than weights of zero"
    return ""
