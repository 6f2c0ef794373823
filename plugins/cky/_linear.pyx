"""Sums over the rules of two neighbouring spans by exponentials, taken once for each span.

For states b, c of two neighbours, ``P[b, c]`` is the sum over splits of the products of their
exponentials; a state's sum is that of ``exp(weight) P[left, right]`` over its rules.  This takes
O(n^3 S^2 + n^2 R) multiplications.  No term is lost: where finite scores of a span and of rules
differ by more than RANGE, charts take logarithms, rule by rule.
"""

from libc.math cimport INFINITY, exp, log
from libc.string cimport memset

# The logarithm of the least double, with room for products.
cdef double RANGE = 600


cdef Py_ssize_t linear_doubles(Py_ssize_t n, Py_ssize_t states, Py_ssize_t rules) noexcept nogil:
    return (n * (n + 1) // 2 * (states + 2) + rules + 2 + 2 * states * states + states + n + 1)


cdef void linear_in(Linear* x, Py_ssize_t n, Py_ssize_t states, Py_ssize_t rules,
                    double* memory) noexcept nogil:
    cdef Py_ssize_t rows = n * (n + 1) // 2
    x.n, x.states, x.rules = n, states, rules
    x.cell = memory
    x.peak = x.cell + rows * states
    x.span = x.peak + rows
    x.rule = x.span + rows
    x.range = x.rule + rules
    x.pairs = x.range + 2
    x.own = x.pairs + states * states
    x.sums = x.own + states * states
    x.factor = x.sums + states


cdef void _weigh(Py_ssize_t n, const double* score, double* out, double* top,
                 double* span) noexcept nogil:
    cdef Py_ssize_t c
    cdef double low = INFINITY
    top[0] = -INFINITY
    for c in range(n):
        top[0] = score[c] if score[c] > top[0] else top[0]
        low = score[c] if -INFINITY < score[c] < low else low
    span[0] = top[0] - low
    for c in range(n):
        out[c] = exp(score[c] - top[0]) if score[c] > -INFINITY else 0


cdef void weigh_rules(const Linear* x, const double* weight) noexcept nogil:
    _weigh(x.rules, weight, x.rule, &x.range[0], &x.range[1])


cdef void weigh_row(const Linear* x, Py_ssize_t row, const double* beta) noexcept nogil:
    _weigh(x.states, beta, x.cell + row * x.states, &x.peak[row], &x.span[row])


cdef bint _pair_sums(const Linear* x, Py_ssize_t i, Py_ssize_t j, double* top) noexcept nogil:
    # pairs, factor, and the sums of states over their rules, all times exp(-top).
    cdef Py_ssize_t S = x.states, k, one, two, b, c, r
    cdef double low = INFINITY, peak, v
    cdef const double* second
    cdef double* pairs
    top[0] = -INFINITY
    for k in range(i + 1, j):
        one, two = row_of(x.n, i, k), row_of(x.n, k, j)
        peak = x.peak[one] + x.peak[two]
        if peak > -INFINITY:
            top[0] = peak if peak > top[0] else top[0]
            peak -= x.span[one] + x.span[two]
            low = peak if peak < low else low
    if top[0] > -INFINITY and x.range[0] > -INFINITY and not top[0] - low + x.range[1] <= RANGE:
        return False
    memset(x.pairs, 0, S * S * sizeof(double))
    memset(x.sums, 0, S * sizeof(double))
    for k in range(i + 1, j):
        one, two = row_of(x.n, i, k), row_of(x.n, k, j)
        peak = x.peak[one] + x.peak[two]
        x.factor[k] = exp(peak - top[0]) if peak > -INFINITY else 0
        second = x.cell + two * S
        for b in range(S if x.factor[k] > 0 else 0):
            v = x.factor[k] * x.cell[one * S + b]
            if v == 0:
                continue
            pairs = x.pairs + b * S
            for c in range(S):
                pairs[c] += v * second[c]
    for r in range(x.rules):
        x.sums[x.parent[r]] += x.rule[r] * x.pairs[x.left[r] * S + x.right[r]]
    top[0] += x.range[0]
    return True


cdef bint sum_inside(const Linear* x, Py_ssize_t i, Py_ssize_t j, double* inner) noexcept nogil:
    cdef Py_ssize_t c
    cdef double top
    if not _pair_sums(x, i, j, &top):
        return False
    for c in range(x.states):
        inner[c] = top + log(x.sums[c]) if x.sums[c] > 0 else -INFINITY
    return True


cdef bint share_mass(const Linear* x, Py_ssize_t i, Py_ssize_t j, double* mass,
                     double* of_rules) noexcept nogil:
    cdef Py_ssize_t S = x.states, k, one, two, b, c, r, pair
    cdef double v, total, top
    cdef double* whole = mass + row_of(x.n, i, j) * S
    cdef double* left
    cdef double* right
    cdef const double* second
    cdef const double* own
    if not _pair_sums(x, i, j, &top):
        return False
    for c in range(S):
        x.sums[c] = whole[c] / x.sums[c] if x.sums[c] > 0 else 0
    memset(x.own, 0, S * S * sizeof(double))
    for r in range(x.rules):
        v, pair = x.sums[x.parent[r]] * x.rule[r], x.left[r] * S + x.right[r]
        x.own[pair] += v
        of_rules[r] += v * x.pairs[pair]
    for k in range(i + 1, j):
        one, two = row_of(x.n, i, k) * S, row_of(x.n, k, j) * S
        left, right, second = mass + one, mass + two, x.cell + two
        for b in range(S):
            v = x.factor[k] * x.cell[one + b]
            if v == 0:
                continue
            own, total = x.own + b * S, 0
            for c in range(S):
                total += own[c] * second[c]
                right[c] += v * (own[c] * second[c])
            left[b] += v * total
    return True
