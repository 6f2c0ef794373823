"""Viterbi decoding of chains: best label, k best, max-marginals, best label for each count."""

cimport cython
from libc.math cimport INFINITY
from structsolve.algorithms.lawler_heap cimport Candidate, pop, push, runner_up
from structsolve.algorithms.pairs cimport Pairs, pair_score, pair_table
from structsolve.simd.loops cimport ss_loop_table
from structsolve.operators cimport CountOracle, KBest, MaxMarginals, Operator, Oracle
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.chain._counting cimport best_per_count, counting_bytes
from structsolve.plugins.chain._forbidden cimport Forbidden, allowed, forbidden_of, room_of
from structsolve.plugins.chain._shape cimport ChainShape, chain_length, chain_pairs, chain_shape


cdef inline Py_ssize_t _first_reaching(Py_ssize_t K, Py_ssize_t step, const double* before,
                             const double* pairs, const double* extra, double own,
                             double target) noexcept nogil:
    # First state s from which `target` is reached; 0 if there is none (the target is NaN).
    cdef Py_ssize_t s = 0
    cdef const double* p = pairs
    if extra != NULL:
        for s in range(K):
            if before[s] + (pairs[s * step] + extra[s * step]) + own == target:
                return s
        return 0
    # Four at a time: one unpredictable branch instead of four.  No sum exceeds the target; >= takes
    # one instruction, == another one for NaN.
    while s + 4 <= K:
        if ((before[s] + p[0] + own >= target) | (before[s + 1] + p[step] + own >= target)
                | (before[s + 2] + p[2 * step] + own >= target)
                | (before[s + 3] + p[3 * step] + own >= target)):
            break
        s += 4
        p += 4 * step
    for s in range(s, K):
        if before[s] + p[0] + own >= target:
            return s
        p += step
    return 0


@cython.final
cdef class Viterbi:
    """The forward pass and the backtrace, the start of all programs below.

    Parameters
    ----------
    layout : PartLayout
        Of a chain space.
    """

    cdef ChainShape shape
    cdef const ss_loop_table* loops
    cdef Py_ssize_t work_bytes

    def __init__(self, PartLayout layout not None):
        self.shape = chain_shape(layout)
        self.loops = self.shape.loops
        # Forward scores, the last row with end scores, two rows backward, one table.
        rows = self.shape.max_nodes + 3 + self.shape.K
        self.work_bytes = 8 * self.shape.stride * rows + 64

    cdef const double* forward(self, Py_ssize_t i, const double* theta, Pairs pairs,
                               double* alpha) noexcept nogil:
        # alpha[v, s]: best score of positions 0..v that ends in state s.  Returns the last row
        # with end scores added: row L of alpha, or row L - 1 where there are none.
        cdef Py_ssize_t K = self.shape.K, stride = self.shape.stride, v, s
        cdef Py_ssize_t L = chain_length(self.shape, i)
        cdef const double* unary = theta + self.shape.shared_size
        cdef const double* extra
        cdef double* row = alpha
        for s in range(stride):
            row[s] = unary[s]
        if self.shape.start >= 0:
            extra = theta + self.shape.start
            for s in range(stride):
                row[s] += extra[s]
        if pairs.edges == NULL:
            self.loops.viterbi(L, K, pairs.shared, stride, unary, alpha)
            row += (L - 1) * stride
        else:
            for v in range(1, L):
                unary += stride
                self.loops.maxplus(K, row, pair_table(pairs, v - 1, K * stride), stride, stride,
                                   unary, row + stride)
                row += stride
        if self.shape.end < 0:
            return row
        extra = theta + self.shape.end
        for s in range(stride):
            row[stride + s] = row[s] + extra[s]
        return row + stride

    cdef void backtrace(self, const double* theta, Pairs pairs, const double* alpha,
                        Py_ssize_t v, int* label) noexcept nogil:
        # Best states before position v, given label[v].
        cdef Py_ssize_t K = self.shape.K, stride = self.shape.stride, s, t = label[v]
        cdef const double* unary = theta + self.shape.shared_size
        cdef const double* column
        cdef const double* extra = NULL
        if pairs.edges == NULL and v > 2 * K:
            # The chain is long enough for a transposed table, whose rows are columns, to pay off.
            for s in range(K):
                for t in range(K):
                    pairs.buffer[t * stride + s] = pairs.shared[s * stride + t]
            t = label[v]
            for v in range(v - 1, -1, -1):
                t = self.loops.reach(K, alpha + v * stride, pairs.buffer + t * stride,
                                     unary[(v + 1) * stride + t], alpha[(v + 1) * stride + t])
                label[v] = <int>t
            return
        for v in range(v - 1, -1, -1):
            column = pairs.shared
            if pairs.edges != NULL:
                extra = pairs.edges + v * K * stride + t
                if pairs.shared == NULL:
                    column, extra = extra - t, NULL
            t = _first_reaching(K, stride, alpha + v * stride, column + t, extra,
                      unary[(v + 1) * stride + t], alpha[(v + 1) * stride + t])
            label[v] = <int>t

    cdef double best(self, Py_ssize_t i, const double* theta, Pairs pairs, double* alpha,
                     int* label) noexcept nogil:
        cdef Py_ssize_t L = chain_length(self.shape, i)
        cdef const double* last
        cdef double top
        if L == 0:
            return 0
        last = self.forward(i, theta, pairs, alpha)
        label[L - 1] = <int>self.loops.first_best(self.shape.K, last, &top)
        self.backtrace(theta, pairs, alpha, L - 1, label)
        return top


