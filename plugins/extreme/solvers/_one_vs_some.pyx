"""One binary classifier per class, trained on few rows by cache-friendly dual coordinate descent.

A pair t is an example with a sign: 1 if the example belongs to class c, else -1.  The classifier
of class c minimises, over its pairs, ``1/2 (||w - centre||^2 + b^2) + sum_t cost_t
loss(sign_t (w . x_t + bias b))``, where the loss is the squared hinge
``max(0, 1 - m)^2`` or the logistic loss ``log(1 + exp(-m))``.  References: Hsieh et al., A dual
coordinate descent method for large-scale linear SVM, ICML 2008, algorithm 3; Yu et al., Dual
coordinate descent for logistic regression, Machine Learning 2011.  For the logistic loss, the
dual variable is written as ``cost / (1 + exp(-t))``.

The features of a class's rows are renumbered, so that its weights and rows stay in the cache
during all passes.  The order of visits depends on the seed and the class only.
"""

import numpy as np

from libc.math cimport exp, fabs, INFINITY, log, log1p
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy

from structsolve.utils.arrays import check_numbers, check_offsets
from structsolve.plugins.extreme.weights.feature_lists import checked_rows, flat

cdef extern from "structsolve/simd/prefetch.h" nogil:
    void SS_PREFETCH(const void* address)

cdef enum:
    AHEAD = 2       # number of pairs ahead whose rows are prefetched
    LINE = 16       # numbers of 4 bytes in a cache line

LOSSES = ("squared-hinge", "logistic")


