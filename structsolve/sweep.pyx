"""Passes over the examples at fixed w: bounds, subgradients, decoding, marginals; in threads."""

import numpy as np

from libc.stdint cimport int64_t
from .operators cimport Loss, Oracle, Projection
from .potentials cimport LinearPotentials
from .surrogates.base cimport Cut, Surrogate

from .blocks import aligned_zeros, padded
from .parallel import native_calls, over_examples, ranges


cdef enum:
    TOGETHER = 64


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


def summands(problem):
    """Into how many partial sums a subgradient is split, one g each.

    As many as keep adding them up below an eighth of the work of scoring, at most 16.  Whatever
    the number of threads: the sums must not depend on it.
    """
    cdef LinearPotentials potentials = problem.potentials
    work = sum(design.nnz * size for design, size in (
        (potentials.nodes, potentials.node_size), (potentials.edges, potentials.edge_size))
        if design is not None)
    return int(min(max(work // (8 * max(potentials.dim, 1)), 1), 16, max(problem.n, 1)))


def partial_sums(problem):
    """Memory for the sums of ``subgradient()``, of shape (summands(problem), dim)."""
    n, dim = summands(problem), problem.potentials.dim
    return aligned_zeros(n * dim).reshape(n, dim)


def subgradient(problem, const double[::1] w, n_jobs=1, sums=None):
    """One cut of the whole mean surrogate at w: ``R(v) >= b - <g, v>`` for every v.

    Threads decode and add up ranges of examples that are the same whatever their number, and the
    ranges' sums are added in their order: g does not depend on ``n_jobs``, to the last bit.

    Parameters
    ----------
    problem : Problem
    w : ndarray of float64 of shape (dim,)
    n_jobs : int
    sums : ndarray of shape (summands(problem), dim), optional
        Memory to work in, for those who come back: what is fresh has to be mapped in every time,
        while all threads wait.

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
    cdef const double[::1] weights = problem.weights
    offsets = problem.examples.offsets
    parts = ranges(offsets, summands(problem), taper=True)
    bounds, b_all = np.empty(problem.n), np.empty(problem.n)
    if sums is None:
        sums = partial_sums(problem)
    cdef double[::1] bound_view = bounds, b_view = b_all
    cdef double[:, ::1] sum_view = sums
    # w and g share the nearest cache badly: decode a few examples, then add them up.
    cdef Py_ssize_t width = max(surrogate.max_entries, 1)
    cdef Py_ssize_t together = max(1, min(TOGETHER, (1 << 20) // (12 * width)))

    def add(Py_ssize_t first, Py_ssize_t last, double[::1] g, Scratch scratch):
        cdef Cut cut
        cdef Py_ssize_t i, k, begin, end
        cdef Py_ssize_t[TOGETHER] nnz
        cdef long spent = 0
        with nogil:
            begin = first
            while begin < last:
                end = min(begin + together, last)
                for i in range(begin, end):
                    k = i - begin
                    cut.index = &scratch.index[k * width]
                    cut.value = &scratch.value[k * width]
                    potentials.score(i, &w[0], 1.0, &scratch.theta[0])
                    surrogate.cut(i, &scratch.theta[0], &cut, &scratch.work[0])
                    bound_view[i], b_view[i], nnz[k] = cut.bound, cut.b, cut.nnz
                    spent += cut.calls
                for i in range(begin, end):
                    k = i - begin
                    potentials.add(i, nnz[k], &scratch.index[k * width],
                                   &scratch.value[k * width], weights[i], &g[0])
                begin = end
        return spent

    def piece(Py_ssize_t first, Py_ssize_t last, Scratch scratch):
        sum_view[first:last] = 0
        return sum(add(a, z, sum_view[part], scratch)
                   for part in range(first, last)
                   for a, z in native_calls(offsets, *parts[part]))

    starts = [a for a, _ in parts] + [problem.n]
    calls = sum(over_examples(piece, offsets[starts], n_jobs,
                              lambda: Scratch(potentials, surrogate.work_bytes,
                                              together * width)))
    return sums[:len(parts)].sum(axis=0), float(np.asarray(weights) @ b_all), bounds, calls


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


def draw(LinearPotentials potentials, Projection projection, const double[::1] w, offsets,
         const int64_t[::1] label_offsets, Py_ssize_t n, double scale, seed, n_jobs=1):
    """Labels of every example from ``p(y) ~ exp(scale <theta, mu(y)>)``.

    Every example has random numbers of its own: they do not depend on ``n_jobs``.

    Returns
    -------
    labels : ndarray of int32 of shape (n, size of all labels)
    """
    cdef Py_ssize_t total = label_offsets[potentials.n]
    labels = np.zeros((n, max(total, 1)), dtype=np.int32)
    longest = max(int(np.diff(label_offsets).max()), 1) if potentials.n else 1

    def piece(Py_ssize_t first, Py_ssize_t last, Scratch scratch):
        cdef Py_ssize_t i, size
        cdef double[::1] uniforms
        cdef int[::1] out = np.empty(n * longest, dtype=np.int32)
        for i in range(first, last):
            size = label_offsets[i + 1] - label_offsets[i]
            uniforms = np.random.default_rng([seed, i]).random(max(n * size, 1))
            with nogil:
                potentials.score(i, &w[0], scale, &scratch.theta[0])
                projection.sample(i, &scratch.theta[0], n, &uniforms[0], &out[0], &scratch.work[0])
            labels[:, label_offsets[i]:label_offsets[i + 1]] = (
                np.asarray(out)[:n * size].reshape(n, size))

    work_bytes = projection.work_bytes
    over_examples(piece, offsets, n_jobs, lambda: Scratch(potentials, work_bytes))
    return labels[:, :total]


def node_rows(LinearPotentials potentials, operator, const double[::1] w, offsets, masks,
              double scale=1.0, n_jobs=1, Py_ssize_t state_rows=0):
    """Node rows of what an operator gives: max-marginals of an oracle, marginals of a projection.

    Parameters
    ----------
    state_rows : int, optional
        The projection's states begin with one row of so many probabilities per node, which are
        wanted in place of the marginals of the node block.

    Returns
    -------
    rows : ndarray of shape (n_nodes, states)
        Where a row of the node block has several axes, all of it, flat, with its padding.
    values : ndarray of shape (n,)
        Value of each projection (log-partition); zeros for an oracle.
    """
    cdef Masks mask = Masks(potentials.layout, masks)
    cdef Oracle oracle = operator if isinstance(operator, Oracle) else None
    cdef Projection projection = None if oracle is not None else operator
    cdef Py_ssize_t states = potentials.node_size, stride = potentials.node_size
    cdef Py_ssize_t largest = potentials.max_theta
    if len(potentials.layout.node.shape) == 1:
        states = potentials.layout.node.shape[0]
    if state_rows:
        states, stride = state_rows, padded(state_rows)
        largest = max([projection.state_size(i) for i in range(potentials.n)], default=0)
    rows = np.empty((max(int(offsets[potentials.n]), 1), states))
    values = np.zeros(potentials.n)
    cdef double[:, ::1] out = rows
    cdef double[::1] value_view = values

    def piece(Py_ssize_t first, Py_ssize_t last, Scratch scratch):
        cdef Py_ssize_t i, v, s
        cdef double[::1] mu = aligned_zeros(largest + 8)
        cdef const double* row
        cdef double bound
        with nogil:
            for i in range(first, last):
                potentials.score(i, &w[0], scale, &scratch.theta[0])
                mask.apply(potentials, i, &scratch.theta[0])
                if oracle is not None:
                    oracle.max_marginals(i, &scratch.theta[0], &mu[0], &scratch.work[0])
                    row = &mu[0]
                elif state_rows:
                    projection.project_state(i, &scratch.theta[0], &mu[0], &value_view[i], &bound,
                                             &scratch.work[0])
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
