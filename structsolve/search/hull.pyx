# cython: auto_pickle=True
"""Convex hull search: any quasi-concave psi, exact over the hull of the labels' points."""

from libc.math cimport INFINITY, fabs
from .base cimport Outcome, Search, best_label
from .envelope cimport best_between, envelope_bound, grid_bound
from .view cimport Point, SLOTS, View
from .plane cimport LabelPlane
from .psi cimport Psi


# First guess: each wrong node raises the margin error by this share of a typical score.
cdef double SCALE = 0.3

# Beyond this lam the loss decides, and h only on ties.
cdef double LOSS = 1e12
# With smaller tolerances, computing the bound after every call costs more than it saves.
cdef double COARSE = 1e-6


cdef inline bint _before(const Point* a, const Point* b) noexcept nogil:
    return a.g < b.g or (a.g == b.g and a.h < b.h)


cdef int upper_hull(const View* view, int* hull) noexcept nogil:
    # hull <- the points of the upper hull by increasing g; returns their number.
    cdef int[SLOTS] order
    cdef int j, k, n = 0
    cdef const Point* p = view.points
    cdef const Point* a
    cdef const Point* b
    cdef const Point* c
    for j in range(view.n):
        k = j
        while k and _before(&p[j], &p[order[k - 1]]):
            order[k] = order[k - 1]
            k -= 1
        order[k] = j
    for j in range(view.n):
        c = &p[order[j]]
        if n and p[hull[n - 1]].g == c.g:
            n -= 1                      # the same loss, a larger margin error
        while n > 1:
            a, b = &p[hull[n - 2]], &p[hull[n - 1]]
            if (b.h - a.h) * (c.g - b.g) > (c.h - b.h) * (b.g - a.g):
                break
            n -= 1
        hull[n] = order[j]
        n += 1
    return n


cdef inline double _lam(const Point* left, const Point* right) noexcept nogil:
    # The lam at which two points are equally good.
    return (left.h - right.h) / (right.g - left.g)


cdef int best_on_hull(const View* view, Psi psi, const int* hull, int n,
                      Outcome* out) except -1 nogil:
    # out <- the hull's best point, a vertex or on an edge; returns its position on the hull.
    cdef int j, position = 0
    cdef double value, share
    cdef const Point* a
    cdef const Point* b
    out.value = -INFINITY
    for j in range(n):
        value = psi.value(view.points[hull[j]].h, view.points[hull[j]].g)
        if value > out.value:
            out.value, position = value, j
    out.first = out.second = hull[position]
    out.share = 0
    for j in range(position - 1 if position else 0, position + 1 if position + 1 < n else position):
        a, b = &view.points[hull[j]], &view.points[hull[j + 1]]
        value = best_between(psi, a.h, a.g, b.h, b.g, &share)
        if 0 < share < 1 and value > out.value:
            out.value, out.share = value, share
            out.first, out.second = hull[j], hull[j + 1]
    return position


cdef double tangent(const View* view, Psi psi, const int* hull, int n, int position,
                    const Outcome* best) except? -1 nogil:
    # The next lam: the edge's if the best point is on an edge, else that of psi's contour.
    cdef double dh, dg, lam
    cdef const Point* points = view.points
    if best.first != best.second:
        lam = _lam(&points[best.first], &points[best.second])
        return lam if lam > 0 else 0
    psi.partials(points[best.first].h, points[best.first].g, &dh, &dg)
    lam = dg / dh if dh > 0 else INFINITY
    if lam != lam:
        lam = INFINITY
    # The vertex is the oracle's answer between the lams of its two edges.
    if position + 1 < n:
        dg = _lam(&points[hull[position]], &points[hull[position + 1]])
        if not lam <= dg:
            lam = dg
    if position:
        dg = _lam(&points[hull[position - 1]], &points[hull[position]])
        if lam < dg:
            lam = dg
    return lam if lam > 0 else 0


cdef double first_lam(LabelPlane plane, View* view, Psi psi) except? -1 nogil:
    # The first lam: psi's tangent in a point where half of the nodes are wrong, each by a typical
    # score.
    cdef Py_ssize_t j, size = plane.layout.theta_size(view.i)
    cdef Py_ssize_t start = plane.layout.shared_size
    cdef double g = 0.5, total = 0, dh = 0, dg = 0
    cdef Py_ssize_t count = 0
    for j in range(start, size):
        if view.theta[j] != 0:
            total += fabs(view.theta[j])
            count += 1
    if not plane.g_loss.averaged:
        g *= plane.layout.label_size(view.i)
    if count:
        total /= count
    psi.partials(SCALE * total * g, g, &dh, &dg)
    # Where psi is flat in h the slope has no end, and the scores with losses would overflow.
    return min(dg / dh, LOSS * (1 + total)) if 0 < dg < INFINITY and dh > 0 else 1


