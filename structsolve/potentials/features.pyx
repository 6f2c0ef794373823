"""Rows of features, dense or CSR, for the compiled loops."""

import numpy as np

from ..simd.loops cimport ss_loops

from ..utils.arrays import check_blocks
from ..utils.parallel import over_examples

cdef extern from "structsolve/simd/columns.h" nogil:
    ctypedef struct ss_column_loops:
        void scatter(Py_ssize_t n, const int32_t* index, const void* values, Py_ssize_t m,
                     const int* cols, const double* coefs, double* W,
                     Py_ssize_t stride) noexcept nogil
        void gather(Py_ssize_t n, const int32_t* index, const void* values, Py_ssize_t m,
                    const int* cols, const double* W, Py_ssize_t stride,
                    double* out) noexcept nogil
    const ss_column_loops* ss_columns


ctypedef fused real:
    double
    float

cdef struct Checked:
    bint finite, ones, inside

cdef enum:
    VALUES_PER_BLOCK = 4096     # number of values checked together


cdef class FeatureRows:
    """Rows of features: a dense array or a CSR matrix, checked once, then read without the GIL.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_cols), or scipy.sparse CSR
        float64 and float32 values are used as they are; other types become float64.  Columns of
        a CSR matrix must be sorted within each row and not repeat, as
        :func:`structsolve.examples.packing.as_features` leaves them.  A CSR matrix whose values are
        all one is stored without them.
    width : int, default=1
        Padded width of the rows of weights that features are multiplied with.
    intercept : float, default=0
        Value of a constant feature appended to every row; 0 appends none.
    n_jobs : int or None, default=1
        Threads that check the values.

    Attributes
    ----------
    finite : bool
        Whether all values are finite, and below about 1e100: products with weights are finite, too.

    Raises
    ------
    ValueError
        If the arrays of a CSR matrix do not match, or it has 2^31 columns or more.
    """

    def __init__(self, X, Py_ssize_t width=1, double intercept=0.0, n_jobs=1):
        cdef const int64_t[::1] ptr
        cdef const int32_t[::1] idx
        self.n_rows, self.n_cols = X.shape
        self.intercept = intercept
        self.stride = width
        self.loops = ss_loops(width)
        if hasattr(X, "indptr"):
            if self.n_cols > 0x7fffffff:
                raise ValueError(f"found {self.n_cols} columns, expected at most 2^31 - 1")
            indptr = np.ascontiguousarray(X.indptr, dtype=np.int64)
            indices = np.ascontiguousarray(X.indices, dtype=np.int32)
            data = X.data if X.data.dtype == np.float32 else np.asarray(X.data, dtype=np.float64)
            data = np.ascontiguousarray(data)
            ptr, idx = indptr, indices
            self.max_row_nnz = _longest_row(ptr, self.n_rows, idx.shape[0], data.size)
            self.indptr = &ptr[0]
            self.indices = &idx[0] if idx.shape[0] else NULL
            self.finite, ones, inside = _check_values(data, indices, self.n_cols, n_jobs)
            if not inside:
                raise ValueError(
                    f"the CSR matrix has column indices from {indices.min()} to {indices.max()}, "
                    f"expected 0 to {self.n_cols - 1}"
                )
            if ones:
                self.storage = CSR_ONES
                self.owners = (indptr, indices)
                return
            self.owners = (indptr, indices, data)
            self.storage = CSR_F32 if data.dtype == np.float32 else CSR_F64
        else:
            X = np.ascontiguousarray(X, dtype=None if X.dtype == np.float32 else np.float64)
            data = X.reshape(-1)
            self.finite, _, _ = _check_values(data, None, 0, n_jobs)
            self.owners = (X,)
            self.max_row_nnz = self.n_cols
            self.storage = DENSE_F32 if X.dtype == np.float32 else DENSE_F64
        if data.size and data.dtype == np.float32:
            self.f32 = _address32(data)
        elif data.size:
            self.f64 = _address64(data)

    @property
    def weights_size(self) -> int:
        """Doubles of the weights that rows are multiplied with."""
        return (self.n_cols + (self.intercept != 0)) * self.stride

    @property
    def nbytes(self) -> int:
        """Bytes of the features' arrays."""
        return sum(array.nbytes for array in self.owners)

    @property
    def nnz(self) -> int:
        """Number of stored values."""
        return self.n_rows * self.n_cols if self.storage < CSR_F64 else self.owners[1].size

    @property
    def implicit(self) -> bool:
        """Whether only inner products of features exist, as for a Mercer kernel."""
        return False

    def gram_blocks(self, const int64_t[::1] offsets not None, const int64_t[::1] starts not None,
                    double[::1] out not None):
        """Compute Gram blocks: inner products of the rows of each example, block after block.

        Parameters
        ----------
        offsets : ndarray of int64 of shape (n + 1,)
            First row of each example.
        starts : ndarray of int64 of shape (n + 1,)
            First entry of each example's block in ``out``.
        out : ndarray of float64
        """
        check_blocks(np.asarray(offsets), np.asarray(starts), out.shape[0], self.n_rows)
        cdef Py_ssize_t i, v
        cdef double[::1] dense = np.zeros(max(self.n_cols, 1))
        with nogil:
            for i in range(offsets.shape[0] - 1):
                for v in range(offsets[i], offsets[i + 1]):
                    self.gram_row(v, offsets[i], offsets[i + 1], &dense[0],
                                  &out[starts[i]] + (v - offsets[i]) * (offsets[i + 1] - offsets[i]))

    cdef void score(self, Py_ssize_t row, const double* W, double* out) noexcept nogil:
        cdef Row x = self._row(row)
        self.loops.score[<int>self.storage](x.n, x.index, x.values, W, self.stride, self.stride,
                                            self.intercept, W + self.n_cols * self.stride, out)

    cdef void scatter(self, Py_ssize_t row, Py_ssize_t m, const int* cols, const double* coefs,
                      double* W) noexcept nogil:
        cdef Py_ssize_t c
        cdef double* last = W + self.n_cols * self.stride
        cdef Row x = self._row(row)
        ss_columns[<int>self.storage].scatter(x.n, x.index, x.values, m, cols, coefs, W,
                                              self.stride)
        if self.intercept != 0:
            for c in range(m):
                last[cols[c]] += coefs[c] * self.intercept

    cdef void clear(self, Py_ssize_t row, Py_ssize_t col, double* W) noexcept nogil:
        cdef Py_ssize_t j, stride = self.stride
        cdef double* column = W + col
        if self.storage <= DENSE_F32:
            for j in range(self.n_cols):
                column[j * stride] = 0
        else:
            for j in range(self.indptr[row], self.indptr[row + 1]):
                column[self.indices[j] * stride] = 0
        if self.intercept != 0:
            column[self.n_cols * stride] = 0

    cdef void gather(self, Py_ssize_t row, Py_ssize_t m, const int* cols, const double* W,
                     double* out) noexcept nogil:
        cdef Py_ssize_t c
        cdef const double* last = W + self.n_cols * self.stride
        cdef Row x = self._row(row)
        for c in range(m):
            out[c] = self.intercept * last[cols[c]] if self.intercept != 0 else 0
        ss_columns[<int>self.storage].gather(x.n, x.index, x.values, m, cols, W, self.stride, out)

    cdef void gram_row(self, Py_ssize_t row, Py_ssize_t first, Py_ssize_t last, double* dense,
                       double* out) noexcept nogil:
        cdef Py_ssize_t v, j, start, stop, other
        cdef double total, bias = self.intercept * self.intercept
        if self.storage <= DENSE_F32:
            start = row * self.n_cols
            for v in range(first, last):
                other = v * self.n_cols
                total = 0
                if self.storage == DENSE_F64:
                    for j in range(self.n_cols):
                        total += self.f64[start + j] * self.f64[other + j]
                else:
                    for j in range(self.n_cols):
                        total += <double>self.f32[start + j] * self.f32[other + j]
                out[v - first] = total + bias
            return
        start = self.indptr[row]
        stop = self.indptr[row + 1]
        for j in range(start, stop):
            dense[self.indices[j]] = self._stored(j)
        for v in range(first, last):
            total = 0
            if self.storage == CSR_ONES:
                for j in range(self.indptr[v], self.indptr[v + 1]):
                    total += dense[self.indices[j]]
            else:
                for j in range(self.indptr[v], self.indptr[v + 1]):
                    total += dense[self.indices[j]] * self._stored(j)
            out[v - first] = total + bias
        for j in range(start, stop):
            dense[self.indices[j]] = 0

    cdef inline Row _row(self, Py_ssize_t row) noexcept nogil:
        cdef Row x
        cdef Py_ssize_t start
        if self.storage <= DENSE_F32:
            start = row * self.n_cols
            x.n = self.n_cols
            x.index = NULL
        else:
            start = self.indptr[row]
            x.n = self.indptr[row + 1] - start
            x.index = self.indices + start
        if self.storage == CSR_ONES:
            x.values = NULL
        elif self.storage == DENSE_F64 or self.storage == CSR_F64:
            x.values = self.f64 + start
        else:
            x.values = self.f32 + start
        return x

    cdef inline double _stored(self, Py_ssize_t j) noexcept nogil:
        if self.storage == CSR_ONES:
            return 1
        return self.f64[j] if self.storage == CSR_F64 else self.f32[j]

    cdef Py_ssize_t row_cost(self, Py_ssize_t row) noexcept nogil:
        if self.storage <= DENSE_F32:
            return self.n_cols + 1
        return self.indptr[row + 1] - self.indptr[row] + 1


