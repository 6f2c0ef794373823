"""Dual coordinate ascent over cached rivals: tables of weights, scans for rivals, and the passes.

Everything is in units of the regularisation constant: the problem is ``1/2 ||W||^2 +
sum_i c_i H_i(W)`` with ``c_i = s_i / alpha``.  Example i has a dual variable ``b_ij >= 0`` for each
cached rival j, the truth has the rest of c_i, and ``w_y = w_y + sum_j b_ij x_i``, ``w_j = w_j -
b_ij x_i``.  The block step of an example is a projection of k + 1 numbers, because the classes of
an example share its features (Crammer, Singer 2001; Keerthi et al. 2008).
"""

import numpy as np

cimport cython
from libc.math cimport INFINITY, exp, fabs, log
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from ..algorithms.simplex_projection cimport simplex_threshold

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define SS_PREFETCH(address) __builtin_prefetch(address)
    #else
    #define SS_PREFETCH(address) ((void)(address))
    #endif
    """
    void SS_PREFETCH(const void* address) noexcept nogil

cdef enum:
    MARGIN = 0
    SQUARED_HINGE = 1
    SPARSEMAP = 2
    CRF = 3
    MAX_MIN = 4

KINDS = {"margin": MARGIN, "squared-hinge": SQUARED_HINGE, "sparsemap": SPARSEMAP, "crf": CRF,
         "max-min": MAX_MIN}

# A visit that moves no dual variable by this share of c_i is none; nor one that changes no score by
# as much.
cdef double STILL = 1e-7
# Visits that an example may miss after visits that moved nothing, at most.
cdef int MOST_IDLE = 3


# ---- block steps: m <- argmax G(m) + <theta, m> - kappa / 2 |m - m0|^2 over the simplex ----------

cdef void hinge_step(Py_ssize_t n, const double* theta, double* m, double kappa, bint squared,
                     double* p, double* sorted_p) noexcept nogil:
    """Margin, or its square: entries 1 .. n of m, whose sum is at most 1, or free if squared.

    Entry 0 is the truth's: the rest to 1.
    """
    cdef Py_ssize_t j, k
    cdef double total = 0, tau = 0, t, held = 0
    for j in range(1, n + 1):
        held += m[j]
    for j in range(1, n + 1):
        p[j] = (1 + theta[j] - theta[0]) / kappa + m[j] + held
        k = j
        while k > 1 and sorted_p[k - 1] < p[j]:
            sorted_p[k] = sorted_p[k - 1]
            k -= 1
        sorted_p[k] = p[j]
    # The sum of the entries is tau; squared: tau / (1 + 1 / (2 kappa)).
    for j in range(1, n + 1):
        t = (total + sorted_p[j]) / (j + (1 / (1 + 0.5 / kappa) if squared else 1.0))
        if sorted_p[j] <= t:
            break
        total += sorted_p[j]
        tau = t
    if tau > 1 and not squared:
        total = 0
        for j in range(1, n + 1):
            t = (total + sorted_p[j] - 1) / j
            if sorted_p[j] <= t:
                break
            total += sorted_p[j]
            tau = t
    held = 0
    for j in range(1, n + 1):
        m[j] = p[j] - tau if p[j] > tau else 0.0
        held += m[j]
    m[0] = 1 - held


cdef void square_step(Py_ssize_t n, const double* theta, double* m, double kappa,
                      double* p) noexcept nogil:
    """SparseMAP: G = (1 - |m|^2) / 2."""
    cdef Py_ssize_t j
    cdef double tau
    for j in range(n + 1):
        p[j] = (theta[j] - theta[0] + kappa * m[j]) / (1 + kappa)
    tau = simplex_threshold(n + 1, p)
    for j in range(n + 1):
        m[j] = p[j] - tau if p[j] > tau else 0.0


cdef double log_share(double t, double kappa) noexcept nogil:
    """The u with u + kappa e^u = t: Newton's method, from the right of the root, is monotone."""
    cdef double u = t, step
    cdef int k
    if t > 1 and kappa > 0:
        u = log(t / kappa)
        u = t if u > t else u
    for k in range(30):
        step = kappa * exp(u)
        step = (u + step - t) / (1 + step)
        u -= step
        if fabs(step) < 1e-12 * (1 + fabs(u)):
            break
    return u


