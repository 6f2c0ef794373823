"""The game behind the max-min margin: G, its slope, and the best step along a segment."""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.string cimport memset
from ..utils.alignment cimport align
from ..operators cimport Loss, Oracle, Parts
from ..part_layout cimport PartLayout
from .rows cimport NodeRows

from ..utils.arrays import aligned_zeros, check_finite, check_numbers

# The allowed gap of an answer, as a share of its distance from the solver's current mu.
cdef double SHARE = 0.2
# Maximum number of evaluations of G per line search.
cdef int MOST_EVALUATIONS = 16


cdef class MaxMinGame(Projection):
    """Base of the searches for a saddle point: ``G(mu) = min_nu nu' A mu`` with mu and nu in M.

    Parameters
    ----------
    layout : PartLayout
    oracle : Oracle
        Its bounds certify answers.
    loss : Loss
        Must have ``costs``.
    parts : Parts
    labels : ndarray of int32
        True labels, concatenated: accuracy is relative to the surrogate's value.
    rows : NodeRows, or None
        Projection of nu over the node rows alone, if the loss depends only on them and every node
        may take any state independently.
    max_iter : int, default=10
    tol : float, default=1e-4
    warm_start : bool, default=True
        Start every answer from the example's last one.
    vectors : int
        Number of vectors like theta that one answer needs.
    more_bytes : int
        Further bytes that one answer needs, besides those of ``rows`` and the oracle.
    """

    def __cinit__(self, *args, **kwargs):
        self.exact = False

    def __init__(self, PartLayout layout not None, Oracle oracle not None, Loss loss not None,
                 Parts parts not None, const int[::1] labels not None, NodeRows rows,
                 int max_iter, double tol, bint warm_start, Py_ssize_t vectors,
                 Py_ssize_t more_bytes):
        cdef Py_ssize_t i
        super().__init__(layout)
        if max_iter < 1:
            raise ValueError(f"max_iter is {max_iter}, expected at least 1")
        if not 0 <= tol < 1:
            raise ValueError(f"tol is {tol}, expected a number from 0 to 1")
        if not loss.has_costs:
            raise ValueError(f"{type(loss).__name__} has no costs()")
        if labels.shape[0] != layout.label_offsets[layout.n]:
            raise ValueError(
                f"labels has {labels.shape[0]} entries, expected {layout.label_offsets[layout.n]}"
            )
        check_numbers(labels, oracle.n_states or 2**31 - 1, "labels")
        for operator in (oracle, loss, parts, *([] if rows is None else [rows])):
            other = operator.layout
            if other is None or (other.n, other.max_theta, other.max_label) != (
                    layout.n, layout.max_theta, layout.max_label):
                raise ValueError(f"{type(operator).__name__} is bound to other examples")
        self.oracle, self.loss, self.parts, self.rows = oracle, loss, parts, rows
        self.n_states = oracle.n_states
        self.labels_owner = labels
        self.labels = &labels[0] if labels.shape[0] else NULL
        self.max_iter, self.tol, self.warm_start = max_iter, tol, warm_start
        # For every example: number of answers, number of iterations.
        self.spent = np.zeros((layout.n, 2), np.int64)
        self.spent_view = self.spent.reshape(-1)
        self.vectors = max(vectors, 3)
        self.vector_bytes = (8 * layout.max_theta + 127) // 64 * 64
        self.label_bytes = (4 * layout.max_label + 127) // 64 * 64
        self.entries = max(parts.max_entries, 1)
        scratch = max(oracle.work_bytes, 0 if rows is None else rows.work_bytes)
        self.scratch_bytes = (scratch + 127) // 64 * 64
        self.work_bytes = (
            self.vectors * self.vector_bytes + self.label_bytes + 12 * self.entries
            + self.scratch_bytes + more_bytes + 256)
        self.has_term = True
        self.standing = np.full(layout.n + 1, np.inf)
        self.unit = np.ones(layout.n)
        cdef double[::1] memory = aligned_zeros(self.work_bytes // 8 + 16)
        for i in range(layout.n):
            self.unit[i] = self.unit_of(i, <char*>&memory[0])

    cdef double unit_of(self, Py_ssize_t i, char* work) except? -1:
        """Return 1 over the largest cost of the truth's parts: the loss may have any unit."""
        cdef Py_ssize_t size = self.layout.theta_size(i), j, k, n
        cdef double* truth = self.vector(work, 0)
        cdef double* costs = self.vector(work, 1)
        cdef double* value = self.entry_values(work)
        cdef int* index = <int*>(value + self.entries)
        cdef double most = 0
        cdef bint side
        memset(truth, 0, size * sizeof(double))
        n = self.parts.encode(i, self.labels + self.layout.label_offsets[i], index, value)
        for k in range(n):
            truth[index[k]] += value[k]
        for side in range(2):
            memset(costs, 0, size * sizeof(double))
            self.loss.costs(i, truth, side, 1.0, costs)
            for j in range(size):
                most = max(most, fabs(costs[j]))
        return 1 / most if 1e-150 < most < 1e150 else 1

    def counts(self):
        """Return the numbers of answers and of their iterations.

        Returns
        -------
        answers, iterations : int
        """
        answers, iterations = self.spent.sum(axis=0).tolist()
        return answers, iterations

    def memory_of_examples(self):
        """Return the start of each example's next answer, for checkpoints.

        Returns
        -------
        dict of str to ndarray
        """
        return {}

    def remember(self, arrays):
        """Restore the result of ``memory_of_examples``.

        Parameters
        ----------
        arrays : mapping of str to ndarray

        Raises
        ------
        ValueError
            If an array is missing, or does not fit these examples.
        """
        mine = self.memory_of_examples()
        for name, own in mine.items():
            given = arrays.get(name)
            if given is None or given.shape != own.shape or given.dtype != own.dtype:
                raise ValueError(f"the memory of answers lacks {name!r}, or does not fit")
        check_finite({name: arrays[name] for name in mine})
        for name, own in mine.items():
            own[:] = arrays[name]

    cdef double* vector(self, char* work, int number) noexcept nogil:
        return <double*>(align(work) + number * self.vector_bytes)

    cdef int* label(self, char* work) noexcept nogil:
        return <int*>(align(work) + self.vectors * self.vector_bytes)

    cdef double* entry_values(self, char* work) noexcept nogil:
        """Return memory for ``parts.encode``: values, followed by indices."""
        return <double*>(<char*>self.label(work) + self.label_bytes)

    cdef char* scratch(self, char* work) noexcept nogil:
        return align(<char*>self.label(work) + self.label_bytes + 12 * self.entries)

    cdef char* more(self, char* work) noexcept nogil:
        """Return the ``more_bytes`` of the subclass."""
        return self.scratch(work) + self.scratch_bytes

    cdef double score_of(self, Py_ssize_t i, const double* theta, const int* label,
                         char* work) except? -1 nogil:
        cdef double* value = self.entry_values(work)
        cdef int* index = <int*>(value + self.entries)
        cdef Py_ssize_t k, n
        cdef double total = 0
        n = self.parts.encode(i, label, index, value)
        for k in range(n):
            total += theta[index[k]] * value[k]
        return total

    cdef double least(self, Py_ssize_t i, double* costs, char* work) except? -1 nogil:
        """Return ``min_nu <costs, nu>``, or a lower bound if the oracle is inexact.

        The minimiser is written to label(); costs is negated during the call.
        """
        cdef Py_ssize_t j, size = self.layout.theta_size(i)
        cdef double value, bound
        if self.rows is not None:
            return self.rows.least(i, costs, self.label(work))
        for j in range(size):
            costs[j] = -costs[j]
        self.oracle.argmax(i, costs, self.label(work), &value, &bound, self.scratch(work))
        for j in range(size):
            costs[j] = -costs[j]
        return -bound

    cdef bint enough(self, Py_ssize_t i, double value, double bound, double truth) noexcept nogil:
        """Return whether an answer between value and bound is good enough."""
        return (bound - value <= self.tol * fabs(bound - truth)
                or bound - value <= SHARE * (bound - self.standing[i]))

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        cdef double* costs = self.vector(work, 0)
        cdef double constant
        memset(costs, 0, self.layout.theta_size(i) * sizeof(double))
        constant = self.loss.costs(i, state, False, 1.0, costs)
        return constant + self.least(i, costs, work)

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        cdef Py_ssize_t j, size = self.layout.theta_size(i)
        cdef double* mixed = self.vector(work, 0)
        cdef double* costs = self.vector(work, 1)
        cdef double* step = self.vector(work, 2)
        cdef double total = 0
        # A (b - a) at the prediction of least cost.
        for j in range(size):
            mixed[j] = a[j] + gamma * (b[j] - a[j])
        memset(costs, 0, size * sizeof(double))
        self.loss.costs(i, mixed, False, 1.0, costs)
        self.least(i, costs, work)
        memset(step, 0, size * sizeof(double))
        total += self.loss.costs(i, b, False, 1.0, step)
        total += self.loss.costs(i, a, False, -1.0, step)
        return total + self.score_of(i, step, self.label(work), work)

    cdef double search(self, Py_ssize_t i, const double* a, const double* b, double linear,
                       double curvature, char* work) except? -1 nogil:
        """Return argmax_gamma ``G(a + gamma (b - a)) + gamma linear - gamma^2 curvature / 2``.

        Along the segment G is the minimum of lines, one for every prediction.  Each evaluation
        gives one of them.  The next evaluation is at the best point below the two lines around the
        maximum, and the search ends when G lies on them.  A b and A a are computed once.
        """
        cdef double* here = self.vector(work, 0)
        cdef double* step = self.vector(work, 1)
        cdef double* mixed = self.vector(work, 2)
        cdef Py_ssize_t j, size = self.layout.theta_size(i)
        cdef double low = 0, high = 1, gamma = 1, best = 0, most = -INFINITY
        cdef double constant, drift, value, slope, room, unit = self.unit[i]
        # The lines of G left and right of the best step: value at 0, slope.
        cdef double left = 0, left_slope = 0, right = 0, right_slope = 0
        cdef int k
        memset(here, 0, size * sizeof(double))
        memset(step, 0, size * sizeof(double))
        constant = self.loss.costs(i, a, False, 1.0, here)
        drift = self.loss.costs(i, b, False, 1.0, step) - constant
        for j in range(size):
            step[j] -= here[j]
        for k in range(MOST_EVALUATIONS):
            for j in range(size):
                mixed[j] = here[j] + gamma * step[j]
            value = constant + gamma * drift + self.least(i, mixed, work)
            slope = drift + self.score_of(i, step, self.label(work), work)
            if value + gamma * linear - gamma * gamma * curvature / 2 > most:
                most = value + gamma * linear - gamma * gamma * curvature / 2
                best = gamma
            if k > 1 and value >= room - 1e-12 * (fabs(room) + 1 / unit):
                break       # on the known lines, so the model's best is G's
            if slope + linear - curvature * gamma >= 0:
                if gamma >= 1:
                    return 1
                low, left, left_slope = gamma, value - gamma * slope, slope
            else:
                if gamma <= 0:
                    return 0
                high, right, right_slope = gamma, value - gamma * slope, slope
            if k == 0:
                gamma = 0
                continue
            # The lines cross between low and high; the best point below both is the crossing, or
            # the maximum along one of them.
            gamma = high
            if left_slope > right_slope:
                gamma = (right - left) / (left_slope - right_slope)
            if curvature > 0 and (left_slope + linear) < gamma * curvature:
                gamma = (left_slope + linear) / curvature
            elif curvature > 0 and (right_slope + linear) > gamma * curvature:
                gamma = (right_slope + linear) / curvature
            if not low < gamma < high:
                gamma = (low + high) / 2
            if high - low < 1e-12:
                break
            room = min(left + gamma * left_slope, right + gamma * right_slope)
        return best
