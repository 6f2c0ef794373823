# Sizes of the examples of one set, and which pairs are forbidden.
from libc.stdint cimport int64_t


cdef class PairShape:
    cdef readonly Py_ssize_t n, max_rows, max_cols, max_theta
    cdef readonly bint any_forbidden
    cdef const int64_t* rows
    cdef const int64_t* cols
    cdef const int64_t* offsets         # first label of each example
    cdef const int64_t* pairs           # first pair of each example, in `forbidden`
    cdef const unsigned char* mask      # NULL: nothing is forbidden
    cdef Py_ssize_t padded              # doubles in a row of theta; 0: as many as there are columns
    cdef object owners
    cdef Py_ssize_t stride(self, Py_ssize_t i) noexcept nogil
    cdef const unsigned char* forbidden(self, Py_ssize_t i) noexcept nogil
