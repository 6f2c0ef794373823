"""Projections onto the Birkhoff polytope of assignments.

``max G(mu) + <theta, mu>`` over mu >= 0 with rows that sum to 1 and columns that sum to 1 (to at
most 1, where there are fewer rows).  Given prices p of the columns, every row is maximised alone,
by a softmax or a projection onto the simplex.  What is left is to minimise the convex

    phi(p) = sum_r max_q [G(q) + <theta_r - p, q>] + sum_c p_c      (p >= 0 with fewer rows)

whose gradient is 1 less the sums of the columns.  The search (`_sinkhorn_newton.pyx`) starts at the
prices of the best assignment, where no score exceeds what its row takes by more than rounding,
however large scores are.  Sinkhorn's iteration follows (entropy) where it is quick, then Newton's
method with a line search.  phi is an upper bound at any prices.  A point of the polytope comes from
the rows' answers: columns that take too much are scaled down, and what the rows then lack goes to
those that take too little.
"""

cimport cython
from libc.math cimport INFINITY, fabs, log
from libc.string cimport memcpy, memset
from structsolve.simd.loops cimport ss_loop_table, ss_loops
from structsolve.operators cimport Projection
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.permutation._jonker_volgenant cimport (
    Assignment, assignment_bytes, assignment_in, load_scores, solve_assignment,
)
from structsolve.plugins.permutation._sinkhorn_newton cimport (
    Search, answer_rows, distance, newton_step, sinkhorn,
)
from structsolve.plugins.permutation._shape cimport PairShape, no_such_column, pair_shape

cdef enum:
    NEWTON_STEPS = 200
    IDLE = 10       # steps without progress that end the search

cdef double TOLERANCE = 1e-10   # gap to stop at, relative to the value (to 1, if that is less)
# Columns that share less do not move each other's prices: marginals would move by no more than this.
cdef double COUPLED = 1e-13
# What the derivative takes for 0: shares of pairs on the simplex, prices; room of columns.  The
# search ends at about 1e-9, and prices may be such that pairs without a share are about to get one.
cdef double NOTHING = 1e-7, ROOM = 1e-6


cdef int _impossible(Py_ssize_t i) except -1 with gil:
    raise ValueError(
        f"example {i}: no assignment is possible: the scores of the necessary pairs are "
        "-inf, NaN, beyond 1e300 or forbidden, so there are no marginals; allow more pairs, and "
        "check that the weights are finite"
    )


