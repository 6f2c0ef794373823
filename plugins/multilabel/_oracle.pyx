"""Label sets: how much each label is worth, and losses."""

import numpy as np

from structsolve.operators cimport Loss, MaxMarginals, Oracle
from structsolve.part_layout cimport PartLayout


cdef class LabelSetWorths(MaxMarginals):
    """What each label adds: the best score with it on, less the best with it off.

    There is one number per label, in the one row of nodes.  Without max-marginals of the graph of
    labels, the others are as the oracle has them.

    Parameters
    ----------
    best : MaxMarginals or None
        Of the graph: a row for each label, off and on.
    oracle : Oracle or None
        Where there are no max-marginals.
    edges : ndarray of int32 of shape (m, 2)
        Pairs of labels that have scores.
    layout : PartLayout
    """

    cdef MaxMarginals best
    cdef Oracle oracle
    cdef const int[:, ::1] edges
    cdef Py_ssize_t L, stride, node, pair

    def __init__(self, MaxMarginals best, Oracle oracle, edges, PartLayout layout not None):
        super().__init__(layout)
        self.best, self.oracle = best, oracle
        self.edges = np.ascontiguousarray(edges, dtype=np.int32).reshape(-1, 2)
        self.L, self.stride = layout.shapes["node"][0], layout.node_size
        self.node, self.pair = layout.shared_size, layout.starts.get("pair", 0)
        # Rows of the graph, or a label; then what is asked for them.
        below = oracle if best is None else best
        self.work_bytes = self.own_bytes() + below.work_bytes

    cdef Py_ssize_t own_bytes(self) noexcept nogil:
        return (2 * self.L * sizeof(double) + 63) // 64 * 64

    cdef int max_marginals(self, Py_ssize_t i, const double* theta, double* out,
                           char* work) except -1 nogil:
        cdef double* rows = <double*>work
        cdef int* label = <int*>work
        cdef char* rest = work + self.own_bytes()
        cdef double value, bound
        cdef Py_ssize_t v
        for v in range(self.L, self.stride):
            out[v] = 0
        if self.best is not None:
            self.best.max_marginals(i, theta, rows, rest)
            for v in range(self.L):
                out[v] = rows[2 * v + 1] - rows[2 * v]
        else:
            self.oracle.argmax(i, theta, label, &value, &bound, rest)
            self.beside(theta, label, out)
        return 0

    cdef void beside(self, const double* theta, const int* label, double* out) noexcept nogil:
        # Score with a label on less the score with it off, all else as labelled.
        cdef const double* table = theta + self.pair
        cdef Py_ssize_t v, w, e
        for v in range(self.L):
            out[v] = theta[self.node + v]
        for e in range(self.edges.shape[0]):
            v, w = self.edges[e, 0], self.edges[e, 1]
            out[v] += table[2 + label[w]] - table[label[w]]
            out[w] += table[2 * label[v] + 1] - table[2 * label[v]]
            table += 4


cdef class LabelSetLoss(Loss):
    """What the losses of label sets share.

    Parameters
    ----------
    layout : PartLayout
    """

    cdef Py_ssize_t L, start

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.L, self.start, self.n_states = layout.shapes["node"][0], layout.shared_size, 2
        self.decomposes = True


cdef class LabelSetHamming(LabelSetLoss):
    """Number of labels that are wrongly on or off, or its mean over the labels.

    Parameters
    ----------
    normalised : bool
        Divide by L.
    layout : PartLayout
    """

    cdef readonly double weight

    def __init__(self, bint normalised, PartLayout layout):
        super().__init__(layout)
        self.weight = 1.0 / self.L if normalised else 1.0
        self.averaged = normalised
        self.has_costs = True

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        cdef Py_ssize_t v, wrong = 0
        for v in range(self.L):
            wrong += truth[v] != label[v]
        return self.weight * wrong

    cdef double augment(self, Py_ssize_t i, const int* truth, double scale,
                        double* theta) except? -1 nogil:
        # A label that is off costs 1 when it is turned on; one that is on saves 1.
        cdef Py_ssize_t v, on = 0
        cdef double* row = theta + self.start
        scale *= self.weight
        for v in range(self.L):
            row[v] += scale * (1 - 2 * truth[v])
            on += truth[v]
        return scale * on

    cdef double costs(self, Py_ssize_t i, const double* nu, bint transposed, double scale,
                      double* theta) except? -1 nogil:
        # sum_v y_v + y'_v - 2 y_v y'_v, the same both ways.  Labels that are off have no part:
        # what a label costs when it is on is affine in nu, and so is the constant.
        cdef Py_ssize_t v
        cdef double on = 0
        cdef double* row = theta + self.start
        nu += self.start
        scale *= self.weight
        for v in range(self.L):
            row[v] += scale * (1 - 2 * nu[v])
            on += nu[v]
        return scale * on


cdef class LabelSetCount(LabelSetLoss):
    """Number of labels in a set and in the true set: what micro-F1 divides by.

    Parameters
    ----------
    layout : PartLayout
    """

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        cdef Py_ssize_t v, on = 0
        for v in range(self.L):
            on += truth[v] + label[v]
        return on

    cdef double augment(self, Py_ssize_t i, const int* truth, double scale,
                        double* theta) except? -1 nogil:
        cdef Py_ssize_t v, on = 0
        cdef double* row = theta + self.start
        for v in range(self.L):
            row[v] += scale
            on += truth[v]
        return scale * on
