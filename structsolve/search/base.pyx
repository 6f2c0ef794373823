# build: glue
# cython: auto_pickle=True
"""What the searches share: a list of points seen, the best of them, and the bound that is left."""

from libc.math cimport INFINITY
from .envelope cimport envelope_bound, grid_bound
from .view cimport FRACTIONAL, LINES, Point, SLOTS, View
from .plane cimport LabelPlane
from .psi cimport Psi


cdef int best_label(const View* view, Psi psi, double* value) except -1 nogil:
    """The best of the points that are labels, and psi there."""
    cdef double found
    cdef int j, best = 0        # the truth
    value[0] = psi.value(view.points[0].h, view.points[0].g)
    for j in range(1, view.n):
        if view.points[j].kind != FRACTIONAL:
            found = psi.value(view.points[j].h, view.points[j].g)
            if found > value[0]:
                best, value[0] = j, found
    return best


cdef class Search:
    """Finds the largest ``psi(h, g)`` over the labels of one example with few oracle calls.

    Parameters
    ----------
    max_calls : int, default=50
        Oracle calls per search; a search that ends there says what it may have missed.
    tol : float, default=1e-9
        Relative accuracy: stop when no label can be better by more.
    """

    def __init__(self, int max_calls=50, double tol=1e-9):
        if not 1 <= max_calls < LINES:
            raise ValueError(f"max_calls is {max_calls}, expected 1 to {LINES - 1}")
        if not 0 <= tol < 1:
            raise ValueError(f"tol is {tol}, expected a number from 0 to 1")
        self.max_calls, self.tol = max_calls, tol

    cpdef Py_ssize_t extra_bytes(self, LabelPlane plane, object labels=None) except -1:
        """Scratch memory that a run needs beside the plane's.

        ``labels`` are the true labels that it will be asked for, one after the other, where they
        are known: what a search that counts needs depends on them.
        """
        return 0

    cdef int run(self, LabelPlane plane, View* view, Psi psi, double lam, Found* out,
                 char* work) except -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__qualname__} does not implement run()")

    cdef int visit(self, LabelPlane plane, View* view, Psi psi, double lam,
                   bint* known) except -1 nogil:
        """Ask the oracle; return which of the points its answer is, a new one where not known."""
        cdef Point found
        # Point j lies in slot j (the truth needs none); slot SLOTS is for the newest.
        plane.ask(view, lam, view.n, &found)
        return self.keep(plane, view, psi, &found, known)

    cdef int keep(self, LabelPlane plane, View* view, Psi psi, Point* found,
                  bint* known) except -1 nogil:
        """Put an answer among the points; where they are full that of least psi makes room."""
        cdef Point* points = view.points
        cdef int j, worst = 1
        cdef double least = INFINITY, value
        for j in range(view.n):
            if points[j].key == found.key and points[j].kind == found.kind:
                known[0] = True
                return j
        known[0] = False
        if view.n < SLOTS:
            view.n += 1
            points[view.n - 1] = found[0]
            return view.n - 1
        for j in range(1, SLOTS):
            value = psi.value(points[j].h, points[j].g)
            if value < least:
                least, worst = value, j
        plane.move(view, found, worst)
        points[worst] = found[0]
        return worst

    cdef int finish(self, View* view, Psi psi, Found* out) except -1 nogil:
        """Best label among the points, and the bound that the visited lines leave."""
        return self.close(view, psi, out, envelope_bound(view, psi))

    cdef int close(self, View* view, Psi psi, Found* out, double bound) except -1 nogil:
        """Best label among the points, and a bound that is known."""
        out.label = best_label(view, psi, &out.label_value)
        out.bound = bound
        if out.bound < out.value:
            out.bound = out.value
        out.label_bound = out.bound
        if view.unit > 0:
            out.label_bound = max(out.label_value, min(out.bound, grid_bound(view, psi)))
        return 0

    cdef int settle(self, View* view, Psi psi, Found* out) except -1 nogil:
        """finish(), for a search that knows no mixtures: the maximiser is the best point."""
        cdef double value
        cdef int j
        out.value = -INFINITY
        out.share = 0
        for j in range(view.n):
            value = psi.value(view.points[j].h, view.points[j].g)
            if value > out.value:
                out.first = out.second = j
                out.value = value
        return self.finish(view, psi, out)
