"""Projections onto the polytope of assignments: doubly stochastic where rows are as many as columns.

``max G(mu) + <theta, mu>`` over mu >= 0 with rows that sum to 1 and columns that sum to 1 (to at most
1, where there are fewer rows).  Given prices p of the columns, every row is maximised alone, by a
softmax or a projection onto the simplex; what is left is to minimise the convex

    phi(p) = sum_r max_q [G(q) + <theta_r - p, q>] + sum_c p_c      (p >= 0 with fewer rows)

whose gradient is 1 less the sums of the columns.  The search starts at the prices of the best
assignment, where no score exceeds what its row takes by more than rounding, however large scores
are; then Sinkhorn's iteration (entropy) where it is quick, and Newton's method with the step length
searched.  phi is an upper bound at any prices; a point of the polytope comes from the rows' answers by
scaling down the columns that take too much and giving the rest to those that take too little.
"""

import numpy as np

from structsolve.blocks import aligned_zeros

cimport cython
from libc.math cimport INFINITY, exp, fabs, log
from libc.string cimport memcpy, memset
from structsolve.kernels cimport ss_kernel_table, ss_kernels
from structsolve.operators cimport Projection

from ._assignment cimport (
    Assignment, assignment_bytes, assignment_in, load_scores, solve_assignment,
)
from ._dense cimport solve_spd
from ._shape cimport PairShape

cdef enum:
    NEWTON_STEPS = 200
    HALVINGS = 30
    IDLE = 10       # steps without progress that end the search

cdef double TOLERANCE = 1e-10   # gap to stop at, relative to the value (to 1, if that is less)
cdef double SPREAD = 1e60       # scalings of Sinkhorn's iteration beyond which it starts anew


# Where things lie in work memory; rows are `ld` doubles.
cdef struct Search:
    Py_ssize_t rows, cols, ld
    bint square
    const double* cost      # -theta, infinite where forbidden and beyond the columns
    double* q               # answers of the rows
    double* trial
    double* H               # cols x ld
    double* factor          # cols x ld
    double* p               # prices; 0 beyond the columns
    double* p_new
    double* g               # 1 - sums of columns
    double* g_new
    double* d
    double* b
    double* a               # one per row
    int* free               # one per column: those whose prices may move
    int* active             # one per column
    int* queue              # one per column
    bint barred             # some pair is forbidden
    int* column             # the best assignment


cdef int _impossible(Py_ssize_t i) except -1 with gil:
    raise ValueError(
        f"example {i}: no assignment is possible: the scores of the pairs that it would need are "
        "-inf, NaN, beyond 1e300 or forbidden, so there are no marginals; allow more pairs, and "
        "check that the weights are finite"
    )


