"""Dual coordinate ascent over cached rivals: dual variables, and the passes.

The objective is divided by alpha: ``1/2 ||W||^2 + sum_i c_i H_i(W)`` with ``c_i = s_i / alpha``.
Example i has a dual variable ``b_ij >= 0`` for each cached rival j, and the truth has the rest of
c_i.  The weights are sums over examples: ``sum_j b_ij x_i`` is added to ``w_y``, and ``b_ij x_i``
is subtracted from ``w_j``.  The block step of an example is a projection of k + 1 numbers, because
the classes of an example share its features (Crammer, Singer 2001; Keerthi et al. 2008).
"""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport free, malloc
from structsolve.utils.allocate cimport allocated
from structsolve.plugins.extreme.solvers._block_steps cimport CRF, SQUARED_HINGE, block_step, dual_term, value_bounds
from structsolve.plugins.extreme.weights.weight_table cimport SS_PREFETCH, Row, WeightTable, add, find, hashed, prefetch

from structsolve.utils.arrays import check_numbers, check_offsets
from structsolve.plugins.extreme.solvers._block_steps import KINDS

cdef enum:
    MOST = 256          # maximum number of rivals of an example
    AHEAD = 4           # number of features ahead whose weights are prefetched

MOST_RIVALS = MOST

# Maximum number of visits that an example skips after visits without change.
cdef int MOST_IDLE = 3


