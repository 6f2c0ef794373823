# Best closed sets of a directed acyclic graph.
from structsolve.algorithms.minimum_cut cimport CutGraph


cdef class ClosureGraph:
    cdef readonly Py_ssize_t n, m, work_bytes
    cdef CutGraph graph             # even arcs lead to parents, odd ones to children
    cdef const int* n_up            # numbers of parents and children
    cdef const int* n_down
    cdef object owners

    # on <- the best closed set of nodes with these gains, which are overwritten.
    cdef void best(self, double* gain, signed char* on, char* work) noexcept nogil
    # The same, and worth <- best value with a node on minus best value with it off.
    cdef void worths(self, const double* gain, signed char* on, double* worth,
                     char* work) noexcept nogil
