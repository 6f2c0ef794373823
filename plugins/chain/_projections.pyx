"""Sum-product on chains: marginals, log-partition, entropy and its slope, samples."""

cimport cython
from libc.math cimport INFINITY, exp
from libc.string cimport memcpy, memset
from structsolve.algorithms.messages cimport Marginals, draw
from structsolve.algorithms.entropies cimport entropy, entropy_slope, slope_at
from structsolve.operators cimport Projection
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.chain._shape cimport ChainShape, chain_length, chain_shape
from structsolve.plugins.chain._forward_backward cimport ChainMessages

import numpy as np


@cython.final
cdef class ChainSumProduct(Projection):
    """Marginals of ``p(y) ~ exp <theta, mu(y)>`` on chains, and ``log sum_y exp <theta, mu(y)>``.

    The entropy projection: forward-backward in scaled form, on exponentials of the scores, or
    with logarithms where scores span too much for it.  Scores of -inf forbid a state or a
    transition; its marginals are exactly 0.

    A state holds the marginals of all nodes and, where pairs of states are scored at all, of all
    edges one by one: rows of K, padded, K of them per edge.

    Parameters
    ----------
    layout : PartLayout
        Of a chain space.
    """

    cdef ChainShape shape
    cdef ChainMessages messages
    cdef bint pairs

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.shape = chain_shape(layout)
        self.n_states = self.shape.K
        self.messages = ChainMessages(self.shape)
        self.pairs = self.shape.transition >= 0 or self.shape.edge_size > 0
        self.work_bytes = self.messages.work_bytes
        self.gibbs = True
        self.has_state = True
        self.has_term = True
        self.has_samples = True

    def log_partition(self, Py_ssize_t i, const double[::1] theta, Py_ssize_t repeat=1):
        """Log-partition of example ``i`` by the forward pass alone.

        Parameters
        ----------
        i : int
        theta : ndarray of float64
            Part scores, in the layout of the space.
        repeat : int
            How many times to compute it (for timing).
        """
        cdef Py_ssize_t size = self.layout.sizes(i)[0]
        if theta.shape[0] != size:
            raise ValueError(f"example {i}: theta has {theta.shape[0]} scores, expected {size}")
        cdef double[::1] work = np.zeros(self.work_bytes // 8 + 9)
        cdef char* memory = <char*>&work[0]
        cdef double value = 0
        memory += -<size_t>memory % 64
        with nogil:
            for _ in range(repeat):
                if self.messages.forward(i, &theta[0], NULL, &value, memory) == 0:
                    self.messages.log_forward(i, &theta[0], &value, memory)
        return value

    cdef void ends(self, Py_ssize_t L, double* marginals) noexcept nogil:
        # Start and end are pooled from the first and the last node.
        cdef Py_ssize_t bytes = self.shape.stride * sizeof(double)
        cdef const double* nodes = marginals + self.shape.shared_size
        if self.shape.start >= 0:
            memcpy(marginals + self.shape.start, nodes, bytes)
        if self.shape.end >= 0:
            memcpy(marginals + self.shape.end, nodes + (L - 1) * self.shape.stride, bytes)

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        cdef Py_ssize_t L = chain_length(self.shape, i)
        cdef Marginals out
        out.nodes = marginals + self.shape.shared_size
        out.edges = out.nodes + L * self.shape.stride if self.shape.edge_size else NULL
        out.transition = marginals + self.shape.transition if self.shape.transition >= 0 else NULL
        memset(marginals, 0, self.shape.shared_size * sizeof(double))
        self.messages.marginals(i, theta, &out, value, work)
        bound[0] = value[0]
        self.ends(L, marginals)
        return 0

    cdef Py_ssize_t state_size(self, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t L = chain_length(self.shape, i)
        return (L + ((L - 1) * self.shape.K if self.pairs else 0)) * self.shape.stride

    cdef int project_state(self, Py_ssize_t i, const double* theta, double* state, double* value,
                           double* bound, char* work) except -1 nogil:
        cdef Marginals out
        out.nodes = state
        out.edges = state + chain_length(self.shape, i) * self.shape.stride if self.pairs else NULL
        out.transition = NULL
        self.messages.marginals(i, theta, &out, value, work)
        bound[0] = value[0]
        return 0

    cdef int state_of(self, Py_ssize_t i, const int* label, double* state) except -1 nogil:
        cdef Py_ssize_t v, L = chain_length(self.shape, i), stride = self.shape.stride
        cdef double* edges = state + L * stride
        memset(state, 0, self.state_size(i) * sizeof(double))
        for v in range(L):
            state[v * stride + label[v]] = 1
        if self.pairs:
            for v in range(L - 1):
                edges[(v * self.shape.K + label[v]) * stride + label[v + 1]] = 1
        return 0

    cdef int pool(self, Py_ssize_t i, const double* state, double* marginals) except -1 nogil:
        cdef Py_ssize_t L = chain_length(self.shape, i), size = self.shape.K * self.shape.stride
        cdef Py_ssize_t v, s
        cdef const double* edge = state + L * self.shape.stride
        cdef double* nodes = marginals + self.shape.shared_size
        cdef double* table = marginals + self.shape.transition
        memset(marginals, 0, self.shape.shared_size * sizeof(double))
        memcpy(nodes, state, L * self.shape.stride * sizeof(double))
        if self.shape.edge_size:
            memcpy(nodes + L * self.shape.stride, edge, (L - 1) * size * sizeof(double))
        if self.shape.transition >= 0:
            for v in range(L - 1):
                for s in range(size):
                    table[s] += edge[v * size + s]
        self.ends(L, marginals)
        return 0

    # The entropy of a chain: sum_e H(mu_e) - sum_v (deg v - 1) H(mu_v), which leaves the inner
    # nodes, of degree 2.  One node, or nodes that no score ties together: sum_v H(mu_v).

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        cdef Py_ssize_t L = chain_length(self.shape, i), stride = self.shape.stride
        if L == 1 or not self.pairs:
            return entropy(L * stride, state)
        return (entropy((L - 1) * self.shape.K * stride, state + L * stride)
                - entropy((L - 2) * stride, state + stride))

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        cdef Py_ssize_t L = chain_length(self.shape, i), stride = self.shape.stride
        cdef int stuck = 0, ignored = 0
        cdef double total
        if L == 1 or not self.pairs:
            total = entropy_slope(L * stride, a, b, gamma, &stuck)
        else:
            # Where a node's probability leaves or reaches 0, pairs of its edges do too, and they
            # outweigh it.
            total = entropy_slope((L - 1) * self.shape.K * stride, a + L * stride, b + L * stride,
                                  gamma, &stuck)
            total -= entropy_slope((L - 2) * stride, a + stride, b + stride, gamma, &ignored)
        return slope_at(total, gamma, stuck)

    cdef int sample(self, Py_ssize_t i, const double* theta, Py_ssize_t n, const double* uniforms,
                    int* labels, char* work) except -1 nogil:
        # Forward filtering, then every label from its end to its start.
        cdef Py_ssize_t K = self.shape.K, stride = self.shape.stride, j, v, s
        cdef Py_ssize_t L = chain_length(self.shape, i)
        cdef const double* edges = theta + self.shape.shared_size + L * stride
        cdef const double* alpha = self.messages.messages(work)
        cdef double* weights = self.messages.messages(work) + self.shape.max_length * stride
        cdef double value, top
        cdef const double* row
        cdef int* label
        cdef bint scaled = self.messages.forward(i, theta, NULL, &value, work)
        if not scaled:
            self.messages.log_forward(i, theta, &value, work)
        for j in range(n):
            label = labels + j * L
            for v in range(L - 1, -1, -1):
                row, top = alpha + v * stride, -INFINITY
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
