"""Hierarchies of labels: users' hierarchies, checked, as arrays for the compiled loops."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np

from structsolve.evaluation.report import Report, row_of
from structsolve.examples.given import check_columns, check_weights
from structsolve.plugins.dag.topological_order import (
    add_ancestors,
    compressed,
    leaf_lines,
    share_out,
    topological_order,
)
from structsolve.utils.suggest import a_type

STRINGS = "strings, as the first node is one"
EITHER = "all nodes to be strings, or all to be integers"


class Hierarchy:
    """A forest or directed acyclic graph of labels, edges from parents to children.

    Parameters
    ----------
    given : networkx.DiGraph, mapping, array of shape (m, 2) or Hierarchy
        A graph; ``{node: list of children}``; or an array of edges (parent, child). Nodes are all
        strings or all integers.

    Attributes
    ----------
    nodes : ndarray of shape (M,)
        Names in the order of columns: the order of the graph or of the mapping (children that are
        no keys come last); sorted for arrays of edges.
    edges : ndarray of int32 of shape (m, 2)
        Columns of parent and child.
    order : ndarray of int32 of shape (M,)
        Columns such that parents come before their children.
    leaves, roots : ndarray of int32
        Columns of nodes without children and of nodes without parents.
    forest : bool
        No node has more than one parent.
    levels : list of ndarray of int32
        Columns by the length of the longest path from a root: parents come in earlier levels.
    paths : scipy.sparse.csr_matrix of shape (number of leaves, M)
        Indicators of each leaf (rows as in ``leaves``) and its ancestors.

    Raises
    ------
    ValueError
        For anything else, an empty hierarchy, or a cycle, naming a node.

    Examples
    --------
    >>> from structsolve.plugins.dag import Hierarchy
    >>> animals = Hierarchy({"animal": ["dog", "cat"], "pet": ["dog"]})
    >>> animals.nodes.tolist()
    ['animal', 'pet', 'dog', 'cat']
    >>> animals.forest, animals.roots.tolist(), animals.leaves.tolist()
    (False, [0, 1], [2, 3])
    """

    def __init__(self, given: Any):
        names, edges = _read(given)
        if not names:
            raise ValueError("hierarchy: found no nodes, expected at least one")
        self.nodes = _as_names(names)
        self.column: dict[Any, int] = {name: v for v, name in enumerate(self.nodes.tolist())}
        if len(self.column) < len(names):
            raise ValueError(f"hierarchy: found the node {_repeated(names)!r} twice")
        flat = [self.column[name] for edge in edges for name in edge]
        self.edges = np.array(flat, dtype=np.int32).reshape(-1, 2)
        keys = self.edges[:, 0].astype(np.int64) * len(names) + self.edges[:, 1]
        unique, first = np.unique(keys, return_index=True)
        if len(unique) < len(keys):
            again = np.setdiff1d(np.arange(len(keys)), first)[0]
            p, c = self.nodes[self.edges[again]].tolist()
            raise ValueError(f"hierarchy: found the edge from {p!r} to {c!r} twice; drop one")
        self._sort()

    def __len__(self) -> int:
        return len(self.nodes)

    def _sort(self) -> None:
        M = len(self)
        parent, child = self.edges.T
        self.child_first, self.child = compressed(M, parent, child)
        self.up_first, self.up = compressed(M, child, parent)
        self.order = topological_order(self.child_first, self.child, np.diff(self.up_first))
        if len(self.order) < M:
            cycle = " -> ".join(repr(self.nodes[v].item()) for v in self._cycle())
            raise ValueError(f"hierarchy: found the cycle {cycle}; remove one of its edges")
        n_parents = np.diff(self.up_first)
        self.forest = bool((n_parents <= 1).all())
        self.roots = np.flatnonzero(n_parents == 0).astype(np.int32)
        self.leaves = np.flatnonzero(np.diff(self.child_first) == 0).astype(np.int32)

    def _cycle(self) -> list[int]:
        # Every remaining node has a remaining parent, so the way up ends in a cycle.
        left = np.ones(len(self), dtype=bool)
        left[self.order] = False
        v = int(np.flatnonzero(left)[0])
        seen: dict[int, int] = {}
        path: list[int] = []
        while v not in seen:
            seen[v] = len(path)
            path.append(v)
            v = next(int(p) for p in self.parents(v) if left[p])
        return [*path[seen[v] :], v][::-1]

    def parents(self, v: int) -> np.ndarray:
        """Return the columns of the parents of a node.

        Parameters
        ----------
        v : int
            Its column.

        Returns
        -------
        ndarray of int32
        """
        return self.up[self.up_first[v] : self.up_first[v + 1]]

    def children(self, v: int) -> np.ndarray:
        """Return the columns of the children of a node.

        Parameters
        ----------
        v : int
            Its column.

        Returns
        -------
        ndarray of int32
        """
        return self.child[self.child_first[v] : self.child_first[v + 1]]

    @cached_property
    def parent(self) -> np.ndarray:
        """The single parent of every node; -1 for roots, -2 for nodes with several parents."""
        parent = np.full(len(self), -1, dtype=np.int32)
        counts = np.diff(self.up_first)
        parent[counts == 1] = self.up[self.up_first[:-1][counts == 1]]
        parent[counts > 1] = -2
        return parent

    @cached_property
    def rank(self) -> np.ndarray:
        """Position of every node in ``order``."""
        rank = np.empty(len(self), dtype=np.int32)
        rank[self.order] = np.arange(len(self), dtype=np.int32)
        return rank

    @cached_property
    def lines(self) -> tuple[np.ndarray, np.ndarray]:
        """Every leaf with its ancestors, children first, in compressed rows (first, line).

        The size is the sum of the numbers of ancestors.
        """
        return leaf_lines(self.up_first, self.up, self.rank, self.leaves)

    @cached_property
    def levels(self) -> list[np.ndarray]:
        """Columns by the length of their longest path from a root."""
        waiting = np.diff(self.up_first)
        level, levels = self.roots, []
        while level.size:
            levels.append(level)
            first = self.child_first[level]
            counts = self.child_first[level + 1] - first
            # The children of all nodes of the level, one after the other.
            offsets = np.repeat(first - np.cumsum(counts) + counts, counts)
            below = self.child[offsets + np.arange(counts.sum())]
            np.subtract.at(waiting, below, 1)
            level = np.unique(below[waiting[below] == 0])
        return levels

    @cached_property
    def paths(self) -> Any:
        """Indicators of each leaf (rows, as in ``leaves``) and its ancestors (columns)."""
        first, line = self.lines
        ones, shape = np.ones(len(line)), (len(self.leaves), len(self))
        from scipy.sparse import csr_matrix  # heavy

        paths = csr_matrix((ones, line, first), shape, copy=True)
        paths.sort_indices()
        return paths

    def scores(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Report:
        """Return :func:`~structsolve.plugins.dag.hierarchical_scores` under this hierarchy.

        Parameters
        ----------
        y_true, y_pred, sample_weight : as there

        Returns
        -------
        Report
        """
        sets = []
        for name, given in (("y_true", y_true), ("y_pred", y_pred)):
            check_columns(given, self.nodes, what=name, whose="nodes of the hierarchy")
            matrix = _indicators(given, name)
            if matrix.ndim != 2 or matrix.shape[1] != len(self):
                raise ValueError(
                    f"{name} has shape {matrix.shape}, expected one column for each of the "
                    f"{len(self)} nodes of the hierarchy"
                )
            matrix = self.close(matrix)
            if len(self.roots) == 1 and len(self) > 1:
                matrix[:, self.roots] = 0
            sets.append(matrix)
        true, pred = sets
        if len(true) != len(pred):
            raise ValueError(f"y_true has {len(true)} rows, y_pred {len(pred)}, expected as many")
        both, told, there = (m.sum(axis=1) for m in (true & pred, pred, true))
        return report_of_counts(both, told, there, sample_weight)

    def close(self, Y: np.ndarray) -> np.ndarray:
        """Add all ancestors to indicators, in place.

        Parameters
        ----------
        Y : ndarray of int32 of shape (n, M)

        Returns
        -------
        ndarray
            ``Y`` itself.
        """
        add_ancestors(Y, self.order, self.up_first, self.up)
        return Y

    def sibling_weights(self) -> np.ndarray:
        """Return the costs of nodes in the hierarchical loss.

        1 is shared among the roots, and each node's cost among its children (added up over several
        parents).

        Returns
        -------
        ndarray of float64 of shape (M,)

        Examples
        --------
        >>> from structsolve.plugins.dag import Hierarchy
        >>> Hierarchy({"a": ["b", "c"], "c": ["d", "e"]}).sibling_weights().tolist()
        [1.0, 0.5, 0.5, 0.25, 0.25]
        """
        return share_out(self.order, self.up_first, self.up, self.child_first)


def report_of_counts(
    both: np.ndarray, guessed: np.ndarray, there: np.ndarray, sample_weight: Any
) -> Report:
    """Return :func:`~structsolve.plugins.dag.hierarchical_scores` from the counts of examples.

    Parameters
    ----------
    both, guessed, there : ndarray of int of shape (n,)
        Labels of both sides, predicted labels, true labels, of each example.
    sample_weight : array of shape (n,) or None

    Returns
    -------
    Report
    """
    weight = check_weights(sample_weight, len(both))
    parts = [(both, guessed), (both, there), (2 * both, guessed + there)]

    def ratio(above: Any, below: Any) -> Any:
        return above / np.where(below == 0, 1, below)

    micro = [ratio(weight @ above, weight @ below) for above, below in parts]
    macro = [weight @ ratio(above, below) / max(weight.sum(), 1e-300) for above, below in parts]
    support = int(there.sum())
    return Report(
        row_of(micro, support), micro=row_of(micro, support), macro=row_of(macro, support)
    )


def as_hierarchy(given: Any) -> Hierarchy:
    """Return a hierarchy.

    Parameters
    ----------
    given : Hierarchy, or what one is made of

    Returns
    -------
    Hierarchy
        ``given`` itself if it is a Hierarchy.
    """
    return given if isinstance(given, Hierarchy) else Hierarchy(given)


def as_mapping(given: Any) -> Any:
    """Return a hierarchy in the form of files.

    Parameters
    ----------
    given : Hierarchy, or what one is made of

    Returns
    -------
    dict or object
        ``{node: list of children}`` of graphs, mappings and hierarchies; data frames as arrays;
        anything else unchanged.
    """
    if hasattr(given, "successors"):
        return {node: list(given.successors(node)) for node in given}
    if isinstance(given, Hierarchy):
        return {
            name: given.nodes[given.children(v)].tolist()
            for v, name in enumerate(given.nodes.tolist())
        }
    if isinstance(given, Mapping):
        return {node: list(children) for node, children in given.items()}
    return np.asarray(given) if hasattr(given, "__array__") else given  # data frames too


def intervals(
    hierarchy: Hierarchy, alpha: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Leaves of a tree in depth-first order, and for each node the range of leaves below it.

    Parameters
    ----------
    hierarchy : Hierarchy
        A forest.
    alpha : ndarray of float64 of shape (M,)
        Weights of the nodes.

    Returns
    -------
    first, last : ndarray of int32
        Range of each node in ``leaf``; a leaf is below itself.
    leaf : ndarray of int32
        Node numbers of the leaves in that order.
    down : ndarray of float64
        Sum of ``alpha`` from the root to each node.
    """
    parent = hierarchy.parent
    counts = np.zeros(len(hierarchy), dtype=np.int64)
    counts[hierarchy.leaves] = 1
    for level in hierarchy.levels[:0:-1]:
        np.add.at(counts, parent[level], counts[level])
    first = np.zeros(len(hierarchy), dtype=np.int64)
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


