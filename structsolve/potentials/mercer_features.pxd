# Rows of a Mercer kernel's matrix instead of rows of features.
from libc.stdint cimport int64_t
from .features cimport FeatureRows


cdef class MercerRows(FeatureRows):
    cdef readonly object kernel, X, offsets
    cdef double bias
    cdef const double* matrix           # precomputed: all of it; else NULL
    cdef Py_ssize_t column_stride       # doubles between two columns of the scores
    cdef readonly Py_ssize_t block_rows, n_slots
    cdef Py_ssize_t row_stride, n_filled    # doubles between rows of the pool; slots in use
    cdef readonly long computed         # blocks computed so far
    cdef double[::1] pool
    cdef int64_t[::1] slot_of_block, block_of_slot, last_use
    cdef int64_t clock
    # Gaussian kernel of few features: the features, column by column, and |x|^2 of the rows.
    cdef bint gaussian
    cdef double[:, ::1] columns
    cdef double[::1] squares
    cdef double scale                   # minus gamma
    cdef object error
    cdef bint interrupted
    # While steps use only some nodes: their kernel values, and the index of each node among them.
    cdef double[:, ::1] inner
    cdef int64_t[::1] places, inner_rows
    cdef Py_ssize_t inner_size          # 0: all nodes
    cdef object outer                   # duals and scores at the start, ||w||^2

    # K[row, :], without the constant feature; zeros after an error
    cdef const double* kernel_row(self, Py_ssize_t row) noexcept nogil
    cdef Py_ssize_t _free_slot(self) noexcept nogil
    cdef Py_ssize_t _compute(self, Py_ssize_t block) noexcept
    cdef Py_ssize_t _compute_gaussian(self, Py_ssize_t row) noexcept nogil
    # Offset of a node's scores in a column.
    cdef Py_ssize_t _place(self, Py_ssize_t row) noexcept nogil
