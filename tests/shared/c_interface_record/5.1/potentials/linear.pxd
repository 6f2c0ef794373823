from libc.stdint cimport int64_t
from structsolve.abi_number cimport structsolve_abi_marker
from .features cimport FeatureRows
cdef enum Kind:
    SHARED
    NODE
    EDGE
cdef struct Place:
    Kind kind
    Py_ssize_t row, col
cdef class LinearPotentials:
    cdef readonly Py_ssize_t n, dim, shared_size, max_theta, max_nodes, max_edges
    cdef readonly Py_ssize_t node_size, edge_size, node_start, edge_start
    cdef readonly object layout
    cdef FeatureRows nodes, edges
    cdef const int64_t* offsets
    cdef const int64_t* edge_offsets
    cdef readonly bint has_gram
    cdef double[::1] node_gram
    cdef int64_t[::1] gram_offsets
    cdef const double* node_factors
    cdef readonly object node_scale
    cdef object owners
    cdef bint _flag0, _flag1, _flag2, _flag3
    cdef Py_ssize_t _room0, _room1, _room2, _room3
    cdef Place _place(self, Py_ssize_t i, int index) noexcept nogil
    cdef Py_ssize_t _run(self, Py_ssize_t i, Py_ssize_t nnz, const int* index, Place* place, int* cols) noexcept nogil
    cdef Py_ssize_t theta_size(self, Py_ssize_t i) noexcept nogil
    cdef void score(self, Py_ssize_t i, const double* w, double scale, double* theta) noexcept nogil
    cdef void add(self, Py_ssize_t i, Py_ssize_t nnz, const int* index, const double* value, double coef, double* w) noexcept nogil
    cdef void clear(self, Py_ssize_t i, Py_ssize_t nnz, const int* index, double* w) noexcept nogil
    cdef void scores(self, Py_ssize_t i, Py_ssize_t nnz, const int* index, const double* w, double* out) noexcept nogil
    cdef double dot(self, Py_ssize_t i, Py_ssize_t nnz, const int* index, const double* value, const double* w) noexcept nogil
    cdef void add_gram(self, Py_ssize_t i, Py_ssize_t nnz, const int* index, const double* value, double coef, double* u, double* scratch) noexcept nogil
    cdef void move_gram(self, Py_ssize_t i, Py_ssize_t nnz, const int* index, double coef, double* u, double* theta) noexcept nogil
    cdef void clear_gram(self, Py_ssize_t i, Py_ssize_t nnz, const int* index, double* u) noexcept nogil
