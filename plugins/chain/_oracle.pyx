"""Viterbi decoding of chains: best label, k best, max-marginals."""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from structsolve.kernels cimport ss_kernel_table, ss_kernels
from structsolve.operators cimport Oracle

from structsolve.plugins.chain._layout cimport ChainShape


cdef inline Py_ssize_t _argmax_sum(Py_ssize_t K, const double* a, const double* b,
                                   Py_ssize_t step) noexcept nogil:
    # First s with the largest a[s] + b[s * step].
    cdef Py_ssize_t s, best = 0
    cdef double x, top = a[0] + b[0]
    for s in range(1, K):
        x = a[s] + b[s * step]
        if x > top:
            top = x
            best = s
    return best


cdef class ChainOracle(Oracle):
    """Exact maximisation over the labelings of chains by dynamic programming.

    The forward pass keeps scores only; the path is recovered by maximising again along it,
    which costs O(L K) and spares K back-pointers a position.  Ties go to the smallest state,
    the last position first.

    Parameters
    ----------
    shape : ChainShape
        Sizes of the chains and where their parts lie.
    """

    cdef ChainShape shape
    cdef const ss_kernel_table* kernels

    def __init__(self, ChainShape shape):
        self.shape = shape
        self.kernels = ss_kernels(shape.stride)
        self.has_kbest = True
        self.has_max_marginals = True
        self.work_bytes = 8 * shape.stride * (2 * shape.max_length + 2 + 2 * shape.K) + 64

    cdef const double* _table(self, const double* theta, const double* edges, Py_ssize_t v,
                              double* buffer) noexcept nogil:
        # Transition scores into position v + 1.
        cdef Py_ssize_t j, size = self.shape.K * self.shape.stride
        cdef const double* extra
        if edges == NULL:
            return theta + self.shape.transition
        extra = edges + v * size
        if self.shape.transition < 0:
            return extra
        for j in range(size):
            buffer[j] = theta[self.shape.transition + j] + extra[j]
        return buffer

    cdef double _forward(self, Py_ssize_t i, const double* theta, double* alpha,
                         double* buffer) noexcept nogil:
        # alpha[v, s]: best score of positions 0..v that ends in state s, end score included.
        cdef Py_ssize_t K = self.shape.K, stride = self.shape.stride, v, s
        cdef Py_ssize_t L = self.shape.offsets[i + 1] - self.shape.offsets[i]
        cdef const double* unary = theta + self.shape.shared_size
        cdef const double* edges = NULL
        cdef const double* extra
        cdef double* row = alpha
        cdef double best
        if self.shape.edge_size:
            edges = unary + L * stride
        for s in range(K):
            row[s] = unary[s]
        if self.shape.start >= 0:
            extra = theta + self.shape.start
            for s in range(K):
                row[s] += extra[s]
        for v in range(1, L):
            self.kernels.maxplus(K, row, self._table(theta, edges, v - 1, buffer), stride, stride,
                                 row + stride)
            row += stride
            unary += stride
            for s in range(stride):
                row[s] += unary[s]
        if self.shape.end >= 0:
            extra = theta + self.shape.end
            for s in range(K):
                row[s] += extra[s]
        best = row[0]
        for s in range(1, K):
            if row[s] > best:
                best = row[s]
        return best

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    char* work) except -1 nogil:
        cdef Py_ssize_t K = self.shape.K, stride = self.shape.stride, v, s
        cdef Py_ssize_t L = self.shape.offsets[i + 1] - self.shape.offsets[i]
        cdef double* alpha = <double*>work
        cdef double* buffer = alpha + (2 * self.shape.max_length + 2) * stride
        cdef const double* edges = NULL
        if self.shape.edge_size:
            edges = theta + self.shape.shared_size + L * stride
        value[0] = self._forward(i, theta, alpha, buffer)
        s = 0
        for v in range(1, K):
            if alpha[(L - 1) * stride + v] > alpha[(L - 1) * stride + s]:
                s = v
        label[L - 1] = <int>s
        for v in range(L - 2, -1, -1):
            s = _argmax_sum(K, alpha + v * stride,
                            self._table(theta, edges, v, buffer) + s, stride)
            label[v] = <int>s
        return 0

    cdef int max_marginals(self, Py_ssize_t i, const double* theta, double* out,
                           char* work) except -1 nogil:
        cdef Py_ssize_t K = self.shape.K, stride = self.shape.stride, v, s, t
        cdef Py_ssize_t L = self.shape.offsets[i + 1] - self.shape.offsets[i]
        cdef double* alpha = <double*>work
        cdef double* beta = alpha + (self.shape.max_length + 1) * stride
        cdef double* buffer = alpha + (2 * self.shape.max_length + 2) * stride
        cdef const double* unary = theta + self.shape.shared_size
        cdef const double* edges = NULL
        cdef const double* row
        cdef double* ahead
        cdef double x, best
        if self.shape.edge_size:
            edges = unary + L * stride
        self._forward(i, theta, alpha, buffer)
        # The end score is in the last row of alpha already.
        ahead = beta + (L - 1) * stride
        for s in range(stride):
            ahead[s] = 0
        for v in range(L - 2, -1, -1):
            for s in range(K):
                row = self._table(theta, edges, v, buffer) + s * stride
                best = row[0] + unary[(v + 1) * stride] + ahead[0]
                if v == L - 2 and self.shape.end >= 0:
                    best += theta[self.shape.end]
                for t in range(1, K):
                    x = row[t] + unary[(v + 1) * stride + t] + ahead[t]
                    if v == L - 2 and self.shape.end >= 0:
                        x += theta[self.shape.end + t]
                    if x > best:
                        best = x
                (ahead - stride)[s] = best
            ahead -= stride
        for v in range(L):
            for s in range(K):
                out[v * stride + s] = alpha[v * stride + s] + beta[v * stride + s]
            for s in range(K, stride):
                out[v * stride + s] = 0
        return 0

    cpdef Py_ssize_t kbest_bytes(self, Py_ssize_t k) except -1:
        # Per (position, state): k scores and k back-pointers; a head per previous state.
        cells = self.shape.max_length * self.shape.K
        return cells * k * 16 + 16 * self.shape.K + 8 * self.shape.stride * self.shape.K + 256

    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels,
                          double* values, char* work) except -1 nogil:
        # scores[v, s, r] is the r-th best score of a prefix that ends in (v, s); each list is
        # the merge of K sorted lists, one per previous state.  -inf marks "no such label".
        cdef Py_ssize_t K = self.shape.K, stride = self.shape.stride, v, s, t, r, best, found
        cdef Py_ssize_t L = self.shape.offsets[i + 1] - self.shape.offsets[i]
        cdef double* scores = <double*>work
        cdef int64_t* origin = <int64_t*>(scores + self.shape.max_length * K * k)
        cdef int64_t* head = origin + self.shape.max_length * K * k
        cdef double* buffer = <double*>(head + K + 8)
        cdef const double* unary = theta + self.shape.shared_size
        cdef const double* edges = NULL
        cdef const double* table
        cdef double* cell
        cdef double x, top, extra
        cdef int64_t node
        cdef double none = -INFINITY
        if self.shape.edge_size:
            edges = unary + L * stride
        for s in range(K):
            cell = scores + s * k
            for r in range(k):
                cell[r] = none
                origin[s * k + r] = -1
            cell[0] = unary[s]
            if self.shape.start >= 0:
                cell[0] += theta[self.shape.start + s]
            # A forbidden state (score -inf) still is a label; "no such label" is origin -1.
            origin[s * k] = 0
        for v in range(1, L):
            table = self._table(theta, edges, v - 1, buffer)
            for t in range(K):
                for s in range(K):
                    head[s] = 0
                cell = scores + (v * K + t) * k
                for r in range(k):
                    best = -1
                    top = none
                    for s in range(K):
                        if head[s] == k or origin[((v - 1) * K + s) * k + head[s]] < 0:
                            continue
                        x = scores[((v - 1) * K + s) * k + head[s]] + table[s * stride + t]
                        if best < 0 or x > top:
                            top = x
                            best = s
                    if best < 0:
                        cell[r] = none
                        origin[(v * K + t) * k + r] = -1
                        continue
                    cell[r] = top + unary[v * stride + t]
                    origin[(v * K + t) * k + r] = best * k + head[best]
                    head[best] += 1
        for s in range(K):
            head[s] = 0
        found = 0
        for r in range(k):
            best = -1
            top = none
            for s in range(K):
                if head[s] == k or origin[((L - 1) * K + s) * k + head[s]] < 0:
                    continue
                extra = theta[self.shape.end + s] if self.shape.end >= 0 else 0
                x = scores[((L - 1) * K + s) * k + head[s]] + extra
                if best < 0 or x > top:
                    top = x
                    best = s
            if best < 0:
                break
            values[r] = top
            node = best * k + head[best]
            head[best] += 1
            for v in range(L - 1, -1, -1):
                labels[r * L + v] = <int>(node / k)
                node = origin[v * K * k + node]
            found += 1
        return found
