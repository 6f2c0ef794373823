"""The label plane: every label y of an example is a point ``(h(y), g(y))``.

The oracle of a structure, called with a scaled loss, finds the point of largest ``h + lam g``.
Searches (the other files of this folder) see only points.  Only this file distinguishes
labels from fractional vertices of a relaxation.
"""

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcmp, memcpy, memset
from ..utils.alignment cimport align
from ..operators cimport (
    AugmentedOracle, Cone, ConeOracle, CountOracle, KBest, Loss, Oracle, Parts, Relaxation,
)
from ..part_layout cimport PartLayout
from ..structure.answer_checks cimport check_allowed, check_answer
from ..structure.label_key cimport label_key
from .envelope cimport common_unit
from .view cimport FRACTIONAL, LABEL, LINES, SLOTS, TRUTH, Point, View, Visit, rounding_of

import numpy as np

from ..utils.arrays import check_numbers

# Ways to call the oracle with a scaled loss.
cdef enum:
    DECOMPOSES = 0      # the loss is added to the scores
    AUGMENTED = 1       # the oracle adds the loss itself: the scores are scaled instead
    ZERO_ONE = 2        # the truth, or the best other label


# A loss is a count if it is a multiple of its unit, and at most this many units.
cdef double MOST = 1000


cdef inline char* _take(char** rest, Py_ssize_t size) noexcept nogil:
    # Returns an aligned piece of memory; rest <- the memory after it.
    cdef char* piece = align(rest[0])
    rest[0] = piece + size
    return piece


