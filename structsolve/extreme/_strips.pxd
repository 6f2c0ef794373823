# Rows that are scored together, a strip of classes after the other.  Not part of the C interface.
from libc.stdint cimport int32_t, int64_t, uint16_t

from .list_loops cimport FeatureList


cdef struct Cursor:
    # The part of a feature's list that is not read yet.
    const int32_t* classes  # NULL: a weight for each class
    const void* weights     # of class `next`
    int32_t left            # weights; none in a list for each class
    int32_t next            # the first class; beyond all where the list is at its end
    float x
    bint half


cdef struct Scored:
    int64_t row             # of those that are asked for
    int32_t exclude
    int32_t size            # classes kept so far
    int64_t end             # of the row's cursors


cdef class Strips:
    cdef object _kept
    cdef Cursor* cursors
    cdef Scored* rows
    cdef float* best        # a heap of `room` classes for each row
    cdef int32_t* ids
    cdef Py_ssize_t n_rows, most_rows, n_cursors, most_cursors, room
    # Whether there is room for a row of so many features.
    cdef bint fits(self, Py_ssize_t nnz) noexcept nogil
    # One more cursor of the row that is joined next.
    cdef void put(self, Py_ssize_t j, const FeatureList* own, float x) noexcept nogil
    cdef void join(self, Py_ssize_t nnz, int64_t row, int32_t exclude) noexcept nogil
    # Scores all rows.  `score` is of all C classes, and as `bias` (NULL: zero) before and after.
    cdef void run(self, Py_ssize_t C, const float* bias, float* score) noexcept nogil
    # Writes their k best classes, -1 where there are fewer, and forgets the rows.
    cdef void give(self, Py_ssize_t k, int32_t* ids, float* scores) noexcept nogil
