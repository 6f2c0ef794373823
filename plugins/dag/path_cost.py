"""The loss of normalised hierarchical classification, as an object for users."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from structsolve.examples.given import check_named
from structsolve.utils.params import Params


class PathCost(Params):
    """The root of the sum of weights of the nodes on only one of the paths to two leaves.

    A path holds a leaf and all its ancestors.

    Parameters
    ----------
    weights : array of shape (n_nodes,)
        In the order of the nodes of the ``"dag"`` structure, whose labels must be single leaves.

    Examples
    --------
    >>> import networkx as nx
    >>> from structsolve import StructuredSVM
    >>> from structsolve.plugins.dag import PathCost
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
        """Return a factory for the native loss.

        Parameters
        ----------
        space : Space
            Its labels must be single leaves of ``space.hierarchy``.

        Returns
        -------
        callable
            ``layout -> structsolve.operators.Loss``.

        Raises
        ------
        ValueError
            If labels are not single leaves, or the weights do not fit the hierarchy.
        """
        # Compiled, and loads scipy.sparse for hierarchies: deferred until a loss is bound.
        from structsolve.plugins.dag._path_loss import PathCosts, PathLoss

        if not getattr(space, "single", False):
            raise ValueError(
                f"PathCost is a loss between single leaves, which labels of the structure "
                f"{space.structure.name!r} are not; use DagStructure(..., labels='single-leaf')"
            )
        check_named(self.weights, space.hierarchy.nodes, None, "PathCost: weights", "nodes")
        return partial(PathLoss, PathCosts(space.hierarchy, np.asarray(self.weights)))
