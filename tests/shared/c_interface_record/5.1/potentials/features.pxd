from libc.stdint cimport int32_t, int64_t
from structsolve.abi_number cimport structsolve_abi_marker
from ..simd.loops cimport ss_loop_table
cdef enum Storage:
    DENSE_F64
    DENSE_F32
    CSR_F64
    CSR_F32
    CSR_ONES
cdef struct Row:
    Py_ssize_t n
    const int32_t* index
    const void* values
cdef class FeatureRows:
    cdef readonly Py_ssize_t n_rows, n_cols
    cdef readonly double intercept
    cdef readonly Py_ssize_t max_row_nnz
    cdef readonly bint finite
    cdef Storage storage
    cdef const int64_t* indptr
    cdef const int32_t* indices
    cdef const double* f64
    cdef const float* f32
    cdef const ss_loop_table* loops
    cdef readonly Py_ssize_t stride
    cdef object owners
    cdef bint _flag0, _flag1, _flag2, _flag3
    cdef Py_ssize_t _room0, _room1, _room2, _room3
    cdef void score(self, Py_ssize_t row, const double* W, double* out) noexcept nogil
    cdef void scatter(self, Py_ssize_t row, Py_ssize_t m, const int* cols, const double* coefs, double* W) noexcept nogil
    cdef void gather(self, Py_ssize_t row, Py_ssize_t m, const int* cols, const double* W, double* out) noexcept nogil
    cdef void clear(self, Py_ssize_t row, Py_ssize_t col, double* W) noexcept nogil
    cdef void gram_row(self, Py_ssize_t row, Py_ssize_t first, Py_ssize_t last, double* dense, double* out) noexcept nogil
    cdef Py_ssize_t row_cost(self, Py_ssize_t row) noexcept nogil
    cdef Row _row(self, Py_ssize_t row) noexcept nogil
    cdef double _stored(self, Py_ssize_t j) noexcept nogil
