# build: glue
"""Unions of paths in graphs with several parents, by linear and integer programs.

Finding the best union is NP-hard there (it is a set cover).  Training solves the relaxation and
rounds it to a label with a bound; prediction solves the integer program.
"""

import numpy as np

cimport cython
from libc.string cimport memcpy
from structsolve.operators cimport Oracle
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.dag._shape cimport HierarchyShape


cdef object _scores(HierarchyShape shape, const double* theta):
    scores = np.empty(shape.M)
    cdef double[::1] view = scores
    memcpy(&view[0], theta, shape.M * sizeof(double))
    return scores


@cython.final
cdef class UnionOracle(Oracle):
    """Calls a program in Python, with the GIL.

    Prediction is exact.  Training gets a rounded label, with the relaxation's value as its bound.

    Parameters
    ----------
    shape : HierarchyShape
    program : UnionProgram
    layout : PartLayout
    """

    cdef HierarchyShape shape
    cdef object program

    def __init__(self, HierarchyShape shape not None, program, PartLayout layout not None):
        super().__init__(layout)
        self.shape, self.program = shape, program
        self.exact = not layout.training
        self.n_states = shape.n_states

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        cdef Py_ssize_t v
        with gil:
            self._ask(theta, label, bound)
        value[0] = 0
        for v in range(self.shape.M):
            if label[v]:
                value[0] += theta[v]
        bound[0] = value[0] if self.exact or not bound[0] > value[0] else bound[0]
        return 0

    cdef int _ask(self, const double* theta, int* label, double* bound) except -1:
        cdef const int[::1] view
        if self.exact:
            answer = self.program.best(_scores(self.shape, theta))
        else:
            answer, bound[0] = self.program.rounded(_scores(self.shape, theta))
        view = np.ascontiguousarray(answer, dtype=np.int32)
        memcpy(label, &view[0], self.shape.M * sizeof(int))
        return 0
