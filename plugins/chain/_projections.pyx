"""Sum-product on chains: marginals, log-partition, entropy and its slope, samples."""

cimport cython
from libc.math cimport INFINITY, exp
from libc.string cimport memcpy, memset
from structsolve.algorithms.entropies cimport entropy, entropy_slope, slope_at
from structsolve.algorithms.labelings cimport LabelingProjection
from structsolve.algorithms.messages cimport Marginals, draw
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.chain._shape cimport ChainShape, chain_length, chain_shape
from structsolve.plugins.chain._forward_backward cimport ChainMessages


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
    """

    cdef ChainShape shape
    cdef ChainMessages messages

    def __init__(self, PartLayout layout not None):
        self.shape = chain_shape(layout)
        self.messages = ChainMessages(self.shape)
        super().__init__(layout, self.shape, self.messages.work_bytes)

    cdef int partition(self, Py_ssize_t i, const double* theta, double* value,
                       char* work) except -1 nogil:
        if self.messages.forward(i, theta, NULL, value, work) == 0:
            self.messages.log_forward(i, theta, value, work)
        return 0

    cdef int sums(self, Py_ssize_t i, const double* theta, const Marginals* out, double* value,
                  char* work) except -1 nogil:
        return self.messages.marginals(i, theta, out, value, work)

    cdef void pool_nodes(self, Py_ssize_t i, const double* nodes, double* marginals) noexcept nogil:
        # Start and end are pooled from the first and the last node.
        cdef Py_ssize_t stride = self.shape.stride, last = (chain_length(self.shape, i) - 1) * stride
        if self.shape.start >= 0:
            memcpy(marginals + self.shape.start, nodes, stride * sizeof(double))
        if self.shape.end >= 0:
            memcpy(marginals + self.shape.end, nodes + last, stride * sizeof(double))

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
        if L == 1 or not self.shape.pairs:
            return entropy(L * stride, state)
        return (entropy((L - 1) * self.shape.K * stride, state + L * stride)
                - entropy((L - 2) * stride, state + stride))

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        cdef Py_ssize_t L = chain_length(self.shape, i), stride = self.shape.stride
        cdef int stuck = 0, ignored = 0
        cdef double total
        if L == 1 or not self.shape.pairs:
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
        cdef double* weights = self.messages.messages(work) + self.shape.max_nodes * stride
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