cdef void entropy_step(Py_ssize_t n, const double* theta, double* m, double kappa,
                       double* t, double* fresh) noexcept nogil:
    """CRF: log m_j + kappa m_j = theta_j + kappa m0_j - nu, with the nu at which m sums to 1."""
    cdef Py_ssize_t j
    cdef int k
    cdef double low, high, nu, total, slope, top = -INFINITY
    for j in range(n + 1):
        t[j] = theta[j] + kappa * m[j]
        top = t[j] if t[j] > top else top
    # At nu = top - kappa the largest entry is 1; at top - kappa / (n + 1) + log(n + 1) none is
    # above 1 / (n + 1).
    low, high = top - kappa, top - kappa / (n + 1) + log(n + 1.0)
    nu = low
    for k in range(60):
        total = slope = 0
        for j in range(n + 1):
            fresh[j] = exp(log_share(t[j] - nu, kappa))
            total += fresh[j]
            slope += fresh[j] / (1 + kappa * fresh[j])
        if fabs(total - 1) < 1e-10:
            break
        if total > 1:
            low = nu
        else:
            high = nu
        nu += (total - 1) / slope
        if not low <= nu <= high:
            nu = 0.5 * (low + high)
    for j in range(n + 1):
        m[j] = fresh[j] / total


cdef void max_min_step(Py_ssize_t n, const double* theta, double* m, double kappa,
                       double* p) noexcept nogil:
    """Max-min margin of the 0-1 loss: G = 1 - max_j m_j.

    m_j = min(u_j, t) with u the projection onto the simplex of sum 1 + 1 / kappa, of which
    sum_j max(u_j - t, 0) = 1 / kappa lies above the largest entry t.
    """
    cdef Py_ssize_t j
    cdef double tau, whole = 1 + 1 / kappa
    for j in range(n + 1):
        p[j] = ((theta[j] - theta[0]) / kappa + m[j]) / whole
    tau = simplex_threshold(n + 1, p)
    for j in range(n + 1):
        m[j] = whole * (p[j] - tau) if p[j] > tau else 0.0
        p[j] = m[j] * kappa
    tau = simplex_threshold(n + 1, p) / kappa
    for j in range(n + 1):
        m[j] = m[j] if m[j] < tau else tau


cdef double entropy_of(Py_ssize_t n, const double* m) noexcept nogil:
    cdef double total = 0
    cdef Py_ssize_t j
    for j in range(n):
        if m[j] > 0:
            total -= m[j] * log(m[j])
    return total


# ---- values: H on the classes that are known, and the most it can be with the others ------------

cdef void squares_value(Py_ssize_t n, const double* z, double rest, double count,
                        double* value) noexcept nogil:
    """max_m (1 - |m|^2) / 2 + <z, m>; z falls, and `count` further numbers are `rest`."""
    cdef Py_ssize_t j = 0
    cdef double mass = 0, total = 0, squares = 0, tau = -INFINITY
    cdef bint left = count > 0 and rest > -INFINITY
    while j < n or left:
        if left and (j == n or rest >= z[j]):
            if rest <= tau:
                break
            mass += count
            total += count * rest
            squares += count * rest * rest
            left = False
        else:
            if z[j] <= tau:
                break
            mass += 1
            total += z[j]
            squares += z[j] * z[j]
            j += 1
        tau = (total - 1) / mass
    value[0] = 0.5 * (squares - mass * tau * tau) + 0.5


