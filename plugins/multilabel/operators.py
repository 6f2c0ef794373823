"""Operators of label sets in addition to those of graphs: the gain of each label, and losses.

Compiled modules are imported where operators are made: listing structures needs none of them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from structsolve.plugins.mrf.graph_operators import bind_oracle, bind_power
from structsolve.structure.losses import ClassWeights, CostMatrix, LabelCount


def bind_worths(space: Any, layout: Any) -> Any:
    """Return the operator of each label's gain in score, as max-marginals.

    Parameters
    ----------
    space : MultilabelSpace
    layout : PartLayout

    Returns
    -------
    structsolve.operators.MaxMarginals
    """
    from structsolve.plugins.multilabel._oracle import LabelSetWorths

    best = bind_power(space, "max-marginals", layout)
    oracle = bind_oracle(space, layout) if best is None else None
    return LabelSetWorths(best, oracle, space.edges_, layout)


def bind_loss(loss: Any) -> Any:
    """Return a factory for a loss of label sets.

    Parameters
    ----------
    loss : {"hamming", "normalized-hamming", "zero-one"}, CostMatrix, ClassWeights or LabelCount
        Objects count a label of a set as a node of class 1 (on) or 0 (off).

    Returns
    -------
    callable or None

    Raises
    ------
    ValueError
        For a LabelCount with a background, which label sets do not have.
    """
    from structsolve.plugins.multilabel._losses import LabelSetCount, LabelSetHamming
    from structsolve.structure.node_losses import ZeroOneLoss

    if isinstance(loss, LabelCount):
        if loss.background is not None:
            raise ValueError(
                f"micro-f1: background is {loss.background!r}, expected None: a label set "
                "counts the labels that are on"
            )
        return LabelSetCount
    if isinstance(loss, (CostMatrix, ClassWeights)):
        costs = loss.cost(np.array([0, 1]))
        return partial(LabelSetHamming, loss.normalized, costs[1, 0], costs[0, 1])
    if loss in ("hamming", "normalized-hamming"):
        return partial(LabelSetHamming, loss != "hamming", 1.0, 1.0)
    return ZeroOneLoss if loss == "zero-one" else None
