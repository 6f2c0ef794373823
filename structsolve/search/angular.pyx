# cython: auto_pickle=True
"""Angular search: exact slack rescaling over labels, with an oracle that answers within a cone."""

from libc.math cimport INFINITY, isfinite, sqrt
from .base cimport Outcome, Search
from .hull cimport best_on_hull, first_lam, tangent, upper_hull
from .view cimport FRACTIONAL, LABEL, Point, SLOTS, View
from .plane cimport LabelPlane
from .psi cimport Psi

# Slope, in units of 1/lam, beyond which a label's product is negligible.
cdef double SLIVER = 1e9


cdef class Angular(Search):
    """Searches the one angle in which a better label may lie, until it is empty.

    With H = 1 + h, every answer of the oracle is a line: no label of its cone lies above
    ``H + lam g = K``.  On a line, H g exceeds a given value within one angle only, around slope
    ``1/lam``.  The labels that may be better than the best one so far lie in the intersection of
    these angles over all lines; this is the next cone.  lam is chosen as in the convex hull search:
    the search first walks to the best point of the hull, then finds what lies below its edge.

    Algorithm 2 of Choi (2018) splits the quadrant in the middle of each line instead, and keeps a
    queue of angles by their bounds ``K^2 / (4 lam)``.  One angle is enough, because the lower
    envelope of the lines is concave and H g quasi-concave; it takes less than half of the oracle
    calls (`benchmarks/searches.py`).

    Parameters
    ----------
    max_calls : int, default=50
    tol : float, default=1e-6
        Relative accuracy: stop when no label in the angle can be better by more.
    """

    def __init__(self, int max_calls=50, double tol=1e-6):
        super().__init__(max_calls, tol)
        self.name, self.product_only, self.constrained = "angular", True, True

    cdef int run(self, LabelPlane plane, View* view, Psi psi, double lam, Outcome* out,
                 char* work) except -1 nogil:
        cdef int[SLOTS] hull
        cdef Point answer
        cdef int n, position, j, index, kind
        cdef double alpha = INFINITY, beta = 0, best = 0, H, width = INFINITY, bound = INFINITY
        cdef bint known, old
        for j in range(view.n):
            H = 1 + view.points[j].h
            if H > 0 and view.points[j].kind != FRACTIONAL:
                best = max(best, H * view.points[j].g)
        while view.calls < self.max_calls:
            n = upper_hull(view, hull)
            position = best_on_hull(view, psi, hull, n, out)
            lam = tangent(view, psi, hull, n, position, out)
            if not isfinite(lam) or lam <= 0:
                lam = first_lam(plane, view, psi)
            out.lam = lam
            if view.calls == 0:
                # The angle is the whole quadrant: the plain oracle suffices and is faster.
                index, kind = self.visit(plane, view, psi, lam, &known), LABEL
            else:
                kind = plane.ask_in_cone(view, lam, alpha, beta, view.n, &answer)
                if kind == 0:
                    bound = best            # the angle is empty
                    break
                index = self.keep(plane, view, psi, &answer, &known)
            if kind == FRACTIONAL and not known and view.calls < self.max_calls:
                # No label yet: the plain oracle rounds its answer to one.
                position = self.visit(plane, view, psi, lam, &old)
                if view.points[position].h > -1 and view.points[position].kind != FRACTIONAL:
                    best = max(best, (1 + view.points[position].h) * view.points[position].g)
            H = 1 + view.points[index].h
            if H <= 0 and alpha == INFINITY and view.calls > 1:
                # A useless label on the border hides those inside: exclude the border.
                alpha = SLIVER / lam
                continue
            if H > 0 and kind != FRACTIONAL:
                best = max(best, H * view.points[index].g)
            bound = self._narrow(view, best * (1 + self.tol), &alpha, &beta)
            if bound <= best * (1 + self.tol):
                break
            # An oracle with closed sides, or with fractional answers, may repeat an answer.
            if known and view.calls > 1 and alpha - beta >= width * (1 - 1e-9):
                break
            width = alpha - beta
        if bound > best * (1 + self.tol):
            self._follow_hull(plane, view, psi)
        self.settle(view, psi, out)
        # Lines of constrained answers hold only within their cones: use the angle's bound.
        out.value, out.first, out.second = out.label_value, out.label, out.label
        out.share = 0
        out.bound = out.label_bound = max(bound, out.label_value)
        return 0

    cdef int _follow_hull(self, LabelPlane plane, View* view, Psi psi) except -1 nogil:
        # Convex hull search from the labels seen, for cones with fractional answers.
        cdef int[SLOTS] hull
        cdef Outcome best
        cdef bint known = False
        cdef double lam
        cdef int n, position, j
        for j in range(view.n):
            if view.points[j].kind == FRACTIONAL:
                # Below the truth, so not on the hull.
                view.points[j].h, view.points[j].g = -1e300, view.points[0].g
        while not known and view.calls < self.max_calls:
            n = upper_hull(view, hull)
            position = best_on_hull(view, psi, hull, n, &best)
            lam = tangent(view, psi, hull, n, position, &best)
            if not isfinite(lam):
                return 0
            self.visit(plane, view, psi, lam, &known)
        return 0

    cdef double _narrow(self, const View* view, double best, double* alpha,
                        double* beta) noexcept nogil:
        # Shrink the angle to the part where every line allows more than `best`.  Returns an upper
        # bound of H g within it, or `best` if it is empty.
        cdef double K, lam, half, root, slope, bound = INFINITY
        cdef Py_ssize_t j
        for j in range(view.n_visits):
            K, lam = 1 + view.visits[j].bound, view.visits[j].lam
            if K <= 0:
                return best
            if best > 0:
                # slope K^2 > best (1 + lam slope)^2 between the roots of a quadratic.
                half = K * K - 2 * best * lam
                root = half * half - 4 * best * best * lam * lam
                if half <= 0 or root <= 0:
                    return best
                root = sqrt(root)
                alpha[0] = min(alpha[0], (half + root) / (2 * best * lam * lam))
                beta[0] = max(beta[0], 2 * best / (half + root))
        if alpha[0] <= beta[0]:
            return best
        for j in range(view.n_visits):
            K, lam = 1 + view.visits[j].bound, view.visits[j].lam
            slope = min(max(1 / lam, beta[0]), alpha[0])
            bound = min(bound, K * K / (lam + 1 / slope) * (1 / (1 + lam * slope)))
        return bound