@cython.final
cdef class AssignmentProjection(Projection):
    """``max G(mu) + <theta, mu>`` over the polytope of assignments, with a bound.

    Parameters
    ----------
    regularizer : {"entropy", "euclidean"}
        ``G = -sum mu log mu``, the entropy of the entries (not of the distribution of assignments,
        whose marginals are #P-hard), or ``-|mu|^2 / 2``.
    layout : PartLayout
        Layout of rankings or matchings.
    """

    cdef PairShape shape
    cdef bint euclidean
    cdef Py_ssize_t start
    cdef const ss_loop_table* loops

    def __init__(self, str regularizer, PartLayout layout not None):
        super().__init__(layout)
        if regularizer not in ("entropy", "euclidean"):
            raise ValueError(f"regularizer is {regularizer!r}, expected 'entropy' or 'euclidean'")
        cdef PairShape shape = pair_shape(layout)
        self.shape, self.euclidean = shape, regularizer == "euclidean"
        self.n_states = shape.max_cols
        self.loops = ss_loops(8)
        self.exact = False
        self.has_term = self.has_derivative = True
        ld = (shape.max_cols + 7) // 8 * 8
        self.start = (assignment_bytes(shape.max_rows, shape.max_cols) + 63) // 64 * 64
        doubles = (2 * shape.max_rows + 2 * shape.max_cols + 6) * ld + shape.max_rows
        self.work_bytes = self.start + 8 * doubles + 12 * ld + 64

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        cdef Search search
        return self._solve(i, theta, marginals, value, bound, work, &search)

    cdef int derivative(self, Py_ssize_t i, const double* theta, const double* direction,
                        double* out, char* work) except -1 nogil:
        # Rows move by their own Jacobians, along the direction less what it does to the prices,
        # which keep the sums of the columns.
        cdef Search s
        cdef double value, bound
        cdef Py_ssize_t stride = self.shape.stride(i), r
        self._solve(i, theta, out, &value, &bound, work, &s)
        memset(out, 0, self.layout.theta_size(i) * sizeof(double))
        for r in range(s.rows):
            memcpy(s.trial + r * s.ld, direction + r * stride, s.cols * sizeof(double))
        _move_prices(&s)
        for r in range(s.rows):
            _move_row(&s, r, s.trial + r * s.ld, s.d, out + r * stride)
        return 0

    cdef int _solve(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                    double* bound, char* work, Search* search) except -1 nogil:
        # Like project(); writes the prices and the rows' answers into search.
        cdef Py_ssize_t rows = self.shape.n_rows(i), cols = self.shape.n_cols(i), r, c
        cdef Py_ssize_t stride = self.shape.stride(i)
        cdef Assignment task = assignment_in(rows, cols, work)
        cdef Search s
        cdef double phi, size, target = 1e-9, rounded, scale, low
        cdef double ridge = 1e-13
        cdef int step, idle = 0
        cdef bint done
        load_scores(&task, theta, stride, -1, self.shape.forbidden(i))
        if not solve_assignment(&task):
            return _impossible(i)
        s = self._lay_out(&task, work + self.start)
        for c in range(s.ld):
            s.p[c] = -task.v[c] if c < cols else 0
        if s.square:
            # A constant added to all prices changes nothing; around zero they round least.
            low = s.p[0]
            for c in range(1, cols):
                low = min(low, s.p[c])
            for c in range(cols):
                s.p[c] -= low
        if not self.euclidean:
            sinkhorn(&s, target * cols)
        phi = answer_rows(&s, s.p, s.g)
        bound[0] = phi
        # The best assignment is the first point known; where scores are large it is the answer.
        memset(marginals, 0, rows * stride * sizeof(double))
        value[0] = -rows / 2.0 if self.euclidean else 0
        for r in range(rows):
            marginals[r * stride + task.column[r]] = 1
            value[0] += theta[r * stride + task.column[r]]
        for step in range(NEWTON_STEPS):
            size = distance(&s, s.p, s.g)
            if size <= target * cols or idle >= IDLE or step == NEWTON_STEPS - 1:
                _round_answers(&s)
                rounded = _rounded_value(&s)
                if rounded > value[0]:
                    value[0] = rounded
                    for r in range(rows):
                        memcpy(marginals + r * stride, s.trial + r * s.ld, cols * sizeof(double))
                        memset(marginals + r * stride + cols, 0, (stride - cols) * sizeof(double))
                scale = fabs(value[0])
                if scale < 1:
                    scale = 1
                if bound[0] - value[0] <= TOLERANCE * scale or idle >= IDLE:
                    break
                target = min(target, size / cols) / 30
            done = newton_step(&s, &phi, &ridge)
            bound[0] = min(bound[0], phi)
            idle = 0 if done else idle + 1
        if bound[0] < value[0]:     # by rounding: both are the maximum
            bound[0] = value[0]
        search[0] = s
        return 0

    cdef Search _lay_out(self, Assignment* task, char* work) noexcept nogil:
        cdef Search s
        cdef double* x = <double*>work
        cdef Py_ssize_t r, c
        s.loops, s.euclidean = self.loops, self.euclidean
        s.rows, s.cols, s.ld = task.rows, task.cols, task.ld
        s.square = task.rows == task.cols
        s.cost, s.column = task.cost, task.column
        s.q = x
        s.trial = x + s.rows * s.ld
        s.H = s.trial + s.rows * s.ld
        s.factor = s.H + s.cols * s.ld
        s.p = s.factor + s.cols * s.ld
        s.p_new = s.p + s.ld
        s.g = s.p_new + s.ld
        s.g_new = s.g + s.ld
        s.d = s.g_new + s.ld
        s.b = s.d + s.ld
        s.a = s.b + s.ld
        s.free = <int*>(s.a + s.rows)
        s.active = s.free + s.ld
        s.queue = s.active + s.ld
        s.barred = False
        for r in range(s.rows):
            for c in range(s.cols):
                s.barred |= s.cost[r * s.ld + c] == INFINITY
        memset(s.p, 0, 6 * s.ld * sizeof(double))
        return s

    # -- G along a segment ----------------------------------------------------------------------

    cdef int state_of(self, Py_ssize_t i, const int* label, double* state) except -1 nogil:
        cdef Py_ssize_t r, stride = self.shape.stride(i), cols = self.shape.n_cols(i)
        memset(state, 0, self.layout.theta_size(i) * sizeof(double))
        for r in range(self.shape.n_rows(i)):
            if label[r] >= cols:        # examples may have fewer than n_states
                return <int>no_such_column(i, r, label[r], cols)
            state[r * stride + label[r]] = 1
        return 0

    cdef int pool(self, Py_ssize_t i, const double* state, double* marginals) except -1 nogil:
        memcpy(marginals, state, self.layout.theta_size(i) * sizeof(double))
        return 0

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        cdef Py_ssize_t j
        cdef double total = 0
        for j in range(self.layout.theta_size(i)):
            if state[j] > 0:
                total -= state[j] * state[j] / 2 if self.euclidean else state[j] * log(state[j])
        return total

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        # For the entropy, d (log m + 1) has infinite limits where m is 0.
        cdef Py_ssize_t j
        cdef double total = 0, m, d
        for j in range(self.layout.theta_size(i)):
            d = b[j] - a[j]
            if d != 0:
                m = (1 - gamma) * a[j] + gamma * b[j]
                if self.euclidean:
                    total -= d * m
                elif m > 0:
                    total -= d * (log(m) + 1)
                else:
                    return INFINITY if d > 0 else -INFINITY
        return total


