# Linear potentials with a metric along the last axis of a node's parts.
from .linear cimport LinearPotentials


cdef enum:
    MOST_MIXED = 256    # states along the axis: room on the stack for them


cdef class MixedPotentials(LinearPotentials):
    cdef readonly object node_mix       # M
    cdef const double[:, ::1] mix       # M, symmetric
    cdef const double[:, ::1] square    # M M
    cdef readonly Py_ssize_t size, stride   # states along the axis, and doubles from row to row

    # The number of the first entries of index that lie on one axis, with their states on it, and
    # the n entries of all its states; or one entry alone, where it is no node's.
    cdef Py_ssize_t axis(self, Py_ssize_t i, Py_ssize_t nnz, const int* index, int* states,
                         int* entries, Py_ssize_t* n) noexcept nogil
    # The same, with coefs: what coef times these values is on the n entries, times M.
    cdef Py_ssize_t spread(self, Py_ssize_t i, Py_ssize_t nnz, const int* index,
                           const double* value, const double[:, ::1] M, double coef, int* entries,
                           double* coefs, Py_ssize_t* n) noexcept nogil
