# Steps of one example's dual variables in closed form.  Not part of the C interface.

cdef enum:
    MARGIN = 0
    SQUARED_HINGE = 1
    SPARSEMAP = 2
    CRF = 3
    MAX_MIN = 4

# m <- argmax G(m) + <theta, m> - kappa / 2 |m - m0|^2 over the simplex, with m0 the old m.  For
# the squared hinge the sum of entries 1 .. n is free, and entry 0 is one minus this sum.  There are
# n rivals; kappa > 0; p and q have room for n + 2 numbers.
cdef void block_step(int kind, Py_ssize_t n, const double* theta, double* m, double kappa,
                     double* p, double* q) noexcept nogil
# G(m), with G = 0 at the truth.
cdef double dual_term(int kind, Py_ssize_t n, const double* m) noexcept nogil
# known <- H on the n scores z, with z[0] = 0 for the truth; upper <- an upper bound of H if `count`
# further classes score at most `rest` each.  Sorts z.
cdef int value_bounds(int kind, Py_ssize_t n, double* z, double rest, double count,
                      double* known, double* upper) noexcept nogil
