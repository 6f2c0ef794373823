"""Loss between single leaves: the root of the weight of what only one of their paths has.

It is what two normalised classes differ by, ``||sqrt(alpha) * (mu(y) - mu(y_i))||``, so that the margin
asked for fits the margin there can be.  One number per leaf, hence a sum over parts: no matrix over
pairs of leaves is made.
"""

import numpy as np

from libc.math cimport sqrt
from ..operators cimport Loss

from .hierarchy import intervals

# Of sums of weights, what is rounding.
cdef double ROUNDING = 4e-16


cdef class PathLoss(Loss):
    """``sqrt(sum of alpha over the symmetric difference of two paths)`` for single leaves.

    A call costs one step per leaf where the hierarchy is a tree, else one per ancestor of a leaf.

    Parameters
    ----------
    labels : ndarray of int32 of shape (n,)
        The node number of each true leaf.
    hierarchy : structsolve.structure.hierarchy.Hierarchy
    weights : ndarray of shape (n_nodes,)
        ``alpha``.
    """

    cdef const int[::1] labels, parent, first, last, leaf, line_first, line
    cdef const double[::1] alpha, down
    cdef Py_ssize_t n, n_nodes, n_leaves
    cdef bint tree

    def __init__(self, labels, hierarchy, weights):
        given = np.ascontiguousarray(weights, dtype=np.float64)
        if given.shape != (len(hierarchy),):
            raise ValueError(
                f"weights has shape {given.shape}, expected ({len(hierarchy)},), one per node"
            )
        if not (np.isfinite(given) & (given >= 0)).all():
            raise ValueError("weights: expected finite numbers >= 0")
        truths = np.ascontiguousarray(labels, dtype=np.int32)
        known = np.zeros(len(hierarchy), dtype=bool)
        known[hierarchy.leaves] = True
        if truths.ndim != 1 or truths.size and (
                truths.min() < 0 or truths.max() >= len(hierarchy) or not known[truths].all()):
            raise ValueError("labels: expected the number of one leaf for each example")
        self.labels, self.alpha = truths, given
        self.n, self.n_nodes = truths.shape[0], len(hierarchy)
        self.n_leaves = len(hierarchy.leaves)
        self.tree = hierarchy.forest
        self.decomposes = self.averaged = True
        if self.tree:
            first, last, leaf, down = intervals(hierarchy, given)
            self.parent = np.ascontiguousarray(hierarchy.parent, dtype=np.int32)
            self.first, self.last, self.leaf, self.down = first, last, leaf, down
        else:
            paths = hierarchy.paths
            self.leaf = np.ascontiguousarray(hierarchy.leaves, dtype=np.int32)
            self.line_first = np.ascontiguousarray(paths.indptr, dtype=np.int32)
            self.line = np.ascontiguousarray(paths.indices, dtype=np.int32)
            place = np.zeros(len(hierarchy), dtype=np.int32)
            place[hierarchy.leaves] = np.arange(self.n_leaves)
            self.first = place

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.structure.calls``."""
        if not 0 <= i < self.n:
            raise ValueError(f"example {i} of {self.n}: expected 0 to {self.n - 1}")
        return self.n_nodes, 1, self.n_nodes

    cdef inline double _tree_cost(self, int a, int b, int common) noexcept nogil:
        """Between the leaves a and b, whose last common ancestor is given; -1: none."""
        cdef double total = self.down[a] + self.down[b], square = total
        if common >= 0:
            square -= 2 * self.down[common]
        return sqrt(square) if square > ROUNDING * total else 0.0

    cdef double _graph_cost(self, int a, int b) noexcept nogil:
        """Between two leaves of a graph: both lines are sorted by number."""
        cdef Py_ssize_t j = self.line_first[self.first[a]], m = self.line_first[self.first[a] + 1]
        cdef Py_ssize_t k = self.line_first[self.first[b]], n = self.line_first[self.first[b] + 1]
        cdef double square = 0
        while j < m or k < n:
            if k == n or (j < m and self.line[j] < self.line[k]):
                square += self.alpha[self.line[j]]
                j += 1
            elif j == m or self.line[k] < self.line[j]:
                square += self.alpha[self.line[k]]
                k += 1
            else:
                j += 1
                k += 1
        return sqrt(square)

    cdef double value(self, Py_ssize_t i, const int* label) except? -1 nogil:
        cdef int common = self.labels[i], at
        if label[0] == common:
            return 0
        if not self.tree:
            return self._graph_cost(common, label[0])
        at = self.first[label[0]]
        while common >= 0 and not self.first[common] <= at < self.last[common]:
            common = self.parent[common]
        return self._tree_cost(self.labels[i], label[0], common)

    cdef double augment(self, Py_ssize_t i, double scale, double* theta) except? -1 nogil:
        cdef int truth = self.labels[i], common = truth, leaf
        cdef Py_ssize_t j, first, last, done_first, done_last
        if not self.tree:
            for j in range(self.n_leaves):
                leaf = self.leaf[j]
                if leaf != truth:
                    theta[leaf] += scale * self._graph_cost(truth, leaf)
            return 0
        # Upwards from the truth: the leaves that an ancestor adds have it in common.
        done_first, done_last = self.first[truth], self.last[truth]
        while common >= 0:
            common = self.parent[common]
            first, last = 0, self.n_leaves
            if common >= 0:
                first, last = self.first[common], self.last[common]
            for j in range(first, done_first):
                leaf = self.leaf[j]
                theta[leaf] += scale * self._tree_cost(truth, leaf, common)
            for j in range(done_last, last):
                leaf = self.leaf[j]
                theta[leaf] += scale * self._tree_cost(truth, leaf, common)
            done_first, done_last = first, last
        return 0
