"""Bi-criteria surrogates: H_i(w) = max_y psi(h(y), g(y)), by a search over the label plane."""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int8_t, int64_t, uint64_t
from libc.string cimport memcpy
from ..utils.alignment cimport align
from ..search.base cimport Found, Search
from ..search.envelope cimport grid_bound
from ..search.view cimport LABEL, LINES, Point, TRUTH, View, Visit
from ..search.plane cimport LabelPlane
from ..search.psi cimport Psi
from ._base cimport Cut, Surrogate

from ..utils.arrays import aligned_zeros

# Labels that an example remembers from its last search.
cdef enum:
    MEMORY = 16


cdef class BiCriteriaSurrogate(Surrogate):
    """Cuts from searches on the label plane.

    Parameters
    ----------
    plane : LabelPlane
    psi : Psi
    search : Search
    relaxed : bool
        The maximum over the hull of the points, which may be a mixture of two labels, instead of
        the maximum over labels.
    warm_start : bool
        Begin each search at the labels where the example's last one ended.
    max_kbest : int
        Labels asked for, at most, to find an integral maximum below the hull; 0 for none.
    """

    cdef readonly LabelPlane plane
    cdef readonly Psi psi
    cdef readonly Search search
    cdef readonly bint relaxed
    cdef bint warm
    cdef int max_kbest
    cdef Py_ssize_t n, search_bytes, kbest_labels
    cdef readonly object searches, calls
    cdef double[::1] unit
    cdef int64_t[::1] most
    cdef int64_t[::1] searches_view, calls_view
    # What each example remembers: how many labels, their losses, the labels, the last lam.
    cdef object held, held_labels, lams
    cdef int8_t[::1] held_view
    cdef double[::1] lam_view
    cdef int[::1] label_view
    cdef const int64_t[::1] offsets

    def __init__(self, LabelPlane plane, Psi psi, Search search, bint relaxed, label_offsets,
                 bint warm_start=True, int max_kbest=0):
        self.plane, self.psi, self.search, self.relaxed = plane, psi, search, relaxed
        self.warm, self.n = warm_start, label_offsets.shape[0] - 1
        self.affine, self.convex = psi.affine, psi.convex
        self.exact = plane.exact and search.counting
        self.max_kbest = 0
        if max_kbest > 1 and not relaxed and plane.oracle.has_kbest and (
                plane.decomposes and plane.exact and not plane.relaxed):
            self.max_kbest = max_kbest
        # Two points' parts, side by side.
        self.max_entries = 2 * plane.max_entries
        self.search_bytes = search.extra_bytes(plane)
        self.kbest_labels = 4 * self.max_kbest * plane.longest
        self.work_bytes = plane.work_bytes + self.search_bytes + 256
        if self.max_kbest:
            self.work_bytes += (self.kbest_labels + 8 * self.max_kbest
                                + plane.oracle.kbest_bytes(self.max_kbest) + 256)
        self.searches = np.zeros(self.n, dtype=np.int64)
        self.calls = np.zeros(self.n, dtype=np.int64)
        self.searches_view, self.calls_view = self.searches, self.calls
        self.offsets = label_offsets
        self.held = np.zeros(self.n, dtype=np.int8)
        self.lams = np.zeros(self.n)
        self.held_labels = np.zeros(MEMORY * int(label_offsets[self.n]) if warm_start else 0,
                                    dtype=np.int32)
        self.unit, self.most = np.zeros(0), np.zeros(0, dtype=np.int64)
        if not relaxed and not search.counting:
            self.unit, self.most = plane.units()
        self.held_view, self.lam_view = self.held, self.lams
        self.label_view = self.held_labels

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.structure.calls``."""
        if not 0 <= i < self.n:
            raise ValueError(f"example {i} of {self.n}: expected 0 to {self.n - 1}")
        return self.plane.potentials.theta_size(i), None, None

    def counts(self):
        """Searches made so far, and oracle calls spent on them."""
        return int(self.searches.sum()), int(self.calls.sum())

    def memory_of_examples(self):
        """Labels and lam of each example's last search, and the counts."""
        return {"held": self.held, "lams": self.lams, "labels": self.held_labels,
                "searches": self.searches, "calls": self.calls}

    def remember(self, arrays):
        """Take over what ``memory_of_examples`` returned."""
        mine = self.memory_of_examples()
        for name, array in mine.items():
            if name not in arrays or arrays[name].shape != array.shape or (
                    arrays[name].dtype != array.dtype):
                raise ValueError(f"the checkpoint's memory of searches lacks {name!r} or does not fit")
        oracle_limits = getattr(self.plane.oracle, "limits", None)
        labels, held = arrays["labels"], arrays["held"]
        states = oracle_limits(0)[2] if oracle_limits is not None and self.n else None
        if (held < 0).any() or (held > MEMORY).any() or (labels < 0).any() or (
                states is not None and labels.size and labels.max() >= states):
            raise ValueError("the checkpoint's memory of searches holds impossible labels")
        for name, array in mine.items():
            array[...] = arrays[name]

    def trace(self, Py_ssize_t i, theta):
        """Search one example at part scores ``theta``; what happened, as Python objects.

        The example's memory is used, and left as it was.

        Returns
        -------
        dict
            ``found`` (a dict: the maximiser over the hull as two points and the second's share,
            the best label, their values and bounds), ``points`` (dicts: h, g, label or None) and
            ``visits`` (dicts: lam, bound, h, g), in the order in which the oracle was asked.
        """
        size = self.limits(i)[0]
        flat = np.ascontiguousarray(theta, dtype=np.float64)
        if flat.shape != (size,):
            raise ValueError(f"theta: found shape {flat.shape}, expected ({size},)")
        if not np.isfinite(flat).all():
            raise ValueError("theta: found NaN or infinity, expected finite scores")
        cdef double[::1] scores = flat if size else np.zeros(1)
        cdef double[::1] memory = aligned_zeros(self.work_bytes // 8 + 16)
        cdef View* view
        cdef Found found
        cdef Py_ssize_t j, k, length = self.plane.label_size(i)
        cdef int* label
        with nogil:
            view = self._search(i, &scores[0], &found, <char*>&memory[0])
        points = []
        for j in range(view.n):
            encoded = None
            if view.points[j].kind == LABEL:
                label = self.plane.label_of(view, view.points[j].slot)
                encoded = np.array([label[k] for k in range(length)], dtype=np.int32)
            elif view.points[j].kind == TRUTH:
                encoded = np.array([self.plane.labels[self.offsets[i] + k] for k in range(length)],
                                   dtype=np.int32)
            points.append({"h": view.points[j].h, "g": view.points[j].g, "label": encoded})
        visits = [{"lam": view.visits[j].lam, "bound": view.visits[j].bound,
                   "h": view.visits[j].h, "g": view.visits[j].g} for j in range(view.n_visits)]
        return {"found": found, "points": points, "visits": visits, "calls": view.calls}

    cdef View* _search(self, Py_ssize_t i, const double* theta, Found* found,
                       char* work) except NULL nogil:
        cdef View* view = self.plane.begin(i, theta, work)
        cdef char* rest = align(work + self.plane.work_bytes)
        cdef double lam = 0
        cdef int j
        if self.unit.shape[0]:
            view.unit = self.unit[i]
            view.least, view.most = 0, self.most[i]
            if self.plane.sign < 0:
                view.least, view.most = -self.most[i], 0
        if self.warm:
            self._recall(view)
            if self.lam_view[i] > 0:
                lam = self.lam_view[i]
        self.search.run(self.plane, view, self.psi, lam, found, rest)
        if self.plane.zero_one:
            # Once the oracle has shown the best label other than the truth there is no better one.
            for j in range(view.n_visits):
                if view.visits[j].g > 0:
                    found.label_bound = found.label_value
        if self.max_kbest and found.label_bound > found.label_value * (1 + self.search.tol):
            self._refine(view, found, align(rest + self.search_bytes))
        return view

    cdef int cut(self, Py_ssize_t i, const double* theta, Cut* cut, char* work) except -1 nogil:
        cdef Found found
        cdef View* view = self._search(i, theta, &found, work)
        if self.relaxed:
            self._write(view, found.first, found.second, found.share, cut)
            cut.bound = found.bound
        else:
            self._write(view, found.label, found.label, 0, cut)
            cut.bound = found.label_bound
        cut.calls = view.calls
        self.searches_view[i] += 1
        self.calls_view[i] += view.calls
        if self.warm:
            self._keep(view, &found)
        return 0

    cdef int _recall(self, View* view) except -1 nogil:
        """The labels of the last search are points from the start."""
        cdef Py_ssize_t size = self.plane.label_size(view.i)
        cdef int j
        cdef Point point
        for j in range(self.held_view[view.i]):
            memcpy(self.plane.label_of(view, view.n),
                   &self.label_view[MEMORY * self.offsets[view.i]] + j * size, size * sizeof(int))
            self.plane.place(view, view.n, &point)
            if point.kind == LABEL:
                view.points[view.n] = point
                view.n += 1
        return 0

    cdef int _keep(self, View* view, const Found* found) except -1 nogil:
        """Remember the maximiser's labels, and the best label."""
        cdef Py_ssize_t size = self.plane.label_size(view.i)
        cdef int[MEMORY] kept
        cdef int j, k, n = 0, wanted
        cdef const Point* point
        # The maximiser and the best label, then what was seen last.
        for j in range(3 + view.n):
            wanted = (found.first if j == 0 else found.second if j == 1 else found.label if j == 2
                      else view.n + 2 - j)
            point = &view.points[wanted]
            if point.kind != LABEL:
                continue
            for k in range(n):
                if kept[k] == wanted:
                    break
            else:
                memcpy(&self.label_view[MEMORY * self.offsets[view.i]] + n * size,
                       self.plane.label_of(view, point.slot), size * sizeof(int))
                kept[n] = wanted
                n += 1
                if n == MEMORY:
                    break
        self.held_view[view.i] = <int8_t>n
        self.lam_view[view.i] = found.lam if found.lam < INFINITY else 0
        return 0

    cdef int _refine(self, View* view, Found* found, char* work) except -1 nogil:
        """Ask for more and more of the best labels at the last lam, until none can be better."""
        cdef int* labels = <int*>work
        cdef double* values = <double*>align(work + self.kbest_labels)
        cdef char* scratch = align((values + self.max_kbest))
        cdef Py_ssize_t size = self.plane.label_size(view.i), count, k
        cdef Py_ssize_t wanted = 4
        cdef double lam = found.lam, line = INFINITY, value, bound
        cdef Point point
        cdef Visit* visit
        cdef bint known
        cdef int index
        while True:
            wanted = min(wanted, self.max_kbest)
            count = self.plane.ask_kbest(view, lam, wanted, labels, values, scratch)
            line = INFINITY
            for k in range(count):
                memcpy(self.plane.label_of(view, view.n), labels + k * size, size * sizeof(int))
                self.plane.place(view, view.n, &point)
                line = min(line, point.h + lam * point.g)
                value = self.psi.value(point.h, point.g)
                if value > found.label_value:
                    index = self.search.keep(self.plane, view, self.psi, &point, &known)
                    found.label, found.label_value = index, value
            if count < wanted:
                found.label_bound = found.label_value       # there are no more labels
                return 0
            # Labels not listed lie below this line as well.
            if view.n_visits == LINES:
                return 0
            visit = &view.visits[view.n_visits]
            visit.lam, visit.bound, visit.h, visit.g, visit.above = lam, line, line, 0, 0
            view.n_visits += 1
            bound = grid_bound(view, self.psi)
            view.n_visits -= 1
            found.label_bound = max(found.label_value, min(found.label_bound, bound))
            if found.label_bound <= found.label_value * (1 + self.search.tol) or (
                    wanted == self.max_kbest):
                return 0
            wanted *= 2

    cdef int _write(self, View* view, int first, int second, double share,
                    Cut* cut) except -1 nogil:
        """The tangent of psi at a point, or at a mixture of two, as a cut."""
        cdef const Point* a = &view.points[first]
        cdef const Point* b = &view.points[second]
        cdef double h = (1 - share) * a.h + share * b.h, g = (1 - share) * a.g + share * b.g
        cdef double shift = (1 - share) * a.shift + share * b.shift, dh = 0, dg = 0
        cdef uint64_t bits
        self.psi.partials(h, g, &dh, &dg)
        if self.psi.affine:
            cut.b = self.psi.value(shift, g)
        else:
            cut.b = self.psi.value(h, g) - dh * (h - shift)
        cut.nnz = self.plane.entries(view, a, dh * (1 - share), 0, cut.index, cut.value)
        if first != second:
            cut.nnz = self.plane.entries(view, b, dh * share, cut.nnz, cut.index, cut.value)
        cut.key = a.key
        if first != second:
            memcpy(&bits, &share, 8)
            cut.key = ((a.key * 1099511628211ULL ^ b.key) * 1099511628211ULL) ^ bits
        elif not self.psi.affine:
            # One label has a different tangent for every w.
            memcpy(&bits, &h, 8)
            cut.key = (a.key * 1099511628211ULL) ^ bits
        if a.kind == TRUTH and first == second:
            cut.nnz = 0
        return 0
