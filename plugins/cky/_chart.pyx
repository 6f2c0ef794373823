"""Charts over spans (Cocke, Kasami, Younger): every binary tree is built in exactly one way.

A chart has a number for each span and state.  With a grammar states are classes, and rules join two
neighbours, O(n^3 R); sums take O(n^3 S^2 + n^2 R) for S states (_linear.pyx).  Without one a span's
class does not depend on those around it: the chart has one state, one rule, and the best class or
the sum over classes as a span's score, O(n^3 + n^2 K).
"""

import numpy as np

cimport cython
from libc.math cimport INFINITY, exp, fabs, floor, log
from libc.stdint cimport int32_t
from libc.string cimport memset
from structsolve.part_layout cimport PartLayout
from structsolve.simd.loops cimport ss_loop_table, ss_loops

from structsolve.plugins.cky._linear cimport (
    linear_doubles, linear_in, row_of, share_mass, sum_inside, weigh_row, weigh_rules,
)

# Half of the digits of a uniform number.
cdef double HALF = 2.0**26


cdef int _refuse(Py_ssize_t i, double score) except -1 with gil:
    raise ValueError(
        f"example {i}: a span or rule has the score {score}, expected numbers up to 1e300 (or -inf, "
        "which forbids it); check that the weights are finite"
    )


cdef int _no_tree(Py_ssize_t i) except -1 with gil:
    raise ValueError(
        f"example {i}: no tree is possible: necessary spans have the score -inf, or the grammar "
        "does not derive a sentence of this length"
    )


@cython.final
cdef class SpanShape:
    """Sentences as numbers of words, with a row of scores for each of n (n + 1) / 2 spans.

    Parameters
    ----------
    layout : PartLayout
        Layout of a space of trees over spans.
    rules : ndarray of int32 of shape (R, 4) or None
        Parent, left and right child of each rule, and its index in theta.

    Raises
    ------
    ValueError
        If spans and labels do not fit each other.
    """

    def __init__(self, PartLayout layout not None, rules):
        cdef Py_ssize_t i, n, size = layout.shared_size
        cdef const int32_t[:, ::1] table
        self.n, self.rows, self.labels = layout.n, layout.offsets, layout.label_offsets
        self.owners = layout.owners
        self.classes, self.stride = layout.shapes["span"][0], layout.node_size
        self.shared, self.max_rows = layout.shared_size, layout.max_nodes
        self.max_words = (layout.max_label + 1) // 2
        self.grammar = rules is not None
        self.states = self.classes if self.grammar else 1
        if rules is None:
            rules = np.zeros((1, 4), dtype=np.int32)
            size = 1
        given = np.asarray(rules, dtype=np.int32)
        given = np.ascontiguousarray(given[np.argsort(given[:, 0], kind="stable")].T)
        table = given
        if given.min(initial=0) < 0 or given[:3].max(initial=0) >= self.states or (
                given[3].max(initial=0) >= size):
            raise ValueError("rules do not fit the classes of spans")
        self.rules = table.shape[1]
        self.parent, self.left = &table[0, 0], &table[1, 0]
        self.right, self.where = &table[2, 0], &table[3, 0]
        cdef const int32_t[::1] first = np.searchsorted(
            given[0], np.arange(self.states + 1)).astype(np.int32)
        self.first = &first[0]
        self.owners += (table, first)
        for i in range(layout.n):
            n = (layout.label_size(i) + 1) // 2
            if n < 1 or layout.label_size(i) != 2 * n - 1 or layout.nodes_of(i) != n * (n + 1) // 2:
                raise ValueError(
                    f"example {i}: {layout.nodes_of(i)} spans and {layout.label_size(i)} integers "
                    "of a label, expected n (n + 1) / 2 and 2 n - 1 for n words"
                )

    cdef Py_ssize_t n_words(self, Py_ssize_t i) noexcept nogil:
        return (self.labels[i + 1] - self.labels[i] + 1) / 2

    cdef Py_ssize_t n_rows(self, Py_ssize_t i) noexcept nogil:
        return self.rows[i + 1] - self.rows[i]

    cdef Py_ssize_t n_states(self) noexcept nogil:
        return self.max_rows * self.classes

    cdef Py_ssize_t part(self, Py_ssize_t i, Py_ssize_t code) noexcept nogil:
        if not 0 <= code < self.n_rows(i) * self.classes:
            return -1
        return self.shared + code / self.classes * self.stride + code % self.classes

    cdef int check(self, Py_ssize_t i, const double* theta) except -1 nogil:
        cdef Py_ssize_t j, wrong = 0, size = self.shared + self.n_rows(i) * self.stride
        for j in range(size):
            wrong += not theta[j] <= 1e300
        if wrong:
            for j in range(size):
                if not theta[j] <= 1e300:
                    return _refuse(i, theta[j])
        return 0

    cdef int impossible(self, Py_ssize_t i) except -1 nogil:
        return _no_tree(i)