cdef Viterbi _programs(Operator operator):
    # The programs of its examples; sets its number of states and scratch memory.
    cdef Viterbi viterbi = Viterbi(operator.layout)
    operator.n_states, operator.work_bytes = viterbi.shape.K, viterbi.work_bytes
    return viterbi


@cython.final
cdef class ChainOracle(Oracle):
    """Exact maximisation over the labelings of chains by dynamic programming.

    The forward pass keeps scores only.  Backtracking searches each position for the state that
    reaches the score, in O(L K), which saves K back-pointers per position.  Ties go to the labeling
    with the smallest last state, then the smallest last but one, and so on.

    Scores of -inf forbid a state or a transition; the value is -inf when no labeling is left.

    Parameters
    ----------
    layout : PartLayout
        Of a chain space.
    forbidden : tuple (pairs, first, last), optional
        Masks of :class:`~structsolve.plugins.chain._forbidden.Forbidden`.
    """

    cdef Viterbi viterbi
    cdef ChainShape shape
    cdef Forbidden forbidden

    def __init__(self, PartLayout layout not None, forbidden=None):
        super().__init__(layout)
        self.viterbi, self.shape = _programs(self), chain_shape(layout)
        self.forbidden = forbidden_of(forbidden, layout)
        self.work_bytes += room_of(self.forbidden)

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        cdef double* alpha
        cdef double* buffer
        cdef Pairs pairs
        theta = allowed(self.forbidden, i, theta, &work)
        alpha = <double*>work
        buffer = alpha + (self.shape.max_nodes + 3) * self.shape.stride
        pairs = chain_pairs(self.shape, i, theta, buffer)
        value[0] = self.viterbi.best(i, theta, pairs, alpha, label)
        bound[0] = value[0]
        return 0


@cython.final
cdef class ChainMaxMarginals(MaxMarginals):
    """The best value of a labeling for each state of each node, by a pass in either direction.

    Parameters
    ----------
    layout : PartLayout
    forbidden : tuple, optional
        See :class:`ChainOracle`.
    """

    cdef Viterbi viterbi
    cdef ChainShape shape
    cdef Forbidden forbidden

    def __init__(self, PartLayout layout not None, forbidden=None):
        super().__init__(layout)
        self.viterbi, self.shape = _programs(self), chain_shape(layout)
        self.forbidden = forbidden_of(forbidden, layout)
        self.work_bytes += room_of(self.forbidden)

    cdef int max_marginals(self, Py_ssize_t i, const double* theta, double* out,
                           char* work) except -1 nogil:
        cdef Py_ssize_t K = self.shape.K, stride = self.shape.stride, v, s
        cdef Py_ssize_t L = chain_length(self.shape, i)
        cdef double* alpha
        cdef double* beta
        cdef double* ahead
        cdef const double* unary
        cdef const double* last
        cdef Pairs pairs
        if L == 0:
            return 0
        theta = allowed(self.forbidden, i, theta, &work)
        alpha = <double*>work
        beta = alpha + (self.shape.max_nodes + 1) * stride
        ahead = beta + stride
        unary = theta + self.shape.shared_size
        pairs = chain_pairs(self.shape, i, theta, ahead + stride)
        last = self.viterbi.forward(i, theta, pairs, alpha)
        for s in range(stride):
            out[(L - 1) * stride + s] = last[s] if s < K else 0
            beta[s] = -INFINITY
            if s < K:
                beta[s] = theta[self.shape.end + s] if self.shape.end >= 0 else 0
        for v in range(L - 2, -1, -1):
            for s in range(stride):
                ahead[s] = beta[s] + unary[(v + 1) * stride + s]
            self.shape.loops.maxdots(K, pair_table(pairs, v, K * stride), stride, stride, ahead,
                                     beta)
            for s in range(stride):
                out[v * stride + s] = alpha[v * stride + s] + beta[s] if s < K else 0
        return 0


