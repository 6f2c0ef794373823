"""Block-coordinate ascent with exact steps where every set of an example's parts is a label.

The loss and the score are then sums over parts, and the surrogate of an example is a sum of hinges.
Its dual variable is a point of the box ``[0, 1]^L``; the block problem of the dual is one clipped
step per part (dual coordinate descent of binary machines, Hsieh et al. 2008, for all parts at once).
"""

import numpy as np

from libc.math cimport fabs
from libc.string cimport memset
from ..operators cimport Loss, Parts
from ..potentials.linear cimport LinearPotentials
from ..surrogates.base cimport Surrogate
from ._loop cimport ExactLoop

from ..utils.arrays import aligned_zeros, check_finite


# Steps of full and of cheap visits, in units of the exact one: between 0 and 2 the dual never
# falls, and over-relaxed cheap steps converge faster.
cdef double FULL_STEP = 1.0
cdef double CHEAP_STEP = 1.4
# Parts at a bound are kept for cheap visits if a change of their score by this share of their
# loss would move them.
cdef double NEARLY = 0.05
# Parts of an example that may be kept, at least max_cuts: one of so many.
cdef Py_ssize_t KEPT_SHARE = 4
# Ratio of all to kept parts from which single columns are read instead of whole rows.
cdef Py_ssize_t GATHER_BELOW = 6