cdef SpanShape span_shape(PartLayout layout, object rules):
    return layout.common((SpanShape, rules is None), lambda one: SpanShape(one, rules))


cdef void span_of(Py_ssize_t n, Py_ssize_t row, Py_ssize_t* i, Py_ssize_t* j) noexcept nogil:
    i[0] = 0
    while row >= n - i[0]:
        row -= n - i[0]
        i[0] += 1
    j[0] = n - row


cdef Py_ssize_t chart_bytes(SpanShape shape) noexcept nogil:
    cdef Py_ssize_t size = 3 * shape.max_rows * shape.states + 3 * shape.rules + 16
    size += linear_doubles(shape.max_words, shape.states, shape.rules)
    return (size * sizeof(double) + 63) / 64 * 64


cdef Chart chart_in(SpanShape shape, Py_ssize_t i, char* memory) noexcept nogil:
    cdef Chart chart
    cdef Py_ssize_t size = shape.max_rows * shape.states
    chart.n, chart.states, chart.rules = shape.n_words(i), shape.states, shape.rules
    chart.first, chart.parent, chart.left, chart.right = (
        shape.first, shape.parent, shape.left, shape.right)
    chart.score = <double*>memory
    chart.inner = chart.score + size
    chart.beta = chart.inner + size
    chart.weight = chart.beta + size
    chart.terms = chart.weight + shape.rules
    chart.shares = chart.terms + shape.rules + 8
    linear_in(&chart.linear, chart.n, shape.states, shape.rules, chart.shares + shape.rules + 8)
    chart.linear.parent, chart.linear.left = shape.parent, shape.left
    chart.linear.right = shape.right
    return chart


cdef inline double _number(double x) noexcept nogil:
    return x if x >= -1e300 else -INFINITY


cdef void load(SpanShape shape, Py_ssize_t i, const double* theta, bint best, double* shares,
               const Chart* chart) noexcept nogil:
    cdef Py_ssize_t row, c, r, K = shape.classes
    cdef const ss_loop_table* loops = ss_loops(shape.stride)
    cdef const double* spans = theta + shape.shared
    cdef double top, total
    chart.weight[0] = 0
    for r in range(shape.rules if shape.grammar else 0):
        chart.weight[r] = _number(theta[shape.where[r]])
    if not best:
        weigh_rules(&chart.linear, chart.weight)
    for row in range(shape.n_rows(i)):
        if shape.grammar:
            for c in range(K):
                chart.score[row * K + c] = _number(spans[row * shape.stride + c])
            continue
        loops.first_best(K, spans + row * shape.stride, &top)
        chart.score[row] = _number(top)
        if best:
            continue
        if chart.score[row] == -INFINITY:
            memset(shares + row * shape.stride, 0, shape.stride * sizeof(double))
            continue
        loops.exp_rows(1, spans + row * shape.stride, shape.stride, K, top,
                       shares + row * shape.stride)
        total = loops.total(shape.stride, shares + row * shape.stride)
        chart.score[row] = top + log(total)
        total = 1 / total
        for c in range(shape.stride):
            shares[row * shape.stride + c] *= total


cdef inline double _term(const Chart* chart, Py_ssize_t r, Py_ssize_t one,
                         Py_ssize_t two) noexcept nogil:
    # The score of a rule over two cells, numbered by their first states.
    return chart.weight[r] + chart.beta[one + chart.left[r]] + chart.beta[two + chart.right[r]]


cdef inline void _weigh(const Chart* chart, Py_ssize_t c, Py_ssize_t one, Py_ssize_t two,
                        double shift) noexcept nogil:
    # shares <- exp(score - shift) of the rules of a state over two cells.
    cdef Py_ssize_t first = chart.first[c], count = chart.first[c + 1] - first, r
    for r in range(count):
        chart.terms[r] = _term(chart, first + r, one, two) - shift
    if count >= 4:
        ss_loops(8).exp_rows(1, chart.terms, count, count, 0, chart.shares)
        return
    for r in range(count):
        chart.shares[r] = exp(chart.terms[r])


