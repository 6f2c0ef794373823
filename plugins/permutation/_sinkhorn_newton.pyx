"""Prices of columns that make the rows' own answers doubly stochastic.

At prices p every row is maximised alone, by a softmax or a projection onto the simplex, and what is
minimised over p is phi of `_projections.pyx`: by Sinkhorn's iteration, and by Newton's method.
"""

from libc.math cimport INFINITY, exp, fabs, log, sqrt
from libc.string cimport memcpy, memset

cdef enum:
    HALVINGS = 30

cdef double SPREAD = 1e60       # scalings of Sinkhorn's iteration beyond which it starts anew


cdef double distance(const Search* s, const double* p, const double* g) noexcept nogil:
    # How far from optimal: sums of columns away from 1; below 1 counts where the price is not 0.
    cdef double total = 0
    cdef Py_ssize_t c
    for c in range(s.cols):
        if s.square or g[c] < 0:
            total += fabs(g[c])
        else:
            total += min(g[c], p[c])
    return total


cdef double answer_rows(Search* s, const double* p, double* g) noexcept nogil:
    """q <- the rows' answers, g <- the gradient; returns phi."""
    cdef Py_ssize_t r, c
    cdef double total = 0, top, low, mass
    cdef double* q
    cdef const double* cost
    for c in range(s.ld):
        g[c] = 1 if c < s.cols else 0
    for c in range(s.cols):
        total += p[c]
    for r in range(s.rows):
        q, cost = s.q + r * s.ld, s.cost + r * s.ld
        for c in range(s.ld):
            q[c] = -cost[c] - p[c]
        s.loops.range(1, q, s.ld, s.cols, 0, &low, &top)
        if s.euclidean:
            total += _simplex(s.ld, q, top)
        else:
            s.loops.exp_rows(1, q, s.ld, s.cols, top, q)
            mass = s.loops.total(s.ld, q)
            total += top + log(mass)
            mass = 1 / mass
            for c in range(s.ld):
                q[c] *= mass
        for c in range(s.ld):
            g[c] -= q[c]
    return total


cdef double _simplex(Py_ssize_t n, double* x, double top) noexcept nogil:
    """x <- argmax <x, q> - |q|^2 / 2 over the simplex (Michelot); returns the maximum."""
    cdef Py_ssize_t j, count = 0, before = -1
    cdef double total = 0, tau = -1, mass = 0, value = 0, q
    # Scores are relative to the largest, so rounding depends on their differences only; entries
    # that are less by 1 or more are 0.
    while True:
        count, total = 0, 0
        for j in range(n):
            if x[j] - top > tau:
                total += x[j] - top
                count += 1
        # The support only shrinks; otherwise rounding could add and remove an entry forever.
        if count == 0 or (before >= 0 and count >= before):
            break
        before = count
        tau = (total - 1) / count
    for j in range(n):
        if x[j] - top > tau:
            mass += x[j] - top - tau
    for j in range(n):
        q = (x[j] - top - tau) / mass if x[j] - top > tau else 0
        if q > 0:
            value += q * (x[j] - q / 2)
        x[j] = q
    return value


cdef void sinkhorn(Search* s, double target) noexcept nogil:
    """Scale rows and columns in turn while that is quick; p <- the prices."""
    cdef Py_ssize_t r, c, it, most = 40 + 4 * s.cols
    cdef double low, top, size, before = INFINITY, x
    for r in range(s.rows):
        for c in range(s.ld):
            s.q[r * s.ld + c] = -s.cost[r * s.ld + c] - s.p[c]
        s.loops.range(1, s.q + r * s.ld, s.ld, s.cols, 0, &low, &top)
        s.loops.exp_rows(1, s.q + r * s.ld, s.ld, s.cols, top, s.q + r * s.ld)
    for c in range(s.ld):
        s.b[c] = 1 if c < s.cols else 0
        # A price is at least 0 if rows are few, so that a scaling is at most:
        s.d[c] = INFINITY if s.square else exp(min(s.p[c], 600))
    for it in range(most):
        s.loops.dots(s.rows, s.q, s.ld, s.ld, s.b, s.a)
        for r in range(s.rows):
            s.a[r] = 1 / s.a[r]
        s.loops.sumprod(s.rows, s.a, s.q, s.ld, s.ld, s.g)
        size, low, top = 0, INFINITY, 0
        for c in range(s.cols):
            x = s.g[c] * s.b[c]
            if s.square or x > 1 or s.b[c] < s.d[c]:
                size += fabs(x - 1)
            s.g_new[c] = 1 / s.g[c]
            if s.g_new[c] > s.d[c]:
                s.g_new[c] = s.d[c]
            low, top = min(low, s.g_new[c]), max(top, s.g_new[c])
        if not (low > 1 / SPREAD and top < SPREAD):
            break
        memcpy(s.b, s.g_new, s.cols * sizeof(double))
        if size <= target:
            break
        if it % 4 == 3:
            # Newton's method takes a few steps that cost about a scaling per column each.
            if not (size < before and (log(target / size) / log(size / before) * 4
                                       < 10 + 3 * s.cols)):
                break
            before = size
    for c in range(s.cols):
        s.p[c] -= log(s.b[c])
        if not s.square and s.p[c] < 0:
            s.p[c] = 0


