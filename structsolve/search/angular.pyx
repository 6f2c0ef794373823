"""Angular search: exact slack rescaling over labels, with an oracle that answers within a cone."""

from libc.math cimport INFINITY, sqrt
from .base cimport Found, Search
from .plane cimport FRACTIONAL, SLOTS, LabelPlane, Point, View
from .psi cimport Psi

cdef struct Angle:
    double alpha, beta, lam     # beta H < g <= alpha H, and where to ask in it
    bint twin                   # beta H <= g < alpha H
    double bound                # of H g within


# Slope, in units of 1/lam, beyond which a label's product is next to nothing.
cdef double SLIVER = 1e9


cdef void _push(Angle* heap, int* n, Angle item) noexcept nogil:
    cdef int j = n[0], up
    n[0] += 1
    while j:
        up = (j - 1) // 2
        if heap[up].bound >= item.bound:
            break
        heap[j] = heap[up]
        j = up
    heap[j] = item


cdef Angle _pop(Angle* heap, int* n) noexcept nogil:
    cdef Angle first = heap[0], item
    cdef int j = 0, down = 1
    n[0] -= 1
    item = heap[n[0]]
    while down < n[0]:
        if down + 1 < n[0] and heap[down + 1].bound > heap[down].bound:
            down += 1
        if item.bound >= heap[down].bound:
            break
        heap[j] = heap[down]
        j = down
        down = 2 * j + 1
    heap[j] = item
    return first


cdef class Angular(Search):
    """Algorithm 2 of the thesis: splits the quadrant of H = 1 + h and g into angles.

    An angle whose bound ``K^2 / (4 lam)`` is no better than ``1 + tol`` times the best label is
    dropped; when none is left the best label is the maximum.

    Parameters
    ----------
    max_calls : int, default=50
    tol : float, default=1e-6
        Without a tolerance the search need not end in floating point.
    """

    def __init__(self, int max_calls=50, double tol=1e-6):
        super().__init__(max_calls, tol)
        self.name, self.product_only, self.constrained = "angular", True, True

    cpdef Py_ssize_t extra_bytes(self, LabelPlane plane) except -1:
        """The queue of angles."""
        return (2 * self.max_calls + 4) * sizeof(Angle) + 64

    cdef int run(self, LabelPlane plane, View* view, Psi psi, double lam, Found* out,
                 char* work) except -1 nogil:
        cdef Angle* heap = <Angle*>(work + (64 - (<size_t>work) % 64) % 64)
        cdef Angle angle, part
        cdef Point found
        cdef int n = 0, index, kind, j
        cdef double best = 0, H, g, K, top, bottom, left = 0, value
        cdef bint known
        for j in range(view.n):
            H = 1 + view.points[j].h
            if H > 0 and view.points[j].kind != FRACTIONAL:
                best = max(best, H * view.points[j].g)
        angle.alpha, angle.beta, angle.twin, angle.bound = INFINITY, 0, False, INFINITY
        angle.lam = lam if 0 < lam < INFINITY else 1
        _push(heap, &n, angle)
        while n and view.calls < self.max_calls:
            angle = _pop(heap, &n)
            if angle.bound <= best * (1 + self.tol) or angle.bound <= 0:
                left = max(left, angle.bound)
                break
            kind = plane.ask_constrained(view, angle.lam, angle.alpha, angle.beta, angle.twin,
                                         view.n if view.n < SLOTS else SLOTS, &found)
            out.lam = angle.lam
            if kind == 0:
                continue
            index = self.keep(plane, view, psi, &found, &known)
            H, g = 1 + view.points[index].h, view.points[index].g
            K = 1 + view.visits[view.n_visits - 1].bound
            if kind != FRACTIONAL and H > 0:
                best = max(best, H * g)
            value = min(K * K / (4 * angle.lam), angle.bound) if K > 0 else 0
            if H <= 0:
                # A label on the border, of no worth, hides those within: ask again without the
                # sliver along it.
                if value > 0 and angle.alpha == INFINITY:
                    left = max(left, K * K / (SLIVER * angle.lam))
                    angle.alpha, angle.bound = SLIVER / angle.lam, value
                    _push(heap, &n, angle)
                else:
                    left = max(left, value)
                continue
            top, bottom = g / H, H / (angle.lam * angle.lam * g) if g > 0 else INFINITY
            if top < bottom:
                top, bottom = bottom, top
            # The point lies on one of the two outer sides and is left out by it.
            part.bound = value
            part.alpha, part.beta, part.twin = min(top, angle.alpha), 1 / angle.lam, True
            self._inside(view, &part, angle.lam)
            if part.alpha > part.beta:
                _push(heap, &n, part)
            part.bound = value
            part.alpha, part.beta, part.twin = 1 / angle.lam, max(bottom, angle.beta), False
            self._inside(view, &part, angle.lam)
            if part.alpha > part.beta:
                _push(heap, &n, part)
        for j in range(n):
            left = max(left, heap[j].bound)
        self.settle(view, psi, out)
        # Lines of constrained answers hold within their cones only: the queue has the bound.
        out.bound = out.label_bound = max(left, out.label_value)
        out.value, out.first, out.second = out.label_value, out.label, out.label
        return 0

    cdef void _inside(self, const View* view, Angle* angle, double lam) noexcept nogil:
        """Where to ask within an angle."""
        if angle.beta > 0 and angle.alpha < INFINITY:
            angle.lam = 1 / sqrt(angle.alpha * angle.beta)
        else:
            angle.lam = lam
