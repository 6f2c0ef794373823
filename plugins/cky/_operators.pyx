"""The operators of trees over spans: the best tree, the k best, sums, parts and a loss."""

cimport cython
from libc.math cimport INFINITY, floor
from libc.stdint cimport uint8_t
from libc.string cimport memcpy, memset
from structsolve.algorithms.candidate_pool cimport keep, take_best
from structsolve.operators cimport KBest, Loss, Oracle, Parts, Projection
from structsolve.part_layout cimport PartLayout
from structsolve.simd.loops cimport ss_loops

from structsolve.plugins.cky._chart cimport (
    Chart, SpanShape, chart_bytes, chart_in, fill, load, span_of, span_shape, spread, trace,
)

cdef double HALF = 2.0**26


cdef bint _best(SpanShape shape, Py_ssize_t i, const double* theta, int* label, double* value,
                char* work) noexcept nogil:
    # Whether there is a tree.
    cdef Chart chart = chart_in(shape, i, work)
    cdef Py_ssize_t p, row
    cdef double top
    load(shape, i, theta, True, NULL, &chart)
    value[0] = fill(&chart, True)
    if value[0] == -INFINITY:
        return False
    trace(&chart, value[0], NULL, label)
    if not shape.grammar:
        for p in range(2 * chart.n - 1):
            row = label[p]
            label[p] = <int>(row * shape.classes + ss_loops(shape.stride).first_best(
                shape.classes, theta + shape.shared + row * shape.stride, &top))
    value[0] = _score(shape, i, theta, label)
    return True


cdef int _refuse_label(Py_ssize_t i, Py_ssize_t p, int code) except -1 with gil:
    raise ValueError(
        f"example {i}: its label holds {code} at {p}, expected the spans of a binary tree in "
        "preorder, with classes of the model"
    )


cdef Py_ssize_t _rule(SpanShape shape, Py_ssize_t n, const int* label, Py_ssize_t p) noexcept nogil:
    # The rule at node p of a label: -1 for a word, -2 if the grammar has none, -3 if its children
    # are not two neighbours.
    cdef Py_ssize_t K = shape.classes, i, j, k, r, right, other, last, c = label[p] % K
    span_of(n, label[p] / K, &i, &j)
    if j == i + 1:
        return -1
    if p + 1 >= 2 * n - 1:
        return -3
    span_of(n, label[p + 1] / K, &other, &k)
    right = p + 2 * (k - i)
    if other != i or k >= j or right >= 2 * n - 1:
        return -3
    span_of(n, label[right] / K, &other, &last)
    if other != k or last != j:
        return -3
    for r in range(shape.first[c], shape.first[c + 1]):
        if shape.left[r] == label[p + 1] % K and shape.right[r] == label[right] % K:
            return r
    return -2


cdef double _score(SpanShape shape, Py_ssize_t i, const double* theta,
                   const int* label) noexcept nogil:
    cdef Py_ssize_t p, r, n = shape.n_words(i)
    cdef double total = 0
    for p in range(2 * n - 1):
        total += theta[shape.part(i, label[p])]
        r = _rule(shape, n, label, p) if shape.grammar else -1
        if r >= 0:
            total += theta[shape.where[r]]
    return total


@cython.final
cdef class CKYOracle(Oracle):
    """The tree of largest score; scores of -inf forbid a class of a span, or a rule.

    Parameters
    ----------
    rules : ndarray of int32 of shape (R, 4) or None
        See ``SpanShape``.
    layout : PartLayout
        Layout of a space of trees over spans.
    """

    cdef SpanShape shape

    def __init__(self, rules, PartLayout layout not None):
        super().__init__(layout)
        self.shape = span_shape(layout, rules)
        self.n_states = self.shape.n_states()
        self.work_bytes = chart_bytes(self.shape)

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        self.shape.check(i, theta)
        if not _best(self.shape, i, theta, label, value, work):
            return self.shape.impossible(i)
        bound[0] = value[0]
        return 0


