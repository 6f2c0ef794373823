# cython: boundscheck=False, wraparound=False
"""Viterbi as in textbooks: a loop over pairs of states, and back-pointers."""

from structsolve.operators cimport Oracle
from structsolve.part_layout cimport PartLayout


cdef class TextbookChain(Oracle):
    """Best labels of chains."""

    cdef Py_ssize_t K, stride, shared_size, transition, start, end

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.K, self.stride = layout.shapes["node"][0], layout.node_size
        self.n_states = self.K
        self.shared_size = layout.shared_size
        self.transition = layout.starts["transition"]
        self.start = layout.starts.get("start", -1)
        self.end = layout.starts.get("end", -1)
        self.work_bytes = 2 * 8 * self.K + 4 * self.K * layout.max_nodes

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        cdef Py_ssize_t L = self.layout.nodes_of(i), K = self.K, v, s, t, best
        cdef const double* node = theta + self.shared_size
        cdef const double* table = theta + self.transition
        cdef double* old = <double*>work
        cdef double* new = old + K
        cdef int* origin = <int*>(new + K)
        cdef double x, top
        for s in range(K):
            old[s] = node[s] + (theta[self.start + s] if self.start >= 0 else 0)
        for v in range(1, L):
            for t in range(K):
                best, top = 0, old[0] + table[t]
                for s in range(1, K):
                    x = old[s] + table[s * self.stride + t]
                    if x > top:
                        best, top = s, x
                origin[v * K + t] = <int>best
                new[t] = top + node[v * self.stride + t]
            old, new = new, old
        best = 0
        for s in range(K):
            if self.end >= 0:
                old[s] += theta[self.end + s]
            if old[s] > old[best]:
                best = s
        value[0] = bound[0] = old[best]
        for v in range(L - 1, -1, -1):
            label[v] = <int>best
            best = origin[v * K + best] if v else 0
        return 0