@cython.final
cdef class AssignmentProjection(Projection):
    """``max G(mu) + <theta, mu>`` over the polytope of assignments, with a bound.

    Parameters
    ----------
    shape : PairShape
    regularizer : {"entropy", "euclidean"}
        ``G = -sum mu log mu``, the entropy of the entries (not of the distribution of assignments,
        whose marginals are #P-hard), or ``-|mu|^2 / 2``.
    """

    cdef PairShape shape
    cdef bint euclidean
    cdef Py_ssize_t start
    cdef const ss_kernel_table* kernels

    def __init__(self, PairShape shape, regularizer):
        if regularizer not in ("entropy", "euclidean"):
            raise ValueError(f"regularizer is {regularizer!r}, expected 'entropy' or 'euclidean'")
        self.shape, self.euclidean = shape, regularizer == "euclidean"
        self.kernels = ss_kernels(8)
        self.exact = False
        self.has_term = True
        ld = (shape.max_cols + 7) // 8 * 8
        self.start = (assignment_bytes(shape.max_rows, shape.max_cols) + 63) // 64 * 64
        doubles = (2 * shape.max_rows + 2 * shape.max_cols + 6) * ld + shape.max_rows
        self.work_bytes = self.start + 8 * doubles + 12 * ld + 64

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.faces``."""
        return self.shape.limits(i)

    def solve(self, Py_ssize_t i, theta):
        """Marginals of example ``i``, their value, and an upper bound of the largest.

        Parameters
        ----------
        i : int
        theta : ndarray of float64
            Part scores, in the layout of the space.

        Returns
        -------
        marginals : ndarray
            In the layout of theta.
        value, bound : float
        """
        cdef Py_ssize_t size = self.limits(i)[0]
        cdef const double[::1] scores = np.ascontiguousarray(theta, dtype=np.float64)
        cdef double[::1] memory = aligned_zeros(self.work_bytes // 8 + 8)
        marginals = np.zeros(size)
        cdef double[::1] out = marginals
        cdef double value = 0, bound = 0
        if scores.shape[0] != size:
            raise ValueError(f"example {i}: theta has {scores.shape[0]} scores, expected {size}")
        with nogil:
            self.project_bounded(i, &scores[0], &out[0], &value, &bound, <char*>&memory[0])
        return marginals, value, bound

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     char* work) except -1 nogil:
        cdef double bound
        return self.project_bounded(i, theta, marginals, value, &bound, work)

    cdef int project_bounded(self, Py_ssize_t i, const double* theta, double* marginals,
                             double* value, double* bound, char* work) except -1 nogil:
        cdef Py_ssize_t rows = self.shape.rows[i], cols = self.shape.cols[i], r, c
        cdef Py_ssize_t stride = self.shape.stride(i)
        cdef Assignment task = assignment_in(rows, cols, work)
        cdef Search s
        cdef double phi, size, target = 1e-9, gap, found, scale, low
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
            # Prices have a level of their own; around zero they round least.
            low = s.p[0]
            for c in range(1, cols):
                low = min(low, s.p[c])
            for c in range(cols):
                s.p[c] -= low
        if not self.euclidean:
            self._sinkhorn(&s, target * cols)
        phi = self._rows(&s, s.p, s.g)
        bound[0] = phi
        # The best assignment is the first point known; where scores are large it is the answer.
        memset(marginals, 0, rows * stride * sizeof(double))
        value[0] = -rows / 2.0 if self.euclidean else 0
        for r in range(rows):
            marginals[r * stride + task.column[r]] = 1
            value[0] += theta[r * stride + task.column[r]]
        for step in range(NEWTON_STEPS):
            size = self._size(&s, s.p, s.g)
            if size <= target * cols or idle >= IDLE or step == NEWTON_STEPS - 1:
                self._round(&s)
                found = self._value(&s)
                if found > value[0]:
                    value[0] = found
                    for r in range(rows):
                        memcpy(marginals + r * stride, s.trial + r * s.ld, cols * sizeof(double))
                        memset(marginals + r * stride + cols, 0, (stride - cols) * sizeof(double))
                scale = fabs(value[0])
                if scale < 1:
                    scale = 1
                if bound[0] - value[0] <= TOLERANCE * scale or idle >= IDLE:
                    break
                target = min(target, size / cols) / 30
            done = self._newton(&s, &phi, &ridge)
            bound[0] = min(bound[0], phi)
            idle = 0 if done else idle + 1
        if bound[0] < value[0]:     # by rounding: both are the maximum
            bound[0] = value[0]
        return 0

    cdef Search _lay_out(self, Assignment* task, char* work) noexcept nogil:
        cdef Search s
        cdef double* x = <double*>work
        cdef Py_ssize_t r, c
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

    cdef double _size(self, const Search* s, const double* p, const double* g) noexcept nogil:
        # How far from optimal: sums of columns away from 1; below 1 counts where the price is not 0.
        cdef double total = 0
        cdef Py_ssize_t c
        for c in range(s.cols):
            if s.square or g[c] < 0:
                total += fabs(g[c])
            else:
                total += min(g[c], p[c])
        return total

    # -- the rows' answers at given prices ------------------------------------------------------

    cdef double _rows(self, Search* s, const double* p, double* g) noexcept nogil:
        """q <- the rows' answers, g <- the gradient; returns phi."""
        cdef Py_ssize_t r, c
        cdef double total = 0, top, low, mass
        cdef double* q
        cdef const double* cost
        for c in range(s.ld):
            g[c] = 1 if c < s.cols else 0
        for c in range(s.cols):
            total += p[c]
        for r in range(s.rows):
            q, cost = s.q + r * s.ld, s.cost + r * s.ld
            for c in range(s.ld):
                q[c] = -cost[c] - p[c]
            self.kernels.range(1, q, s.ld, s.cols, 0, &low, &top)
            if self.euclidean:
                total += _simplex(s.ld, q, top)
            else:
                self.kernels.exp_rows(1, q, s.ld, s.cols, top, q)
                mass = self.kernels.total(s.ld, q)
                total += top + log(mass)
                mass = 1 / mass
                for c in range(s.ld):
                    q[c] *= mass
            for c in range(s.ld):
                g[c] -= q[c]
        return total

    cdef void _sinkhorn(self, Search* s, double target) noexcept nogil:
        """Scale rows and columns in turn while that is quick; p <- the prices."""
        cdef Py_ssize_t r, c, it, most = 40 + 4 * s.cols
        cdef double low, top, size, before = INFINITY, x
        for r in range(s.rows):
            for c in range(s.ld):
                s.q[r * s.ld + c] = -s.cost[r * s.ld + c] - s.p[c]
            self.kernels.range(1, s.q + r * s.ld, s.ld, s.cols, 0, &low, &top)
            self.kernels.exp_rows(1, s.q + r * s.ld, s.ld, s.cols, top, s.q + r * s.ld)
        for c in range(s.ld):
            s.b[c] = 1 if c < s.cols else 0
            # A price is at least 0 where rows are few, so that a scaling is at most:
            s.d[c] = INFINITY if s.square else exp(min(s.p[c], 600))
        for it in range(most):
            self.kernels.dots(s.rows, s.q, s.ld, s.ld, s.b, s.a)
            for r in range(s.rows):
                s.a[r] = 1 / s.a[r]
            self.kernels.sumprod(s.rows, s.a, s.q, s.ld, s.ld, s.g)
            size, low, top = 0, INFINITY, 0
            for c in range(s.cols):
                x = s.g[c] * s.b[c]
                if s.square or x > 1 or s.b[c] < s.d[c]:
                    size += fabs(x - 1)
                s.g_new[c] = 1 / s.g[c]
                if s.g_new[c] > s.d[c]:
                    s.g_new[c] = s.d[c]
                low, top = min(low, s.g_new[c]), max(top, s.g_new[c])
            if not (low > 1 / SPREAD and top < SPREAD):
                break
            memcpy(s.b, s.g_new, s.cols * sizeof(double))
            if size <= target:
                break
            if it % 4 == 3:
                # Newton's method takes a few steps that cost about a scaling per column each.
                if not (size < before and (log(target / size) / log(size / before) * 4
                                           < 10 + 3 * s.cols)):
                    break
                before = size
        for c in range(s.cols):
            s.p[c] -= log(s.b[c])
            if not s.square and s.p[c] < 0:
                s.p[c] = 0

    # -- Newton's method ----------------------------------------------------------------------

    cdef bint _newton(self, Search* s, double* phi, double* ridge) noexcept nogil:
        """One step on the prices; False where rounding leaves nothing to gain."""
        cdef Py_ssize_t r, c, n_free = 0
        cdef int attempt
        cdef int* free = s.free
        cdef double step = 1, found, slope, noise
        cdef double before = self._size(s, s.p, s.g)
        cdef double near = min(before / s.cols, 0.1)
        # Prices at 0, or near it, that want to fall follow the gradient (Bertsekas).
        for c in range(s.cols):
            s.b[c] = 0
            if s.square or s.p[c] > near or s.g[c] < 0:
                free[n_free] = <int>c
                n_free += 1
            else:
                s.b[c] = -s.g[c]
        self._hessian(s)
        for attempt in range(8):
            _compress(s, free, n_free, ridge[0])
            for c in range(n_free):
                s.d[c] = -s.g[free[c]]
            if solve_spd(n_free, s.ld, s.factor, s.d):
                for c in range(n_free):
                    s.b[free[c]] = s.d[c]
                break
            ridge[0] *= 100
        noise = 1e-15 * (fabs(phi[0]) + s.cols)
        for attempt in range(HALVINGS):
            memcpy(s.p_new, s.p, s.ld * sizeof(double))
            slope = 0
            for c in range(s.cols):
                s.p_new[c] += step * s.b[c]
                if not s.square and s.p_new[c] < 0:
                    s.p_new[c] = 0
                slope += s.g[c] * (s.p_new[c] - s.p[c])
            found = self._rows(s, s.p_new, s.g_new)
            if found <= phi[0] + 1e-4 * slope + noise and slope <= 0:
                memcpy(s.p, s.p_new, s.ld * sizeof(double))
                memcpy(s.g, s.g_new, s.ld * sizeof(double))
                slope = phi[0] - found
                phi[0] = found
                if attempt == 0:
                    ridge[0] = max(ridge[0] / 100, 1e-13)
                elif attempt > 3:
                    ridge[0] = min(ridge[0] * 30, <double>s.rows)
                return slope > noise or self._size(s, s.p, s.g) < before / 2
            step *= 0.5
        # The curvature changes on the way; with a ridge beyond all of it the step is a gradient's,
        # which gains whatever there is to gain.
        phi[0] = self._rows(s, s.p, s.g)
        if ridge[0] >= s.rows:
            return False
        ridge[0] = min(ridge[0] * 1000, <double>s.rows)
        return True

    cdef void _hessian(self, Search* s) noexcept nogil:
        """H <- sum_r diag(q_r) - q_r q_r' for a softmax; of a simplex, its support over its size."""
        cdef Py_ssize_t r, c, k, n
        cdef int* active = s.active
        cdef double x
        cdef double* q
        if not self.euclidean:
            for c in range(s.cols):
                for k in range(s.ld):
                    s.H[c * s.ld + k] = -1
            self.kernels.outer(s.rows, s.cols, s.q, s.q, s.H, s.ld, s.ld, s.H)
            for c in range(s.cols):
                x = 0
                for r in range(s.rows):
                    x += s.q[r * s.ld + c] * (1 - s.q[r * s.ld + c])
                s.H[c * s.ld + c] = x
            return
        memset(s.H, 0, s.cols * s.ld * sizeof(double))
        for r in range(s.rows):
            q = s.q + r * s.ld
            n = 0
            for c in range(s.cols):
                if q[c] > 0:
                    active[n] = <int>c
                    n += 1
            x = 1.0 / n
            for k in range(n):
                for c in range(n):
                    s.H[active[k] * s.ld + active[c]] -= x
                s.H[active[k] * s.ld + active[k]] += 1

    # -- a point of the polytope ----------------------------------------------------------------

    cdef void _round(self, Search* s) noexcept nogil:
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
            # No way found: the best assignment is a point of the polytope.
            memset(s.trial, 0, s.rows * s.ld * sizeof(double))
            for r in range(s.rows):
                s.trial[r * s.ld + s.column[r]] = 1

    cdef double _value(self, const Search* s) noexcept nogil:
        cdef Py_ssize_t r, c
        cdef double total = 0, x
        for r in range(s.rows):
            for c in range(s.cols):
                x = s.trial[r * s.ld + c]
                if x > 0:
                    total -= x * s.cost[r * s.ld + c] + (x * x / 2 if self.euclidean else x * log(x))
        return total

    # -- G along a segment ----------------------------------------------------------------------

    cdef Py_ssize_t state_size(self, Py_ssize_t i) noexcept nogil:
        return self.shape.rows[i] * self.shape.stride(i)

    cdef int state_of(self, Py_ssize_t i, const int* label, double* state) except -1 nogil:
        cdef Py_ssize_t r, stride = self.shape.stride(i)
        memset(state, 0, self.shape.rows[i] * stride * sizeof(double))
        for r in range(self.shape.rows[i]):
            state[r * stride + label[r]] = 1
        return 0

    cdef int pool(self, Py_ssize_t i, const double* state, double* marginals) except -1 nogil:
        memcpy(marginals, state, self.state_size(i) * sizeof(double))
        return 0

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        cdef Py_ssize_t j
        cdef double total = 0
        for j in range(self.state_size(i)):
            if state[j] > 0:
                total -= state[j] * state[j] / 2 if self.euclidean else state[j] * log(state[j])
        return total

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        # Of the entropy, d (log m + 1) has infinite limits where m is 0.
        cdef Py_ssize_t j
        cdef double total = 0, m, d
        for j in range(self.state_size(i)):
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


