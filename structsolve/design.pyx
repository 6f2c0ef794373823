"""Feature rows, dense or CSR, as the compiled loops read them."""

import numpy as np

from .kernels cimport ss_kernels

cdef extern from "columns.h" nogil:
    void ss_scatter_dense_f64(Py_ssize_t n, const int32_t* index, const double* value, Py_ssize_t m,
                  const int* cols, const double* coefs, double* W, Py_ssize_t stride) noexcept
    void ss_gather_dense_f64(Py_ssize_t n, const int32_t* index, const double* value, Py_ssize_t m,
                  const int* cols, const double* W, Py_ssize_t stride, double* out) noexcept
    void ss_scatter_dense_f32(Py_ssize_t n, const int32_t* index, const float* value, Py_ssize_t m,
                  const int* cols, const double* coefs, double* W, Py_ssize_t stride) noexcept
    void ss_gather_dense_f32(Py_ssize_t n, const int32_t* index, const float* value, Py_ssize_t m,
                  const int* cols, const double* W, Py_ssize_t stride, double* out) noexcept
    void ss_scatter_csr_f64(Py_ssize_t n, const int32_t* index, const double* value, Py_ssize_t m,
                  const int* cols, const double* coefs, double* W, Py_ssize_t stride) noexcept
    void ss_gather_csr_f64(Py_ssize_t n, const int32_t* index, const double* value, Py_ssize_t m,
                  const int* cols, const double* W, Py_ssize_t stride, double* out) noexcept
    void ss_scatter_csr_f32(Py_ssize_t n, const int32_t* index, const float* value, Py_ssize_t m,
                  const int* cols, const double* coefs, double* W, Py_ssize_t stride) noexcept
    void ss_gather_csr_f32(Py_ssize_t n, const int32_t* index, const float* value, Py_ssize_t m,
                  const int* cols, const double* W, Py_ssize_t stride, double* out) noexcept
    void ss_scatter_ones(Py_ssize_t n, const int32_t* index, const double* value, Py_ssize_t m,
                  const int* cols, const double* coefs, double* W, Py_ssize_t stride) noexcept
    void ss_gather_ones(Py_ssize_t n, const int32_t* index, const double* value, Py_ssize_t m,
                  const int* cols, const double* W, Py_ssize_t stride, double* out) noexcept