cdef inline uint64_t mixed(uint64_t key) noexcept nogil:
    """Final mix of SplitMix64: neighbouring keys give unrelated numbers."""
    key = (key ^ (key >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    key = (key ^ (key >> 27)) * <uint64_t>0x94D049BB133111EB
    return key ^ (key >> 31)


cdef inline uint64_t next_random(uint64_t* state) noexcept nogil:
    state[0] += <uint64_t>0x9E3779B97F4A7C15
    return mixed(state[0])


cdef inline void shuffle(int32_t* order, int64_t n, uint64_t* state) noexcept nogil:
    cdef int64_t t, other
    cdef int32_t held
    for t in range(n - 1, 0, -1):
        other = <int64_t>(((next_random(state) >> 32) * <uint64_t>(t + 1)) >> 32)
        held = order[t]
        order[t] = order[other]
        order[other] = held


# A row of a class, with its own feature numbers.
cdef struct Row:
    const int32_t* index
    const float* value
    int64_t n


cdef inline double product(Row row, const double* w) noexcept nogil:
    """Return the product of a row and the weights, in four independent sums for speed."""
    cdef double a = 0, b = 0, c = 0, d = 0
    cdef int64_t k = 0
    while k + 4 <= row.n:
        a += row.value[k] * w[row.index[k]]
        b += row.value[k + 1] * w[row.index[k + 1]]
        c += row.value[k + 2] * w[row.index[k + 2]]
        d += row.value[k + 3] * w[row.index[k + 3]]
        k += 4
    while k < row.n:
        a += row.value[k] * w[row.index[k]]
        k += 1
    return (a + b) + (c + d)


cdef inline void add_row(Row row, double factor, double* w) noexcept nogil:
    cdef int64_t k
    for k in range(row.n):
        w[row.index[k]] += factor * row.value[k]


cdef inline double log_loss(double margin) noexcept nogil:
    """log(1 + exp(-margin)) without overflow."""
    return log1p(exp(-margin)) if margin > 0 else log1p(exp(margin)) - margin


cdef inline double sigmoid(double t) noexcept nogil:
    return 1 / (1 + exp(-t)) if t > 0 else 1 - 1 / (1 + exp(t))


cdef double log_odds(double start, double slope, double target) noexcept nogil:
    """Solve ``t + slope sigmoid(t) = target`` for t, to a hundredth of the residual at `start`.

    Newton's method, safeguarded by bisection: the derivative of the left side lies between 1 and
    ``1 + slope / 4``.
    """
    cdef double low = target - slope, high = target, t = start, part, rest, goal = -1
    cdef int trial
    if t < low or t > high:
        t = 0.5 * (low + high)
    for trial in range(60):
        part = sigmoid(t)
        rest = t + slope * part - target
        if goal < 0:
            goal = 0.01 * fabs(rest)
        if fabs(rest) <= goal or high - low < 1e-12:
            break
        if rest > 0:
            high = t
        else:
            low = t
        t -= rest / (1 + slope * part * (1 - part))
        if t <= low or t >= high:
            t = 0.5 * (low + high)
    return t


cdef class Space:
    """Working memory of a thread, reused for all its classes.

    Parameters
    ----------
    n_features : int
    entries, pairs : int
        Number of non-zeros and of rows of the largest class.
    """

    # The class's own number of each feature, or -1; the features by this number; their weights.
    cdef int32_t[::1] number, feature
    cdef double[::1] w, centre
    # Rows of the class, with its own feature numbers.
    cdef int32_t[::1] index
    cdef float[::1] value
    cdef int64_t[::1] begin
    cdef int32_t[::1] order
    cdef double[::1] square, a

    def __cinit__(self, *args, **kwargs):
        self.number = self.order = self.index = None
        self.w = None

    def __init__(self, Py_ssize_t n_features, Py_ssize_t entries, Py_ssize_t pairs):
        self.number = np.full(n_features, -1, dtype=np.int32)
        # One extra: each feature is written first, and kept only if it is new.
        self.feature = np.empty(min(n_features, entries) + 1, dtype=np.int32)
        self.w = np.zeros(min(n_features, entries))
        self.centre = np.zeros(min(n_features, entries))
        self.index = np.empty(entries + 1, dtype=np.int32)
        self.value = np.empty(entries + 1, dtype=np.float32)
        self.begin = np.zeros(pairs + 1, dtype=np.int64)
        self.order = np.empty(pairs, dtype=np.int32)
        self.square, self.a = np.empty(pairs), np.empty(pairs)

    @staticmethod
    def size(n_features, entries, pairs):
        """Return the size of a space in bytes.

        Parameters
        ----------
        n_features, entries, pairs : int

        Returns
        -------
        int
        """
        return 4 * n_features + 20 * min(n_features, entries) + 8 * entries + 28 * pairs


cdef inline Row row_of(Space space, int64_t t) noexcept nogil:
    cdef Row row
    cdef int64_t start = space.begin[t]
    row.index, row.value = &space.index[0] + start, &space.value[0] + start
    row.n = space.begin[t + 1] - start
    return row


cdef class Machines:
    """The pairs of all classes, and the settings of their classifiers.

    Parameters
    ----------
    X : csr_matrix of float32 of shape (n, n_features)
        ``indices`` int32, ``indptr`` int64.
    own : ndarray of uint8 of shape (pairs,)
        Whether the example of a pair is of the pair's class.
    begin : ndarray of int64 of shape (C + 1,)
        First pair of each class, and the total number of pairs.
    rows : ndarray of int32 of shape (pairs,)
        The example of each pair.
    cost : ndarray of float32 of shape (pairs,)
        Positive.
    dual : ndarray of float32 of shape (pairs,)
        Initial dual variables, at least 0; overwritten with the final ones.
    centres : csr_matrix of float32 of shape (C, n_features), optional
        A direction for each class; features absent from its rows are ignored.
    loss : {"squared-hinge", "logistic"}
    bias : float
        Value of a constant feature; 0 for none.
    passes : int
        Maximum number of passes over a class's pairs.
    accuracy : float
        Training of a class stops when every pair's violation of optimality, in units of scores,
        is at most this.
    seed : int
    prior : float, default=1
        The regularisation draws the weights of each class to `prior` times its centre.
    later : ndarray of float32 of shape (C,), optional
        After training of class c, ``later[c]`` times its centre is added to the weights, before
        small weights are dropped.  The primal and dual value exclude it.

    Raises
    ------
    ValueError
        If shapes do not fit, or rows or classes lie outside of X.
    """

    cdef const int64_t[::1] indptr, begin
    cdef const int32_t[::1] indices, rows
    cdef const unsigned char[::1] own
    cdef const float[::1] data, cost
    cdef float[::1] dual
    cdef bint logistic, centred
    cdef const int64_t[::1] centre_start
    cdef const int32_t[::1] centre_feature
    cdef const float[::1] centre_value, later
    cdef double[::1] square     # squared norm of each row, with the bias
    cdef double bias, accuracy, prior
    cdef bint added
    cdef int64_t passes, n_features, n_classes
    cdef uint64_t seed

    def __init__(self, X, own, begin, rows, cost, dual, centres, loss, double bias, int64_t passes,
                 double accuracy, uint64_t seed, double prior=1.0, later=None):
        if loss not in LOSSES:
            raise ValueError(f"loss is {loss!r}, expected one of {list(LOSSES)}")
        n, d = X.shape
        arrays = checked_rows(X, d)
        own, rows, cost = flat(own, np.uint8, "own"), flat(rows, np.int32, "rows"), flat(cost, np.float32, "cost")
        begin, dual = flat(begin, np.int64, "begin"), flat(dual, np.float32, "dual")
        pairs = len(rows)
        if not len(own) == len(cost) == len(dual) == pairs:
            raise ValueError(
                f"rows, own, cost and dual have {pairs}, {len(own)}, {len(cost)} and {len(dual)} "
                "entries, expected as many each"
            )
        check_offsets(begin, pairs, 0, "begin of the classes' pairs")
        check_numbers(rows, n, "rows")
        if not (np.isfinite(cost) & (cost > 0)).all():
            raise ValueError("cost: expected finite numbers above 0")
        cdef float[::1] variables = dual        # before anything changes: it may be read-only
        if centres is not None:
            if centres.shape != (len(begin) - 1, d):
                raise ValueError(f"centres has shape {centres.shape}, expected {(len(begin) - 1, d)}")
            self.centre_start, self.centre_feature, self.centre_value = checked_rows(centres, d)
        if later is not None:
            later = flat(later, np.float32, "later")
            if centres is None or len(later) != len(begin) - 1:
                raise ValueError(
                    f"later has {len(later)} entries, expected centres and {len(begin) - 1}, one "
                    "per class"
                )
            self.later = later
        self.indptr, self.indices, self.data = arrays
        self.own, self.begin, self.rows, self.cost, self.dual = own, begin, rows, cost, variables
        self.centred = centres is not None
        self.logistic = loss == "logistic"
        self.bias, self.accuracy, self.passes, self.seed = bias, accuracy, passes, seed
        self.n_features, self.n_classes = d, len(begin) - 1
        self.prior, self.added = prior, later is not None
        self.square = np.empty(n)
        self.measure()

    cdef void measure(self) noexcept:
        cdef int64_t i, k
        cdef double square
        with nogil:
            for i in range(self.square.shape[0]):
                square = self.bias * self.bias
                for k in range(self.indptr[i], self.indptr[i + 1]):
                    square += <double>self.data[k] * self.data[k]
                self.square[i] = square

    def entries(self):
        """Count the non-zeros in the rows of each class's pairs.

        Returns
        -------
        ndarray of int64 of shape (C,)
        """
        counts = np.zeros(self.n_classes, dtype=np.int64)
        cdef int64_t[::1] out = counts
        cdef int64_t c
        with nogil:
            for c in range(self.n_classes):
                out[c] = self.entries_of(c)
        return counts

    cdef int64_t entries_of(self, int64_t c) noexcept nogil:
        cdef int64_t t, i, size = 0
        for t in range(self.begin[c], self.begin[c + 1]):
            i = self.rows[t]
            size += self.indptr[i + 1] - self.indptr[i]
        return size

    def train(self, int64_t first, int64_t last, Space space not None, int64_t room, float keep,
              double share=1):
        """Train the classes first .. last - 1.

        Parameters
        ----------
        first, last : int
        space : Space
            Large enough for each of them.
        room : int
            Maximum number of weights of these classes; the sum of their entries is enough.
        keep : float
            Weights of at most this absolute value are dropped.
        share : float, default=1
            Factor of each intercept in the model.

        Returns
        -------
        sizes : ndarray of int64 of shape (last - first,)
            Number of kept weights of each class.
        features : ndarray of int32
        weights : ndarray of float32
            Grouped by class; features of a class are unordered.
        intercepts : ndarray of float32 of shape (last - first,)
        figures : ndarray of float64 of shape (last - first, 4)
            Primal and dual value, number of visits, and the primal value with the kept weights
            only.

        Raises
        ------
        ValueError
            If the classes do not exist, or space or room is too small.
        """
        cdef int64_t c, size, used = 0
        if not 0 <= first <= last <= self.n_classes:
            raise ValueError(f"first is {first}, last {last}: expected a range of {self.n_classes}")
        self.check_room(first, last, space, room)
        sizes, intercepts = np.zeros(last - first, np.int64), np.zeros(last - first, np.float32)
        # One extra: a class without weights may begin at the end.
        features, weights = np.empty(room + 1, np.int32), np.empty(room + 1, np.float32)
        figures = np.zeros((last - first, 4))
        cdef int64_t[::1] sizes_view = sizes
        cdef float[::1] intercepts_view = intercepts, weights_view = weights
        cdef int32_t[::1] features_view = features
        cdef double[:, ::1] figures_view = figures
        with nogil:
            for c in range(first, last):
                if self.begin[c + 1] > self.begin[c]:
                    size = self.solve(
                        c, space, keep, share, &features_view[0] + used, &weights_view[0] + used,
                        &intercepts_view[c - first], &figures_view[c - first, 0],
                    )
                    sizes_view[c - first] = size
                    used += size
        return sizes, features[:used].copy(), weights[:used].copy(), intercepts, figures

    cdef int check_room(self, int64_t first, int64_t last, Space space, int64_t room) except -1:
        cdef int64_t c, size, entries = 0, pairs = 0, needed = 0
        with nogil:
            for c in range(first, last):
                size = self.entries_of(c)
                entries, pairs = max(entries, size), max(pairs, self.begin[c + 1] - self.begin[c])
                needed += min(size, self.n_features)
        if (
            pairs and space.number.shape[0] != self.n_features or space.order.shape[0] < pairs
            or space.index.shape[0] < entries or space.w.shape[0] < min(self.n_features, entries)
        ):
            raise ValueError(
                f"space: expected one for {self.n_features} features, {entries} entries and "
                f"{pairs} pairs"
            )
        if room < needed:
            raise ValueError(f"room is {room}, expected at least {needed}")
        return 0

    cdef int64_t gather(self, int64_t c, Space space) noexcept nogil:
        """Copy the rows of a class with renumbered features; return the number of features."""
        cdef int32_t* number = &space.number[0]
        cdef int32_t* feature = &space.feature[0]
        cdef int32_t* index = &space.index[0]
        cdef const int32_t* indices = &self.indices[0]
        cdef int64_t t, k, i, m = self.begin[c + 1] - self.begin[c], used = 0, place = 0, size
        cdef int32_t f, own
        cdef bint new
        for t in range(m):
            if t + AHEAD < m:
                self.fetch(self.rows[self.begin[c] + t + AHEAD])
            i = self.rows[self.begin[c] + t]
            size = self.indptr[i + 1] - self.indptr[i]
            if size > 0:
                memcpy(&space.value[place], &self.data[self.indptr[i]], size * sizeof(float))
            # Branch-free, because it is hard to predict whether a feature is new.
            for k in range(self.indptr[i], self.indptr[i + 1]):
                f = indices[k]
                own = number[f]
                new = own < 0
                own = <int32_t>used if new else own
                number[f] = index[place] = own
                feature[used] = f
                used += new
                place += 1
            space.begin[t + 1] = place
            space.square[t] = self.square[i]
            space.order[t] = <int32_t>t
        return used

    cdef inline void fetch(self, int64_t i) noexcept nogil:
        """Prefetch a row."""
        cdef int64_t k = self.indptr[i]
        while k < self.indptr[i + 1]:
            SS_PREFETCH(&self.indices[k])
            SS_PREFETCH(&self.data[k])
            k += LINE

    cdef int64_t solve(
        self, int64_t c, Space space, float keep, double share, int32_t* features, float* weights,
        float* intercept, double* figures,
    ) noexcept nogil:
        """Train one class; return the number of kept weights."""
        cdef int64_t base = self.begin[c], m = self.begin[c + 1] - base, t, j, kept = 0
        cdef int64_t used = self.gather(c, space)
        cdef double* w = &space.w[0] if used else NULL
        cdef double* centre = &space.centre[0] if used else NULL
        cdef double* a = &space.a[0]
        cdef double b = 0, sign, cost, part, primal, dual
        if self.centred:
            for j in range(self.centre_start[c], self.centre_start[c + 1]):
                t = space.number[self.centre_feature[j]]
                if t >= 0:
                    w[t] = centre[t] = self.prior * self.centre_value[j]
        for t in range(m):
            a[t] = self.dual[base + t]
            if a[t] > 0:
                sign = 1 if self.own[base + t] else -1
                add_row(row_of(space, t), sign * a[t], w)
                b += sign * a[t] * self.bias
        if self.logistic:
            b = self.descend_logistic(c, space, w, b, figures)
        else:
            b = self.descend_hinge(c, space, w, b, figures)
        # Primal and dual value, before small weights are dropped.
        primal = 0.5 * b * b
        dual = -primal
        for j in range(used):
            part = w[j] - centre[j]
            primal += 0.5 * part * part
            dual -= part * (0.5 * part + centre[j])
        primal += self.losses(c, space, w, b * self.bias)
        for t in range(m):
            cost = self.cost[base + t]
            if self.logistic:
                part = a[t] / cost
                if part > 0:
                    dual -= a[t] * log(part)
                if part < 1:
                    dual -= (cost - a[t]) * log1p(-part)
            else:
                dual += a[t] - a[t] * a[t] / (4 * cost)
            self.dual[base + t] = <float>a[t]
        figures[0], figures[1] = primal, dual
        intercept[0] = <float>(b * self.bias)
        if self.added:
            for j in range(self.centre_start[c], self.centre_start[c + 1]):
                t = space.number[self.centre_feature[j]]
                if t >= 0:
                    w[t] += <double>self.later[c] * self.centre_value[j]
        figures[3] = 0.5 * (share * b) * (share * b)
        for j in range(used):
            if fabs(w[j]) > keep:
                features[kept] = space.feature[j]
                weights[kept] = <float>w[j]
                w[j] = weights[kept]
                kept += 1
            else:
                w[j] = 0
            part = w[j] - centre[j]
            figures[3] += 0.5 * part * part
        figures[3] += self.losses(c, space, w, share * intercept[0])
        for j in range(used):
            w[j] = centre[j] = 0
            space.number[space.feature[j]] = -1
        return kept

    cdef double losses(self, int64_t c, Space space, const double* w,
                       double intercept) noexcept nogil:
        """The losses of a class's pairs, times their costs."""
        cdef int64_t t, base = self.begin[c]
        cdef double z, total = 0
        for t in range(self.begin[c + 1] - base):
            z = product(row_of(space, t), w) + intercept
            z = z if self.own[base + t] else -z
            if self.logistic:
                total += self.cost[base + t] * log_loss(z)
            elif z < 1:
                total += self.cost[base + t] * (1 - z) * (1 - z)
        return total

    cdef double descend_hinge(self, int64_t c, Space space, double* w, double b,
                              double* figures) noexcept nogil:
        """Squared hinge, with shrinking; return the weight of the constant feature."""
        cdef int64_t base = self.begin[c], m = self.begin[c + 1] - base, active = m, u, turn
        cdef int32_t t
        cdef Row row
        cdef int32_t* order = &space.order[0]
        cdef double* a = &space.a[0]
        cdef double sign, slack, gradient, projected, before, step
        cdef double above = INFINITY, most, least
        cdef uint64_t state = mixed(self.seed * <uint64_t>0x9E3779B97F4A7C15 + <uint64_t>c)
        for turn in range(self.passes):
            shuffle(order, active, &state)
            most, least, u = -INFINITY, INFINITY, 0
            while u < active:
                t = order[u]
                figures[2] += 1
                row = row_of(space, t)
                sign = 1 if self.own[base + t] else -1
                slack = 0.5 / self.cost[base + t]
                gradient = product(row, w) + b * self.bias
                gradient = sign * gradient - 1 + slack * a[t]
                projected = gradient
                if a[t] <= 0:
                    if gradient > above:
                        active -= 1
                        order[u], order[active] = order[active], t
                        continue
                    projected = min(gradient, 0)
                most, least = max(most, projected), min(least, projected)
                if fabs(projected) > 1e-12:
                    before = a[t]
                    a[t] = max(0, before - gradient / (space.square[t] + slack))
                    step = sign * (a[t] - before)
                    b += step * self.bias
                    add_row(row, step, w)
                u += 1
            if most - least <= self.accuracy:
                if active == m:
                    break
                active, above = m, INFINITY
            else:
                above = most if most > 0 else INFINITY
        return b

    cdef double descend_logistic(self, int64_t c, Space space, double* w, double b,
                                 double* figures) noexcept nogil:
        """Logistic loss; return the weight of the constant feature.

        Pairs within a tenth of the accuracy are skipped until all others reach the accuracy.
        """
        cdef int64_t base = self.begin[c], m = self.begin[c + 1] - base, active = m, u, turn
        cdef int32_t t
        cdef Row row
        cdef int32_t* order = &space.order[0]
        cdef double* a = &space.a[0]
        cdef double sign, cost, margin, wrong, odds, before, step, worst
        cdef bint full
        cdef uint64_t state = mixed(self.seed * <uint64_t>0x9E3779B97F4A7C15 + <uint64_t>c)
        for turn in range(self.passes):
            shuffle(order, active, &state)
            worst, u, full = 0, 0, active == m
            while u < active:
                t = order[u]
                figures[2] += 1
                row = row_of(space, t)
                sign = 1 if self.own[base + t] else -1
                cost = self.cost[base + t]
                margin = sign * (product(row, w) + b * self.bias)
                # The sigmoid's slope is at most 1/4, so 4 converts probabilities to scores.
                wrong = 4 * fabs(a[t] / cost - sigmoid(-margin))
                worst = max(worst, wrong)
                if wrong > 1e-12:
                    before = a[t]
                    odds = -margin
                    if 0 < before < cost:
                        odds = log(before / (cost - before))
                    odds = log_odds(odds, space.square[t] * cost, space.square[t] * before - margin)
                    a[t] = cost * sigmoid(odds)
                    step = sign * (a[t] - before)
                    b += step * self.bias
                    add_row(row, step, w)
                if wrong <= 0.1 * self.accuracy:
                    active -= 1
                    order[u], order[active] = order[active], t
                else:
                    u += 1
            if worst <= self.accuracy:
                if full:
                    break
                active = m
        return b
