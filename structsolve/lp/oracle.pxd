# Oracles by linear programs, for callers that decode many examples at once.
from ..operators cimport Oracle


cdef class ProgramOracle(Oracle):
    cdef readonly object decoder
    cdef readonly bint batched
    cdef readonly str structure
    # Returns a copy of theta, the scores of example i.
    cdef object flat(self, Py_ssize_t i, const double* theta)
