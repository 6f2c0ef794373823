"""The path over alpha: its start, at practically zero weights, its end, and the choice of alpha."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from ..solvers.passes import subgradient
from ..solvers.problem import Problem
from ..utils.arrays import real_array

#: Number of values of ``alphas="path"``, and the powers of ten that they span.
N_ALPHAS, DECADES = 15, 7
#: Maximum share of the objective at w = 0 that the best weights gain at the largest alpha.
GAIN = 0.01
#: Above this share of the objective at the largest alpha, training has changed almost nothing.
UNMOVED = 0.9
# The default if the data do not determine it.
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
        1 for kernels, whose problem has no such gradient, and if the gradient is 0.

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
    """Return the given values in descending order, or the number of values requested.

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
    expected = "expected 'path', a number of values to try, or a list of numbers above 0"
    if isinstance(alphas, str) and alphas == "path":
        return N_ALPHAS
    if isinstance(alphas, numbers.Integral) and not isinstance(alphas, (bool, np.bool_)):
        if alphas < 1:
            raise ValueError(f"alphas is {alphas!r}, {expected}")
        return int(alphas)
    try:
        values = np.unique(real_array(alphas, "alphas"))[::-1]
    except ValueError:
        values = np.empty(0)
    if np.ndim(alphas) == 0 or not values.size or not ((values > 0) & (values < np.inf)).all():
        raise ValueError(f"alphas is {alphas!r}, {expected}")
    return [float(value) for value in values]


def a_decade(count: int) -> int:
    """Return how many of the path's steps make a power of ten, rounded down to a power of two.

    Parameters
    ----------
    count : int
        Number of values over the path's seven powers of ten.

    Returns
    -------
    int
        1 if the values are further apart.

    Examples
    --------
    >>> [a_decade(count) for count in (1, 8, 14, 15, 30, 57)]
    [1, 1, 1, 2, 4, 8]
    """
    return 1 << max(0, ((count - 1) // DECADES).bit_length() - 1)


def best_of(scores: np.ndarray, objectives: np.ndarray) -> int:
    """Return the alpha with the best mean score over folds.

    Small folds often give equal scores.  Ties are broken in favour of alphas at which training
    gained a tenth of the objective; then of those whose neighbours score best, since an isolated
    peak is chance; then of the middle one, the smaller alpha of two.

    Parameters
    ----------
    scores : ndarray of shape (n_folds, n_alphas)
        Columns from the largest alpha to the smallest.
    objectives : ndarray of shape (n_folds, n_alphas)
        Objectives of training; NaN if unknown.

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

    While the weights are practically zero, scores vary by chance, so the path never ends before
    training has gained a tenth of the objective.  Then it ends once the scores have fallen from a
    best that exceeds the first by more than twice the standard error over the folds.  If the best
    does not exceed it (class means predict as well as anything), scores must stay below it twice as
    long, with an objective of at most half the first.  Once training rows are fitted, to a
    hundredth of the objective, or all fits end at ``max_iter``, scores that do not rise suffice:
    further fits are long and gain nothing.

    Parameters
    ----------
    scores : ndarray of shape (n_folds, n_alphas)
        Scores of the path so far, from the largest alpha.
    objectives : ndarray of shape (n_folds, n_alphas)
        Objectives of training; NaN if unknown.
    patience : int
        Number of consecutive values that must score below the best by more than the standard error
        of the difference, or no better than it if training rows are fitted or fits cut short.
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
    risen = exceeds(scores[:, best] - scores[:, 0], 2)
    # With one class the objective is 0 from the start, so no share of it can be gained.
    first, last = objectives[:, :1], objectives[:, -1 - patience :]
    shares = np.divide(last, first, out=np.ones_like(last), where=first != 0)
    spent = cut is not None and cut[:, -patience:].all() and (shares <= UNMOVED).all()
    long = patience if risen or spent else 2 * patience
    if count - 1 - best < long:
        return False
    if spent or (risen and (shares[:, -patience:] <= GAIN).all()):
        return True
    if (shares > UNMOVED).any() or not (risen or (shares <= 0.5).all()):
        return False
    return all(exceeds(scores[:, best] - scores[:, k], 1) for k in range(count - long, count))


def exceeds(differences: np.ndarray, times: float) -> bool:
    """Return whether the mean over folds exceeds this many standard errors.

    Parameters
    ----------
    differences : ndarray of shape (n_folds,)
    times : float

    Returns
    -------
    bool

    Examples
    --------
    >>> exceeds(np.array([0.1, 0.2, 0.1]), 2), exceeds(np.array([0.1, 0.2, -0.1]), 2)
    (True, False)
    """
    return bool(differences.mean() > times * standard_error(differences) + 1e-9)


def paired(scores: np.ndarray) -> np.ndarray:
    """Return scores without gaps: what a fold missed is told by the folds before it.

    Folds differ more than alphas do, so a fold is expected to differ from its score at the best
    complete alpha as the folds known differ on average.

    Parameters
    ----------
    scores : ndarray of shape (n_folds, n_alphas)
        NaN where the last folds did not follow; at least one column is complete.

    Returns
    -------
    ndarray of shape (n_folds, n_alphas)

    Examples
    --------
    >>> paired(np.array([[0.5, 0.7], [0.4, 0.6], [np.nan, 0.9]])).round(6).tolist()
    [[0.5, 0.7], [0.4, 0.6], [0.7, 0.9]]
    """
    missing = np.isnan(scores)
    if not missing.any():
        return scores
    complete = scores[:, ~missing.any(axis=0)]
    best = complete[:, [int(np.argmax(complete.mean(axis=0).round(12)))]]
    return np.where(missing, best + np.nanmean(scores - best, axis=0), scores)


def standard_error(scores: np.ndarray) -> float:
    """Return the standard error of the mean over folds, 0 for one fold.

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
    """Return advice if the best alpha is the largest or smallest tried.

    Parameters
    ----------
    alphas : ndarray of shape (n_alphas,)
        The largest first.
    best : int
        Index of the best.
    from_zero : bool
        Whether the path starts at practically zero weights.

    Returns
    -------
    str
        Empty if there is no advice.
    """
    if len(alphas) == 1 or best not in (0, len(alphas) - 1):
        return ""
    side, more = ("small", alphas[-1] / 10) if best else ("larg", alphas[0] * 10)
    hint = f"try {side}er ones too, such as {more:.2g}"
    if not best and from_zero:
        hint = (
            "weights that are practically zero predict best: the features are almost "
            "uninformative, or the folds are too small; look at scores_"
        )
    return f"the best alpha, {alphas[best]:.3g}, is the {side}est of those tried; {hint}"