cdef class Design:
    """Rows of features: a dense array or a CSR matrix, checked once and read without the GIL.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_cols), or scipy.sparse CSR
        float64 and float32 values are used as they are; other types become float64.  The
        arrays of a CSR matrix must be sorted within each row and free of duplicates
        (``structsolve.packing`` sees to it).  A CSR matrix whose values are all one is stored
        without them.
    width : int, default=1
        Padded width of the rows of weights it will be multiplied with.
    intercept : float, default=0
        Value of a constant feature appended to every row; 0 appends none.
    """

    def __init__(self, X, Py_ssize_t width=1, double intercept=0.0):
        cdef const double[:, ::1] d64
        cdef const float[:, ::1] d32
        cdef const double[::1] v64
        cdef const float[::1] v32
        cdef const int64_t[::1] ptr
        cdef const int32_t[::1] idx
        self.n_rows, self.n_cols = X.shape
        self.intercept = intercept
        self.stride = width
        self.kernels = ss_kernels(width)
        if hasattr(X, "indptr"):
            indptr = np.ascontiguousarray(X.indptr, dtype=np.int64)
            indices = np.ascontiguousarray(X.indices, dtype=np.int32)
            data = X.data if X.data.dtype == np.float32 else np.asarray(X.data, dtype=np.float64)
            data = np.ascontiguousarray(data)
            _check_csr(indptr, indices, data, self.n_rows, self.n_cols)
            ptr = indptr
            idx = indices
            self.indptr = &ptr[0]
            self.indices = &idx[0] if idx.shape[0] else NULL
            self.max_row_nnz = int(np.diff(indptr).max()) if self.n_rows else 0
            if data.size == 0 or (data[0] == 1 and (data == 1).all()):
                self.storage = CSR_ONES
                self.owners = (indptr, indices)
            elif data.dtype == np.float32:
                self.storage = CSR_F32
                v32 = data
                self.f32 = &v32[0]
                self.owners = (indptr, indices, data)
            else:
                self.storage = CSR_F64
                v64 = data
                self.f64 = &v64[0]
                self.owners = (indptr, indices, data)
            return
        X = np.ascontiguousarray(X, dtype=None if X.dtype == np.float32 else np.float64)
        self.owners = (X,)
        self.max_row_nnz = self.n_cols
        if X.dtype == np.float32:
            self.storage = DENSE_F32
            d32 = X
            self.f32 = &d32[0, 0] if X.size else NULL
        else:
            self.storage = DENSE_F64
            d64 = X
            self.f64 = &d64[0, 0] if X.size else NULL

    @property
    def nbytes(self):
        """Bytes of the arrays it reads."""
        return sum(a.nbytes for a in self.owners)

    @property
    def nnz(self):
        """Stored values."""
        return self.n_rows * self.n_cols if self.storage < CSR_F64 else self.owners[1].size

    cdef void score(self, Py_ssize_t row, const double* W, double* out) noexcept nogil:
        cdef Py_ssize_t t, start, n
        cdef const double* last = W + self.n_cols * self.stride
        if self.intercept != 0:
            for t in range(self.stride):
                out[t] = self.intercept * last[t]
        else:
            for t in range(self.stride):
                out[t] = 0
        if self.storage == DENSE_F64:
            self.kernels.score_dense_f64(self.n_cols, NULL, self.f64 + row * self.n_cols, W,
                                         self.stride, self.stride, out)
        elif self.storage == DENSE_F32:
            self.kernels.score_dense_f32(self.n_cols, NULL, self.f32 + row * self.n_cols, W,
                                         self.stride, self.stride, out)
        else:
            start = self.indptr[row]
            n = self.indptr[row + 1] - start
            if self.storage == CSR_ONES:
                self.kernels.score_ones(n, self.indices + start, W, self.stride, self.stride, out)
            elif self.storage == CSR_F64:
                self.kernels.score_csr_f64(n, self.indices + start, self.f64 + start, W,
                                           self.stride, self.stride, out)
            else:
                self.kernels.score_csr_f32(n, self.indices + start, self.f32 + start, W,
                                           self.stride, self.stride, out)

    cdef void scatter(self, Py_ssize_t row, double coef, Py_ssize_t col, double* W) noexcept nogil:
        cdef Py_ssize_t j, start, stop, stride = self.stride
        cdef double* column = W + col
        if self.storage == DENSE_F64:
            start = row * self.n_cols
            for j in range(self.n_cols):
                column[j * stride] += coef * self.f64[start + j]
        elif self.storage == DENSE_F32:
            start = row * self.n_cols
            for j in range(self.n_cols):
                column[j * stride] += coef * self.f32[start + j]
        else:
            start = self.indptr[row]
            stop = self.indptr[row + 1]
            if self.storage == CSR_ONES:
                for j in range(start, stop):
                    column[self.indices[j] * stride] += coef
            elif self.storage == CSR_F64:
                for j in range(start, stop):
                    column[self.indices[j] * stride] += coef * self.f64[j]
            else:
                for j in range(start, stop):
                    column[self.indices[j] * stride] += coef * self.f32[j]
        if self.intercept != 0:
            column[self.n_cols * stride] += coef * self.intercept

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

    cdef double gather(self, Py_ssize_t row, Py_ssize_t col, const double* W) noexcept nogil:
        cdef Py_ssize_t j, start, stop, stride = self.stride
        cdef const double* column = W + col
        cdef double total = 0
        if self.storage == DENSE_F64:
            start = row * self.n_cols
            for j in range(self.n_cols):
                total += column[j * stride] * self.f64[start + j]
        elif self.storage == DENSE_F32:
            start = row * self.n_cols
            for j in range(self.n_cols):
                total += column[j * stride] * self.f32[start + j]
        else:
            start = self.indptr[row]
            stop = self.indptr[row + 1]
            if self.storage == CSR_ONES:
                for j in range(start, stop):
                    total += column[self.indices[j] * stride]
            elif self.storage == CSR_F64:
                for j in range(start, stop):
                    total += column[self.indices[j] * stride] * self.f64[j]
            else:
                for j in range(start, stop):
                    total += column[self.indices[j] * stride] * self.f32[j]
        if self.intercept != 0:
            total += column[self.n_cols * stride] * self.intercept
        return total

    cdef void scatter_columns(self, Py_ssize_t row, Py_ssize_t m, const int* cols,
                              const double* coefs, double* W) noexcept nogil:
        cdef Py_ssize_t c, n = self.n_cols, start = row * self.n_cols
        cdef double* last = W + self.n_cols * self.stride
        if self.storage == DENSE_F64:
            ss_scatter_dense_f64(n, NULL, self.f64 + start, m, cols, coefs, W, self.stride)
        elif self.storage == DENSE_F32:
            ss_scatter_dense_f32(n, NULL, self.f32 + start, m, cols, coefs, W, self.stride)
        else:
            start = self.indptr[row]
            n = self.indptr[row + 1] - start
            if self.storage == CSR_ONES:
                ss_scatter_ones(n, self.indices + start, NULL, m, cols, coefs, W, self.stride)
            elif self.storage == CSR_F64:
                ss_scatter_csr_f64(n, self.indices + start, self.f64 + start, m, cols, coefs, W,
                                   self.stride)
            else:
                ss_scatter_csr_f32(n, self.indices + start, self.f32 + start, m, cols, coefs, W,
                                   self.stride)
        if self.intercept != 0:
            for c in range(m):
                last[cols[c]] += coefs[c] * self.intercept

    cdef void gather_columns(self, Py_ssize_t row, Py_ssize_t m, const int* cols, const double* W,
                             double* out) noexcept nogil:
        cdef Py_ssize_t c, n = self.n_cols, start = row * self.n_cols
        cdef const double* last = W + self.n_cols * self.stride
        for c in range(m):
            out[c] = self.intercept * last[cols[c]] if self.intercept != 0 else 0
        if self.storage == DENSE_F64:
            ss_gather_dense_f64(n, NULL, self.f64 + start, m, cols, W, self.stride, out)
        elif self.storage == DENSE_F32:
            ss_gather_dense_f32(n, NULL, self.f32 + start, m, cols, W, self.stride, out)
        else:
            start = self.indptr[row]
            n = self.indptr[row + 1] - start
            if self.storage == CSR_ONES:
                ss_gather_ones(n, self.indices + start, NULL, m, cols, W, self.stride, out)
            elif self.storage == CSR_F64:
                ss_gather_csr_f64(n, self.indices + start, self.f64 + start, m, cols, W,
                                  self.stride, out)
            else:
                ss_gather_csr_f32(n, self.indices + start, self.f32 + start, m, cols, W,
                                  self.stride, out)

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

    cdef inline double _stored(self, Py_ssize_t j) noexcept nogil:
        if self.storage == CSR_ONES:
            return 1
        return self.f64[j] if self.storage == CSR_F64 else self.f32[j]

    cdef Py_ssize_t row_cost(self, Py_ssize_t row) noexcept nogil:
        if self.storage <= DENSE_F32:
            return self.n_cols + 1
        return self.indptr[row + 1] - self.indptr[row] + 1


def _check_csr(indptr, indices, data, Py_ssize_t n_rows, Py_ssize_t n_cols):
    """Refuse index arrays that the loops could not follow safely."""
    if indptr.shape != (n_rows + 1,) or indptr[0] != 0 or (np.diff(indptr) < 0).any():
        raise ValueError(
            f"the CSR matrix has a broken indptr: expected {n_rows + 1} non-decreasing values "
            "that start at 0"
        )
    if indptr[n_rows] != indices.size or indices.size != data.size:
        raise ValueError(
            f"the CSR matrix has {indices.size} indices and {data.size} values, indptr ends at "
            f"{indptr[n_rows]}; all three must agree"
        )
    if indices.size and (indices.min() < 0 or indices.max() >= n_cols):
        raise ValueError(
            f"the CSR matrix has column indices from {indices.min()} to {indices.max()}, "
            f"expected 0 to {n_cols - 1}"
        )