@cython.final
cdef class CKYKBest(KBest):
    """The k best trees by Lawler's partition, by O(k n) searches for the best tree.

    Parameters
    ----------
    rules : ndarray of int32 of shape (R, 4) or None
    layout : PartLayout
    """

    cdef SpanShape shape
    cdef Py_ssize_t theta_bytes

    def __init__(self, rules, PartLayout layout not None):
        super().__init__(layout)
        self.shape = span_shape(layout, rules)
        self.n_states = self.shape.n_states()
        self.theta_bytes = (layout.max_theta * sizeof(double) + 63) // 64 * 64
        self.work_bytes = chart_bytes(self.shape) + self.theta_bytes

    cdef Py_ssize_t candidate_bytes(self) noexcept nogil:
        # Value, label, and two bits for each part.
        return (8 + 8 * self.shape.max_words + 2 * self.bits_bytes() + 15) / 8 * 8

    cdef Py_ssize_t bits_bytes(self) noexcept nogil:
        return self.shape.max_rows * self.shape.stride / 8 + 1

    cpdef Py_ssize_t bytes_for(self, Py_ssize_t k) except -1:
        return self.work_bytes + (k + 2) * self.candidate_bytes()

    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels,
                          double* values, char* work) except -1 nogil:
        # Lawler's partition: the trees but the answers so far fall into disjoint sets.  Those of a
        # set have some spans with their classes, and do not have the barred ones.  The pool holds
        # the best tree of every set that may still give an answer.
        cdef Py_ssize_t size = 2 * self.shape.n_words(i) - 1, room = self.candidate_bytes()
        cdef Py_ssize_t count = 0, pool = 1, j, p, part
        cdef double* masked = <double*>(work + chart_bytes(self.shape))
        cdef char* spare = work + self.work_bytes
        cdef char* own = spare + room
        cdef char* candidates = own + room
        cdef uint8_t* fixed
        cdef uint8_t* barred
        self.shape.check(i, theta)
        memset(spare, 0, room)
        if not _best(self.shape, i, theta, self.label_in(spare), <double*>spare, work):
            return self.shape.impossible(i)
        memcpy(candidates, spare, room)
        while count < k and pool:
            take_best(candidates, room, &pool, own)
            memcpy(labels + count * size, self.label_in(own), size * sizeof(int))
            values[count] = (<double*>own)[0]
            if count and values[count] > values[count - 1]:
                values[count] = values[count - 1]      # equal up to rounding
            count += 1
            if count == k:
                break
            # The sets of trees without span p of this answer, but with those before it.
            fixed, barred = self.fixed_in(own), self.barred_in(own)
            memcpy(masked, theta, self.shape_size(i) * sizeof(double))
            for j in range(self.shape.n_rows(i) * self.shape.stride):
                if barred[j / 8] >> (j % 8) & 1:
                    masked[self.shape.shared + j] = -INFINITY
            for p in range(size):
                j = self.shape.part(i, self.label_in(own)[p]) - self.shape.shared
                if fixed[j / 8] >> (j % 8) & 1:
                    self.fix(i, masked, self.label_in(own)[p])
            for p in range(size):
                part = self.shape.part(i, self.label_in(own)[p])
                j = part - self.shape.shared
                if fixed[j / 8] >> (j % 8) & 1:
                    continue
                memcpy(spare, own, room)
                self.barred_in(spare)[j / 8] |= <uint8_t>(1 << (j % 8))
                fixed[j / 8] |= <uint8_t>(1 << (j % 8))
                masked[part] = -INFINITY
                if _best(self.shape, i, masked, self.label_in(spare), <double*>spare, work):
                    keep(candidates, room, &pool, k - count, spare)
                masked[part] = theta[part]
                self.fix(i, masked, self.label_in(own)[p])
        return count

    cdef Py_ssize_t shape_size(self, Py_ssize_t i) noexcept nogil:
        return self.shape.shared + self.shape.n_rows(i) * self.shape.stride

    cdef int* label_in(self, char* candidate) noexcept nogil:
        return <int*>(candidate + 8)

    cdef uint8_t* fixed_in(self, char* candidate) noexcept nogil:
        return <uint8_t*>(candidate + 8 + 8 * self.shape.max_words)

    cdef uint8_t* barred_in(self, char* candidate) noexcept nogil:
        return self.fixed_in(candidate) + self.bits_bytes()

    cdef void fix(self, Py_ssize_t i, double* theta, int code) noexcept nogil:
        # Forbid what crosses a span, and its other classes: a binary tree then has the span.
        cdef Py_ssize_t n = self.shape.n_words(i), K = self.shape.classes, row, a, b, j, k, c
        cdef double* spans = theta + self.shape.shared
        span_of(n, code / K, &j, &k)
        for row in range(self.shape.n_rows(i)):
            span_of(n, row, &a, &b)
            for c in range(K):
                if (a < j < b < k) or (j < a < k < b) or (a == j and b == k and c != code % K):
                    spans[row * self.shape.stride + c] = -INFINITY


