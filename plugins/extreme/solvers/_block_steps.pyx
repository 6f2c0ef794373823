"""Closed-form steps of an example's dual variables, and values of surrogates on its rivals.

Entry 0 of a vector belongs to the truth, the others to the rivals.
"""

from libc.math cimport INFINITY, exp, fabs, log

from structsolve.algorithms.simplex_projection cimport simplex_threshold

KINDS = {"margin": MARGIN, "squared-hinge": SQUARED_HINGE, "sparsemap": SPARSEMAP, "crf": CRF,
         "max-min": MAX_MIN}


# ---- block steps: m <- argmax G(m) + <theta, m> - kappa / 2 |m - m0|^2 over the simplex ----------

cdef void hinge_step(Py_ssize_t n, const double* theta, double* m, double kappa, bint squared,
                     double* p, double* sorted_p) noexcept nogil:
    """Margin or squared hinge: entries 1 .. n of m, with sum at most 1, or free if squared.

    Entry 0, of the truth, is one minus this sum.
    """
    cdef Py_ssize_t j, k
    cdef double total = 0, tau = 0, t, held = 0
    for j in range(1, n + 1):
        held += m[j]
    for j in range(1, n + 1):
        p[j] = (1 + theta[j] - theta[0]) / kappa + m[j] + held
        k = j
        while k > 1 and sorted_p[k - 1] < p[j]:
            sorted_p[k] = sorted_p[k - 1]
            k -= 1
        sorted_p[k] = p[j]
    # The sum of the entries is tau; squared: tau / (1 + 1 / (2 kappa)).
    for j in range(1, n + 1):
        t = (total + sorted_p[j]) / (j + (1 / (1 + 0.5 / kappa) if squared else 1.0))
        if sorted_p[j] <= t:
            break
        total += sorted_p[j]
        tau = t
    if tau > 1 and not squared:
        total = 0
        for j in range(1, n + 1):
            t = (total + sorted_p[j] - 1) / j
            if sorted_p[j] <= t:
                break
            total += sorted_p[j]
            tau = t
    held = 0
    for j in range(1, n + 1):
        m[j] = p[j] - tau if p[j] > tau else 0.0
        held += m[j]
    m[0] = 1 - held


cdef void square_step(Py_ssize_t n, const double* theta, double* m, double kappa,
                      double* p) noexcept nogil:
    """SparseMAP: G = (1 - |m|^2) / 2."""
    cdef Py_ssize_t j
    cdef double tau
    for j in range(n + 1):
        p[j] = (theta[j] - theta[0] + kappa * m[j]) / (1 + kappa)
    tau = simplex_threshold(n + 1, p)
    for j in range(n + 1):
        m[j] = p[j] - tau if p[j] > tau else 0.0


cdef double log_share(double t, double kappa) noexcept nogil:
    """Solve u + kappa e^u = t by Newton's method, which is monotone from the right of the root."""
    cdef double u = t, step
    cdef int k
    if t > 1 and kappa > 0:
        u = log(t / kappa)
        u = t if u > t else u
    for k in range(30):
        step = kappa * exp(u)
        step = (u + step - t) / (1 + step)
        u -= step
        if fabs(step) < 1e-12 * (1 + fabs(u)):
            break
    return u


cdef void entropy_step(Py_ssize_t n, const double* theta, double* m, double kappa,
                       double* t, double* fresh) noexcept nogil:
    """CRF: log m_j + kappa m_j = theta_j + kappa m0_j - nu, where nu makes m sum to 1."""
    cdef Py_ssize_t j
    cdef int k
    cdef double low, high, nu, total, slope, top = -INFINITY
    for j in range(n + 1):
        t[j] = theta[j] + kappa * m[j]
        top = t[j] if t[j] > top else top
    # At nu = top - kappa the largest entry is 1; at top - kappa / (n + 1) + log(n + 1) all entries
    # are at most 1 / (n + 1).
    low, high = top - kappa, top - kappa / (n + 1) + log(n + 1.0)
    nu = low
    for k in range(60):
        total = slope = 0
        for j in range(n + 1):
            fresh[j] = exp(log_share(t[j] - nu, kappa))
            total += fresh[j]
            slope += fresh[j] / (1 + kappa * fresh[j])
        if fabs(total - 1) < 1e-10:
            break
        if total > 1:
            low = nu
        else:
            high = nu
        nu += (total - 1) / slope
        if not low <= nu <= high:
            nu = 0.5 * (low + high)
    for j in range(n + 1):
        m[j] = fresh[j] / total


cdef void max_min_step(Py_ssize_t n, const double* theta, double* m, double kappa,
                       double* p) noexcept nogil:
    """Max-min margin of the 0-1 loss: G = 1 - max_j m_j.

    m_j = min(u_j, t) with u the projection onto the simplex of sum 1 + 1 / kappa, of which
    sum_j max(u_j - t, 0) = 1 / kappa lies above the largest entry t.
    """
    cdef Py_ssize_t j
    cdef double tau, whole = 1 + 1 / kappa
    for j in range(n + 1):
        p[j] = ((theta[j] - theta[0]) / kappa + m[j]) / whole
    tau = simplex_threshold(n + 1, p)
    for j in range(n + 1):
        m[j] = whole * (p[j] - tau) if p[j] > tau else 0.0
        p[j] = m[j] * kappa
    tau = simplex_threshold(n + 1, p) / kappa
    for j in range(n + 1):
        m[j] = m[j] if m[j] < tau else tau


