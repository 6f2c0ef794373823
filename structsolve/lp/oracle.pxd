# The oracle of any structure with a polytope, for those who gather what it is asked.
from ..operators cimport Oracle


cdef class ProgramOracle(Oracle):
    cdef readonly object decoder
    cdef readonly bint batched
    cdef object space, examples
    cdef Py_ssize_t theta_size(self, Py_ssize_t i) except -1
    cdef object flat(self, Py_ssize_t i, const double* theta)
    cdef str empty(self, Py_ssize_t i)
    cdef int write(self, Py_ssize_t i, object found, int* label) except -1
    cdef int point(self, Py_ssize_t i, object found, double* mu, int* label,
                   double* value) except -1