def _read(given: Any) -> tuple[list[Any], list[tuple[Any, Any]]]:
    """Return unchecked names and edges."""
    if isinstance(given, Hierarchy):
        return given.nodes.tolist(), [(p, c) for p, c in given.nodes[given.edges].tolist()]
    if hasattr(given, "successors") and hasattr(given, "is_multigraph"):
        if given.is_multigraph():
            raise ValueError(
                f"hierarchy is {a_type(given)}, expected a networkx.DiGraph, which has no "
                "parallel edges; use networkx.DiGraph(hierarchy)"
            )
        return list(given.nodes), list(given.edges)
    if isinstance(given, Mapping):
        edges = []
        for parent, children in given.items():
            if isinstance(children, (str, bytes)) or not hasattr(children, "__iter__"):
                raise ValueError(
                    f"hierarchy: the children of {parent!r} are {children!r}, expected a list"
                )
            edges += [(parent, child) for child in children]
        return list(dict.fromkeys([*given, *(child for _, child in edges)])), edges
    if given is None or isinstance(given, (str, bytes)) or hasattr(given, "adj"):
        raise ValueError(
            f"hierarchy is {_kind(given)}, expected a networkx.DiGraph with edges from parents to "
            "children, a dict of lists of children, or an array of edges (parent, child); or y as "
            "a table of levels, from which it is learned"
        )
    try:
        # NumPy makes strings of numbers beside strings.
        pairs = np.asarray(given, None if hasattr(given, "__array__") else object)
    except ValueError as error:
        raise ValueError(f"hierarchy: not an array of edges ({error})") from None
    if pairs.size == 0:
        return [], []
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iuUSO":
        raise ValueError(
            f"hierarchy: found an array of shape {pairs.shape} and dtype {pairs.dtype}, expected "
            "edges (parent, child) of shape (m, 2), all names or all integers"
        )
    names = _as_names(pairs.ravel().tolist())
    return np.unique(names).tolist(), [(p, c) for p, c in pairs.tolist()]