cdef void max_min_value(Py_ssize_t n, const double* z, double rest, double count,
                        double* value) noexcept nogil:
    """max_m (z_(1) + ... + z_(m) + m - 1) / m; z falls, and `count` further numbers are `rest`."""
    cdef Py_ssize_t j = 0
    cdef double mass = 0, total = 0, best = -INFINITY, mean
    cdef bint left = count > 0 and rest > -INFINITY
    while j < n or left:
        if left and (j == n or rest >= z[j]):
            # Along equal numbers the mean goes one way: none of them, or all.
            mass += count
            total += count * (rest + 1)
            left = False
        else:
            mass += 1
            total += z[j] + 1
            j += 1
        mean = (total - 1) / mass
        best = mean if mean > best else best
    value[0] = best


cdef void entropy_value(Py_ssize_t n, const double* z, double rest, double count,
                        double* value) noexcept nogil:
    """log sum exp z; `count` further numbers are `rest`."""
    cdef Py_ssize_t j
    cdef double top = z[0], total = 0
    if count > 0 and rest > top:
        top = rest
    for j in range(n):
        total += exp(z[j] - top)
    if count > 0:
        total += count * exp(rest - top)
    value[0] = top + log(total)


cdef int value_bounds(int kind, Py_ssize_t n, double* z, double rest, double count,
                      double* known, double* upper) noexcept nogil:
    """known <- H on scores z (less the truth's, which is among them as 0); upper <- at most H.

    The other `count` classes score at most `rest` each.  H grows with every score, so this many
    classes at `rest` have at least the H of the real ones.  z is sorted, falling.
    """
    cdef Py_ssize_t j, k
    cdef double t
    if rest == INFINITY:
        upper[0] = INFINITY
    if kind == MARGIN or kind == SQUARED_HINGE:
        known[0] = 0
        for j in range(1, n):
            known[0] = 1 + z[j] if 1 + z[j] > known[0] else known[0]
        t = 1 + rest if count > 0 and 1 + rest > known[0] else known[0]
        if kind == SQUARED_HINGE:
            known[0] *= known[0]
            t *= t
        upper[0] = t
        return 0
    for j in range(1, n):
        t = z[j]
        k = j
        while k > 0 and z[k - 1] < t:
            z[k] = z[k - 1]
            k -= 1
        z[k] = t
    if kind == CRF:
        entropy_value(n, z, 0, 0, known)
        if rest < INFINITY:
            entropy_value(n, z, rest, count, upper)
    elif kind == SPARSEMAP:
        squares_value(n, z, 0, 0, known)
        if rest < INFINITY:
            squares_value(n, z, rest, count, upper)
    else:
        max_min_value(n, z, 0, 0, known)
        if rest < INFINITY:
            max_min_value(n, z, rest, count, upper)
    return 0


# ---- weights by feature ---------------------------------------------------------------------------

cdef struct Row:
    int32_t capacity, size
    int32_t* classes        # open addressing, -1 is free; NULL: a weight for every class
    float* weights
    float low, high         # of the weights, 0 among them


cdef inline float* find(const Row* row, int32_t c) noexcept nogil:
    """Where the weight of class c is; NULL where none is kept."""
    cdef uint32_t mask, j
    if row.capacity == 0:
        return NULL
    if row.classes == NULL:
        return row.weights + c
    mask = <uint32_t>row.capacity - 1
    j = ((<uint32_t>c * <uint32_t>2654435769) >> 7) & mask
    while row.classes[j] != c:
        if row.classes[j] < 0:
            return NULL
        j = (j + 1) & mask
    return row.weights + j


cdef int grow(Row* row, int32_t n_classes) except -1 nogil:
    cdef int32_t capacity = 2 * row.capacity if row.capacity else 4, j
    cdef int32_t* classes = NULL
    cdef float* weights
    cdef bint dense = capacity > n_classes // 2
    cdef float* place
    cdef Row old = row[0]
    if dense:
        capacity = n_classes
    else:
        classes = <int32_t*>malloc(capacity * sizeof(int32_t))
        if classes == NULL:
            with gil:
                raise MemoryError("no memory for weights")
        memset(classes, 255, capacity * sizeof(int32_t))
    weights = <float*>calloc(capacity, sizeof(float))
    if weights == NULL:
        free(classes)
        with gil:
            raise MemoryError("no memory for weights")
    row.classes, row.weights, row.capacity = classes, weights, capacity
    for j in range(old.capacity):
        if old.classes != NULL and old.classes[j] >= 0:
            place = claim(row, old.classes[j])
            place[0] = old.weights[j]
    free(old.classes)
    free(old.weights)
    return 0


