# Cython face of kernels.h: one table of function pointers per padded row width.
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t

cdef extern from "kernels.h" nogil:
    ctypedef struct ss_kernel_table:
        void score_csr_f64(ptrdiff_t n, const int32_t* index, const double* value, const double* W,
                           ptrdiff_t stride, ptrdiff_t width, double* out) noexcept nogil
        void score_csr_f32(ptrdiff_t n, const int32_t* index, const float* value, const double* W,
                           ptrdiff_t stride, ptrdiff_t width, double* out) noexcept nogil
        void score_dense_f64(ptrdiff_t n, const int32_t* index, const double* value,
                             const double* W, ptrdiff_t stride, ptrdiff_t width,
                             double* out) noexcept nogil
        void score_dense_f32(ptrdiff_t n, const int32_t* index, const float* value,
                             const double* W, ptrdiff_t stride, ptrdiff_t width,
                             double* out) noexcept nogil
        void score_ones(ptrdiff_t n, const int32_t* index, const double* W, ptrdiff_t stride,
                        ptrdiff_t width, double* out) noexcept nogil
        void maxplus(ptrdiff_t K, const double* previous, const double* T, ptrdiff_t stride,
                     ptrdiff_t width, double* next) noexcept nogil
        const char* name
    const ss_kernel_table* ss_kernels(ptrdiff_t width)
