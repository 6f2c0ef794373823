"""Growing tables of class weights by feature, for training: hashed if sparse, else dense."""

import numpy as np

from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free, malloc
from structsolve.utils.allocate cimport allocated

from structsolve.utils.arrays import check_numbers, check_offsets

# Squares are summed as integers, in units of a feature's largest square / 2^42: for 2^21 classes.
cdef double UNITS = 4398046511104


cdef inline float* claim(Row* row, int32_t c) noexcept nogil:
    # A place for the weight of class c, which is not stored yet; there must be room.
    cdef int32_t j
    if row.dense != NULL:
        return row.dense + c
    j = place_of(hashed(c), row.capacity)
    while row.slots[j].c >= 0:
        j = j + 1 if j + 1 < row.capacity else 0
    row.slots[j].c = c
    return &row.slots[j].w


cdef bint grow(Row* row, int32_t n_classes) noexcept nogil:
    """Make room for another class; return False if out of memory."""
    cdef int32_t capacity = row.capacity + row.capacity // 3 + 2, j
    cdef float* place
    cdef Row old = row[0]
    row.slots = NULL
    if capacity > n_classes // 2:
        capacity = n_classes
        row.dense = <float*>calloc(capacity, sizeof(float))
    else:
        row.slots = <Slot*>malloc(capacity * sizeof(Slot))
        if row.slots != NULL:
            for j in range(capacity):
                row.slots[j].c, row.slots[j].w = -1, 0
    if row.slots == NULL and row.dense == NULL:
        row[0] = old
        return False
    row.capacity = capacity
    for j in range(old.capacity):
        if old.slots[j].c >= 0:
            place = claim(row, old.slots[j].c)
            place[0] = old.slots[j].w
    free(old.slots)
    return True


cdef float* find_or_make(Row* row, int32_t c, int32_t n_classes) noexcept nogil:
    cdef float* place = find(row, c, hashed(c))
    if place == NULL:
        # Searches end at a free place, so one always remains.
        if 5 * (row.size + <int64_t>1) > 4 * <int64_t>row.capacity and not grow(row, n_classes):
            return NULL
        row.size += 1
        place = claim(row, c)
    return place


cdef int add(Row* row, int32_t c, float v, int32_t n_classes) except -1 nogil:
    cdef void* place = find_or_make(row, c, n_classes)
    (<float*>allocated(place, b"weights; use fewer rivals, or a larger alpha"))[0] += v
    return 0


cdef class WeightTable:
    """Growing table of class weights by feature, for training."""

    def __cinit__(self, Py_ssize_t n_features, int32_t n_classes):
        if not 0 <= n_features < 2**31 or n_classes < 1:
            raise ValueError(
                f"n_features is {n_features}, n_classes {n_classes}: expected numbers of 32 bits, "
                "and a class"
            )
        self.n_features, self.n_classes = n_features, n_classes
        self.rows = <Row*>allocated(calloc(n_features + 1, sizeof(Row)), b"so many features")

    def __dealloc__(self):
        cdef Py_ssize_t f
        if self.rows != NULL:
            for f in range(self.n_features):
                free(self.rows[f].slots)
                free(self.rows[f].dense)
            free(self.rows)

    def fill(self, const int64_t[::1] indptr not None, const int32_t[::1] classes not None,
             const float[::1] weights not None):
        """Add the weights of a matrix by feature; raise ValueError if it does not fit.

        Parameters
        ----------
        indptr : ndarray of int64 of shape (n_features + 1,)
        classes : ndarray of int32
        weights : ndarray of float32
        """
        cdef Py_ssize_t f
        cdef int64_t k
        if indptr.shape[0] != self.n_features + 1 or classes.shape[0] != weights.shape[0]:
            raise ValueError("the weights kept are not of these features")
        check_offsets(np.asarray(indptr), classes.shape[0], 0, "indptr")
        check_numbers(classes, self.n_classes, "classes")
        with nogil:
            for f in range(self.n_features):
                for k in range(indptr[f], indptr[f + 1]):
                    add(&self.rows[f], classes[k], weights[k], self.n_classes)

    def freeze(self, float cut):
        """Copy the weights above a size.

        Parameters
        ----------
        cut : float
            Weights of at most this size are dropped.

        Returns
        -------
        indptr, classes, weights : ndarray
            The other weights by feature; classes are unordered.
        low, high : ndarray of float32 of shape (n_features,)
            Range of the dropped weights and 0.
        squares : float
            Sum of squares of all weights; independent of their order.
        kept : int
            Number of non-zero weights.
        """
        cdef Py_ssize_t f, k = 0
        cdef int32_t j
        cdef Row* row
        cdef float w, top
        cdef double scale, squares = 0
        cdef int64_t units, kept = 0
        if not cut >= 0:
            raise ValueError(f"cut is {cut}, expected a number of at least 0")
        indptr = np.zeros(self.n_features + 1, np.int64)
        lows, highs = np.zeros(self.n_features, np.float32), np.zeros(self.n_features, np.float32)
        cdef int64_t[::1] start = indptr
        cdef float[::1] low = lows, high = highs
        with nogil:
            for f in range(self.n_features):
                row = &self.rows[f]
                top = 0
                for j in range(row.capacity):
                    w = row.slots[j].w if row.dense == NULL else row.dense[j]
                    top = <float>fabs(w) if fabs(w) > top else top
                    kept += w != 0
                    if fabs(w) > cut:
                        k += 1
                    else:
                        low[f] = w if w < low[f] else low[f]
                        high[f] = w if w > high[f] else high[f]
                start[f + 1] = k
                if top == 0:
                    continue
                # Sums of integers do not depend on their order.
                scale, units = UNITS / (<double>top * top), 0
                for j in range(row.capacity):
                    w = row.slots[j].w if row.dense == NULL else row.dense[j]
                    units += <int64_t>(scale * (<double>w * w))
                squares += units / scale
        classes, weights = np.empty(k, np.int32), np.empty(k, np.float32)
        cdef int32_t[::1] index = classes
        cdef float[::1] value = weights
        k = 0
        with nogil:
            for f in range(self.n_features):
                row = &self.rows[f]
                for j in range(row.capacity):
                    w = row.slots[j].w if row.dense == NULL else row.dense[j]
                    if fabs(w) > cut:
                        index[k] = j if row.slots == NULL else row.slots[j].c
                        value[k] = w
                        k += 1
        return indptr, classes, weights, lows, highs, squares, kept

    @property
    def nbytes(self) -> int:
        """Bytes taken."""
        cdef Py_ssize_t f, total = self.n_features * sizeof(Row)
        for f in range(self.n_features):
            total += self.rows[f].capacity * (4 if self.rows[f].slots == NULL else 8)
        return total
