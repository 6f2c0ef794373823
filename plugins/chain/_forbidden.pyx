"""Forbidden pairs of neighbours, first and last states of chains."""

import numpy as np

from libc.string cimport memcpy
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.chain._shape cimport chain_length, chain_shape


cdef class Forbidden:
    """Scores of -inf for forbidden states and pairs.

    All operators of a constrained chain read their scores through one, so training, marginals and
    prediction use the same labelings.

    Parameters
    ----------
    layout : PartLayout
        Of a chain space with a table of transitions.
    pairs : ndarray of float64 of shape (K, K)
        0, or -inf if the second state must not follow the first.
    first, last : ndarray of float64 of shape (K,)
        0, or -inf for states that the first or the last node must not have.
    """

    def __init__(self, PartLayout layout not None, pairs, first, last):
        self.shape = chain_shape(layout)
        padding = (0, self.shape.stride - self.shape.K)
        self.pairs = np.pad(pairs, ((0, 0), padding))
        self.first, self.last = np.pad(first, padding), np.pad(last, padding)
        self.room = (8 * layout.max_theta + 63) // 64 * 64

    cdef const double* apply(self, Py_ssize_t i, const double* theta, char* work) noexcept nogil:
        cdef Py_ssize_t K = self.shape.K, stride = self.shape.stride, s
        cdef Py_ssize_t L = chain_length(self.shape, i)
        cdef double* copy = <double*>work
        cdef double* table = copy + self.shape.transition
        cdef double* nodes = copy + self.shape.shared_size
        cdef const double* pairs = &self.pairs[0, 0]
        if L == 0:
            return theta
        memcpy(copy, theta, 8 * (self.shape.shared_size + L * stride
                                 + (L - 1) * self.shape.edge_size))
        for s in range(K * stride):
            table[s] += pairs[s]
        for s in range(stride):
            nodes[s] += self.first[s]
        nodes += (L - 1) * stride
        for s in range(stride):
            nodes[s] += self.last[s]
        return copy


cdef Forbidden forbidden_of(object masks, PartLayout layout):
    return None if masks is None else Forbidden(layout, *masks)
