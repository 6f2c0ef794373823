"""Bounds of a search: the largest psi below the lines of the oracle's answers."""

from libc.math cimport INFINITY, fabs, floor
from .view cimport LINES, View, Visit
from .psi cimport Psi


cdef double best_between(Psi psi, double h0, double g0, double h1, double g1,
                         double* share) except? -1 nogil:
    # The largest psi on a segment; share <- its position from the first end to the second.  psi is
    # quasi-concave along it: golden-section search, and both ends.
    cdef double ratio = 0.6180339887498949
    cdef double a = 0, z = 1, x, y, psi_x, psi_y, first, last
    cdef double dh = h1 - h0, dg = g1 - g0
    cdef int k
    first, last = psi.value(h0, g0), psi.value(h1, g1)
    x, y = z - ratio, a + ratio
    psi_x = psi.value(h0 + x * dh, g0 + x * dg)
    psi_y = psi.value(h0 + y * dh, g0 + y * dg)
    for k in range(80):
        if psi_x >= psi_y:
            z, y, psi_y = y, x, psi_x
            x = z - ratio * (z - a)
            psi_x = psi.value(h0 + x * dh, g0 + x * dg)
        else:
            a, x, psi_x = x, y, psi_y
            y = a + ratio * (z - a)
            psi_y = psi.value(h0 + y * dh, g0 + y * dg)
        if z - a <= 1e-8:
            break
    share[0] = x if psi_x >= psi_y else y
    if psi_y > psi_x:
        psi_x = psi_y
    if first >= psi_x and first >= last:
        share[0] = 0
        return first
    if last >= psi_x:
        share[0] = 1
        return last
    return psi_x


cdef double common_unit(double a, double b, double rounding) noexcept nogil:
    # Greatest common divisor of two positive numbers (the first may be infinite: none yet).
    cdef double rest
    if a == INFINITY:
        return b
    while b > rounding:
        rest = a - floor(a / b) * b
        # A multiple, up to rounding, has no remainder.
        if b - rest <= rounding:
            rest = 0
        a, b = b, rest
    return a


cdef double grid_bound(const View* view, Psi psi) except? -1 nogil:
    # Like envelope_bound(), but only for multiples g of the unit, if there is one.  Labels have no
    # other g; mixtures with the truth, near g = 0, are not labels.
    cdef double g, h, value, best = -INFINITY
    cdef Py_ssize_t j, k
    if view.unit == 0 or view.n_visits == 0:
        return envelope_bound(view, psi)
    for k in range(view.least, view.most + 1):
        g = k * view.unit
        h = INFINITY
        for j in range(view.n_visits):
            h = min(h, line_at(&view.visits[j], g))
        value = psi.value(h, g)
        if value > best:
            best = value
    return best


cdef double envelope_bound(const View* view, Psi psi) except? -1 nogil:
    # The largest psi below all lines h = bound - lam g of the visits, for g in the allowed range.
    # The lines' lower envelope is concave, and psi quasi-concave and increasing in h: each piece is
    # searched like a segment, and the last until psi falls.
    cdef double g = view.low, h, t, other, here, crossing, step, before, after, share
    cdef double best = -INFINITY
    cdef Py_ssize_t j, k, now = 0
    cdef const Visit* a
    cdef const Visit* b
    cdef int guard
    if view.n_visits == 0:
        return INFINITY
    # The lowest line at the smallest g; the steepest on ties.
    for j in range(1, view.n_visits):
        a, b = &view.visits[j], &view.visits[now]
        other, here = line_at(a, g), line_at(b, g)
        if other < here or (other == here and a.lam > b.lam):
            now = j
    for guard in range(LINES + 1):
        a = &view.visits[now]
        h = line_at(a, g)
        # The first crossing of this line with a steeper one.
        t, k = view.high, -1
        for j in range(view.n_visits):
            b = &view.visits[j]
            if b.lam > a.lam:
                crossing = (b.bound - a.bound) / (b.lam - a.lam)
                if crossing < g:
                    crossing = g
                if crossing < t or (crossing == t and k >= 0 and b.lam > view.visits[k].lam):
                    t, k = crossing, j
        if t < INFINITY:
            if t > g or k < 0:
                here = best_between(psi, h, g, line_at(a, t), t, &share)
                if here > best:
                    best = here
            if k < 0:
                return best
            g, now = t, k
        else:
            break
    # The last ray: double it until psi has fallen.
    step = fabs(g) + 1
    if a.lam > 0 and fabs(h) / a.lam > step:
        step = fabs(h) / a.lam
    before = psi.value(h, g)
    for j in range(60):
        after = psi.value(h - a.lam * step, g + step)
        if after <= before:
            here = best_between(psi, h, g, h - a.lam * step, g + step, &share)
            return here if here > best else best
        before = after
        step *= 2
    return INFINITY
