# build: glue
# cython: auto_pickle=True
"""The base of the searches: the points seen so far, the best of them, and the bound."""

from libc.math cimport INFINITY
from .envelope cimport envelope_bound, grid_bound
from .view cimport FRACTIONAL, LINES, Point, SLOTS, View
from .plane cimport LabelPlane
from .psi cimport Psi


cdef int best_label(const View* view, Psi psi, double* value) except -1 nogil:
    # The best of the points that are labels; value <- psi there.
    cdef double candidate
    cdef int j, best = 0        # the truth
    value[0] = psi.value(view.points[0].h, view.points[0].g)
    for j in range(1, view.n):
        if view.points[j].kind != FRACTIONAL:
            candidate = psi.value(view.points[j].h, view.points[j].g)
            if candidate > value[0]:
                best, value[0] = j, candidate
    return best


cdef class Search:
    """Finds the largest ``psi(h, g)`` over the labels of one example in few oracle calls.

    Parameters
    ----------
    max_calls : int, default=50
        Maximum number of oracle calls per search; the bound of a search that stops there includes
        what it may have missed.
    tol : float, default=1e-9
        Relative accuracy: stop when no label can be better by more.

    Attributes
    ----------
    name : str
    fractional : bool
        It finds the maximiser over the hull of the points.
    product_only : bool
        It only takes ``psi = (h + 1) g``.
    constrained : bool
        It needs an oracle that answers within a cone.
    counting : bool
        It needs an oracle that answers for each count.

    Raises
    ------
    ValueError
        If a setting is out of range.
    """

    def __init__(self, int max_calls=50, double tol=1e-9):
        if not 1 <= max_calls < LINES:
            raise ValueError(f"max_calls is {max_calls}, expected 1 to {LINES - 1}")
        if not 0 <= tol < 1:
            raise ValueError(f"tol is {tol}, expected a number from 0 to 1")
        self.max_calls, self.tol = max_calls, tol

    cpdef Py_ssize_t extra_bytes(self, LabelPlane plane, object labels=None) except -1:
        """Return the bytes of scratch memory that a run needs besides the plane's.

        Parameters
        ----------
        plane : LabelPlane
        labels : ndarray of int32, optional
            The true labels of all examples, concatenated.  Searches that count need them.

        Returns
        -------
        int
        """
        return 0

    cdef int run(self, LabelPlane plane, View* view, Psi psi, double lam, Outcome* out,
                 char* work) except -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__qualname__} does not implement run()")

    cdef void _slot0(self) noexcept nogil: pass
    cdef void _slot1(self) noexcept nogil: pass
    cdef void _slot2(self) noexcept nogil: pass
    cdef void _slot3(self) noexcept nogil: pass

    cdef int visit(self, LabelPlane plane, View* view, Psi psi, double lam,
                   bint* known) except -1 nogil:
        # Call the oracle; return the index of its answer among the points, which may be new.
        cdef Point answer
        # Point j lies in slot j (the truth needs none); slot SLOTS is for the newest.
        plane.ask(view, lam, view.n, &answer)
        return self.keep(plane, view, psi, &answer, known)

    cdef int keep(self, LabelPlane plane, View* view, Psi psi, Point* answer,
                  bint* known) except -1 nogil:
        # Add an answer to the points; if they are full, drop the point of least psi.
        cdef Point* points = view.points
        cdef int j, worst = 1
        cdef double least = INFINITY, value
        for j in range(view.n):
            if points[j].key == answer.key and points[j].kind == answer.kind:
                known[0] = True
                return j
        known[0] = False
        if view.n < SLOTS:
            view.n += 1
            points[view.n - 1] = answer[0]
            return view.n - 1
        for j in range(1, SLOTS):
            value = psi.value(points[j].h, points[j].g)
            if value < least:
                least, worst = value, j
        plane.move(view, answer, worst)
        points[worst] = answer[0]
        return worst

    cdef int finish(self, View* view, Psi psi, Outcome* out) except -1 nogil:
        # Best label among the points, and the bound that the visited lines leave.
        return self.close(view, psi, out, envelope_bound(view, psi))

    cdef int close(self, View* view, Psi psi, Outcome* out, double bound) except -1 nogil:
        # Best label among the points, and a given bound.
        out.label = best_label(view, psi, &out.label_value)
        out.bound = bound
        if out.bound < out.value:
            out.bound = out.value
        out.label_bound = out.bound
        if view.unit > 0:
            out.label_bound = max(out.label_value, min(out.bound, grid_bound(view, psi)))
        return 0

    cdef int settle(self, View* view, Psi psi, Outcome* out) except -1 nogil:
        # finish() for a search without mixtures: the maximiser is the best point.
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