def _kind(given: Any) -> str:
    return "None" if given is None else a_type(given)


def _as_names(names: list[Any]) -> np.ndarray:
    kind = str if isinstance(names[0], str) else (int, np.integer)
    for name in names:
        if isinstance(name, bool) or not isinstance(name, kind):
            raise ValueError(
                f"hierarchy: found the node {name!r} of type {type(name).__name__}, expected "
                f"{STRINGS if kind is str else EITHER}"
            )
        if isinstance(name, str) and name.endswith("\0"):
            raise ValueError(
                f"hierarchy: the node {name!r} ends with a NUL, which NumPy drops; rename it"
            )
    try:
        return np.array(names, dtype=str if kind is str else np.int64)
    except OverflowError:
        big = max(names, key=abs)
        raise ValueError(f"hierarchy: the node {big!r} is no 64-bit integer; use names") from None


def _repeated(names: list[Any]) -> Any:
    seen: set[Any] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _indicators(given: Any, name: str) -> np.ndarray:
    """Return rows of 0 and 1 as integers, and refuse names."""
    with suppress(TypeError, ValueError):
        if np.isin(np.asarray(given, dtype=np.float64), (0, 1)).all():
            return np.array(given, dtype=np.int32, order="C")
    raise ValueError(
        f"{name}: found names, other numbers or uneven rows, expected rows of 0 and 1 in the order "
        "of the nodes; leave hierarchy out for tables of levels"
    )
