# The base of all searches for the saddle point of the max-min margin.
from libc.stdint cimport int64_t
from ..operators cimport Loss, Oracle, Parts, Projection
from .rows cimport NodeRows


cdef class MaxMinGame(Projection):
    cdef readonly NodeRows rows
    cdef Oracle oracle
    cdef Loss loss
    cdef Parts parts
    cdef const int* labels
    cdef readonly int max_iter
    cdef readonly double tol
    cdef readonly bint warm_start
    cdef Py_ssize_t vectors, vector_bytes, label_bytes, scratch_bytes, entries
    cdef object labels_owner
    cdef object spent
    cdef int64_t[::1] spent_view
    cdef double[::1] unit
    # For every example, G + <theta, mu> of the solver's current mu, or infinity: an answer far
    # above it may be less accurate.
    cdef double[::1] standing

    cdef double* vector(self, char* work, int number) noexcept nogil
    cdef int* label(self, char* work) noexcept nogil
    cdef double* entry_values(self, char* work) noexcept nogil
    cdef char* scratch(self, char* work) noexcept nogil
    cdef char* more(self, char* work) noexcept nogil
    cdef double unit_of(self, Py_ssize_t i, char* work) except? -1
    cdef double score_of(self, Py_ssize_t i, const double* theta, const int* label,
                         char* work) except? -1 nogil
    cdef double least(self, Py_ssize_t i, double* costs, char* work) except? -1 nogil
    cdef bint enough(self, Py_ssize_t i, double value, double bound, double truth) noexcept nogil
    cdef double search(self, Py_ssize_t i, const double* a, const double* b, double linear,
                       double curvature, char* work) except? -1 nogil
