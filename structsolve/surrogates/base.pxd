# A surrogate's output for solvers: cuts (p, b) with H_i(w) >= b - <theta_i(w), p> for every w.
from libc.stdint cimport uint64_t
from structsolve.abi_number cimport structsolve_abi_marker
from ..operators cimport Operator

cdef struct Cut:
    # Capacity of index and value: Surrogate.max_entries, the caller's memory.
    Py_ssize_t nnz
    int* index
    double* value
    double b
    double bound        # upper bound of H_i for the theta of the call
    uint64_t key        # identifies the vertex: equal labels have equal keys
    int calls           # oracle calls spent


cdef class Surrogate(Operator):
    cdef readonly Py_ssize_t max_entries
    cdef readonly bint exact        # bound == b - <theta, p>: the search misses nothing
    # True (the default): every cut is below H_i everywhere, and H_i is the maximum of its cuts.
    # BCFW needs it.
    cdef readonly bint affine
    # True (the default): every cut is below H_i everywhere.  Cutting planes need it.
    cdef readonly bint convex
    # True: the cut of label y is (e_truth - e_y, b_y), where b does not depend on w; see simplex().
    cdef readonly bint has_simplex
    cdef int cut(self, Py_ssize_t i, const double* theta, const int* truth, Cut* cut,
                 char* work) except -1 nogil
    # b[y] <- b_y, for as many entries as theta has; truth_index <- that of the true label.
    cdef int simplex(self, Py_ssize_t i, const int* truth, double* b,
                     int* truth_index) except -1 nogil
