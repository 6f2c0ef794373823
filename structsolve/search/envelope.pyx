"""How large psi can be below the lines that the oracle's answers are: bounds of a search."""

from libc.math cimport INFINITY, fabs, floor
from .view cimport LINES, View, Visit
from .psi cimport Psi


cdef double best_between(Psi psi, double h0, double g0, double h1, double g1,
                         double* share) except? -1 nogil:
    """Largest psi on the segment; ``share`` <- how far from the first end to the second.

    psi is quasi-concave along it: golden section, and both ends.
    """
    cdef double ratio = 0.6180339887498949
    cdef double a = 0, z = 1, x, y, at_x, at_y, first, last
    cdef double dh = h1 - h0, dg = g1 - g0
    cdef int k
    first, last = psi.value(h0, g0), psi.value(h1, g1)
    x, y = z - ratio, a + ratio
    at_x = psi.value(h0 + x * dh, g0 + x * dg)
    at_y = psi.value(h0 + y * dh, g0 + y * dg)
    for k in range(80):
        if at_x >= at_y:
            z, y, at_y = y, x, at_x
            x = z - ratio * (z - a)
            at_x = psi.value(h0 + x * dh, g0 + x * dg)
        else:
            a, x, at_x = x, y, at_y
            y = a + ratio * (z - a)
            at_y = psi.value(h0 + y * dh, g0 + y * dg)
        if z - a <= 1e-8:
            break
    share[0] = x if at_x >= at_y else y
    if at_y > at_x:
        at_x = at_y
    if first >= at_x and first >= last:
        share[0] = 0
        return first
    if last >= at_x:
        share[0] = 1
        return last
    return at_x


cdef double common_unit(double a, double b, double rounding) noexcept nogil:
    """Greatest common divisor of two positive numbers (the first may be infinite: none yet)."""
    cdef double rest
    if a == INFINITY:
        return b
    while b > rounding:
        rest = a - floor(a / b) * b
        # A multiple but for rounding leaves nothing.
        if b - rest <= rounding:
            rest = 0
        a, b = b, rest
    return a


cdef double grid_bound(const View* view, Psi psi) except? -1 nogil:
    """As envelope_bound(), for g among the multiples of the unit alone, where there is one.

    Labels have no others: the mixtures with the truth, near g = 0, do not count.
    """
    cdef double g, h, value, best = -INFINITY
    cdef Py_ssize_t j, k
    if view.unit == 0:
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
    """Largest psi below all lines ``h = bound - lam g`` of the visits, for g that may be.

    The lines' lower envelope is concave, and psi quasi-concave and increasing in h: along each
    piece it is searched like a segment, and along the last until psi falls.
    """
    cdef double g = view.low, h, t, at, here, step, before, share, best = -INFINITY
    cdef Py_ssize_t j, k, now = 0
    cdef const Visit* a
    cdef const Visit* b
    cdef int guard
    if view.n_visits == 0:
        return INFINITY
    # The lowest line where g begins; of several the steepest.
    for j in range(1, view.n_visits):
        a, b = &view.visits[j], &view.visits[now]
        at, here = line_at(a, g), line_at(b, g)
        if at < here or (at == here and a.lam > b.lam):
            now = j
    for guard in range(LINES + 1):
        a = &view.visits[now]
        h = line_at(a, g)
        # Where does a steeper line cross this one first?
        t, k = view.high, -1
        for j in range(view.n_visits):
            b = &view.visits[j]
            if b.lam > a.lam:
                at = (b.bound - a.bound) / (b.lam - a.lam)
                if at < g:
                    at = g
                if at < t or (at == t and k >= 0 and b.lam > view.visits[k].lam):
                    t, k = at, j
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
        at = psi.value(h - a.lam * step, g + step)
        if at <= before:
            here = best_between(psi, h, g, h - a.lam * step, g + step, &share)
            return here if here > best else best
        before = at
        step *= 2
    return INFINITY
