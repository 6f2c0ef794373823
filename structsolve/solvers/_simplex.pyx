"""Block-coordinate ascent with exact block steps, for one label per example and no shared parts.

The cuts of an example are ``(e_truth - e_y, b_y)``, so its dual variable is a point of the
simplex and its Gram matrix a multiple of the identity; the block problem of the dual is then a
Euclidean projection onto the simplex (Crammer, Singer 2001; Keerthi et al. 2008).
"""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from ..potentials.linear cimport LinearPotentials
from ..potentials.mercer_features cimport MercerRows
from ..algorithms.simplex_projection cimport simplex_threshold
from ..surrogates.base cimport Surrogate
from ._loop cimport Block, Entry, ListLoop
from ._pairs cimport PairTables

from ..utils.arrays import aligned_zeros, check_numbers


cdef extern from "structsolve/simd/prefetch.h" nogil:
    void SS_PREFETCH(const void* address)


cdef double SMALLEST = 1e-15     # weights of the truth below it are rounding
# Labels are kept if they would get weight when scoring more by this share of the curvature.
cdef double MARGIN = 0.05
# Steps of full and of cheap visits, in units of the exact one: between 0 and 2 the dual never
# falls, and over-relaxed steps converge faster.
cdef double FULL_STEP = 1.2
cdef double CHEAP_STEP = 1.7
# Examples are awake if a label without weight would get some when scoring more by this share of the
# largest loss.
cdef double NEARLY = 0.1
# Ratio of padded to kept labels from which single columns are read instead of whole rows.
cdef Py_ssize_t GATHER_BELOW = 6