cdef const double* _address64(const double[::1] data):
    return &data[0]


cdef const float* _address32(const float[::1] data):
    return &data[0]


cdef Py_ssize_t _longest_row(const int64_t[::1] indptr, Py_ssize_t n_rows, Py_ssize_t n_indices,
                             Py_ssize_t n_values) except -1:
    """Return the most values of a row; refuse a CSR matrix whose arrays do not match."""
    cdef Py_ssize_t v, most = 0
    cdef bint rising = indptr.shape[0] == n_rows + 1 and indptr[0] == 0
    for v in range(n_rows if rising else 0):
        rising &= indptr[v] <= indptr[v + 1]
        most = max(most, indptr[v + 1] - indptr[v])
    if not rising:
        raise ValueError(
            f"the CSR matrix has a broken indptr: expected {n_rows + 1} non-decreasing values "
            "that start at 0"
        )
    if indptr[n_rows] != n_indices or n_indices != n_values:
        raise ValueError(
            f"the CSR matrix has {n_indices} indices and {n_values} values, indptr ends at "
            f"{indptr[n_rows]}; all three must agree"
        )
    return most


def _check_values(values, indices, Py_ssize_t n_cols, n_jobs):
    """Return whether all values are bounded, all are one, and all indices (or None) are columns."""
    cdef const double[::1] v64
    cdef const float[::1] v32
    cdef const int32_t[::1] idx
    cdef bint has_indices = indices is not None, narrow = values.dtype == np.float32
    if has_indices and len(indices) != values.size:
        raise ValueError(f"found {len(indices)} indices and {values.size} values")
    if not values.size:
        return True, True, True
    if narrow:
        v32 = values
    else:
        v64 = values
    if has_indices:
        idx = indices

    def piece(Py_ssize_t first, Py_ssize_t last, scratch):
        cdef Checked checked
        cdef Py_ssize_t start = first * VALUES_PER_BLOCK
        cdef Py_ssize_t n = min(last * VALUES_PER_BLOCK, values.size) - start
        with nogil:
            if narrow:
                checked = _check_block(n, &v32[start])
            else:
                checked = _check_block(n, &v64[start])
            if has_indices:
                checked.inside = _inside(n, &idx[start], <unsigned int>n_cols)
        return checked.finite, checked.ones, checked.inside

    if values.size <= VALUES_PER_BLOCK:
        return piece(0, 1, None)
    blocks = np.append(np.arange(0, values.size, VALUES_PER_BLOCK), values.size)
    return tuple(map(all, zip(*over_examples(piece, blocks, n_jobs, lambda: None))))


