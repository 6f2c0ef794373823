# build: glue
"""Searches over lam for slack rescaling, ``max_y (1 + h) g``: binary, bisecting, Sarawagi-Gupta.

They see one label per lam and keep the best.  They miss the maximum if it lies below the hull of
the labels' points, or if they stop early; the bound includes what they may have missed.  In this
file H = 1 + h.  The truth has H = 1, so the largest H + lam g is always positive.
"""

from libc.math cimport INFINITY, sqrt
from .base cimport Outcome, Search
from .hull cimport first_lam
from .plane cimport LabelPlane
from .view cimport View
from .psi cimport Psi


cdef inline bint _near(double a, double b, double tol) noexcept nogil:
    return b - a <= tol * b


cdef class Scalar(Search):
    """The base of the three searches.

    Parameters
    ----------
    max_calls : int, default=50
        Maximum number of oracle calls.
    tol : float, default=1e-9
        Relative accuracy.
    """

    cdef double width       # relative, of the interval of lam where a search stops

    def __init__(self, int max_calls=50, double tol=1e-9):
        super().__init__(max_calls, tol)
        self.product_only, self.width = True, 1e-3

    def __reduce__(self):
        return type(self), (self.max_calls, self.tol)

    cdef double _start(self, LabelPlane plane, View* view, Psi psi, double lam) except? -1 nogil:
        # The end of the last search, or a first guess.
        return lam if 0 < lam < INFINITY else first_lam(plane, view, psi)


cdef class Binary(Scalar):
    """Bisects log lam by the slope of the convex ``max_y (H/lam + lam g)^2 / 4``.

    Parameters
    ----------
    max_calls, tol : as of Scalar
    """

    def __init__(self, int max_calls=50, double tol=1e-9):
        super().__init__(max_calls, tol)
        self.name = "binary"

    cdef int run(self, LabelPlane plane, View* view, Psi psi, double lam, Outcome* out,
                 char* work) except -1 nogil:
        cdef double low = 0, high = INFINITY, best = INFINITY, top = 0, K, H, g
        cdef int index
        cdef bint known
        lam = self._start(plane, view, psi, lam)
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


cdef class Bisecting(Scalar):
    """Algorithm 1 of Choi (2018): intervals for H, for g and for lam, until one is empty.

    Parameters
    ----------
    max_calls, tol : as of Scalar
    """

    def __init__(self, int max_calls=50, double tol=1e-9):
        super().__init__(max_calls, tol)
        self.name = "bisecting"

    cdef int run(self, LabelPlane plane, View* view, Psi psi, double lam, Outcome* out,
                 char* work) except -1 nogil:
        cdef double low = 0, high = INFINITY, H, g, other
        cdef double h_low = -INFINITY, h_high = INFINITY, g_low = -INFINITY, g_high = INFINITY
        cdef int index, at_low = -1, at_high = -1
        cdef bint known
        lam = self._start(plane, view, psi, lam)
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


cdef class SarawagiGupta(Scalar):
    """Golden section on ``F(lam) = max_y H + lam g - 2 sqrt(xi lam)`` (Sarawagi and Gupta 2008).

    ``xi`` is the best known value.  It starts from the labels of the last search, or from the label
    for the first lam, and rises as better labels are seen.  A label is better exactly if
    ``H - xi/g > 0``, and the smallest F is an upper bound of this.

    Parameters
    ----------
    max_calls, tol : as of Scalar
    """

    def __init__(self, int max_calls=50, double tol=1e-9):
        super().__init__(max_calls, tol)
        self.name, self.width = "sarawagi", 1e-2

    cdef int run(self, LabelPlane plane, View* view, Psi psi, double lam, Outcome* out,
                 char* work) except -1 nogil:
        # x < y lie within (low, high); a and b are the largest H + lam g there.
        cdef double ratio = 0.6180339887498949, xi = 0, low, high, x, y, a, b
        cdef int j
        for j in range(view.n):
            self._raise(view, j, &xi)
        x = self._start(plane, view, psi, lam)
        y = 4 * x
        low, high = 0, 4 * y
        a = self._ask(plane, view, psi, x, &xi)
        b = self._ask(plane, view, psi, y, &xi)
        # Bracket by factors of four.
        while view.calls < self.max_calls and y < 1e12 and _value(b, y, xi) < _value(a, x, xi):
            low, x, a = x, y, b
            y *= 4
            high = 4 * y
            b = self._ask(plane, view, psi, y, &xi)
        while view.calls < self.max_calls and x > 1e-12 and low == 0 and (
                _value(a, x, xi) <= _value(b, y, xi)):
            high, y, b = y, x, a
            x /= 4
            a = self._ask(plane, view, psi, x, &xi)
            if _value(a, x, xi) > _value(b, y, xi):
                low = x
                break
        high = min(high, 4 * y)
        x, y = high - ratio * (high - low), low + ratio * (high - low)
        a, b = self._ask(plane, view, psi, x, &xi), self._ask(plane, view, psi, y, &xi)
        while high - low > self.width * high and view.calls < self.max_calls:
            if _value(a, x, xi) <= _value(b, y, xi):
                high, y, b = y, x, a
                x = high - ratio * (high - low)
                a = self._ask(plane, view, psi, x, &xi)
            else:
                low, x, a = x, y, b
                y = low + ratio * (high - low)
                b = self._ask(plane, view, psi, y, &xi)
        out.lam = x
        return self.settle(view, psi, out)

    cdef void _raise(self, View* view, int j, double* xi) noexcept nogil:
        cdef double H = 1 + view.points[j].h
        if H > 0 and H * view.points[j].g > xi[0]:
            xi[0] = H * view.points[j].g

    cdef double _ask(self, LabelPlane plane, View* view, Psi psi, double lam,
                     double* xi) except? -1 nogil:
        cdef bint known
        cdef int index
        if view.calls >= self.max_calls:
            return INFINITY
        index = self.visit(plane, view, psi, lam, &known)
        self._raise(view, index, xi)
        return 1 + view.points[index].h + lam * view.points[index].g


cdef inline double _value(double top, double lam, double xi) noexcept nogil:
    return top - 2 * sqrt(xi * lam)