cdef class SimplexLoop(ListLoop):
    """State and inner loop of BCFW with exact steps; ``BlockLoop`` serves other spaces.

    A full visit scores all labels and projects; labels in the support, or close to it, are kept,
    and cheap visits score only those.  An entry of a dual variable is the weight of a label, 0 for a
    candidate only; the true label has none, but the rest of the weight.

    The potentials have one node per example and no shared or edge blocks, the surrogate
    ``has_simplex``.
    """

    cdef double[::1] theta_buffer, b_buffer, q_buffer, old_buffer, coef_buffer
    cdef double[::1] dense_buffer, score_buffer, gain_buffer
    cdef int[::1] label_buffer, changed_buffer
    cdef readonly Py_ssize_t n_labels

    def __init__(self, LinearPotentials potentials not None, Surrogate surrogate not None, labels,
                 weights, double alpha, Py_ssize_t max_cuts=50):
        cdef Py_ssize_t i, size = potentials.node_size + 8
        super().__init__(potentials, surrogate, labels, weights, alpha, max_cuts)
        self.n_labels, self.names = potentials.layout.node.shape[0], ("weight", "y")
        self.theta_buffer, self.b_buffer = aligned_zeros(size), aligned_zeros(size)
        self.q_buffer, self.old_buffer = aligned_zeros(size), aligned_zeros(size)
        self.coef_buffer, self.dense_buffer = aligned_zeros(size), aligned_zeros(size)
        self.score_buffer, self.gain_buffer = aligned_zeros(size), aligned_zeros(size)
        self.label_buffer = np.zeros(size, dtype=np.int32)
        self.changed_buffer = np.zeros(size, dtype=np.int32)
        cdef double[::1] norms = self.row_norms()
        with nogil:
            for i in range(self.n):
                self.blocks[i].norm = norms[i]
                surrogate.simplex(i, self.truth(i), &self.b_buffer[0], &self.blocks[i].truth)
                self.blocks[i].base = self.b_buffer[self.blocks[i].truth]
        self.resynchronise()

    def resynchronise(self):
        """Recompute w, and the sum of b, from the dual variables: rounding does not add up."""
        cdef Py_ssize_t i, j, m
        cdef double rest, b
        cdef Block* block
        self.w[:] = 0
        self.b_total = 0
        with nogil:
            for i in range(self.n):
                block = &self.blocks[i]
                block.share = self.weights[i] / self.alpha
                rest = 1
                b = 0
                m = 0
                for j in range(block.count):
                    if block.entries[j].value > 0:
                        rest -= block.entries[j].value
                        b += block.entries[j].value * block.entries[j].b
                        self.changed_buffer[m] = block.entries[j].index
                        self.coef_buffer[m] = -block.share * block.entries[j].value
                        m += 1
                self.b_total += self.weights[i] * (b + rest * block.base)
                if m:
                    self.changed_buffer[m] = block.truth
                    self.coef_buffer[m] = block.share * (1 - rest)
                    self._add(i, m + 1)

    def greedy(self, const int64_t[::1] chosen not None, double least, Py_ssize_t most,
               double goal=0.0):
        """Take the steps of one or two examples that gain most (kernel models).

        Every step changes the scores of all chosen examples, so a search of all costs little more;
        see :class:`PairTables`.

        Parameters
        ----------
        chosen : ndarray of int64
            All examples, or those to which the potentials are restricted.
        least : float
            Stop at a smaller rise of the dual.
        most : int
            Maximum number of steps.
        goal : float, default=0
            Stop at this weighted sum of the chosen examples' gaps.

        Returns
        -------
        steps : int
            Steps taken.
        gap : float
            That sum after the last step.  ``moved`` then marks examples with weight on several
            labels, or close to it.
        """
        check_numbers(chosen, self.n, "chosen")
        cdef MercerRows rows = self.potentials.nodes
        cdef PairTables tables = PairTables(rows, chosen, self.n_labels)
        cdef Py_ssize_t p, k, i, K = self.n_labels, steps
        cdef double* F = &self.w_view[0] + self.potentials.node_start + rows.n_rows * rows.stride
        cdef double gap, x, total
        cdef int truth
        cdef bint changed
        gains = np.zeros((max(chosen.shape[0], 1), self.potentials.node_size + 8))
        cdef double[:, ::1] b = gains
        with nogil:
            for p in range(chosen.shape[0]):
                i = chosen[p]
                self.surrogate.simplex(i, self.truth(i), &b[p, 0], &truth)
                self._dense_weights(i)
                tables.place(p, self.blocks[i].share, self.blocks[i].norm)
                for k in range(K):
                    tables.score[k, p] = F[k * rows.column_stride + p] + b[p, k]
                    tables.mass[k, p] = self.dense_buffer[k] * self.blocks[i].share
                    self.dense_buffer[k] = 0
        cdef const double[:, ::1] old = np.array(tables.mass)
        with nogil:
            steps = tables.run(most, least / self.alpha, goal / self.alpha)
            gap = self.alpha * tables.gap()
            for p in range(chosen.shape[0]):
                i = chosen[p]
                total = 0
                changed = False
                x = 0
                for k in range(K):
                    x = b[p, k] if b[p, k] > x else x
                self.moved_view[i] = tables.awake(p, NEARLY * x)
                for k in range(K):
                    F[k * rows.column_stride + p] = tables.score[k, p] - b[p, k]
                    x = tables.mass[k, p] - old[k, p]
                    if x != 0:
                        changed = True
                        total += x * b[p, k]
                        self.w_view[self.potentials.node_start + i * rows.stride + k] -= x
                if changed:
                    self.b_total += self.alpha * total
                    for k in range(K):
                        self.dense_buffer[k] = tables.mass[k, p] / self.blocks[i].share
                    self._store(i, &b[p, 0])
        return steps, gap

    cdef void _dense_weights(self, Py_ssize_t i) noexcept nogil:
        """Write the weights of all labels to dense_buffer."""
        cdef const Block* block = &self.blocks[i]
        cdef double rest = 1
        cdef Py_ssize_t j
        for j in range(block.count):
            self.dense_buffer[block.entries[j].index] = block.entries[j].value
            rest -= block.entries[j].value
        self.dense_buffer[block.truth] = rest if rest > SMALLEST else 0

    cdef int _store(self, Py_ssize_t i, const double* b) except -1 nogil:
        """Move the weights of all labels from dense_buffer, and clear it; kept labels stay."""
        cdef Block* block = &self.blocks[i]
        cdef Py_ssize_t j, k
        cdef Entry* entry
        self.dense_buffer[block.truth] = 0
        for j in range(block.count):
            block.entries[j].value = self.dense_buffer[block.entries[j].index]
            self.dense_buffer[block.entries[j].index] = 0
        for k in range(self.n_labels):
            if self.dense_buffer[k] > 0:
                self.make_room(i, block.count + 1)
                entry = &block.entries[block.count]
                entry.index, entry.b, entry.value = <int>k, b[k], self.dense_buffer[k]
                block.count += 1
                self.dense_buffer[k] = 0
        return 0

    def restore(self, counters, arrays, w, average, gaps):
        """Continue from a checkpoint."""
        cdef Py_ssize_t i, j
        cdef Entry* entry
        cdef int truth
        self.read_arrays(arrays, w, self.n_labels, "labels with weight")
        for i in range(self.n):
            self.surrogate.simplex(i, self.truth(i), &self.b_buffer[0], &truth)
            for j in range(self.blocks[i].count):
                entry = &self.blocks[i].entries[j]
                if entry.index == truth:
                    raise ValueError(f"labels with weight: found the truth of example {i}")
                entry.b = self.b_buffer[entry.index]
        self.continue_from(counters, w, average, gaps)

    cdef void _add(self, Py_ssize_t i, Py_ssize_t m) noexcept nogil:
        """Columns changed_buffer[:m] of w += coef_buffer[:m] times the features of example i."""
        self.potentials.nodes.scatter(i, m, &self.changed_buffer[0], &self.coef_buffer[0],
                                      &self.w_view[0] + self.potentials.node_start)

    cdef void fetch(self, const int64_t* order, Py_ssize_t left) noexcept nogil:
        # Lists and rows are scattered in memory: prefetch them some visits ahead.
        if left > 6:
            SS_PREFETCH(&self.blocks[order[6]])
        if left > 3:
            SS_PREFETCH(self.blocks[order[3]].entries)
        if left > 2 and self.potentials.nodes.indptr != NULL:
            self._prefetch_row(order[2])

    cdef inline void _prefetch_row(self, Py_ssize_t i) noexcept nogil:
        """Prefetch the first entries of a CSR row; hardware prefetches the others."""
        cdef Py_ssize_t start = self.potentials.nodes.indptr[i]
        SS_PREFETCH(self.potentials.nodes.indices + start)
        SS_PREFETCH(self.potentials.nodes.indices + start + 16)
        if self.potentials.nodes.f64 != NULL:
            SS_PREFETCH(self.potentials.nodes.f64 + start)
            SS_PREFETCH(self.potentials.nodes.f64 + start + 8)
            SS_PREFETCH(self.potentials.nodes.f64 + start + 16)

    cdef long visit(self, Py_ssize_t i, bint full, double min_gain) except -1 nogil:
        cdef double* theta = &self.theta_buffer[0]      # of the candidate labels, best 0
        cdef double* old = &self.old_buffer[0]          # their weights
        cdef double* q = &self.q_buffer[0]
        cdef Block* block = &self.blocks[i]
        cdef double curvature = block.share * block.norm / (FULL_STEP if full else CHEAP_STEP)
        cdef double gap = 0, tau = 0, inverse, left
        cdef Py_ssize_t j, m
        self.moved_view[i] = 0
        if not full and block.count == 0:
            return 0
        if full:
            m = self._all_labels(i, block, curvature)
        else:
            m = self._kept_labels(i, block)
        for j in range(m):
            gap -= old[j] * theta[j]
        if full:
            self.gaps_view[i] = gap
        if gap <= min_gain or block.share == 0:
            return full
        if curvature > 0:
            inverse = 1 / curvature
            for j in range(m):
                q[j] = old[j] + theta[j] * inverse
            tau = simplex_threshold(m, q)
            for j in range(m):
                q[j] = q[j] - tau if q[j] > tau else 0.0
        else:
            left = 1                # no features: the dual is linear, one best label takes all
            for j in range(m):
                q[j] = left if theta[j] == 0 else 0.0
                left -= q[j]
        self._move(i, m)
        if full:
            self._keep(i, block, m, curvature * (tau - MARGIN))
            return 1
        for j in range(block.count):
            block.entries[j].value = q[j]
        return 0

    cdef Py_ssize_t _all_labels(self, Py_ssize_t i, const Block* block,
                                double curvature) except -1 nogil:
        """Score all labels; candidates are labels that have weight or may get some."""
        cdef double* theta = &self.theta_buffer[0]
        cdef double* dense = &self.dense_buffer[0]
        cdef double* b = &self.b_buffer[0]
        cdef const Entry* entry
        cdef Py_ssize_t j, m = 0, members = 0, best = 0
        cdef double top = -INFINITY, bound = 0, x
        cdef int truth
        self.surrogate.simplex(i, self.truth(i), b, &truth)
        self.potentials.score(i, &self.w_view[0], 1.0, theta)
        for j in range(self.n_labels):
            theta[j] += b[j]
            if theta[j] > top:
                top = theta[j]
                best = j
        self._dense_weights(i)
        # Any set of labels gives a lower bound of the threshold; this one has those with weight and
        # the best one.
        if curvature > 0:
            for j in range(block.count):
                entry = &block.entries[j]
                if entry.value > 0:
                    bound += entry.value + (theta[entry.index] - top) / curvature
                    members += 1
            if dense[truth] > 0:
                bound += dense[truth] + (theta[truth] - top) / curvature
                members += 1
            members += dense[best] == 0
            bound = curvature * ((bound - 1) / members - MARGIN)
        for j in range(self.n_labels):
            x = theta[j] - top
            if x >= bound or dense[j] > 0:
                self.label_buffer[m] = <int>j
                self.old_buffer[m] = dense[j]
                self.gain_buffer[m] = b[j]
                theta[m] = x
                m += 1
        for j in range(block.count):
            dense[block.entries[j].index] = 0
        dense[truth] = 0
        return m

    cdef Py_ssize_t _kept_labels(self, Py_ssize_t i, const Block* block) noexcept nogil:
        """Score the candidates: the kept labels, followed by the truth."""
        cdef double* theta = &self.theta_buffer[0]
        cdef double* scores = &self.score_buffer[0]
        cdef int* label = &self.label_buffer[0]
        cdef double* gain = &self.gain_buffer[0]
        cdef Py_ssize_t j, m = block.count + 1
        cdef double top, rest = 1
        for j in range(block.count):
            label[j] = block.entries[j].index
            gain[j] = block.entries[j].b
            self.old_buffer[j] = block.entries[j].value
            rest -= block.entries[j].value
        label[m - 1] = block.truth
        gain[m - 1] = block.base
        self.old_buffer[m - 1] = rest if rest > SMALLEST else 0
        if GATHER_BELOW * m < self.potentials.node_size:
            self.potentials.nodes.gather(
                i, m, label, &self.w_view[0] + self.potentials.node_start, theta)
            for j in range(m):
                theta[j] += gain[j]
        else:
            self.potentials.score(i, &self.w_view[0], 1.0, scores)
            for j in range(m):
                theta[j] = scores[label[j]] + gain[j]
        top = theta[0]
        for j in range(1, m):
            top = theta[j] if theta[j] > top else top
        for j in range(m):
            theta[j] -= top
        return m

    cdef void _move(self, Py_ssize_t i, Py_ssize_t m) noexcept nogil:
        """Change the weights of the m candidates from `old` to `q`."""
        cdef Py_ssize_t j, changed = 0
        cdef double share = self.blocks[i].share, change, b_change = 0, slope = 0, square = 0
        for j in range(m):
            change = self.q_buffer[j] - self.old_buffer[j]
            if change != 0:
                slope += change * self.theta_buffer[j]
                square += change * change
                self.changed_buffer[changed] = self.label_buffer[j]
                self.coef_buffer[changed] = -share * change
                b_change += change * self.gain_buffer[j]
                changed += 1
        if changed:
            self.moved_view[i] = 1
            self.b_total += self.weights[i] * b_change
            self.rise += self.weights[i] * (slope - 0.5 * share * self.blocks[i].norm * square)
            self._add(i, changed)

    cdef int _keep(self, Py_ssize_t i, Block* block, Py_ssize_t m, double near) except -1 nogil:
        """Keep the candidates with weight, and others whose scores are at least `near`."""
        cdef Py_ssize_t j, idle = 0
        cdef Entry* entry
        self.make_room(i, m)
        block.count = 0
        for j in range(m):
            if self.label_buffer[j] == block.truth:
                continue
            if self.q_buffer[j] == 0:
                if idle == self.max_cuts or self.theta_buffer[j] < near:
                    continue
                idle += 1
            entry = &block.entries[block.count]
            entry.value, entry.b = self.q_buffer[j], self.gain_buffer[j]
            entry.index = self.label_buffer[j]
            block.count += 1
        return 0
