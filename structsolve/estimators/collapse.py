"""Detection of models that have collapsed, by their predictions of training examples."""

from __future__ import annotations

import numpy as np

from ..solvers.problem import Problem
from .decode import sample_labels

# Number of examples checked, and the number below which the check is skipped.
LOOKED_AT, FEWEST = 100, 20
# Label sets: predicting this many times the number of true labels counts as a collapse.
TOO_MANY = 5


def collapse(problem: Problem, w: np.ndarray) -> str:
    """Describe how a model has collapsed; "" if it has not.

    Up to 100 training examples are decoded.  A model has collapsed if it predicts one state for all
    nodes although the labels differ, predicts no label or more than five times the number of true
    labels, or has no smaller loss than zero weights.

    Parameters
    ----------
    problem : Problem
    w : ndarray of shape (dim,)
        Weights in the solver's form.

    Returns
    -------
    str
    """
    numbers = np.flatnonzero(problem.weights > 0)
    if len(numbers) < FEWEST:
        return ""
    numbers = np.unique(numbers[np.linspace(0, len(numbers) - 1, LOOKED_AT).astype(int)])
    true = np.concatenate([problem.examples.label(i) for i in numbers.tolist()])
    given = problem.potentials, problem.oracle, problem.loss
    own, loss = sample_labels(*given, w, numbers, true)
    _, loss_of_zero = sample_labels(*given, np.zeros(problem.dim), numbers, true)
    shown = f"for {len(numbers)} training examples"
    if getattr(problem.space.structure, "label_sets", False):
        size, right = own.sum() / len(numbers), true.sum() / len(numbers)
        if right > 0 and (size == 0 or size > TOO_MANY * right):
            return f"predicts {size:.3g} labels a row {shown}, where {right:.3g} are true"
    elif own.min() == own.max() and true.min() < true.max():
        classes = getattr(problem.space, "classes_", None)
        state = own[0] if classes is None or own[0] >= len(classes) else classes[own[0]]
        return f"predicts {state!s} alone {shown}, whose labels differ"
    if loss >= loss_of_zero > 0:
        return f"is no better {shown} than weights of zero"
    return ""
