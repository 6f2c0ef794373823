# cython: boundscheck=False, wraparound=False, cdivision=True
"""Rings: the best labels (Viterbi for each first label), and the parts of labels."""

from libc.math cimport INFINITY
from structsolve.operators cimport Oracle, Parts
from structsolve.part_layout cimport PartLayout
from structsolve.simd.loops cimport ss_loop_table, ss_loops


cdef class RingOracle(Oracle):

    cdef Py_ssize_t K, stride, shared_size, transition
    cdef const ss_loop_table* loops  # vector loops over rows of `stride` numbers

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)  # sizes of all examples: self.layout
        self.K = self.n_states = layout.shapes["node"][0]
        self.stride, self.shared_size = layout.node_size, layout.shared_size
        self.transition = layout.starts["transition"]
        self.loops = ss_loops(self.stride)
        self.work_bytes = 8 * self.stride * layout.max_nodes

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        cdef Py_ssize_t K = self.K, L = self.layout.nodes_of(i), stride = self.stride, first, s, t
        cdef const double* table = theta + self.transition
        cdef const double* node = theta + self.shared_size
        cdef double* row = <double*>work  # best scores of the first t labels, by the last
        cdef double* last = row + (L - 1) * stride
        cdef bint better
        value[0] = -INFINITY
        for t in range(L):
            label[t] = 0
        for first in range(K):
            for s in range(stride):
                row[s] = node[s] if s == first else -INFINITY
            self.loops.viterbi(L, K, table, stride, node, row)
            better = False
            for s in range(K):
                if last[s] + table[s * stride + first] > value[0]:
                    value[0] = last[s] + table[s * stride + first]
                    label[L - 1], better = <int>s, True
            if better:
                self._path(L, node, table, last, label)
        bound[0] = value[0]  # exact: no label scores more
        return 0

    cdef void _path(self, Py_ssize_t L, const double* node, const double* table,
                    const double* row, int* label) noexcept nogil:
        # Labels before the last, backward: those whose sums equal the scores in `row`.  Sums in
        # the order of viterbi() are equal to the last bit.
        cdef Py_ssize_t stride = self.stride, s, t = label[L - 1], v
        for v in range(L - 1, 0, -1):
            s = 0
            while (s < self.K - 1 and row[s - stride] + table[s * stride + t]
                   + node[v * stride + t] != row[t]):
                s += 1
            t, row = s, row - stride
            label[v - 1] = <int>t


cdef class RingParts(Parts):

    cdef Py_ssize_t stride, shared_size, transition

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.n_states, self.stride = layout.shapes["node"][0], layout.node_size
        self.shared_size, self.transition = layout.shared_size, layout.starts["transition"]
        self.max_entries = 4 * layout.max_nodes  # of two labels, for difference()

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        cdef Py_ssize_t L = self.layout.nodes_of(i), t, after
        for t in range(L):
            after = label[t + 1] if t + 1 < L else label[0]
            index[2 * t] = <int>(self.shared_size + t * self.stride + label[t])
            index[2 * t + 1] = <int>(self.transition + label[t] * self.stride + after)
            value[2 * t] = value[2 * t + 1] = 1
        return 2 * L
