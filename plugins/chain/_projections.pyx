"""Sum-product on chains: marginals, log-partition, entropy, samples, derivatives."""

from functools import lru_cache

import numpy as np

cimport cython
from libc.math cimport INFINITY, exp
from libc.string cimport memcpy, memset
from structsolve.algorithms.entropies cimport entropy, entropy_slope, slope_at
from structsolve.algorithms.labelings cimport LabelingProjection
from structsolve.algorithms.max_product cimport Forest
from structsolve.algorithms.messages cimport Marginals, draw
from structsolve.algorithms.sum_product cimport derivative_bytes, forest_derivative
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.chain._forbidden cimport Forbidden, allowed, forbidden_of, room_of
from structsolve.plugins.chain._shape cimport ChainShape, chain_length, chain_shape
from structsolve.plugins.chain._forward_backward cimport ChainMessages

# Marginals below it are skipped: their means count as 0 and have no weight.
cdef double LEAST = 1e-300


@lru_cache(maxsize=64)  # batches of a network differ in their lengths alone
def _line(Py_ssize_t nodes):
    # -1, 0, 1, ...: the parents, and edges, of a chain as a tree.
    return np.arange(-1, nodes, dtype=np.int32)


@cython.final
cdef class ChainSumProduct(LabelingProjection):
    """Marginals of ``p(y) ~ exp <theta, mu(y)>`` on chains, and ``log sum_y exp <theta, mu(y)>``.

    The entropy projection: forward-backward in scaled form, on exponentials of the scores, or
    with logarithms where scores span too much for it.  Scores of -inf forbid a state or a
    transition; its marginals are exactly 0.

    Parameters
    ----------
    layout : PartLayout
        Of a chain space.
    forbidden : tuple (pairs, first, last), optional
        Masks of :class:`~structsolve.plugins.chain._forbidden.Forbidden`.

    Attributes
    ----------
    linear_chain : tuple of int, or None
        First double of transitions, start and end scores in theta, -1 for none: all scores there
        are beside those of nodes.  None: pairs have other scores, or none, or some are forbidden.
    """

    cdef readonly object linear_chain
    cdef ChainShape shape
    cdef ChainMessages messages
    cdef Forbidden forbidden
    cdef const int[::1] line        # -1, 0, 1, ...: the parents, and edges, of a chain as a tree

    def __init__(self, PartLayout layout not None, forbidden=None):
        self.shape, self.forbidden = chain_shape(layout), forbidden_of(forbidden, layout)
        self.messages = ChainMessages(self.shape)
        super().__init__(layout, self.shape, self.messages.work_bytes + room_of(self.forbidden))
        self.has_derivative = True
        self.move_bytes = derivative_bytes(self.shape.max_nodes, self.shape.K, self.shape.stride)
        self.move_bytes += 8 * self.shape.stride * (self.shape.max_nodes + self.shape.K)
        self.line = _line(self.shape.max_nodes)
        shape = self.shape
        if forbidden is None and shape.transition >= 0 and shape.edge_size == 0:
            self.linear_chain = shape.transition, shape.start, shape.end

    cdef int partition(self, Py_ssize_t i, const double* theta, double* value,
                       char* work) except -1 nogil:
        value[0] = 0
        if chain_length(self.shape, i) == 0:
            return 0
        theta = allowed(self.forbidden, i, theta, &work)
        if self.messages.forward(i, theta, NULL, value, work) == 0:
            self.messages.log_forward(i, theta, value, work)
        return 0

    cdef int sums(self, Py_ssize_t i, const double* theta, const Marginals* out, double* value,
                  char* work) except -1 nogil:
        value[0] = 0
        if chain_length(self.shape, i) == 0:
            return 0
        theta = allowed(self.forbidden, i, theta, &work)
        return self.messages.marginals(i, theta, out, value, work)

    cdef void pool_nodes(self, Py_ssize_t i, const double* nodes, double* marginals) noexcept nogil:
        # Start and end are pooled from the first and the last node.
        cdef Py_ssize_t stride = self.shape.stride, last = (chain_length(self.shape, i) - 1) * stride
        if last < 0:
            return
        if self.shape.start >= 0:
            memcpy(marginals + self.shape.start, nodes, stride * sizeof(double))
        if self.shape.end >= 0:
            memcpy(marginals + self.shape.end, nodes + last, stride * sizeof(double))

    # The derivative is the covariance of parts with f(y) = <direction, mu(y)>: a part of marginal p
    # gains p (E[f | part] - E[f]).  Forward and backward passes compute means of f, with the edge
    # factors of the scaled form where available, else with a state's tables.

    cpdef Py_ssize_t derivative_bytes(self) except -1:
        """Room for a state, or for four rows per node, four tables and three rows."""
        cdef ChainShape shape = self.shape
        factors = self._factors_at() + 8 * shape.stride * (4 * shape.max_nodes + 4 * shape.K + 3)
        return room_of(self.forbidden) + max(LabelingProjection.derivative_bytes(self), factors)

    cdef Py_ssize_t _factors_at(self) noexcept nogil:
        return (self.work_bytes + 63) // 64 * 64

    cdef int derivative(self, Py_ssize_t i, const double* theta, const double* direction,
                        double* out, char* work) except -1 nogil:
        cdef Marginals parts
        if chain_length(self.shape, i) == 0:
            self._parts(i, out)
            return 0
        theta = allowed(self.forbidden, i, theta, &work)
        if self.shape.transition >= 0 and self.shape.edge_size == 0:
            parts = self._parts(i, out)
            if self.messages.scaled(i, theta, &parts, work):
                self.move_factors(i, direction, &parts, work)
                self.pool_nodes(i, parts.nodes, out)
                return 0
        return LabelingProjection.derivative(self, i, theta, direction, out, work)

    cdef void move_factors(self, Py_ssize_t i, const double* direction, const Marginals* parts,
                           char* work) noexcept nogil:
        # `parts` has marginals, which become their derivatives.
        cdef Py_ssize_t K = self.shape.K, stride = self.shape.stride, size = K * stride, v, s, t
        cdef Py_ssize_t L = chain_length(self.shape, i), rows = self.shape.max_nodes * stride
        cdef const double* along = direction + self.shape.transition
        cdef const double* E = self.messages.pair_exponentials(work)
        cdef const double* alpha = self.messages.messages(work)
        cdef const double* ahead = self.messages.ahead(work)
        cdef double* before = <double*>(work + self._factors_at())  # means up to a node, given it
        cdef double* left = before + rows       # alpha times `before`, less E[f]
        cdef double* right = left + rows        # ahead times the mean from a node on, given it
        cdef double* scores = right + rows      # of the direction, with start and end
        # E above E times the direction, so that one product serves both; the transpose of either.
        cdef double* tables = scores + rows
        cdef double* turned = tables + 2 * size
        cdef double* both = turned + 2 * size
        cdef double* x = both + 2 * stride
        cdef double* p
        cdef double mean = 0
        self.messages._node_scores(i, direction, scores)
        if L > 1:
            memcpy(tables, E, size * sizeof(double))
            memset(turned, 0, 2 * size * sizeof(double))
            for s in range(size):
                tables[size + s] = E[s] * along[s]
            for s in range(K):
                for t in range(K):
                    turned[t * stride + s] = tables[s * stride + t]
                    turned[size + t * stride + s] = tables[size + s * stride + t]
        memcpy(before, scores, stride * sizeof(double))
        for v in range(1, L):
            p = parts.nodes + v * stride
            for s in range(stride):
                left[s] = alpha[s] * before[s]
            memcpy(both, left, K * sizeof(double))
            memcpy(both + K, alpha, K * sizeof(double))
            self.shape.loops.sumprod(2 * K, both, tables, stride, stride, x)
            alpha, ahead, before, left = alpha + stride, ahead + stride, before + stride, left + stride
            scores += stride
            for s in range(stride):
                before[s] = scores[s] + ahead[s] * x[s] / (p[s] + LEAST)
        p = parts.nodes + (L - 1) * stride
        for s in range(K):
            mean += p[s] * before[s]
        right += (L - 1) * stride
        for s in range(stride):
            right[s] = ahead[s] * scores[s]
            p[s] *= before[s] - mean
        for v in range(L - 2, -1, -1):
            memcpy(both, right, K * sizeof(double))
            memcpy(both + K, ahead, K * sizeof(double))
            self.shape.loops.sumprod(2 * K, both, turned, stride, stride, x)
            alpha, ahead, before, left = alpha - stride, ahead - stride, before - stride, left - stride
            scores, right, p = scores - stride, right - stride, p - stride
            for s in range(stride):
                x[s] *= alpha[s] / (p[s] + LEAST)
                right[s] = ahead[s] * (scores[s] + x[s])
            for s in range(stride):
                left[s] -= alpha[s] * mean
                p[s] *= before[s] - mean + x[s]
        if L == 1:
            return
        # The sum over edges of alpha[s] E[s, t] ahead[t] (before[s] - E[f] + d[s, t] + after[t]).
        self.shape.loops.outer(L - 1, K, left, ahead + stride, E, stride, stride, tables)
        self.shape.loops.outer(L - 1, K, alpha, right + stride, E, stride, stride, turned)
        for s in range(size):
            parts.transition[s] = parts.transition[s] * along[s] + (tables[s] + turned[s])

    cdef void move(self, Py_ssize_t i, const double* direction, const Marginals* marginals,
                   const Marginals* out, char* work) noexcept nogil:
        cdef Forest forest
        cdef Py_ssize_t L = chain_length(self.shape, i), stride = self.shape.stride
        cdef double* scores = <double*>work
        self.messages._node_scores(i, direction, scores)
        forest.n, forest.K, forest.stride = L, self.shape.K, stride
        forest.order, forest.parent, forest.edge = NULL, &self.line[0], &self.line[0]
        forest.nodes, forest.roots = scores, NULL
        forest.pairs.shared = forest.pairs.edges = NULL
        forest.pairs.buffer = scores + self.shape.max_nodes * stride
        if self.shape.transition >= 0:
            forest.pairs.shared = direction + self.shape.transition
        if self.shape.edge_size:
            forest.pairs.edges = direction + self.shape.shared_size + L * stride
        forest_derivative(self.shape.loops, &forest, marginals.nodes, marginals.edges, out,
                          <char*>(forest.pairs.buffer + self.shape.K * stride))

    cdef int state_of(self, Py_ssize_t i, const int* label, double* state) except -1 nogil:
        cdef Py_ssize_t v, L = chain_length(self.shape, i), stride = self.shape.stride
        cdef double* edges = state + L * stride
        memset(state, 0, self.state_size(i) * sizeof(double))
        for v in range(L):
            state[v * stride + label[v]] = 1
        if self.shape.pairs:
            for v in range(L - 1):
                edges[(v * self.shape.K + label[v]) * stride + label[v + 1]] = 1
        return 0

    # The entropy of a chain: sum_e H(mu_e) - sum_v (deg v - 1) H(mu_v), which leaves the inner
    # nodes, of degree 2.  One node, or nodes that no score ties together: sum_v H(mu_v).

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        cdef Py_ssize_t L = chain_length(self.shape, i), stride = self.shape.stride
        if L <= 1 or not self.shape.pairs:
            return entropy(L * stride, state)
        return (entropy((L - 1) * self.shape.K * stride, state + L * stride)
                - entropy((L - 2) * stride, state + stride))

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        cdef Py_ssize_t L = chain_length(self.shape, i), stride = self.shape.stride
        cdef int stuck = 0, ignored = 0
        cdef double total
        if L <= 1 or not self.shape.pairs:
            total = entropy_slope(L * stride, a, b, gamma, &stuck)
        else:
            # Where a node's probability leaves or reaches 0, so do those of pairs on its edges,
            # which outweigh it.
            total = entropy_slope((L - 1) * self.shape.K * stride, a + L * stride, b + L * stride,
                                  gamma, &stuck)
            total -= entropy_slope((L - 2) * stride, a + stride, b + stride, gamma, &ignored)
        return slope_at(total, gamma, stuck)

    cdef int sample(self, Py_ssize_t i, const double* theta, Py_ssize_t n, const double* uniforms,
                    int* labels, char* work) except -1 nogil:
        # Forward filtering, then every label from its end to its start.
        cdef Py_ssize_t K = self.shape.K, stride = self.shape.stride, j, v, s
        cdef Py_ssize_t L = chain_length(self.shape, i)
        cdef const double* edges
        cdef const double* alpha
        cdef const double* turned   # exponentials of the scores of pairs, a row for each next state
        cdef double* weights
        cdef double value, top
        cdef const double* row
        cdef int* label
        cdef bint scaled
        if L == 0:
            return 0
        theta = allowed(self.forbidden, i, theta, &work)
        edges = theta + self.shape.shared_size + L * stride
        alpha = self.messages.messages(work)
        turned = self.messages.pair_exponentials(work) + K * stride
        weights = self.messages.messages(work) + self.shape.max_nodes * stride
        scaled = self.messages.forward(i, theta, NULL, &value, work)
        if not scaled:
            self.messages.log_forward(i, theta, &value, work)
        for j in range(n):
            label = labels + j * L
            for v in range(L - 1, -1, -1):
                row, top = alpha + v * stride, -INFINITY
                if scaled and (v == L - 1 or self.shape.edge_size == 0):
                    for s in range(K):
                        weights[s] = row[s]
                        if v < L - 1:
                            weights[s] *= turned[label[v + 1] * stride + s]
                    label[v] = draw(K, weights, uniforms[j * L + v])
                    continue
                for s in range(K):
                    weights[s] = 0 if scaled else row[s]
                    if v < L - 1:
                        weights[s] += self.messages.pair(theta, edges, v, s, label[v + 1])
                    if weights[s] > top and (row[s] > 0 or not scaled):
                        top = weights[s]
                for s in range(K):
                    weights[s] = exp(weights[s] - top) * (row[s] if scaled else 1)
                label[v] = draw(K, weights, uniforms[j * L + v])
        return 0
