# Surrogates max_mu G(mu) + <theta, mu - mu(y_i)>, from a projection.
from ..operators cimport Parts, Projection
from .base cimport Surrogate


cdef class FenchelYoung(Surrogate):
    cdef readonly Projection projection
    cdef readonly Parts parts
    cdef readonly str at_truth
    cdef readonly str concave
    cdef readonly Py_ssize_t state_rows
    cdef bint of_state, of_squares
    cdef Py_ssize_t vector_bytes
    # Returns -G(mu(truth)), which is added to H_i so that H_i is 0 for certain predictions.  index
    # and value are scratch memory of max_entries, work of work_bytes.
    cdef double offset(self, Py_ssize_t i, const int* truth, int* index, double* value,
                       char* work) except? -1 nogil
    # The same; index and value hold the n entries of mu(truth), and keep them.
    cdef double encoded_offset(self, Py_ssize_t i, const int* truth, Py_ssize_t n,
                               const int* index, const double* value,
                               char* work) except? -1 nogil
    # out += coef * mu(truth), for a dense out; index and value are scratch memory of max_entries.
    cdef int add_truth(self, Py_ssize_t i, const int* truth, double coef, double* out, int* index,
                       double* value) except -1 nogil
