# build: glue
"""Bi-criteria surrogates: H_i(w) = max_y psi(h(y), g(y)), by a search over the label plane."""

import numpy as np

from libc.math cimport INFINITY, NAN, isnan
from libc.stdint cimport int8_t, int64_t, uint64_t
from libc.string cimport memcpy
from ..utils.alignment cimport align
from ..part_layout cimport PartLayout
from ..structure.label_key cimport label_key
from ..search.base cimport Outcome, Search
from ..search.envelope cimport grid_bound
from ..search.view cimport FRACTIONAL, LABEL, LINES, Point, TRUTH, View, Visit
from ..search.plane cimport LabelPlane
from ..search.psi cimport Psi
from .base cimport Cut, Surrogate

from ..structure.call_arguments import label_of, scores_of
from ..structure.calls import check_label
from ..utils.arrays import aligned_zeros, check_finite

# Number of labels kept for an example from its last search.
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
        Maximise over the hull of the points, where a mixture of two labels may be best, instead
        of over labels.
    warm_start : bool
        Start each search from the labels at which the example's last search ended.
    max_kbest : int
        Maximum number of labels to list by k-best, to find an integral maximum below the hull;
        0 for none.
    labels : ndarray of int32, optional
        True labels of all examples, concatenated: searches that count need them.
    closer : Search, optional
        Finds the best label if ``search`` does not.
    """

    cdef readonly LabelPlane plane
    cdef readonly Psi psi
    cdef readonly Search search, closer
    cdef readonly bint relaxed
    cdef bint warm, on_grid
    cdef int max_kbest
    cdef Py_ssize_t search_bytes, kbest_labels
    cdef readonly object searches, calls
    # For every example: the unit of its losses and the largest multiple (-1: not known yet), and
    # the key of the truth that they belong to.
    cdef double[::1] unit
    cdef int64_t[::1] most
    cdef uint64_t[::1] unit_truth
    cdef int64_t[::1] searches_view, calls_view
    # Memory of each example: number of labels, their losses, the labels, the last lam, which
    # is -1 if the closer was needed.
    cdef object held, held_labels, lams
    cdef int8_t[::1] held_view
    cdef double[::1] lam_view
    cdef int[::1] label_view

    def __init__(self, LabelPlane plane not None, Psi psi not None, Search search not None,
                 bint relaxed, bint warm_start=True, int max_kbest=0, labels=None,
                 Search closer=None):
        cdef PartLayout layout = plane.layout
        cdef Py_ssize_t n = layout.n
        super().__init__(layout)
        self.plane, self.psi, self.search, self.relaxed = plane, psi, search, relaxed
        self.n_states = plane.oracle.n_states
        self.warm = warm_start
        self.affine, self.convex = psi.affine, psi.convex
        self.exact = plane.exact and search.counting
        self.max_kbest = 0
        if max_kbest > 1 and not relaxed and plane.kbest is not None and (
                plane.decomposes and plane.exact and not plane.relaxed):
            self.max_kbest = max_kbest
        # The parts of two points, side by side.
        self.max_entries = 2 * plane.max_entries
        self.closer = closer
        self.search_bytes = search.extra_bytes(plane, labels)
        if closer is not None:
            self.search_bytes = max(self.search_bytes, closer.extra_bytes(plane, labels))
        self.kbest_labels = 4 * self.max_kbest * layout.max_label
        self.work_bytes = plane.work_bytes + self.search_bytes + 256
        if self.max_kbest:
            self.work_bytes += (self.kbest_labels + 8 * self.max_kbest
                                + plane.kbest.bytes_for(self.max_kbest) + 256)
        self.searches, self.calls = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        self.searches_view, self.calls_view = self.searches, self.calls
        self.held, self.lams = np.zeros(n, dtype=np.int8), np.zeros(n)
        self.held_labels = np.zeros(MEMORY * layout.label_offsets[n] if warm_start else 0,
                                    dtype=np.int32)
        self.on_grid = not relaxed and not search.counting
        self.unit = np.zeros(n if self.on_grid else 0)
        self.most = np.full(n if self.on_grid else 0, -1, dtype=np.int64)
        self.unit_truth = np.zeros(n if self.on_grid else 0, dtype=np.uint64)
        self.held_view, self.lam_view = self.held, self.lams
        self.label_view = self.held_labels

    def counts(self):
        """Return the numbers of searches and of their oracle calls so far."""
        return int(self.searches.sum()), int(self.calls.sum())

    def allow(self, double gap):
        """Pass the gap to the relaxation, if one call of it is a search; see the base."""
        if self.plane.relaxation is not None and self.search.max_calls == 1:
            self.plane.relaxation.allow(gap)

    def shortfalls(self):
        """Return the excess of known labels' scores over the oracle's bounds; see the base."""
        return self.plane.shortfalls

    def memory_of_examples(self):
        """Return labels and lam of each example's last search, and the counts, as arrays by name."""
        return {"held": self.held, "lams": self.lams, "labels": self.held_labels,
                "searches": self.searches, "calls": self.calls}

    def remember(self, arrays):
        """Restore the result of ``memory_of_examples``; see :meth:`Surrogate.remember`.

        Raises
        ------
        ValueError
            If an array is missing or does not fit these examples.
        """
        mine = self.memory_of_examples()
        for name, array in mine.items():
            if name not in arrays or arrays[name].shape != array.shape or (
                    arrays[name].dtype != array.dtype):
                raise ValueError(
                    f"the checkpoint's memory of searches lacks {name!r} or does not fit"
                )
        labels, held, states = arrays["labels"], arrays["held"], self.n_states
        if (held < 0).any() or (held > MEMORY).any() or (labels < 0).any() or (
                states and labels.size and labels.max() >= states):
            raise ValueError("the checkpoint's memory of searches holds impossible labels")
        check_finite({"lams": arrays["lams"]})
        kept = np.asarray(labels)
        for i in range(self.layout.n if kept.size else 0):
            size = self.layout.sizes(i)[1]
            first = MEMORY * self.layout.label_offsets[i]
            for j in range(held[i]):
                check_label(self.plane.parts, i, kept[first + j * size:first + (j + 1) * size])
        for name, array in mine.items():
            array[...] = arrays[name]

    def trace(self, Py_ssize_t i, theta, truth):
        """Search one example, and return every step as Python objects.

        The example's memory is used, but not changed.

        Parameters
        ----------
        i : int
        theta : ndarray of float64
            Part scores, flat.
        truth : ndarray of int32
            The true label, encoded.

        Returns
        -------
        dict
            ``outcome`` (a dict: the maximiser over the hull as two points and the second's share,
            the best label, their values and bounds), ``points`` (dicts: h, g, label or None),
            ``visits`` (dicts: lam, bound, h, g) in the order of the oracle calls, and the number of
            ``calls``.

        Raises
        ------
        ValueError
            If an argument does not fit the example, or theta is not finite.
        """
        cdef const double[::1] scores = scores_of(self, i, theta)
        cdef const int[::1] given = label_of(self, i, truth, "truth")
        if not np.isfinite(theta).all():
            raise ValueError("theta: found NaN or infinity, expected finite scores")
        cdef double[::1] memory = aligned_zeros(self.work_bytes // 8 + 16)
        cdef View* view
        cdef Outcome best
        cdef Py_ssize_t j, k, length = self.layout.label_size(i)
        cdef const int* label
        with nogil:
            view = self._search(i, &scores[0], &given[0], &best, <char*>&memory[0])
        points = []
        for j in range(view.n):
            encoded = None
            if view.points[j].kind == LABEL or view.points[j].kind == TRUTH:
                label = view.truth
                if view.points[j].kind == LABEL:
                    label = self.plane.label_of(view, view.points[j].slot)
                encoded = np.array([label[k] for k in range(length)], dtype=np.int32)
            points.append({"h": view.points[j].h, "g": view.points[j].g, "label": encoded})
        visits = [{"lam": view.visits[j].lam, "bound": view.visits[j].bound,
                   "h": view.visits[j].h, "g": view.visits[j].g} for j in range(view.n_visits)]
        return {"outcome": best, "points": points, "visits": visits, "calls": view.calls}

    cdef View* _search(self, Py_ssize_t i, const double* theta, const int* truth, Outcome* outcome,
                       char* work) except NULL nogil:
        cdef View* view = self.plane.begin(i, theta, truth, work)
        cdef char* rest = align(work + self.plane.work_bytes)
        cdef double lam = 0
        cdef int j
        if self.on_grid:
            self._lay_grid(view)
        if self.warm:
            self._recall(view)
            if self.lam_view[i] > 0:
                lam = self.lam_view[i]
        if self.closer is not None and self.warm and self.lam_view[i] < 0:
            # It was needed last time, and probably is again.
            self._run(self.closer, view, -1, outcome, rest)
            return view
        self._run(self.search, view, lam, outcome, rest)
        if self.plane.zero_one:
            # If the oracle has returned the best label other than the truth, none is better.
            for j in range(view.n_visits):
                if view.visits[j].g > 0:
                    outcome.label_bound = outcome.label_value
        if not self.relaxed and (outcome.label_bound > outcome.label_value * (1 + self.search.tol)):
            if self.closer is not None:
                self._run(self.closer, view, -1, outcome, rest)
            elif self.max_kbest:
                self._refine(view, outcome, align(rest + self.search_bytes))
        return view

    cdef int _run(self, Search search, View* view, double lam, Outcome* outcome,
                  char* work) except -1 nogil:
        # Run a search; refuse an outcome that it left empty, or whose points do not exist.
        cdef int least, most
        outcome.first = outcome.second = outcome.label = -1
        outcome.share = outcome.lam = 0
        outcome.value = outcome.bound = outcome.label_value = outcome.label_bound = NAN
        search.run(self.plane, view, self.psi, lam, outcome, work)
        least = min(outcome.first, outcome.second, outcome.label)
        most = max(outcome.first, outcome.second, outcome.label)
        if not (0 <= least <= most < view.n
                and 0 <= outcome.share <= 1
                and view.points[outcome.label].kind != FRACTIONAL):
            with gil:
                raise ValueError(
                    f"example {view.i}: search {search.name!r} returned points {outcome.first} "
                    f"and {outcome.second} with share {outcome.share:g} and label {outcome.label}, "
                    f"expected points that it visited, 0 to {view.n - 1}, a share from 0 to 1, and "
                    "a point of a label; run() ends with settle() or finish()"
                )
        if (isnan(outcome.value) or isnan(outcome.bound) or isnan(outcome.label_value)
                or isnan(outcome.label_bound) or isnan(outcome.lam)):
            with gil:
                raise ValueError(
                    f"example {view.i}: search {search.name!r} returned value {outcome.value:g}, "
                    f"bound {outcome.bound:g}, label_value {outcome.label_value:g}, label_bound "
                    f"{outcome.label_bound:g} and lam {outcome.lam:g}, expected no NaN"
                )
        return 0

    cdef int _lay_grid(self, View* view) except -1 nogil:
        # The unit of the losses against this truth; in training computed once.
        cdef Py_ssize_t i = view.i
        cdef int64_t most
        cdef uint64_t key = label_key(view.truth, self.layout.label_size(i)) if self.warm else 0
        if self.warm and self.most[i] >= 0 and self.unit_truth[i] == key:
            view.unit, most = self.unit[i], self.most[i]
        else:
            self.plane.unit_of(view, &view.unit, &most)
            if self.warm:       # else threads may share the examples
                self.unit[i], self.most[i], self.unit_truth[i] = view.unit, most, key
        view.least, view.most = 0, most
        if self.plane.sign < 0:
            view.least, view.most = -most, 0
        return 0

    cdef int cut(self, Py_ssize_t i, const double* theta, const int* truth, Cut* cut,
                 char* work) except -1 nogil:
        cdef Outcome outcome
        cdef View* view = self._search(i, theta, truth, &outcome, work)
        if self.relaxed:
            self._write(view, outcome.first, outcome.second, outcome.share, cut)
            cut.bound = outcome.bound
        else:
            self._write(view, outcome.label, outcome.label, 0, cut)
            cut.bound = outcome.label_bound
        cut.calls = view.calls
        self.searches_view[i] += 1
        self.calls_view[i] += view.calls
        if self.warm:
            self._keep(view, &outcome)
        return 0

    cdef inline int* _labels_kept(self, Py_ssize_t i) noexcept nogil:
        # The last examples, or all, may have no labels.
        return (&self.label_view[0] + MEMORY * self.layout.label_offsets[i]
                if self.label_view.shape[0] else NULL)

    cdef int _recall(self, View* view) except -1 nogil:
        # The labels of the last search are the first points.
        cdef Py_ssize_t size = self.layout.label_size(view.i)
        cdef const int* held = self._labels_kept(view.i)
        cdef int j
        cdef Point point
        for j in range(self.held_view[view.i]):
            memcpy(self.plane.label_of(view, view.n), held + j * size, size * sizeof(int))
            self.plane.place(view, view.n, &point)
            if point.kind == LABEL:
                view.points[view.n] = point
                view.n += 1
        return 0

    cdef int _keep(self, View* view, const Outcome* outcome) except -1 nogil:
        # Remember the maximiser's labels, and the best label.
        cdef Py_ssize_t size = self.layout.label_size(view.i)
        cdef int[MEMORY] kept
        cdef int j, k, n = 0, wanted
        cdef const Point* point
        # The maximiser and the best label, then the newest labels.
        for j in range(3 + view.n):
            wanted = (outcome.first if j == 0 else outcome.second if j == 1
                      else outcome.label if j == 2 else view.n + 2 - j)
            point = &view.points[wanted]
            if point.kind != LABEL:
                continue
            for k in range(n):
                if kept[k] == wanted:
                    break
            else:
                memcpy(self._labels_kept(view.i) + n * size,
                       self.plane.label_of(view, point.slot), size * sizeof(int))
                kept[n] = wanted
                n += 1
                if n == MEMORY:
                    break
        self.held_view[view.i] = <int8_t>n
        self.lam_view[view.i] = outcome.lam if outcome.lam < INFINITY else 0
        return 0

    cdef int _refine(self, View* view, Outcome* outcome, char* work) except -1 nogil:
        # List more and more of the best labels for the last lam, until no other can be better.
        cdef int* labels = <int*>work
        cdef double* values = <double*>align(work + self.kbest_labels)
        cdef char* scratch = align((values + self.max_kbest))
        cdef Py_ssize_t size = self.layout.label_size(view.i), count, k
        cdef Py_ssize_t wanted = 4
        cdef double lam = outcome.lam, line = INFINITY, value, bound
        cdef Point point
        cdef Visit* visit
        cdef bint known
        cdef int index
        while view.calls < self.search.max_calls:
            wanted = min(wanted, self.max_kbest)
            count = self.plane.ask_kbest(view, lam, wanted, labels, values, scratch)
            line = INFINITY
            for k in range(count):
                memcpy(self.plane.label_of(view, view.n), labels + k * size, size * sizeof(int))
                self.plane.place(view, view.n, &point)
                line = min(line, point.h + lam * point.g)
                value = self.psi.value(point.h, point.g)
                if value > outcome.label_value:
                    index = self.search.keep(self.plane, view, self.psi, &point, &known)
                    outcome.label, outcome.label_value = index, value
            if count < wanted:
                outcome.label_bound = outcome.label_value       # there are no more labels
                return 0
            # Labels that are not listed lie below this line, too.
            if view.n_visits == LINES:
                return 0
            visit = &view.visits[view.n_visits]
            visit.lam, visit.bound, visit.h, visit.g, visit.above = lam, line, line, 0, 0
            view.n_visits += 1
            bound = grid_bound(view, self.psi)
            view.n_visits -= 1
            outcome.label_bound = max(outcome.label_value, min(outcome.label_bound, bound))
            if outcome.label_bound <= outcome.label_value * (1 + self.search.tol) or (
                    wanted == self.max_kbest):
                return 0
            wanted *= 2
        return 0

    cdef int _write(self, View* view, int first, int second, double share,
                    Cut* cut) except -1 nogil:
        # cut <- the tangent of psi at a point, or at a mixture of two.
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
