# Scores of several rows, one strip of classes after another.  Not part of the C interface.
from libc.stdint cimport int32_t, int64_t, uint16_t

from structsolve.plugins.extreme.weights.list_loops cimport FeatureList


cdef struct Cursor:
    # The unread part of a feature's list.
    const int32_t* classes  # NULL: a weight for each class
    const void* weights     # address of the weight of class `next`
    int32_t left            # number of unread weights; 0 if there is a weight for each class
    int32_t next            # first unread class; beyond all classes at the end of the list
    float x
    bint half


cdef struct Scored:
    int64_t row             # number of the row in the caller's arrays
    int32_t exclude
    int32_t size            # number of classes kept so far
    int64_t end             # end of the row's cursors


cdef class Strips:
    cdef object _kept
    cdef Cursor* cursors
    cdef Scored* rows
    cdef float* best        # a heap of `room` classes for each row
    cdef int32_t* ids
    cdef Py_ssize_t n_rows, most_rows, n_cursors, most_cursors, room
    # Whether a row of nnz features still fits.
    cdef bint fits(self, Py_ssize_t nnz) noexcept nogil
    # Adds cursor j of the row that join() adds next.
    cdef void put(self, Py_ssize_t j, const FeatureList* own, float x) noexcept nogil
    cdef void join(self, Py_ssize_t nnz, int64_t row, int32_t exclude) noexcept nogil
    # Scores all rows.  `score` has C entries, equal to `bias` (NULL: zero) before and after.
    cdef void run(self, Py_ssize_t C, const float* bias, float* score) noexcept nogil
    # Writes each row's k best classes, -1 for missing ones, and drops the rows.
    cdef void give(self, Py_ssize_t k, int32_t* ids, float* scores) noexcept nogil
