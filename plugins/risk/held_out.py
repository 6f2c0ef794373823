"""Held-out losses of conditional risk minimisers: leaving one out, or folds, for any alpha."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from structsolve.plugins.risk.ridge import FeatureSmoother, KernelSmoother
from structsolve.plugins.risk.targets import PartTargets


def held_out_loss(model: Any, alpha: float, gram: Any, folds: dict[int, Any]) -> float:
    """Return the mean loss of predictions for training examples that are left out.

    Parameters
    ----------
    model : ConditionalRiskMinimizer
        With its factorisation.
    alpha : float
    gram : ndarray of shape (n, n) or None
        The kernel matrix; None for models on features.
    folds : dict
        Cache of the folds' factorisations, shared by all alphas.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If there are more folds than examples.
    """
    targets = model._targets
    if model.cv is not None and model.cv > targets.n:
        raise ValueError(f"cv is {model.cv}, expected at most the {targets.n} examples")
    if not isinstance(targets, PartTargets):
        labels, _ = targets.decode(_weights(model, alpha, gram, folds), model.n_jobs)
        return float(targets.losses(labels).mean())
    score: Any = targets.scores_of
    if model._joint is not None:
        rows: tuple[np.ndarray, ...] = _joint_scores(model, alpha, gram, folds)
        score = _unchanged
    elif model.cv is not None and targets.size < targets.n:
        rows = _averages(model, alpha, gram, folds)
    else:
        rows = (_weights(model, alpha, gram, folds),)
        score = targets.scores

    def scores(first: int, last: int) -> Any:
        return score(*(array[first:last] for array in rows))

    labels, _ = targets.decode(scores, targets.examples, model.n_jobs)
    return float(targets.losses(labels).mean())


def _unchanged(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    return arrays


def _weights(model: Any, alpha: float, gram: Any, folds: dict[int, Any]) -> np.ndarray:
    """Return the weights at every training example, 0 for the examples left out."""
    if model.cv is None:
        return model._smoother.left_out(alpha)
    weights = np.zeros((model._targets.n, model._targets.n))
    for fold in _folds(model, gram, folds):
        weights[np.ix_(fold.out, fold.rest)] = fold.smoother.weights_at(fold.projected, alpha)
    return weights


def _averages(
    model: Any, alpha: float, gram: Any, folds: dict[int, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Return weighted sums of indicators, and of 1, for every example, left out."""
    averages = np.zeros((model._targets.n, model._targets.size + 1))
    for fold in _folds(model, gram, folds):
        averages[fold.out] = fold.smoother.averages_at(fold.projected, fold.outputs, alpha)
    return averages[:, :-1], averages[:, -1]


def _joint_scores(
    model: Any, alpha: float, gram: Any, folds: dict[int, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Return part scores and constants of every training example, left out."""
    targets, costs = model._targets, model._costs
    theta, constants = np.zeros((targets.n, targets.size)), np.zeros(targets.n)
    for fold in _folds(model, gram, folds):
        joint = model._joint.of_fold(fold.smoother)
        some = costs[0][fold.rest], costs[1][fold.rest]
        theta[fold.out], constants[fold.out] = model._joint_scores(
            joint, some, fold.features, alpha
        )
    return theta, constants


@dataclass
class _Fold:
    """Training without some of the examples, for any lambda.

    Parameters
    ----------
    smoother : KernelSmoother or FeatureSmoother
        Smoother of the remaining examples.
    features : ndarray
        Features of the examples left out: kernel values with the rest, or features.
    rest, out : ndarray of int
        Numbers of the remaining examples, and of those left out.
    indicators : csr_matrix
        Indicators of all examples' labels, and a column of ones.
    """

    smoother: Any
    features: np.ndarray
    rest: np.ndarray
    out: np.ndarray
    indicators: Any

    @cached_property
    def projected(self) -> np.ndarray:
        """The projected features, valid for any lambda."""
        return self.smoother.projected(self.features)

    @cached_property
    def outputs(self) -> Any:
        """Indicators of the remaining examples, in the smoother's form."""
        return self.smoother.outputs(self.indicators[self.rest])


def _folds(model: Any, gram: Any, folds: dict[int, _Fold]) -> list[_Fold]:
    """Return the folds, shared by all lambda."""
    if not folds:
        numbers = np.arange(model._targets.n)
        intercept = bool(model.fit_intercept)
        indicators = getattr(model._targets, "mu_and_one", None)
        for k, out in enumerate(np.array_split(numbers, model.cv)):
            rest = np.setdiff1d(numbers, out)
            if gram is None:
                Z = model._smoother.Z
                smoother: Any = FeatureSmoother(Z[rest], intercept)
                features = Z[out]
            else:
                smoother = KernelSmoother(gram[np.ix_(rest, rest)], intercept)
                features = gram[np.ix_(out, rest)]
            folds[k] = _Fold(smoother, features, rest, out, indicators)
    return list(folds.values())
