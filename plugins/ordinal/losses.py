"""Losses of ordered classes: by distance, and every cost matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.examples.packed import Examples
from structsolve.structure.losses import ClassWeights, CostMatrix, LabelCount

#: Names that other structures do not know.
LOSSES = ("absolute", "normalized-absolute")


def cost_matrix(space: Any, examples: Examples, loss: Any) -> np.ndarray | None:
    """Return the costs ``[true, predicted]`` of classes, None for a loss that is not known.

    Costs by the kind of error alone have one more row, for labels that training did not see.
    """
    K = len(space.classes_)
    if isinstance(loss, str) and loss in ("hamming", "normalized-hamming", "zero-one"):
        return np.vstack([1 - np.eye(K), np.ones((1, K))])
    if isinstance(loss, str) and loss in LOSSES:
        ranks = np.arange(float(K))
        cost = np.abs(ranks[:, None] - ranks)
        if loss != "absolute":
            cost /= max(K - 1, 1)
    elif isinstance(loss, (CostMatrix, ClassWeights, LabelCount)):
        cost = loss.cost(space.classes_)
    else:
        return None
    unseen = np.flatnonzero(examples.labels == K)
    if unseen.size:
        name = loss if isinstance(loss, str) else type(loss).__name__
        raise ValueError(
            f"example {unseen[0]}: loss {name} has no costs for a label that was not seen in "
            "training; name all classes with OrdinalStructure(classes=[...]), or score with "
            "loss='hamming'"
        )
    return cost


def make_loss(space: Any, examples: Examples, loss: Any) -> Any:
    """Return the native loss called ``loss``, or None."""
    from structsolve.structure.node_losses import NodeLoss

    from structsolve.plugins.ordinal._oracle import ThresholdLoss
    from structsolve.plugins.ordinal.space import ThresholdSpace

    cost = cost_matrix(space, examples, loss)
    if cost is None:
        return None
    zero_one = isinstance(loss, str) and loss == "zero-one"
    if isinstance(space, ThresholdSpace):
        return ThresholdLoss(space.layout, examples.labels, cost, zero_one)
    layout = space.layout
    return NodeLoss(
        examples.labels,
        examples.label_offsets,
        cost,
        layout.shared_size,
        layout.node_size,
        zero_one=zero_one,
    )
