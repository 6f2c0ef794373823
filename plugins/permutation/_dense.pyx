"""Small dense systems of equations without LAPACK: no interpreter, no allocation."""

from libc.math cimport sqrt


cdef bint solve_spd(Py_ssize_t n, Py_ssize_t ld, double* A, double* x) noexcept nogil:
    # The factor is kept by columns, in what is the upper triangle of rows: what is left of the
    # matrix then loses multiples of one contiguous row.
    cdef Py_ssize_t i, j, k
    cdef double pivot, f
    cdef double* row
    cdef double* other
    for i in range(n):
        for j in range(i):
            A[j * ld + i] = A[i * ld + j]
    for k in range(n):
        row = A + k * ld
        pivot = row[k]
        if not pivot > 0:
            return False
        pivot = 1 / sqrt(pivot)
        for j in range(k, n):
            row[j] *= pivot
        for i in range(k + 1, n):
            f = row[i]
            if f != 0:
                other = A + i * ld
                for j in range(i, n):
                    other[j] -= f * row[j]
    for k in range(n):
        row = A + k * ld
        x[k] /= row[k]
        f = x[k]
        for j in range(k + 1, n):
            x[j] -= f * row[j]
    for k in range(n - 1, -1, -1):
        row = A + k * ld
        f = x[k]
        for j in range(k + 1, n):
            f -= row[j] * x[j]
        x[k] = f / row[k]
    return True
