"""Losses of ordered classes: by distance, and by cost matrices.

Compiled modules are imported where operators are made: listing structures needs none of them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from structsolve.structure.losses import ClassWeights, CostMatrix, LabelCount, refuse_costs

#: Names of losses that only ordered classes have.
LOSSES = ("absolute", "normalized-absolute")

ADVICE = "name all classes with OrdinalStructure(classes=[...]), or score with loss='hamming'"


def _cost_matrix(space: Any, loss: Any) -> np.ndarray | None:
    """Return the costs ``[true, predicted]`` of classes, None for an unknown loss.

    Costs that depend only on the kind of error have one more row, for labels unseen in training.
    """
    K = len(space.classes_)
    if isinstance(loss, (CostMatrix, ClassWeights, LabelCount)):
        return loss.cost(space.classes_)
    if not isinstance(loss, str):
        return None
    from structsolve.structure.node_losses import hamming_costs

    if loss in ("hamming", "normalized-hamming", "zero-one"):
        return hamming_costs(K)
    if loss not in LOSSES:
        return None
    refuse_costs(K)
    ranks = np.arange(float(K))
    cost = np.abs(ranks[:, None] - ranks)
    return cost if loss == "absolute" else cost / max(K - 1, 1)


def node_costs(space: Any, loss: Any) -> Any:
    """Return the checked costs of a loss of ordered classes, in their layout.

    Parameters
    ----------
    space : NodeSpace
        Its classes run from the lowest to the highest.
    loss : str, CostMatrix, ClassWeights or LabelCount

    Returns
    -------
    NodeCosts
        None for an unknown loss.
    """
    from structsolve.structure.node_losses import NodeCosts

    cost = _cost_matrix(space, loss)
    if cost is None:
        return None
    name = loss if isinstance(loss, str) else type(loss).__name__
    return NodeCosts(cost, zero_one=name == "zero-one", name=name, advice=ADVICE)


def bind_loss(space: Any, loss: Any) -> Any:
    """Return a factory for a loss of ordered classes.

    Parameters
    ----------
    space : OrderedLabels
    loss : str, CostMatrix, ClassWeights or LabelCount

    Returns
    -------
    callable or None
        None for an unknown loss.
    """
    costs = node_costs(space, loss)
    if costs is None:
        return None
    if space.steps:  # costs of thresholds
        from structsolve.plugins.ordinal._losses import ThresholdCosts, ThresholdLoss

        return partial(ThresholdLoss, ThresholdCosts(costs))
    from structsolve.structure.node_losses import NodeLoss

    return partial(NodeLoss, costs)