@cython.final
cdef class ChainCounts(CountOracle):
    """The best labeling for each value of an integer cost.

    Parameters
    ----------
    layout : PartLayout
    forbidden : tuple, optional
        See :class:`ChainOracle`.
    """

    cdef ChainShape shape
    cdef Forbidden forbidden

    def __init__(self, PartLayout layout not None, forbidden=None):
        super().__init__(layout)
        self.shape, self.forbidden = chain_shape(layout), forbidden_of(forbidden, layout)
        self.n_states = self.shape.K

    cpdef Py_ssize_t bytes_for(self, Py_ssize_t most) except -1:
        return room_of(self.forbidden) + counting_bytes(self.shape, most)

    cdef int argmax_counts(self, Py_ssize_t i, const double* theta, const double* cost,
                           Py_ssize_t most, int* labels, double* values,
                           char* work) except -1 nogil:
        theta = allowed(self.forbidden, i, theta, &work)
        return best_per_count(self.shape, i, theta, cost, most, labels, values, work)


@cython.final
cdef class ChainKBest(KBest):
    """The k best labelings of chains; the first is always the answer of the oracle.

    None of the others scores -inf.

    Parameters
    ----------
    layout : PartLayout
    forbidden : tuple, optional
        See :class:`ChainOracle`.
    """

    cdef Viterbi viterbi
    cdef ChainShape shape
    cdef Forbidden forbidden

    def __init__(self, PartLayout layout not None, forbidden=None):
        super().__init__(layout)
        self.viterbi, self.shape = _programs(self), chain_shape(layout)
        self.forbidden = forbidden_of(forbidden, layout)
        self.work_bytes += room_of(self.forbidden)

    cpdef Py_ssize_t bytes_for(self, Py_ssize_t k) except -1:
        # Every answer adds at most one candidate per position.
        return self.work_bytes + (k * self.shape.max_nodes + 1) * sizeof(Candidate) + 64

    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels,
                          double* values, char* work) except -1 nogil:
        # Lawler's partition: all labelings but the answers so far fall into disjoint sets, each
        # made of the labelings that leave answer `path` at position v for state s or a state
        # after s in the order of candidates; a heap holds the best of every set.
        cdef Py_ssize_t L = chain_length(self.shape, i)
        cdef Py_ssize_t stride = self.shape.stride, size = 0, count, v
        cdef double* alpha
        cdef double* buffer
        cdef Candidate* heap
        cdef Pairs pairs
        cdef const double* last
        cdef Candidate item
        cdef int* label = labels
        theta = allowed(self.forbidden, i, theta, &work)
        alpha = <double*>work
        buffer = alpha + (self.shape.max_nodes + 3) * stride
        heap = <Candidate*>(buffer + self.shape.K * stride)
        pairs = chain_pairs(self.shape, i, theta, buffer)
        last = alpha + (L if self.shape.end >= 0 else L - 1) * stride
        values[0] = self.viterbi.best(i, theta, pairs, alpha, label)
        if L == 0:
            return 1
        item.v = <int>(L - 1)
        for count in range(1, k):
            self._branch(theta, pairs, alpha, last, L, label, <int>(count - 1), item.v, heap, &size)
            if size == 0:
                return count
            item = pop(heap, &size)
            label += L
            for v in range(item.v + 1, L):
                label[v] = labels[item.path * L + v]
            label[item.v] = item.s
            self.viterbi.backtrace(theta, pairs, alpha, item.v, label)
            # Sums of the same scores in another order may differ in the last bit.
            values[count] = min(item.value, values[count - 1])
        return k

    cdef void _branch(self, const double* theta, Pairs pairs, const double* alpha,
                      const double* last, Py_ssize_t L, const int* label, int path, int deviation,
                      Candidate* heap, Py_ssize_t* size) noexcept nogil:
        # The best labelings that leave `label` at a position up to `deviation`.
        cdef Py_ssize_t K = self.shape.K, stride = self.shape.stride, v, t = 0, best
        cdef const double* unary = theta + self.shape.shared_size
        cdef const double* column
        cdef const double* extra
        cdef double top, now, rest = 0
        cdef Candidate item
        for v in range(L - 1, -1, -1):
            # rest: what positions after v + 1 add, the pair (v + 1, v + 2) included.
            if v == L - 2 and self.shape.end >= 0:
                rest = theta[self.shape.end + label[L - 1]]
            elif v < L - 2:
                rest += (pair_score(pairs, v + 1, t, label[v + 2], K, stride)
                         + unary[(v + 2) * stride + label[v + 2]])
            if v <= deviation:
                # Best scores of positions 0..v + 1 with t behind v, rounded as in forward(), so
                # that the best of them equals alpha[v + 1, t] bit by bit.
                if v == L - 1:
                    best = runner_up(K, last, NULL, NULL, 0, 0, label[v], &top, &now)
                else:
                    column, extra = pairs.shared, NULL
                    if column == NULL:
                        column = pairs.edges + v * K * stride
                    elif pairs.edges != NULL:
                        extra = pairs.edges + v * K * stride + t
                    best = runner_up(K, alpha + v * stride, column + t, extra, stride,
                                     unary[(v + 1) * stride + t], label[v], &top, &now)
                if top + rest > -INFINITY:
                    item.value, item.path, item.v, item.s = top + rest, path, <int>v, <int>best
                    push(heap, size, item)
            t = label[v]
