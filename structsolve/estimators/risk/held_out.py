"""Held-out losses of conditional risk minimisers: leaving one out, or folds, for any alpha."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
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

    elif model.cv is not None and isinstance(targets, PartTargets) and targets.size < n:
        nu, total = held_out_averages(model, alpha, gram, folds)

        def scores(first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
            return targets.scores_of(nu[first:last], total[first:last])

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
    for fold in made_folds(model, gram, folds):
        found = fold.smoother.weights_at(fold.projected, alpha)
        weights[np.ix_(fold.out, fold.rest)] = found
    return weights


def held_out_averages(
    model: Any, alpha: float, gram: Any, folds: dict[int, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Return weighted sums of indicators, and of 1, for every example where it is left out."""
    targets = model._targets
    found = np.zeros((targets.n, targets.size + 1))
    for fold in made_folds(model, gram, folds):
        found[fold.out] = fold.smoother.averages_at(fold.projected, fold.outputs, alpha)
    return found[:, :-1], found[:, -1]


def joint_scores(
    model: Any, alpha: float, gram: Any, folds: dict[int, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Return part scores, and constants, of every training example where it is left out."""
    targets, costs = model._targets, model._costs
    theta, constants = np.zeros((targets.n, targets.size)), np.zeros(targets.n)
    for fold in made_folds(model, gram, folds):
        joint = model._joint.of_fold(fold.smoother)
        some = costs[0][fold.rest], costs[1][fold.rest]
        found = model._joint_scores(joint, some, fold.features, alpha)
        theta[fold.out], constants[fold.out] = found
    return theta, constants


@dataclass
class Fold:
    """What training without some of the examples gives for them, for any lambda.

    Parameters
    ----------
    smoother : KernelSmoother or FeatureSmoother
        Of the rest.
    features : ndarray
        Of the examples left out: kernel values with the rest, or features.
    rest, out : ndarray of int
        Numbers of the examples.
    indicators : csr_matrix
        Of all examples' labels, and 1.
    """

    smoother: Any
    features: np.ndarray
    rest: np.ndarray
    out: np.ndarray
    indicators: Any

    @cached_property
    def projected(self) -> np.ndarray:
        """The features as the smoother takes them at any lambda."""
        return self.smoother.projected(self.features)

    @cached_property
    def outputs(self) -> Any:
        """Indicators of the rest, as the smoother averages them."""
        return self.smoother.outputs(self.indicators[self.rest])


def made_folds(model: Any, gram: Any, folds: dict[int, Fold]) -> list[Fold]:
    """Return the folds, made once for all lambda."""
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
            folds[k] = Fold(smoother, features, rest, out, indicators)
    return list(folds.values())