# -- a point of the polytope near the rows' answers ------------------------------------------------

cdef void _round_answers(Search* s) noexcept nogil:
    """trial <- a point of the polytope near q, exact but for the rounding of sums."""
    cdef Py_ssize_t r, c
    cdef double missing = 0, room = 0, x
    cdef double* row
    for c in range(s.ld):
        s.b[c] = 1 / (1 - s.g[c]) if s.g[c] < 0 else 1
        s.d[c] = 0
    for r in range(s.rows):
        row = s.trial + r * s.ld
        x = 1
        for c in range(s.ld):
            row[c] = s.q[r * s.ld + c] * s.b[c]
            s.d[c] += row[c]
            x -= row[c]
        s.a[r] = x if x > 0 else 0
        missing += s.a[r]
    for c in range(s.cols):
        s.d[c] = 1 - s.d[c] if s.d[c] < 1 else 0
        room += s.d[c]
    if missing <= 0 or room <= 0:
        return
    if not s.barred:
        for r in range(s.rows):
            if s.a[r] > 0:
                x = s.a[r] / room
                for c in range(s.cols):
                    s.trial[r * s.ld + c] += x * s.d[c]
        return
    # Forbidden pairs take nothing: what a row lacks comes along a path of allowed ones.
    missing = 0
    for r in range(s.rows):
        for c in range(4 * (s.rows + s.cols)):
            if not (s.a[r] > 0 and _flow(s, r)):
                break
        missing += s.a[r]
    if missing > 1e-13 * s.rows:
        # No path found: use the best assignment, a point of the polytope.
        memset(s.trial, 0, s.rows * s.ld * sizeof(double))
        for r in range(s.rows):
            s.trial[r * s.ld + s.column[r]] = 1


cdef bint _flow(Search* s, Py_ssize_t start) noexcept nogil:
    """Give row ``start`` what it lacks from a column with room, by way of rows that can move over.

    Breadth first over rows; a row that is reached through a column gives up its share of it.
    """
    cdef Py_ssize_t r, c, k, head = 0, n = 1, end = -1
    cdef double amount
    for c in range(s.cols):
        s.free[c] = -1          # the row that wants column c
    for r in range(s.rows):
        s.active[r] = -1        # the column that row r was reached through
    s.queue[0] = <int>start
    while head < n and end < 0:
        r = s.queue[head]
        head += 1
        for c in range(s.cols):
            if s.free[c] >= 0 or s.cost[r * s.ld + c] == INFINITY:
                continue
            s.free[c] = <int>r
            if s.d[c] > 0:
                end = c
                break
            for k in range(s.rows):
                if k != start and s.active[k] < 0 and s.trial[k * s.ld + c] > 0:
                    s.active[k] = <int>c
                    s.queue[n] = <int>k
                    n += 1
    if end < 0:
        return False
    amount = min(s.a[start], s.d[end])
    c = end
    while s.free[c] != start:
        r = s.free[c]
        c = s.active[r]
        amount = min(amount, s.trial[r * s.ld + c])
    s.a[start] -= amount
    s.d[end] -= amount
    c = end
    while True:
        r = s.free[c]
        s.trial[r * s.ld + c] += amount
        if r == start:
            return True
        c = s.active[r]
        s.trial[r * s.ld + c] -= amount


