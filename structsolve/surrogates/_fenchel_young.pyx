"""Fenchel-Young surrogates: H_i(w) = max_{mu in M} G(mu) - G(mu(y_i)) + <theta_i, mu - mu(y_i)>."""

import numpy as np

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy
from ..utils.alignment cimport align
from ..operators cimport Parts, Projection
from ..potentials.linear cimport LinearPotentials
from ._base cimport Cut, Surrogate

from ..utils.arrays import aligned_zeros


cdef class FenchelYoung(Surrogate):
    """One call of a projection (FORMULAS.md section 2): the CRF, SparseMAP, the max-min margin.

    The maximiser mu gives the cut ``H_i(w) >= b - <theta_i(w), mu(y_i) - mu>``, which holds for
    every w because mu stays where it is.  Solvers that know no more than cuts can use it; those
    that ask for G along a segment find the projection here.

    Parameters
    ----------
    potentials : LinearPotentials
        For the sizes of the scores only.
    projection : Projection
        Whose G it is.
    parts : Parts
    labels : ndarray of int32
        True labels, one after the other.
    label_offsets : ndarray of int64
        Where each example's label starts.
    offsets : ndarray of float64 of shape (n,), optional
        ``-G(mu(y_i))`` of every example, where G is not 0 at labels.
    concave : {"", "entropy", "euclidean"}, default=""
        In which distance G is strongly concave with modulus 1: that of the l1 norm between
        distributions of labels, or the Euclidean one between node parts; "" where it is not.
    state_rows : int, default=0
        How many probabilities of labels the projection's states begin with, where it is them that
        G is a function of and not the node parts; 0 where node parts are probabilities.
    """

    def __init__(self, LinearPotentials potentials, Projection projection, Parts parts, labels,
                 label_offsets, offsets=None, str concave="", Py_ssize_t state_rows=0):
        cdef const double[::1] added
        cdef const int[::1] label_view = labels
        cdef const int64_t[::1] offset_view = label_offsets
        self.potentials, self.projection, self.parts = potentials, projection, parts
        self.owners = (labels, label_offsets)
        self.labels = &label_view[0] if label_view.shape[0] else NULL
        self.label_offsets = &offset_view[0]
        self.concave, self.state_rows = concave, state_rows
        self.offsets = np.zeros(potentials.n) if offsets is None else offsets
        added = self.offsets
        self.offset = &added[0] if added.shape[0] else NULL
        self.max_entries = max(potentials.max_theta, parts.max_entries)
        self.exact = projection.exact
        self.theta_bytes = 8 * potentials.max_theta + 64
        self.work_bytes = self.theta_bytes + projection.work_bytes + 128

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.structure.calls``."""
        if not 0 <= i < self.potentials.n:
            raise ValueError(
                f"example {i} of {self.potentials.n}: expected 0 to {self.potentials.n - 1}"
            )
        return self.potentials.theta_size(i), None, None

    def counts(self):
        """Answers given and iterations spent on them, of projections that iterate."""
        return self.projection.counts() if hasattr(self.projection, "counts") else None

    def memory_of_examples(self):
        """What the projection remembers of its last answers."""
        if hasattr(self.projection, "memory_of_examples"):
            return self.projection.memory_of_examples()
        return {}

    def remember(self, arrays):
        """Take over what ``memory_of_examples`` returned."""
        if hasattr(self.projection, "remember"):
            self.projection.remember(arrays)

    cdef int add_truth(self, Py_ssize_t i, double coef, double* out, int* index,
                       double* value) except -1 nogil:
        cdef const int* truth = self.labels + self.label_offsets[i]
        cdef Py_ssize_t k, n = self.parts.encode(i, truth, index, value)
        for k in range(n):
            out[index[k]] += coef * value[k]
        return 0

    cdef int cut(self, Py_ssize_t i, const double* theta, Cut* cut, char* work) except -1 nogil:
        cdef double* mu = <double*>align(work)
        cdef char* scratch = align(work + self.theta_bytes)
        cdef Py_ssize_t j, size = self.potentials.theta_size(i), n = 0
        cdef double value, bound, score = 0
        cdef uint64_t key = 1469598103934665603ULL, bits
        self.projection.project_bounded(i, theta, mu, &value, &bound, scratch)
        for j in range(size):
            if mu[j] != 0:
                score += theta[j] * mu[j]
                memcpy(&bits, mu + j, sizeof(double))
                key = (key ^ bits ^ <uint64_t>j) * 1099511628211ULL
        cut.b = value - score + self.offset[i]
        # p = mu(y_i) - mu
        for j in range(size):
            mu[j] = -mu[j]
        self.add_truth(i, 1.0, mu, cut.index, cut.value)
        score = 0
        for j in range(size):
            if mu[j] != 0:
                cut.index[n], cut.value[n] = <int>j, mu[j]
                score += theta[j] * mu[j]
                n += 1
        cut.nnz, cut.key, cut.calls = n, key, 1
        cut.bound = cut.b - score + (bound - value)
        return 0


def node_squares(LinearPotentials potentials not None, Parts parts not None, examples):
    """``||mu(y_i)||^2`` over the node parts of every example's truth.

    Parameters
    ----------
    potentials : LinearPotentials
    parts : Parts
    examples : Examples
        With labels.

    Returns
    -------
    squares : ndarray of float64 of shape (n,)
    """
    cdef const int[::1] labels = examples.labels
    cdef const int64_t[::1] starts = examples.label_offsets
    cdef int[::1] index = np.zeros(parts.max_entries + 1, np.int32)
    cdef double[::1] value = np.zeros(parts.max_entries + 1)
    cdef double[::1] dense = np.zeros(potentials.max_theta + 8)
    squares = np.zeros(potentials.n)
    cdef double[::1] out = squares
    cdef Py_ssize_t i, k, n, first = potentials.shared_size, last
    with nogil:
        for i in range(potentials.n):
            last = first + (potentials.offsets[i + 1] - potentials.offsets[i]) * (
                potentials.node_size)
            n = parts.encode(i, &labels[starts[i]], &index[0], &value[0])
            for k in range(n):
                if first <= index[k] < last:
                    out[i] += value[k] * (2 * dense[index[k]] + value[k])
                    dense[index[k]] += value[k]
            for k in range(n):
                dense[index[k]] = 0
    return squares


def truth_terms(LinearPotentials potentials not None, Projection projection not None, examples):
    """G at the truth of every example, of a projection with states of its own.

    Parameters
    ----------
    potentials : LinearPotentials
    projection : Projection
        With ``state_of`` and ``term``.
    examples : Examples
        With labels.

    Returns
    -------
    terms : ndarray of float64 of shape (n,)
    """
    cdef const int[::1] labels = examples.labels
    cdef const int64_t[::1] starts = examples.label_offsets
    cdef double[::1] work = aligned_zeros(projection.work_bytes // 8 + 16)
    cdef double[::1] state
    cdef Py_ssize_t i, most = 0
    terms = np.zeros(potentials.n)
    cdef double[::1] out = terms
    for i in range(potentials.n):
        most = max(most, projection.state_size(i))
    state = aligned_zeros(most + 8)
    with nogil:
        for i in range(potentials.n):
            projection.state_of(i, &labels[starts[i]], &state[0])
            out[i] = projection.term(i, &state[0], <char*>&work[0])
    return terms
