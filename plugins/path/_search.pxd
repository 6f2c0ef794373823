# Best simple paths in graphs with cycles.
from structsolve.plugins.path._shape cimport PathShape


# Scratch memory of the functions below.
cdef Py_ssize_t search_bytes(PathShape shape) noexcept nogil
cdef Py_ssize_t yen_bytes(PathShape shape, Py_ssize_t k) noexcept

# via[p] <- the step that the best path from place `start` takes from p; value <- its score, without
# that of its first node; -inf if there is none.  False if a cycle has a positive score.
cdef bint best_simple_path(PathShape shape, Py_ssize_t i, const double* steps, int start,
                           double* value, int* via, char* work) noexcept nogil
# labels, values <- the k best paths; returns how many exist; an error if a cycle has a
# positive score.
cdef Py_ssize_t k_simple_paths(PathShape shape, Py_ssize_t i, const double* steps, Py_ssize_t k,
                               int* labels, double* values, char* work) except -1 nogil
