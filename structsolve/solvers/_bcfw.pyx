"""Block-coordinate Frank-Wolfe: the loop over examples, in part space, without the GIL."""

import numpy as np

from libc.stdint cimport int64_t
from ..potentials.linear cimport LinearPotentials
from ..surrogates.base cimport Cut, Surrogate
from ._cuts cimport CutHead, CutStore, cut_index, cut_values, inner, slope
from ._loop cimport DualLoop
from ._polyhedron cimport Polyhedron
from ._steps cimport line_searches

from ..utils.arrays import aligned_zeros, check_numbers


# Cuts are kept as Phi' p where theta is so many times longer than w.
cdef Py_ssize_t SHORT = 2


cdef class BlockLoop(DualLoop):
    """State and inner loop of BCFW (Lacoste-Julien et al. 2013; Osokin et al. 2016).

    The dual variable of example i is a convex combination of cuts that past oracle calls gave,
    ``p_i = sum_j a_j p_ij`` (the truth, p = 0, has the rest of the weight), and
    ``w = (1/alpha) sum_i u_i Phi_i' p_i``.  A visit scores the example once, asks the surrogate for
    a cut, and moves weight between cuts by line searches; inside the visit the scores are kept
    up to date by ``K_ii = Phi_i Phi_i'``, so further steps and oracle calls touch no feature.

    Where w is much shorter than the scores of the largest example (pictures whose pixels share a
    few weights) cuts are kept as ``Phi_i' p_ij``: cheap passes then cost a few numbers per cut, not
    one for each pixel.
    """

    cdef public CutStore cuts
    # Where w has to lie; None for anywhere.
    cdef readonly Polyhedron feasible
    # Cuts are kept as Phi' p, dense: their entries are those of w.
    cdef readonly bint short
    cdef object z_owner, heads_owner
    cdef double[::1] z_view     # like w, zeros between calls; only without kept Gram matrices
    cdef double[::1] theta_buffer, u_buffer, z_buffer, scratch, value_buffer, merged_value
    cdef int[::1] index_buffer, merged_index
    cdef char[::1] work, seen
    cdef CutHead** heads
    cdef double[::1] before, scored, slopes, drift

    def __init__(self, LinearPotentials potentials not None, Surrogate surrogate not None, labels,
                 weights, double alpha, Py_ssize_t max_cuts=50):
        super().__init__(potentials, surrogate, labels, weights, alpha, max_cuts)
        self.cuts = CutStore(potentials.n)
        self.theta_buffer = aligned_zeros(potentials.max_theta + 8)
        self.u_buffer = aligned_zeros(potentials.max_theta + 8)
        self.z_buffer = aligned_zeros(potentials.max_theta + 8)
        self.scratch = aligned_zeros(potentials.scratch_size)
        entries = max(surrogate.max_entries, 1)
        self.value_buffer = np.zeros(entries)
        self.index_buffer = np.zeros(entries, dtype=np.int32)
        self.merged_value = np.zeros(potentials.max_theta + 8)
        self.merged_index = np.zeros(potentials.max_theta + 8, dtype=np.int32)
        self.seen = np.zeros(potentials.max_theta + 8, dtype=np.int8)
        self.short = (potentials.has_weights and not potentials.has_gram
                      and SHORT * potentials.dim <= potentials.max_theta - potentials.shared_size)
        self.z_owner = None if potentials.has_gram else aligned_zeros(potentials.dim)
        if self.z_owner is not None:
            self.z_view = self.z_owner
        self.work = aligned_zeros(surrogate.work_bytes // 8 + 16).view(np.int8)
        self.heads_owner = np.zeros(max_cuts + 8, dtype=np.uintp)
        cdef size_t[::1] pointers = self.heads_owner
        self.heads = <CutHead**>&pointers[0]
        self.before, self.scored = np.zeros(max_cuts + 8), np.zeros(max_cuts + 8)
        self.slopes, self.drift = np.zeros(max_cuts + 8), np.zeros(max_cuts + 8)

    def constrain(self, Polyhedron feasible not None):
        """Keep w inside a polyhedron ``A w <= c`` from now on.

        The dual has one more block, the multipliers ``nu >= 0`` of the rows: ``w = v - A' nu /
        alpha`` with v as above, and ``- <c, nu>`` in the objective.  Its exact maximisation is the
        projection of v onto the polyhedron, which follows every step.
        """
        self.feasible = feasible
        self.feasible.project(&self.w_view[0], 1, False, NULL, 0)

    def run(self, const int64_t[::1] order not None, int max_calls, int max_steps, bint pairwise,
            int max_age, double inner_tol, double min_gain, bint averaging):
        """Visit the examples of ``order``; return the sum of gaps met and the oracle calls.

        Parameters
        ----------
        order : ndarray of int64
            Examples to visit.
        max_calls : int
            Oracle calls per visit; 0 works on cached cuts alone.
        max_steps : int
            Line searches after each call.
        pairwise : bool
            Move weight from the worst cut to the best; else from all cuts to the best.
        max_age : int
            Visits that a cut of weight 0 stays in the cache.
        inner_tol : float
            A visit ends when its gap is below this share of the gap it began with.
        min_gain : float
            Smallest gap within the kept cuts that is worth a line search.
        averaging : bool
            Keep the average of the iterates, weighted by t.
        """
        cdef Py_ssize_t k
        cdef long calls = 0
        cdef double total = 0
        check_numbers(order, self.potentials.n, "order")
        with nogil:
            for k in range(order.shape[0]):
                calls += self.visit(order[k], max_calls, max_steps, pairwise, max_age, inner_tol,
                                    min_gain, averaging)
                total += self.weights[order[k]] * self.gaps_view[order[k]]
        return total, calls

    def resynchronise(self):
        """Recompute w, and the sum of b, from the dual variables: rounding does not add up."""
        cdef Py_ssize_t i, j, m
        self.w[:] = 0
        self.b_total = 0
        with nogil:
            for i in range(self.potentials.n):
                m = self.cuts.heads(i, self.heads)
                for j in range(m):
                    self.before[j] = 0
                self._apply(i, m, self.weights[i] / self.alpha, False)
        if self.feasible is not None:
            self.feasible.project(&self.w_view[0], 1, False, NULL, 0)

    def known_values(self, const double[::1] w not None):
        """Return what the kept cuts prove of every H_i at w.

        Parameters
        ----------
        w : ndarray of shape (dim,)

        Returns
        -------
        ndarray of shape (n,)
            At least 0.
        """
        cdef Py_ssize_t i, j, m
        cdef double value
        if w.shape[0] != self.potentials.dim:
            raise ValueError(f"w: found {w.shape[0]} entries, expected {self.potentials.dim}")
        values = np.zeros(self.potentials.n)
        cdef double[::1] out = values
        with nogil:
            for i in range(self.potentials.n):
                m = self.cuts.heads(i, self.heads)
                for j in range(m):
                    value = self._slope(i, self.heads[j], &w[0])
                    out[i] = max(out[i], value)
        return values

    @property
    def count(self):
        """Number of cuts kept."""
        return self.cuts.count

    @property
    def nbytes(self):
        """Bytes of the kept cuts."""
        return self.cuts.nbytes

    def to_arrays(self):
        """Return the dual variables as arrays, for checkpoints."""
        return self.cuts.to_arrays()

    def restore(self, counters, arrays, w, average, gaps):
        """Continue from a checkpoint."""
        cdef Py_ssize_t i, j, k, m
        if "key" not in arrays:
            raise ValueError("the checkpoint was made with other steps")
        cdef CutStore cuts = CutStore.from_arrays(arrays)
        self.check_sizes(cuts.n, w)
        for i in range(cuts.n):
            if cuts.lists[i].count > self.max_cuts:
                raise ValueError(
                    f"the checkpoint keeps {cuts.lists[i].count} cuts for example {i}, max_cuts "
                    f"is {self.max_cuts}"
                )
            m = cuts.heads(i, self.heads)
            for j in range(m):
                if self.short and self.heads[j].nnz != self.potentials.dim:
                    raise ValueError(f"the checkpoint has cuts of another kind, of example {i}")
                for k in range(self.heads[j].nnz):
                    if not 0 <= cut_index(self.heads[j])[k] < (
                            self.potentials.dim if self.short else self.potentials.theta_size(i)):
                        raise ValueError(f"the checkpoint has cuts of another example {i}")
        self.continue_from(counters, w, average, gaps)
        self.cuts = cuts
        for i in range(cuts.n):
            m = self.cuts.heads(i, self.heads)
            cuts.gram_room(i)
            for j in range(m):
                self._gram_row(i, j)

    cdef long visit(self, Py_ssize_t i, int max_calls, int max_steps, bint pairwise, int max_age,
                    double inner_tol, double min_gain, bint averaging) except -1 nogil:
        cdef double* theta = &self.theta_buffer[0]
        cdef double* slopes = &self.slopes[0]
        cdef double share = self.weights[i] / self.alpha, current, gap, first_gap = 0
        cdef Py_ssize_t m, j, entries = 0
        cdef int call = 0
        cdef long calls = 0
        cdef Cut cut
        cdef CutHead** heads = self.heads
        cdef bint moved = False
        m = self.cuts.heads(i, heads)
        self.moved_view[i] = 0
        if max_calls == 0 and m == 0:
            return 0
        for j in range(m):
            self.before[j] = heads[j].weight
            self.scored[j] = 0
            entries += heads[j].nnz
        if self.short or (max_calls == 0 and 8 * entries < (
                self.potentials.theta_size(i) - self.potentials.shared_size)):
            # Few parts of many: score only those that the kept cuts touch.
            for j in range(m):
                slopes[j] = self._slope(i, heads[j], &self.w_view[0])
            if max_calls > 0:
                self.potentials.score(i, &self.w_view[0], 1.0, theta)
        else:
            self.potentials.score(i, &self.w_view[0], 1.0, theta)
            for j in range(m):
                slopes[j] = slope(heads[j], theta)
        while True:
            current = 0
            for j in range(m):
                current += heads[j].weight * slopes[j]
            if max_calls > 0:
                cut.index, cut.value = &self.index_buffer[0], &self.value_buffer[0]
                self.surrogate.cut(i, theta, self.truth(i), &cut, &self.work[0])
                calls += cut.calls
                gap = cut.bound - current
                if call == 0:
                    first_gap = gap
                    self.gaps_view[i] = gap
                if gap <= inner_tol * first_gap or gap <= 0:
                    break
                # The truth is not stored: it has the rest of the weight.
                if (cut.nnz or cut.b > 0) and not self._known(m, &cut):
                    if m == self.max_cuts:
                        if moved:
                            break
                        self._make_room(i, m)
                        m = self.cuts.heads(i, heads)
                        for j in range(m):
                            self.before[j] = heads[j].weight
                            self.scored[j] = 0
                            slopes[j] = self._slope_now(i, heads[j], theta)
                    if self.short:
                        self._shorten(i, &cut)
                    self._insert(i, &cut)
                    m = self.cuts.heads(i, heads)
                    self.before[m - 1] = self.scored[m - 1] = 0
                    slopes[m - 1] = self._slope_now(i, heads[m - 1], theta)
            if line_searches(heads, m, self.cuts.lists[i].gram, self.cuts.lists[i].side, slopes,
                             &self.drift[0], share, pairwise, max_steps, inner_tol, min_gain):
                moved = True
            call += 1
            if call >= max_calls:
                break
            self._update_scores(i, m, share, theta)
        if moved:
            self.moved_view[i] = 1
            self._apply(i, m, share, averaging)
            if self.feasible is not None:
                self.feasible.project(&self.w_view[0], 1, True,
                                      &self.average_view[0] if averaging else NULL,
                                      self.average_mass)
        if averaging:
            self.steps_done += 1
            self.average_mass += self.steps_done
        self.cuts.prune(i, max_age)
        return calls

    cdef inline double _slope(self, Py_ssize_t i, CutHead* head, const double* w) noexcept nogil:
        """What a cut says of H_i at w."""
        if self.short:
            return slope(head, w)
        return head.b - self.potentials.dot(i, head.nnz, cut_index(head), cut_values(head), w)

    cdef inline double _slope_now(self, Py_ssize_t i, CutHead* head,
                                  const double* theta) noexcept nogil:
        """... at the w whose scores are theta."""
        return slope(head, &self.w_view[0] if self.short else theta)

    cdef void _shorten(self, Py_ssize_t i, Cut* cut) noexcept nogil:
        """Turn a cut of the surrogate into one over the entries of w."""
        cdef Py_ssize_t k, dim = self.potentials.dim
        self.potentials.add(i, cut.nnz, cut.index, cut.value, 1.0, &self.z_view[0])
        for k in range(dim):
            self.merged_index[k] = <int>k
            self.merged_value[k] = self.z_view[k]
            self.z_view[k] = 0
        cut.nnz = <int>dim
        cut.index, cut.value = &self.merged_index[0], &self.merged_value[0]

    cdef inline bint _known(self, Py_ssize_t m, const Cut* cut) noexcept nogil:
        cdef Py_ssize_t j
        for j in range(m):
            if self.heads[j].key == cut.key and (self.short or self.heads[j].nnz == cut.nnz):
                return True
        return False

    cdef int _insert(self, Py_ssize_t i, const Cut* cut) except -1 nogil:
        """Append a cut and its row of the Gram matrix."""
        cdef Py_ssize_t m
        self.cuts.gram_room(i)
        self.cuts.append(i, cut)
        m = self.cuts.heads(i, self.heads)
        self._gram_row(i, m - 1)
        return 0

    cdef void _gram_row(self, Py_ssize_t i, Py_ssize_t row) noexcept nogil:
        """Inner products of a cut with those before it and itself."""
        cdef double* gram = self.cuts.lists[i].gram
        cdef Py_ssize_t side = self.cuts.lists[i].side, j
        cdef double* u = &self.u_buffer[0]
        cdef CutHead* head = self.heads[row]
        if self.short:
            for j in range(row + 1):
                gram[row * side + j] = gram[j * side + row] = inner(head, cut_values(self.heads[j]))
            return
        if not self.potentials.has_gram:
            self._gram_row_through_features(i, row, gram, side)
            return
        self.potentials.add_gram(i, head.nnz, cut_index(head), cut_values(head), 1.0, u,
                                   &self.scratch[0])
        for j in range(row + 1):
            gram[row * side + j] = gram[j * side + row] = inner(self.heads[j], u)
        self.potentials.clear_gram(i, head.nnz, cut_index(head), u)

    cdef void _gram_row_through_features(self, Py_ssize_t i, Py_ssize_t row, double* gram,
                                         Py_ssize_t side) noexcept nogil:
        """As ``_gram_row()``, through ``z = Phi' p``.

        It needs no pairs of nodes: the cost grows with the length of an example, not with its
        square.  Each part of the cuts is scored once.
        """
        cdef double* u = &self.u_buffer[0]
        cdef double* z = &self.z_view[0]
        cdef CutHead* head = self.heads[row]
        cdef const int* index
        cdef Py_ssize_t j, k, known, n = 0
        self.potentials.add(i, head.nnz, cut_index(head), cut_values(head), 1.0, z)
        for j in range(row + 1):
            index = cut_index(self.heads[j])
            known = n
            for k in range(self.heads[j].nnz):
                if not self.seen[index[k]]:
                    self.seen[index[k]] = 1
                    self.merged_index[n] = index[k]
                    n += 1
            self.potentials.scores(i, n - known, &self.merged_index[known], z,
                                   &self.merged_value[known])
            for k in range(known, n):
                u[self.merged_index[k]] = self.merged_value[k]
            gram[row * side + j] = gram[j * side + row] = inner(self.heads[j], u)
        for k in range(n):
            self.seen[self.merged_index[k]] = 0
            u[self.merged_index[k]] = 0
        self.potentials.clear(i, head.nnz, cut_index(head), z)

    cdef void _update_scores(self, Py_ssize_t i, Py_ssize_t m, double share,
                             double* theta) noexcept nogil:
        """Bring the scores up to date with the weights, through K_ii."""
        cdef double* u = &self.u_buffer[0]
        cdef CutHead* head
        cdef Py_ssize_t j, k
        cdef double change
        if self.short:
            for k in range(self.potentials.dim):
                self.z_view[k] = self.w_view[k]
            for j in range(m):
                head = self.heads[j]
                for k in range(head.nnz):
                    self.z_view[k] += share * (head.weight - self.before[j]) * cut_values(head)[k]
            self.potentials.score(i, &self.z_view[0], 1.0, theta)
            for k in range(self.potentials.dim):
                self.z_view[k] = 0
            return
        for j in range(m):
            head = self.heads[j]
            change = head.weight - self.before[j] - self.scored[j]
            if change != 0:
                self.potentials.add_gram(i, head.nnz, cut_index(head), cut_values(head),
                                           change, u, &self.scratch[0])
        for j in range(m):
            head = self.heads[j]
            change = head.weight - self.before[j] - self.scored[j]
            if change != 0:
                self.scored[j] += change
                self.potentials.move_gram(i, head.nnz, cut_index(head), share, u, theta)

    cdef void _apply(self, Py_ssize_t i, Py_ssize_t m, double share, bint averaging) noexcept nogil:
        """Change w (and the average) once, for all steps of a visit."""
        cdef Py_ssize_t j, n_changed = 0
        cdef double change, b_change = 0
        cdef CutHead* head
        for j in range(m):
            head = self.heads[j]
            change = head.weight - self.before[j]
            if change != 0:
                b_change += change * head.b
                n_changed = self._merge(head, change, n_changed)
        self._merged(n_changed)
        self.b_total += self.weights[i] * b_change
        if self.short:
            for j in range(n_changed):
                change = share * self.merged_value[j]
                self.w_view[self.merged_index[j]] += change
                if averaging:
                    self.average_view[self.merged_index[j]] += self.average_mass * change
            return
        self.potentials.add(i, n_changed, &self.merged_index[0], &self.merged_value[0], share,
                            &self.w_view[0])
        if averaging:
            # sum_t t w_t = T(T+1)/2 w_T - sum_t (mass before t) change_t.
            self.potentials.add(i, n_changed, &self.merged_index[0], &self.merged_value[0],
                                share * self.average_mass, &self.average_view[0])

    cdef inline Py_ssize_t _merge(self, CutHead* head, double coef, Py_ssize_t n) noexcept nogil:
        """z += coef * cut; the n entries touched so far, each once, are in merged_index."""
        cdef const int* index = cut_index(head)
        cdef const double* value = cut_values(head)
        cdef Py_ssize_t k
        for k in range(head.nnz):
            # Not z == 0: sums pass through zero, and merged_index has room for each entry once.
            if not self.seen[index[k]]:
                self.seen[index[k]] = 1
                self.merged_index[n] = index[k]
                n += 1
            self.z_buffer[index[k]] += coef * value[k]
        return n

    cdef inline void _merged(self, Py_ssize_t n) noexcept nogil:
        """Move the merged entries from z to merged_value; z is zero again."""
        cdef Py_ssize_t k
        for k in range(n):
            self.merged_value[k] = self.z_buffer[self.merged_index[k]]
            self.z_buffer[self.merged_index[k]] = 0
            self.seen[self.merged_index[k]] = 0

    cdef int _make_room(self, Py_ssize_t i, Py_ssize_t m) except -1 nogil:
        """Drop the oldest idle cut; where all carry weight, merge the two lightest into one."""
        cdef CutHead** heads = self.heads
        cdef Py_ssize_t j, first = -1, second = -1, n = 0
        cdef double total
        cdef Cut cut
        for j in range(m):
            if heads[j].weight == 0 and (first < 0 or heads[j].age > heads[first].age):
                first = j
        if first >= 0:
            heads[first].weight = -1
            self.cuts.prune(i, 2147483647)
            return 0
        for j in range(m):
            if first < 0 or heads[j].weight < heads[first].weight:
                second = first
                first = j
            elif second < 0 or heads[j].weight < heads[second].weight:
                second = j
        total = heads[first].weight + heads[second].weight
        cut.b = (heads[first].weight * heads[first].b + heads[second].weight * heads[second].b)
        cut.b /= total
        for j in range(m):
            if j == first or j == second:
                n = self._merge(heads[j], heads[j].weight / total, n)
        self._merged(n)
        cut.nnz, cut.key, cut.bound, cut.calls = n, 0, 0, 0
        cut.index, cut.value = &self.merged_index[0], &self.merged_value[0]
        heads[first].weight = -1
        heads[second].weight = -1
        self.cuts.prune(i, 2147483647)
        self._insert(i, &cut)
        self.heads[self.cuts.lists[i].count - 1].weight = total
        return 0
