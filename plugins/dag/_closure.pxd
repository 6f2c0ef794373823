# Best closed sets of a directed acyclic graph.
from structsolve.algorithms.max_flow cimport Network


cdef class ClosureGraph:
    cdef readonly Py_ssize_t n, m, work_bytes
    cdef Network template           # arcs with residuals lead to parents, their twins to children
    cdef const int* n_up            # numbers of parents and children
    cdef const int* n_down
    cdef object owners

    # on <- the best closed set of nodes with these gains, which are changed.
    cdef void best(self, double* gain, signed char* on, char* work) noexcept nogil
    # The same, and worth <- best with a node on less best with it off.
    cdef void worths(self, const double* gain, signed char* on, double* worth,
                     char* work) noexcept nogil
