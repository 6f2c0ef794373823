"""Loop over examples of generalised block-coordinate Frank-Wolfe, for concave dual terms G."""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int64_t
from libc.string cimport memset
from ..operators cimport Projection
from ..potentials.linear cimport LinearPotentials
from ..projections.game cimport MaxMinGame
from ..structure.answer_checks cimport check_numbers
from ..surrogates._fenchel_young cimport FenchelYoung
from ._batches cimport BatchLoop, doubles, integers
from ._loop cimport DualLoop, check_order
from ._team cimport Team

from ..utils.arrays import aligned_zeros, check_finite

# Rule for the step along a segment.
cdef enum:
    SEARCH = 0          # maximises the dual by its slope
    HARMONIC = 1        # 2n / (t + 2n)
    CURVATURE = 2       # maximises a quadratic lower bound of the dual: G is strongly concave

STEPS = {"search": SEARCH, "harmonic": HARMONIC, "curvature": CURVATURE}

# Maximum number of slopes per line search; slope, as a share of the gap, at which it ends.
cdef int MOST_SLOPES = 16
cdef double FLAT_SHARE = 0.02


# Memory of one thread; u and z are zero between calls.
cdef struct Space:
    double* theta
    double* start
    double* end             # marginals of two states
    double* mixed           # a state
    double* u
    double* scratch
    double* z
    double* value
    int* index
    char* work

# One visit, which proposes a step towards the state `fresh`.
cdef struct Visit:
    Py_ssize_t n            # entries of the direction, in marginals
    bint open               # the step of the state is pending
    bint known              # term holds G after the step
    double gap, gamma, term
    double linear, curvature    # rise of <theta, mu> on the segment; squared norm of the direction
    double rise                 # minimum rise of G per gamma, up to the whole step
    double gain, strength       # of CURVATURE
    double* fresh
    double* value
    int* index
    double[3] padding       # threads share no cache line