cdef Checked _check_block(Py_ssize_t n, const real* x) noexcept nogil:
    # Four independent sums of each kind, for speed.  The first kind is zero only if all values are
    # one, and needed only if the first is; in the second, 0 times a value that is not finite is NaN.
    # Doubles beyond HUGE, or almost, become infinite: refuse_infinite() compares them exactly.
    cdef double a = x[0] != 1, b = 0, c = 0, d = 0
    cdef Py_ssize_t j = 0, whole = n - n % 4
    cdef real up = <real>1.8e208 if real is double else <real>1
    cdef Checked checked
    while j < whole and a == 0:
        a += (<double>x[j] - 1) * (<double>x[j] - 1)
        b += (<double>x[j + 1] - 1) * (<double>x[j + 1] - 1)
        c += (<double>x[j + 2] - 1) * (<double>x[j + 2] - 1)
        d += (<double>x[j + 3] - 1) * (<double>x[j + 3] - 1)
        j += 4
    for j in range(whole, n):
        a += (<double>x[j] - 1) * (<double>x[j] - 1)
    checked.inside = True
    checked.ones = checked.finite = a + b + c + d == 0
    if checked.ones:
        return checked
    a = b = c = d = 0
    j = 0
    while j < whole:
        a += x[j] * up * <real>0
        b += x[j + 1] * up * <real>0
        c += x[j + 2] * up * <real>0
        d += x[j + 3] * up * <real>0
        j += 4
    for j in range(whole, n):
        a += x[j] * up * <real>0
    checked.finite = a + b + c + d == 0
    return checked


cdef bint _inside(Py_ssize_t n, const int32_t* index, unsigned int columns) noexcept nogil:
    cdef Py_ssize_t j
    cdef unsigned int beyond = 0
    for j in range(n):
        beyond |= <unsigned int>index[j] >= columns   # negative numbers become huge
    return not beyond
