"""Values of alpha to try: from where the weights are practically zero, and when to stop."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from ..solvers.passes import subgradient
from ..solvers.problem import Problem

#: Values of ``alphas="path"``, and how many powers of ten they span.
N_ALPHAS, DECADES = 15, 7
#: Share of the objective at w = 0 that the best weights gain at the largest alpha, at most.
GAIN = 0.01
# Where the data do not tell.
LARGEST = 1.0


def largest_alpha(problem: Problem, n_jobs: int = 1) -> float:
    """Return the alpha beyond which training changes next to nothing.

    With a subgradient ``-g`` of the mean surrogate ``R`` at ``w = 0`` convexity gives
    ``alpha/2 ||w||^2 + R(w) >= R(0) - ||g||^2 / (2 alpha)``: at
    ``alpha = ||g||^2 / (2 d R(0))`` the best weights gain at most the share ``d`` of the
    objective, 1 %.

    Parameters
    ----------
    problem : Problem
    n_jobs : int, default=1

    Returns
    -------
    float
        1 under a kernel, whose problem has no such gradient, and where it is 0.

    Examples
    --------
    >>> import structsolve
    >>> X, y = [[1.0], [-1.0]], ["a", "b"]
    >>> space, examples = structsolve.get_structure("multiclass").make_space(X, y)
    >>> round(largest_alpha(structsolve.Problem(space, examples)), 6)    # ||g||^2 = 2, R(0) = 1
    100.0
    """
    if problem.kernel is not None:
        return LARGEST
    g, _, bounds, _ = subgradient(problem, np.zeros(problem.dim), n_jobs)
    if problem.penalty is not None:
        g = g * problem.penalty
    squared, value = float(g @ g), float(problem.weights @ bounds)
    if not (squared > 0 and value > 0):
        return LARGEST
    return squared / (2 * GAIN * value)


def given_alphas(alphas: Any) -> list[float] | int:
    """Return the values that users list, the largest first, or how many they ask for.

    Parameters
    ----------
    alphas : {"path"}, int or sequence of float

    Returns
    -------
    list of float, or int

    Raises
    ------
    ValueError
        For anything else.
    """
    expected = "expected 'path', how many, or a list of numbers above 0"
    if isinstance(alphas, str) and alphas == "path":
        return N_ALPHAS
    if isinstance(alphas, numbers.Integral) and not isinstance(alphas, (bool, np.bool_)):
        if alphas < 1:
            raise ValueError(f"alphas is {alphas!r}, {expected}")
        return int(alphas)
    try:
        values = np.unique(np.asarray(alphas, dtype=np.float64))[::-1]
    except (TypeError, ValueError):
        values = np.empty(0)
    if np.ndim(alphas) == 0 or not values.size or not ((values > 0) & (values < np.inf)).all():
        raise ValueError(f"alphas is {alphas!r}, {expected}")
    return [float(value) for value in values]


def best_of(scores: np.ndarray) -> int:
    """Return which alpha scores best in the mean over folds; of equal ones the largest alpha.

    Parameters
    ----------
    scores : ndarray of shape (n_folds, n_alphas)
        Columns from the largest alpha to the smallest.

    Returns
    -------
    int

    Examples
    --------
    >>> import numpy as np
    >>> best_of(np.array([[0.5, 0.9, 0.9], [0.5, 0.7, 0.7]]))
    1
    """
    return int(np.argmax(scores.mean(axis=0).round(12)))


def has_fallen(scores: np.ndarray, patience: int) -> bool:
    """Tell whether the scores have passed their best for good.

    Parameters
    ----------
    scores : ndarray of shape (n_folds, n_alphas)
        Of the path up to here.
    patience : int
        How many values in a row must score below the best, the last by more than the standard
        error of its difference to the best over the folds.

    Returns
    -------
    bool

    Examples
    --------
    >>> import numpy as np
    >>> path = np.array([[0.4, 0.9, 0.8, 0.7], [0.5, 0.8, 0.7, 0.6]])
    >>> has_fallen(path, 2), has_fallen(path[:, :3], 2), has_fallen(path, 3)
    (True, False, False)
    """
    best = best_of(scores)
    if scores.shape[1] - 1 - best < patience:
        return False
    mean = scores.mean(axis=0)
    lost = scores[:, best] - scores[:, -1]
    error = lost.std(ddof=1) / np.sqrt(len(lost)) if len(lost) > 1 else 0.0
    return bool((mean[-patience:] < mean[best]).all() and lost.mean() > error)
