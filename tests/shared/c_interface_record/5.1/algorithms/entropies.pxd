from libc.math cimport INFINITY
from structsolve.abi_number cimport structsolve_abi_marker
cdef double entropy(Py_ssize_t n, const double* x) noexcept nogil
cdef double entropy_slope(Py_ssize_t n, const double* a, const double* b, double gamma, int* stuck) noexcept nogil
cdef void logarithms(Py_ssize_t n, const double* x, double add, double* out) noexcept nogil
cdef inline double slope_at(double slope, double gamma, int stuck) noexcept nogil:
    if stuck and gamma <= 0:
        return INFINITY
    if stuck and gamma >= 1:
        return -INFINITY
    return slope
