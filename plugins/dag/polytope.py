"""The polytopes of labels of a hierarchy: one variable per node, whether it is on."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from structsolve.lp import Polytope, Polytopes
from structsolve.plugins.dag.hierarchy import Hierarchy

NOTES = {
    "closed": "totally unimodular: every row is a difference of two variables",
    "leaf-union": "exact on forests: the states of a node separate its subtree from the rest",
    "single-leaf": "exact: the simplex of leaves",
}


def closure_rows(hierarchy: Hierarchy) -> Any:
    """Return the matrix of ``x_parent - x_child``, one row per edge.

    Parameters
    ----------
    hierarchy : Hierarchy

    Returns
    -------
    scipy.sparse.csr_matrix of shape (edges, nodes)
    """
    from scipy import sparse  # heavy

    m = len(hierarchy.edges)
    rows = np.repeat(np.arange(m), 2)
    values = np.tile([1.0, -1.0], m)
    return sparse.csr_matrix((values, (rows, hierarchy.edges.ravel())), (m, len(hierarchy)))


def union_rows(hierarchy: Hierarchy) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return the rows of unions of paths: closure, a child for every inner node, a root and a leaf.

    The row of the roots makes the relaxation exact on forests; no other row implies it.

    Parameters
    ----------
    hierarchy : Hierarchy

    Returns
    -------
    A : scipy.sparse.csr_matrix
    low, high : ndarray
        ``low <= A x <= high``.
    """
    from scipy import sparse  # heavy

    M = len(hierarchy)
    some = np.zeros((2, M))
    some[0, hierarchy.roots] = 1
    some[1, hierarchy.leaves] = 1
    children = _sums_below(hierarchy, *hierarchy.edges.T)
    A = sparse.vstack([closure_rows(hierarchy), children, sparse.csr_matrix(some)]).tocsr()
    low = np.zeros(A.shape[0])
    low[-2:] = 1
    return A, low, np.full(A.shape[0], np.inf)


def leaf_rows(hierarchy: Hierarchy) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return the rows of single leaves: a node equals the sum of the leaves below it.

    Parameters
    ----------
    hierarchy : Hierarchy

    Returns
    -------
    A : scipy.sparse.csr_matrix
    low, high : ndarray
        Equal: ``A x = low``.
    """
    from scipy import sparse  # heavy

    M = len(hierarchy)
    if hierarchy.forest:
        upper, lower = hierarchy.edges.T
    else:
        first, line = hierarchy.lines
        lower = np.repeat(hierarchy.leaves, np.diff(first))
        upper = line
        upper, lower = upper[upper != lower], lower[upper != lower]
    one = np.zeros((1, M))
    one[0, hierarchy.leaves] = 1
    A = sparse.vstack([_sums_below(hierarchy, upper, lower), sparse.csr_matrix(one)]).tocsr()
    b = np.zeros(A.shape[0])
    b[-1] = 1
    return A, b, b


def _sums_below(hierarchy: Hierarchy, upper: np.ndarray, lower: np.ndarray) -> Any:
    """One row per inner node: the sum of its ``lower`` nodes less itself."""
    from scipy import sparse  # heavy

    inner = np.flatnonzero(np.diff(hierarchy.child_first))
    row = np.zeros(len(hierarchy), dtype=np.int64)
    row[inner] = np.arange(len(inner))
    values = np.repeat([1.0, -1.0], [len(lower), len(inner)])
    rows, columns = np.concatenate([row[upper], row[inner]]), np.concatenate([lower, inner])
    return sparse.csr_matrix((values, (rows, columns)), (len(inner), len(hierarchy)))


class HierarchyPolytopes(Polytopes):
    """The polytope of a hierarchy, the same for all examples.

    Parameters
    ----------
    space : DagSpace
    """

    def __init__(self, space: Any):
        self.space = space
        kind, hierarchy = space.structure.labels, space.hierarchy
        self.exact = kind != "leaf-union" or hierarchy.forest
        self.note = NOTES[kind]
        if not self.exact:
            self.note = "a relaxation: a node below two parents may be on by halves under each"

    def key(self, i: int) -> Hashable:
        """Return the key that examples with the same polytope share."""
        return 0

    def build(self, i: int) -> Polytope:
        """Return the polytope of an example."""
        space, hierarchy = self.space, self.space.hierarchy
        lower = np.zeros(len(hierarchy))
        if space.structure.labels == "closed":
            A = closure_rows(hierarchy)
            low, high = np.zeros(A.shape[0]), np.full(A.shape[0], np.inf)
            if space.structure.roots == "on":
                lower[hierarchy.roots] = 1
        elif space.structure.labels == "leaf-union":
            A, low, high = union_rows(hierarchy)
        else:
            A, low, high = leaf_rows(hierarchy)
        return Polytope(A, low, high, np.arange(len(hierarchy)), self._decode, lower)

    def _decode(self, x: np.ndarray) -> np.ndarray:
        if self.space.single:
            leaves = self.space.hierarchy.leaves
            return leaves[x[leaves].argmax()].reshape(1).astype(np.int32)
        return np.rint(x).astype(np.int32)