cdef float* claim(Row* row, int32_t c) noexcept nogil:
    """The place of class c, which is not kept yet; there is room."""
    cdef uint32_t mask, j
    if row.classes == NULL:
        return row.weights + c
    mask = <uint32_t>row.capacity - 1
    j = ((<uint32_t>c * <uint32_t>2654435769) >> 7) & mask
    while row.classes[j] >= 0:
        j = (j + 1) & mask
    row.classes[j] = c
    return row.weights + j


cdef int add(Row* row, int32_t c, float v, int32_t n_classes) except -1 nogil:
    cdef float* place = find(row, c)
    if place == NULL:
        if 4 * (row.size + 1) > 3 * row.capacity:
            grow(row, n_classes)
        row.size += 1
        place = claim(row, c)
    place[0] += v
    return 0


cdef class Table:
    """Weights of classes by feature, as they grow in training."""

    cdef Row* rows
    cdef readonly Py_ssize_t n_features
    cdef readonly int32_t n_classes

    def __cinit__(self, Py_ssize_t n_features, int32_t n_classes):
        self.n_features, self.n_classes = n_features, n_classes
        self.rows = <Row*>calloc(n_features + 1, sizeof(Row))
        if self.rows == NULL:
            raise MemoryError(f"no memory for {n_features} features")

    def __dealloc__(self):
        cdef Py_ssize_t f
        if self.rows != NULL:
            for f in range(self.n_features):
                free(self.rows[f].classes)
                free(self.rows[f].weights)
            free(self.rows)

    def fill(self, const int64_t[::1] indptr, const int32_t[::1] classes, const float[::1] weights):
        """Take over a matrix by feature."""
        cdef Py_ssize_t f
        cdef int64_t k
        with nogil:
            for f in range(self.n_features):
                for k in range(indptr[f], indptr[f + 1]):
                    add(&self.rows[f], classes[k], weights[k], self.n_classes)

    def matrix(self):
        """Return the weights that are not zero as arrays of a CSR matrix, classes ascending."""
        cdef Py_ssize_t f, k = 0
        cdef int32_t j, c
        indptr = np.zeros(self.n_features + 1, np.int64)
        cdef int64_t[::1] ptr = indptr
        for f in range(self.n_features):
            for j in range(self.rows[f].capacity):
                k += self.rows[f].weights[j] != 0
            ptr[f + 1] = k
        indices, data = np.empty(k, np.int32), np.empty(k, np.float32)
        cdef int32_t[::1] index = indices
        cdef float[::1] value = data
        k = 0
        for f in range(self.n_features):
            for j in range(self.rows[f].capacity):
                if self.rows[f].weights[j] != 0:
                    index[k] = j if self.rows[f].classes == NULL else self.rows[f].classes[j]
                    value[k] = self.rows[f].weights[j]
                    k += 1
        return indptr, indices, data

    @property
    def nbytes(self):
        """Bytes taken."""
        cdef Py_ssize_t f, total = self.n_features * sizeof(Row)
        for f in range(self.n_features):
            total += self.rows[f].capacity * (4 if self.rows[f].classes == NULL else 8)
        return total

    def measure(self):
        """Set the ranges of the weights; return the sum of their squares, as matrix() has them."""
        cdef Py_ssize_t f
        cdef int32_t j
        cdef Row* row
        with nogil:
            for f in range(self.n_features):
                row = &self.rows[f]
                row.low = row.high = 0
                for j in range(row.capacity):
                    row.low = row.weights[j] if row.weights[j] < row.low else row.low
                    row.high = row.weights[j] if row.weights[j] > row.high else row.high
        data = self.matrix()[2].astype(np.float64)
        return float(np.sum(data * data))

    def top(self, const int64_t[::1] indptr, const int32_t[::1] indices, const float[::1] data,
            const int32_t[::1] exclude, Py_ssize_t first, Py_ssize_t last, double epsilon,
            int32_t[:, ::1] ids, float[:, ::1] scores, double[::1] bounds):
        """The k best classes of the rows first .. last - 1; return the weights read."""
        cdef Py_ssize_t i, most = 0, k = ids.shape[1]
        cdef int64_t entries = 0
        for i in range(first, last):
            most = max(most, indptr[i + 1] - indptr[i])
        cdef float[::1] row = np.empty(self.n_classes + 1, np.float32)
        cdef double[::1] gain = np.empty(most + 1)
        cdef int32_t[::1] order = np.empty(most + 1, np.int32)
        with nogil:
            for i in range(first, last):
                bounds[i] = self.score(indptr[i + 1] - indptr[i], &indices[0] + indptr[i],
                                       &data[0] + indptr[i], epsilon, &row[0], &gain[0],
                                       &order[0], &entries)
                self.best(&row[0], exclude[i], k, &ids[i, 0], &scores[i, 0])
        return entries

    cdef double score(self, Py_ssize_t m, const int32_t* x, const float* v, double epsilon,
                      float* score, double* gain, int32_t* order, int64_t* entries) noexcept nogil:
        cdef Py_ssize_t k, j, q
        cdef int32_t c
        cdef double used = 0, whole
        cdef Row* row
        cdef int32_t n_classes = self.n_classes
        memset(score, 0, (n_classes + 1) * sizeof(float))
        if epsilon > 0:
            for k in range(m):
                row = &self.rows[x[k]]
                gain[k] = 0
                if row.capacity:
                    gain[k] = fabs(v[k]) * (row.high - row.low) / row.capacity
                j = k
                while j > 0 and gain[order[j - 1]] > gain[k]:
                    order[j] = order[j - 1]
                    j -= 1
                order[j] = <int32_t>k
            for j in range(m):
                q = order[j]
                whole = gain[q] * self.rows[x[q]].capacity
                if used + whole > epsilon:
                    break
                used += whole
                gain[q] = -1
        for k in range(m):
            row = &self.rows[x[k]]
            if epsilon > 0 and gain[k] < 0:
                continue
            entries[0] += row.capacity
            if row.classes == NULL:
                for j in range(row.capacity):
                    score[j] += v[k] * row.weights[j]
            else:
                for j in range(row.capacity):
                    c = row.classes[j]
                    score[c if c >= 0 else n_classes] += v[k] * row.weights[j]
        return used

    cdef void best(self, const float* score, int32_t without, Py_ssize_t k, int32_t* ids,
                   float* scores) noexcept nogil:
        """The k best but one; of equal ones the first."""
        cdef Py_ssize_t c, first, last, j, n = 0
        cdef float least = -INFINITY, top
        for first in range(0, self.n_classes, 64):
            last = min(first + 64, <Py_ssize_t>self.n_classes)
            top = -INFINITY
            for c in range(first, last):
                top = score[c] if score[c] > top else top
            if n == k and not top > least:
                continue
            for c in range(first, last):
                if c == without or (n == k and not score[c] > least):
                    continue
                j = n if n < k else k - 1
                n = min(n + 1, k)
                while j > 0 and scores[j - 1] < score[c]:
                    scores[j], ids[j] = scores[j - 1], ids[j - 1]
                    j -= 1
                scores[j], ids[j] = score[c], <int32_t>c
                least = scores[n - 1]
        for j in range(n, k):
            ids[j], scores[j] = -1, -INFINITY


