# Surrogates whose cut is that of one label.
from ..operators cimport Loss, Oracle, Parts
from .base cimport Cut, Surrogate


cdef class OneLabel(Surrogate):
    cdef Oracle oracle
    cdef Parts parts
    cdef Loss loss
    cdef Py_ssize_t theta_bytes
    cdef object shortfall_owner
    cdef double[::1] shortfall_view

    # Stores the excess of a known label's score over the oracle's bound, beyond rounding.
    cdef void note(self, Py_ssize_t i, const double* theta, double shortfall,
                   double scale) noexcept nogil
    # cut's entries and key <- those of the label; returns its score minus that of the truth.
    cdef double point_to(self, Py_ssize_t i, const double* theta, const int* truth,
                         const int* label, Cut* cut) except? -1 nogil
