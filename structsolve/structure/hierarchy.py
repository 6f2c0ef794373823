"""A hierarchy of nodes as arrays: what the rules for node weights ask of it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp


class Hierarchy:
    """A tree, forest or directed acyclic graph of nodes ``0 .. n_nodes - 1``.

    Parameters
    ----------
    n_nodes : int
    edges : array of shape (n_edges, 2)
        Pairs (parent, child).
    names : sequence, optional
        What messages call the nodes; their numbers by default.

    Attributes
    ----------
    is_tree : bool
        No node has two parents (a forest counts).
    levels : list of ndarray
        Nodes by the length of their longest path from a root: parents come in earlier levels.
    leaves : ndarray of int
        Nodes without children.
    parent : ndarray of int
        On trees, the parent of each node, -1 for roots.

    Raises
    ------
    ValueError
        Naming a node on a cycle, an edge to an unknown node, or a repeated edge.

    Examples
    --------
    >>> tree = Hierarchy(4, [[0, 1], [0, 2], [2, 3]])
    >>> tree.is_tree, tree.leaves.tolist(), tree.parent.tolist()
    (True, [1, 3], [-1, 0, 0, 2])
    """

    def __init__(self, n_nodes: int, edges: Any, names: Sequence[Hashable] | None = None):
        if not isinstance(n_nodes, (int, np.integer)) or n_nodes < 1:
            raise ValueError(f"n_nodes is {n_nodes!r}, expected an integer >= 1")
        found = np.asarray(edges)
        if found.size == 0:
            found = np.empty((0, 2), dtype=np.int64)
        if found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iu":
            raise ValueError(
                f"edges has shape {found.shape} and type {found.dtype}, expected integer pairs "
                "(parent, child), one per row"
            )
        self.n_nodes, self.names = int(n_nodes), names
        self.edges = found.astype(np.int64)
        outside = (self.edges < 0) | (self.edges >= self.n_nodes)
        if outside.any():
            row = int(outside.any(axis=1).argmax())
            raise ValueError(
                f"edge {row} is {self.edges[row].tolist()}, expected nodes from 0 to "
                f"{self.n_nodes - 1}"
            )
        keys = np.sort(self.edges[:, 0] * self.n_nodes + self.edges[:, 1])
        twice = np.flatnonzero(keys[1:] == keys[:-1])
        if twice.size:
            pair = divmod(int(keys[twice[0]]), self.n_nodes)
            raise ValueError(
                f"the edge from {self.name(pair[0])!r} to {self.name(pair[1])!r} occurs twice"
            )
        n_parents = np.bincount(self.edges[:, 1], minlength=self.n_nodes)
        self.is_tree = bool((n_parents <= 1).all())
        self.leaves = np.flatnonzero(np.bincount(self.edges[:, 0], minlength=self.n_nodes) == 0)
        self.levels = self._levels(n_parents)

    @classmethod
    def of(cls, graph: Any) -> Hierarchy:
        """Return that of a networkx DiGraph (edges parent to child), nodes in the graph's order.

        Examples
        --------
        >>> import networkx as nx
        >>> Hierarchy.of(nx.DiGraph([("animal", "cat"), ("animal", "dog")])).n_nodes
        3
        """
        if isinstance(graph, cls):
            return graph
        if not hasattr(graph, "is_directed") or not graph.is_directed():
            raise ValueError(
                f"hierarchy is a {type(graph).__name__}, expected a networkx DiGraph whose edges "
                "go from parent to child"
            )
        names = list(graph.nodes)
        if not names:
            raise ValueError("hierarchy has no nodes, expected at least one")
        number = {name: k for k, name in enumerate(names)}
        return cls(len(names), [(number[a], number[b]) for a, b in graph.edges()], names)

    def name(self, node: int) -> Hashable:
        """Return what messages call a node."""
        return node if self.names is None else self.names[node]

    @cached_property
    def parent(self) -> np.ndarray:
        """On trees: the parent of each node, -1 for roots."""
        if not self.is_tree:
            raise ValueError("the hierarchy is not a tree: a node has more than one parent")
        parent = np.full(self.n_nodes, -1)
        parent[self.edges[:, 1]] = self.edges[:, 0]
        return parent

    @cached_property
    def paths(self) -> sp.csr_matrix:
        """Which nodes (columns) are each leaf (rows, as in ``leaves``) or its ancestors."""
        shape = (self.n_nodes, self.n_nodes)
        ones = np.ones(len(self.edges))
        up = sp.csr_matrix((ones, (self.edges[:, 1], self.edges[:, 0])), shape=shape)
        total = front = sp.identity(self.n_nodes, format="csr")[self.leaves]
        while front.nnz:
            front = front @ up
            front.data[:] = 1  # a node counts once, however many ways lead to it
            total = total + front
        total = sp.csr_matrix(total)
        total.data[:] = 1
        total.sort_indices()
        return total

    def _levels(self, n_parents: np.ndarray) -> list[np.ndarray]:
        order = np.argsort(self.edges[:, 0], kind="stable")
        children = self.edges[order, 1]
        starts = np.searchsorted(self.edges[order, 0], np.arange(self.n_nodes + 1))
        waiting = n_parents.copy()
        level, levels = np.flatnonzero(waiting == 0), []
        while level.size:
            levels.append(level)
            counts = starts[level + 1] - starts[level]
            # The children of all nodes of the level, one after the other.
            offsets = np.repeat(starts[level] - np.cumsum(counts) + counts, counts)
            below = children[offsets + np.arange(counts.sum())]
            np.subtract.at(waiting, below, 1)
            level = np.unique(below[waiting[below] == 0])
        if (waiting > 0).any():
            raise ValueError(
                f"the hierarchy has a cycle through {self.name(self._on_cycle(waiting))!r}; "
                "expected a tree or a directed acyclic graph"
            )
        return levels

    def _on_cycle(self, waiting: np.ndarray) -> int:
        """Return a node of a cycle: every node left has a parent that is left as well."""
        left = waiting > 0
        above = {int(c): int(p) for p, c in self.edges if left[p] and left[c]}
        node, seen = next(iter(above)), set()
        while node not in seen:
            seen.add(node)
            node = above[node]
        return node


def intervals(
    hierarchy: Hierarchy, alpha: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Leaves of a tree in depth-first order, and per node which of them are below it.

    Returns
    -------
    first, last : ndarray of int32
        Of each node; a leaf is below itself.
    leaf : ndarray of int32
        Node numbers of the leaves in that order.
    down : ndarray of float64
        Sum of ``alpha`` from the root to each node.
    """
    parent = hierarchy.parent
    counts = np.zeros(hierarchy.n_nodes, dtype=np.int64)
    counts[hierarchy.leaves] = 1
    for level in hierarchy.levels[:0:-1]:
        np.add.at(counts, parent[level], counts[level])
    first = np.zeros(hierarchy.n_nodes, dtype=np.int64)
    down = np.array(alpha, dtype=np.float64)
    roots = hierarchy.levels[0]
    first[roots] = np.cumsum(counts[roots]) - counts[roots]
    for level in hierarchy.levels[1:]:
        level = level[np.argsort(parent[level], kind="stable")]
        above = parent[level]
        before = np.cumsum(counts[level]) - counts[level]
        opens = np.append(True, above[1:] != above[:-1])
        start = np.maximum.accumulate(np.where(opens, before, 0))
        first[level] = first[above] + before - start
        down[level] += down[above]
    leaf = np.empty(len(hierarchy.leaves), dtype=np.int32)
    leaf[first[hierarchy.leaves]] = hierarchy.leaves
    return first.astype(np.int32), (first + counts).astype(np.int32), leaf, down
