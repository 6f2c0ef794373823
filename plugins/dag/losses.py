"""Losses between sets of labels of a hierarchy: the weights of each name."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from structsolve.plugins.dag._losses import (
    CountLoss,
    HierarchicalLoss,
    WeightedHamming,
    ZeroOneLeaf,
    ZeroOneSet,
)
from structsolve.structure.losses import ClassWeights, LabelCount

#: Names of losses that only hierarchies have.
LOSSES = ("leaf", "hierarchical")


def bind_loss(space: Any, loss: Any) -> Any:
    """Return a factory for a task loss.

    Parameters
    ----------
    space : DagSpace
    loss : str, ClassWeights or LabelCount
        "hamming" counts nodes that are wrongly on or off, "normalized-hamming" is their share,
        "leaf" counts leaves; ClassWeights weigh nodes.  "hierarchical" charges a node only where
        its parents are right, and less at greater depth.  "zero-one" is 1 for every set but
        the true one.

    Returns
    -------
    callable or None
        None for other losses.

    Raises
    ------
    ValueError
        If weights or classes do not fit the hierarchy.
    """
    hierarchy, shape = space.hierarchy, space.shape
    M = len(hierarchy)
    if isinstance(loss, ClassWeights):
        weights = _class_weights(loss, hierarchy)
        if loss.normalized:
            weights = weights / M
        return partial(WeightedHamming, shape, weights, bool(loss.normalized))
    if isinstance(loss, LabelCount):
        if loss.background is not None:
            raise ValueError(
                f"micro-f1: background is {loss.background!r}, expected None: a label set counts "
                "the labels that are on"
            )
        return partial(CountLoss, shape)
    if not isinstance(loss, str):
        return None
    if loss in ("hamming", "normalized-hamming"):
        mean = loss != "hamming"
        return partial(WeightedHamming, shape, np.full(M, 1 / M if mean else 1.0), mean)
    if loss == "leaf":
        weights = np.zeros(M)
        weights[hierarchy.leaves] = 1
        return partial(WeightedHamming, shape, weights, False)
    if loss == "hierarchical":
        return partial(HierarchicalLoss, shape, hierarchy.sibling_weights())
    if loss == "zero-one":
        return partial(ZeroOneLeaf if space.single else ZeroOneSet, shape)
    return None


def _class_weights(loss: ClassWeights, hierarchy: Any) -> np.ndarray:
    if not isinstance(loss.weights, dict):
        raise ValueError(
            f"ClassWeights: weights is {loss.weights!r}, expected a dict of node to weight"
        )
    weights = np.ones(len(hierarchy))
    for name, weight in loss.weights.items():
        if name not in hierarchy.column:
            raise ValueError(f"ClassWeights: {name!r} is no node of the hierarchy")
        weights[hierarchy.column[name]] = weight
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("ClassWeights: expected finite weights of at least 0")
    return weights
