"""Multithreaded passes over the examples at fixed w: bounds of the surrogate, subgradients."""

import numpy as np

from libc.stdint cimport int64_t
from ..potentials.linear cimport LinearPotentials
from ..surrogates.base cimport Cut, Surrogate
from ._loop cimport check_order, first_label

from ..utils.arrays import aligned_zeros
from ..utils.parallel import native_calls, over_examples, ranges


# Maximum number of examples that are decoded before their cuts are added up.
cdef enum:
    MOST_TOGETHER = 64


cdef class Scratch:
    """Memory of one thread."""

    def __init__(self, LinearPotentials potentials not None, Py_ssize_t work_bytes,
                 Py_ssize_t max_entries=1):
        self.theta = aligned_zeros(potentials.max_theta + 8)
        self.value = np.zeros(max(max_entries, 1))
        self.index = np.zeros(max(max_entries, 1), dtype=np.int32)
        self.work = aligned_zeros(work_bytes // 8 + 16).view(np.int8)


def surrogate_bounds(problem, const double[::1] w not None, n_jobs=1, values=None,
                     Py_ssize_t every=1):
    """Return upper bounds of every ``H_i`` at w.

    Parameters
    ----------
    problem : Problem
    w : ndarray of float64 of shape (dim,)
    n_jobs : int or None, default=1
    values : ndarray of float64 of shape (n,), optional
        Output: the value of each cut at w, which is less than the bound if the oracle is inexact.
    every : int, default=1
        Only every so manyth example is asked; the bounds of the others are 0.

    Returns
    -------
    bounds : ndarray of float64 of shape (n,)
    calls : int
        Oracle calls spent.
    """
    cdef LinearPotentials potentials = problem.potentials
    cdef Surrogate surrogate = problem.surrogate
    cdef const int[::1] labels = problem.labels
    cdef const int* truths = first_label(potentials, surrogate, problem.labels, problem.weights, w)
    bounds = np.zeros(problem.n)
    cdef double[::1] out = bounds, own = values
    cdef bint wanted = values is not None

    def piece(Py_ssize_t first, Py_ssize_t last, Scratch scratch):
        cdef Cut cut
        cdef Py_ssize_t i, j
        cdef long calls = 0
        cut.index, cut.value = &scratch.index[0], &scratch.value[0]
        with nogil:
            for i in range(first, last):
                if i % every:
                    continue
                potentials.score(i, &w[0], 1.0, &scratch.theta[0])
                surrogate.cut(i, &scratch.theta[0], truths + surrogate.layout.label_offsets[i],
                              &cut, &scratch.work[0])
                out[i] = cut.bound
                calls += cut.calls
                if wanted:
                    own[i] = cut.b
                    for j in range(cut.nnz):
                        own[i] -= scratch.theta[cut.index[j]] * cut.value[j]
        return calls

    counts = over_examples(piece, problem.examples.offsets, n_jobs,
                           lambda: Scratch(potentials, surrogate.work_bytes,
                                           surrogate.max_entries))
    return bounds, sum(counts)


def summands(problem):
    """Return the number of partial sums of a subgradient, each as long as g.

    Adding them up takes at most an eighth of the work of scoring.  The number does not depend on
    the number of threads, so that the sums do not either.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    int
        1 to 16.
    """
    cdef LinearPotentials potentials = problem.potentials
    return int(min(max(potentials.work // (8 * max(potentials.dim, 1)), 1), 16, max(problem.n, 1)))


def partial_sums(problem):
    """Return memory for the sums of :func:`subgradient`.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    ndarray of float64 of shape (summands(problem), dim)
    """
    n, dim = summands(problem), problem.potentials.dim
    return aligned_zeros(n * dim).reshape(n, dim)


def subgradient(problem, const double[::1] w not None, n_jobs=1, sums=None, each=None):
    """Return one cut of the mean surrogate at w: ``R(v) >= b - <g, v>`` for every v.

    Threads decode and add up ranges of examples.  The ranges do not depend on the number of
    threads, and their sums are added in order, so g is bit-identical for every ``n_jobs``.

    Parameters
    ----------
    problem : Problem
    w : ndarray of float64 of shape (dim,)
    n_jobs : int or None, default=1
    sums : ndarray of float64 of shape (summands(problem), dim), optional
        Work memory for repeated calls: new memory would have to be mapped in every time, while all
        threads wait.
    each : ndarray of float64 of shape (n,), optional
        Output: the ``b_i``.

    Returns
    -------
    g : ndarray of float64 of shape (dim,)
        ``sum_i u_i Phi_i' p_i``.
    b : float
        ``sum_i u_i b_i``.
    bounds : ndarray of float64 of shape (n,)
        Upper bounds of every ``H_i`` at w.
    calls : int
    """
    if sums is None:
        sums = partial_sums(problem)
    parts = ranges(problem.examples.offsets, summands(problem), taper=True)
    g, b, bounds, calls = range_cuts(problem, w, parts, sums, n_jobs, each)
    return g.sum(axis=0), float(b.sum()), bounds, calls


def range_cuts(problem, const double[::1] w not None, parts, sums, n_jobs=1, each=None):
    """Return one cut at w for each range of examples; their sum is a cut of the mean surrogate.

    Parameters
    ----------
    problem : Problem
    w : ndarray of float64 of shape (dim,)
    parts : list of tuple of (int, int)
        Start and end of each range; the ranges cover all examples in order.
    sums : ndarray of float64 of shape (at least len(parts), dim)
        Memory for the cuts.
    n_jobs : int or None, default=1
    each : ndarray of float64 of shape (n,), optional
        Output: the ``b_i``.

    Returns
    -------
    g : ndarray of float64 of shape (len(parts), dim)
        ``sum_i u_i Phi_i' p_i`` over the examples of each range; a view of ``sums``.
    b : ndarray of float64 of shape (len(parts),)
        ``sum_i u_i b_i``.
    bounds : ndarray of float64 of shape (n,)
        Upper bounds of every ``H_i`` at w.
    calls : int
    """
    cdef LinearPotentials potentials = problem.potentials
    cdef Surrogate surrogate = problem.surrogate
    cdef const int[::1] labels = problem.labels
    cdef const int* truths = first_label(potentials, surrogate, problem.labels, problem.weights, w)
    cdef const double[::1] weights = problem.weights
    offsets = problem.examples.offsets
    bounds, b_all = np.empty(problem.n), np.empty(problem.n) if each is None else each
    cdef double[::1] bound_view = bounds, b_view = b_all
    cdef double[:, ::1] sum_view = sums
    # w and g compete for the nearest cache: decode a few examples, then add them up.
    cdef Py_ssize_t width = max(surrogate.max_entries, 1)
    cdef Py_ssize_t together = max(1, min(MOST_TOGETHER, (1 << 20) // (12 * width)))

    def add(Py_ssize_t first, Py_ssize_t last, double[::1] g, Scratch scratch):
        cdef Cut cut
        cdef Py_ssize_t i, k, begin, end
        cdef Py_ssize_t[MOST_TOGETHER] nnz
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
                    surrogate.cut(i, &scratch.theta[0],
                                  truths + surrogate.layout.label_offsets[i], &cut,
                                  &scratch.work[0])
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
    add = None  # else the closure holds itself, and w and the sums until garbage is collected
    b = np.add.reduceat(np.asarray(weights) * b_all, starts[:len(parts)])
    return sums[:len(parts)], b, bounds, calls


def example_subgradients(problem, const double[::1] w not None, numbers, measure):
    """Return ``measure(Phi_i' p_i)`` of the cut at w of each of some examples.

    Parameters
    ----------
    problem : Problem
    w : ndarray of float64 of shape (dim,)
    numbers : ndarray of int64
        Numbers of the examples.
    measure : callable
        Called with an ndarray of float64 of shape (dim,), which it must leave as it is.

    Returns
    -------
    list
    """
    cdef LinearPotentials potentials = problem.potentials
    cdef Surrogate surrogate = problem.surrogate
    cdef const int* truths = first_label(potentials, surrogate, problem.labels, problem.weights, w)
    cdef const int64_t[::1] order = numbers
    check_order(order, potentials.n)
    cdef Scratch scratch = Scratch(potentials, surrogate.work_bytes, surrogate.max_entries)
    cdef double[::1] g = aligned_zeros(potentials.dim + 1)
    cdef Cut cut
    cdef Py_ssize_t k, i
    measures, dense = [], np.asarray(g)[:potentials.dim]
    cut.index, cut.value = &scratch.index[0], &scratch.value[0]
    for k in range(order.shape[0]):
        i = order[k]
        with nogil:
            potentials.score(i, &w[0], 1.0, &scratch.theta[0])
            surrogate.cut(i, &scratch.theta[0], truths + surrogate.layout.label_offsets[i], &cut,
                          &scratch.work[0])
            potentials.add(i, cut.nnz, cut.index, cut.value, 1.0, &g[0])
        measures.append(measure(dense))
        with nogil:
            potentials.clear(i, cut.nnz, cut.index, &g[0])
    return measures
