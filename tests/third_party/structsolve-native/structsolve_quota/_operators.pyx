# cython: boundscheck=False, wraparound=False, freethreading_compatible=True
"""Compiled operators of an outside structure, over the public C API of structsolve."""

from libc.math cimport INFINITY
from structsolve.operators cimport Oracle, Parts
from structsolve.part_layout cimport PartLayout


cdef class QuotaOracle(Oracle):
    """Rows in the order of what choosing them gains; every count up to the quota is tried."""

    cdef Py_ssize_t most

    def __init__(self, Py_ssize_t most, PartLayout layout not None):
        super().__init__(layout)
        self.most, self.n_states = most, 2
        self.work_bytes = 8 * layout.max_nodes

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        cdef Py_ssize_t L = self.layout.nodes_of(i), v, place, count, best = 0
        cdef const double* node = theta + self.layout.shared_size
        cdef double* gain = <double*>work
        cdef double total, top = -INFINITY
        # label holds the order of the rows until the best count is known.
        for v in range(L):
            gain[v] = node[2 * v + 1] - node[2 * v]
            place = v
            while place > 0 and gain[label[place - 1]] < gain[v]:
                label[place] = label[place - 1]
                place -= 1
            label[place] = <int>v
        for count in range(min(self.most, L) + 1):
            total = theta[count]
            for v in range(L):
                total += node[2 * label[v] + (v < count)]
            if count == 0 or total > top:
                top = total
                best = count
        for v in range(L):
            gain[label[v]] = v < best
        for v in range(L):
            label[v] = gain[v] > 0
        value[0] = bound[0] = top
        return 0


cdef class QuotaParts(Parts):
    """The state of every row, and how many are chosen."""

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.n_states = 2
        self.max_entries = 2 * (layout.max_nodes + 1)

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        cdef Py_ssize_t L = self.layout.nodes_of(i), v
        cdef int count = 0
        for v in range(L):
            index[v] = <int>(self.layout.shared_size + 2 * v + label[v])
            value[v] = 1
            count += label[v]
        index[L] = count
        value[L] = 1
        return L + 1
