# build: glue
"""Cuts of single examples in the space of w, for the n-slack cutting plane."""

import numpy as np

from ..potentials.linear cimport LinearPotentials
from ..surrogates.base cimport Cut, Surrogate
from ._loop cimport first_label
from .passes cimport Scratch

from ..utils.arrays import aligned_zeros
from ..utils.parallel import over_examples


cdef class RowScratch(Scratch):
    """Memory of one thread, with a dense and a sparse row of the size of w."""

    cdef double[::1] dense, entry
    cdef int[::1] column

    def __init__(self, LinearPotentials potentials not None, Surrogate surrogate not None):
        super().__init__(potentials, surrogate.work_bytes, surrogate.max_entries)
        self.dense = aligned_zeros(max(potentials.dim, 1))
        self.entry = np.zeros(max(potentials.dim, 1))
        self.column = np.zeros(max(potentials.dim, 1), dtype=np.int32)


def violated_cuts(problem, const double[::1] point not None, const double[::1] w not None,
                  const double[::1] xi not None, double threshold, n_jobs=1):
    """Take the cut of every example at one point; keep those that raise the model at its minimiser.

    Parameters
    ----------
    problem : Problem
    point : ndarray of float64 of shape (dim,)
        Weights at which cuts are taken.
    w : ndarray of float64 of shape (dim,)
        Minimiser of the current model.
    xi : ndarray of float64 of shape (n,)
        The model's value of each example at ``w``.
    threshold : float
        A cut is kept when it exceeds ``xi`` at ``w`` by more than this.
    n_jobs : int

    Returns
    -------
    bounds : ndarray of shape (n,)
        Upper bounds of every ``H_i`` at ``point``.
    rows : list of tuple
        ``(i, b, columns, values)`` of each kept cut ``H_i(v) >= b - <g, v>``, examples in order.
    calls : int
        Oracle calls spent.
    """
    cdef LinearPotentials potentials = problem.potentials
    cdef Surrogate surrogate = problem.surrogate
    cdef const int[::1] labels = problem.labels
    cdef const int* truths = first_label(potentials, surrogate, problem.labels, problem.weights, w)
    cdef const double[::1] weights = problem.weights
    if point.shape[0] != potentials.dim or xi.shape[0] != potentials.n:
        raise ValueError(
            f"point, xi: found {point.shape[0]} and {xi.shape[0]} entries, expected "
            f"{potentials.dim} and {potentials.n}"
        )
    bounds = np.empty(potentials.n)
    cdef double[::1] out = bounds

    def piece(Py_ssize_t first, Py_ssize_t last, RowScratch scratch):
        cdef Cut cut
        cdef Py_ssize_t i, j, count
        cdef long calls = 0
        cdef double slope
        kept = []
        cut.index, cut.value = &scratch.index[0], &scratch.value[0]
        with nogil:
            for i in range(first, last):
                potentials.score(i, &point[0], 1.0, &scratch.theta[0])
                surrogate.cut(i, &scratch.theta[0], truths + surrogate.layout.label_offsets[i],
                              &cut, &scratch.work[0])
                out[i] = cut.bound
                calls += cut.calls
                if weights[i] <= 0:
                    continue
                slope = cut.b - potentials.dot(i, cut.nnz, cut.index, cut.value, &w[0])
                if not slope > xi[i] + threshold:
                    continue
                potentials.add(i, cut.nnz, cut.index, cut.value, 1.0, &scratch.dense[0])
                count = 0
                for j in range(potentials.dim):
                    if scratch.dense[j] != 0:
                        scratch.column[count] = <int>j
                        scratch.entry[count] = scratch.dense[j]
                        scratch.dense[j] = 0
                        count += 1
                with gil:
                    kept.append((i, cut.b, np.array(scratch.column[:count]),
                                 np.array(scratch.entry[:count])))
        return kept, calls

    answers = over_examples(piece, problem.examples.offsets, n_jobs,
                            lambda: RowScratch(potentials, surrogate))
    return bounds, [row for kept, _ in answers for row in kept], sum(calls for _, calls in answers)
