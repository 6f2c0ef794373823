# Surrogates whose cut is that of one label.
from libc.stdint cimport int64_t
from ..operators cimport Loss, Oracle, Parts
from ..potentials.linear cimport LinearPotentials
from ._base cimport Cut, Surrogate


cdef class OneLabel(Surrogate):
    cdef Oracle oracle
    cdef Parts parts
    cdef Loss loss
    cdef LinearPotentials potentials
    cdef const int* labels
    cdef const int64_t* label_offsets
    cdef Py_ssize_t theta_bytes, longest
    cdef object owners

    # cut's entries and key <- those of the label; returns its score less that of the truth.
    cdef double point_to(self, Py_ssize_t i, const double* theta, const int* label,
                         Cut* cut) except? -1 nogil
