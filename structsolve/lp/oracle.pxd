# Oracles by linear programs, for those who gather what they are asked.
from ..operators cimport Oracle


cdef class ProgramOracle(Oracle):
    cdef readonly object decoder
    cdef readonly bint batched
    cdef str structure
    cdef object flat(self, Py_ssize_t i, const double* theta)
