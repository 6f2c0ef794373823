"""One visit of BCFW: proposals of the oracle and line searches over the kept cuts at a given w."""

from libc.stdint cimport int32_t, int64_t
from ..potentials.linear cimport LinearPotentials
from ..surrogates.base cimport Cut, Surrogate
from ._batches cimport BatchLoop, doubles, integers
from ._cuts cimport CutHead, CutList, CutStore, cut_index, cut_values, inner, slope
from ._loop cimport DualLoop
from ._steps cimport line_searches


cdef extern from "structsolve/simd/prefetch.h" nogil:
    void SS_PREFETCH(const void* address)

# Cache lines of one array that are fetched.
cdef Py_ssize_t LINES = 24

# Cuts are kept as Phi' p if theta is this many times longer than w.
cdef Py_ssize_t SHORT = 2


cdef class VisitLoop(DualLoop):
    """The cuts of every example, and the visits of a batch, which threads may share.

    A visit reads w and changes only its own example's cuts, so visits to different examples have
    the same result in any order and thread.
    """

    def __init__(self, LinearPotentials potentials not None, Surrogate surrogate not None, labels,
                 weights, double alpha, Py_ssize_t max_cuts=50):
        super().__init__(potentials, surrogate, labels, weights, alpha, max_cuts)
        self.cuts = CutStore(potentials.n)
        self.short = (potentials.has_weights and not potentials.has_gram
                      and SHORT * potentials.dim <= potentials.max_theta - potentials.shared_size)
        self.reserve(potentials.n, 1, 1)

    def reserve(self, Py_ssize_t n, Py_ssize_t threads, Py_ssize_t batch):
        """Allocate memory for examples, threads, and visits of a batch; see the base."""
        cdef Py_ssize_t theta = self.potentials.max_theta + 8, cuts = self.max_cuts + 8, k
        cdef Py_ssize_t entries = self.surrogate.max_entries + 1
        cdef Space* space
        BatchLoop.reserve(self, n, threads, batch)
        if threads > self.n_spaces:
            owners = []
            self.spaces = <Space*>doubles(threads * sizeof(Space) // 8, owners)
            for k in range(threads):
                space = &self.spaces[k]
                space.theta, space.u = doubles(theta, owners), doubles(theta, owners)
                space.z_buffer = doubles(theta, owners)
                space.z = NULL
                if not self.potentials.has_gram:
                    space.z = doubles(self.potentials.dim, owners)
                space.scratch = doubles(self.potentials.scratch_size, owners)
                space.value, space.index = doubles(entries, owners), integers(entries, owners)
                space.merged_value = doubles(theta, owners)
                space.merged_index = integers(theta, owners)
                space.scored, space.slopes = doubles(cuts, owners), doubles(cuts, owners)
                space.drift = doubles(cuts, owners)
                space.seen = <char*>doubles(theta // 8 + 1, owners)
                space.work = <char*>doubles(self.surrogate.work_bytes // 8 + 16, owners)
                space.heads = <CutHead**>doubles(cuts, owners)
            self.owners, self.n_spaces = owners, threads
        if self.n_slots > self.n_visits:
            owners = []
            self.visits = <Visit*>doubles(self.n_slots * sizeof(Visit) // 8, owners)
            for k in range(self.n_slots):
                self.visits[k].value = doubles(theta, owners)
                self.visits[k].index = integers(theta, owners)
                self.visits[k].before = doubles(cuts, owners)
            self.visit_owners, self.n_visits = owners, self.n_slots

    cdef void expect(self, Py_ssize_t i) noexcept nogil:
        """Fetch the features, the Gram block and the cuts of an example, which are scattered in memory."""
        cdef int64_t first, last
        cdef CutList* cuts = &self.cuts.lists[i]
        if self.potentials.nodes is not None:
            first, last = self.potentials.offsets[i], self.potentials.offsets[i + 1]
            if self.potentials.nodes.indptr != NULL:
                first, last = self.potentials.nodes.indptr[first], self.potentials.nodes.indptr[last]
                _fetch(self.potentials.nodes.indices + first, (last - first) * sizeof(int32_t))
            else:
                first *= self.potentials.nodes.n_cols
                last *= self.potentials.nodes.n_cols
            if self.potentials.nodes.f64 != NULL:
                _fetch(self.potentials.nodes.f64 + first, (last - first) * sizeof(double))
            elif self.potentials.nodes.f32 != NULL:
                _fetch(self.potentials.nodes.f32 + first, (last - first) * sizeof(float))
        _fetch(cuts.memory, cuts.used)
        if cuts.gram != NULL:
            _fetch(cuts.gram, cuts.side * cuts.side * sizeof(double))

    cdef int finish(self, Py_ssize_t slot, Py_ssize_t i, Py_ssize_t thread) except -1 nogil:
        """Give the cuts their share of the step, and drop long idle ones."""
        cdef Visit* visit = &self.visits[slot]
        cdef CutHead** heads = self.spaces[thread].heads
        cdef Py_ssize_t j, m
        if visit.open:
            visit.open = False
            if visit.moved and visit.gamma < 1:
                m = self.cuts.heads(i, heads)
                for j in range(m):
                    heads[j].weight = visit.before[j] + visit.gamma * (
                        heads[j].weight - visit.before[j])
            self.cuts.prune(i, self.settings.max_age)
        visit.moved = False
        return 0

    cdef int give_up(self, Py_ssize_t slot, Py_ssize_t i) except -1 nogil:
        cdef CutHead** heads = self.spaces.heads
        cdef Py_ssize_t j, m
        if self.visits[slot].moved:
            m = self.cuts.heads(i, heads)
            for j in range(m):
                heads[j].weight = self.visits[slot].before[j]
        return 0

    cdef int propose(self, Py_ssize_t slot, Py_ssize_t i, Py_ssize_t thread) except -1 nogil:
        """Find the step of a visit; the weights of the cuts are then those of the whole step."""
        cdef Visit* visit = &self.visits[slot]
        cdef Space* space = &self.spaces[thread]
        cdef const Settings* settings = &self.settings
        cdef double* theta = space.theta
        cdef double* slopes = space.slopes
        cdef int max_calls = settings.max_calls
        cdef double share = self.weights[i] / self.alpha, current, gap, first_gap = 0
        cdef Py_ssize_t m, j, entries = 0
        cdef int call = 0
        cdef Cut cut
        cdef CutHead** heads = space.heads
        cdef bint moved = False
        m = self.cuts.heads(i, heads)
        visit.calls, visit.n_changed, visit.gap, visit.rise = 0, 0, 0, 0
        visit.moved = visit.open = False
        visit.skipped = max_calls == 0 and m == 0
        if visit.skipped:
            return 0
        for j in range(m):
            visit.before[j] = heads[j].weight
            space.scored[j] = 0
            entries += heads[j].nnz
        if self.short or (max_calls == 0 and 8 * entries < (
                self.potentials.theta_size(i) - self.potentials.shared_size)):
            # With few parts of many, score only those of the kept cuts.
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
                cut.index, cut.value = space.index, space.value
                self.surrogate.cut(i, theta, self.truth(i), &cut, space.work)
                visit.calls += cut.calls
                gap = cut.bound - current
                if call == 0:
                    first_gap = gap
                    visit.gap = gap
                if gap <= settings.inner_tol * first_gap or gap <= 0:
                    break
                # The truth is not stored: it has the rest of the weight.
                if (cut.nnz or cut.b > 0) and not self._known(m, &cut, heads):
                    if m == self.max_cuts:
                        if moved:
                            break
                        self._drop_one(i, m, space)
                        m = self.cuts.heads(i, heads)
                        for j in range(m):
                            visit.before[j] = heads[j].weight
                            space.scored[j] = 0
                            slopes[j] = self._slope_now(i, heads[j], theta)
                    if self.short:
                        self._shorten(i, &cut, space)
                    self._insert(i, &cut, space)
                    m = self.cuts.heads(i, heads)
                    visit.before[m - 1] = space.scored[m - 1] = 0
                    slopes[m - 1] = self._slope_now(i, heads[m - 1], theta)
            if line_searches(heads, m, self.cuts.lists[i].gram, self.cuts.lists[i].side, slopes,
                             space.drift, share, settings.pairwise, settings.max_steps,
                             settings.inner_tol, settings.min_gain, &visit.rise):
                moved = True
            call += 1
            if call >= max_calls:
                break
            self._update_scores(visit, i, space, m, share)
        if moved:
            visit.moved = True
            self._change(visit, i, space, m)
        return 0

    cdef void _change(self, Visit* visit, Py_ssize_t i, Space* space, Py_ssize_t m) noexcept nogil:
        """Add up the changes of the cuts' weights, one entry for each part that they touch."""
        cdef Py_ssize_t j, k, n = 0, side = self.cuts.lists[i].side
        cdef const double* gram = self.cuts.lists[i].gram
        cdef double change, product
        cdef CutHead* head
        visit.b_change = visit.square = 0
        for j in range(m):
            head = space.heads[j]
            change = head.weight - visit.before[j]
            if change != 0:
                visit.b_change += change * head.b
                n = self._merge(head, change, n, visit.index, space)
                if self.damped:
                    product = 0
                    for k in range(m):
                        product += gram[j * side + k] * (space.heads[k].weight - visit.before[k])
                    visit.square += change * product
        self._merged(n, visit.index, visit.value, space)
        visit.n_changed = n

    cdef double _slope(self, Py_ssize_t i, CutHead* head, const double* w) noexcept nogil:
        """The value of a cut at w."""
        if self.short:
            return slope(head, w)
        return head.b - self.potentials.dot(i, head.nnz, cut_index(head), cut_values(head), w)

    cdef double _slope_now(self, Py_ssize_t i, CutHead* head, const double* theta) noexcept nogil:
        """... at the w whose scores are theta."""
        return slope(head, &self.w_view[0] if self.short else theta)

    cdef void _shorten(self, Py_ssize_t i, Cut* cut, Space* space) noexcept nogil:
        """Convert a cut of the surrogate to the entries of w."""
        cdef Py_ssize_t k, dim = self.potentials.dim
        self.potentials.add(i, cut.nnz, cut.index, cut.value, 1.0, space.z)
        for k in range(dim):
            space.merged_index[k] = <int>k
            space.merged_value[k] = space.z[k]
            space.z[k] = 0
        cut.nnz = <int>dim
        cut.index, cut.value = space.merged_index, space.merged_value

    cdef bint _known(self, Py_ssize_t m, const Cut* cut, CutHead** heads) noexcept nogil:
        cdef Py_ssize_t j
        for j in range(m):
            if heads[j].key == cut.key and (self.short or heads[j].nnz == cut.nnz):
                return True
        return False

    cdef int _insert(self, Py_ssize_t i, const Cut* cut, Space* space) except -1 nogil:
        """Append a cut and its row of the Gram matrix."""
        cdef Py_ssize_t m
        self.cuts.gram_room(i)
        self.cuts.append(i, cut)
        m = self.cuts.heads(i, space.heads)
        self._gram_row(i, m - 1, space)
        return 0

    cdef void _gram_row(self, Py_ssize_t i, Py_ssize_t row, Space* space) noexcept nogil:
        """Inner products of a cut with those before it and itself."""
        cdef double* gram = self.cuts.lists[i].gram
        cdef Py_ssize_t side = self.cuts.lists[i].side, j
        cdef double* u = space.u
        cdef CutHead* head = space.heads[row]
        if self.short:
            for j in range(row + 1):
                gram[row * side + j] = gram[j * side + row] = inner(head, cut_values(space.heads[j]))
            return
        if not self.potentials.has_gram:
            self._gram_row_through_features(i, row, gram, side, space)
            return
        self.potentials.add_gram(i, head.nnz, cut_index(head), cut_values(head), 1.0, u,
                                   space.scratch)
        for j in range(row + 1):
            gram[row * side + j] = gram[j * side + row] = inner(space.heads[j], u)
        self.potentials.clear_gram(i, head.nnz, cut_index(head), u)

    cdef void _gram_row_through_features(self, Py_ssize_t i, Py_ssize_t row, double* gram,
                                         Py_ssize_t side, Space* space) noexcept nogil:
        """As ``_gram_row()``, through ``z = Phi' p``.

        It needs no pairs of nodes: the cost grows with the length of an example, not with its
        square.  Each part of the cuts is scored once.
        """
        cdef double* u = space.u
        cdef double* z = space.z
        cdef CutHead* head = space.heads[row]
        cdef const int* index
        cdef Py_ssize_t j, k, known, n = 0
        self.potentials.add(i, head.nnz, cut_index(head), cut_values(head), 1.0, z)
        for j in range(row + 1):
            index = cut_index(space.heads[j])
            known = n
            for k in range(space.heads[j].nnz):
                if not space.seen[index[k]]:
                    space.seen[index[k]] = 1
                    space.merged_index[n] = index[k]
                    n += 1
            self.potentials.scores(i, n - known, &space.merged_index[known], z,
                                   &space.merged_value[known])
            for k in range(known, n):
                u[space.merged_index[k]] = space.merged_value[k]
            gram[row * side + j] = gram[j * side + row] = inner(space.heads[j], u)
        for k in range(n):
            space.seen[space.merged_index[k]] = 0
            u[space.merged_index[k]] = 0
        self.potentials.clear(i, head.nnz, cut_index(head), z)

    cdef void _update_scores(self, Visit* visit, Py_ssize_t i, Space* space, Py_ssize_t m,
                             double share) noexcept nogil:
        """Bring the scores up to date with the weights, through K_ii."""
        cdef double* u = space.u
        cdef double* theta = space.theta
        cdef CutHead* head
        cdef Py_ssize_t j, k
        cdef double change
        if self.short:
            for k in range(self.potentials.dim):
                space.z[k] = self.w_view[k]
            for j in range(m):
                head = space.heads[j]
                for k in range(head.nnz):
                    space.z[k] += share * (head.weight - visit.before[j]) * cut_values(head)[k]
            self.potentials.score(i, space.z, 1.0, theta)
            for k in range(self.potentials.dim):
                space.z[k] = 0
            return
        for j in range(m):
            head = space.heads[j]
            change = head.weight - visit.before[j] - space.scored[j]
            if change != 0:
                self.potentials.add_gram(i, head.nnz, cut_index(head), cut_values(head),
                                           change, u, space.scratch)
        for j in range(m):
            head = space.heads[j]
            change = head.weight - visit.before[j] - space.scored[j]
            if change != 0:
                space.scored[j] += change
                self.potentials.move_gram(i, head.nnz, cut_index(head), share, u, theta)

    cdef Py_ssize_t _merge(self, CutHead* head, double coef, Py_ssize_t n, int* merged,
                                  Space* space) noexcept nogil:
        """z += coef * cut; the n entries touched so far, each once, are in merged."""
        cdef const int* index = cut_index(head)
        cdef const double* value = cut_values(head)
        cdef Py_ssize_t k
        for k in range(head.nnz):
            # Not z == 0: sums pass through zero, and merged has room for each entry once.
            if not space.seen[index[k]]:
                space.seen[index[k]] = 1
                merged[n] = index[k]
                n += 1
            space.z_buffer[index[k]] += coef * value[k]
        return n

    cdef void _merged(self, Py_ssize_t n, const int* merged, double* value,
                             Space* space) noexcept nogil:
        """Move the merged entries from z to value; z is zero again."""
        cdef Py_ssize_t k
        for k in range(n):
            value[k] = space.z_buffer[merged[k]]
            space.z_buffer[merged[k]] = 0
            space.seen[merged[k]] = 0

    cdef int _drop_one(self, Py_ssize_t i, Py_ssize_t m, Space* space) except -1 nogil:
        """Drop the oldest idle cut; where all carry weight, merge the two lightest into one."""
        cdef CutHead** heads = space.heads
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
                n = self._merge(heads[j], heads[j].weight / total, n, space.merged_index, space)
        self._merged(n, space.merged_index, space.merged_value, space)
        cut.nnz, cut.key, cut.bound, cut.calls = n, 0, 0, 0
        cut.index, cut.value = space.merged_index, space.merged_value
        heads[first].weight = -1
        heads[second].weight = -1
        self.cuts.prune(i, 2147483647)
        self._insert(i, &cut, space)
        space.heads[self.cuts.lists[i].count - 1].weight = total
        return 0


cdef inline void _fetch(const void* start, Py_ssize_t size) noexcept nogil:
    # At most so much that hardware goes on by itself.
    cdef Py_ssize_t k
    for k in range(min((size + 63) / 64, LINES)):
        SS_PREFETCH(<const char*>start + 64 * k)
