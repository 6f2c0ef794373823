"""The loss of normalised hierarchical classification, as an object that estimators pass around."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..utils.params import Params


class PathCost(Params):
    """``sqrt(sum of weights over the nodes that only one of two leaves has above it or is)``.

    Parameters
    ----------
    weights : array of shape (n_nodes,)
        In the order of the nodes of the ``"dag"`` structure, whose labels must be single leaves.

    Examples
    --------
    >>> import networkx as nx
    >>> from structsolve import StructuredSVM
    >>> from structsolve.estimators.hierarchy import PathCost
    >>> from structsolve.plugins.dag import DagStructure
    >>> tree = nx.DiGraph([("root", "a"), ("root", "b")])
    >>> structure = DagStructure(tree, labels="single-leaf")
    >>> model = StructuredSVM(structure, loss=PathCost([0.5, 0.5, 0.5]))
    >>> model.fit([[-1.0], [1.0]], ["a", "b"]).predict([[2.0]]).tolist()
    ['b']
    """

    def __init__(self, weights: Any):
        self.weights = weights

    def bind(self, space: Any) -> Any:
        """Return what binds the native loss to packed examples of a space."""
        from ._path_loss import PathCosts, PathLoss

        if not getattr(space, "single", False):
            raise ValueError(
                f"PathCost is a loss between single leaves, which labels of the structure "
                f"{space.structure.name!r} are not; use DagStructure(..., labels='single-leaf')"
            )
        return partial(PathLoss, PathCosts(space.hierarchy, np.asarray(self.weights)))
