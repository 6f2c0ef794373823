"""Generalised block-coordinate Frank-Wolfe: the loop over examples, for concave dual terms G."""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int64_t
from libc.string cimport memset
from ..operators cimport Projection
from ..potentials.linear cimport LinearPotentials
from ..projections.game cimport MaxMinGame
from ..surrogates._fenchel_young cimport FenchelYoung
from ._loop cimport DualLoop

from ..utils.arrays import aligned_zeros, check_finite, check_numbers

# The step along a segment.
cdef enum:
    SEARCH = 0          # the maximum of the dual, by its slope
    HARMONIC = 1        # 2n / (t + 2n)
    CURVATURE = 2       # the maximum of a quadratic below the dual: G is strongly concave

STEPS = {"search": SEARCH, "harmonic": HARMONIC, "curvature": CURVATURE}

# Slopes per line search at most; it ends where the slope is below this share of the gap.
cdef int MOST_SLOPES = 16
cdef double FLAT_SHARE = 0.02


cdef class SegmentLoop(DualLoop):
    """State and inner loop of GBCFW (Nowak-Vila et al. 2020) and of SDCA.

    The dual variable of example i is a state s_i of the projection, at first the truth's; ``w = (1/alpha) sum_i u_i Phi_i' (mu(y_i) - mu(s_i))`` and the dual is
    ``sum_i u_i G(s_i) - alpha/2 ||w||^2``.  A visit asks the projection for the maximiser at the
    present scores and moves the state towards it.
    """

    cdef FenchelYoung losses
    cdef Projection projection
    cdef MaxMinGame game
    cdef public object states, terms, state_offsets
    cdef double[::1] states_view, terms_view
    cdef double[::1] at_truth           # -G at the truth of every example
    cdef int64_t[::1] offsets
    cdef double[::1] theta_buffer, fresh, from_buffer, to_buffer, u_buffer, scratch, z_view
    cdef double[::1] value_buffer
    cdef int[::1] index_buffer
    cdef char[::1] work
    cdef bint euclidean

    def __init__(self, LinearPotentials potentials not None, FenchelYoung surrogate not None,
                 labels, weights, double alpha):
        cdef Py_ssize_t i
        super().__init__(potentials, surrogate, labels, weights, alpha)
        self.losses, self.projection = surrogate, surrogate.projection
        # The game's G is the minimum of lines, which its own line search uses.
        self.game = self.projection if isinstance(self.projection, MaxMinGame) else None
        self.euclidean = surrogate.concave == "euclidean"
        sizes = np.empty(potentials.n, np.int64)
        for i in range(potentials.n):
            sizes[i] = self.state_size(i)
        self.state_offsets = np.zeros(potentials.n + 1, np.int64)
        np.cumsum(sizes, out=self.state_offsets[1:])
        self.offsets = self.state_offsets
        self.states = aligned_zeros(int(sizes.sum()) + 8)
        self.terms, self.at_truth = np.zeros(potentials.n), np.zeros(potentials.n)
        self.states_view, self.terms_view = self.states, self.terms
        most = int(sizes.max()) if potentials.n else 0
        self.fresh = aligned_zeros(most + 8)
        self.theta_buffer, self.from_buffer, self.to_buffer, self.u_buffer = (
            aligned_zeros(potentials.max_theta + 8) for _ in range(4))
        self.scratch = aligned_zeros(potentials.scratch_size)
        if not potentials.has_gram:
            self.z_view = aligned_zeros(potentials.dim)
        self.value_buffer = np.zeros(surrogate.max_entries + 8)
        self.index_buffer = np.zeros(surrogate.max_entries + 8, dtype=np.int32)
        self.work = aligned_zeros(surrogate.work_bytes // 8 + 16).view(np.int8)
        with nogil:
            for i in range(potentials.n):
                self.begin(i)

    cdef Py_ssize_t state_size(self, Py_ssize_t i) noexcept nogil:
        if self.projection.has_state:
            return self.projection.state_size(i)
        return self.potentials.theta_size(i)

    cdef double term(self, Py_ssize_t i) except? -1 nogil:
        return self.at_truth[i] + self.projection.term(
            i, &self.states_view[self.offsets[i]], &self.work[0])

    cdef int begin(self, Py_ssize_t i) except -1 nogil:
        """Set the state to the truth's, where w is 0."""
        cdef double* state = &self.states_view[self.offsets[i]]
        cdef const int* truth = self.truth(i)
        self.at_truth[i] = self.losses.offset(i, truth, &self.index_buffer[0],
                                              &self.value_buffer[0], &self.work[0])
        if self.projection.has_state:
            self.projection.state_of(i, truth, state)
        else:
            self.losses.add_truth(i, truth, 1.0, state, &self.index_buffer[0],
                                  &self.value_buffer[0])
        self.terms_view[i] = self.term(i)
        self.b_total += self.weights[i] * self.terms_view[i]
        return 0

    def run(self, const int64_t[::1] order not None, step, Py_ssize_t visits, bint averaging):
        """Visit the examples of ``order``; return the sum of gaps met and the projections made.

        Parameters
        ----------
        order : ndarray of int64
            Examples to visit.
        step : {"search", "harmonic", "curvature"}
        visits : int
            Visits before, which the harmonic step counts.
        averaging : bool
            Keep the average of the iterates, weighted by t.
        """
        cdef Py_ssize_t k
        cdef int rule = STEPS[step]
        cdef double total = 0
        check_numbers(order, self.potentials.n, "order")
        with nogil:
            for k in range(order.shape[0]):
                self.visit(order[k], rule, visits + k, averaging)
                total += self.weights[order[k]] * self.gaps_view[order[k]]
        return total, order.shape[0]

    def resynchronise(self):
        """Recompute w and the sum of G from the states: rounding does not add up."""
        cdef Py_ssize_t i, n
        self.w[:] = 0
        self.b_total = 0
        with nogil:
            for i in range(self.potentials.n):
                self.terms_view[i] = self.term(i)
                self.b_total += self.weights[i] * self.terms_view[i]
                n = self._difference(i)
                self.potentials.add(i, n, &self.index_buffer[0], &self.value_buffer[0],
                                    self.weights[i] / self.alpha, &self.w_view[0])

    @property
    def count(self):
        """Number of dual variables kept."""
        return self.potentials.n

    @property
    def nbytes(self):
        """Bytes of the dual variables."""
        return self.states.nbytes

    def to_arrays(self):
        """Return the dual variables as arrays, for checkpoints."""
        return {"states": self.states, "terms": self.terms}

    def restore(self, counters, arrays, w, average, gaps):
        """Continue from a checkpoint."""
        if "states" not in arrays or arrays["states"].shape != self.states.shape:
            raise ValueError("the checkpoint was made with another solver or on other examples")
        self.check_sizes(arrays["terms"].shape[0], w)
        check_finite({name: arrays[name] for name in ("states", "terms")})
        self.continue_from(counters, w, average, gaps)
        self.states[:], self.terms[:] = arrays["states"], arrays["terms"]

    cdef const double* marginals(self, Py_ssize_t i, const double* state,
                                 double* out) except NULL nogil:
        if not self.projection.has_state:
            return state
        self.projection.pool(i, state, out)
        return out

    cdef Py_ssize_t _difference(self, Py_ssize_t i) except -1 nogil:
        """index, value <- mu(y_i) - mu(s_i)."""
        cdef Py_ssize_t j, size = self.potentials.theta_size(i), n = 0
        cdef double* u = &self.u_buffer[0]
        cdef const double* mu = self.marginals(i, &self.states_view[self.offsets[i]],
                                               &self.from_buffer[0])
        for j in range(size):
            u[j] = -mu[j]
        self.losses.add_truth(i, self.truth(i), 1.0, u, &self.index_buffer[0],
                              &self.value_buffer[0])
        for j in range(size):
            if u[j] != 0:
                self.index_buffer[n], self.value_buffer[n] = <int>j, u[j]
                n += 1
        memset(u, 0, size * sizeof(double))
        return n

    cdef int visit(self, Py_ssize_t i, int rule, Py_ssize_t visits,
                   bint averaging) except -1 nogil:
        cdef double* theta = &self.theta_buffer[0]
        cdef double* state = &self.states_view[self.offsets[i]]
        cdef double* fresh = &self.fresh[0]
        cdef double share = self.weights[i] / self.alpha
        cdef double value, bound, linear = 0, score = 0, gamma, term
        cdef Py_ssize_t j, n = 0, size = self.potentials.theta_size(i), entries = self.state_size(i)
        cdef const double* before
        cdef const double* after
        self.potentials.score(i, &self.w_view[0], 1.0, theta)
        before = self.marginals(i, state, &self.from_buffer[0])
        for j in range(size):
            score += theta[j] * before[j]
        if self.game is not None:
            self.game.standing = score + self.terms_view[i] - self.at_truth[i]
        self.projection.project_state(i, theta, fresh, &value, &bound, &self.work[0])
        if self.game is not None:
            self.game.standing = INFINITY
        after = self.marginals(i, fresh, &self.to_buffer[0])
        for j in range(size):
            if after[j] != before[j]:
                self.index_buffer[n] = <int>j
                self.value_buffer[n] = after[j] - before[j]
                linear += theta[j] * self.value_buffer[n]
                n += 1
        self.gaps_view[i] = bound + self.at_truth[i] - self.terms_view[i] - score
        self.steps_done += 1
        if averaging:
            self.average_mass += self.steps_done
        self.moved_view[i] = 0
        if n == 0:
            return 0
        if rule == HARMONIC:
            gamma = 2.0 * self.potentials.n / (visits + 2.0 * self.potentials.n)
        elif rule == CURVATURE:
            gamma = self._quadratic(i, state, fresh, n, self.gaps_view[i] - (bound - value),
                                    share * self._norm(i, n))
        elif self.game is not None:
            gamma = self.game.search(i, state, fresh, linear, share * self._norm(i, n),
                                     &self.work[0])
        else:
            gamma = self._search(i, state, fresh, linear, share * self._norm(i, n),
                                 self.gaps_view[i])
        if not gamma > 0:
            return 0
        self.moved_view[i] = 1
        for j in range(entries):
            state[j] += gamma * (fresh[j] - state[j])
        term = self.term(i)
        self.b_total += self.weights[i] * (term - self.terms_view[i])
        self.terms_view[i] = term
        # The state moves away from the truth, w towards it.
        self.potentials.add(i, n, &self.index_buffer[0], &self.value_buffer[0], -gamma * share,
                            &self.w_view[0])
        if averaging:
            # sum_t t w_t = T(T+1)/2 w_T - sum_t (mass before t) change_t.
            self.potentials.add(i, n, &self.index_buffer[0], &self.value_buffer[0],
                                -gamma * share * (self.average_mass - self.steps_done),
                                &self.average_view[0])
        return 0

    cdef double _norm(self, Py_ssize_t i, Py_ssize_t n) noexcept nogil:
        """``||Phi_i' d||^2`` of the direction in index and value."""
        cdef const int* index = &self.index_buffer[0]
        cdef const double* value = &self.value_buffer[0]
        cdef double* u = &self.u_buffer[0]
        cdef double total = 0
        cdef Py_ssize_t k
        if not self.potentials.has_gram:
            self.potentials.add(i, n, index, value, 1.0, &self.z_view[0])
            total = self.potentials.dot(i, n, index, value, &self.z_view[0])
            self.potentials.clear(i, n, index, &self.z_view[0])
            return total
        self.potentials.add_gram(i, n, index, value, 1.0, u, &self.scratch[0])
        for k in range(n):
            total += value[k] * u[index[k]]
        memset(u, 0, self.potentials.theta_size(i) * sizeof(double))
        return total

    cdef double _quadratic(self, Py_ssize_t i, const double* state, const double* fresh,
                           Py_ssize_t n, double gain, double curvature) noexcept nogil:
        """Shalev-Shwartz and Zhang's step: G lies above its chord by ``q gamma (1 - gamma) / 2``.

        The entropy of labels is strongly concave in their l1 distance, which is at least the
        distance of the marginals of any node; -|mu|^2 / 2 in the Euclidean distance of the node
        parts.  Where parts are no probabilities, the distances are those of the state.
        """
        cdef Py_ssize_t k, first = self.potentials.shared_size, width = self.potentials.node_size
        cdef Py_ssize_t last = first, row = -1, position
        cdef double q = 0, total = 0
        last += (self.potentials.offsets[i + 1] - self.potentials.offsets[i]) * width
        for k in range(self.losses.state_rows):
            total = fresh[k] - state[k]
            q += total * total if self.euclidean else fabs(total)
        if self.losses.state_rows:
            q, n = q if self.euclidean else q * q, 0
        for k in range(n):
            position = self.index_buffer[k]
            if first <= position < last:
                if self.euclidean:
                    q += self.value_buffer[k] * self.value_buffer[k]
                else:
                    if (position - first) // width != row:
                        row, total = (position - first) // width, 0
                    total += fabs(self.value_buffer[k])
                    q = max(q, total * total)
        if q + curvature <= 0:
            return 1
        return min(max((gain + q / 2) / (q + curvature), 0), 1)

    cdef double _search(self, Py_ssize_t i, const double* state, const double* fresh,
                        double linear, double curvature, double gap) except? -1 nogil:
        """Maximise ``G((1-g) s + g f) + g linear - g^2 curvature / 2``: find its slope's root."""
        cdef double low = 0, high = 1, at_low = INFINITY, at_high, gamma, value
        cdef char* work = &self.work[0]
        cdef int k
        at_high = self.projection.slope(i, state, fresh, 1.0, work) + linear - curvature
        if at_high >= 0:
            return 1
        # The root of a linear slope; the slope begins at the gap or above.
        gamma = gap / (gap - at_high) if gap > 0 and at_high > -INFINITY else 0.5
        for k in range(MOST_SLOPES):
            if not low < gamma < high:
                gamma = (low + high) / 2
            value = self.projection.slope(i, state, fresh, gamma, work) + linear - (
                curvature * gamma)
            if fabs(value) <= FLAT_SHARE * gap or high - low < 1e-12:
                return gamma
            if value > 0:
                low, at_low = gamma, value
            else:
                high, at_high = gamma, value
            if k % 3 == 2 or not (at_low < INFINITY and at_high > -INFINITY):
                # Slopes of entropies are infinite at 0: gamma falls by orders of magnitude there.
                gamma = (low + high) / 2 if low > 0 else high / 8
            else:
                gamma = low + (high - low) * at_low / (at_low - at_high)
        return low