# ---- the ascent ------------------------------------------------------------------------------------

cdef class DualAscent:
    """Dual variables of all examples, their cached rivals, and the passes over them.

    Parameters
    ----------
    table : Table
        The weights; zero at first.
    indptr, indices, data : ndarray
        Rows of features (CSR, float32).
    y : ndarray of int32
        True classes.
    shares : ndarray of float64
        The c_i.
    kind : str
        A key of ``KINDS``.
    most : int
        Rivals that an example keeps at most.
    """

    cdef readonly Table table
    cdef const int64_t[::1] indptr
    cdef const int32_t[::1] indices
    cdef const float[::1] data
    cdef const int32_t[::1] y
    cdef const double[::1] shares
    cdef double[::1] norms
    cdef int kind
    cdef readonly Py_ssize_t n, most, longest
    # The cache of example i: rivals starts[i] .. starts[i + 1] - 1 and their dual variables.
    cdef readonly object starts, rivals, variables
    cdef int64_t[::1] starts_view
    cdef int32_t[::1] rivals_view
    cdef float[::1] variables_view
    cdef signed char[::1] idle, wait
    cdef float** places

    def __cinit__(self, *arguments, **named):
        self.places = NULL

    def __init__(self, Table table not None, const int64_t[::1] indptr not None,
                 const int32_t[::1] indices not None, const float[::1] data not None,
                 const int32_t[::1] y not None, const double[::1] shares not None, str kind,
                 Py_ssize_t most):
        cdef Py_ssize_t i, k
        cdef double total
        self.table, self.indptr, self.indices, self.data = table, indptr, indices, data
        self.y, self.shares, self.kind = y, shares, KINDS[kind]
        self.n, self.most = y.shape[0], most
        self.norms = np.empty(self.n)
        for i in range(self.n):
            total = 0
            for k in range(indptr[i], indptr[i + 1]):
                total += <double>data[k] * data[k]
            self.norms[i] = total
            self.longest = max(self.longest, indptr[i + 1] - indptr[i])
        self.idle, self.wait = np.zeros(self.n, np.int8), np.zeros(self.n, np.int8)
        self.places = <float**>malloc((self.longest + 1) * (most + 1) * sizeof(float*))
        if self.places == NULL:
            raise MemoryError("no memory for the places of an example's weights")
        self.keep(np.zeros(self.n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))

    def __dealloc__(self):
        free(self.places)

    def keep(self, starts, rivals, variables):
        """Take these caches."""
        self.starts, self.rivals, self.variables = starts, rivals, variables
        self.starts_view = starts
        # A view needs an element to point to.
        self.rivals_view = rivals if len(rivals) else np.zeros(1, np.int32)
        self.variables_view = variables if len(variables) else np.zeros(1, np.float32)
        self.idle[:] = 0
        self.wait[:] = 0

    def renew(self, const int32_t[:, ::1] ids not None, const signed char[:, ::1] wanted not None):
        """Forget rivals without dual variables; add the wanted ones, as far as there is room."""
        cdef Py_ssize_t i, j, k
        cdef int64_t total = 0
        starts = np.zeros(self.n + 1, np.int64)
        cdef int64_t[::1] start = starts
        cdef int32_t[::1] rivals
        cdef float[::1] variables
        cdef int step
        new_rivals = new_variables = None
        for step in range(2):
            if step:
                new_rivals, new_variables = np.empty(total, np.int32), np.empty(total, np.float32)
                rivals = new_rivals if total else np.zeros(1, np.int32)
                variables = new_variables if total else np.zeros(1, np.float32)
            with nogil:
                total = 0
                for i in range(self.n):
                    start[i] = total
                    for j in range(self.starts_view[i], self.starts_view[i + 1]):
                        if self.variables_view[j] > 0 or self.is_wanted(
                                self.rivals_view[j], ids.shape[1], &ids[i, 0], &wanted[i, 0]):
                            if step:
                                rivals[total] = self.rivals_view[j]
                                variables[total] = self.variables_view[j]
                            total += 1
                    for k in range(ids.shape[1]):
                        if total - start[i] == self.most:
                            break
                        if not wanted[i, k] or self.has(i, ids[i, k]):
                            continue
                        if step:
                            rivals[total], variables[total] = ids[i, k], 0
                        total += 1
                start[self.n] = total
        self.keep(starts, new_rivals, new_variables)

    cdef bint is_wanted(self, int32_t c, Py_ssize_t n, const int32_t* ids,
                        const signed char* wanted) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(n):
            if ids[k] == c:
                return wanted[k]
        return False

    cdef bint has(self, Py_ssize_t i, int32_t c) noexcept nogil:
        cdef Py_ssize_t j
        for j in range(self.starts_view[i], self.starts_view[i + 1]):
            if self.rivals_view[j] == c:
                return True
        return False

    def run(self, const int64_t[::1] order not None, Py_ssize_t first, Py_ssize_t last):
        """Visit the examples order[first .. last - 1]; return how many moved."""
        cdef Py_ssize_t t, moved = 0
        cdef int64_t i
        cdef double[:, ::1] work = np.zeros((4, self.most + 16))
        with nogil:
            for t in range(first, last):
                i = order[t]
                if self.wait[i] > 0:
                    self.wait[i] -= 1
                elif self.visit(i, &work[0, 0], &work[1, 0], &work[2, 0], &work[3, 0]):
                    moved += 1
                    self.idle[i] = 0
                else:
                    self.idle[i] = min(self.idle[i] + 1, MOST_IDLE)
                    self.wait[i] = self.idle[i]
        return moved

    cdef bint visit(self, int64_t i, double* theta, double* m, double* p,
                    double* q) except -1 nogil:
        cdef Py_ssize_t n = self.starts_view[i + 1] - self.starts_view[i], j, k
        cdef int64_t start = self.starts_view[i]
        cdef int32_t* rivals = &self.rivals_view[0] + start
        cdef float* b = &self.variables_view[0] + start
        cdef Py_ssize_t length = self.indptr[i + 1] - self.indptr[i]
        cdef const int32_t* x = &self.indices[0] + self.indptr[i]
        cdef const float* v = &self.data[0] + self.indptr[i]
        cdef double c = self.shares[i], kappa = c * self.norms[i], up = 0, largest = 0
        cdef float** places = self.places
        cdef float* place
        cdef Row* row
        cdef bint missing
        if n == 0 or not c > 0:
            return False
        kappa = kappa if kappa > 1e-9 else 1e-9
        for j in range(n + 1):
            theta[j] = 0
        for k in range(length):
            if k + 8 < length:
                row = &self.table.rows[x[k + 8]]
                if row.classes != NULL:
                    SS_PREFETCH(row.classes)
                    SS_PREFETCH(row.weights)
                elif row.capacity:
                    SS_PREFETCH(row.weights + self.y[i])
            row = &self.table.rows[x[k]]
            for j in range(n + 1):
                place = find(row, rivals[j - 1] if j else self.y[i])
                places[j] = place
                if place != NULL:
                    theta[j] += <double>v[k] * place[0]
            places += n + 1
        m[0] = 1
        for j in range(n):
            m[j + 1] = b[j] / c
            m[0] -= m[j + 1]
        if m[0] < 0 and self.kind != SQUARED_HINGE:
            m[0] = 0        # by rounding
        if self.kind == MARGIN or self.kind == SQUARED_HINGE:
            hinge_step(n, theta, m, kappa, self.kind == SQUARED_HINGE, p, q)
        elif self.kind == SPARSEMAP:
            square_step(n, theta, m, kappa, p)
        elif self.kind == CRF:
            entropy_step(n, theta, m, kappa, p, q)
        else:
            max_min_step(n, theta, m, kappa, p)
        for j in range(n):
            p[j] = <double><float>(c * m[j + 1]) - b[j]
            largest = fabs(p[j]) if fabs(p[j]) > largest else largest
            up += p[j]
        if largest <= STILL * c or largest * self.norms[i] <= STILL and self.norms[i] > 0:
            return False
        for j in range(n):
            b[j] = <float>(c * m[j + 1])
        places = self.places
        for k in range(length):
            row = &self.table.rows[x[k]]
            missing = places[0] == NULL
            for j in range(n):
                missing = missing or (places[j + 1] == NULL and p[j] != 0)
            if missing:
                # What is added may move the others.
                add(row, self.y[i], <float>(up * v[k]), self.table.n_classes)
                for j in range(n):
                    if p[j] != 0:
                        add(row, rivals[j], <float>(-p[j] * v[k]), self.table.n_classes)
            else:
                places[0][0] += <float>(up * v[k])
                for j in range(n):
                    if p[j] != 0:
                        places[j + 1][0] -= <float>(p[j] * v[k])
            places += n + 1
        return True

    def terms(self):
        """Return the sum of c_i G_i at the dual variables."""
        cdef Py_ssize_t i, j, n
        cdef double total = 0, held, c, squares, top, term
        cdef double[::1] m = np.zeros(self.most + 16)
        with nogil:
            for i in range(self.n):
                c = self.shares[i]
                n = self.starts_view[i + 1] - self.starts_view[i]
                if n == 0 or not c > 0:
                    continue
                held = squares = 0
                for j in range(n):
                    m[j + 1] = self.variables_view[self.starts_view[i] + j] / c
                    held += m[j + 1]
                    squares += m[j + 1] * m[j + 1]
                if self.kind == MARGIN:
                    total += c * held
                    continue
                if self.kind == SQUARED_HINGE:
                    total += c * (held - 0.25 * held * held)
                    continue
                m[0] = 1 - held if held < 1 else 0.0
                if self.kind == SPARSEMAP:
                    term = 0.5 * (1 - squares - m[0] * m[0])
                elif self.kind == CRF:
                    term = entropy_of(n + 1, &m[0])
                else:
                    top = 0
                    for j in range(n + 1):
                        top = m[j] if m[j] > top else top
                    term = 1 - top
                total += c * term
        return total

    def certify(self, Py_ssize_t first, Py_ssize_t last, const int32_t[:, ::1] ids not None,
                const float[:, ::1] scores not None, const double[::1] bounds not None,
                double[::1] known not None, double[::1] upper not None,
                signed char[:, ::1] wanted not None):
        """Bound H of the examples first .. last - 1 by what a scan gave.

        Parameters
        ----------
        ids, scores : ndarray of shape (n, k)
            The best rivals of each example, best first, and their scores, which may be inexact.
        bounds : ndarray of shape (n,)
            No rival scores more than so much above its score here; those that are not here, above
            the last of these.
        known, upper : ndarray of shape (n,)
            Take H on these rivals, with exact scores, and the most that it can be.
        wanted : ndarray of int8 of shape (n, k)
            Takes which of the rivals would gain a dual variable.
        """
        cdef Py_ssize_t i, j, k, K = ids.shape[1], n
        cdef double[::1] theta = np.empty(K + 1)
        cdef double rest, count
        cdef const float* place
        cdef const Row* row
        with nogil:
            for i in range(first, last):
                n = K
                while n > 0 and ids[i, n - 1] < 0:
                    n -= 1
                for j in range(n + 1):
                    theta[j] = 0
                for k in range(self.indptr[i], self.indptr[i + 1]):
                    row = &self.table.rows[self.indices[k]]
                    for j in range(n + 1):
                        place = find(row, ids[i, j - 1] if j else self.y[i])
                        if place != NULL:
                            theta[j] += <double>self.data[k] * place[0]
                count = self.table.n_classes - 1 - n
                rest = scores[i, n - 1] + bounds[i] - theta[0] if n else INFINITY
                for j in range(1, n + 1):
                    theta[j] -= theta[0]
                    wanted[i, j - 1] = self.kind == CRF or 1 + theta[j] > 0
                for j in range(n, K):
                    wanted[i, j] = 0
                theta[0] = 0
                value_bounds(self.kind, n + 1, &theta[0], rest if count > 0 else -INFINITY, count,
                             &known[i], &upper[i])