cdef void _cell(const Chart* chart, Py_ssize_t i, Py_ssize_t j, bint best) noexcept nogil:
    # inner <- the maximum, or the log of the sum, over rules and splits, for each state.
    cdef Py_ssize_t n = chart.n, S = chart.states, k, r, one, two, c
    cdef double* inner = chart.inner + row_of(n, i, j) * S
    cdef double* top = chart.beta + row_of(n, i, j) * S
    cdef double x
    if not best and chart.rules > 1 and sum_inside(&chart.linear, i, j, inner):
        return
    for c in range(S):
        top[c] = -INFINITY
        inner[c] = 0
    for k in range(i + 1, j):
        one, two = row_of(n, i, k) * S, row_of(n, k, j) * S
        for r in range(chart.rules):
            x = _term(chart, r, one, two)
            c = chart.parent[r]
            top[c] = x if x > top[c] else top[c]
    if not best:
        for k in range(i + 1, j):
            one, two = row_of(n, i, k) * S, row_of(n, k, j) * S
            for c in range(S):
                if top[c] == -INFINITY:
                    continue
                _weigh(chart, c, one, two, top[c])
                for r in range(chart.first[c + 1] - chart.first[c]):
                    inner[c] += chart.shares[r]
    for c in range(S):
        inner[c] = top[c] if best or top[c] == -INFINITY else top[c] + log(inner[c])


cdef double fill(const Chart* chart, bint best) noexcept nogil:
    cdef Py_ssize_t n = chart.n, S = chart.states, i, j, c, cell
    cdef double top = -INFINITY, total = 0
    for j in range(1, n + 1):
        for i in range(j - 1, -1, -1):
            cell = row_of(n, i, j) * S
            if j == i + 1:
                memset(chart.inner + cell, 0, S * sizeof(double))
            else:
                _cell(chart, i, j, best)
            for c in range(S):
                chart.beta[cell + c] = chart.inner[cell + c] + chart.score[cell + c]
            if not best and chart.rules > 1:
                weigh_row(&chart.linear, row_of(n, i, j), chart.beta + cell)
    for c in range(S):  # the whole sentence is row 0
        top = chart.beta[c] if chart.beta[c] > top else top
    if best or top == -INFINITY:
        return top
    for c in range(S):
        total += exp(chart.beta[c] - top)
    return top + log(total)


cdef double _rounded_sum(const Chart* chart, Py_ssize_t code) noexcept nogil:
    # The sum of exp(score - inner) over rules and splits of a span and state.  The log of the sum
    # has digits to spare, but for large scores.
    cdef Py_ssize_t n = chart.n, S = chart.states, c = code % S, i, j, k, r
    cdef double total = 0
    if fabs(chart.inner[code]) <= 1e4:
        return 1
    span_of(n, code / S, &i, &j)
    for k in range(i + 1, j):
        _weigh(chart, c, row_of(n, i, k) * S, row_of(n, k, j) * S, chart.inner[code])
        for r in range(chart.first[c + 1] - chart.first[c]):
            total += chart.shares[r]
    return total


cdef void trace(const Chart* chart, double total, const double* uniforms,
                int* codes) noexcept nogil:
    cdef Py_ssize_t n = chart.n, S = chart.states, at_code = 0, c, r, k, i, j, one, two, code
    cdef Py_ssize_t last_k, last_r, right
    cdef double u = 0, x, below = 0, top, whole = 0
    cdef bint done
    # The root's state.
    codes[0] = -1
    if uniforms != NULL:
        # Its lower digits: the upper ones split the sentence.
        u = uniforms[0] * HALF - floor(uniforms[0] * HALF)
        for c in range(S):
            whole += exp(chart.beta[c] - total)
    top = -INFINITY
    for c in range(S):
        if uniforms == NULL:
            if chart.beta[c] > top:
                top, codes[0] = chart.beta[c], <int>c
        elif chart.beta[c] > -INFINITY:
            codes[0] = <int>c
            below += exp(chart.beta[c] - total) / whole
            if u < below:
                break
    # A node's left child follows it, and its right child the 2 (k - i) - 1 spans of the left one.
    for at_code in range(2 * n - 1):
        code = codes[at_code]
        span_of(n, code / S, &i, &j)
        c = code % S
        if j == i + 1:
            continue
        last_k = last_r = -1
        top, below, done = -INFINITY, 0, False
        if uniforms != NULL:
            u = uniforms[at_code]
            whole = _rounded_sum(chart, code)
        for k in range(i + 1, j):
            one, two = row_of(n, i, k) * S, row_of(n, k, j) * S
            for r in range(chart.first[c], chart.first[c + 1]):
                x = _term(chart, r, one, two)
                if x == -INFINITY:
                    continue
                if uniforms == NULL:
                    if x > top:
                        top, last_k, last_r = x, k, r
                else:
                    last_k, last_r = k, r
                    below += exp(x - chart.inner[code]) / whole
                    if floor(u * HALF) / HALF < below:
                        done = True
                        break
            if done:
                break
        codes[at_code + 1] = <int>(row_of(n, i, last_k) * S + chart.left[last_r])
        right = at_code + 2 * (last_k - i)
        codes[right] = <int>(row_of(n, last_k, j) * S + chart.right[last_r])


