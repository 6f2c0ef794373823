"""Rings: the best labels (Viterbi for each first label), and the parts of labels."""

from libc.math cimport INFINITY
from structsolve.operators cimport Oracle, Parts
from structsolve.part_layout cimport PartLayout


cdef class RingOracle(Oracle):

    cdef Py_ssize_t K, stride, shared_size, transition

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)  # sizes of all examples: self.layout
        self.K = self.n_states = layout.shapes["node"][0]
        self.stride, self.shared_size = layout.node_size, layout.shared_size
        self.transition = layout.starts["transition"]
        self.work_bytes = 2 * self.K * sizeof(double) + layout.max_nodes * self.K * sizeof(int)

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        cdef Py_ssize_t K = self.K, L = self.layout.nodes_of(i), first, t, a, b
        cdef const double* table = theta + self.transition
        cdef const double* node = theta + self.shared_size
        cdef double* old = <double*>work
        cdef double* new = old + K
        cdef int* back = <int*>(old + 2 * K)
        cdef double score, best
        value[0] = -INFINITY
        for t in range(L):
            label[t] = 0
        for first in range(K):
            for a in range(K):
                old[a] = node[a] if a == first else -INFINITY
            for t in range(1, L):
                for b in range(K):
                    best = -INFINITY
                    back[t * K + b] = 0
                    for a in range(K):
                        score = old[a] + table[a * self.stride + b]
                        if score > best:
                            best = score
                            back[t * K + b] = <int>a
                    new[b] = best + node[t * self.stride + b]
                old, new = new, old
            for b in range(K):
                score = old[b] + table[b * self.stride + first]
                if score > value[0]:
                    value[0] = score
                    label[L - 1] = <int>b
                    for t in range(L - 1, 0, -1):
                        label[t - 1] = back[t * K + label[t]]
        bound[0] = value[0]  # exact: no label scores more
        return 0


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
