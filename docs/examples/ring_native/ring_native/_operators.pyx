"""Rings: the best labels (Viterbi for each first label), and the parts of labels."""

from libc.math cimport INFINITY
from structsolve.operators cimport Oracle, Parts


cdef class RingOracle(Oracle):

    cdef const long long[::1] offsets
    cdef Py_ssize_t K, stride, shared_size, transition

    def __init__(self, layout, offsets):
        self.offsets = offsets
        self.K, self.stride = layout.node.shape[0], layout.node.stride
        self.shared_size, self.transition = layout.shared_size, layout.starts["transition"]
        longest = max(offsets[1:] - offsets[:-1])
        self.work_bytes = 2 * self.K * sizeof(double) + longest * self.K * sizeof(int)

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    char* work) except -1 nogil:
        cdef Py_ssize_t K = self.K, L = self.offsets[i + 1] - self.offsets[i], first, t, a, b
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
        return 0


cdef class RingParts(Parts):

    cdef const long long[::1] offsets
    cdef Py_ssize_t stride, shared_size, transition

    def __init__(self, layout, offsets):
        self.offsets, self.stride = offsets, layout.node.stride
        self.shared_size, self.transition = layout.shared_size, layout.starts["transition"]
        self.max_entries = 4 * max(offsets[1:] - offsets[:-1])  # of two labels, for difference()

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        cdef Py_ssize_t L = self.offsets[i + 1] - self.offsets[i], t, after
        for t in range(L):
            after = label[t + 1] if t + 1 < L else label[0]
            index[2 * t] = <int>(self.shared_size + t * self.stride + label[t])
            index[2 * t + 1] = <int>(self.transition + label[t] * self.stride + after)
            value[2 * t] = value[2 * t + 1] = 1
        return 2 * L