cdef class BoxLoop(ExactLoop):
    """State and inner loop of BCFW with exact steps for parts that are decided separately.

    A part that is flipped from the truth has the cut ``(t e_part, b)``, ``t`` 1 where the truth
    has the part and -1 elsewhere, ``b`` its loss.  A full visit scores all parts; those whose dual
    variable may move soon are kept, and cheap visits score only these.

    The potentials have one node per example and no shared or edge blocks, and the loss decomposes.

    Parameters
    ----------
    potentials, surrogate, labels, weights, alpha, max_cuts
        See DualLoop; ``max_cuts``, or a quarter of the parts, are kept for cheap visits at most.
    parts : Parts
    loss : Loss
    """

    cdef Parts parts
    cdef Loss loss
    cdef readonly object duals
    cdef double[:, ::1] duals_view
    cdef double[::1] norms, theta, cost, sign, change
    cdef double[::1] encoded_value
    cdef int[::1] encoded_index, changed, counts
    cdef int[:, ::1] kept
    cdef Py_ssize_t n, n_parts

    def __init__(self, LinearPotentials potentials not None, Surrogate surrogate not None, labels,
                 weights, double alpha, Py_ssize_t max_cuts, Parts parts not None,
                 Loss loss not None):
        cdef Py_ssize_t size = potentials.node_size + 8
        super().__init__(potentials, surrogate, labels, weights, alpha, max_cuts)
        if (potentials.shared_size or potentials.edge_size or potentials.max_nodes > 1
                or not loss.decomposes or parts.layout is not surrogate.layout
                or loss.layout is not surrogate.layout):
            raise ValueError(
                "BoxLoop: found shared or edge parts, several nodes, a loss that does not "
                "decompose, or operators of other examples; expected one node, whose parts are "
                "decided separately"
            )
        self.parts, self.loss, self.n = parts, loss, potentials.n
        self.n_parts = potentials.layout.node.shape[0]
        self.duals = np.zeros((self.n, self.n_parts))
        self.duals_view = self.duals
        most = min(max(max_cuts, self.n_parts // KEPT_SHARE), self.n_parts)
        self.kept = np.zeros((self.n, most), dtype=np.int32)
        self.counts = np.zeros(self.n, dtype=np.int32)
        self.theta, self.cost = aligned_zeros(size), aligned_zeros(size)
        self.sign, self.change = aligned_zeros(size), aligned_zeros(size)
        self.norms = self.row_norms()
        self.encoded_index = np.zeros(parts.max_entries + 1, dtype=np.int32)
        self.encoded_value = np.zeros(parts.max_entries + 1)
        self.changed = np.zeros(size, dtype=np.int32)

    @property
    def nbytes(self):
        """Bytes of the dual variables and of the lists of kept parts."""
        return self.duals.nbytes + self.kept.nbytes + self.counts.nbytes

    @property
    def count(self):
        """Number of parts kept for cheap visits."""
        return int(np.sum(self.counts))

    def resynchronise(self):
        """Recompute w, and the sum of b, from the dual variables: rounding does not add up."""
        cdef Py_ssize_t i, k
        self.w[:] = 0
        self.b_total = 0
        with nogil:
            for i in range(self.n):
                self._costs(i)
                for k in range(self.n_parts):
                    self.changed[k] = <int>k
                    self.change[k] = self.duals_view[i, k]
                self._move(i, self.n_parts)

    def to_arrays(self):
        """Return the dual variables as arrays, for checkpoints."""
        return {"duals": self.duals.copy()}

    def restore(self, counters, arrays, w, average, gaps):
        """Continue from a checkpoint."""
        if "duals" not in arrays:
            raise ValueError("the checkpoint was made with other steps")
        duals = arrays["duals"]
        self.check_sizes(len(duals), w)
        if duals.shape != self.duals.shape:
            raise ValueError(
                f"the checkpoint has dual variables of shape {duals.shape}, this problem "
                f"{self.duals.shape}"
            )
        check_finite({"duals": duals})
        if duals.size and (duals.min() < 0 or duals.max() > 1):
            raise ValueError("the checkpoint has dual variables below 0 or above 1")
        self.duals[:] = duals
        self.counts[:] = 0
        self.continue_from(counters, w, average, gaps)

    cdef int _costs(self, Py_ssize_t i) except -1 nogil:
        """cost <- the loss of each part that is on, less that of off; sign <- t."""
        cdef Py_ssize_t j, n
        cdef const int* truth = self.truth(i)
        memset(&self.cost[0], 0, self.n_parts * sizeof(double))
        self.loss.augment(i, truth, 1.0, &self.cost[0])
        for j in range(self.n_parts):
            self.sign[j] = -1
        n = self.parts.encode(i, truth, &self.encoded_index[0], &self.encoded_value[0])
        for j in range(n):
            self.sign[self.encoded_index[j]] += 2 * self.encoded_value[j]
        return 0

    cdef long visit(self, Py_ssize_t i, bint full, double min_gain) except -1 nogil:
        cdef double share = self.weights[i] / self.alpha
        cdef double curvature = share * self.norms[i] / (FULL_STEP if full else CHEAP_STEP)
        cdef double* slopes = &self.theta[0]
        cdef double* duals = &self.duals_view[i, 0]
        cdef double gap = 0, g
        cdef Py_ssize_t j, k, m = self.n_parts if full else self.counts[i]
        self.moved_view[i] = 0
        if m == 0:
            return full
        self._costs(i)
        self._scores(i, full, m)
        for j in range(m):
            k = j if full else self.kept[i, j]
            g = -self.sign[k] * (slopes[j] + self.cost[k])
            slopes[j] = g
            gap += (g if g > 0 else 0) - duals[k] * g
        if full:
            self.gaps_view[i] = gap
            self._keep(i)
        if gap > min_gain and share != 0:
            self._step(i, full, m, curvature)
        return full

    cdef void _scores(self, Py_ssize_t i, bint full, Py_ssize_t m) noexcept nogil:
        """theta <- the scores of all parts, or of those kept."""
        cdef double* theta = &self.theta[0]
        cdef Py_ssize_t j
        if full or GATHER_BELOW * m >= self.potentials.node_size:
            self.potentials.score(i, &self.w_view[0], 1.0, theta)
            if not full:
                for j in range(m):      # the kept parts are in order: kept[j] >= j
                    theta[j] = theta[self.kept[i, j]]
        else:
            self.potentials.nodes.gather(
                i, m, &self.kept[i, 0], &self.w_view[0] + self.potentials.node_start, theta)

    cdef void _keep(self, Py_ssize_t i) noexcept nogil:
        """Keep the parts whose dual variables are inside the box or may move there."""
        cdef const double* duals = &self.duals_view[i, 0]
        cdef const double* slopes = &self.theta[0]
        cdef Py_ssize_t j, count = 0
        cdef double near
        for j in range(self.n_parts):
            near = NEARLY * fabs(self.cost[j])
            if (slopes[j] > -near or duals[j] > 0) and (slopes[j] < near or duals[j] < 1):
                if count == self.kept.shape[1]:
                    break
                self.kept[i, count] = <int>j
                count += 1
        self.counts[i] = <int>count

    cdef void _step(self, Py_ssize_t i, bint full, Py_ssize_t m, double curvature) noexcept nogil:
        """Maximise the dual over the parts whose slopes are in theta, each alone."""
        cdef double* duals = &self.duals_view[i, 0]
        cdef const double* slopes = &self.theta[0]
        cdef double inverse = 1 / curvature if curvature > 0 else 0, x, slope = 0, square = 0
        cdef Py_ssize_t j, k, moved = 0
        for j in range(m):
            k = j if full else self.kept[i, j]
            if curvature > 0:
                x = duals[k] + slopes[j] * inverse
            else:               # no features: the dual is linear
                x = 2.0 if slopes[j] > 0 else duals[k] if slopes[j] == 0 else -1.0
            x = 0 if x < 0 else 1 if x > 1 else x
            if x != duals[k]:
                self.changed[moved] = <int>k
                self.change[moved] = x - duals[k]
                slope += self.change[moved] * slopes[j]
                square += self.change[moved] * self.change[moved]
                duals[k] = x
                moved += 1
        if moved:
            self.moved_view[i] = 1
            square *= self.weights[i] / self.alpha * self.norms[i]
            self.rise += self.weights[i] * (slope - 0.5 * square)
            self._move(i, moved)

    cdef void _move(self, Py_ssize_t i, Py_ssize_t m) noexcept nogil:
        """Change w, and the sum of b, for changes of m parts' dual variables."""
        cdef double share = self.weights[i] / self.alpha, b = 0
        cdef Py_ssize_t j, k
        for j in range(m):
            k = self.changed[j]
            b -= self.sign[k] * self.cost[k] * self.change[j]
            self.change[j] *= self.sign[k] * share
        self.b_total += self.weights[i] * b
        self.potentials.nodes.scatter(i, m, &self.changed[0], &self.change[0],
                                      &self.w_view[0] + self.potentials.node_start)
