"""Weights of very many classes in training: growing lists by feature."""

import numpy as np

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memmove

from structsolve.utils.arrays import check_numbers
from structsolve.plugins.extreme.weights.feature_lists cimport FeatureLists
from structsolve.plugins.extreme.weights.feature_lists import checked_rows, flat
from structsolve.plugins.extreme.weights.list_loops cimport FeatureList
from structsolve.plugins.extreme.weights.postings cimport Postings

# Entries that add_rows sorts by feature at a time: 16 MB.
cdef enum:
    AT_A_TIME = 1 << 20

# Stored weights are divided by a factor in this range, so that none overflows.
cdef double LEAST = 1e-6, MOST = 1e6


cdef Py_ssize_t room_for(Py_ssize_t size) noexcept nogil:
    # Exact up to 15, then at most an eighth more.
    cdef Py_ssize_t step = 1
    while size >= 16 * step:
        step *= 2
    return (size + step - 1) // step * step


cdef inline int32_t* classes_of(const Row* row) noexcept nogil:
    return <int32_t*>row.block


cdef inline float* weights_of(const Row* row) noexcept nogil:
    return <float*>(row.block + 4 * room_for(row.size))


cdef class FeatureRows(FeatureLists):
    """Weights by feature that grow: each feature has a sorted list of classes and their weights.

    A list reserves at most an eighth more than it holds, so memory stays within 9 bytes per weight
    and 24 bytes per feature.  Change many classes in one call for speed.

    Parameters
    ----------
    n_features, n_classes : int
    intercept : ndarray of float32 of shape (n_classes,), optional
        Scores of a row without features; not changed.

    Attributes
    ----------
    n_features, n_classes, nnz, nbytes : int
        Numbers of features, classes and stored weights, and the bytes of the weights.

    Raises
    ------
    ValueError
        If a size is less than 1 or exceeds 32 bits.
    MemoryError
        If there is no memory for this number of features.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from structsolve.plugins.extreme.weights.feature_rows import FeatureRows
    >>> X, rows = sp.csr_matrix(np.eye(2, dtype=np.float32)), FeatureRows(2, 3)
    >>> rows.add_rows(X, np.array([0, 1]), np.array([2, 0], np.int32), np.array([1.0, -0.5]))
    >>> rows.shrink(0.5)
    >>> rows.freeze().to_matrix().toarray().tolist()
    [[0.0, 0.0, 0.5], [-0.25, 0.0, 0.0]]
    """

    def __cinit__(self):
        self._rows = NULL

    def __init__(self, n_features, n_classes, intercept=None):
        self.free_all()
        self._squares, self.nnz = 0, 0
        try:
            self.set_sizes(n_features, n_classes, intercept)
        except BaseException:
            self.n_features = 0
            raise
        self._rows = <Row*>calloc(self.n_features, sizeof(Row))
        if self._rows == NULL:
            self.n_features = 0
            raise MemoryError(f"no memory for the weights of {n_features} features")

    def __dealloc__(self):
        self.free_all()

    cdef void free_all(self) noexcept nogil:
        cdef Py_ssize_t f
        if self._rows != NULL:
            for f in range(self.n_features):
                free(self._rows[f].block)
            free(self._rows)
            self._rows = NULL
        self.n_features = 0

    def __reduce__(self):
        return FeatureRows.from_postings, (self.freeze(),)

    @property
    def nbytes(self) -> int:
        cdef Py_ssize_t f, rooms = 0
        for f in range(self.n_features):
            rooms += room_for(self._rows[f].size)
        return 8 * rooms + self.n_features * sizeof(Row)

    cdef FeatureList list_of(self, Py_ssize_t f) noexcept nogil:
        cdef FeatureList own
        cdef const Row* row = &self._rows[f]
        own.classes, own.weights, own.half = classes_of(row), weights_of(row), False
        own.size = own.kept = row.size
        own.low, own.high = row.low, row.high
        return own

    cdef int resize(self, Row* row, Py_ssize_t size) except -1 nogil:
        """Change the size of a list; the first classes and weights stay."""
        cdef Py_ssize_t old = room_for(row.size), new = room_for(size)
        cdef Py_ssize_t stay = row.size if row.size < size else size
        cdef void* block
        if new < old:           # weights go to their new place while it is still there
            memmove(row.block + 4 * new, row.block + 4 * old, 4 * stay)
        if new == 0:
            free(row.block)
            row.block = NULL
        elif new != old:
            block = realloc(row.block, 8 * new)
            if block == NULL and new > old:
                with gil:
                    raise MemoryError(
                        f"no memory is left for weights: {self.nnz} are kept; cut small ones, or "
                        "take a larger alpha"
                    )
            if block != NULL:
                row.block = <char*>block
        if new > old:
            memmove(row.block + 4 * new, row.block + 4 * old, 4 * stay)
        self.nnz += size - row.size
        row.size = <int32_t>size
        return 0

    cdef int add_list(self, Py_ssize_t f, Py_ssize_t n, int32_t* classes,
                      float* values) except -1 nogil:
        cdef Row* row = &self._rows[f]
        cdef int32_t* own = classes_of(row)
        cdef float* weights = weights_of(row)
        cdef Py_ssize_t j, k, size = row.size, first = 0, step, missing = 0, place
        cdef double old
        # Add to stored weights; each search starts at the last place and doubles its steps.
        for k in range(n):
            step = 1
            while first + step < size and own[first + step] <= classes[k]:
                first += step
                step *= 2
            while step > 0:
                if first + step < size and own[first + step] <= classes[k]:
                    first += step
                else:
                    step //= 2
            if first < size and own[first] == classes[k]:
                old = weights[first]
                weights[first] += values[k]
                self._squares += <double>weights[first] * weights[first] - old * old
                row.low = weights[first] if weights[first] < row.low else row.low
                row.high = weights[first] if weights[first] > row.high else row.high
            else:
                classes[missing], values[missing] = classes[k], values[k]
                missing += 1
        if missing == 0:
            return 0
        self.resize(row, size + missing)
        own, weights = classes_of(row), weights_of(row)
        j, place = size, size + missing
        for k in range(missing - 1, -1, -1):    # from the end, so that nothing is overwritten
            while j > 0 and own[j - 1] > classes[k]:
                j -= 1
                place -= 1
                own[place], weights[place] = own[j], weights[j]
            place -= 1
            own[place], weights[place] = classes[k], values[k]
            self._squares += <double>values[k] * values[k]
            row.low = values[k] if values[k] < row.low else row.low
            row.high = values[k] if values[k] > row.high else row.high
        return 0

    cdef void measure(self, Row* row) noexcept nogil:
        """Recompute the range of a list, and add its squares."""
        cdef Py_ssize_t j
        cdef float* weights = weights_of(row)
        row.low, row.high = 0, 0
        for j in range(row.size):
            row.low = weights[j] if weights[j] < row.low else row.low
            row.high = weights[j] if weights[j] > row.high else row.high
            self._squares += <double>weights[j] * weights[j]

    cdef void fold(self) noexcept nogil:
        """Multiply the weights by the factor and reset it to 1."""
        cdef Py_ssize_t f, j
        cdef float* weights
        self._squares = 0
        for f in range(self.n_features):
            weights = weights_of(&self._rows[f])
            for j in range(self._rows[f].size):
                weights[j] = <float>(self.factor * weights[j])
            self.measure(&self._rows[f])
        self.factor = 1

    def add_rows(self, X, rows, classes, factors):
        """Add multiples of rows to the weights of classes: ``w_classes[j] += factors[j] X[rows[j]]``.

        Parameters
        ----------
        X : csr_matrix of float32 of shape (n, n_features)
            Columns sorted within rows, without duplicates.
        rows : ndarray of int64 of shape (m,)
        classes : ndarray of int32 of shape (m,)
        factors : ndarray of float64 of shape (m,)
            Finite.

        Raises
        ------
        ValueError
            If an argument does not fit; names it.
        MemoryError
            If there is no memory for the new weights; some rows may then be added already.
        """
        X_arrays = checked_rows(X, self.n_features)
        rows, classes = flat(rows, np.int64, "rows"), flat(classes, np.int32, "classes")
        factors = flat(factors, np.float64, "factors")
        if not len(rows) == len(classes) == len(factors):
            raise ValueError(
                f"rows, classes, factors have {len(rows)}, {len(classes)}, {len(factors)} entries, "
                "expected as many of each"
            )
        check_numbers(rows, X.shape[0], "rows")
        check_numbers(classes, self.n_classes, "classes")
        if not np.isfinite(factors).all():
            raise ValueError("factors: found NaN or infinity, expected finite numbers")
        if not len(rows):
            return
        # Sort by class, so that each feature's classes ascend; split to limit memory.
        order = np.argsort(classes, kind="stable")
        rows, classes, factors = rows[order], classes[order], factors[order]
        ends = np.cumsum(X_arrays[0][rows + 1] - X_arrays[0][rows])
        first = 0
        while first < len(rows):
            before = ends[first - 1] if first else 0
            last = max(first + 1, int(np.searchsorted(ends, before + AT_A_TIME, "right")))
            self._add_some(X_arrays, rows[first:last], classes[first:last], factors[first:last],
                           int(ends[last - 1] - before))
            first = last

    def _add_some(self, X_arrays, rows, classes, factors, Py_ssize_t total):
        cdef const int64_t[::1] start = X_arrays[0]
        cdef const int32_t[::1] column = X_arrays[1]
        cdef const float[::1] value = X_arrays[2]
        cdef const int64_t[::1] row = rows
        cdef const int32_t[::1] number = classes
        cdef const double[::1] share = factors
        cdef int32_t[::1] touched = np.empty(total + 1, np.int32), to_class = np.empty(total + 1, np.int32)
        cdef float[::1] to_add = np.empty(total + 1, np.float32)
        cdef int64_t[::1] begin = np.empty(total + 1, np.int64)
        cdef Py_ssize_t j, k, n_touched = 0, place = 0, first, size
        cdef int32_t f, q
        cdef float x
        with nogil:
            for j in range(row.shape[0]):
                for k in range(start[row[j]], start[row[j] + 1]):
                    f = column[k]
                    if self._rows[f].updates == 0:
                        touched[n_touched] = f
                        n_touched += 1
                    self._rows[f].updates += 1
            for k in range(n_touched):
                begin[k] = place
                place += self._rows[touched[k]].updates
                # From here on: minus the index of the touched feature, minus 1.
                self._rows[touched[k]].updates = <int32_t>(-k - 1)
            # Each feature's updates come in class order; updates of the same class are added up.
            for j in range(row.shape[0]):
                for k in range(start[row[j]], start[row[j] + 1]):
                    q = -self._rows[column[k]].updates - 1
                    x = <float>(share[j] * value[k] / self.factor)
                    to_class[begin[q]], to_add[begin[q]] = number[j], x
                    begin[q] += 1
            place = 0
            for k in range(n_touched):
                self._rows[touched[k]].updates = 0
            for k in range(n_touched):
                first, size = place, 0
                for j in range(first, begin[k]):
                    if size and to_class[first + size - 1] == to_class[j]:
                        to_add[first + size - 1] += to_add[j]
                    else:
                        to_class[first + size], to_add[first + size] = to_class[j], to_add[j]
                        size += 1
                place = begin[k]
                self.add_list(touched[k], size, &to_class[first], &to_add[first])

    def shrink(self, double factor):
        """Multiply all weights by a factor, without reading them.

        Parameters
        ----------
        factor : float
            Above 0, at most 1e6.

        Raises
        ------
        ValueError
        """
        if not 0 < factor <= MOST:
            raise ValueError(f"factor is {factor}, expected a number above 0, at most {MOST:g}")
        self.factor *= factor
        if not LEAST <= self.factor <= MOST:
            with nogil:
                self.fold()

    def soft_threshold(self, classes, double cut):
        """Move the weights of some classes towards zero, and drop weights that reach it.

        The call reads all weights, because per-class lists of features would take more than 12
        bytes per weight.

        Parameters
        ----------
        classes : ndarray of int32
        cut : float
            At least 0.

        Raises
        ------
        ValueError
        """
        classes = flat(classes, np.int32, "classes")
        check_numbers(classes, self.n_classes, "classes")
        if not cut >= 0:
            raise ValueError(f"cut is {cut}, expected a number of at least 0")
        marks = np.zeros(self.n_classes, np.uint8)
        marks[classes] = 1
        cdef const unsigned char[::1] mark = marks
        cdef double stored = cut / self.factor, w
        cdef Py_ssize_t f, j, size
        cdef int32_t* own
        cdef float* weights
        cdef Row* row
        with nogil:
            self._squares = 0
            for f in range(self.n_features):
                row = &self._rows[f]
                own, weights, size = classes_of(row), weights_of(row), 0
                for j in range(row.size):
                    w = weights[j]
                    if mark[own[j]]:
                        w = w - stored if w > stored else (w + stored if w < -stored else 0)
                    if <float>w != 0:
                        own[size], weights[size] = own[j], <float>w
                        size += 1
                if size < row.size:
                    self.resize(row, size)
                self.measure(row)

    def norm2(self) -> float:
        """Return the squared norm of all weights, which is updated with each change."""
        return max(self._squares, 0.0) * self.factor**2

    def freeze(self):
        """Return the current weights without zeros.

        Returns
        -------
        Postings
            A copy, of float32.

        Raises
        ------
        ValueError
            If a weight exceeds float32.
        """
        starts = np.zeros(self.n_features + 1, np.int64)
        classes, weights = np.empty(self.nnz, np.int32), np.empty(self.nnz, np.float32)
        cdef int64_t[::1] start = starts
        cdef int32_t[::1] number = classes
        cdef float[::1] weight = weights
        cdef Py_ssize_t f, j, size = 0
        cdef float w
        with nogil:
            for f in range(self.n_features):
                for j in range(self._rows[f].size):
                    w = <float>(self.factor * weights_of(&self._rows[f])[j])
                    if w != 0:
                        number[size], weight[size] = classes_of(&self._rows[f])[j], w
                        size += 1
                start[f + 1] = size
        if size < len(classes):
            classes, weights = classes[:size].copy(), weights[:size].copy()
        return Postings(starts, classes, weights, self.n_classes, self.intercept)

    @staticmethod
    def from_postings(Postings postings not None):
        """Return growing weights with the same values.

        Parameters
        ----------
        postings : Postings

        Returns
        -------
        FeatureRows
        """
        cdef FeatureRows made = FeatureRows(
            postings.n_features, postings.n_classes, postings.intercept
        )
        cdef const int64_t[::1] start = postings.indptr
        # Copies, which add_list overwrites.
        cdef int32_t[::1] number = np.append(postings.classes, np.int32(0))
        cdef float[::1] weight = np.append(postings.weights.astype(np.float32), np.float32(0))
        cdef Py_ssize_t f
        with nogil:
            for f in range(made.n_features):
                made.add_list(f, start[f + 1] - start[f], &number[start[f]], &weight[start[f]])
        return made