@cython.final
cdef class CKYProjection(Projection):
    """The entropy projection: marginals of spans and rules, by inside and outside sums.

    Parameters
    ----------
    rules : ndarray of int32 of shape (R, 4) or None
    layout : PartLayout
    """

    cdef SpanShape shape
    cdef Py_ssize_t chart_bytes, mass_bytes, theta_bytes

    def __init__(self, rules, PartLayout layout not None):
        super().__init__(layout)
        self.shape = span_shape(layout, rules)
        self.n_states = self.shape.n_states()
        self.gibbs = self.has_samples = self.has_derivative = True
        self.chart_bytes = chart_bytes(self.shape)
        self.mass_bytes = self.shape.max_rows * self.shape.states + self.shape.rules
        self.mass_bytes = (self.mass_bytes * sizeof(double) + 63) // 64 * 64
        self.theta_bytes = (layout.max_theta * sizeof(double) + 63) // 64 * 64
        self.work_bytes = self.chart_bytes + self.mass_bytes + self.theta_bytes

    cdef int chart(self, Py_ssize_t i, const double* theta, double* shares, Chart* chart,
                   double* total, char* work) except -1 nogil:
        self.shape.check(i, theta)
        chart[0] = chart_in(self.shape, i, work)
        load(self.shape, i, theta, False, shares, chart)
        total[0] = fill(chart, False)
        return self.shape.impossible(i) if total[0] == -INFINITY else 0

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        cdef double* mass = <double*>(work + self.chart_bytes)
        cdef double* of_rules = mass + self.shape.max_rows * self.shape.states
        cdef double* spans = marginals + self.shape.shared
        cdef Chart chart
        self.chart(i, theta, spans, &chart, value, work)
        bound[0] = value[0]
        spread(&chart, value[0], mass, of_rules, NULL, NULL, NULL)
        self.write(i, mass, of_rules, marginals)
        return 0

    cdef void write(self, Py_ssize_t i, const double* mass, const double* of_rules,
                    double* out) noexcept nogil:
        # out <- marginals; without a grammar it holds the probabilities of classes of spans.
        cdef Py_ssize_t row, c, r, K = self.shape.classes, stride = self.shape.stride
        cdef double* spans = out + self.shape.shared
        memset(out, 0, self.shape.shared * sizeof(double))
        for r in range(self.shape.rules if self.shape.grammar else 0):
            out[self.shape.where[r]] = of_rules[r]
        for row in range(self.shape.n_rows(i)):
            for c in range(stride):
                if not self.shape.grammar:
                    spans[row * stride + c] *= mass[row]
                else:
                    spans[row * stride + c] = mass[row * K + c] if c < K else 0

    cdef int sample(self, Py_ssize_t i, const double* theta, Py_ssize_t n, const double* uniforms,
                    int* labels, char* work) except -1 nogil:
        cdef Py_ssize_t size = 2 * self.shape.n_words(i) - 1, j, p, c, last, K = self.shape.classes
        cdef double* shares = <double*>(work + self.chart_bytes + self.mass_bytes)
        cdef const double* row
        cdef double total = 0, u, below
        cdef Chart chart
        self.chart(i, theta, shares, &chart, &total, work)
        for j in range(n):
            trace(&chart, total, uniforms + j * size, labels + j * size)
            for p in range(j * size, (j + 1) * size if not self.shape.grammar else 0):
                # The lower half of a number's digits draws the class.
                u = uniforms[p] * HALF - floor(uniforms[p] * HALF)
                row = shares + labels[p] * self.shape.stride
                last, below = 0, 0
                for c in range(K):
                    if row[c] > 0:
                        last = c
                        below += row[c]
                        if u < below:
                            break
                labels[p] = <int>(labels[p] * K + last)
        return 0

    cpdef Py_ssize_t derivative_bytes(self) except -1:
        """Return the bytes of two charts and two tables of masses."""
        return 2 * (self.chart_bytes + self.mass_bytes)

    cdef int derivative(self, Py_ssize_t i, const double* theta, const double* direction,
                        double* out, char* work) except -1 nogil:
        cdef double* mass = <double*>(work + 2 * self.chart_bytes)
        cdef double* dmass = <double*>(work + 2 * self.chart_bytes + self.mass_bytes)
        cdef Py_ssize_t states = self.shape.max_rows * self.shape.states
        cdef Py_ssize_t row, c, r, K = self.shape.classes, stride = self.shape.stride
        cdef double* spans = out + self.shape.shared
        cdef const double* along = direction + self.shape.shared
        cdef double total = 0
        cdef Chart chart, moved
        self.chart(i, theta, spans, &chart, &total, work)
        moved = chart_in(self.shape, i, work + self.chart_bytes)
        moved.weight[0] = 0
        for r in range(self.shape.rules if self.shape.grammar else 0):
            moved.weight[r] = direction[self.shape.where[r]]
        for row in range(self.shape.n_rows(i)):
            if not self.shape.grammar:
                moved.score[row] = 0
                for c in range(K):
                    moved.score[row] += spans[row * stride + c] * along[row * stride + c]
                continue
            for c in range(K):
                moved.score[row * K + c] = along[row * stride + c]
        spread(&chart, total, mass, mass + states, &moved, dmass, dmass + states)
        if self.shape.grammar:
            self.write(i, dmass, dmass + states, out)
            return 0
        memset(out, 0, self.shape.shared * sizeof(double))
        for row in range(self.shape.n_rows(i)):
            for c in range(K):
                spans[row * stride + c] *= dmass[row] + mass[row] * (
                    along[row * stride + c] - moved.score[row])
        return 0


