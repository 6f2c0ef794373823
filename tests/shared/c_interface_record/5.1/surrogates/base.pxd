from libc.stdint cimport uint64_t
from structsolve.abi_number cimport structsolve_abi_marker
from ..operators cimport Operator
cdef struct Cut:
    Py_ssize_t nnz
    int* index
    double* value
    double b
    double bound
    uint64_t key
    int calls
cdef class Surrogate(Operator):
    cdef readonly Py_ssize_t max_entries
    cdef readonly bint exact
    cdef readonly bint affine
    cdef readonly bint convex
    cdef readonly bint has_simplex
    cdef int cut(self, Py_ssize_t i, const double* theta, const int* truth, Cut* cut, char* work) except -1 nogil
    cdef int simplex(self, Py_ssize_t i, const int* truth, double* b, int* truth_index) except -1 nogil
