"""Pair steps on the dual of a kernel model: weight moves between two labels of two examples at once.

A step takes the example with the largest gain of a single step (Platt 1998; Fan, Chen, Lin 2005),
and the example with the largest joint gain.  The scores of all examples share a part, such as that
of the constant feature, which oscillates under steps of single examples; opposite moves of two
examples leave it unchanged.
"""

import numpy as np

from libc.stdint cimport int64_t
from ..potentials.mercer_features cimport MercerRows


cdef extern from "structsolve/simd/pair_rows.h" nogil:
    enum: SS_STRIP
    const ss_pair_table* ss_pair_loops() noexcept nogil


cdef extern from "structsolve/simd/mercer_columns.h" nogil:
    void ss_add_kernel_row(Py_ssize_t n, const double* k, double bias, Py_ssize_t m,
                           const int* cols, const double* coefs, double* F,
                           Py_ssize_t stride) noexcept nogil

# Inverse curvature of rows without features, whose steps are full.
cdef double ALL_THE_WAY = 1e250
# Mass below this share of the example's is rounding.
cdef double ROUNDING = 1e-14
# The gap is summed after this many steps, plus one for every four examples.
cdef Py_ssize_t BETWEEN_GAPS = 32


cdef class PairTables:
    """Scores and masses of chosen examples, label by label.

    Parameters
    ----------
    rows : MercerRows
        One node per example.
    chosen : ndarray of int64
        All examples, or those to which ``rows`` is restricted.
    labels : int
    """

    def __init__(self, MercerRows rows not None, const int64_t[::1] chosen not None,
                 Py_ssize_t labels):
        cdef Py_ssize_t size = chosen.shape[0]
        alone = np.asarray(rows.inner_rows) if rows.inner_size else np.arange(rows.n_rows)
        if not np.array_equal(alone, chosen):
            raise ValueError(
                "chosen: expected all examples, or those that the potentials look at alone")
        self.rows, self.chosen, self.size, self.labels = rows, chosen, size, labels
        self.loops = ss_pair_loops()
        self.ld = max((size + SS_STRIP - 1) // SS_STRIP, 1) * SS_STRIP
        tables, per_row = np.zeros((2, labels, self.ld)), np.zeros((3, self.ld))
        self.score, self.mass = tables
        self.share, self.curvature, self.inverse = per_row

    cdef void place(self, Py_ssize_t p, double share, double norm) noexcept nogil:
        """Set the factor of a row's weights, and its squared norm."""
        self.share[p] = share
        self.curvature[p] = 2 * norm
        self.inverse[p] = 1 / (2 * norm) if norm > 0 else ALL_THE_WAY

    cdef Py_ssize_t run(self, Py_ssize_t most, double least, double goal) noexcept nogil:
        """Take steps while they gain more than `least` and the gap is above `goal`.

        Both are without the factor alpha.  Returns the steps taken.
        """
        cdef Py_ssize_t steps = 0, next_gap = 0
        while steps < most:
            if steps >= next_gap:
                next_gap = steps + BETWEEN_GAPS + self.size // 4
                if self.gap() <= goal:
                    break
            if not self._pair(least):
                break
            steps += 1
        return steps

    cdef bint _pair(self, double least) noexcept nogil:
        """Take the best step of an example, or of two; return whether one gained enough."""
        cdef Py_ssize_t p, r, k, high = 0, low = -1
        cdef double gain, both, x, y
        cdef const double* row
        cdef ss_move a
        p = self.loops.best_row(self.ld, self.labels, &self.score[0, 0], &self.mass[0, 0],
                                &self.curvature[0], &self.inverse[0], &gain)
        if not gain > least:
            return False
        for k in range(self.labels):
            if self.score[k, p] > self.score[high, p]:
                high = k
            if self.mass[k, p] > 0 and (low < 0 or self.score[k, p] < self.score[low, p]):
                low = k
        row = self._kernel_row(p)
        a.slope = self.score[high, p] - self.score[low, p]
        a.curvature, a.inverse = self.curvature[p], self.inverse[p]
        a.least, a.most = -self.mass[high, p], self.mass[low, p]
        r = self.loops.best_partner(self.size, row, self.rows.bias, &self.score[high, 0],
                                    &self.score[low, 0], &self.mass[high, 0], &self.mass[low, 0],
                                    &self.curvature[0], &self.inverse[0], &a, &both, &x, &y)
        if r == p or r >= self.size or not both > gain:
            x = a.slope * a.inverse
            self._shift(p, row, high, low, x if x < a.most else a.most)
            return True
        self._shift(p, row, high, low, x)
        # The first row of kernel values may be overwritten now.
        self._shift(r, self._kernel_row(r), high, low, y)
        return True

    cdef void _shift(self, Py_ssize_t p, const double* k, Py_ssize_t high, Py_ssize_t low,
                     double y) noexcept nogil:
        """Move mass y of a row from one label to the other, and all scores with it."""
        cdef double[2] coefs
        cdef int[2] cols
        cdef Py_ssize_t source = low, target = high
        if y == 0:
            return
        cols[0], cols[1] = <int>high, <int>low
        if y < 0:
            source, target = high, low
        if self.mass[source, p] - (y if y > 0 else -y) <= ROUNDING * self.share[p]:
            y = self.mass[source, p] if y > 0 else -self.mass[source, p]
            self.mass[source, p] = 0
        else:
            self.mass[source, p] -= y if y > 0 else -y
        self.mass[target, p] += y if y > 0 else -y
        coefs[0], coefs[1] = -y, y
        ss_add_kernel_row(self.size, k, self.rows.bias, 2, cols, coefs, &self.score[0, 0], self.ld)

    cdef const double* _kernel_row(self, Py_ssize_t p) noexcept nogil:
        if self.rows.inner_size:
            return &self.rows.inner[p, 0]
        return self.rows.kernel_row(p)

    cdef double gap(self) noexcept nogil:
        """The sum of the rows' duality gaps, without the factor alpha."""
        return self.loops.mass_gap(self.ld, self.labels, &self.score[0, 0], &self.mass[0, 0])

    cdef bint awake(self, Py_ssize_t p, double room) noexcept nogil:
        """Whether a row has mass on several labels, or would if another scored `room` more."""
        cdef Py_ssize_t k, own = -1
        for k in range(self.labels):
            if self.mass[k, p] > 0:
                if own >= 0:
                    return True
                own = k
        if own < 0:
            return False
        for k in range(self.labels):
            if k != own and self.score[k, p] + room > self.score[own, p]:
                return True
        return False