cdef double _rounded_value(const Search* s) noexcept nogil:
    cdef Py_ssize_t r, c
    cdef double total = 0, x
    for r in range(s.rows):
        for c in range(s.cols):
            x = s.trial[r * s.ld + c]
            if x > 0:
                total -= x * s.cost[r * s.ld + c] + (x * x / 2 if s.euclidean else x * log(x))
    return total


# -- the derivative: implicit, through the sums of the columns ---------------------------------------

cdef inline double _weight(const Search* s, Py_ssize_t r, Py_ssize_t c) noexcept nogil:
    # A row's Jacobian is diag(w) - w w' / sum w: w is a softmax, or the support on the simplex.
    cdef double q = s.q[r * s.ld + c]
    if s.euclidean:
        return 1 if q > NOTHING else 0
    return q


cdef void _move_row(const Search* s, Py_ssize_t r, const double* d, const double* prices,
                    double* out) noexcept nogil:
    # out <- how row r moves along d less the prices.
    cdef Py_ssize_t c
    cdef double w, mean = 0, mass = 0
    for c in range(s.cols):
        w = _weight(s, r, c)
        mass += w
        mean += w * (d[c] - prices[c])
    mean /= mass
    for c in range(s.cols):
        out[c] = _weight(s, r, c) * (d[c] - prices[c] - mean)


cdef void _mark_full(Search* s) noexcept nogil:
    """s.active <- whether a column's sum stays 1: it has a price, or no path to one with room.

    Without such a way, there are as many rows as columns, and one price may as well be 0.
    """
    cdef Py_ssize_t c, k, head = 0, n = 0
    for c in range(s.cols):
        s.active[c] = 1
        if not s.square and s.g[c] > ROOM:
            s.active[c] = 0
            s.queue[n] = <int>c
            n += 1
    while head < n:
        c = s.queue[head]
        head += 1
        for k in range(s.cols):
            if s.active[k] and s.H[c * s.ld + k] > COUPLED:
                s.active[k] = 0
                s.queue[n] = <int>k
                n += 1
    for c in range(s.cols):
        s.active[c] |= s.p[c] > NOTHING


cdef void _move_prices(Search* s) noexcept nogil:
    """s.d <- how prices move along the rows of s.trial, so that full columns stay full.

    It solves H d = b, b how the columns' sums would move at fixed prices.  H, the sum of the rows'
    Jacobians, is the Laplacian of a graph of columns.  Pivots are sums of the weights to columns that
    are left, so that nothing is subtracted (Grassmann, Taksar and Heyman).
    """
    cdef Py_ssize_t r, c, k, j, n = 0
    cdef int* free = s.free
    cdef double* W = s.H
    cdef double* b = s.b
    cdef double* moved = s.p_new
    cdef double* leak = s.g_new     # the part that goes to columns whose prices stay 0
    cdef double* row
    cdef double mass, factor
    memset(W, 0, s.cols * s.ld * sizeof(double))
    for c in range(s.ld):
        b[c] = s.d[c] = leak[c] = 0
    for r in range(s.rows):
        _move_row(s, r, s.trial + r * s.ld, s.d, moved)
        mass = 0
        for c in range(s.cols):
            b[c] += moved[c]
            mass += _weight(s, r, c)
        for c in range(s.cols):
            factor = _weight(s, r, c) / mass
            if factor > 0:
                for k in range(s.cols):
                    W[c * s.ld + k] += factor * _weight(s, r, k)
    _mark_full(s)
    for c in range(s.cols):
        if s.active[c]:
            free[n] = <int>c
            n += 1
    for j in range(n):
        for c in range(s.cols):
            if not s.active[c]:
                leak[free[j]] += W[free[j] * s.ld + c]
    # Eliminate from the last column; each pivot is stored on the diagonal.
    for j in range(n - 1, -1, -1):
        row = W + free[j] * s.ld
        mass = leak[free[j]]
        for k in range(j):
            mass += row[free[k]]
        row[free[j]] = mass
        if mass < COUPLED:
            continue
        for k in range(j):
            factor = row[free[k]] / mass
            if factor > 0:
                b[free[k]] += factor * b[free[j]]
                leak[free[k]] += factor * leak[free[j]]
                for c in range(j):
                    W[free[k] * s.ld + free[c]] += factor * row[free[c]]
    for j in range(n):
        row = W + free[j] * s.ld
        mass = b[free[j]]
        for k in range(j):
            mass += row[free[k]] * s.d[free[k]]
        s.d[free[j]] = mass / row[free[j]] if row[free[j]] >= COUPLED else 0.0
