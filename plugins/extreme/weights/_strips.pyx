"""Scores of several rows at a time, one strip of classes after another.

The scores of a strip stay in the first-level cache while all features of a row are added.  The
weights of frequent features for these classes stay in the second-level cache from row to row.
Each score is the same sum, in the same order, as if the row were scored alone.
"""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint16_t
from libc.string cimport memcpy, memset

from structsolve.plugins.extreme.weights.best_classes cimport offer_range, sorted_heap
from structsolve.plugins.extreme.weights.list_loops cimport FeatureList, add_dense, from_half

cdef extern from "structsolve/simd/prefetch.h" nogil:
    void SS_PREFETCH(const void* address)

cdef enum:
    STRIP = 8192        # number of classes in a strip
    STEP = 8            # entries of a list read between checks for the end of the strip
    AHEAD = 8           # number of features ahead whose weights are prefetched
    LINES = 4           # cache lines prefetched for each feature
    LINE = 64           # bytes of a cache line
    ROWS = 512          # maximum number of rows scored together
    KEPT = 1 << 16      # maximum number of best classes kept for these rows (one row always fits)
    CURSORS = 1 << 14   # maximum number of features of these rows (one row always fits)


cdef inline void advance(Cursor* cursor, Py_ssize_t first, Py_ssize_t last,
                         float* score) noexcept nogil:
    """Add the weights of the classes first .. last - 1 to their scores."""
    cdef const int32_t* classes = cursor.classes
    cdef const float* weights = <const float*>cursor.weights
    cdef const uint16_t* halves = <const uint16_t*>cursor.weights
    cdef Py_ssize_t j = 0, left = cursor.left
    cdef int e
    cdef float x = cursor.x
    if classes == NULL:
        add_dense(last - first, weights, x, score + first)
        cursor.weights, cursor.next = weights + (last - first), <int32_t>last
        return
    if cursor.half:
        while j < left and classes[j] < last:
            score[classes[j]] += x * from_half(halves[j])
            j += 1
        cursor.weights = halves + j
    else:
        while j + STEP <= left and classes[j + STEP - 1] < last:
            for e in range(STEP):
                score[classes[j + e]] += x * weights[j + e]
            j += STEP
        while j < left and classes[j] < last:
            score[classes[j]] += x * weights[j]
            j += 1
        cursor.weights = weights + j
    cursor.classes, cursor.left = classes + j, <int32_t>(left - j)
    cursor.next = classes[j] if j < left else INT32_MAX


cdef class Strips:
    """Working memory of a thread for rows that are scored together.

    Parameters
    ----------
    k : int
        Number of best classes to keep for each row.
    longest : int
        Maximum number of features of a row.
    n_rows : int
        Total number of rows.
    """

    def __init__(self, Py_ssize_t k, Py_ssize_t longest, Py_ssize_t n_rows):
        if not 0 < k <= INT32_MAX or not 0 <= longest <= INT32_MAX or n_rows < 0:
            raise ValueError(
                f"expected k from 1, longest and n_rows from 0, none beyond 2**31 - 1; got k {k}, "
                f"longest {longest}, n_rows {n_rows}")
        self.room, self.most_rows = k, max(1, min(n_rows, ROWS, KEPT // k))
        self.most_cursors = max(longest, min(longest * self.most_rows, CURSORS))
        self.n_rows = self.n_cursors = 0
        self._kept = (
            np.empty(self.most_cursors * sizeof(Cursor) + 1, np.uint8),
            np.empty(self.most_rows * sizeof(Scored), np.uint8),
            np.empty(self.most_rows * k, np.float32),
            np.empty(self.most_rows * k, np.int32),
        )
        cdef unsigned char[::1] cursors = self._kept[0], rows = self._kept[1]
        cdef float[::1] best = self._kept[2]
        cdef int32_t[::1] ids = self._kept[3]
        self.cursors, self.rows = <Cursor*>&cursors[0], <Scored*>&rows[0]
        self.best, self.ids = &best[0], &ids[0]

    cdef bint fits(self, Py_ssize_t nnz) noexcept nogil:
        return self.n_rows < self.most_rows and self.n_cursors + nnz <= self.most_cursors

    cdef void put(self, Py_ssize_t j, const FeatureList* own, float x) noexcept nogil:
        cdef Cursor* cursor = &self.cursors[self.n_cursors + j]
        cursor.classes, cursor.weights = own.classes, own.weights
        cursor.half, cursor.x = own.half, x
        cursor.left = 0 if own.classes == NULL else <int32_t>own.size
        if own.size == 0:       # classes may be NULL for an empty list, too
            cursor.next = INT32_MAX
        else:
            cursor.next = 0 if own.classes == NULL else own.classes[0]

    cdef void join(self, Py_ssize_t nnz, int64_t row, int32_t exclude) noexcept nogil:
        cdef Scored* own = &self.rows[self.n_rows]
        self.n_cursors += nnz
        self.n_rows += 1
        own.row, own.exclude, own.size, own.end = row, exclude, 0, self.n_cursors

    cdef void run(self, Py_ssize_t C, const float* bias, float* score) noexcept nogil:
        cdef Py_ssize_t first = 0, last, r, j
        cdef Scored* own
        cdef Cursor* cursor
        cdef int line
        while first < C:
            last = first + STRIP if first + STRIP < C else C
            j = 0
            for r in range(self.n_rows):
                own = &self.rows[r]
                while j < own.end:
                    cursor = &self.cursors[j + AHEAD if j + AHEAD < self.n_cursors else j]
                    if cursor.next < last:
                        for line in range(LINES):
                            SS_PREFETCH(<const char*>cursor.classes + LINE * line)
                            SS_PREFETCH(<const char*>cursor.weights + LINE * line)
                    cursor = &self.cursors[j]
                    if cursor.next < last:
                        advance(cursor, first, last, score)
                    j += 1
                own.size = <int32_t>offer_range(
                    score, first, last, own.exclude, self.room, own.size,
                    self.best + r * self.room, self.ids + r * self.room)
                if bias == NULL:
                    memset(score + first, 0, (last - first) * sizeof(float))
                else:
                    memcpy(score + first, bias + first, (last - first) * sizeof(float))
            first = last

    cdef void give(self, Py_ssize_t k, int32_t* ids, float* scores) noexcept nogil:
        cdef Py_ssize_t r, j
        cdef int64_t place
        for r in range(self.n_rows):
            place = self.rows[r].row * k
            sorted_heap(self.best + r * self.room, self.ids + r * self.room, self.rows[r].size,
                        scores + place, ids + place)
            for j in range(place + self.rows[r].size, place + k):
                ids[j], scores[j] = -1, -INFINITY
        self.n_rows = self.n_cursors = 0
