"""Searches over lam for slack rescaling, ``max_y (1 + h) g``: binary, bisecting, Sarawagi-Gupta.

They see one label per lam and keep the best: where the maximum lies below the hull of the labels'
points, or where they stop early, they miss it.  What they may have missed is in the bound.  In this
file H = 1 + h; the truth has H = 1, so that the largest H + lam g is always positive.
"""

from libc.math cimport INFINITY, sqrt
from .base cimport Found, Search
from .plane cimport LabelPlane, Point, View
from .psi cimport Psi


cdef inline bint _near(double a, double b, double tol) noexcept nogil:
    return b - a <= tol * b


cdef class Binary(Search):
    """Bisects log lam by the slope of the convex ``max_y (H/lam + lam g)^2 / 4``.

    Parameters
    ----------
    max_calls, tol : see :class:`Search`
    width : float, default=1e-3
        Relative width of the interval of lam at which it ends.
    """

    cdef double width

    def __init__(self, int max_calls=50, double tol=1e-9, double width=1e-3):
        super().__init__(max_calls, tol)
        self.name, self.product_only, self.width = "binary", True, width

    cdef int run(self, LabelPlane plane, View* view, Psi psi, double lam, Found* out,
                 char* work) except -1 nogil:
        cdef double low = 0, high = INFINITY, best = INFINITY, top = 0, K, H, g, value
        cdef int index
        cdef bint known
        if not 0 < lam < INFINITY:
            lam = 1
        while view.calls < self.max_calls:
            index = self.visit(plane, view, psi, lam, &known)
            H, g = 1 + view.points[index].h, view.points[index].g
            K = H + lam * g
            out.lam = lam
            best = min(best, K * K / (4 * lam))
            if H > 0 and H * g > top:
                top = H * g
            if best <= top * (1 + self.tol) or H == lam * g:
                break
            if lam * g > H:
                high = lam
            else:
                low = lam
            if low > 0 and high < INFINITY and _near(low, high, self.width):
                break
            lam = sqrt(low * high) if low > 0 and high < INFINITY else (
                4 * lam if low > 0 else lam / 4)
            if lam > 1e15 or lam < 1e-15:
                break
        return self.settle(view, psi, out)


cdef class Bisecting(Search):
    """Algorithm 1 of the thesis: intervals for H, for g and for lam, until one is empty.

    Parameters
    ----------
    max_calls, tol : see :class:`Search`
    width : float, default=1e-3
        Relative width of the interval of lam at which it ends.
    """

    cdef double width

    def __init__(self, int max_calls=50, double tol=1e-9, double width=1e-3):
        super().__init__(max_calls, tol)
        self.name, self.product_only, self.width = "bisecting", True, width

    cdef int run(self, LabelPlane plane, View* view, Psi psi, double lam, Found* out,
                 char* work) except -1 nogil:
        cdef double low = 0, high = INFINITY, H, g, other
        cdef double h_low = -INFINITY, h_high = INFINITY, g_low = -INFINITY, g_high = INFINITY
        cdef int index, at_low = -1, at_high = -1
        cdef bint known
        if not 0 < lam < INFINITY:
            lam = 1
        while view.calls < self.max_calls:
            index = self.visit(plane, view, psi, lam, &known)
            out.lam = lam
            H, g = 1 + view.points[index].h, view.points[index].g
            other = lam * g
            h_low, h_high = max(h_low, min(H, other)), min(h_high, max(H, other))
            other = H / lam
            g_low, g_high = max(g_low, min(g, other)), min(g_high, max(g, other))
            if g <= other:
                low, at_low = max(low, lam), index
            else:
                high, at_high = min(high, lam), index
            if h_low > h_high or g_low > g_high or at_low == at_high or low > high:
                break
            if high < INFINITY and _near(low, high, self.width):
                break
            lam = 0.5 * (low + high) if high < INFINITY else 2 * lam
            if lam > 1e15 or lam < 1e-15:
                break
        return self.settle(view, psi, out)


cdef class SarawagiGupta(Search):
    """Golden section on ``F(lam) = max_y H + lam g - 2 sqrt(xi lam)`` (Sarawagi and Gupta 2008).

    ``xi`` is the best value already known: that of the truth and of the labels of the last search.
    A label is better exactly where ``H - xi/g > 0``, and the smallest F bounds that from above.

    Parameters
    ----------
    max_calls, tol : see :class:`Search`
    width : float, default=1e-2
        Relative width of the interval of lam at which it ends.
    """

    cdef double width

    def __init__(self, int max_calls=50, double tol=1e-9, double width=1e-2):
        super().__init__(max_calls, tol)
        self.name, self.product_only, self.width = "sarawagi", True, width

    cdef int run(self, LabelPlane plane, View* view, Psi psi, double lam, Found* out,
                 char* work) except -1 nogil:
        cdef double ratio = 0.6180339887498949, xi = 0, low, high, x, y, at_x, at_y, value
        cdef int j
        for j in range(view.n):
            value = (1 + view.points[j].h) * view.points[j].g
            if view.points[j].h > -1 and value > xi:
                xi = value
        if not 0 < lam < INFINITY:
            lam = 1
        # Bracket: walk by factors of four, away from where F grows.
        x, y = lam, 4 * lam
        at_x, at_y = self._rise(plane, view, psi, x, xi), self._rise(plane, view, psi, y, xi)
        low, high = x / 4, 4 * y
        while at_y < at_x and view.calls < self.max_calls and y < 1e12:
            low, x, at_x = x, y, at_y
            y *= 4
            high = y
            at_y = self._rise(plane, view, psi, y, xi)
        while at_x < at_y and low < x and view.calls < self.max_calls and x > 1e-12:
            high, y, at_y = y, x, at_x
            x /= 4
            low = x
            at_x = self._rise(plane, view, psi, x, xi)
        x, y = high - ratio * (high - low), low + ratio * (high - low)
        at_x = self._rise(plane, view, psi, x, xi)
        at_y = self._rise(plane, view, psi, y, xi)
        while high - low > self.width * high and view.calls < self.max_calls:
            if at_x <= at_y:
                high, y, at_y = y, x, at_x
                x = high - ratio * (high - low)
                at_x = self._rise(plane, view, psi, x, xi)
            else:
                low, x, at_x = x, y, at_y
                y = low + ratio * (high - low)
                at_y = self._rise(plane, view, psi, y, xi)
        out.lam = x if at_x <= at_y else y
        return self.settle(view, psi, out)

    cdef double _rise(self, LabelPlane plane, View* view, Psi psi, double lam,
                      double xi) except? -1 nogil:
        cdef bint known
        cdef int index
        if view.calls >= self.max_calls:
            return INFINITY
        index = self.visit(plane, view, psi, lam, &known)
        return 1 + view.points[index].h + lam * view.points[index].g - 2 * sqrt(xi * lam)
