"""Unions of paths in graphs with several parents: what linear and integer programs answer.

The best union is NP-hard there (it covers sets).  With true labels the relaxation is solved, and
rounded to a label with a bound; to predict, the integer program.
"""

import numpy as np

cimport cython
from libc.string cimport memcpy, memset
from structsolve.operators cimport Oracle

from structsolve.plugins.dag._shape cimport HierarchyShape


@cython.final
cdef class UnionOracle(Oracle):
    """Asks a program in Python, with the GIL.

    Parameters
    ----------
    shape : HierarchyShape
    program : UnionProgram
    integer : bool
        Find the best label; else one by rounding, with the relaxation's value as its bound.
    """

    cdef HierarchyShape shape
    cdef object program
    cdef readonly bint integer

    def __init__(self, HierarchyShape shape, program, bint integer):
        self.shape, self.program, self.integer = shape, program, integer
        self.exact = integer
        self.has_relaxed = True
        self.work_bytes = 8

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.structure.calls``."""
        return self.shape.limits(i)

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    char* work) except -1 nogil:
        cdef double bound
        return self._decode(theta, label, value, &bound)

    cdef int argmax_bounded(self, Py_ssize_t i, const double* theta, int* label, double* value,
                            double* bound, char* work) except -1 nogil:
        return self._decode(theta, label, value, bound)

    cdef int _decode(self, const double* theta, int* label, double* value,
                     double* bound) except -1 nogil:
        cdef Py_ssize_t v
        with gil:
            self._ask(theta, label, bound)
        value[0] = 0
        for v in range(self.shape.M):
            if label[v]:
                value[0] += theta[v]
        bound[0] = value[0] if self.integer or not bound[0] > value[0] else bound[0]
        return 0

    cdef int _ask(self, const double* theta, int* label, double* bound) except -1:
        cdef const int[::1] view
        if self.integer:
            found = self.program.best(self._scores(theta))
        else:
            found, bound[0] = self.program.rounded(self._scores(theta))
        view = np.ascontiguousarray(found, dtype=np.int32)
        memcpy(label, &view[0], self.shape.M * sizeof(int))
        return 0

    cdef object _scores(self, const double* theta):
        scores = np.empty(self.shape.M)
        cdef double[::1] view = scores
        memcpy(&view[0], theta, self.shape.M * sizeof(double))
        return scores

    cdef int relax(self, Py_ssize_t i, const double* theta, double* mu, int* label,
                   double* value, char* work) except -1 nogil:
        cdef Py_ssize_t v
        cdef bint whole = True
        memset(mu, 0, self.shape.size * sizeof(double))
        with gil:
            self._relax(theta, mu)
        value[0] = 0
        for v in range(self.shape.M):
            whole = whole and (mu[v] == 0 or mu[v] == 1)
            label[v] = mu[v] == 1
            if mu[v] > 0:
                value[0] += theta[v] * mu[v]
        return whole

    cdef int _relax(self, const double* theta, double* mu) except -1:
        cdef const double[::1] found = self.program.relax(self._scores(theta))
        memcpy(mu, &found[0], self.shape.M * sizeof(double))
        return 0
