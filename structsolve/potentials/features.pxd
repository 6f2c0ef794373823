# Rows of features (dense or CSR) for the loops: scores, their adjoint, inner products.
from libc.stdint cimport int32_t, int64_t
from structsolve.abi_number cimport structsolve_abi_marker
from ..simd.loops cimport ss_loop_table

cdef enum Storage:     # the order of the tables in loops.h and columns.h
    DENSE_F64
    DENSE_F32
    CSR_F64
    CSR_F32
    CSR_ONES

cdef struct Row:
    Py_ssize_t n
    const int32_t* index    # NULL: dense
    const void* values      # NULL: all one


cdef class FeatureRows:
    cdef readonly Py_ssize_t n_rows, n_cols
    cdef readonly double intercept          # value of the appended constant feature; 0: none
    cdef readonly Py_ssize_t max_row_nnz
    cdef readonly bint finite
    cdef Storage storage
    cdef const int64_t* indptr
    cdef const int32_t* indices
    cdef const double* f64
    cdef const float* f32
    cdef const ss_loop_table* loops
    cdef readonly Py_ssize_t stride         # width of a row of weights, fixed at construction
    cdef object owners
    # Room for later members; see abi_number.pxd.
    cdef bint _flag0, _flag1, _flag2, _flag3
    cdef Py_ssize_t _room0, _room1, _room2, _room3

    # out = x_row W
    cdef void score(self, Py_ssize_t row, const double* W, double* out) noexcept nogil
    # W[:, cols[c]] += coefs[c] * x_row, for m columns
    cdef void scatter(self, Py_ssize_t row, Py_ssize_t m, const int* cols, const double* coefs,
                      double* W) noexcept nogil
    # out[c] = <x_row, W[:, cols[c]]>
    cdef void gather(self, Py_ssize_t row, Py_ssize_t m, const int* cols, const double* W,
                     double* out) noexcept nogil
    # W[:, col] = 0 in the rows that scatter() changes
    cdef void clear(self, Py_ssize_t row, Py_ssize_t col, double* W) noexcept nogil
    # out[v] = <x_row, x_v> for the rows v in first..last; `dense` is n_cols zeros, left zero
    cdef void gram_row(self, Py_ssize_t row, Py_ssize_t first, Py_ssize_t last, double* dense,
                       double* out) noexcept nogil
    # Multiplications that one row costs per state.
    cdef Py_ssize_t row_cost(self, Py_ssize_t row) noexcept nogil
    cdef Row _row(self, Py_ssize_t row) noexcept nogil
    cdef double _stored(self, Py_ssize_t j) noexcept nogil
