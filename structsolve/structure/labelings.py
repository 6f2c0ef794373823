"""Structures that label all nodes by the same classes, with scores of pairs: chains and trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..examples import labels
from ..examples.packed import Examples
from ..potentials.weight_layout import Block, WeightLayout
from .base import Structure
from .node_space import NodeSpace
from .weighted_labels import split_weights, weigh_nodes


class LabelingStructure(Structure):
    """Labelings of nodes, with one transition table for all edges.

    Subclasses have a parameter ``transitions``, set ``space_type``, and define ``stack`` and
    ``ends``.
    """

    #: The class of its spaces.
    space_type: type[LabelingSpace]

    def stack(
        self, X: Any, n_features: int | None = None, n_edge_features: int | None = None
    ) -> Examples:
        """Pack X.

        Parameters
        ----------
        X : data as users give it
        n_features, n_edge_features : int, optional
            Expected numbers of columns, if known; then ``n_edge_features=None`` means that edges
            have no features.

        Returns
        -------
        Examples
            Without labels.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement stack()")

    def ends(self) -> tuple[str, ...]:
        """Return names of blocks with a score per class for some nodes only.

        Returns
        -------
        tuple of str
        """
        return ()

    def make_space(
        self, X: Any, Y: Any, classes: Any = None, fit_intercept: bool = True
    ) -> tuple[LabelingSpace, Examples]:
        """Learn classes and numbers of features, and pack the training data.

        See :meth:`structsolve.Structure.make_space`. ``Y``: list of label sequences, or of
        :class:`~structsolve.WeightedLabels`. ``fit_intercept``: nodes get a constant feature.

        Raises
        ------
        ValueError
            For features and labels that do not fit each other, or the structure.
        """
        examples = self.stack(X)
        Y, weights = split_weights(Y, examples.offsets)
        flat = labels.flatten(Y, examples.offsets)
        n_edge = None if examples.edges is None else examples.edges.shape[1]
        names = labels.learn_classes(flat, classes)
        space = self.space_type(self, names, examples.nodes.shape[1], n_edge, fit_intercept)
        examples.labels = space.encode(flat, examples.offsets)
        weigh_nodes(examples, weights)
        return space, examples

    def score_space(self, classes: Any = None, edge: bool = False) -> LabelingSpace:
        """Return a space without features; see :meth:`Structure.score_space`.

        Parameters
        ----------
        classes : int or sequence
            The number of states, or their sorted names.
        edge : bool
            Each edge has its own table of scores, in addition to the shared one.
        """
        names = labels.class_names(classes, self.name)
        return self.space_type(self, names, 0, 0 if edge else None, False)

    def space_from_state(
        self, state: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> LabelingSpace:
        """Rebuild a space from its ``state()``."""
        sizes = state["n_features"], state["n_edge_features"], state["intercept"]
        return self.space_type(self, arrays["classes"], *sizes)


class LabelingSpace(NodeSpace):
    """Labelings over given classes and features.

    Parameters
    ----------
    structure : LabelingStructure
    classes : ndarray of shape (K,)
        Sorted.
    n_features : int
        Number of features of a node.
    n_edge_features : int or None
        None: edges have no features.
    intercept : bool
        Nodes get a constant feature.
    """

    def __init__(
        self,
        structure: LabelingStructure,
        classes: np.ndarray,
        n_features: int,
        n_edge_features: int | None,
        intercept: bool,
    ):
        K, pair = len(classes), ("class", "class")
        blocks = [Block(name, "shared", (K,), ("class",)) for name in structure.ends()]
        if structure.transitions:  # type: ignore[attr-defined]
            blocks.insert(0, Block("transition", "shared", (K, K), pair))
        blocks.append(Block("node", "node", (K,), ("class",)))
        if n_edge_features is not None:
            blocks.append(Block("edge", "edge", (K, K), pair))
        super().__init__(
            structure, WeightLayout(blocks, n_features, n_edge_features or 0, intercept), classes
        )
        self.n_edge_features = n_edge_features

    def stack(self, X: Any) -> Examples:
        """Return packed X, without labels."""
        return self.structure.stack(X, self.layout.n_features, self.n_edge_features)

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what ``space_from_state`` needs."""
        state, arrays = NodeSpace.state(self)
        return {**state, "n_edge_features": self.n_edge_features}, arrays
