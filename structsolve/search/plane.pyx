"""The label plane: every label y of an example is a point ``(h(y), g(y))``, and the oracle of a
structure, asked with a scaled loss, finds the point of largest ``h + lam g``.

Searches (the other files of this folder) ask and see points; what a point is, a label or a
fractional vertex of a relaxation, only this file knows.
"""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcmp, memcpy, memset
from ..utils.alignment cimport align
from ..operators cimport Cone, Loss, Oracle, Parts
from ..potentials.linear cimport LinearPotentials
from ..structure.label_key cimport label_key
from .envelope cimport common_unit
from .view cimport FRACTIONAL, LABEL, LINES, SLOTS, TRUTH, Kind, Point, View, Visit

# How the oracle is asked with a scaled loss.
cdef enum:
    DECOMPOSES = 0      # the loss is added to the scores
    AUGMENTED = 1       # the oracle knows the loss: the scores are scaled instead
    ZERO_ONE = 2        # the truth, or the best other label


# Largest multiple of a unit that a loss may be to count as counting.
cdef double MOST = 1000


cdef class LabelPlane:
    """The labels of all examples as points of the plane.

    ``h(y) = <theta, mu(y) - mu(y_i)> + h_loss(y)`` and ``g(y) = sign * g_loss(y)``; the truth is at
    ``(h_loss(y_i), sign * g_loss(y_i))``, which is the origin for losses.

    Parameters
    ----------
    potentials : LinearPotentials
        For the sizes of the scores only.
    oracle, parts : Oracle, Parts
    g_loss : Loss
    labels : ndarray of int32
        True labels, one after the other.
    label_offsets : ndarray of int64
    relaxed : bool, default=False
        Ask the oracle for maximisers over its relaxation, not for labels.
    h_loss : Loss, optional
        A second loss, added to the margin.
    sign : float, default=1

    Raises
    ------
    ValueError
        When no oracle call can weigh this loss against the scores.
    """

    def __init__(self, LinearPotentials potentials, Oracle oracle, Parts parts, Loss g_loss,
                 labels, label_offsets, bint relaxed=False, Loss h_loss=None, double sign=1):
        cdef const int[::1] label_view = labels
        cdef const int64_t[::1] offset_view = label_offsets
        self.potentials, self.oracle, self.parts = potentials, oracle, parts
        self.g_loss, self.h_loss, self.sign, self.relaxed = g_loss, h_loss, sign, relaxed
        self.owners = (labels, label_offsets)
        self.labels = &label_view[0] if label_view.shape[0] else NULL
        self.label_offsets = &offset_view[0]
        self.longest = int(np.diff(label_offsets).max()) if label_offsets.shape[0] > 1 else 0
        node = potentials.layout.node
        self.states = node.shape[0] if node is not None else 0
        self.scratch_bytes = oracle.work_bytes
        # An inexact oracle tells its bound for scores alone, not for augmented ones.
        if (oracle.has_augmented and h_loss is None and sign == 1 and not relaxed
                and (oracle.exact or not g_loss.decomposes)):
            self.mode = AUGMENTED
        elif g_loss.decomposes and (h_loss is None or h_loss.decomposes):
            self.mode = DECOMPOSES
        elif g_loss.zero_one and oracle.has_kbest and h_loss is None and not relaxed:
            self.mode = ZERO_ONE
            self.scratch_bytes = oracle.kbest_bytes(2)
        else:
            raise ValueError(
                f"the searches need a loss that decomposes over the parts, or the 0-1 loss with an "
                f"oracle that has k-best; {type(g_loss).__name__} does not decompose and "
                f"{type(oracle).__name__} has {'' if oracle.has_kbest else 'no '}k-best"
            )
        if relaxed and not oracle.has_relaxed:
            raise ValueError(f"{type(oracle).__name__} has no relaxation (has_relaxed is False)")
        self.exact = oracle.exact or relaxed
        self.decomposes, self.zero_one = self.mode == DECOMPOSES, self.mode == ZERO_ONE
        # A fractional point differs from the truth in as many parts as there are at most.
        self.width = potentials.max_theta + parts.max_entries if relaxed else 0
        self.max_entries = parts.max_entries + self.width
        self.work_bytes = (
            sizeof(View) + 4 * 8 * (potentials.max_theta + 8) + 4 * (SLOTS + 1) * (self.longest + 16)
            + 12 * ((SLOTS + 1) * self.width + parts.max_entries + 16) + self.scratch_bytes + 11 * 64
        )

    cdef View* begin(self, Py_ssize_t i, const double* theta, char* work) except NULL nogil:
        """Lay out the work memory; the truth is the first point."""
        cdef View* view = <View*>align(work)
        cdef Py_ssize_t doubles = self.potentials.max_theta + 8
        cdef const int* truth = self.labels + self.label_offsets[i]
        cdef char* p = align((view + 1))
        view.scaled = <double*>p
        p = align(p + 8 * doubles)
        view.costs = <double*>p
        p = align(p + 8 * doubles)
        view.shifts = <double*>p
        p = align(p + 8 * doubles)
        view.mu = <double*>p
        p = align(p + 8 * doubles)
        view.values = <double*>p
        p = align(p + 8 * (SLOTS + 1) * self.width)
        view.entry_value = <double*>p
        p = align(p + 8 * (self.parts.max_entries + 1))
        view.labels = <int*>p
        p = align(p + 4 * (SLOTS + 1) * (self.longest + 1))
        view.index = <int*>p
        p = align(p + 4 * (SLOTS + 1) * self.width)
        view.entry_index = <int*>p
        view.scratch = align(p + 4 * (self.parts.max_entries + 1))
        view.i, view.theta = i, theta
        view.calls = view.n_visits = 0
        view.has_costs = False
        view.n = 1
        view.points[0].kind, view.points[0].slot, view.points[0].key = TRUTH, -1, 0
        view.points[0].nnz = 0
        view.points[0].shift = self.h_loss.value(i, truth) if self.h_loss is not None else 0
        view.points[0].h = view.points[0].shift
        view.points[0].g = self.sign * self.g_loss.value(i, truth)
        view.low, view.high = 0, INFINITY
        view.unit, view.least, view.most = 0, 0, 0
        if self.sign < 0:
            # Minus a count of the label and the truth: the truth's share is half its own g, and
            # with an empty truth 0 is reached by the truth alone.
            view.low = -2.0 * self.label_size(i)
            view.high = 0.5 * view.points[0].g if view.points[0].g < 0 else -1
        return view

    cdef Py_ssize_t label_size(self, Py_ssize_t i) noexcept nogil:
        return self.label_offsets[i + 1] - self.label_offsets[i]

    cdef int* label_of(self, View* view, int slot) noexcept nogil:
        return view.labels + slot * (self.longest + 1)

    cdef int place(self, View* view, int slot, Point* out) except -1 nogil:
        """The point of the label that lies in ``slot``."""
        cdef Py_ssize_t i = view.i, j, n, size = self.label_size(i)
        cdef int* label = self.label_of(view, slot)
        cdef const int* truth = self.labels + self.label_offsets[i]
        cdef double margin = 0
        cdef uint64_t key = label_key(label, size)
        cdef bint same = memcmp(label, truth, size * sizeof(int)) == 0
        n = self.parts.difference(i, truth, label, view.entry_index, view.entry_value)
        for j in range(n):
            margin -= view.theta[view.entry_index[j]] * view.entry_value[j]
        out.kind, out.slot, out.key, out.nnz = LABEL, slot, key, 0
        out.shift = self.h_loss.value(i, label) if self.h_loss is not None else 0
        out.h = margin + out.shift
        out.g = self.sign * self.g_loss.value(i, label)
        if same:
            out[0] = view.points[0]
        elif self.sign > 0 and not out.g >= 0:
            with gil:
                raise ValueError(
                    f"example {i}: the loss of a label is {out.g}, expected at least 0 (and 0 for "
                    "the true label)"
                )
        return 0

    cdef void move(self, View* view, Point* point, int slot) noexcept nogil:
        """Keep a point's label or parts in another slot."""
        if point.kind == LABEL:
            memcpy(self.label_of(view, slot), self.label_of(view, point.slot),
                   self.label_size(view.i) * sizeof(int))
        elif point.kind == FRACTIONAL:
            memcpy(view.index + slot * self.width, view.index + point.slot * self.width,
                   point.nnz * sizeof(int))
            memcpy(view.values + slot * self.width, view.values + point.slot * self.width,
                   point.nnz * sizeof(double))
        point.slot = slot

    cdef int need_costs(self, View* view) except -1 nogil:
        """Write the losses down as costs of parts, once per search."""
        cdef Py_ssize_t bytes = self.potentials.theta_size(view.i) * sizeof(double), k, n
        if view.has_costs:
            return 0
        view.truth_score = 0
        n = self.parts.encode(view.i, self.labels + self.label_offsets[view.i],
                              view.entry_index, view.entry_value)
        for k in range(n):
            view.truth_score += view.theta[view.entry_index[k]] * view.entry_value[k]
        memset(view.costs, 0, bytes)
        view.g_const = self.g_loss.augment(view.i, self.sign, view.costs)
        view.h_const = 0
        if self.h_loss is not None:
            memset(view.shifts, 0, bytes)
            view.h_const = self.h_loss.augment(view.i, 1.0, view.shifts)
        view.has_costs = True
        return 0

    cdef int fractional(self, View* view, int slot, Point* out) except -1 nogil:
        """The point of ``view.mu``, its parts stored in ``slot``."""
        cdef Py_ssize_t size = self.potentials.theta_size(view.i), j, k, n
        cdef int* index = view.index + slot * self.width
        cdef double* value = view.values + slot * self.width
        cdef uint64_t key = 88172645463325252ULL
        cdef uint64_t bits
        self.need_costs(view)
        out.kind, out.slot = FRACTIONAL, slot
        out.h, out.g, out.shift = 0, view.g_const, view.h_const
        n = self.parts.encode(view.i, self.labels + self.label_offsets[view.i],
                              view.entry_index, view.entry_value)
        for k in range(n):
            view.scaled[view.entry_index[k]] = 0
        for j in range(size):
            if view.mu[j] != 0:
                out.g += view.costs[j] * view.mu[j]
                if self.h_loss is not None:
                    out.shift += view.shifts[j] * view.mu[j]
                memcpy(&bits, &view.mu[j], 8)
                key = ((key ^ <uint64_t>j) * 1099511628211ULL ^ bits) * 1099511628211ULL
            view.scaled[j] = -view.mu[j]
        for k in range(n):
            view.scaled[view.entry_index[k]] += view.entry_value[k]
        k = 0
        for j in range(size):
            if view.scaled[j] != 0:
                out.h -= view.theta[j] * view.scaled[j]
                # A search for labels needs where the point lies, not its parts.
                if self.width:
                    index[k], value[k] = <int>j, view.scaled[j]
                    k += 1
        out.h += out.shift
        out.nnz, out.key = k, key
        return 0

    cdef int ask(self, View* view, double lam, int slot, Point* out) except -1 nogil:
        """The point of largest ``h + lam g``; recorded as a visit, its label in ``slot``.

        An infinite lam asks for the largest g, of any h: it says where g ends.
        """
        cdef Py_ssize_t i = view.i, size = self.potentials.theta_size(i), j, found
        cdef int* label = self.label_of(view, slot)
        cdef double[2] value
        cdef double bound = 0, loss = 0
        cdef Visit* visit = &view.visits[view.n_visits]
        if view.n_visits >= LINES:
            with gil:
                raise RuntimeError(f"example {i}: more than {LINES} oracle calls in one search")
        view.calls += 1
        value[0] = value[1] = 0
        if lam == INFINITY:
            memset(view.scaled, 0, size * sizeof(double))
        else:
            memcpy(view.scaled, view.theta, size * sizeof(double))
        if self.mode == AUGMENTED:
            if lam > 0:
                for j in range(size):
                    view.scaled[j] /= lam
                self.oracle.argmax_augmented(i, view.scaled, label, &value[0], &loss, view.scratch)
            else:
                self.oracle.argmax(i, view.scaled, label, &value[0], view.scratch)
            bound = value[0]
            self.place(view, slot, out)
        elif self.mode == ZERO_ONE:
            found = self.oracle.kbest(i, view.scaled, 2, label, value, view.scratch)
            if self.g_loss.value(i, label) == 0 and found > 1:
                # The truth is best: is the second best, with its loss, better still?
                memcpy(label, label + self.label_size(i), self.label_size(i) * sizeof(int))
            self.place(view, slot, out)
            if lam < INFINITY and out.h + lam * out.g < 0:
                out[0] = view.points[0]
        else:
            if self.h_loss is not None and lam < INFINITY:
                self.h_loss.augment(i, 1.0, view.scaled)
            self.g_loss.augment(i, self.sign * (lam if lam < INFINITY else 1), view.scaled)
            if self.relaxed:
                if self.oracle.relax(i, view.scaled, view.mu, label, &value[0], view.scratch):
                    self.place(view, slot, out)
                else:
                    self.fractional(view, slot, out)
                bound = value[0]
            else:
                self.oracle.argmax_bounded(i, view.scaled, label, &value[0], &bound, view.scratch)
                self.place(view, slot, out)
        if lam == INFINITY:
            if self.exact:
                view.high = min(view.high, out.g)
            return 0
        visit.lam, visit.h, visit.g = lam, out.h, out.g
        visit.above = 0
        if not self.exact and bound > value[0]:
            visit.above = bound - value[0]
        # What the oracle's comparisons cannot tell apart, among scores of this size.
        visit.above += 4e-16 * (lam * fabs(out.g) + visit.above)
        visit.bound = out.h + lam * out.g + visit.above
        view.n_visits += 1
        return 0

    cdef int ask_constrained(self, View* view, double lam, double alpha, double beta, bint twin,
                             int slot, Point* out) except -1 nogil:
        """As ask(), of ``1 + h`` and g within a cone; 0 where there is none, else the Kind."""
        cdef Cone cone
        cdef double value = 0
        cdef int kind
        cdef Visit* visit = &view.visits[view.n_visits]
        self.need_costs(view)
        cone.h0, cone.g0 = 1 - view.truth_score, view.g_const
        cone.lam, cone.alpha, cone.beta, cone.twin = lam, alpha, beta, twin
        view.calls += 1
        kind = self.oracle.argmax_constrained(
            view.i, view.theta, view.costs, &cone, view.mu, self.label_of(view, slot), &value,
            view.scratch)
        if kind == 0:
            return 0
        if kind == 1:
            self.place(view, slot, out)
            kind = LABEL
        else:
            self.fractional(view, slot, out)
        visit.lam, visit.h, visit.g, visit.bound = lam, out.h, out.g, out.h + lam * out.g
        visit.above = max(value - 1 - visit.bound, 0)
        visit.bound += visit.above
        view.n_visits += 1
        return kind

    cdef Py_ssize_t ask_kbest(self, View* view, double lam, Py_ssize_t k, int* labels,
                              double* values, char* scratch) except -1 nogil:
        """The k best labels at lam; returns how many there are."""
        memcpy(view.scaled, view.theta, self.potentials.theta_size(view.i) * sizeof(double))
        if self.mode == DECOMPOSES:
            if self.h_loss is not None:
                self.h_loss.augment(view.i, 1.0, view.scaled)
            self.g_loss.augment(view.i, lam * self.sign, view.scaled)
        view.calls += 1
        return self.oracle.kbest(view.i, view.scaled, k, labels, values, scratch)

    def units(self):
        """For each example a unit of which every g is a multiple, and the largest multiple.

        Returns
        -------
        unit : ndarray of shape (n,)
            0 where there is none worth its name.
        most : ndarray of int64 of shape (n,)
        """
        cdef Py_ssize_t i, j
        cdef double unit, total, value
        cdef double[::1] theta = np.zeros(self.potentials.max_theta + 8)
        cdef char[::1] work = np.zeros(self.work_bytes + 64, dtype=np.int8)
        cdef View* view
        units, most = np.zeros(self.potentials.n), np.zeros(self.potentials.n, dtype=np.int64)
        cdef double[::1] unit_view = units
        cdef int64_t[::1] most_view = most
        for i in range(self.potentials.n):
            if self.mode == ZERO_ONE:
                unit_view[i], most_view[i] = 1, 1
            elif self.g_loss.decomposes:
                view = self.begin(i, &theta[0], &work[0])
                self.need_costs(view)
                value = total = fabs(view.g_const)
                for j in range(self.potentials.theta_size(i)):
                    total += fabs(view.costs[j])
                unit = value if value > 0 else INFINITY
                for j in range(self.potentials.theta_size(i)):
                    value = fabs(view.costs[j])
                    if value > 1e-12 * total:
                        unit = common_unit(unit, value, 1e-9 * total)
                if unit < INFINITY and total <= MOST * unit:
                    unit_view[i] = unit
                    most_view[i] = <int64_t>(total / unit + 0.5)
        return units, most

    cdef Py_ssize_t entries(self, View* view, const Point* point, double coef, Py_ssize_t n,
                            int* index, double* value) except -1 nogil:
        """Append ``coef (mu(truth) - mu(point))`` to n entries; return how many there are then."""
        cdef Py_ssize_t i = view.i, k, count
        if point.kind == TRUTH or coef == 0:
            return n
        if point.kind == FRACTIONAL:
            count = point.nnz
            memcpy(index + n, view.index + point.slot * self.width, count * sizeof(int))
            memcpy(value + n, view.values + point.slot * self.width, count * sizeof(double))
        else:
            count = self.parts.difference(i, self.labels + self.label_offsets[i],
                                          self.label_of(view, point.slot), index + n, value + n)
        if coef != 1:
            for k in range(n, n + count):
                value[k] *= coef
        return n + count
