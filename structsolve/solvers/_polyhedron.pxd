# Euclidean projections of weights onto the polyhedron of their constraints.
from libc.stdint cimport int64_t


cdef class Polyhedron:
    cdef readonly Py_ssize_t n_rows, dim
    # (n_rows,) multipliers of the last projection, which moved w by their combination of the rows.
    cdef readonly object multipliers
    cdef object owners
    cdef const int64_t[::1] first, gram_at      # rows, and the Gram matrix, of each component
    cdef const int64_t[::1] indptr, indices
    cdef const double[::1] data, c, gram
    cdef const char[::1] equal
    cdef double[::1] mu, moved, distance, factor, solution
    cdef int64_t[::1] chosen
    cdef char[::1] barred

    # w <- the point nearest to `scale` times w, divided by `scale`.  With `again`, the last
    # projection is undone first, and later changes of w are kept.  Each coordinate's change, times
    # `share`, is also added to `other` unless that is NULL.  Returns <c, multipliers>.
    cdef double project(self, double* w, double scale, bint again, double* other,
                        double share) noexcept nogil
    cdef void _multipliers(self, Py_ssize_t first, Py_ssize_t r, const double* gram,
                           double size) noexcept nogil
    cdef Py_ssize_t _factorise(self, Py_ssize_t n, Py_ssize_t r, const double* gram,
                               double* mu) noexcept nogil
    cdef void _solve(self, Py_ssize_t n, Py_ssize_t r, double* z, bint forwards) noexcept nogil
