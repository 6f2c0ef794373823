# The best labeling of a chain for each value of an integer cost.
from structsolve.plugins.chain._shape cimport ChainShape

cdef Py_ssize_t counting_bytes(ChainShape shape, Py_ssize_t most) except -1
cdef int best_per_count(ChainShape shape, Py_ssize_t i, const double* theta,
                        const double* cost, Py_ssize_t most, int* labels, double* values,
                        char* work) except -1 nogil
