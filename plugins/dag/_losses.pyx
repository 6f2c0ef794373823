# build: glue
"""Losses between labels of a hierarchy: weighted Hamming, hierarchical, zero-one, counts.

The shape says how labels are encoded.
"""

import numpy as np

from structsolve.operators cimport Loss
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.dag._shape cimport HierarchyShape, Lines


cdef class HierarchyLoss(Loss):
    """Base of the losses: checks of labels and weights.

    Parameters
    ----------
    shape : HierarchyShape
    layout : PartLayout
    """

    cdef HierarchyShape shape
    cdef Py_ssize_t width
    cdef object owner

    def __init__(self, HierarchyShape shape not None, PartLayout layout not None):
        super().__init__(layout)
        self.shape, self.width = shape, 1 if shape.single else shape.M
        self.n_states = shape.n_states
        self.takes_unseen = shape.single and shape.forest  # as tables of levels have

    def check_truths(self, labels):
        size, states = self.layout.n * self.width, self.n_states + self.takes_unseen
        if labels.shape != (size,):
            raise ValueError(f"found {len(labels)} labels, expected {size}")
        if size and not 0 <= labels.min() <= labels.max() < states:
            wrong = np.flatnonzero((labels < 0) | (labels >= states))
            raise ValueError(
                f"example {wrong[0] // self.width}: found the label {labels[wrong[0]]}, expected 0 "
                f"to {self.n_states - 1}"
            )

    cdef const double* _weights(self, weights) except NULL:
        cdef const double[::1] view = np.ascontiguousarray(weights, dtype=np.float64)
        if view.shape[0] != self.shape.M:
            raise ValueError(f"found {view.shape[0]} weights, expected {self.shape.M}")
        self.owner = view
        return &view[0]


cdef class WeightedHamming(HierarchyLoss):
    """Sum of the weights of nodes that are wrongly on or off.

    Parameters
    ----------
    shape : HierarchyShape
    weights : ndarray of float64 of shape (M,)
        At least 0.
    averaged : bool
        The loss is a mean over the nodes.
    layout : PartLayout
    """

    cdef const double* weights

    def __init__(self, HierarchyShape shape not None, weights, bint averaged,
                 PartLayout layout not None):
        super().__init__(shape, layout)
        self.weights = self._weights(weights)
        self.decomposes = self.has_costs = True
        self.averaged = averaged

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        cdef Py_ssize_t v
        cdef double total = 0
        cdef int node
        cdef bint of_truth = False
        cdef Lines both
        if not self.shape.single:
            for v in range(self.shape.M):
                if truth[v] != label[v]:
                    total += self.weights[v]
            return total
        both = self.shape.lines(truth[0], label[0])
        node = self.shape.next_apart(&both, &of_truth)
        while node >= 0:
            total += self.weights[node]
            node = self.shape.next_apart(&both, &of_truth)
        return total

    cdef double augment(self, Py_ssize_t i, const int* truth, double scale,
                        double* theta) except? -1 nogil:
        # A wrong node costs its weight: off in the truth and on in the label, or the reverse.
        cdef Py_ssize_t v
        cdef double const = 0
        cdef int node, cursor = 0
        for v in range(self.shape.M):
            theta[v] += scale * self.weights[v]
        if self.shape.single:
            node = self.shape.start(truth[0], &cursor)
            while node >= 0:
                theta[node] -= 2 * scale * self.weights[node]
                const += self.weights[node]
                node = self.shape.next(node, &cursor)
            return scale * const
        for v in range(self.shape.M):
            if truth[v]:
                theta[v] -= 2 * scale * self.weights[v]
                const += self.weights[v]
        return scale * const

    cdef double costs(self, Py_ssize_t i, const double* nu, bint transposed, double scale,
                      double* theta) except? -1 nogil:
        # sum_v w_v (y_v + y'_v - 2 y_v y'_v), the same both ways: affine in nu.
        cdef Py_ssize_t v
        cdef double const = 0
        for v in range(self.shape.M):
            theta[v] += scale * self.weights[v] * (1 - 2 * nu[v])
            const += self.weights[v] * nu[v]
        return scale * const