cdef class DualAscent:
    """Dual variables of all examples, their cached rivals, and the passes over them.

    Parameters
    ----------
    table : WeightTable
        The weights, initially zero.
    indptr, indices, data : ndarray
        Rows of features (CSR, float32).
    y : ndarray of int32
        True classes.
    shares : ndarray of float64
        The c_i.
    kind : str
        A key of ``KINDS``.
    most : int
        Maximum number of cached rivals of an example, at most ``MOST_RIVALS``.

    Raises
    ------
    ValueError
        If sizes do not match, or a number is out of range.
    """

    cdef readonly WeightTable table
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

    def __init__(self, WeightTable table not None, const int64_t[::1] indptr not None,
                 const int32_t[::1] indices not None, const float[::1] data not None,
                 const int32_t[::1] y not None, const double[::1] shares not None, str kind,
                 Py_ssize_t most):
        cdef Py_ssize_t i, k
        cdef double total
        if self.places != NULL:
            raise ValueError("DualAscent: made already")
        if kind not in KINDS or not 0 <= most <= MOST:
            raise ValueError(
                f"kind is {kind!r}, most {most}: expected one of {list(KINDS)}, and 0 to {MOST}"
            )
        if len(indptr) != len(y) + 1 or len(shares) != len(y):
            raise ValueError(
                f"indptr, y and shares have {len(indptr)}, {len(y)} and {len(shares)} entries, "
                "expected those of the same examples"
            )
        # Entries after the last row are not read.
        k = indptr[len(y)]
        check_offsets(indptr, k, 0, "indptr")
        if k > len(indices) or k > len(data):
            raise ValueError(f"indices and data: expected {k} entries, as indptr says")
        check_numbers(indices[:k], table.n_features, "indices")
        check_numbers(y, table.n_classes, "y")
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
        self.places = <float**>allocated(
            malloc((self.longest + 1) * (most + 1) * sizeof(float*)), b"an example's weights")
        self.keep(np.zeros(self.n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))

    def __dealloc__(self):
        free(self.places)

    cdef int check_made(self) except -1:
        if self.places == NULL:
            raise ValueError("DualAscent: not made yet, or its making failed")
        return 0

    cdef int check_range(self, Py_ssize_t first, Py_ssize_t last) except -1:
        self.check_made()
        if not 0 <= first <= last <= self.n:
            raise ValueError(f"first is {first}, last {last}: expected a range of {self.n} examples")
        return 0

    def keep(self, starts, rivals, variables):
        """Set the cached rivals and dual variables.

        Parameters
        ----------
        starts : ndarray of int64 of shape (n + 1,)
        rivals : ndarray of int32
            Of example i: rivals[starts[i] : starts[i + 1]].
        variables : ndarray of float32
            At least 0.

        Raises
        ------
        ValueError
            If they do not fit the examples.
        """
        self.check_made()
        cdef const int32_t[::1] classes = rivals        # these three views check the types
        cdef const float[::1] values = variables
        cdef const int64_t[::1] offsets = starts
        sizes = np.diff(starts)
        if (len(starts) != self.n + 1 or starts[0] != 0 or starts[self.n] != len(rivals)
                or len(rivals) != len(variables) or (sizes < 0).any() or (sizes > self.most).any()):
            raise ValueError("the rivals kept are not those of these examples")
        starts, rivals, variables = (
            np.require(a, requirements=["C", "W"]) for a in (starts, rivals, variables)
        )
        check_numbers(rivals, self.table.n_classes, "rivals")
        if not (np.isfinite(variables) & (variables >= 0)).all():
            raise ValueError("variables: found a negative number or NaN")
        self.starts, self.rivals, self.variables = starts, rivals, variables
        self.starts_view = starts
        # A view needs at least one element.
        self.rivals_view = rivals if len(rivals) else np.zeros(1, np.int32)
        self.variables_view = variables if len(variables) else np.zeros(1, np.float32)
        self.idle[:] = 0
        self.wait[:] = 0

    def renew(self, const int32_t[:, ::1] ids not None, const signed char[:, ::1] wanted not None):
        """Drop rivals whose dual variable is zero; add wanted ones while there is room."""
        cdef Py_ssize_t i, j, k
        cdef int64_t total = 0
        self.check_made()
        self.check_rows(ids, wanted)
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

    cdef int check_rows(self, ids, wanted) except -1:
        if len(ids) != self.n or ids.shape[1] != wanted.shape[1] or len(wanted) != self.n:
            raise ValueError(f"ids and wanted: expected as many columns, and {self.n} rows")
        return 0

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

    def run(self, const int64_t[::1] order not None, Py_ssize_t first, Py_ssize_t last,
            double still):
        """Visit the examples order[first .. last - 1]; return the number of updated examples.

        Examples whose shares and scores would change by at most `still` are not updated.
        """
        cdef Py_ssize_t t, moved = 0
        cdef int64_t i
        self.check_range(first, last)
        if order.shape[0] < last:
            raise ValueError(f"order has {order.shape[0]} entries, expected {last} at least")
        check_numbers(order[first:last], self.n, "order")
        cdef double[:, ::1] work = np.zeros((4, self.most + 16))
        with nogil:
            for t in range(first, last):
                i = order[t]
                if self.wait[i] > 0:
                    self.wait[i] -= 1
                elif self.visit(i, still, &work[0, 0], &work[1, 0], &work[2, 0], &work[3, 0]):
                    moved += 1
                    self.idle[i] = 0
                else:
                    self.idle[i] = min(self.idle[i] + 1, MOST_IDLE)
                    self.wait[i] = self.idle[i]
        return moved

    cdef bint visit(self, int64_t i, double still, double* theta, double* m, double* p,
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
        cdef uint32_t[MOST + 1] codes
        if n == 0 or not c > 0:
            return False
        kappa = kappa if kappa > 1e-9 else 1e-9
        for j in range(n + 1):
            theta[j] = 0
        codes[0] = hashed(self.y[i])
        for j in range(n):
            codes[j + 1] = hashed(rivals[j])
        for k in range(length + AHEAD):
            if k + AHEAD < length:
                SS_PREFETCH(&self.table.rows[x[k + AHEAD]])
            if k < length:
                row = &self.table.rows[x[k]]
                for j in range(n + 1):
                    prefetch(row, rivals[j - 1] if j else self.y[i], codes[j])
            if k < AHEAD:
                continue
            row = &self.table.rows[x[k - AHEAD]]
            for j in range(n + 1):
                place = find(row, rivals[j - 1] if j else self.y[i], codes[j])
                places[j] = place
                if place != NULL:
                    theta[j] += <double>v[k - AHEAD] * place[0]
            places += n + 1
        m[0] = 1
        for j in range(n):
            m[j + 1] = b[j] / c
            m[0] -= m[j + 1]
        if m[0] < 0 and self.kind != SQUARED_HINGE:
            m[0] = 0        # negative by rounding
        block_step(self.kind, n, theta, m, kappa, p, q)
        for j in range(n):
            p[j] = <double><float>(c * m[j + 1]) - b[j]
            largest = fabs(p[j]) if fabs(p[j]) > largest else largest
            up += p[j]
        # Relative to c_i, which is large if alpha is small, and in units of scores.
        if largest == 0 or (largest <= still * c and largest * self.norms[i] <= still):
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
                # Adding a weight may move others in memory, so the stored places are not used.
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

    def fill_table(self):
        """Compute the weights from the dual variables; the table must be empty."""
        cdef Py_ssize_t i, j
        cdef int64_t k
        cdef float b
        self.check_made()
        with nogil:
            for i in range(self.n):
                for k in range(self.indptr[i], self.indptr[i + 1]):
                    for j in range(self.starts_view[i], self.starts_view[i + 1]):
                        b = self.variables_view[j] * self.data[k]
                        if b != 0:
                            add(&self.table.rows[self.indices[k]], self.y[i], b,
                                self.table.n_classes)
                            add(&self.table.rows[self.indices[k]], self.rivals_view[j], -b,
                                self.table.n_classes)

    def terms(self):
        """Return the sum of c_i G_i at the current dual variables."""
        cdef Py_ssize_t i, j, n
        cdef double total = 0, c
        self.check_made()
        cdef double[::1] m = np.zeros(self.most + 1)
        with nogil:
            for i in range(self.n):
                c = self.shares[i]
                n = self.starts_view[i + 1] - self.starts_view[i]
                if n == 0 or not c > 0:
                    continue
                m[0] = 1
                for j in range(n):
                    m[j + 1] = self.variables_view[self.starts_view[i] + j] / c
                    m[0] -= m[j + 1]
                m[0] = m[0] if m[0] > 0 else 0.0
                total += c * dual_term(self.kind, n, &m[0])
        return total

    def certify(self, Py_ssize_t first, Py_ssize_t last, const int32_t[:, ::1] ids not None,
                const float[:, ::1] scores not None, const double[::1] slack not None,
                bint of_best, double[::1] known not None, double[::1] upper not None,
                signed char[:, ::1] wanted not None):
        """Bound H of the examples first .. last - 1 from the result of a scan.

        Parameters
        ----------
        first, last : int
        ids, scores : ndarray of shape (n, k)
            Rivals, best first, -1 for none, and their scores.
        slack : ndarray of shape (n,)
            The exact score of a class in ids is at most its score here plus slack; that of any
            other class is at most the last score here plus slack.
        of_best : bool
            If True, the scores are exact instead, and no class exceeds the best one by more than
            slack.
        known, upper : ndarray of shape (n,)
            Overwritten with H on these rivals, computed from exact scores, and with an upper bound
            of H.
        wanted : ndarray of int8 of shape (n, k)
            Overwritten; marks the rivals that would gain a dual variable.
        """
        cdef Py_ssize_t i, j, k = ids.shape[1], n
        self.check_range(first, last)
        self.check_rows(ids, wanted)
        if (
            k < 1 or scores.shape[1] != k or scores.shape[0] != self.n or slack.shape[0] != self.n
            or known.shape[0] != self.n or upper.shape[0] != self.n
        ):
            raise ValueError(f"expected arrays of {self.n} rows, of {max(k, 1)} classes each")
        if first < last and np.max(ids[first:last]) >= self.table.n_classes:
            raise ValueError(f"ids has entries of {self.table.n_classes} or more")
        cdef double[::1] theta = np.empty(k + 1)
        cdef double rest, count, own, extra
        with nogil:
            for i in range(first, last):
                self.scores_of(i, 1, &self.y[i], &own)
                extra = 0 if of_best else slack[i]
                n = 0
                # A class 1 or more below the truth does not contribute to H, except in the softmax.
                while n < k and ids[i, n] >= 0 and (
                        self.kind == CRF or 1 + scores[i, n] + extra - own > 0):
                    n += 1
                for j in range(k):
                    wanted[i, j] = 0
                self.scores_of(i, n, &ids[i, 0], &theta[1])
                for j in range(1, n + 1):
                    theta[j] -= own
                    wanted[i, j - 1] = self.kind == CRF or 1 + theta[j] > 0
                theta[0] = 0
                count, rest = self.table.n_classes - 1 - n, -INFINITY
                if of_best:
                    rest = scores[i, 0] + slack[i] - own
                elif count > 0:
                    rest = scores[i, n if n < k else k - 1] + slack[i] - own
                value_bounds(self.kind, n + 1, &theta[0], rest, count, &known[i], &upper[i])

    cdef void scores_of(self, Py_ssize_t i, Py_ssize_t n, const int32_t* classes,
                        double* out) noexcept nogil:
        """Compute the scores of classes for example i."""
        cdef Py_ssize_t j
        cdef int64_t k
        cdef const float* place
        cdef const Row* row
        for j in range(n):
            out[j] = 0
        for k in range(self.indptr[i], self.indptr[i + 1]):
            row = &self.table.rows[self.indices[k]]
            for j in range(n):
                place = find(row, classes[j], hashed(classes[j]))
                if place != NULL:
                    out[j] += <double>self.data[k] * place[0]