cdef void _moves(const Chart* chart, const Chart* moved, double total) noexcept nogil:
    # moved.inner and beta <- derivatives of the logs of sums.
    cdef Py_ssize_t n = chart.n, S = chart.states, i, j, k, r, c, one, two, cell
    cdef double q
    for j in range(1, n + 1):
        for i in range(j - 1, -1, -1):
            cell = row_of(n, i, j) * S
            memset(moved.inner + cell, 0, S * sizeof(double))
            for k in range(i + 1, j):
                one, two = row_of(n, i, k) * S, row_of(n, k, j) * S
                for r in range(chart.rules):
                    c = cell + chart.parent[r]
                    q = _term(chart, r, one, two)
                    if q > -INFINITY:
                        q = exp(q - chart.inner[c])
                        moved.inner[c] += q * _term(moved, r, one, two)
            for c in range(cell, cell + S):
                moved.beta[c] = moved.inner[c] + moved.score[c]


cdef void spread(const Chart* chart, double total, double* mass, double* of_rules,
                 const Chart* moved, double* dmass, double* of_moved) noexcept nogil:
    cdef Py_ssize_t n = chart.n, S = chart.states, i, j, k, r, c, one, two, cell
    cdef Py_ssize_t size = n * (n + 1) / 2 * S
    cdef double q, part, change = 0, sum_of_shares
    memset(mass, 0, size * sizeof(double))
    memset(of_rules, 0, chart.rules * sizeof(double))
    if moved != NULL:
        _moves(chart, moved, total)
        memset(dmass, 0, size * sizeof(double))
        memset(of_moved, 0, chart.rules * sizeof(double))
    sum_of_shares = 0
    for c in range(S):
        mass[c] = exp(chart.beta[c] - total)
        sum_of_shares += mass[c]
    for c in range(S):
        # Shares sum to one even where large scores leave logs no digits.
        mass[c] /= sum_of_shares
        if moved != NULL:
            change += mass[c] * moved.beta[c]
    for c in range(S if moved != NULL else 0):
        dmass[c] = mass[c] * (moved.beta[c] - change)
    for j in range(n, 0, -1):
        for i in range(j - 1):
            cell = row_of(n, i, j) * S
            if moved == NULL and chart.rules > 1 and share_mass(
                    &chart.linear, i, j, mass, of_rules):
                continue
            for c in range(S):
                if mass[cell + c] <= 0:
                    continue
                sum_of_shares = _rounded_sum(chart, cell + c)
                for k in range(i + 1, j):
                    one, two = row_of(n, i, k) * S, row_of(n, k, j) * S
                    _weigh(chart, c, one, two, chart.inner[cell + c])
                    for r in range(chart.first[c], chart.first[c + 1]):
                        q = chart.shares[r - chart.first[c]] / sum_of_shares
                        if q == 0:
                            continue
                        part = mass[cell + c] * q
                        mass[one + chart.left[r]] += part
                        mass[two + chart.right[r]] += part
                        of_rules[r] += part
                        if moved == NULL:
                            continue
                        part = q * (dmass[cell + c] + mass[cell + c] * (
                            _term(moved, r, one, two) - moved.inner[cell + c]))
                        dmass[one + chart.left[r]] += part
                        dmass[two + chart.right[r]] += part
                        of_moved[r] += part
