# Linear potentials of examples whose nodes share one row of features.
from libc.stdint cimport int32_t
from .features cimport FeatureRows
from .linear cimport LinearPotentials


cdef enum:
    MOST_SHARED = 1024      # columns of the table: room on the stack for them


# A table of n_parts rows and n_columns columns, by rows and by columns.
cdef struct TableArrays:
    Py_ssize_t n_parts, n_columns
    const int32_t* starts       # of each row, its columns and values
    const int32_t* columns
    const double* values
    const int32_t* firsts       # of each column, its rows and values
    const int32_t* parts
    const double* entries


cdef class SharedTable:
    cdef TableArrays arrays
    cdef readonly Py_ssize_t width      # most entries of a row
    cdef object owners


cdef class SharedPotentials(LinearPotentials):
    cdef FeatureRows rows               # a row for each example
    cdef SharedTable table

    # The columns of some parts, each once, of the number returned; with values, their sums there.
    cdef Py_ssize_t gathered(self, Py_ssize_t nnz, const int* index, const double* value,
                             double coef, int* cols, double* coefs) noexcept nogil
