"""Frozen weights of very many classes, stored by feature, for prediction and files."""

import numpy as np
import scipy.sparse as sp

from libc.math cimport fabs
from libc.stdint cimport uint16_t

from structsolve.utils.sparse import as_csr
from structsolve.plugins.extreme.weights.feature_lists cimport FeatureLists
from structsolve.plugins.extreme.weights.feature_lists import flat
from structsolve.plugins.extreme.weights.list_loops cimport FeatureList, from_half


cdef class Postings(FeatureLists):
    """Weights by feature: for each feature, the classes with a weight, and the weights.

    Parameters
    ----------
    indptr : ndarray of int64 of shape (n_features + 1,)
        Start of each feature's list, and the end.
    classes : ndarray of int32 of shape (nnz,)
        Ascending within a list.
    weights : ndarray of float32 or float16 of shape (nnz,)
        Finite.
    n_classes : int
    intercept : ndarray of float32 of shape (n_classes,), optional
        Scores of a row without features.

    Attributes
    ----------
    n_features, nnz, nbytes : int
        Number of features, number of weights, and bytes of all arrays.
    indptr, classes, weights, n_classes, intercept
        The arguments, not copied, so they may be read-only memory maps.

    Raises
    ------
    ValueError
        If the arrays do not match, or contain NaN or infinity.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from structsolve.plugins.extreme.weights.postings import Postings
    >>> weights = Postings.from_matrix(sp.csr_matrix([[1.0, 0, 2], [0, 3, 0]]))
    >>> X = sp.csr_matrix(np.array([[1, 0], [1, 1], [0, 0]], dtype=np.float32))
    >>> ids, scores, bounds, entries = weights.top(X, k=2)
    >>> ids.tolist(), scores.tolist()
    ([[2, 0], [1, 2], [0, 1]], [[2.0, 1.0], [3.0, 2.0], [0.0, 0.0]])
    """

    def __init__(self, indptr, classes, weights, n_classes, intercept=None):
        if self._start != NULL:
            raise ValueError("Postings: made already")
        try:
            self._take(indptr, classes, weights, n_classes, intercept)
        except BaseException:
            self.n_features, self._start = 0, NULL      # rows of no features read nothing
            raise

    def _take(self, indptr, classes, weights, n_classes, intercept):
        indptr, classes = flat(indptr, np.int64, "indptr"), flat(classes, np.int32, "classes")
        half = getattr(weights, "dtype", None) == np.float16
        weights = flat(weights, np.float16 if half else np.float32, "weights")
        self.set_sizes(len(indptr) - 1, n_classes, intercept)
        last = indptr[self.n_features]
        if indptr[0] != 0 or last != len(classes) or (indptr[1:] < indptr[:self.n_features]).any():
            raise ValueError(
                f"indptr: found lists that begin at {indptr[:3].tolist()} ..., expected numbers "
                f"that rise from 0 to {len(classes)}, the number of classes' entries"
            )
        if len(weights) != len(classes):
            raise ValueError(f"weights has {len(weights)} entries, expected {len(classes)}")
        self.indptr, self.classes, self.weights = indptr, classes, weights
        self._width, self.half = weights.itemsize, half
        cdef const int64_t[::1] start = indptr
        cdef const int32_t[::1] number
        cdef const unsigned char[::1] bytes_of
        self._start = &start[0]
        self._class, self._weight = NULL, NULL
        if len(classes):
            number, bytes_of = classes, weights.view(np.uint8)
            self._class, self._weight = &number[0], <const char*>&bytes_of[0]
        self._low_kept = np.zeros(self.n_features, np.float32)
        self._high_kept = np.zeros(self.n_features, np.float32)
        cdef float[::1] low = self._low_kept, high = self._high_kept
        self._low, self._high = &low[0], &high[0]
        cdef Py_ssize_t f, wrong = -1
        with nogil:
            for f in range(self.n_features):
                if not self.read(f, &low[f], &high[f]):
                    wrong = f
                    break
        if wrong >= 0:
            own = slice(indptr[wrong], indptr[wrong + 1])
            if not np.isfinite(weights[own]).all():
                raise ValueError(f"weights: found NaN or infinity for feature {wrong}")
            raise ValueError(
                f"classes: those of feature {wrong} are {classes[own][:5].tolist()} ..., expected "
                f"numbers that rise, from 0 to {self.n_classes - 1}"
            )
        largest = max(float(self._high_kept.max()), -float(self._low_kept.min()), 1e-30)
        self.most = min(self.most, (self.most - self._bias_size) / (self.n_features * largest))
        self._lay_out()

    def _lay_out(self):
        # Lists of at least a third of the classes are also stored as dense rows, which are several
        # times faster to read and take at most 1.5 times the memory of the list.
        counts = np.diff(self.indptr)
        frequent = np.flatnonzero(counts >= max(1, self.n_classes / 3))
        self._place, self._dense = NULL, NULL
        self._dense_kept = np.zeros((len(frequent), self.n_classes), np.float32)
        self._place_kept = np.zeros(0, np.int32)
        if not len(frequent):
            return
        for row, f in enumerate(frequent):
            own = slice(self.indptr[f], self.indptr[f + 1])
            self._dense_kept[row, self.classes[own]] = self.weights[own]
        self._place_kept = np.full(self.n_features, -1, np.int32)
        self._place_kept[frequent] = np.arange(len(frequent))
        cdef const int32_t[::1] place = self._place_kept
        cdef const float[:, ::1] dense = self._dense_kept
        self._place, self._dense = &place[0], &dense[0, 0]

    cdef bint read(self, Py_ssize_t f, float* low, float* high) noexcept nogil:
        """Find the range of a feature's weights; return False if the list is invalid."""
        cdef Py_ssize_t j
        cdef int64_t before = -1
        cdef float w
        # Classes missing from the list have weight 0.
        cdef bint first = self._start[f + 1] - self._start[f] >= self.n_classes
        for j in range(self._start[f], self._start[f + 1]):
            w = self.entry(j)
            if self._class[j] <= before or w - w != 0:
                return False
            before = self._class[j]
            low[0] = w if first or w < low[0] else low[0]
            high[0] = w if first or w > high[0] else high[0]
            first = False
        return before < self.n_classes

    cdef float entry(self, Py_ssize_t j) noexcept nogil:
        cdef uint16_t bits
        if self.half:
            bits = (<const uint16_t*>self._weight)[j]
            # from_half() handles finite numbers only.
            return <float>(1e39) if bits & 0x7C00 == 0x7C00 else from_half(bits)
        return (<const float*>self._weight)[j]

    cdef FeatureList list_of(self, Py_ssize_t f) noexcept nogil:
        cdef FeatureList own
        own.size = own.kept = self._start[f + 1] - self._start[f]
        own.low, own.high, own.half = self._low[f], self._high[f], self.half
        if self._place != NULL and self._place[f] >= 0:
            own.classes, own.size = NULL, self.n_classes
            own.weights = self._dense + self._place[f] * self.n_classes
        else:
            own.classes = self._class + self._start[f]
            own.weights = self._weight + self._start[f] * self._width
        return own

    @property
    def nnz(self) -> int:
        return len(self.classes)

    @property
    def nbytes(self) -> int:
        arrays = (
            self.indptr, self.classes, self.weights, self._low_kept, self._high_kept,
            self._place_kept, self._dense_kept,
        )
        return sum(a.nbytes for a in arrays) + (
            0 if self.intercept is None else self.intercept.nbytes + self._order_kept.nbytes
        )

    def __reduce__(self):
        return Postings, (self.indptr, self.classes, self.weights, self.n_classes, self.intercept)

    @staticmethod
    def from_matrix(matrix, intercept=None):
        """Return the weights of a matrix, without its zeros.

        Parameters
        ----------
        matrix : scipy.sparse matrix of shape (n_features, n_classes)
            CSR or CSC.
        intercept : ndarray of float32 of shape (n_classes,), optional

        Returns
        -------
        Postings
            Of float32.

        Raises
        ------
        ValueError
            If the matrix is invalid or exceeds the range of float32.
        """
        if not sp.issparse(matrix):
            raise ValueError(f"matrix: found {type(matrix).__name__}, expected a sparse matrix")
        rows = as_csr(matrix, "matrix")
        with np.errstate(over="ignore"):        # infinity is refused by its name
            rows = rows.astype(np.float32) if rows.dtype != np.float32 else rows
        clean = rows.has_canonical_format and bool((rows.data != 0).all())
        if not clean:
            rows = rows.copy()
            rows.sum_duplicates()
            rows.eliminate_zeros()
        return Postings(
            np.ascontiguousarray(rows.indptr, np.int64), np.ascontiguousarray(rows.indices, np.int32),
            np.ascontiguousarray(rows.data), rows.shape[1], intercept,
        )

    def to_matrix(self):
        """Return the weights as a csr_matrix of shape (n_features, n_classes), of float32."""
        weights = self.weights.astype(np.float32)
        return sp.csr_matrix(
            (weights, self.classes.copy(), self.indptr), shape=(self.n_features, self.n_classes)
        )

    def pruned(self, double threshold):
        """Return the weights whose absolute value is above a threshold.

        Parameters
        ----------
        threshold : float
            At least 0.

        Returns
        -------
        Postings
        """
        if not threshold >= 0:
            raise ValueError(f"threshold is {threshold}, expected a number of at least 0")
        if self._start == NULL:
            raise ValueError("Postings: not made yet, or its making failed")
        starts = np.zeros(self.n_features + 1, np.int64)
        cdef int64_t[::1] start = starts
        cdef Py_ssize_t f, j, size = 0
        with nogil:
            for f in range(self.n_features):
                for j in range(self._start[f], self._start[f + 1]):
                    size += fabs(self.entry(j)) > threshold
                start[f + 1] = size
        classes, places = np.empty(size, np.int32), np.empty(size, np.int64)
        cdef int32_t[::1] number = classes
        cdef int64_t[::1] place = places
        size = 0
        with nogil:
            for j in range(self._start[self.n_features]):
                if fabs(self.entry(j)) > threshold:
                    number[size], place[size] = self._class[j], j
                    size += 1
        return Postings(starts, classes, self.weights[places], self.n_classes, self.intercept)

    def as_type(self, dtype):
        """Return the weights as float32 or float16.

        Parameters
        ----------
        dtype : dtype
            float32, or float16: 3 digits, up to 65504.

        Returns
        -------
        Postings
            Classes and intercept are shared.

        Raises
        ------
        ValueError
            If the type is another one, or weights exceed float16.
        """
        if np.dtype(dtype) not in (np.dtype(np.float16), np.dtype(np.float32)):
            raise ValueError(f"dtype is {np.dtype(dtype)}, expected float16 or float32")
        with np.errstate(over="ignore"):
            weights = self.weights.astype(dtype)
        if not np.isfinite(weights).all():
            raise ValueError(
                f"dtype: the largest weight is {abs(self.weights).max():g}, float16 has at most "
                "65504; keep float32, or scale the features"
            )
        return Postings(self.indptr, self.classes, weights, self.n_classes, self.intercept)
