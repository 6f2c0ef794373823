# Surrogates max_mu G(mu) + <theta, mu - mu(y_i)>, made of a projection.
from libc.stdint cimport int64_t
from ..operators cimport Parts, Projection
from ..potentials.linear cimport LinearPotentials
from ._base cimport Surrogate


cdef class FenchelYoung(Surrogate):
    cdef readonly Projection projection
    cdef readonly Parts parts
    cdef LinearPotentials potentials
    cdef const int* labels
    cdef const int64_t* label_offsets
    # Added to H_i, so that it is 0 where theta leaves no doubt: -G at the truth.
    cdef readonly object offsets
    cdef readonly str concave
    cdef readonly Py_ssize_t state_rows
    cdef const double* offset
    cdef Py_ssize_t theta_bytes
    cdef object owners
    # out <- coef * mu(y_i) added, for a dense out; index and value are scratch of max_entries
    cdef int add_truth(self, Py_ssize_t i, double coef, double* out, int* index,
                       double* value) except -1 nogil
