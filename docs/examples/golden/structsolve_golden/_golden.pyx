# cython: language_level=3, cdivision=True
"""Golden sections over log lam: slack rescaling with the oracle of margin rescaling."""

from libc.math cimport exp, log
from structsolve.search.base cimport Outcome, Search
from structsolve.search.plane cimport LabelPlane
from structsolve.search.psi cimport Psi
from structsolve.search.view cimport View

cdef double RATIO = 0.6180339887498949


cdef class GoldenSection(Search):
    """Minimises the convex ``max_y (H + lam g)^2 / (4 lam)``, which lies above every ``H g``."""

    def __init__(self, int max_calls=50, double tol=1e-9):
        super().__init__(max_calls, tol)
        self.name, self.product_only = "golden", True  # psi = (h + 1) g, no other

    cdef int run(self, LabelPlane plane, View* view, Psi psi, double lam, Outcome* out,
                 char* work) except -1 nogil:
        # Log lam lies within (low, high); begin around where the last search ended.
        cdef double middle = log(lam) if lam > 0 else 0
        cdef double low = middle - 8, high = middle + 8, a = 0, b = 0
        cdef double x = high - RATIO * (high - low), y = low + RATIO * (high - low)
        a = self.above(plane, view, psi, x)
        if view.calls < self.max_calls:
            b = self.above(plane, view, psi, y)
        while view.calls < self.max_calls and high - low > 1e-2:
            if a <= b:
                high, y, b = y, x, a
                x = high - RATIO * (high - low)
                a = self.above(plane, view, psi, x)
            else:
                low, x, a = x, y, b
                y = low + RATIO * (high - low)
                b = self.above(plane, view, psi, y)
        out.lam = exp(x)
        # The best label seen, and a bound from every line h + lam g <= bound seen.
        return self.settle(view, psi, out)

    cdef double above(self, LabelPlane plane, View* view, Psi psi, double s) except? -1 nogil:
        cdef bint known
        cdef double lam = exp(s), top
        cdef int j = self.visit(plane, view, psi, lam, &known)  # one oracle call
        top = 1 + view.points[j].h + lam * view.points[j].g
        return top * top / (4 * lam) if top > 0 else 0
