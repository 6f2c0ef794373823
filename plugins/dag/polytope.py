"""The polytopes of labels of a hierarchy: one variable per node, whether it is on."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from structsolve.lp import Polytope, Polytopes
from structsolve.structure.hierarchy import Hierarchy

NOTES = {
    "closed": "totally unimodular: every row is a difference of two variables",
    "leaf-union": "exact on forests: the states of a node separate what is below it from the rest",
    "single-leaf": "exact: the simplex of leaves",
}


def closure_rows(hierarchy: Hierarchy) -> Any:
    """Return the matrix of ``x_parent - x_child``, one row per edge."""
    from scipy import sparse

    m = len(hierarchy.edges)
    rows = np.repeat(np.arange(m), 2)
    values = np.tile([1.0, -1.0], m)
    return sparse.csr_matrix((values, (rows, hierarchy.edges.ravel())), (m, len(hierarchy)))


def union_rows(hierarchy: Hierarchy) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return ``low <= A x <= high`` of unions of paths: the closure, a child for every inner node,
    a root and a leaf.

    The row of the roots, which follows from no other, makes the relaxation exact on forests.
    """
    from scipy import sparse

    M = len(hierarchy)
    inner = np.flatnonzero(np.diff(hierarchy.child_first))
    place = np.zeros(M, dtype=np.int64)
    place[inner] = np.arange(len(inner))
    parent, child = hierarchy.edges.T
    below = sparse.csr_matrix((np.ones(len(child)), (place[parent], child)), (len(inner), M))
    own = sparse.csr_matrix((np.ones(len(inner)), (np.arange(len(inner)), inner)), (len(inner), M))
    some = np.zeros((2, M))
    some[0, hierarchy.roots] = 1
    some[1, hierarchy.leaves] = 1
    A = sparse.vstack([closure_rows(hierarchy), below - own, sparse.csr_matrix(some)]).tocsr()
    low = np.zeros(A.shape[0])
    low[-2:] = 1
    return A, low, np.full(A.shape[0], np.inf)


def leaf_rows(hierarchy: Hierarchy) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return ``A x = b`` of single leaves: what is at a node is what is at the leaves below it."""
    from scipy import sparse

    M = len(hierarchy)
    inner = np.flatnonzero(np.diff(hierarchy.child_first))
    place = np.full(M, -1, dtype=np.int64)
    place[inner] = np.arange(len(inner))
    if hierarchy.forest:
        upper, lower = hierarchy.edges.T
    else:
        first, line = hierarchy.lines
        lower = np.repeat(hierarchy.leaves, np.diff(first))
        upper = line
        upper, lower = upper[upper != lower], lower[upper != lower]
    below = sparse.csr_matrix((np.ones(len(lower)), (place[upper], lower)), (len(inner), M))
    own = sparse.csr_matrix((np.ones(len(inner)), (np.arange(len(inner)), inner)), (len(inner), M))
    one = np.zeros((1, M))
    one[0, hierarchy.leaves] = 1
    A = sparse.vstack([below - own, sparse.csr_matrix(one)]).tocsr()
    b = np.zeros(A.shape[0])
    b[-1] = 1
    return A, b, b


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
        return 0

    def build(self, i: int) -> Polytope:
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
