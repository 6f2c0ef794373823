# Entropies of marginals and their slopes along a segment, with vectorised logarithms.
from libc.math cimport INFINITY
from structsolve.abi_number cimport structsolve_abi_marker

# -sum_j x_j log x_j, with 0 log 0 = 0, for non-negative numbers.
cdef double entropy(Py_ssize_t n, const double* x) noexcept nogil

# -sum_j (b_j - a_j) log x_j at x = (1 - gamma) a + gamma b: the derivative of the entropy where a
# and b have the same sum.  stuck[0] gains 1 where an x_j is 0 and a_j is not b_j: the derivative is
# infinite there, but the returned number is finite.
cdef double entropy_slope(Py_ssize_t n, const double* a, const double* b, double gamma,
                          int* stuck) noexcept nogil

# out_j <- log x_j + add, with log 0 = -inf, for numbers that are 0, normal or NaN; out may be x.
cdef void logarithms(Py_ssize_t n, const double* x, double add, double* out) noexcept nogil

# The slope, given `stuck`: infinite for gamma = 0 and 1.
cdef inline double slope_at(double slope, double gamma, int stuck) noexcept nogil:
    if stuck and gamma <= 0:
        return INFINITY
    if stuck and gamma >= 1:
        return -INFINITY
    return slope
