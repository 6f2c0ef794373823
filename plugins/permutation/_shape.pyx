"""Sizes of assignment problems, the parts of their labels, and the oracle."""

import numpy as np

cimport cython
from libc.stdint cimport int64_t
from structsolve.operators cimport Oracle, Parts

from structsolve.plugins.permutation._assignment cimport (
    Assignment, assignment_bytes, assignment_in, load_scores, solve_assignment, solve_tiny,
)


cdef class PairShape:
    """Rows and columns of each example, and the pairs of them that no label may use.

    Parameters
    ----------
    rows, cols : ndarray of int64 of shape (n,)
        Rows are at most columns, and at least 1.
    forbidden : ndarray of uint8, or None
        Of all pairs of all examples, row by row: non-zero where a pair is forbidden.
    padded : int, default=0
        Doubles in a row of theta, where they are more than columns.
    """

    def __init__(self, rows, cols, forbidden=None, Py_ssize_t padded=0):
        cdef const int64_t[::1] row_view = np.ascontiguousarray(rows, dtype=np.int64)
        cdef const int64_t[::1] col_view = np.ascontiguousarray(cols, dtype=np.int64)
        cdef const int64_t[::1] offset_view, pair_view
        cdef const unsigned char[::1] mask_view
        self.n = row_view.shape[0]
        counts, widths = np.asarray(row_view), np.asarray(col_view)
        if self.n == 0 or widths.shape != counts.shape:
            raise ValueError(f"found {self.n} rows and {widths.size} cols, expected one per example")
        wrong = np.flatnonzero((counts < 1) | (counts > widths))
        if wrong.size:
            i = int(wrong[0])
            raise ValueError(
                f"example {i}: found {counts[i]} rows and {widths[i]} columns, expected at least "
                "one row and no more rows than columns"
            )
        offset_view = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        pair_view = np.concatenate([[0], np.cumsum(counts * widths)]).astype(np.int64)
        self.rows, self.cols = &row_view[0], &col_view[0]
        self.offsets, self.pairs = &offset_view[0], &pair_view[0]
        self.padded = padded
        self.max_rows, self.max_cols = int(counts.max()), int(widths.max())
        self.max_theta = int((counts * (padded or widths)).max())
        if padded and padded < self.max_cols:
            raise ValueError(f"padded is {padded}, expected at least {self.max_cols}")
        self.mask = NULL
        owners: tuple = (row_view, col_view, offset_view, pair_view)
        if forbidden is not None:
            mask_view = np.ascontiguousarray(forbidden, dtype=np.uint8)
            if mask_view.shape[0] != pair_view[self.n]:
                raise ValueError(
                    f"forbidden has {mask_view.shape[0]} entries, expected {pair_view[self.n]}"
                )
            self.mask = &mask_view[0]
            owners += (mask_view,)
            self.any_forbidden = bool(np.asarray(mask_view).any())
        self.owners = owners

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.structure.calls``: a state is a column."""
        if not 0 <= i < self.n:
            raise ValueError(f"example {i} of {self.n}: expected 0 to {self.n - 1}")
        return self.rows[i] * self.stride(i), self.rows[i], self.cols[i]

    cdef Py_ssize_t stride(self, Py_ssize_t i) noexcept nogil:
        return self.padded if self.padded else self.cols[i]

    cdef const unsigned char* forbidden(self, Py_ssize_t i) noexcept nogil:
        return NULL if self.mask == NULL else self.mask + self.pairs[i]


cdef int _impossible(Py_ssize_t i) except -1 with gil:
    raise ValueError(
        f"example {i}: no assignment is possible: the scores of the pairs that it would need are "
        "-inf, NaN, beyond 1e300 or forbidden; allow more pairs, and check that the weights are "
        "finite"
    )


cdef class AssignmentOracle(Oracle):
    """The assignment of rows to columns of largest total score; all assignments are its labels.

    Scores of -inf forbid a pair.

    Parameters
    ----------
    shape : PairShape
    """

    cdef PairShape shape

    def __init__(self, PairShape shape):
        self.shape = shape
        self.has_relaxed = True
        self.work_bytes = assignment_bytes(shape.max_rows, shape.max_cols) + 64

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.structure.calls``."""
        return self.shape.limits(i)

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    char* work) except -1 nogil:
        cdef Py_ssize_t rows = self.shape.rows[i], cols = self.shape.cols[i], r
        cdef Py_ssize_t stride = self.shape.stride(i)
        cdef const unsigned char* forbidden = self.shape.forbidden(i)
        cdef Assignment task
        if (rows == 1 or cols <= 3) and solve_tiny(rows, cols, theta, stride, forbidden, label,
                                                   value):
            return 0
        task = assignment_in(rows, cols, work)
        load_scores(&task, theta, stride, -1, forbidden)
        if not solve_assignment(&task):
            return _impossible(i)
        value[0] = 0
        for r in range(rows):
            label[r] = task.column[r]
            value[0] += theta[r * stride + label[r]]
        return 0

    cdef int relax(self, Py_ssize_t i, const double* theta, double* mu, int* label,
                   double* value, char* work) except -1 nogil:
        # The corners of the polytope of assignments are the labels (Birkhoff, von Neumann).
        cdef Py_ssize_t stride = self.shape.stride(i), r
        self.argmax(i, theta, label, value, work)
        for r in range(self.shape.rows[i] * stride):
            mu[r] = 0
        for r in range(self.shape.rows[i]):
            mu[r * stride + label[r]] = 1
        return 1


@cython.final
cdef class AssignmentParts(Parts):
    """One part per pair of a row and a column.

    Parameters
    ----------
    shape : PairShape
    """

    cdef PairShape shape

    def __init__(self, PairShape shape):
        self.shape = shape
        self.max_entries = 2 * shape.max_rows

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.structure.calls``."""
        return self.shape.limits(i)

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        cdef Py_ssize_t r, stride = self.shape.stride(i)
        for r in range(self.shape.rows[i]):
            index[r] = <int>(r * stride + label[r])
            value[r] = 1
        return self.shape.rows[i]

    cdef Py_ssize_t difference(self, Py_ssize_t i, const int* truth, const int* label, int* index,
                               double* value) except -1 nogil:
        cdef Py_ssize_t r, n = 0, stride = self.shape.stride(i)
        for r in range(self.shape.rows[i]):
            if truth[r] != label[r]:
                index[n], value[n] = <int>(r * stride + truth[r]), 1
                index[n + 1], value[n + 1] = <int>(r * stride + label[r]), -1
                n += 2
        return n
