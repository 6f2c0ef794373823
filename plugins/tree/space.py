"""Trees: labelings of trees and forests, one topology per example.

Compiled modules are imported where operators are made: listing structures needs none of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from structsolve.examples.packed import Examples
from structsolve.examples.packing import no_topology, size_offsets
from structsolve.plugins.mrf.tables.networks import (
    by_node,
    by_node_one,
    check_attributes,
    in_order,
    is_labelled_by_node,
)
from structsolve.plugins.tree.trees import stack_trees
from structsolve.structure.labelings import LabelingSpace, LabelingStructure
from structsolve.utils.params import parameters


class TreeSpace(LabelingSpace):
    """Trees over given classes and features.

    Parameters
    ----------
    structure : TreeStructure
    classes : ndarray of shape (K,)
        Sorted.
    n_features : int
        Number of features of a node.
    n_edge_features : int or None
        None: edges have no features.
    intercept : bool
        Nodes get a constant feature.
    """

    def mask(
        self, examples: Examples, allowed: Any = None, forbidden: Any = None
    ) -> dict[str, Any]:
        """Return masks of scores that forbid labels and pairs of labels.

        Parameters
        ----------
        examples : Examples
        allowed : list, optional
            Per example a list with the allowed labels of each node; None for all.
        forbidden : list, optional
            Pairs (parent's label, child's label).

        Returns
        -------
        dict of str to ndarray
            0 and -inf: of shape (nodes, K) for "node", of shape (K, K) for "transition".

        Raises
        ------
        ValueError
            For unknown labels, and for pairs where there are no transitions.
        """
        return self.transition_masks(
            examples, allowed, forbidden, "(parent's label, child's label)"
        )

    def pack_sizes(self, sizes: Any, **topology: Any) -> Examples:
        """Return trees of given numbers of nodes, without features.

        See :meth:`structsolve.Space.pack_sizes`.

        Parameters
        ----------
        sizes : sequence of int
            Nodes of each tree.
        **topology
            ``trees``: for each example the parents of its nodes, or its edges (parent, child), as
            in X.

        Returns
        -------
        Examples
            Rows of scores of edges are in the order of the nodes that have a parent.
        """
        no_topology({*topology} - {"trees"})
        offsets = size_offsets(sizes)
        trees: Any = topology.get("trees")
        if not hasattr(trees, "__len__") or len(trees) != len(offsets) - 1:
            given = f"{len(trees)} of them" if hasattr(trees, "__len__") else repr(trees)
            raise ValueError(f"trees: found {given}, expected one for each of {len(offsets) - 1}")
        rows = [np.zeros((size, 1)) for size in np.diff(offsets).tolist()]
        examples = stack_trees([(row, tree) for row, tree in zip(rows, trees)], self.structure)
        examples.nodes = None
        return examples

    def pack(self, X: Any, Y: Any = None, unseen: str = "error") -> Examples:
        """Pack X and Y, whose labels may be by node; see :meth:`structsolve.Space.pack`."""
        if is_labelled_by_node(Y):
            Y = in_order(Y, self.stack(X), self.structure.node_labels)
        return super().pack(X, Y, unseen)

    def unpack(self, flat: np.ndarray, examples: Examples) -> Any:
        """Return the labels of all nodes, by node for examples that came as networkx graphs."""
        return by_node(super().unpack(flat, examples), examples)

    def unpack_one(self, label: np.ndarray, examples: Examples, i: int) -> Any:
        """Return one label, as :meth:`unpack`."""
        return by_node_one(super().unpack_one(label, examples, i), examples, i)


@parameters
class TreeStructure(LabelingStructure):
    """Labelings of trees, or of forests, one per example.

    Parameters
    ----------
    transitions : bool, default=True
        Learn one score per pair of states of parent and child, shared by all edges.
    root : bool, default=True
        Learn a score per class for roots.
    node_features, edge_features : str or list of str, default="features"
        Attributes of networkx graphs that hold features: numbers or vectors.  Several
        attributes are concatenated.
    node_labels : str, default="label"
        Attribute that holds the labels of nodes, if y is a list of networkx graphs.

    Notes
    -----
    X is a list with one tree per example: a pair ``(node_features, tree)`` or a triple
    ``(node_features, tree, edge_features)``, or a networkx graph.  ``tree`` is an array with the
    parent of every node, -1 at roots; or an array of shape (edges, 2) of pairs (parent, child).
    A networkx DiGraph has its edges from parents to children; a Graph is rooted at the first node
    of each tree (as :func:`root_tree` does for arrays).  Its edges need no features.  Its labels
    may be dicts by node, or the graph itself (``node_labels``), and predictions are dicts.  Rows of
    ``edge_features`` are in the order of the edges; with parents, in the order of the nodes that
    have one.  They score the pairs of states of parent and child, on top of the shared transitions.
    Y is a list of label sequences, strings or integers, one label per node.

    Every oracle and projection is exact, and takes time in proportion to the nodes, for trees of
    any depth or width.

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve import StructuredSVM
    >>> X = [
    ...     (np.array([[2.0], [0.1], [-0.1]]), [-1, 0, 0]),          # node 0 and its two children
    ...     (np.array([[0.1], [-2.0], [-0.1]]), [[1, 0], [1, 2]]),   # the same shape, by edges
    ... ]
    >>> Y = [["on", "on", "on"], ["off", "off", "off"]]
    >>> model = StructuredSVM("tree", alpha=0.01).fit(X, Y)
    >>> [y.tolist() for y in model.predict(X)]
    [['on', 'on', 'on'], ['off', 'off', 'off']]
    """

    name = "tree"
    takes_marginals = True
    layouts = {"transitions": (True, False), "root": (True, False)}
    space_type = TreeSpace

    transitions: bool = True
    root: bool = True
    node_features: Any = "features"
    edge_features: Any = "features"
    node_labels: str = "label"

    def make_space(
        self, X: Any, Y: Any, classes: Any = None, fit_intercept: bool = True
    ) -> tuple[Any, Examples]:
        """Learn classes and numbers of features; see :meth:`structsolve.Structure.make_space`."""
        check_attributes(self)
        if is_labelled_by_node(Y):
            Y = in_order(Y, self.stack(X), self.node_labels)
        return super().make_space(X, Y, classes, fit_intercept)

    def stack(
        self, X: Any, n_features: int | None = None, n_edge_features: int | None = None
    ) -> Examples:
        """Return packed trees without labels."""
        return stack_trees(X, self, n_features, n_edge_features)

    def ends(self) -> tuple[str, ...]:
        """Return the names of the blocks of roots."""
        return ("root",) if self.root else ()

    def sample(self, random_state: Any, n: int = 4, size: int = 3) -> tuple[Any, Any]:
        """Return small random forests, their nodes in any order."""
        rng = np.random.default_rng(random_state)
        X, Y = [], []
        for _ in range(n):
            V = int(rng.integers(1, size + 2))
            name = rng.permutation(V)
            parents = np.full(V, -1)
            for v in range(1, V):
                parents[name[v]] = name[rng.integers(v)] if rng.random() < 0.85 else -1
            X.append((rng.integers(-2, 3, (V, 2)).astype(float), parents))
            Y.append(rng.integers(0, 3, V))
        return X, Y