# -- Newton's method ------------------------------------------------------------------------------

cdef bint newton_step(Search* s, double* phi, double* ridge) noexcept nogil:
    """Take one step on the prices; return False if rounding leaves nothing to gain."""
    cdef Py_ssize_t c, n_free = 0
    cdef int attempt
    cdef int* free = s.free
    cdef double step = 1, value, slope, noise
    cdef double before = distance(s, s.p, s.g)
    cdef double near = min(before / s.cols, 0.1)
    # Prices at 0, or near it, that want to fall follow the gradient (Bertsekas).
    for c in range(s.cols):
        s.b[c] = 0
        if s.square or s.p[c] > near or s.g[c] < 0:
            free[n_free] = <int>c
            n_free += 1
        else:
            s.b[c] = -s.g[c]
    _hessian(s)
    for attempt in range(8):
        _compress(s, free, n_free, ridge[0])
        for c in range(n_free):
            s.d[c] = -s.g[free[c]]
        if _solve_spd(n_free, s.ld, s.factor, s.d):
            for c in range(n_free):
                s.b[free[c]] = s.d[c]
            break
        ridge[0] *= 100
    noise = 1e-15 * (fabs(phi[0]) + s.cols)
    for attempt in range(HALVINGS):
        memcpy(s.p_new, s.p, s.ld * sizeof(double))
        slope = 0
        for c in range(s.cols):
            s.p_new[c] += step * s.b[c]
            if not s.square and s.p_new[c] < 0:
                s.p_new[c] = 0
            slope += s.g[c] * (s.p_new[c] - s.p[c])
        value = answer_rows(s, s.p_new, s.g_new)
        if value <= phi[0] + 1e-4 * slope + noise and slope <= 0:
            memcpy(s.p, s.p_new, s.ld * sizeof(double))
            memcpy(s.g, s.g_new, s.ld * sizeof(double))
            slope = phi[0] - value
            phi[0] = value
            if attempt == 0:
                ridge[0] = max(ridge[0] / 100, 1e-13)
            elif attempt > 3:
                ridge[0] = min(ridge[0] * 30, <double>s.rows)
            return slope > noise or distance(s, s.p, s.g) < before / 2
        step *= 0.5
    # The curvature changes along the step; with a large ridge the step is a gradient step, which
    # always improves if that is possible.
    phi[0] = answer_rows(s, s.p, s.g)
    if ridge[0] >= s.rows:
        return False
    ridge[0] = min(ridge[0] * 1000, <double>s.rows)
    return True


cdef void _hessian(Search* s) noexcept nogil:
    """H <- sum_r diag(q_r) - q_r q_r' for a softmax; of a simplex, its support over its size."""
    cdef Py_ssize_t r, c, k, n
    cdef int* active = s.active
    cdef double x
    cdef double* q
    if not s.euclidean:
        for c in range(s.cols):
            for k in range(s.ld):
                s.H[c * s.ld + k] = -1
        s.loops.outer(s.rows, s.cols, s.q, s.q, s.H, s.ld, s.ld, s.H)
        for c in range(s.cols):
            x = 0
            for r in range(s.rows):
                x += s.q[r * s.ld + c] * (1 - s.q[r * s.ld + c])
            s.H[c * s.ld + c] = x
        return
    memset(s.H, 0, s.cols * s.ld * sizeof(double))
    for r in range(s.rows):
        q = s.q + r * s.ld
        n = 0
        for c in range(s.cols):
            if q[c] > 0:
                active[n] = <int>c
                n += 1
        x = 1.0 / n
        for k in range(n):
            for c in range(n):
                s.H[active[k] * s.ld + active[c]] -= x
            s.H[active[k] * s.ld + active[k]] += 1


cdef void _compress(Search* s, const int* free, Py_ssize_t n, double ridge) noexcept nogil:
    """factor <- the lower triangle of H over free prices, and a ridge."""
    cdef Py_ssize_t j, k
    cdef const double* row
    for j in range(n):
        row = s.H + free[j] * s.ld
        for k in range(j + 1):
            s.factor[j * s.ld + k] = row[free[k]]
        s.factor[j * s.ld + j] += ridge


cdef bint _solve_spd(Py_ssize_t n, Py_ssize_t ld, double* A, double* x) noexcept nogil:
    """x <- A^-1 x for a positive definite A of n rows of `ld` doubles; False if it is not.

    The lower triangle of A is read, and A overwritten by its Cholesky factor.
    """
    # The factor is kept by columns, in the upper triangle of rows: each step then subtracts
    # multiples of one contiguous row from the rest of the matrix.
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