cdef void block_step(int kind, Py_ssize_t n, const double* theta, double* m, double kappa,
                     double* p, double* q) noexcept nogil:
    if kind == MARGIN or kind == SQUARED_HINGE:
        hinge_step(n, theta, m, kappa, kind == SQUARED_HINGE, p, q)
    elif kind == SPARSEMAP:
        square_step(n, theta, m, kappa, p)
    elif kind == CRF:
        entropy_step(n, theta, m, kappa, p, q)
    else:
        max_min_step(n, theta, m, kappa, p)


cdef double dual_term(int kind, Py_ssize_t n, const double* m) noexcept nogil:
    cdef Py_ssize_t j
    cdef double held = 0, total = 0
    if kind == MARGIN or kind == SQUARED_HINGE:
        for j in range(1, n + 1):
            held += m[j]
        return held - 0.25 * held * held if kind == SQUARED_HINGE else held
    for j in range(n + 1):
        if kind == SPARSEMAP:
            total += m[j] * m[j]
        elif kind == MAX_MIN:
            total = m[j] if m[j] > total else total
        elif m[j] > 0:
            total -= m[j] * log(m[j])
    if kind == SPARSEMAP:
        return 0.5 * (1 - total)
    return total if kind == CRF else 1 - total


# ---- values: H on the known classes, and its upper bound with the others -------------------------

cdef void squares_value(Py_ssize_t n, const double* z, double rest, double count,
                        double* value) noexcept nogil:
    """max_m (1 - |m|^2) / 2 + <z, m>; z descends, and `count` further numbers equal `rest`."""
    cdef Py_ssize_t j = 0
    cdef double mass = 0, total = 0, squares = 0, tau = -INFINITY
    cdef bint left = count > 0 and rest > -INFINITY
    while j < n or left:
        if left and (j == n or rest >= z[j]):
            if rest <= tau:
                break
            mass += count
            total += count * rest
            squares += count * rest * rest
            left = False
        else:
            if z[j] <= tau:
                break
            mass += 1
            total += z[j]
            squares += z[j] * z[j]
            j += 1
        tau = (total - 1) / mass
    value[0] = 0.5 * (squares - mass * tau * tau) + 0.5


cdef void max_min_value(Py_ssize_t n, const double* z, double rest, double count,
                        double* value) noexcept nogil:
    """max_m (z_(1) + ... + z_(m) + m - 1) / m; z descends, `count` further numbers are `rest`."""
    cdef Py_ssize_t j = 0
    cdef double mass = 0, total = 0, best = -INFINITY, mean
    cdef bint left = count > 0 and rest > -INFINITY
    while j < n or left:
        if left and (j == n or rest >= z[j]):
            # The mean is monotone along equal numbers: the maximum takes none or all.
            mass += count
            total += count * (rest + 1)
            left = False
        else:
            mass += 1
            total += z[j] + 1
            j += 1
        mean = (total - 1) / mass
        best = mean if mean > best else best
    value[0] = best


cdef void entropy_value(Py_ssize_t n, const double* z, double rest, double count,
                        double* value) noexcept nogil:
    """log sum exp z; `count` further numbers equal `rest`."""
    cdef Py_ssize_t j
    cdef double top = z[0], total = 0
    if count > 0 and rest > top:
        top = rest
    for j in range(n):
        total += exp(z[j] - top)
    if count > 0:
        total += count * exp(rest - top)
    value[0] = top + log(total)


cdef int value_bounds(int kind, Py_ssize_t n, double* z, double rest, double count,
                      double* known, double* upper) noexcept nogil:
    # H increases with every score, so setting all other scores to `rest` gives an upper bound.
    cdef Py_ssize_t j, k
    cdef double t
    if rest == INFINITY:
        upper[0] = INFINITY
    if kind == MARGIN or kind == SQUARED_HINGE:
        known[0] = 0
        for j in range(1, n):
            known[0] = 1 + z[j] if 1 + z[j] > known[0] else known[0]
        t = 1 + rest if count > 0 and 1 + rest > known[0] else known[0]
        if kind == SQUARED_HINGE:
            known[0] *= known[0]
            t *= t
        upper[0] = t
        return 0
    for j in range(1, n):
        t = z[j]
        k = j
        while k > 0 and z[k - 1] < t:
            z[k] = z[k - 1]
            k -= 1
        z[k] = t
    if kind == CRF:
        entropy_value(n, z, 0, 0, known)
        if rest < INFINITY:
            entropy_value(n, z, rest, count, upper)
    elif kind == SPARSEMAP:
        squares_value(n, z, 0, 0, known)
        if rest < INFINITY:
            squares_value(n, z, rest, count, upper)
    else:
        max_min_value(n, z, 0, 0, known)
        if rest < INFINITY:
            max_min_value(n, z, rest, count, upper)
    return 0