cdef class LabelPlane:
    """The labels of all examples as points of the plane.

    ``h(y) = <theta, mu(y) - mu(y_i)> + h_loss(y)`` and ``g(y) = sign * loss(y)``.  The truth is the
    point ``(h_loss(y_i), sign * loss(y_i))``, which is the origin for losses.  Truths are given
    with the scores: the plane holds no labels.

    Parameters
    ----------
    layout : PartLayout
    oracle : Oracle
    parts : Parts
    loss : Loss
        The loss of g.
    h_loss : Loss, optional
        A second loss, added to the margin.
    kbest : KBest, optional
        For the 0-1 loss, and for ``ask_kbest``.
    counts : CountOracle, optional
        For searches that count.
    cones : ConeOracle, optional
        For ``ask_in_cone``.
    relaxation : Relaxation, optional
        Called instead of the oracle; its maximisers may be fractional.
    augmented : AugmentedOracle, optional
        Called instead of the oracle if it knows ``loss``, there is no ``h_loss``, sign is 1,
        and the oracle is exact or the loss does not decompose.
    sign : float, default=1

    Attributes
    ----------
    relaxed : bool
        Whether there is a relaxation.
    exact : bool
        Answers are maxima, over labels or over the relaxation.
    shortfalls : ndarray of float64 of shape (n,)
        Largest excess of a known point of the example, or the truth, over an answer's bound.
    work_bytes : int
        Bytes of scratch memory that one search needs.

    Raises
    ------
    ValueError
        If no oracle call can weigh this loss against the scores.
    """

    def __init__(self, PartLayout layout not None, Oracle oracle not None, Parts parts not None,
                 Loss loss not None, Loss h_loss=None, KBest kbest=None, CountOracle counts=None,
                 ConeOracle cones=None, Relaxation relaxation=None, AugmentedOracle augmented=None,
                 double sign=1):
        self.layout, self.oracle, self.parts = layout, oracle, parts
        self.g_loss, self.h_loss, self.sign = loss, h_loss, sign
        self.kbest, self.counts, self.cones, self.relaxation = kbest, counts, cones, relaxation
        self.augmented, self.relaxed = augmented, relaxation is not None
        # Node rows begin behind the shared blocks.
        self.states = 0
        for name, start in layout.starts.items():
            if start == layout.shared_size and layout.node_size:
                self.states = layout.shapes[name][0]
        self.scratch_bytes = oracle.work_bytes
        # An inexact oracle returns its bound only for scores, not for augmented ones.
        if (augmented is not None and augmented.knows(loss) and h_loss is None and sign == 1
                and not self.relaxed and (oracle.exact or not loss.decomposes)):
            self.mode = AUGMENTED
            self.scratch_bytes = max(self.scratch_bytes, augmented.work_bytes)
        elif loss.decomposes and (h_loss is None or h_loss.decomposes):
            self.mode = DECOMPOSES
        elif loss.zero_one and kbest is not None and h_loss is None and not self.relaxed:
            self.mode = ZERO_ONE
            self.scratch_bytes = max(self.scratch_bytes, kbest.bytes_for(2))
        else:
            why = f"{type(oracle).__name__} has {'no ' if kbest is None else ''}k-best"
            if self.relaxed:
                why = "a relaxation is searched, not labels"
            raise ValueError(
                f"the searches need a loss that decomposes over the parts, or the 0-1 loss with an "
                f"oracle that has k-best; {loss} does not decompose and {why}"
            )
        for power in (cones, relaxation):
            if power is not None:
                self.scratch_bytes = max(self.scratch_bytes, power.work_bytes)
        self.shortfalls = np.zeros(layout.n)
        self.shortfall_view = self.shortfalls
        self.exact = oracle.exact or self.relaxed
        self.decomposes, self.zero_one = self.mode == DECOMPOSES, self.mode == ZERO_ONE
        # A fractional point may differ from the truth in all parts.
        self.width = layout.max_theta + parts.max_entries if self.relaxed else 0
        self.max_entries = parts.max_entries + self.width
        self.work_bytes = (
            sizeof(View) + 4 * 8 * (layout.max_theta + 8)
            + 4 * (SLOTS + 1) * (layout.max_label + 16)
            + 12 * ((SLOTS + 1) * self.width + parts.max_entries + 16) + self.scratch_bytes
            + 11 * 64
        )

    def largest_loss(self, labels):
        """Return the largest g of any label that the oracle finds.

        Parameters
        ----------
        labels : ndarray of int32
            True labels of all examples, concatenated.

        Returns
        -------
        float
        """
        cdef Py_ssize_t i, total = self.layout.label_offsets[self.layout.n]
        cdef double[::1] theta = np.zeros(self.layout.max_theta + 8)
        cdef char[::1] work = np.zeros(self.work_bytes + 64, dtype=np.int8)
        cdef const int[::1] truths = labels if len(labels) else np.zeros(1, dtype=np.int32)
        cdef double largest = 0
        cdef View* view
        cdef Point point
        if len(labels) != total:
            raise ValueError(f"labels has {len(labels)} entries, the examples have {total}")
        check_numbers(labels, self.parts.n_states or 2**31, "labels")
        with nogil:
            for i in range(self.layout.n):
                view = self.begin(i, &theta[0], &truths[0] + self.layout.label_offsets[i], &work[0])
                self.ask(view, INFINITY, 1, &point)
                largest = max(largest, point.g)
        return largest

    cdef View* begin(self, Py_ssize_t i, const double* theta, const int* truth,
                     char* work) except NULL nogil:
        # Lay out the work memory; the truth is the first point.
        cdef View* view = <View*>align(work)
        cdef Py_ssize_t doubles = self.layout.max_theta + 8
        cdef char* rest = <char*>(view + 1)
        view.scaled = <double*>_take(&rest, 8 * doubles)
        view.costs = <double*>_take(&rest, 8 * doubles)
        view.shifts = <double*>_take(&rest, 8 * doubles)
        view.mu = <double*>_take(&rest, 8 * doubles)
        view.values = <double*>_take(&rest, 8 * (SLOTS + 1) * self.width)
        view.entry_value = <double*>_take(&rest, 8 * (self.parts.max_entries + 1))
        view.labels = <int*>_take(&rest, 4 * (SLOTS + 1) * (self.layout.max_label + 1))
        view.index = <int*>_take(&rest, 4 * (SLOTS + 1) * self.width)
        view.entry_index = <int*>_take(&rest, 4 * (self.parts.max_entries + 1))
        view.scratch = align(rest)
        view.i, view.theta, view.truth = i, theta, truth
        view.calls = view.n_visits = 0
        view.has_costs, view.exact = False, self.exact
        view.n = 1
        view.points[0].kind, view.points[0].slot, view.points[0].key = TRUTH, -1, 0
        view.points[0].nnz = 0
        view.points[0].shift = self.h_loss.value(i, truth, truth) if self.h_loss is not None else 0
        view.points[0].h = view.points[0].shift
        view.points[0].g = self.sign * self.g_loss.value(i, truth, truth)
        view.low, view.high = 0, INFINITY
        view.unit, view.least, view.most = 0, 0, 0
        if self.sign < 0:
            # g is minus a count over label and truth; the truth's part is half of its own g.
            # With an empty truth, only the truth has g = 0.
            view.low = -2.0 * self.layout.label_size(i)
            view.high = 0.5 * view.points[0].g if view.points[0].g < 0 else -1
        return view

    cdef int* label_of(self, View* view, int slot) noexcept nogil:
        return view.labels + slot * (self.layout.max_label + 1)

    cdef int place(self, View* view, int slot, Point* out) except -1 nogil:
        # out <- the point of the label in `slot`.
        cdef Py_ssize_t i = view.i, j, n, size = self.layout.label_size(i)
        cdef int* label = self.label_of(view, slot)
        cdef const int* truth = view.truth
        cdef double margin = 0
        cdef uint64_t key = label_key(label, size)
        cdef bint same = memcmp(label, truth, size * sizeof(int)) == 0
        if not same:
            check_answer(self.oracle, i, label, self.parts.n_states)
        n = self.parts.difference(i, truth, label, view.entry_index, view.entry_value)
        for j in range(n):
            margin -= view.theta[view.entry_index[j]] * view.entry_value[j]
        out.kind, out.slot, out.key, out.nnz = LABEL, slot, key, 0
        out.shift = self.h_loss.value(i, truth, label) if self.h_loss is not None else 0
        out.h = margin + out.shift
        out.g = self.sign * self.g_loss.value(i, truth, label)
        if same:
            out[0] = view.points[0]
        elif self.sign > 0 and not 0 <= out.g < INFINITY:
            with gil:
                raise ValueError(
                    f"example {i}: the loss of a label is {out.g}, expected at least 0 (and 0 for "
                    "the true label)"
                )
        return 0

    cdef void move(self, View* view, Point* point, int slot) noexcept nogil:
        # Keep a point's label or parts in another slot.
        if point.kind == LABEL:
            memcpy(self.label_of(view, slot), self.label_of(view, point.slot),
                   self.layout.label_size(view.i) * sizeof(int))
        elif point.kind == FRACTIONAL:
            memcpy(view.index + slot * self.width, view.index + point.slot * self.width,
                   point.nnz * sizeof(int))
            memcpy(view.values + slot * self.width, view.values + point.slot * self.width,
                   point.nnz * sizeof(double))
        point.slot = slot

    cdef int need_costs(self, View* view) except -1 nogil:
        # Write the losses as costs of parts, once per search.
        cdef Py_ssize_t bytes = self.layout.theta_size(view.i) * sizeof(double), k, n
        if view.has_costs:
            return 0
        view.truth_score = 0
        n = self.parts.encode(view.i, view.truth, view.entry_index, view.entry_value)
        for k in range(n):
            view.truth_score += view.theta[view.entry_index[k]] * view.entry_value[k]
        memset(view.costs, 0, bytes)
        view.g_const = self.g_loss.augment(view.i, view.truth, self.sign, view.costs)
        view.h_const = 0
        if self.h_loss is not None:
            memset(view.shifts, 0, bytes)
            view.h_const = self.h_loss.augment(view.i, view.truth, 1.0, view.shifts)
        view.has_costs = True
        return 0

    cdef int fractional(self, View* view, int slot, Point* out) except -1 nogil:
        # out <- the point of view.mu; its parts are stored in `slot`.
        cdef Py_ssize_t size = self.layout.theta_size(view.i), j, k, n
        cdef int* index = view.index + slot * self.width
        cdef double* value = view.values + slot * self.width
        cdef uint64_t key = 88172645463325252ULL
        cdef uint64_t bits
        self.need_costs(view)
        out.kind, out.slot = FRACTIONAL, slot
        out.h, out.g, out.shift = 0, view.g_const, view.h_const
        n = self.parts.encode(view.i, view.truth, view.entry_index, view.entry_value)
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
                # A search for labels needs the point's coordinates, not its parts.
                if self.width:
                    index[k], value[k] = <int>j, view.scaled[j]
                    k += 1
        out.h += out.shift
        out.nnz, out.key = k, key
        return 0

    cdef int ask(self, View* view, double lam, int slot, Point* out) except -1 nogil:
        # out <- the point of largest h + lam g, recorded as a visit, its label in `slot`.  An
        # infinite lam gives the largest g, whatever h is.
        cdef Py_ssize_t i = view.i, size = self.layout.theta_size(i), j, n
        cdef int* label = self.label_of(view, slot)
        cdef double[2] value
        cdef double bound = 0, loss = 0, above = 0
        cdef bint right
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
                self.augmented.argmax(i, view.scaled, view.truth, label, &value[0], &loss,
                                      view.scratch)
                bound = value[0]
            else:
                self.oracle.argmax(i, view.scaled, label, &value[0], &bound, view.scratch)
            self.place(view, slot, out)
        elif self.mode == ZERO_ONE:
            n = self.kbest.kbest(i, view.scaled, 2, label, value, view.scratch)
            bound = value[0]
            right = self.g_loss.value(i, view.truth, label) == 0
            if right and n > 1:
                # The truth scores best: is the second best better with its loss added?
                memcpy(label, label + self.layout.label_size(i),
                       self.layout.label_size(i) * sizeof(int))
            self.place(view, slot, out)
            if not right and lam < INFINITY:
                # The best label scores at least as much as the truth.
                self.note(view, -out.h, fabs(out.h))
            if lam < INFINITY and out.h + lam * out.g < 0:
                out[0] = view.points[0]
        else:
            if self.h_loss is not None and lam < INFINITY:
                self.h_loss.augment(i, view.truth, 1.0, view.scaled)
            self.g_loss.augment(i, view.truth, self.sign * (lam if lam < INFINITY else 1),
                                view.scaled)
            if self.relaxation is None:
                self.oracle.argmax(i, view.scaled, label, &value[0], &bound, view.scratch)
                self.place(view, slot, out)
            elif self.relaxation.relax(i, view.scaled, view.mu, label, &value[0], &bound,
                                       view.scratch):
                self.place(view, slot, out)
            else:
                self.fractional(view, slot, out)
        check_allowed(i, bound)
        if bound > value[0]:
            above = bound - value[0]
            if above > 1e-12 * fabs(value[0]):
                view.exact = False
        else:
            self.note(view, value[0] - bound, fabs(value[0]))
        above += self.known_above(view, lam, out, above)
        if lam == INFINITY:
            if view.exact:
                view.high = min(view.high, out.g)
            return 0
        visit.lam, visit.h, visit.g, visit.above = lam, out.h, out.g, above
        # The accuracy of the oracle's comparisons for scores of this size.
        visit.above += 4e-16 * (lam * fabs(out.g) + visit.above)
        visit.bound = out.h + lam * out.g + visit.above
        view.n_visits += 1
        return 0

    cdef double known_above(self, View* view, double lam, const Point* out,
                            double above) noexcept nogil:
        cdef double best = 0, here, size = fabs(out.g)
        cdef double base = above + (out.g if lam == INFINITY else out.h + lam * out.g)
        cdef int j
        for j in range(view.n):
            here = view.points[j].g
            if lam < INFINITY:
                here = view.points[j].h + lam * here
            best = max(best, here - base)
        if best > 0:
            if lam < INFINITY:
                size = fabs(out.h) + lam * size
            self.note(view, best, size)
        return best

    cdef void note(self, View* view, double shortfall, double scale) noexcept nogil:
        # Does a known label exceed an answer's bound, by more than rounding?
        cdef Py_ssize_t i = view.i
        if shortfall > self.shortfall_view[i] and shortfall > 1e-6 * scale + rounding_of(
                view.theta, self.layout.theta_size(i)):
            self.shortfall_view[i] = shortfall

    cdef int ask_in_cone(self, View* view, double lam, double alpha, double beta, int slot,
                         Point* out) except -1 nogil:
        # Like ask(), for 1 + h and g within a cone; returns 0 if it is empty, else the Kind.
        cdef Cone cone
        cdef double value = 0
        cdef int kind
        cdef Visit* visit = &view.visits[view.n_visits]
        self.need_costs(view)
        cone.h0, cone.g0 = 1 - view.truth_score, view.g_const
        cone.lam, cone.alpha, cone.beta, cone.twin = lam, alpha, beta, False
        view.calls += 1
        kind = self.cones.argmax_in_cone(view.i, view.theta, view.costs, &cone, view.mu,
                                         self.label_of(view, slot), &value, view.scratch)
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
        # labels, values <- the k best at lam; returns their number.
        memcpy(view.scaled, view.theta, self.layout.theta_size(view.i) * sizeof(double))
        if self.mode == DECOMPOSES:
            if self.h_loss is not None:
                self.h_loss.augment(view.i, view.truth, 1.0, view.scaled)
            self.g_loss.augment(view.i, view.truth, lam * self.sign, view.scaled)
        view.calls += 1
        return self.kbest.kbest(view.i, view.scaled, k, labels, values, scratch)

    cdef int unit_of(self, View* view, double* unit, int64_t* most) except -1 nogil:
        cdef Py_ssize_t j, size = self.layout.theta_size(view.i)
        cdef double step, total, value
        unit[0], most[0] = 0, 0
        if self.mode == ZERO_ONE:
            unit[0], most[0] = 1, 1
        elif self.g_loss.decomposes:
            self.need_costs(view)
            value = total = fabs(view.g_const)
            for j in range(size):
                total += fabs(view.costs[j])
            step = value if value > 0 else INFINITY
            for j in range(size):
                value = fabs(view.costs[j])
                if value > 1e-12 * total:
                    step = common_unit(step, value, 1e-9 * total)
            if step < INFINITY and total <= MOST * step:
                unit[0], most[0] = step, <int64_t>(total / step + 0.5)
        return 0

    cdef Py_ssize_t entries(self, View* view, const Point* point, double coef, Py_ssize_t n,
                            int* index, double* value) except -1 nogil:
        # Append coef (mu(truth) - mu(point)) to n entries; returns their new number.
        cdef Py_ssize_t i = view.i, k, count
        if point.kind == TRUTH or coef == 0:
            return n
        if point.kind == FRACTIONAL:
            count = point.nnz
            memcpy(index + n, view.index + point.slot * self.width, count * sizeof(int))
            memcpy(value + n, view.values + point.slot * self.width, count * sizeof(double))
        else:
            count = self.parts.difference(i, view.truth, self.label_of(view, point.slot),
                                          index + n, value + n)
        if coef != 1:
            for k in range(n, n + count):
                value[k] *= coef
        return n + count
