"""Passes over the examples at fixed w: bounds, subgradients, decoding, marginals; in threads."""

import numpy as np

from libc.stdint cimport int64_t
from .operators cimport Loss, Oracle, Projection
from .potentials cimport LinearPotentials
from .surrogates.base cimport Cut, Surrogate

from .blocks import aligned_zeros
from .parallel import effective_jobs, over_examples


cdef class Scratch:
    """Memory of one thread."""

    cdef double[::1] theta, value, mu
    cdef int[::1] index
    cdef char[::1] work

    def __init__(self, LinearPotentials potentials, Py_ssize_t work_bytes,
                 Py_ssize_t max_entries=1):
        self.theta = aligned_zeros(potentials.max_theta + 8)
        self.value = np.zeros(max(max_entries, 1))
        self.index = np.zeros(max(max_entries, 1), dtype=np.int32)
        self.work = aligned_zeros(work_bytes // 8 + 16).view(np.int8)


def surrogate_bounds(problem, const double[::1] w, n_jobs=1):
    """Upper bounds of every ``H_i`` at w.

    Parameters
    ----------
    problem : Problem
    w : ndarray of float64 of shape (dim,)
    n_jobs : int

    Returns
    -------
    bounds : ndarray of shape (n,)
    calls : int
        Oracle calls spent.
    """
    cdef LinearPotentials potentials = problem.potentials
    cdef Surrogate surrogate = problem.surrogate
    bounds = np.empty(problem.n)
    cdef double[::1] out = bounds

    def piece(Py_ssize_t first, Py_ssize_t last, Scratch scratch):
        cdef Cut cut
        cdef Py_ssize_t i
        cdef long calls = 0
        cut.index, cut.value = &scratch.index[0], &scratch.value[0]
        with nogil:
            for i in range(first, last):
                potentials.score(i, &w[0], 1.0, &scratch.theta[0])
                surrogate.cut(i, &scratch.theta[0], &cut, &scratch.work[0])
                out[i] = cut.bound
                calls += cut.calls
        return calls

    counts = over_examples(piece, problem.examples.offsets, n_jobs,
                           lambda: Scratch(potentials, surrogate.work_bytes,
                                           surrogate.max_entries))
    return bounds, sum(counts)


def subgradient(problem, const double[::1] w, n_jobs=1):
    """One cut of the whole mean surrogate at w: ``R(v) >= b - <g, v>`` for every v.

    Examples are decoded in threads; the sum over examples is taken in their order for every
    column of w whatever the number of threads, so g does not depend on ``n_jobs`` at all.

    Parameters
    ----------
    problem : Problem
    w : ndarray of float64 of shape (dim,)
    n_jobs : int

    Returns
    -------
    g : ndarray of shape (dim,)
        ``sum_i u_i Phi_i' p_i``.
    b : float
        ``sum_i u_i b_i``.
    bounds : ndarray of shape (n,)
        Upper bounds of every ``H_i`` at w.
    calls : int
    """
    cdef LinearPotentials potentials = problem.potentials
    cdef Surrogate surrogate = problem.surrogate
    cdef Py_ssize_t n = problem.n, width = max(surrogate.max_entries, 1), first, last
    cdef const double[::1] weights = problem.weights
    cdef Py_ssize_t block = max(1, min(n, (32 << 20) // (12 * width)))
    cdef int jobs = effective_jobs(n_jobs)
    bounds, b_all = np.empty(n), np.empty(n)
    g = aligned_zeros(potentials.dim)
    cdef double[::1] bound_view = bounds, b_view = b_all, g_view = g
    cdef int[:, ::1] index = np.empty((block, width), dtype=np.int32)
    cdef double[:, ::1] value = np.empty((block, width))
    cdef int[::1] nnz = np.empty(block, dtype=np.int32)
    offsets = problem.examples.offsets
    calls = 0
    # Each of `jobs` threads adds up cache lines of its own; more threads than lines idle.
    phases = np.arange(jobs + 1, dtype=np.int64)

    def cuts(Py_ssize_t a, Py_ssize_t z, Scratch scratch):
        cdef Cut cut
        cdef Py_ssize_t i
        cdef long spent = 0
        with nogil:
            for i in range(first + a, first + z):
                cut.index, cut.value = &index[i - first, 0], &value[i - first, 0]
                potentials.score(i, &w[0], 1.0, &scratch.theta[0])
                surrogate.cut(i, &scratch.theta[0], &cut, &scratch.work[0])
                bound_view[i], b_view[i], nnz[i - first] = cut.bound, cut.b, <int>cut.nnz
                spent += cut.calls
        return spent

    def add(Py_ssize_t a, Py_ssize_t z, scratch):
        cdef Py_ssize_t i
        cdef int phase
        with nogil:
            for phase in range(<int>a, <int>z):
                for i in range(first, last):
                    potentials.add(i, nnz[i - first], &index[i - first, 0], &value[i - first, 0],
                                   weights[i], &g_view[0], jobs, phase)

    def scratch():
        return Scratch(potentials, surrogate.work_bytes)

    for first in range(0, n, block):
        last = min(first + block, n)
        calls += sum(over_examples(cuts, offsets[first:last + 1] - offsets[first], n_jobs,
                                   scratch))
        over_examples(add, phases, n_jobs, lambda: None)
    return g, float(np.asarray(weights) @ b_all), bounds, calls


cdef class Masks:
    """Additive masks of scores (0 and -inf): the shared blocks', and the stacked node rows'."""

    cdef double[::1] shared
    cdef double[:, ::1] nodes
    cdef readonly bint has_shared, has_nodes

    def __init__(self, layout, masks):
        shared = np.zeros(max(layout.shared_size, 1))
        for name, mask in masks.items():
            if layout.node is not None and name == layout.node.name:
                self.nodes = np.ascontiguousarray(mask, dtype=np.float64)
                self.has_nodes = True
            else:
                layout.view(shared, name)[...] = mask
                self.has_shared = True
        self.shared = shared

    cdef void apply(self, LinearPotentials potentials, Py_ssize_t i, double* theta) noexcept nogil:
        cdef Py_ssize_t j, v, s
        cdef double* row = theta + potentials.shared_size
        if self.has_shared:
            for j in range(potentials.shared_size):
                theta[j] += self.shared[j]
        if self.has_nodes:
            for v in range(potentials.offsets[i], potentials.offsets[i + 1]):
                for s in range(self.nodes.shape[1]):
                    row[s] += self.nodes[v, s]
                row += potentials.node_size


def decode(LinearPotentials potentials, Oracle oracle, const double[::1] w, offsets,
           const int64_t[::1] label_offsets, masks, n_jobs=1):
    """Best label of every example, one after the other, and its score.

    Returns
    -------
    labels : ndarray of int32
    scores : ndarray of shape (n,)
    """
    cdef Masks mask = Masks(potentials.layout, masks)
    labels = np.zeros(max(int(label_offsets[potentials.n]), 1), dtype=np.int32)
    scores = np.empty(potentials.n)
    cdef int[::1] out = labels
    cdef double[::1] score_view = scores

    def piece(Py_ssize_t first, Py_ssize_t last, Scratch scratch):
        cdef Py_ssize_t i
        with nogil:
            for i in range(first, last):
                potentials.score(i, &w[0], 1.0, &scratch.theta[0])
                mask.apply(potentials, i, &scratch.theta[0])
                oracle.argmax(i, &scratch.theta[0], &out[label_offsets[i]], &score_view[i],
                              &scratch.work[0])

    over_examples(piece, offsets, n_jobs, lambda: Scratch(potentials, oracle.work_bytes))
    return labels[:label_offsets[potentials.n]], scores


def decode_kbest(LinearPotentials potentials, Oracle oracle, const double[::1] w, offsets,
                 const int64_t[::1] label_offsets, masks, Py_ssize_t k, n_jobs=1):
    """The k best labels of every example.

    Returns
    -------
    labels : list of ndarray of int32 of shape (found_i, size of the label)
    scores : list of ndarray of shape (found_i,)
    """
    cdef Masks mask = Masks(potentials.layout, masks)
    cdef const int64_t[::1] sizes = np.diff(label_offsets)
    cdef Py_ssize_t longest = max(int(np.asarray(sizes).max()), 1)
    labels, scores = [None] * potentials.n, [None] * potentials.n

    def piece(Py_ssize_t first, Py_ssize_t last, Scratch scratch):
        cdef Py_ssize_t i, found
        cdef int[::1] out = np.empty(longest * k, dtype=np.int32)
        cdef double[::1] values = np.empty(k)
        for i in range(first, last):
            with nogil:
                potentials.score(i, &w[0], 1.0, &scratch.theta[0])
                mask.apply(potentials, i, &scratch.theta[0])
                found = oracle.kbest(i, &scratch.theta[0], k, &out[0], &values[0],
                                     &scratch.work[0])
            labels[i] = np.array(out[:found * sizes[i]]).reshape(found, sizes[i])
            scores[i] = np.array(values[:found])

    over_examples(piece, offsets, n_jobs,
                  lambda: Scratch(potentials, oracle.kbest_bytes(k)))
    return labels, scores


def node_rows(LinearPotentials potentials, operator, const double[::1] w, offsets, masks,
              double scale=1.0, n_jobs=1):
    """Node rows of what an operator gives: max-marginals of an oracle, marginals of a projection.

    Returns
    -------
    rows : ndarray of shape (n_nodes, states)
    values : ndarray of shape (n,)
        Value of each projection (log-partition); zeros for an oracle.
    """
    cdef Masks mask = Masks(potentials.layout, masks)
    cdef Oracle oracle = operator if isinstance(operator, Oracle) else None
    cdef Projection projection = None if oracle is not None else operator
    cdef Py_ssize_t states = potentials.layout.node.shape[0], stride = potentials.node_size
    rows = np.empty((max(int(offsets[potentials.n]), 1), states))
    values = np.zeros(potentials.n)
    cdef double[:, ::1] out = rows
    cdef double[::1] value_view = values

    def piece(Py_ssize_t first, Py_ssize_t last, Scratch scratch):
        cdef Py_ssize_t i, v, s
        cdef double[::1] mu = aligned_zeros(potentials.max_theta + 8)
        cdef const double* row
        with nogil:
            for i in range(first, last):
                potentials.score(i, &w[0], scale, &scratch.theta[0])
                mask.apply(potentials, i, &scratch.theta[0])
                if oracle is not None:
                    oracle.max_marginals(i, &scratch.theta[0], &mu[0], &scratch.work[0])
                    row = &mu[0]
                else:
                    projection.project(i, &scratch.theta[0], &mu[0], &value_view[i],
                                       &scratch.work[0])
                    row = &mu[0] + potentials.shared_size
                for v in range(potentials.offsets[i], potentials.offsets[i + 1]):
                    for s in range(states):
                        out[v, s] = row[s]
                    row += stride

    work_bytes = operator.work_bytes
    over_examples(piece, offsets, n_jobs, lambda: Scratch(potentials, work_bytes))
    return rows[:offsets[potentials.n]], values


def losses(Loss loss, const int[::1] labels, const int64_t[::1] label_offsets):
    """Loss of every example's label against the truth that ``loss`` is bound to."""
    cdef Py_ssize_t i, n = label_offsets.shape[0] - 1
    values = np.empty(n)
    cdef double[::1] out = values
    with nogil:
        for i in range(n):
            out[i] = loss.value(i, &labels[0] + label_offsets[i])
    return values