cdef void _compress(Search* s, const int* free, Py_ssize_t n, double ridge) noexcept nogil:
    """factor <- the lower triangle of H over free prices, and a ridge."""
    cdef Py_ssize_t j, k
    cdef const double* row
    for j in range(n):
        row = s.H + free[j] * s.ld
        for k in range(j + 1):
            s.factor[j * s.ld + k] = row[free[k]]
        s.factor[j * s.ld + j] += ridge


cdef double _simplex(Py_ssize_t n, double* x, double top) noexcept nogil:
    """x <- argmax <x, q> - |q|^2 / 2 over the simplex (Michelot); returns the maximum."""
    cdef Py_ssize_t j, count = 0, before = -1
    cdef double total = 0, tau = -1, mass = 0, value = 0, q
    # Relative to the largest, so that large scores round no more than their differences; what is
    # less by 1 or more is 0 for sure.
    while True:
        count, total = 0, 0
        for j in range(n):
            if x[j] - top > tau:
                total += x[j] - top
                count += 1
        # The support only shrinks; by rounding it might come and go for ever.
        if count == 0 or (before >= 0 and count >= before):
            break
        before = count
        tau = (total - 1) / count
    for j in range(n):
        if x[j] - top > tau:
            mass += x[j] - top - tau
    for j in range(n):
        q = (x[j] - top - tau) / mass if x[j] - top > tau else 0
        if q > 0:
            value += q * (x[j] - q / 2)
        x[j] = q
    return value
