from structsolve.abi_number cimport structsolve_abi_marker
from structsolve.simd.loops cimport ss_loop_table
cdef double simplex_threshold(Py_ssize_t n, const double* q) noexcept nogil
cdef int softmax(Py_ssize_t i, Py_ssize_t K, Py_ssize_t stride, const ss_loop_table* loops, const double* scores, double* p, double* value) except -1 nogil
cdef int sparsemax(Py_ssize_t i, Py_ssize_t K, Py_ssize_t stride, const double* scores, double* p, double* value) except -1 nogil
cdef double square_term(Py_ssize_t K, const double* p) noexcept nogil
cdef double square_slope(Py_ssize_t K, const double* a, const double* b, double gamma) noexcept nogil
