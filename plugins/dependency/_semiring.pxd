# Sums of products of a chart's numbers: best scores, weights, or logs of weights.
from libc.math cimport INFINITY, exp, log, log1p

cdef enum Semiring:
    BEST        # scores: sums are maxima, products are sums
    WEIGHTS
    LOGS


cdef inline double zero(Semiring kind) noexcept nogil:
    return 0 if kind == WEIGHTS else -INFINITY


cdef inline double one(Semiring kind) noexcept nogil:
    return 1 if kind == WEIGHTS else 0


cdef inline double times(Semiring kind, double a, double b) noexcept nogil:
    return a * b if kind == WEIGHTS else a + b


cdef inline double log_plus(double a, double b) noexcept nogil:
    if a < b:
        a, b = b, a
    return a if b == -INFINITY else a + log1p(exp(b - a))


cdef inline double fold(Semiring kind, Py_ssize_t n, const double* a,
                        const double* b) noexcept nogil:
    """The sum over k of a[k] times b[k]; n is at least 1.

    Four at a time, so that operations do not wait for each other.
    """
    cdef Py_ssize_t k = 0, whole = n - n % 4
    cdef double w, x, y, z, top
    if kind == WEIGHTS:
        w = x = y = z = 0
        while k < whole:
            w += a[k] * b[k]
            x += a[k + 1] * b[k + 1]
            y += a[k + 2] * b[k + 2]
            z += a[k + 3] * b[k + 3]
            k += 4
        for k in range(whole, n):
            w += a[k] * b[k]
        return (w + x) + (y + z)
    w = x = y = z = -INFINITY
    while k < whole:
        w = a[k] + b[k] if a[k] + b[k] > w else w
        x = a[k + 1] + b[k + 1] if a[k + 1] + b[k + 1] > x else x
        y = a[k + 2] + b[k + 2] if a[k + 2] + b[k + 2] > y else y
        z = a[k + 3] + b[k + 3] if a[k + 3] + b[k + 3] > z else z
        k += 4
    for k in range(whole, n):
        w = a[k] + b[k] if a[k] + b[k] > w else w
    w = x if x > w else w
    y = z if z > y else y
    top = y if y > w else w
    if kind == BEST or top == -INFINITY:
        return top
    w = 0
    for k in range(n):
        w += exp(a[k] + b[k] - top)
    return top + log(w)


cdef inline Py_ssize_t pick(Semiring kind, Py_ssize_t n, const double* a, const double* b,
                            double* uniform) noexcept nogil:
    """The first best k, or one drawn in proportion to a[k] times b[k].

    The remainder of the uniform number after a draw is again uniform.
    """
    cdef Py_ssize_t k, last = 0
    cdef double w, top = -INFINITY, total = 0, below = 0, share = 0
    if kind != WEIGHTS:
        for k in range(n):
            if a[k] + b[k] > top:
                top, last = a[k] + b[k], k
        if kind == BEST:
            return last
    for k in range(n):
        total += a[k] * b[k] if kind == WEIGHTS else exp(a[k] + b[k] - top)
    for k in range(n):
        w = a[k] * b[k] if kind == WEIGHTS else exp(a[k] + b[k] - top)
        if w > 0:
            last, share = k, w
            if below + w > uniform[0] * total:
                break
            below += w
    if share > 0:
        w = (uniform[0] * total - below) / share
        uniform[0] = 0 if w < 0 else (w if w < 1 else 1 - 1e-16)
    return last