@cython.final
cdef class CKYParts(Parts):
    """A part for each span with its class and, with a grammar, one for each rule.

    Parameters
    ----------
    rules : ndarray of int32 of shape (R, 4) or None
    layout : PartLayout
    """

    cdef SpanShape shape

    def __init__(self, rules, PartLayout layout not None):
        super().__init__(layout)
        self.shape = span_shape(layout, rules)
        self.n_states = self.shape.n_states()
        self.max_entries = 2 * (3 * self.shape.max_words)

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        return self.write(i, label, 1, index, value)

    cdef Py_ssize_t write(self, Py_ssize_t i, const int* label, double sign, int* index,
                          double* value) except -1 nogil:
        cdef Py_ssize_t p, r, k = 0, n = self.shape.n_words(i)
        for p in range(2 * n - 1):
            if self.shape.part(i, label[p]) < 0:
                return _refuse_label(i, p, label[p])
        for p in range(2 * n - 1):
            index[k], value[k] = <int>self.shape.part(i, label[p]), sign
            k += 1
            r = _rule(self.shape, n, label, p) if self.shape.grammar else -1
            if r == -3 or self.shape.grammar and label[0] >= self.shape.classes:
                return _refuse_label(i, p, label[p])
            if r >= 0:
                index[k], value[k] = self.shape.where[r], sign
                k += 1
        return k

    cdef Py_ssize_t difference(self, Py_ssize_t i, const int* truth, const int* label, int* index,
                               double* value) except -1 nogil:
        cdef Py_ssize_t k, a, b, count
        k = self.write(i, truth, 1, index, value)
        count = k + self.write(i, label, -1, index + k, value + k)
        # Equal parts cancel.
        for a in range(k):
            for b in range(k, count):
                if value[b] < 0 and index[a] == index[b]:
                    value[a] = value[b] = 0
                    break
        k = 0
        for a in range(count):
            if value[a] != 0:
                index[k], value[k] = index[a], value[a]
                k += 1
        return k


cdef class SpanLoss(Loss):
    """Spans of a tree that the true one does not have with the same class: a count, or a share.

    All binary trees of a sentence have as many spans, so the count is that of missed ones, too.

    Parameters
    ----------
    normalised : bool
        Divide by the number of spans.
    rules : ndarray of int32 of shape (R, 4) or None
    layout : PartLayout
    """

    cdef SpanShape shape

    def __init__(self, bint normalised, rules, PartLayout layout not None):
        super().__init__(layout)
        self.shape = span_shape(layout, rules)
        self.n_states = self.shape.n_states() + self.shape.max_rows  # unseen classes
        self.averaged = normalised
        self.decomposes = self.has_costs = True

    cdef double scale_of(self, Py_ssize_t i) noexcept nogil:
        return 1.0 / (2 * self.shape.n_words(i) - 1) if self.averaged else 1

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        cdef Py_ssize_t size = 2 * self.shape.n_words(i) - 1, a = 0, b = 0, same = 0, one, two
        cdef Py_ssize_t K = self.shape.classes, known = self.shape.n_rows(i) * K
        while a < size and b < size:
            # Rows rise; behind the codes of classes follow the rows with an unseen one.
            one = truth[a] / K if truth[a] < known else truth[a] - known
            two = label[b] / K
            same += truth[a] == label[b]
            a += one <= two
            b += two <= one
        return (size - same) * self.scale_of(i)

    cdef double augment(self, Py_ssize_t i, const int* truth, double scale,
                        double* theta) except? -1 nogil:
        cdef Py_ssize_t p, part, size = 2 * self.shape.n_words(i) - 1
        scale *= self.scale_of(i)
        for p in range(size):
            part = self.shape.part(i, truth[p])
            if part >= 0:
                theta[part] -= scale
        return scale * size

    cdef double costs(self, Py_ssize_t i, const double* nu, bint transposed, double scale,
                      double* theta) except? -1 nogil:
        cdef Py_ssize_t j, start = self.shape.shared
        scale *= self.scale_of(i)
        for j in range(start, start + self.shape.n_rows(i) * self.shape.stride):
            theta[j] -= scale * nu[j]
        return scale * (2 * self.shape.n_words(i) - 1)
