"""Linear potentials with a metric along the last axis of a node's parts, such as ranks."""

import numpy as np

from libc.string cimport memcpy, memset

from .features cimport FeatureRows
from .linear cimport NODE, LinearPotentials

from ..utils.arrays import real_array

# The most ranks of a metric.
MOST = MOST_MIXED
# The least eigenvalue of a metric beside the largest: below it, an inverse is rounding.
ROUNDING = 1e-12

cdef enum:
    ALONE = -1      # the state of an entry that is no node's


cdef class MixedPotentials(LinearPotentials):
    """Linear potentials whose node parts score ``<x, u> M`` along their last axis.

    Penalising ``||u||^2`` then penalises ``||w M^-1||^2`` of the weights ``w = u M`` that score
    features without M: weights that an eigenvector of M with a small eigenvalue combines cost more.

    Parameters
    ----------
    examples : Examples
        Packed features.
    layout : WeightLayout
        Blocks of the weight vector.
    node_mix : ndarray of float64 of shape (S, S)
        M, symmetric and positive definite, S being the size of the last axis of the node block.
    gram_budget, n_jobs, nodes
        As of :class:`LinearPotentials`.

    Raises
    ------
    ValueError
        If the matrix has another shape, is not symmetric, has more than 256 rows or no inverse; and
        as :class:`LinearPotentials` says.
    """

    def __init__(self, examples, layout, node_mix, Py_ssize_t gram_budget=0, n_jobs=1,
                 FeatureRows nodes=None):
        super().__init__(examples, layout, gram_budget, n_jobs, nodes)
        M = np.ascontiguousarray(real_array(node_mix, "node_mix"))
        *_, size = layout.node.shape if layout.node is not None else (0,)
        same = np.array_equal(M, M.T, equal_nan=True)
        if M.shape != (size, size) or not 0 < size <= MOST_MIXED or not same:
            raise ValueError(
                f"node_mix has shape {M.shape}, expected a symmetric matrix of shape "
                f"({size}, {size}), of 1 to {MOST_MIXED} rows"
            )
        if not np.isfinite(M).all() or not 1 / np.linalg.cond(M) > ROUNDING:
            raise ValueError("node_mix has no inverse, expected a positive definite matrix")
        self.node_mix, self.mix, self.square = M, M, M @ M
        self.size, self.stride = size, layout.node.stride

    def model_rows(self, rows, inverse=False):
        M = np.linalg.inv(self.node_mix) if inverse else self.node_mix
        return mixed_rows(rows, M, self.stride)

    cdef Py_ssize_t axis(self, Py_ssize_t i, Py_ssize_t nnz, const int* index, int* states,
                         int* entries, Py_ssize_t* n) noexcept nogil:
        cdef Py_ssize_t k = 1, s
        cdef Py_ssize_t position = index[0] - self.shared_size
        cdef int first
        if self._place(i, index[0]).kind != NODE:
            states[0], entries[0], n[0] = ALONE, index[0], 1
            return 1
        states[0], n[0] = <int>(position % self.stride), self.size
        first = index[0] - states[0]
        for s in range(self.size):
            entries[s] = <int>(first + s)
        while k < nnz and k < MOST_MIXED and first <= index[k] < first + self.size:
            states[k] = index[k] - first
            k += 1
        return k

    cdef Py_ssize_t spread(self, Py_ssize_t i, Py_ssize_t nnz, const int* index,
                           const double* value, const double[:, ::1] M, double coef, int* entries,
                           double* coefs, Py_ssize_t* n) noexcept nogil:
        cdef int[MOST_MIXED] states
        cdef Py_ssize_t m = self.axis(i, nnz, index, states, entries, n)
        if states[0] == ALONE:
            coefs[0] = coef * value[0]
        else:
            combine(m, n[0], states, value, M, coef, coefs)
        return m

    cdef void score(self, Py_ssize_t i, const double* w, double scale,
                    double* theta) noexcept nogil:
        cdef double[MOST_MIXED] row
        cdef double* out = theta + self.shared_size
        cdef Py_ssize_t axes = (
            (self.offsets[i + 1] - self.offsets[i]) * (self.node_size // self.stride))
        LinearPotentials.score(self, i, w, scale, theta)
        for _ in range(axes):
            combine(self.size, self.size, NULL, out, self.mix, 1, row)
            memcpy(out, row, self.size * sizeof(double))
            out += self.stride

    cdef void add(self, Py_ssize_t i, Py_ssize_t nnz, const int* index, const double* value,
                  double coef, double* w) noexcept nogil:
        cdef Py_ssize_t n, j = 0
        cdef int[MOST_MIXED] entries
        cdef double[MOST_MIXED] coefs
        while j < nnz:
            j += self.spread(i, nnz - j, index + j, value + j, self.mix, coef, entries, coefs, &n)
            LinearPotentials.add(self, i, n, entries, coefs, 1, w)

    cdef void clear(self, Py_ssize_t i, Py_ssize_t nnz, const int* index, double* w) noexcept nogil:
        cdef Py_ssize_t n, j = 0
        cdef int[MOST_MIXED] states, entries
        while j < nnz:
            j += self.axis(i, nnz - j, index + j, states, entries, &n)
            LinearPotentials.clear(self, i, n, entries, w)

    cdef void scores(self, Py_ssize_t i, Py_ssize_t nnz, const int* index, const double* w,
                     double* out) noexcept nogil:
        cdef Py_ssize_t k, m, n, s, j = 0
        cdef int[MOST_MIXED] states, entries
        cdef double[MOST_MIXED] values
        while j < nnz:
            m = self.axis(i, nnz - j, index + j, states, entries, &n)
            LinearPotentials.scores(self, i, n, entries, w, values)
            if states[0] == ALONE:
                out[j] = values[0]
            else:
                for k in range(m):
                    out[j + k] = 0
                    for s in range(n):
                        out[j + k] += self.mix[states[k], s] * values[s]
            j += m

    cdef void add_gram(self, Py_ssize_t i, Py_ssize_t nnz, const int* index,
                       const double* value, double coef, double* u,
                       double* scratch) noexcept nogil:
        cdef Py_ssize_t n, j = 0
        cdef int[MOST_MIXED] entries
        cdef double[MOST_MIXED] coefs
        while j < nnz:
            j += self.spread(i, nnz - j, index + j, value + j, self.square, coef, entries, coefs,
                             &n)
            LinearPotentials.add_gram(self, i, n, entries, coefs, 1, u, scratch)

    cdef void move_gram(self, Py_ssize_t i, Py_ssize_t nnz, const int* index, double coef,
                        double* u, double* theta) noexcept nogil:
        cdef Py_ssize_t n, j = 0
        cdef int[MOST_MIXED] states, entries
        while j < nnz:
            j += self.axis(i, nnz - j, index + j, states, entries, &n)
            LinearPotentials.move_gram(self, i, n, entries, coef, u, theta)


def mixed_rows(rows, M, stride):
    """Return the products of the last axis of node weights and a matrix.

    Parameters
    ----------
    rows : ndarray of float64 of shape (n, node_size)
    M : ndarray of shape (S, S)
    stride : int
        Doubles of the last axis, with padding.

    Returns
    -------
    ndarray of float64 of shape (n, node_size)
    """
    mixed = np.zeros_like(rows)
    given, into = (a.reshape(len(a), -1, stride) for a in (rows, mixed))
    into[..., :len(M)] = given[..., :len(M)] @ M
    return mixed


cdef void combine(Py_ssize_t m, Py_ssize_t n, const int* states, const double* value,
                  const double[:, ::1] M, double coef, double* out) noexcept nogil:
    """out = coef times the sum of value[k] and row states[k] of M; row k without states."""
    cdef Py_ssize_t k, s
    cdef const double* line
    cdef double x
    memset(out, 0, n * sizeof(double))
    for k in range(m):
        line, x = &M[k if states == NULL else states[k], 0], coef * value[k]
        for s in range(n):
            out[s] += x * line[s]