cdef class HierarchicalLoss(HierarchyLoss):
    """Weights of nodes that are wrong while all their parents are right.

    On forests ``sum_k c_k (t_k y_p + t_p y_k - 2 t_k y_k)`` over nodes k with parents p, where
    ``t_p = y_p = 1`` at roots: linear in either label, as these are closed.  On graphs no linear
    function expresses that all parents are right, so ``decomposes`` is False.

    Parameters
    ----------
    shape : HierarchyShape
    weights : ndarray of float64 of shape (M,)
    layout : PartLayout
    """

    cdef const double* weights

    def __init__(self, HierarchyShape shape not None, weights, PartLayout layout not None):
        super().__init__(shape, layout)
        self.weights = self._weights(weights)
        self.decomposes = self.has_costs = shape.forest

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        if self.shape.single:
            return self._value_of_leaves(truth[0], label[0])
        cdef Py_ssize_t v, k
        cdef double total = 0
        cdef bint right
        for v in range(self.shape.M):
            if truth[v] == label[v]:
                continue
            right = True
            for k in range(self.shape.up_first[v], self.shape.up_first[v + 1]):
                right = right and truth[self.shape.up[k]] == label[self.shape.up[k]]
            if right:
                total += self.weights[v]
        return total

    cdef double _value_of_leaves(self, int truth, int label) noexcept nogil:
        cdef Lines both = self.shape.lines(truth, label)
        cdef bint of_truth = False
        cdef double total = 0
        cdef int node = self.shape.next_apart(&both, &of_truth)
        while node >= 0:
            total += self._charge(node, label if of_truth else truth)
            node = self.shape.next_apart(&both, &of_truth)
        return total

    cdef double _charge(self, int v, int leaf) noexcept nogil:
        # Cost of v, which is above one leaf only: its parents are right if all are also above the
        # other leaf.
        cdef Py_ssize_t k
        cdef int u, cursor = 0
        for k in range(self.shape.up_first[v], self.shape.up_first[v + 1]):
            u = self.shape.start(leaf, &cursor)
            while u >= 0 and u != self.shape.up[k]:
                u = self.shape.next(u, &cursor)
            if u < 0:
                return 0
        return self.weights[v]

    cdef double augment(self, Py_ssize_t i, const int* truth, double scale,
                        double* theta) except? -1 nogil:
        cdef Py_ssize_t v
        cdef int p, node, cursor = 0
        cdef double c, const = 0
        if self.shape.single:
            for v in range(self.shape.M):
                if self.shape.parent[v] < 0:
                    theta[v] += scale * self.weights[v]
            node = self.shape.start(truth[0], &cursor)
            while node >= 0:
                p = self.shape.parent[node]
                c = self.weights[node]
                theta[node] -= 2 * scale * c
                if p >= 0:
                    theta[p] += scale * c
                else:
                    const += c
                for v in range(self.shape.child_first[node], self.shape.child_first[node + 1]):
                    theta[self.shape.child[v]] += scale * self.weights[self.shape.child[v]]
                node = self.shape.next(node, &cursor)
            return scale * const
        for v in range(self.shape.M):
            p = self.shape.parent[v]
            c = self.weights[v]
            if p < 0:
                theta[v] += scale * c * (1 - 2 * truth[v])
                const += c * truth[v]
            elif truth[p]:
                theta[v] += scale * c * (1 - 2 * truth[v])
                theta[p] += scale * c * truth[v]
        return scale * const

    cdef double costs(self, Py_ssize_t i, const double* nu, bint transposed, double scale,
                      double* theta) except? -1 nogil:
        # Symmetric in both labels.
        cdef Py_ssize_t v
        cdef int p
        cdef double c, const = 0
        for v in range(self.shape.M):
            p = self.shape.parent[v]
            c = self.weights[v]
            if p < 0:
                theta[v] += scale * c * (1 - 2 * nu[v])
                const += c * nu[v]
            else:
                theta[v] += scale * c * (nu[p] - 2 * nu[v])
                theta[p] += scale * c * nu[v]
        return scale * const


cdef class ZeroOneSet(HierarchyLoss):
    """1 for every set but the true one."""

    def __init__(self, HierarchyShape shape not None, PartLayout layout not None):
        super().__init__(shape, layout)
        self.zero_one = self.averaged = True

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        cdef Py_ssize_t v
        for v in range(self.width):
            if truth[v] != label[v]:
                return 1
        return 0


cdef class ZeroOneLeaf(HierarchyLoss):
    """1 for every leaf but the true one: linear in the parts that are leaves."""

    def __init__(self, HierarchyShape shape not None, PartLayout layout not None):
        super().__init__(shape, layout)
        self.zero_one = self.averaged = self.decomposes = self.has_costs = True

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        return truth[0] != label[0]

    cdef double augment(self, Py_ssize_t i, const int* truth, double scale,
                        double* theta) except? -1 nogil:
        if truth[0] < self.n_states:
            theta[truth[0]] -= scale
        return scale

    cdef double costs(self, Py_ssize_t i, const double* nu, bint transposed, double scale,
                      double* theta) except? -1 nogil:
        cdef Py_ssize_t j
        for j in range(self.shape.n_leaves):
            theta[self.shape.leaves[j]] -= scale * nu[self.shape.leaves[j]]
        return scale


cdef class CountLoss(HierarchyLoss):
    """Number of nodes in a set and in the true set: the denominator of micro-F1."""

    def __init__(self, HierarchyShape shape not None, PartLayout layout not None):
        super().__init__(shape, layout)
        self.decomposes = True

    cdef Py_ssize_t _count(self, const int* label) noexcept nogil:
        cdef Py_ssize_t v, on = 0
        cdef int node, cursor = 0
        if self.shape.single:
            node = self.shape.start(label[0], &cursor)
            while node >= 0:
                on += 1
                node = self.shape.next(node, &cursor)
            return on
        for v in range(self.shape.M):
            on += label[v]
        return on

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        return self._count(truth) + self._count(label)

    cdef double augment(self, Py_ssize_t i, const int* truth, double scale,
                        double* theta) except? -1 nogil:
        cdef Py_ssize_t v
        for v in range(self.shape.M):
            theta[v] += scale
        return scale * self._count(truth)
