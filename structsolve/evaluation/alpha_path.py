"""The path over alpha: its start, where weights are practically zero, its end, and the choice."""

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
#: Share of the objective at the largest alpha above which training has changed next to nothing.
UNMOVED = 0.9
# Where the data do not tell.
LARGEST = 1.0


def largest_alpha(problem: Problem, n_jobs: int = 1) -> float:
    """Return the alpha above which weights are practically zero.

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
    """Return the given values, the largest first, or the number of values requested.

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
    expected = "expected 'path', how many values to try, or a list of numbers above 0"
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


def best_of(scores: np.ndarray, objectives: np.ndarray) -> int:
    """Return the alpha with the best mean score over folds.

    Small folds often give equal scores.  Of equal ones those count that training has gained a tenth
    of the objective with; of these the ones whose neighbours score best, as a bump beside bad
    scores is chance; and of several such the middle one, the smaller alpha of two.

    Parameters
    ----------
    scores : ndarray of shape (n_folds, n_alphas)
        Columns from the largest alpha to the smallest.
    objectives : ndarray of shape (n_folds, n_alphas)
        Objectives of training; NaN where they are not known.

    Returns
    -------
    int

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.array([[0.9, 0.5, 0.9, 0.6, 0.8, 0.9, 0.9, 0.9, 0.8]])
    >>> best_of(scores, np.array([[1.0, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]]))
    6
    """
    mean = scores.mean(axis=0).round(12)
    padded = np.pad(mean, 1, mode="edge")
    equal, around = mean == mean.max(), padded[:-2] + padded[2:]
    gained = equal & ~(objectives > UNMOVED * objectives[:, :1]).any(axis=0)
    around = np.where(gained if gained.any() else equal, around, -np.inf).round(10)
    places = np.flatnonzero(around == around.max())
    return int(places[len(places) // 2])


def is_over(
    scores: np.ndarray, objectives: np.ndarray, patience: int, cut: np.ndarray | None = None
) -> bool:
    """Return whether to stop the path before smaller values of alpha.

    While the weights are practically zero the scores move by chance, and no dip there is an end.
    So nothing is over before training has gained a tenth of the objective; then the path is over
    once the scores have fallen from a best that lies above the first by more than twice the
    standard error over the folds.  Of a best that does not (class means predict as well as
    anything), they must stay below it twice as long, with an objective of at most half the first.
    Once training rows are fitted, to a hundredth of the objective, or all fits end at ``max_iter``,
    scores that do not rise are enough: fits are long there, and win nothing.

    Parameters
    ----------
    scores : ndarray of shape (n_folds, n_alphas)
        Scores of the path so far, from the largest alpha.
    objectives : ndarray of shape (n_folds, n_alphas)
        Objectives of training; NaN where they are not known.
    patience : int
        How many values in a row must score below the best by more than the standard error of the
        difference, or no better than it where training rows are fitted or fits cut short.
    cut : ndarray of bool of shape (n_folds, n_alphas), optional
        Which fits ended at ``max_iter``.

    Returns
    -------
    bool

    Examples
    --------
    >>> import numpy as np
    >>> path = np.array([[0.4, 0.9, 0.8, 0.7], [0.4, 0.8, 0.7, 0.6], [0.4, 0.8, 0.7, 0.6]])
    >>> objectives = np.tile([1.0, 0.5, 0.4, 0.3], (3, 1))
    >>> [is_over(path[:, :k], objectives[:, :k], 2) for k in (1, 2, 3, 4)]
    [False, False, False, True]
    """
    best, count = int(np.argmax(scores.mean(axis=0).round(12))), scores.shape[1]
    risen = _exceeds(scores[:, best] - scores[:, 0], 2)
    # With one class alone the objective is 0 from the start, and no share of it can be gained.
    first, last = objectives[:, :1], objectives[:, -1 - patience :]
    shares = np.divide(last, first, out=np.ones_like(last), where=first != 0)
    spent = cut is not None and cut[:, -patience:].all() and (shares <= UNMOVED).all()
    long = patience if risen or spent else 2 * patience
    if count - 1 - best < long:
        return False
    if spent or (risen and (shares <= GAIN).all()):
        return True
    if (shares > UNMOVED).any() or not (risen or (shares <= 0.5).all()):
        return False
    return all(_exceeds(scores[:, best] - scores[:, k], 1) for k in range(count - long, count))


def _exceeds(differences: np.ndarray, times: float) -> bool:
    """Return whether the mean over folds exceeds this many standard errors."""
    return bool(differences.mean() > times * standard_error(differences) + 1e-9)


def standard_error(scores: np.ndarray) -> float:
    """Return the standard error of the mean of folds, 0 for one alone.

    Parameters
    ----------
    scores : ndarray of shape (n_folds,)

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> standard_error(np.array([0.0, 1.0]))
    0.5
    """
    return float(scores.std(ddof=1) / np.sqrt(len(scores))) if len(scores) > 1 else 0.0


def chosen_text(alphas: np.ndarray, scores: np.ndarray, chosen: float, scoring: str) -> str:
    """Return a sentence that names the chosen alpha and the score that chose it.

    Parameters
    ----------
    alphas : ndarray of shape (n_alphas,)
    scores : ndarray of shape (n_folds, n_alphas)
    chosen : float
        One of the alphas.
    scoring : str
        Name of the score.

    Returns
    -------
    str
    """
    best = scores[:, alphas == chosen][:, 0]
    return (
        f"alpha {chosen:.4g} of {len(alphas)} tried, by {scoring}: "
        f"{best.mean():.4f} +- {standard_error(best):.4f} over {len(best)} folds"
    )


def end_text(alphas: np.ndarray, best: int, from_zero: bool) -> str:
    """Return what to do where the best alpha lies at an end of those tried.

    Parameters
    ----------
    alphas : ndarray of shape (n_alphas,)
        The largest first.
    best : int
        Place of the best.
    from_zero : bool
        They begin where the weights are practically zero.

    Returns
    -------
    str
        Empty where there is nothing to say.
    """
    if len(alphas) == 1 or best not in (0, len(alphas) - 1):
        return ""
    side, more = ("small", alphas[-1] / 10) if best else ("larg", alphas[0] * 10)
    hint = f"try {side}er ones too, such as {more:.2g}"
    if not best and from_zero:
        hint = (
            "weights that are practically zero predict best: the features tell next to nothing of "
            "the labels, or the folds are too small to tell; look at scores_"
        )
    return f"the best alpha, {alphas[best]:.3g}, is the {side}est of those tried; {hint}"
