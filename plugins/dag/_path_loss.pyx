# build: glue
"""Loss between single leaves: the root of the total weight of nodes on only one of their paths.

It is the distance of two normalised classes, ``||sqrt(alpha) * (mu(y) - mu(y_i))||``, so that the
required margin is proportional to the possible margin.  Given the truth it is one number per leaf,
so it is a sum over parts and needs no matrix over pairs of leaves.
"""

import numpy as np

cimport cython
from libc.math cimport sqrt
from structsolve.operators cimport Loss
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.dag.hierarchy import intervals

# Relative error of sums of weights.
cdef double ROUNDING = 4e-16


@cython.final
cdef class PathCosts:
    """``sqrt(sum of alpha over the symmetric difference of two paths)`` for leaves of a hierarchy.

    Parameters
    ----------
    hierarchy : structsolve.plugins.dag.hierarchy.Hierarchy
    weights : ndarray of shape (n_nodes,)
        ``alpha``.
    """

    cdef const int[::1] parent, first, last, leaf, line_first, line
    cdef const double[::1] alpha, down
    cdef readonly Py_ssize_t n_nodes, n_leaves
    cdef bint tree
    cdef object is_leaf

    def __init__(self, hierarchy, weights):
        given = np.ascontiguousarray(weights, dtype=np.float64)
        if given.shape != (len(hierarchy),):
            raise ValueError(
                f"weights has shape {given.shape}, expected ({len(hierarchy)},), one per node"
            )
        if not (np.isfinite(given) & (given >= 0)).all():
            raise ValueError("weights: expected finite numbers >= 0")
        self.is_leaf = np.zeros(len(hierarchy), dtype=bool)
        self.is_leaf[hierarchy.leaves] = True
        self.alpha, self.n_nodes = given, len(hierarchy)
        self.n_leaves = len(hierarchy.leaves)
        self.tree = hierarchy.forest
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

    cdef inline double tree_cost(self, int a, int b, int common) noexcept nogil:
        # Cost between the leaves a and b; `common` is their lowest common ancestor, -1 for none.
        cdef double total = self.down[a] + self.down[b], square = total
        if common >= 0:
            square -= 2 * self.down[common]
        return sqrt(square) if square > ROUNDING * total else 0.0

    cdef double graph_cost(self, int a, int b) noexcept nogil:
        # Cost between two leaves of a graph: both rows of ancestors are sorted by number.
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

    cdef double between(self, int truth, int leaf) noexcept nogil:
        cdef int common = truth, place
        if leaf == truth:
            return 0
        if truth == self.n_nodes:  # a path unseen in training has none of the nodes
            return sqrt(self.down[leaf])
        if not self.tree:
            return self.graph_cost(truth, leaf)
        place = self.first[leaf]
        while common >= 0 and not self.first[common] <= place < self.last[common]:
            common = self.parent[common]
        return self.tree_cost(truth, leaf, common)

    cdef void add(self, int truth, double scale, double* theta) noexcept nogil:
        # theta[leaf] += scale * cost of each leaf where `truth` is true.
        cdef int common = truth, leaf
        cdef Py_ssize_t j, first, last, done_first, done_last
        if truth == self.n_nodes:
            for j in range(self.n_leaves):
                theta[self.leaf[j]] += scale * sqrt(self.down[self.leaf[j]])
            return
        if not self.tree:
            for j in range(self.n_leaves):
                leaf = self.leaf[j]
                if leaf != truth:
                    theta[leaf] += scale * self.graph_cost(truth, leaf)
            return
        # Upwards from the truth: each ancestor is the lowest common one of its new leaves.
        done_first, done_last = self.first[truth], self.last[truth]
        while common >= 0:
            common = self.parent[common]
            first, last = 0, self.n_leaves
            if common >= 0:
                first, last = self.first[common], self.last[common]
            for j in range(first, done_first):
                leaf = self.leaf[j]
                theta[leaf] += scale * self.tree_cost(truth, leaf, common)
            for j in range(done_last, last):
                leaf = self.leaf[j]
                theta[leaf] += scale * self.tree_cost(truth, leaf, common)
            done_first, done_last = first, last


@cython.final
cdef class PathLoss(Loss):
    """The cost between two leaves as a loss, for labels that are single leaves.

    A call takes one step per leaf if the hierarchy is a tree, else one per ancestor of a leaf.

    Parameters
    ----------
    costs : PathCosts
    layout : PartLayout
        Layout of a hierarchy whose labels are the node numbers of leaves.
    """

    cdef PathCosts path_costs

    def __init__(self, PathCosts costs not None, PartLayout layout not None):
        super().__init__(layout)
        self.path_costs, self.n_states = costs, costs.n_nodes
        if layout.max_label > 1:
            raise ValueError(f"labels of {layout.max_label} numbers, expected one leaf for each")
        self.decomposes = self.averaged = True
        self.takes_unseen = costs.tree  # as tables of levels have

    def check_truths(self, labels):
        """Refuse true labels that are not leaves; see :meth:`Loss.check_truths`."""
        truths = np.asarray(labels)
        leaf = self.path_costs.is_leaf
        if truths.shape != (self.layout.n,):
            raise ValueError(
                f"labels: found shape {truths.shape}, expected the number of one leaf for each "
                f"example, ({self.layout.n},)"
            )
        known = (truths >= 0) & (truths < len(leaf))
        known[known] = leaf[truths[known]]
        known |= (truths == len(leaf)) & self.takes_unseen
        if not known.all():
            i = int(np.argmin(known))
            raise ValueError(
                f"example {i}: the true label is the node {truths[i]}, expected the number of one "
                "leaf for each example"
            )

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        return self.path_costs.between(truth[0], label[0])

    cdef double augment(self, Py_ssize_t i, const int* truth, double scale,
                        double* theta) except? -1 nogil:
        self.path_costs.add(truth[0], scale, theta)
        return 0
