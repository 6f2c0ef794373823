"""Losses of labelings with weighted nodes; void nodes of a true label have weight 0."""

import numpy as np

cimport cython
from libc.stdint cimport int64_t
from ..operators cimport Loss
from ..part_layout cimport PartLayout
from .node_losses cimport NodeCosts, check_states


def _weights_of(PartLayout layout not None, weights):
    given = np.ascontiguousarray(weights, dtype=np.float64)
    nodes = layout.label_offsets[layout.n]
    if given.shape != (nodes,) or not np.isfinite(given).all() or np.min(given, initial=0) < 0:
        raise ValueError(
            f"weights: found the shape {given.shape}, expected {nodes} numbers of at least 0, one "
            "per node"
        )
    return given


def _sums(PartLayout layout not None, weights):
    offsets = np.asarray(layout.examples.label_offsets)
    return np.diff(np.concatenate([[0.0], np.cumsum(weights)])[offsets])


@cython.final
cdef class WeightedNodeLoss(Loss):
    """``sum_v weight_v cost[truth_v, y_v]``, or this sum divided by the sum of the weights.

    Parameters
    ----------
    costs : NodeCosts
    weights : ndarray of float64
        Weights of the nodes of all examples.
    layout : PartLayout
        Has a node block of shape (K,); labels have one state per node.

    Attributes
    ----------
    sizes : ndarray of float64 of shape (n,)
        Weight of each example in scores.
    """

    cdef readonly object sizes
    cdef NodeCosts node_costs
    cdef const double[::1] weights, factors     # of nodes; of examples, 1 for sums
    cdef const int64_t* offsets
    cdef Py_ssize_t shared_size, stride

    def __init__(self, NodeCosts costs not None, weights, PartLayout layout not None):
        super().__init__(layout)
        self.weights = given = _weights_of(layout, weights)
        self.node_costs, self.n_states = costs, costs.K
        self.offsets = layout.label_offsets
        self.shared_size, self.stride = layout.shared_size, layout.node_size
        self.decomposes = self.has_costs = True
        self.averaged = costs.normalised
        self.takes_unseen = len(costs.cost_matrix) > costs.K
        self.sizes, factors = _sums(layout, given), np.ones(layout.n)
        if costs.normalised:
            some = self.sizes > 0
            factors[some] /= self.sizes[some]
            self.sizes = some.astype(float)
        self.factors = factors

    @property
    def cost_matrix(self):
        """Costs, an array of shape (rows, K): ``[truth, prediction]``."""
        return self.node_costs.cost_matrix

    def check_truths(self, labels):
        """Refuse true labels that have no row of costs; see :meth:`Loss.check_truths`."""
        check_states(self.node_costs, self.layout, labels)

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        cdef Py_ssize_t v, first = self.offsets[i]
        cdef double total = 0
        for v in range(self.offsets[i + 1] - first):
            total += (self.weights[first + v]
                      * self.node_costs.cost[truth[v] * self.n_states + label[v]])
        return self.factors[i] * total

    cdef double augment(self, Py_ssize_t i, const int* truth, double scale,
                        double* theta) except? -1 nogil:
        cdef Py_ssize_t v, s, first = self.offsets[i]
        cdef double* row = theta + self.shared_size
        cdef const double* cost
        cdef double weight
        for v in range(self.offsets[i + 1] - first):
            weight = scale * self.factors[i] * self.weights[first + v]
            cost = self.node_costs.cost + truth[v] * self.n_states
            for s in range(self.n_states):
                row[s] += weight * cost[s]
            row += self.stride
        return 0

    cdef double costs(self, Py_ssize_t i, const double* nu, bint transposed, double scale,
                      double* theta) except? -1 nogil:
        cdef Py_ssize_t v, s, t, first = self.offsets[i], K = self.n_states
        cdef double* row = theta + self.shared_size
        cdef const double* given = nu + self.shared_size
        cdef const double* cost = self.node_costs.cost
        cdef double weight
        if transposed:
            cost = self.node_costs.transposed
        for v in range(self.offsets[i + 1] - first):
            for t in range(K):
                weight = scale * self.factors[i] * self.weights[first + v] * given[t]
                for s in range(K):
                    row[s] += weight * cost[t * K + s]
            row += self.stride
            given += self.stride
        return 0


@cython.final
cdef class CountedZeroOne(Loss):
    """1 for labelings that differ from the truth at a node of nonzero weight.

    Parameters
    ----------
    weights : ndarray of float64
        Weights of the nodes of all examples.
    layout : PartLayout

    Attributes
    ----------
    sizes : ndarray of float64 of shape (n,)
        1 for examples with such a node.
    """

    cdef readonly object sizes
    cdef const double[::1] weights
    cdef const int64_t* offsets

    def __init__(self, weights, PartLayout layout not None):
        super().__init__(layout)
        self.weights = given = _weights_of(layout, weights)
        self.offsets = layout.label_offsets
        self.averaged = self.takes_unseen = True
        self.zero_one = bool((given > 0).all())
        self.sizes = (_sums(layout, given) > 0).astype(float)

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        cdef Py_ssize_t v, first = self.offsets[i]
        for v in range(self.offsets[i + 1] - first):
            if truth[v] != label[v] and self.weights[first + v] > 0:
                return 1
        return 0
