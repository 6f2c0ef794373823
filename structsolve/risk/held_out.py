"""Held-out losses of conditional risk minimisers: leaving one out, or folds, for any alpha."""

from __future__ import annotations

from typing import Any

import numpy as np

from .ridge import FeatureSmoother, KernelSmoother
from .targets import PartTargets


def held_out_loss(model: Any, alpha: float, gram: Any, folds: dict[int, Any]) -> float:
    """Return the mean loss of predictions for training examples that are left out.

    Parameters
    ----------
    model : ConditionalRiskMinimizer
        With its factorisation.
    alpha : float
    gram : ndarray or None
        The kernel matrix; None where the model is one of features.
    folds : dict
        Keeps the factorisations of folds from one alpha to the next.
    """
    targets, n = model._targets, model._targets.n
    if model.cv is not None and model.cv > n:
        raise ValueError(f"cv is {model.cv}, expected at most the {n} examples")
    if model._joint is not None:
        theta, constants = joint_scores(model, alpha, gram, folds)

        def scores(first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
            return theta[first:last], constants[first:last]

    else:
        weights = held_out_weights(model, alpha, gram, folds)

        def scores(first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
            return targets.scores(weights[first:last])

    if isinstance(targets, PartTargets):
        labels, _ = targets.decode(scores, targets.examples, model.n_jobs)
    else:
        labels, _ = targets.decode(weights, model.n_jobs)
    return float(targets.losses(labels).mean())


def held_out_weights(model: Any, alpha: float, gram: Any, folds: dict[int, Any]) -> np.ndarray:
    """Return weights of the training examples for each of them, 0 where they are left out."""
    if model.cv is None:
        return model._smoother.left_out(alpha)
    n = model._targets.n
    weights = np.zeros((n, n))
    for smoother, features, rest, out in fold_smoothers(model, gram, folds):
        weights[np.ix_(out, rest)] = smoother.weights(features, alpha)
    return weights


def joint_scores(
    model: Any, alpha: float, gram: Any, folds: dict[int, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Return part scores, and constants, of every training example where it is left out."""
    targets, costs = model._targets, model._costs
    theta, constants = np.zeros((targets.n, targets.size)), np.zeros(targets.n)
    for smoother, features, rest, out in fold_smoothers(model, gram, folds):
        joint = model._joint.of_fold(smoother)
        some = costs[0][rest], costs[1][rest]
        theta[out], constants[out] = model._joint_scores(joint, some, features, alpha)
    return theta, constants


def fold_smoothers(model: Any, gram: Any, folds: dict[int, Any]) -> list[Any]:
    """Return, fold by fold: what training on the rest gives, features of the fold, rest, fold."""
    if not folds:
        numbers = np.arange(model._targets.n)
        intercept = bool(model.fit_intercept)
        for k, out in enumerate(np.array_split(numbers, model.cv)):
            rest = np.setdiff1d(numbers, out)
            if gram is None:
                Z = model._smoother.Z
                folds[k] = FeatureSmoother(Z[rest], intercept), Z[out], rest, out
            else:
                inner = KernelSmoother(gram[np.ix_(rest, rest)], intercept)
                folds[k] = inner, gram[np.ix_(out, rest)], rest, out
    return list(folds.values())
