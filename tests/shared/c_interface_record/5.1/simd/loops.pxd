from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t
from structsolve.abi_number cimport structsolve_abi_marker
ctypedef void (*ss_score_loop)(ptrdiff_t n, const int32_t* index, const void* values, const double* W, ptrdiff_t stride, ptrdiff_t width, double constant, const double* last, double* out) noexcept nogil
cdef extern from "structsolve/simd/loops.h" nogil:
    ctypedef struct ss_loop_table:
        ss_score_loop* score
        void maxplus(ptrdiff_t K, const double* previous, const double* T, ptrdiff_t stride, ptrdiff_t width, const double* add, double* next) noexcept nogil
        void maxdots(ptrdiff_t rows, const double* T, ptrdiff_t stride, ptrdiff_t width, const double* x, double* out) noexcept nogil
        void sumprod(ptrdiff_t K, const double* previous, const double* E, ptrdiff_t stride, ptrdiff_t width, double* next) noexcept nogil
        void dots(ptrdiff_t rows, const double* E, ptrdiff_t stride, ptrdiff_t width, const double* x, double* out) noexcept nogil
        void outer(ptrdiff_t n, ptrdiff_t K, const double* a, const double* b, const double* E, ptrdiff_t stride, ptrdiff_t width, double* out) noexcept nogil
        void exp_rows(ptrdiff_t rows, const double* x, ptrdiff_t stride, ptrdiff_t columns, double shift, double* out) noexcept nogil
        void range(ptrdiff_t rows, const double* x, ptrdiff_t stride, ptrdiff_t columns, double skip, double* low, double* top) noexcept nogil
        void mul_range(ptrdiff_t width, const double* factor, double* row, double* low, double* top) noexcept nogil
        ptrdiff_t reach(ptrdiff_t K, const double* previous, const double* row, double add, double target) noexcept nogil
        void viterbi(ptrdiff_t L, ptrdiff_t K, const double* T, ptrdiff_t stride, const double* add, double* alpha) noexcept nogil
        ptrdiff_t first_best(ptrdiff_t K, const double* row, double* top) noexcept nogil
        double total(ptrdiff_t n, const double* x) noexcept nogil
        const char* name
cdef const ss_loop_table* ss_loops(ptrdiff_t width) noexcept nogil
