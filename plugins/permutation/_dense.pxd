# Small dense systems in the caller's memory.

# x <- A^-1 x for a positive definite A of n rows of `ld` doubles, of which the lower triangle is
# read, and overwritten by its Cholesky factor.  False where A is not positive definite.
cdef bint solve_spd(Py_ssize_t n, Py_ssize_t ld, double* A, double* x) noexcept nogil
