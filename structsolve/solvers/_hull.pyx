"""Block-coordinate ascent with exact block steps, over the hull of an example's labels.

An example has one row of features x, its scores are those of a row of nodes, and the loss is
linear in the parts.  Its dual variable is then a point mu of the hull of the labels, the block
problem of the dual has the curvature |x|^2 in every part, and its solution is the point of the hull
nearest to ``mu + scores / curvature``: a Euclidean projection.  Without a hierarchy, these are the
steps of one binary machine per label (Hsieh et al. 2008).
"""

import numpy as np

from libc.string cimport memcpy, memset
from ..operators cimport Loss, Parts, Projection
from ..potentials.linear cimport LinearPotentials
from ..surrogates.base cimport Cut, Surrogate
from ._loop cimport Block, ListLoop

from ..utils.arrays import aligned_zeros

# As in SimplexLoop: over-relaxed steps converge faster, and up to 2 the dual never falls.
cdef double FULL_STEP = 1.2
cdef double CHEAP_STEP = 1.7


cdef class HullLoop(ListLoop):
    """State and inner loop of BCFW with exact steps over the hull of labels.

    An entry of a dual variable is the value of mu less the truth in one part.

    Parameters
    ----------
    potentials, surrogate, labels, weights, alpha
        See DualLoop; one node per example, and no shared or edge blocks.
    projection : Projection
        "euclidean", exact, of the same examples.
    loss : Loss
        It decomposes, and the surrogate is margin rescaling by it.
    parts : Parts
    """

    cdef Projection projection
    cdef Loss loss
    cdef Parts parts
    # Scores and costs, all of one example; the dual variable before and after a step.
    cdef double[::1] theta, costs, point, ahead, goal, work
    # Entries of sparse vectors: of a dual variable, of a cut.
    cdef double[::1] coefs, cut_value
    cdef int[::1] places, cut_index

    def __init__(self, LinearPotentials potentials not None, Surrogate surrogate not None, labels,
                 weights, double alpha, Projection projection not None, Loss loss not None,
                 Parts parts not None):
        super().__init__(potentials, surrogate, labels, weights, alpha)
        self.projection, self.loss, self.parts = projection, loss, parts
        self.names = "value", "part"
        size = potentials.max_theta + max(parts.max_entries, surrogate.max_entries) + 8
        self.theta, self.costs = aligned_zeros(size), aligned_zeros(size)
        self.point, self.goal = aligned_zeros(size), aligned_zeros(size)
        self.ahead, self.coefs = aligned_zeros(size), aligned_zeros(size)
        self.cut_value = aligned_zeros(size)
        self.places, self.cut_index = np.zeros(size, np.int32), np.zeros(size, np.int32)
        self.work = aligned_zeros(max(projection.work_bytes, surrogate.work_bytes) // 8 + 16)
        self._measure()
        self.resynchronise()

    def _measure(self):
        cdef double[::1] norms = self.row_norms()
        cdef Py_ssize_t i, k, m
        with nogil:
            for i in range(self.n):
                self.blocks[i].norm = norms[i]
                self.blocks[i].base = self._costs(i)
                m = self.parts.encode(i, self.truth(i), &self.places[0], &self.coefs[0])
                for k in range(m):
                    self.blocks[i].base += self.coefs[k] * self.costs[self.places[k]]

    def resynchronise(self):
        """Recompute w, and the sum of b, from the dual variables: rounding does not add up."""
        cdef Py_ssize_t i, k
        cdef double b
        cdef Block* block
        self.w[:] = 0
        self.b_total = 0
        with nogil:
            for i in range(self.n):
                block = &self.blocks[i]
                block.share = self.weights[i] / self.alpha
                b = block.base
                if block.count:
                    self._costs(i)
                for k in range(block.count):
                    self.places[k] = block.entries[k].index
                    self.coefs[k] = block.entries[k].value
                    b += self.coefs[k] * self.costs[self.places[k]]
                self.b_total += self.weights[i] * b
                self.potentials.add(i, block.count, &self.places[0], &self.coefs[0], -block.share,
                                    &self.w_view[0])

    cdef double _costs(self, Py_ssize_t i) except? -1 nogil:
        """costs <- those of the parts; return the constant."""
        memset(&self.costs[0], 0, self.potentials.theta_size(i) * sizeof(double))
        return self.loss.augment(i, self.truth(i), 1.0, &self.costs[0])

    cdef long visit(self, Py_ssize_t i, bint full, double min_gain) except -1 nogil:
        """Move one example's dual variable; return the oracle calls."""
        cdef Block* block = &self.blocks[i]
        cdef Py_ssize_t k, size = self.potentials.theta_size(i)
        cdef double* theta = &self.theta[0]
        cdef double* point = &self.point[0]
        cdef double* goal = &self.goal[0]
        cdef double slope = 0, gain = 0, value, bound, step
        cdef double curvature = block.share * block.norm
        cdef char* work = <char*>&self.work[0]
        cdef Cut cut
        cut.nnz = cut.calls = 0
        cut.index, cut.value = &self.cut_index[0], &self.cut_value[0]
        self.moved_view[i] = 0
        self.potentials.score(i, &self.w_view[0], 1.0, theta)
        if full:
            self.surrogate.cut(i, theta, self.truth(i), &cut, work)
        self._costs(i)
        for k in range(size):
            theta[k] += self.costs[k]
        for k in range(block.count):
            slope += theta[block.entries[k].index] * block.entries[k].value
        if full:
            self.gaps_view[i] = cut.bound - block.base - slope
        if block.share == 0 or (full and self.gaps_view[i] <= min_gain) or (
                curvature <= 0 and not full):
            return cut.calls
        self._truth(i, point)
        if curvature > 0:
            for k in range(block.count):
                point[block.entries[k].index] += block.entries[k].value
            step = (FULL_STEP if full else CHEAP_STEP) / curvature
            for k in range(size):
                self.ahead[k] = point[k] + step * theta[k]
            self.projection.project(i, &self.ahead[0], goal, &value, &bound, work)
            for k in range(size):
                gain += theta[k] * (goal[k] - point[k])
            if gain > min_gain or full:
                self._move(i, size)
            return cut.calls
        # No features: the dual is linear, and the oracle's label takes all.
        memcpy(goal, point, size * sizeof(double))
        for k in range(cut.nnz):
            goal[cut.index[k]] -= cut.value[k]
        for k in range(block.count):
            point[block.entries[k].index] += block.entries[k].value
        self._move(i, size)
        return cut.calls

    cdef int _truth(self, Py_ssize_t i, double* point) except -1 nogil:
        """point <- the parts of the true label."""
        cdef Py_ssize_t k, m
        memset(point, 0, self.potentials.theta_size(i) * sizeof(double))
        m = self.parts.encode(i, self.truth(i), &self.places[0], &self.coefs[0])
        for k in range(m):
            point[self.places[k]] += self.coefs[k]
        return 0

    cdef int _move(self, Py_ssize_t i, Py_ssize_t size) except -1 nogil:
        """Move the dual variable of an example from `point` to `goal`."""
        cdef Block* block = &self.blocks[i]
        cdef Py_ssize_t k, m = 0
        cdef double change, b_change = 0, slope = 0, square = 0
        for k in range(size):
            change = self.goal[k] - self.point[k]
            if change != 0:
                self.places[m], self.coefs[m] = <int>k, change
                b_change += change * self.costs[k]
                slope += change * self.theta[k]
                square += change * change
                m += 1
        if m == 0:
            return 0
        self.moved_view[i] = 1
        self.b_total += self.weights[i] * b_change
        self.rise += self.weights[i] * (slope - 0.5 * block.share * block.norm * square)
        self.potentials.add(i, m, &self.places[0], &self.coefs[0], -block.share, &self.w_view[0])
        self._truth(i, &self.point[0])
        m = 0
        for k in range(size):
            if self.goal[k] != self.point[k]:
                self.places[m], self.coefs[m] = <int>k, self.goal[k] - self.point[k]
                m += 1
        return self._keep(i, m)

    cdef int _keep(self, Py_ssize_t i, Py_ssize_t m) except -1 nogil:
        """Store the first m places and coefs as the dual variable less the truth."""
        cdef Block* block = &self.blocks[i]
        cdef Py_ssize_t k
        self.make_room(i, m)
        for k in range(m):
            block.entries[k].index, block.entries[k].value = self.places[k], self.coefs[k]
        block.count = <int>m
        return 0

    def restore(self, counters, arrays, w, average, gaps):
        """Continue from a checkpoint."""
        sizes = np.array([self.potentials.theta_size(i) for i in range(self.n)], dtype=np.int64)
        self.read_arrays(arrays, w, sizes, "parts of dual variables")
        self.continue_from(counters, w, average, gaps)
