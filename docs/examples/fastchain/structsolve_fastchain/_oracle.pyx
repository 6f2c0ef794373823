# cython: boundscheck=False, wraparound=False, cdivision=True
"""Viterbi on the declared vector loops, and a wrapper that counts the calls of any oracle."""

from structsolve.operators cimport Oracle
from structsolve.part_layout cimport PartLayout
from structsolve.simd.loops cimport ss_loop_table, ss_loops


cdef class FastChain(Oracle):
    """Best labels of chains: scores forward, then the path backward from equal sums."""

    cdef Py_ssize_t K, stride, shared_size, transition, start, end
    cdef const ss_loop_table* loops

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.K, self.stride = layout.shapes["node"][0], layout.node_size
        self.n_states, self.loops = self.K, ss_loops(self.stride)
        self.shared_size = layout.shared_size
        self.transition = layout.starts["transition"]
        self.start = layout.starts.get("start", -1)
        self.end = layout.starts.get("end", -1)
        self.work_bytes = 8 * self.stride * (layout.max_nodes + 1)  # a row per node, and the ends

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        cdef Py_ssize_t L = self.layout.nodes_of(i), K = self.K, stride = self.stride, v, s, t
        cdef const double* node = theta + self.shared_size
        cdef const double* table = theta + self.transition
        cdef const double* column
        cdef double* row = <double*>work
        cdef double own, target
        for s in range(stride):
            row[s] = node[s] + (theta[self.start + s] if self.start >= 0 else 0)
        self.loops.viterbi(L, K, table, stride, node, row)
        row += (L - 1) * stride
        if self.end >= 0:
            for s in range(stride):
                row[stride + s] = row[s] + theta[self.end + s]
        t = self.loops.first_best(K, row + (stride if self.end >= 0 else 0), value)
        bound[0] = value[0]  # exact: no label scores more
        label[L - 1] = <int>t
        for v in range(L - 1, 0, -1):
            own, target, column = node[v * stride + t], row[t], table + t
            row -= stride
            t = 0
            for s in range(K):  # in the order of the sums above: equal to the last bit
                if row[s] + column[s * stride] + own == target:
                    t = s
                    break
            label[v - 1] = <int>t
        return 0


cdef class Counted(Oracle):
    """Wraps another oracle; ``calls`` counts its calls, by one thread at a time."""

    cdef Oracle inner
    cdef readonly long calls

    def __init__(self, Oracle inner not None):
        super().__init__(inner.layout)
        self.inner, self.exact = inner, inner.exact
        self.n_states, self.work_bytes = inner.n_states, inner.work_bytes

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        self.calls += 1
        return self.inner.argmax(i, theta, label, value, bound, work)
