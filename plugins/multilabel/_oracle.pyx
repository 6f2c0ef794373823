"""Label sets: the gain of each label."""

import numpy as np

from structsolve.operators cimport MaxMarginals, Oracle
from structsolve.part_layout cimport PartLayout


cdef class LabelSetWorths(MaxMarginals):
    """The gain of each label: the best score with it on, less the best with it off.

    The one row of nodes has one number per label.  If the graph of labels has no
    max-marginals, all other labels are those of the oracle.

    Parameters
    ----------
    best : MaxMarginals or None
        Max-marginals of the graph: a row for each label, off and on.
    oracle : Oracle or None
        Used if there are no max-marginals.
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
        if best is None and oracle is None:
            raise TypeError("best and oracle are None, expected one of them")
        self.best, self.oracle = best, oracle
        self.edges = np.ascontiguousarray(edges, dtype=np.int32).reshape(-1, 2)
        self.L, self.stride = layout.shapes["node"][0], layout.node_size
        self.node, self.pair = layout.shared_size, layout.starts.get("pair", 0)
        # Rows of the graph, or a label; then scratch memory of their operator.
        below = oracle if best is None else best
        self.work_bytes = self.row_bytes() + below.work_bytes

    cdef Py_ssize_t row_bytes(self) noexcept nogil:
        return (2 * self.L * sizeof(double) + 63) // 64 * 64

    cdef int max_marginals(self, Py_ssize_t i, const double* theta, double* out,
                           char* work) except -1 nogil:
        cdef double* rows = <double*>work
        cdef int* label = <int*>work
        cdef char* rest = work + self.row_bytes()
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
            self.add_each(theta, label, out)
        return 0

    cdef void add_each(self, const double* theta, const int* label, double* out) noexcept nogil:
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