cdef class ConvexHull(Search):
    """Walks to the tangent of psi's contour at the best point of the hull seen so far.

    Algorithm 4 of Choi (2018), with any start: the truth and the labels of the last search are
    known points.  It ends when the oracle finds nothing above the tangent, or above the hull's edge
    if the best point is a mixture of two labels.  This proves the maximum over the hull.

    Parameters
    ----------
    max_calls : int, default=50
        Maximum number of oracle calls.
    tol : float, default=1e-9
        Relative accuracy.
    start : float, default=0
        First lam of a search that starts only from the truth; 0 for :func:`first_lam`.

    Examples
    --------
    >>> ConvexHull(max_calls=20).name
    'convex-hull'
    """

    cdef double start

    def __init__(self, int max_calls=50, double tol=1e-9, double start=0):
        super().__init__(max_calls, tol)
        if not 0 <= start < INFINITY:
            raise ValueError(f"start is {start}, expected a number of at least 0")
        self.name, self.fractional, self.start = "convex-hull", True, start

    cdef int run(self, LabelPlane plane, View* view, Psi psi, double lam, Outcome* out,
                 char* work) except -1 nogil:
        cdef int[SLOTS] hull
        cdef int n, position, index, j
        cdef double known, scale, guess = 0, first = 0
        cdef bint old
        cdef Point* points = view.points
        while True:
            n = upper_hull(view, hull)
            position = best_on_hull(view, psi, hull, n, out)
            if view.calls >= self.max_calls:
                break
            lam = tangent(view, psi, hull, n, position, out)
            if lam <= LOSS:
                guess = 0
            else:
                # Only the truth or labels without loss are known: raise lam step by step up to
                # LOSS, beyond which rounding hides the scores.
                if guess == 0:
                    first = guess = self.start if self.start > 0 else first_lam(plane, view, psi)
                elif guess < LOSS:
                    guess = 16 * first if guess == first else LOSS
                else:
                    # Is there any label with a loss?
                    index = self.visit(plane, view, psi, INFINITY, &old)
                    if old or points[index].g <= points[0].g:
                        lam = guess
                        break
                    continue
                lam = guess
            if guess == 0 and view.exact and out.first == out.second and out.value > 0 and (
                    self._between(view, &points[out.first], lam)):
                out.lam = lam
                return self.close(view, psi, out, out.value * (1 + 1e-12))
            known = -INFINITY
            for j in range(view.n):
                if points[j].h + lam * points[j].g > known:
                    known = points[j].h + lam * points[j].g
            index = self.visit(plane, view, psi, lam, &old)
            scale = fabs(known) + fabs(points[index].h) + lam * fabs(points[index].g)
            if old or points[index].h + lam * points[index].g <= known + 1e-13 * scale:
                # Nothing lies above: the maximum is proven, unless this lam was a guess.
                if guess == 0:
                    out.lam = lam
                    if view.exact and self._touches(view, psi, lam, out):
                        return self.close(view, psi, out, out.bound)
                    break
            if view.unit > 0 and view.exact and self._settled(view, psi):
                # No label is better, though mixtures may be.
                break
            if self.tol >= COARSE:
                n = upper_hull(view, hull)
                best_on_hull(view, psi, hull, n, out)
                if envelope_bound(view, psi) <= out.value + self.tol * fabs(out.value):
                    break
        out.lam = lam
        return self.finish(view, psi, out)

    cdef bint _settled(self, const View* view, Psi psi) except -1 nogil:
        # Is the best label seen proven to be the best of all?
        cdef double best
        best_label(view, psi, &best)
        return grid_bound(view, psi) <= best + self.tol * fabs(best)

    cdef bint _between(self, const View* view, const Point* point, double lam) noexcept nogil:
        # Has the point been the answer on both sides of lam?  Then it is the answer between them.
        cdef bint below = False, above = False
        cdef Py_ssize_t j
        for j in range(view.n_visits):
            if view.visits[j].h == point.h and view.visits[j].g == point.g:
                below = below or view.visits[j].lam <= lam
                above = above or view.visits[j].lam >= lam
        return below and above

    cdef bint _touches(self, const View* view, Psi psi, double lam, Outcome* out) except -1 nogil:
        # Is the last line psi's tangent at the maximiser?  Then psi is nowhere larger below it.
        # out.bound <- the value, plus the rounding error between the point and the line.
        cdef const Point* a = &view.points[out.first]
        cdef const Point* b = &view.points[out.second]
        cdef double h = (1 - out.share) * a.h + out.share * b.h, dh = 0, dg = 0, above
        cdef double g = (1 - out.share) * a.g + out.share * b.g
        psi.partials(h, g, &dh, &dg)
        if not out.value > 0 or (out.first == out.second and not lam * dh == dg
                                 and not lam == dg / dh):
            return False
        above = view.visits[view.n_visits - 1].bound - (h + lam * g)
        out.bound = out.value * (1 + 1e-12) + (dh * above if above > 0 else 0)
        return True
