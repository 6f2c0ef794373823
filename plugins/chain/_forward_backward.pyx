"""The recursions of sum-product on chains: in scaled form, and with logarithms."""

from libc.math cimport INFINITY, exp, log
from libc.stdint cimport uint64_t
from libc.string cimport memcmp, memcpy, memset
from structsolve.algorithms.messages cimport (
    MASS, Marginals, exponentials, impossible, log_columns, log_rows, log_sum_exp, rescale,
)

from structsolve.plugins.chain._shape cimport ChainShape, chain_length

cdef extern from *:
    """
    #define CACHE_TAG 0x7c159e3779b9cafeULL
    """
    const uint64_t CACHE_TAG

cdef extern from "passes.h" nogil:
    int chain_passes_of(const char*, chain_forward*, chain_backward*)


cdef struct Cache:
    # Exponentials of the shared table and its transpose, kept in the work memory from one example
    # to the next.
    uint64_t tag
    double shift, check


cdef class ChainMessages:
    """Forward and backward passes over chains.

    The scaled form uses exponentials of the scores; logarithms serve where scores span too wide a
    range.  Both leave their forward messages in the work memory.

    Parameters
    ----------
    shape : ChainShape
        Sizes of the chains and offsets of their parts.
    """

    def __init__(self, ChainShape shape not None):
        self.shape = shape
        self.loops = shape.loops
        # Whole passes need one table for all edges.  Rows of four would gain a fifth at most; they
        # keep the old rounding, which decides solvers' visits of very small problems.
        self.whole = shape.edge_size == 0 and shape.stride >= 8 and chain_passes_of(
            self.loops.name, &self.go_forward, &self.go_backward)
        # Node rows, forward rows, two rows; exponentials of the table in both directions, the
        # table, and their tag.
        rows = 2 * shape.max_nodes + 2 + 3 * shape.K
        self.work_bytes = 8 * shape.stride * rows + sizeof(Cache) + 64

    cdef double* messages(self, char* work) noexcept nogil:
        return <double*>work + self.shape.max_nodes * self.shape.stride

    cdef int marginals(self, Py_ssize_t i, const double* theta, const Marginals* out,
                       double* value, char* work) except -1 nogil:
        if not (self.forward(i, theta, out.edges, value, work) and self._backward(i, out, work)):
            self._log_form(i, theta, out, value, work)
        return 0

    cdef int scaled(self, Py_ssize_t i, const double* theta, const Marginals* out,
                    char* work) except -1 nogil:
        cdef double value
        return self.forward(i, theta, NULL, &value, work) and self._backward(i, out, work)

    cdef double* ahead(self, char* work) noexcept nogil:
        return <double*>work

    cdef double* pair_exponentials(self, char* work) noexcept nogil:
        return self.messages(work) + (self.shape.max_nodes + 2) * self.shape.stride

    cdef void _node_scores(self, Py_ssize_t i, const double* theta, double* psi) noexcept nogil:
        # Node rows, with start and end scores added to the first and the last.
        cdef Py_ssize_t stride = self.shape.stride, s
        cdef Py_ssize_t L = chain_length(self.shape, i)
        memcpy(psi, theta + self.shape.shared_size, L * stride * sizeof(double))
        if self.shape.start >= 0:
            for s in range(stride):
                psi[s] += theta[self.shape.start + s]
        if self.shape.end >= 0:
            for s in range(stride):
                psi[(L - 1) * stride + s] += theta[self.shape.end + s]

    cdef bint _shared_table(self, const double* x, double* table, double* shift) noexcept nogil:
        # Exponentials of the transition scores, kept from the last example where the scores are
        # the same bit by bit.  The work memory may have had other uses in between: the scores are
        # compared, and a check sum covers the exponentials.
        cdef Py_ssize_t size = self.shape.K * self.shape.stride
        cdef double* copy = table + 2 * size
        cdef Cache* cache = <Cache*>(copy + size)
        if (cache.tag == CACHE_TAG and memcmp(copy, x, size * sizeof(double)) == 0
                and cache.check == self.loops.total(2 * size, table) + cache.shift):
            shift[0] = cache.shift
            return True
        cache.tag = 0
        if not exponentials(self.loops, self.shape.K, x, self.shape.stride, self.shape.K,
                             table, shift):
            return False
        self._turn(table)
        memcpy(copy, x, size * sizeof(double))
        cache.shift = shift[0]
        cache.check = self.loops.total(2 * size, table) + shift[0]
        cache.tag = CACHE_TAG
        return True

    cdef void _turn(self, double* table) noexcept nogil:
        # The transpose follows the table.
        cdef Py_ssize_t K = self.shape.K, stride = self.shape.stride, s, t
        cdef double* turned = table + K * stride
        for s in range(K):
            for t in range(K):
                turned[s * stride + t] = table[t * stride + s]
            for t in range(K, stride):
                turned[s * stride + t] = 0

    cdef int forward(self, Py_ssize_t i, const double* theta, double* edge, double* value,
                     char* work) except -1 nogil:
        cdef Py_ssize_t K = self.shape.K, stride = self.shape.stride, v, j, size = K * stride
        cdef Py_ssize_t L = chain_length(self.shape, i)
        cdef double* psi = <double*>work
        cdef double* alpha = psi + self.shape.max_nodes * stride
        cdef double* table = alpha + (self.shape.max_nodes + 2) * stride
        cdef const double* edges = theta + self.shape.shared_size + L * stride
        cdef double shift = 0, low, top, total = 0
        self._node_scores(i, theta, psi)
        if not exponentials(self.loops, L, psi, stride, K, psi, &shift):
            return 0
        total = L * shift
        memcpy(alpha, psi, stride * sizeof(double))
        self.loops.range(1, alpha, stride, K, 0, &low, &top)
        if not rescale(alpha, stride, low, top, &total):
            return 0
        if self.shape.edge_size == 0 and L > 1:
            if self.shape.transition < 0:
                shift = 0
                self._ones(table)
            elif not self._shared_table(theta + self.shape.transition, table, &shift):
                return 0
            total += (L - 1) * shift
        if self.whole:
            if not self.go_forward(L, K, stride, table, psi, alpha, &total):
                return 0
            alpha += (L - 1) * stride
        for v in range(L if self.whole else 1, L):
            if self.shape.edge_size:
                if edge != NULL:
                    table = edge + (v - 1) * size
                if self.shape.transition >= 0:
                    for j in range(size):
                        table[j] = edges[j] + theta[self.shape.transition + j]
                else:
                    memcpy(table, edges, size * sizeof(double))
                if not exponentials(self.loops, K, table, stride, K, table, &shift):
                    return 0
                total += shift
                edges += size
            self.loops.sumprod(K, alpha, table, stride, stride, alpha + stride)
            alpha += stride
            self.loops.mul_range(stride, psi + v * stride, alpha, &low, &top)
            if not rescale(alpha, stride, low, top, &total):
                return 0
        top = self.loops.total(stride, alpha)
        if not top > 0:
            return 0
        value[0] = log(top) + total
        return 1

    cdef void _ones(self, double* table) noexcept nogil:
        cdef Py_ssize_t s, t
        for s in range(self.shape.K):
            for t in range(self.shape.stride):
                table[s * self.shape.stride + t] = t < self.shape.K
        self._turn(table)

    cdef bint _backward(self, Py_ssize_t i, const Marginals* out, char* work) noexcept nogil:
        # Backward pass over what forward() left; node scores become backward messages.
        cdef Py_ssize_t K = self.shape.K, stride = self.shape.stride, v, s, size = K * stride
        cdef Py_ssize_t L = chain_length(self.shape, i)
        cdef double* ahead = <double*>work + (L - 1) * stride
        cdef double* first = <double*>work + self.shape.max_nodes * stride
        cdef double* alpha = first + (L - 1) * stride
        cdef double* beta = first + self.shape.max_nodes * stride
        cdef double* table = beta + 2 * stride
        cdef double* nodes = out.nodes + (L - 1) * stride
        cdef double mass, low, top, ignored = 0
        mass = self.loops.total(stride, alpha)
        for s in range(stride):
            nodes[s] = alpha[s] / mass
            beta[s] = 0
        self.loops.range(1, ahead, stride, K, 0, &low, &top)
        if not rescale(ahead, stride, low, top, &ignored):
            return False
        if self.whole:
            if not self.go_backward(L, K, stride, table + size, first, <double*>work, out.nodes):
                return False
            for v in range(L - 1 if out.edges != NULL else 0):
                self.loops.outer(1, K, first + v * stride, <double*>work + (v + 1) * stride, table,
                                 stride, stride, out.edges + v * size)
        for v in range(-1 if self.whole else L - 2, -1, -1):
            alpha -= stride
            nodes -= stride
            if self.shape.edge_size:
                table = out.edges + v * size
            self.loops.dots(K, table, stride, stride, ahead, beta)
            self.loops.dots(1, alpha, stride, stride, beta, &mass)
            if not mass >= MASS:
                return False
            mass = 1 / mass
            for s in range(stride):
                nodes[s] = alpha[s] * beta[s] * mass
                ahead[s] *= mass
            # alpha[v, s] table[s, t] ahead[v + 1, t] are now the marginals of the edge.
            if out.edges != NULL:
                self.loops.outer(1, K, alpha, ahead, table, stride, stride, out.edges + v * size)
            if self.shape.edge_size and out.transition != NULL:
                for s in range(size):
                    out.transition[s] += table[s]
            ahead -= stride
            self.loops.mul_range(stride, beta, ahead, &low, &top)
            if not rescale(ahead, stride, low, top, &ignored):
                return False
        if self.shape.edge_size == 0 and out.transition != NULL and L > 1:
            self.loops.outer(L - 1, K, first, <double*>work + stride, table, stride, stride,
                               out.transition)
        return True

    cdef double pair(self, const double* theta, const double* edges, Py_ssize_t v, Py_ssize_t s,
                     Py_ssize_t t) noexcept nogil:
        cdef Py_ssize_t stride = self.shape.stride
        cdef double x = 0
        if self.shape.transition >= 0:
            x = theta[self.shape.transition + s * stride + t]
        if self.shape.edge_size:
            x += edges[(v * self.shape.K + s) * stride + t]
        return x

    cdef void _pair_row(self, const double* theta, const double* edges, Py_ssize_t v, Py_ssize_t s,
                        double add, double* out) noexcept nogil:
        # The scores of s and every next state, with add.
        cdef Py_ssize_t K = self.shape.K, stride = self.shape.stride, t
        cdef const double* row
        for t in range(K):
            out[t] = add
        if self.shape.transition >= 0:
            row = theta + self.shape.transition + s * stride
            for t in range(K):
                out[t] += row[t]
        if self.shape.edge_size:
            row = edges + (v * K + s) * stride
            for t in range(K):
                out[t] += row[t]

    cdef int log_forward(self, Py_ssize_t i, const double* theta, double* value,
                         char* work) except -1 nogil:
        cdef Py_ssize_t K = self.shape.K, stride = self.shape.stride, v, s, t
        cdef Py_ssize_t L = chain_length(self.shape, i)
        cdef double* psi = <double*>work
        cdef double* alpha = self.messages(work)
        cdef double* tops = alpha + (self.shape.max_nodes + 1) * stride
        cdef double* table = tops + stride
        cdef const double* edges = theta + self.shape.shared_size + L * stride
        cdef double* now
        cdef double total = 0, top
        # This overwrites the table of exponentials.
        (<Cache*>(table + 3 * K * stride)).tag = 0
        self._node_scores(i, theta, psi)
        memcpy(alpha, psi, stride * sizeof(double))
        for v in range(L):
            now = alpha + v * stride
            if v:
                for s in range(K):
                    self._pair_row(theta, edges, v - 1, s, now[s - stride], table + s * stride)
                log_columns(self.loops, K, stride, table, tops, now)
                for t in range(K):
                    now[t] += psi[v * stride + t]
            top = log_sum_exp(K, now)
            if not top > -INFINITY:
                impossible(i)
            total += top
            for t in range(K):
                now[t] -= top
        value[0] = total
        return 0

    cdef int _log_form(self, Py_ssize_t i, const double* theta, const Marginals* out,
                       double* value, char* work) except -1 nogil:
        # Marginals from logarithms of messages, each row with its largest entry at 0.
        cdef Py_ssize_t K = self.shape.K, stride = self.shape.stride, v, s, t, size = K * stride
        cdef Py_ssize_t L = chain_length(self.shape, i)
        cdef double* psi = <double*>work
        cdef double* alpha = self.messages(work)
        cdef double* beta = alpha + self.shape.max_nodes * stride
        cdef double* row = beta + stride
        cdef double* table = row + stride
        cdef double* shifts = psi
        cdef double* pairs
        cdef const double* edges = theta + self.shape.shared_size + L * stride
        cdef double* nodes = out.nodes
        cdef double top, mass, x
        self.log_forward(i, theta, value, work)
        memset(nodes, 0, L * stride * sizeof(double))
        if out.edges != NULL:
            memset(out.edges, 0, (L - 1) * size * sizeof(double))
        if out.transition != NULL:
            memset(out.transition, 0, size * sizeof(double))
        for s in range(K):
            beta[s] = 0
        for v in range(L - 1, -1, -1):
            if v < L - 1:
                shifts = psi + (v + 1) * stride
                for s in range(K):
                    row[s] = beta[s] + shifts[s]
                # The backward messages, and the edge's marginals up to a factor for every row.
                for s in range(K):
                    pairs = table + s * stride
                    self._pair_row(theta, edges, v, s, 0, pairs)
                    for t in range(K):
                        pairs[t] += row[t]
                log_rows(self.loops, K, stride, table, shifts, beta)
                top = log_sum_exp(K, beta)
                for s in range(K):
                    beta[s] -= top
                    shifts[s] -= top
            for s in range(K):
                nodes[v * stride + s] = alpha[v * stride + s] + beta[s]
            mass = log_sum_exp(K, nodes + v * stride)
            top = 0
            for s in range(K):
                nodes[v * stride + s] = exp(nodes[v * stride + s] - mass)
                top += nodes[v * stride + s]
            # Differences of large scores carry rounding errors: normalise the sum to 1.
            for s in range(K):
                nodes[v * stride + s] /= top
            mass += log(top)
            if v == L - 1 or (out.transition == NULL and out.edges == NULL):
                continue
            for s in range(K):
                x = 0
                if beta[s] != -INFINITY:
                    x = exp(alpha[v * stride + s] + shifts[s] - mass)
                pairs = table + s * stride
                for t in range(K):
                    pairs[t] *= x
                if out.transition != NULL:
                    for t in range(K):
                        out.transition[s * stride + t] += pairs[t]
                if out.edges != NULL:
                    for t in range(K):
                        out.edges[v * size + s * stride + t] = pairs[t]
        return 0