cdef class SegmentLoop(DualLoop):
    """State and inner loop of GBCFW (Nowak-Vila et al. 2020) and of SDCA.

    The dual variable of example i is a state s_i of the projection, initially the true label's.
    ``w = (1/alpha) sum_i u_i Phi_i' (mu(y_i) - mu(s_i))``, and the dual is
    ``sum_i u_i G(s_i) - alpha/2 ||w||^2``.  A visit computes the projection's maximiser at the
    current scores and moves the state towards it.
    """

    cdef FenchelYoung losses
    cdef Projection projection
    cdef MaxMinGame game
    cdef public object states, terms, state_offsets
    cdef double[::1] states_view, terms_view
    cdef double[::1] at_truth           # -G at the true label of every example
    cdef int64_t[::1] offsets
    cdef Space* spaces          # of each thread
    cdef Visit* visits          # of each slot
    cdef Py_ssize_t n_spaces, n_visits, most_state, visits_before
    cdef object owners, visit_owners
    cdef int rule
    cdef bint averaging
    cdef double gap_total
    cdef bint euclidean

    def __init__(self, LinearPotentials potentials not None, FenchelYoung surrogate not None,
                 labels, weights, double alpha):
        cdef Py_ssize_t i
        super().__init__(potentials, surrogate, labels, weights, alpha)
        self.losses, self.projection = surrogate, surrogate.projection
        # The game's G is a minimum of linear functions, which its own line search uses.
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
        self.most_state = int(sizes.max()) if potentials.n else 0
        self.reserve(potentials.n, 1, 1)
        with nogil:
            for i in range(potentials.n):
                self.begin(i)

    def reserve(self, Py_ssize_t n, Py_ssize_t threads, Py_ssize_t batch):
        """Allocate memory for examples, threads, and visits of a batch; see the base."""
        cdef Py_ssize_t theta = self.potentials.max_theta + 8, k
        cdef Py_ssize_t entries = self.surrogate.max_entries + 8
        cdef Space* space
        BatchLoop.reserve(self, n, threads, batch)
        if threads > self.n_spaces:
            owners = []
            self.spaces = <Space*>doubles(threads * sizeof(Space) // 8, owners)
            for k in range(threads):
                space = &self.spaces[k]
                space.theta, space.u = doubles(theta, owners), doubles(theta, owners)
                space.start, space.end = doubles(theta, owners), doubles(theta, owners)
                space.mixed = doubles(self.most_state, owners)
                space.scratch = doubles(self.potentials.scratch_size, owners)
                space.z = NULL
                if not self.potentials.has_gram:
                    space.z = doubles(self.potentials.dim, owners)
                space.value, space.index = doubles(entries, owners), integers(entries, owners)
                space.work = <char*>doubles(self.surrogate.work_bytes // 8 + 16, owners)
            self.owners, self.n_spaces = owners, threads
        if self.n_slots > self.n_visits:
            owners = []
            self.visits = <Visit*>doubles(self.n_slots * sizeof(Visit) // 8, owners)
            for k in range(self.n_slots):
                self.visits[k].fresh = doubles(self.most_state, owners)
                self.visits[k].value = doubles(entries, owners)
                self.visits[k].index = integers(entries, owners)
            self.visit_owners, self.n_visits = owners, self.n_slots

    cdef Py_ssize_t state_size(self, Py_ssize_t i) noexcept nogil:
        if self.projection.has_state:
            return self.projection.state_size(i)
        return self.potentials.theta_size(i)

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        return self.at_truth[i] + self.projection.term(i, state, work)

    cdef int begin(self, Py_ssize_t i) except -1 nogil:
        """Set the state to that of the true label, where w is 0."""
        cdef double* state = &self.states_view[self.offsets[i]]
        cdef const int* truth = self.truth(i)
        cdef Space* space = self.spaces
        self.at_truth[i] = self.losses.offset(i, truth, space.index, space.value, space.work)
        if self.projection.has_state:
            self.projection.state_of(i, truth, state)
        else:
            self.losses.add_truth(i, truth, 1.0, state, space.index, space.value)
        self.terms_view[i] = self.term(i, state, space.work)
        self.b_total += self.weights[i] * self.terms_view[i]
        return 0

    def run(self, const int64_t[::1] order not None, step, Py_ssize_t visits, bint averaging,
            Py_ssize_t batch=1, Team team=None):
        """Visit the examples of ``order``; return the sum of their gaps and the projection count.

        Parameters
        ----------
        order : ndarray of int64
            Examples to visit.
        step : {"search", "harmonic", "curvature"}
        visits : int
            Number of previous visits, for the harmonic step.
        averaging : bool
            Keep the average of the iterates, weighted by t.
        batch : int, default=1
            Number of examples visited at the same w; their steps are taken sequentially.
        team : Team, optional
            Threads for the visits of a batch, made for this loop.
        """
        check_order(order, self.potentials.n)
        self.reserve(self.potentials.n, 1 if team is None else team.size, batch)
        self.rule, self.averaging, self.visits_before = STEPS[step], averaging, visits
        self.gap_total = 0
        self.visit_all(order, batch, team)
        return self.gap_total, order.shape[0]

    def resynchronise(self):
        """Recompute w and the sum of G from the states, to remove accumulated rounding errors."""
        cdef Py_ssize_t i, n
        cdef Space* space = self.spaces
        self.w[:] = 0
        self.b_total = 0
        with nogil:
            for i in range(self.potentials.n):
                self.terms_view[i] = self.term(i, &self.states_view[self.offsets[i]], space.work)
                self.b_total += self.weights[i] * self.terms_view[i]
                n = self._difference(i, space)
                self.potentials.add(i, n, space.index, space.value, self.weights[i] / self.alpha,
                                    &self.w_view[0])

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

    cdef Py_ssize_t _difference(self, Py_ssize_t i, Space* space) except -1 nogil:
        """index, value <- mu(y_i) - mu(s_i)."""
        cdef Py_ssize_t j, size = self.potentials.theta_size(i), n = 0
        cdef double* u = space.u
        cdef const double* mu = self.marginals(i, &self.states_view[self.offsets[i]], space.start)
        for j in range(size):
            u[j] = -mu[j]
        self.losses.add_truth(i, self.truth(i), 1.0, u, space.index, space.value)
        for j in range(size):
            if u[j] != 0:
                space.index[n], space.value[n] = <int>j, u[j]
                n += 1
        memset(u, 0, size * sizeof(double))
        return n

    cdef int propose(self, Py_ssize_t slot, Py_ssize_t i, Py_ssize_t thread) except -1 nogil:
        """Project the scores, and search along the segment from the state to the projection."""
        cdef Visit* visit = &self.visits[slot]
        cdef Space* space = &self.spaces[thread]
        cdef double* theta = space.theta
        cdef double* state = &self.states_view[self.offsets[i]]
        cdef double* fresh = visit.fresh
        cdef double share = self.weights[i] / self.alpha
        cdef double value, bound, score = 0
        cdef Py_ssize_t j, n = 0, size = self.potentials.theta_size(i), entries = self.state_size(i)
        cdef const double* before
        cdef const double* after
        visit.n, visit.open, visit.known, visit.gamma, visit.linear = 0, False, False, 0, 0
        self.potentials.score(i, &self.w_view[0], 1.0, theta)
        before = self.marginals(i, state, space.start)
        for j in range(size):
            score += theta[j] * before[j]
        if self.game is not None:
            self.game.standing[i] = score + self.terms_view[i] - self.at_truth[i]
        self.projection.project_state(i, theta, fresh, &value, &bound, space.work)
        if self.game is not None:
            self.game.standing[i] = INFINITY
        after = self.marginals(i, fresh, space.end)
        for j in range(size):
            if after[j] != before[j]:
                visit.index[n] = <int>j
                visit.value[n] = after[j] - before[j]
                visit.linear += theta[j] * visit.value[n]
                n += 1
        visit.gap = bound + self.at_truth[i] - self.terms_view[i] - score
        check_numbers(self.projection, i, 1, &visit.gap)
        check_numbers(self.projection, i, 1, &visit.linear)
        visit.n = n
        if n == 0 or self.rule == HARMONIC:
            return 0
        visit.curvature = share * self._norm(i, visit, space)
        if self.rule == CURVATURE:
            visit.gain = visit.gap - (bound - value)
            visit.strength = self._strength(i, state, visit)
            return 0
        if self.game is not None:
            visit.gamma = self.game.search(i, state, fresh, visit.linear, visit.curvature,
                                           space.work)
        else:
            visit.gamma = self._search(i, state, visit, space.work)
        if self.damped and visit.gamma > 0:
            # G is concave: it lies above its chord.
            for j in range(entries):
                space.mixed[j] = state[j] + visit.gamma * (fresh[j] - state[j])
            visit.term, visit.known = self.term(i, space.mixed, space.work), True
            visit.rise = (visit.term - self.terms_view[i]) / visit.gamma
        return 0

    cdef int take(self, Py_ssize_t slot, Py_ssize_t i) except -1 nogil:
        """Move w by a step that certainly raises the dual at the current w."""
        cdef Visit* visit = &self.visits[slot]
        cdef double share = self.weights[i] / self.alpha, gain = visit.gain
        self.gaps_view[i] = visit.gap
        self.gap_total += self.weights[i] * visit.gap
        self.steps_done += 1
        if self.averaging:
            self.average_mass += self.steps_done
        self.moved_view[i] = 0
        self.visits_before += 1
        if visit.n == 0:
            return 0
        if self.rule == HARMONIC:
            visit.gamma = 2.0 * self.potentials.n / (
                self.visits_before - 1 + 2.0 * self.potentials.n)
        elif self.rule == CURVATURE:
            if self.damped:
                gain += self._along(visit, i) - visit.linear
            visit.gamma = self._quadratic(gain, visit)
        elif self.damped and visit.gamma > 0:
            self._damp(visit, i)
        if not visit.gamma > 0:
            return 0
        self.moved_view[i] = 1
        visit.open = True
        # The state moves away from the true label; w moves towards it.
        self.potentials.add(i, visit.n, visit.index, visit.value, -visit.gamma * share,
                            &self.w_view[0])
        if self.averaging:
            # sum_t t w_t = T(T+1)/2 w_T - sum_t (mass before t) change_t.
            self.potentials.add(i, visit.n, visit.index, visit.value,
                                -visit.gamma * share * (self.average_mass - self.steps_done),
                                &self.average_view[0])
        return 0

    cdef int finish(self, Py_ssize_t slot, Py_ssize_t i, Py_ssize_t thread) except -1 nogil:
        """Move the state."""
        cdef Visit* visit = &self.visits[slot]
        cdef double* state = &self.states_view[self.offsets[i]]
        cdef Py_ssize_t j
        if not visit.open:
            return 0
        visit.open = False
        for j in range(self.state_size(i)):
            state[j] += visit.gamma * (visit.fresh[j] - state[j])
        if not visit.known:
            visit.term = self.term(i, state, self.spaces[thread].work)
            visit.known = True
        return 0

    cdef int close(self, Py_ssize_t slot, Py_ssize_t i) except -1 nogil:
        cdef Visit* visit = &self.visits[slot]
        if visit.gamma > 0 and visit.known:
            self.b_total += self.weights[i] * (visit.term - self.terms_view[i])
            self.terms_view[i] = visit.term
        return 0

    cdef double _along(self, Visit* visit, Py_ssize_t i) noexcept nogil:
        """Return the slope of the scores at the current w along a direction."""
        return self.potentials.dot(i, visit.n, visit.index, visit.value, &self.w_view[0])

    cdef void _damp(self, Visit* visit, Py_ssize_t i) noexcept nogil:
        """Shorten a step to the maximum of the dual along it, with the chord in place of G."""
        cdef double rise = visit.rise + self._along(visit, i)
        if rise <= 0:
            visit.gamma, visit.known = 0, False
        elif rise < visit.gamma * visit.curvature:
            visit.gamma, visit.known = rise / visit.curvature, False

    cdef double _norm(self, Py_ssize_t i, const Visit* visit, Space* space) noexcept nogil:
        """Return ``||Phi_i' d||^2`` for the direction d of a visit."""
        cdef const int* index = visit.index
        cdef const double* value = visit.value
        cdef double* u = space.u
        cdef double total = 0
        cdef Py_ssize_t k
        if not self.potentials.has_gram:
            self.potentials.add(i, visit.n, index, value, 1.0, space.z)
            total = self.potentials.dot(i, visit.n, index, value, space.z)
            self.potentials.clear(i, visit.n, index, space.z)
            return total
        self.potentials.add_gram(i, visit.n, index, value, 1.0, u, space.scratch)
        for k in range(visit.n):
            total += value[k] * u[index[k]]
        memset(u, 0, self.potentials.theta_size(i) * sizeof(double))
        return total

    cdef double _quadratic(self, double gain, const Visit* visit) noexcept nogil:
        """Return Shalev-Shwartz and Zhang's step for G with this strong concavity."""
        cdef double q = visit.strength, curvature = visit.curvature
        if q + curvature <= 0:
            return 1
        return min(max((gain + q / 2) / (q + curvature), 0), 1)

    cdef double _strength(self, Py_ssize_t i, const double* state,
                          const Visit* visit) noexcept nogil:
        """Return the q for which G lies ``q gamma (1 - gamma) / 2`` or more above its chord.

        The entropy of labels is strongly concave in their l1 distance, which is at least the
        distance of the marginals of any node.  -|mu|^2 / 2 is strongly concave in the Euclidean
        distance of the node parts.  If parts are not probabilities, state distances are used.
        """
        cdef Py_ssize_t k, first = self.potentials.shared_size, width = self.potentials.node_size
        cdef Py_ssize_t last = first, row = -1, position
        cdef Py_ssize_t n = visit.n
        cdef const double* fresh = visit.fresh
        cdef double q = 0, total = 0
        last += (self.potentials.offsets[i + 1] - self.potentials.offsets[i]) * width
        for k in range(self.losses.state_rows):
            total = fresh[k] - state[k]
            q += total * total if self.euclidean else fabs(total)
        if self.losses.state_rows:
            q, n = q if self.euclidean else q * q, 0
        for k in range(n):
            position = visit.index[k]
            if first <= position < last:
                if self.euclidean:
                    q += visit.value[k] * visit.value[k]
                else:
                    if (position - first) // width != row:
                        row, total = (position - first) // width, 0
                    total += fabs(visit.value[k])
                    q = max(q, total * total)
        return q

    cdef double _search(self, Py_ssize_t i, const double* state, const Visit* visit,
                        char* work) except? -1 nogil:
        """Maximise ``G((1-g) s + g f) + g linear - g^2 curvature / 2`` by its slope's root."""
        cdef double low = 0, high = 1, at_low = INFINITY, at_high, gamma, value
        cdef const double* fresh = visit.fresh
        cdef double linear = visit.linear, curvature = visit.curvature, gap = visit.gap
        cdef int k
        at_high = self.projection.slope(i, state, fresh, 1.0, work) + linear - curvature
        if at_high >= 0:
            return 1
        # The root if the slope were linear; the slope at 0 is at least the gap.
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
                # Entropies have infinite slope at 0: gamma falls by orders of magnitude there.
                gamma = (low + high) / 2 if low > 0 else high / 8
            else:
                gamma = low + (high - low) * at_low / (at_low - at_high)
        return low
