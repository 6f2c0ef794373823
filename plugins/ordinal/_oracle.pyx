"""Ordered classes on one direction: oracle, parts and losses of the threshold model.

Class k scores ``k u - (b_1 + ... + b_k)`` for the direction's score u: its parts are k for the
direction and -1 for each threshold up to b_k.  Oracles look at the K scores that this makes.
"""

cimport cython
from libc.string cimport memset
from structsolve.operators cimport Cone, Loss, Oracle, Parts

import numpy as np

from structsolve.potentials.weight_layout import Block, Layout
from structsolve.utils.arrays import padded
from structsolve.plugins.multiclass._oracle import MulticlassOracle


cdef void class_scores(const Steps* steps, const double* theta, double* scores) noexcept nogil:
    cdef Py_ssize_t k
    scores[0] = 0
    for k in range(1, steps.K):
        scores[k] = scores[k - 1] + (theta[steps.node] - theta[k - 1])


cdef void pool_classes(const Steps* steps, const double* p, double* mu) noexcept nogil:
    cdef Py_ssize_t k
    cdef double above = 0, mean = 0
    memset(mu, 0, (steps.node + 1) * sizeof(double))
    # Probabilities of at least k, from the highest down: no differences, so no cancellation.
    for k in range(steps.K - 1, 0, -1):
        above += p[k]
        mu[k - 1] = -above
        mean += above
    mu[steps.node] = mean


def flat_layout(Py_ssize_t K):
    """Return the layout in which the K scores of classes lie."""
    return Layout([Block("node", "node", (K,))], 1)


def limits_of(layout, Py_ssize_t K, Py_ssize_t n, Py_ssize_t i):
    """Return sizes of example ``i``, for ``structsolve.structure.calls``."""
    if not 0 <= i < n:
        raise ValueError(f"example {i} of {n}: expected 0 to {n - 1}")
    return layout.shared_size + layout.node_size, 1, K


@cython.final
cdef class ThresholdOracle(Oracle):
    """Best of K classes on thresholds; equal ones: the lowest.

    Parameters
    ----------
    layout : structsolve.potentials.weight_layout.Layout
        Thresholds in a shared block, one node block of shape (1,).
    K, n : int
        Classes and examples.
    """

    cdef Steps steps
    cdef Oracle classes
    cdef Py_ssize_t n, stride
    cdef object layout

    def __init__(self, layout, Py_ssize_t K, Py_ssize_t n):
        self.layout, self.n = layout, n
        self.steps.K, self.steps.node = K, layout.shared_size
        self.stride = (padded(K) + 7) // 8 * 8
        self.classes = MulticlassOracle(flat_layout(K), n)
        self.has_kbest = True
        self.has_relaxed = True
        self.has_constrained = True
        # Scores, costs, an answer of the inner oracle, and its own memory.
        self.work_bytes = 24 * self.stride + self.classes.work_bytes

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.structure.calls``."""
        return limits_of(self.layout, self.steps.K, self.n, i)

    cdef inline double* prepare(self, const double* theta, char* work) noexcept nogil:
        memset(work, 0, 24 * self.stride)
        class_scores(&self.steps, theta, <double*>work)
        return <double*>work

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    char* work) except -1 nogil:
        cdef double* scores = self.prepare(theta, work)
        return self.classes.argmax(i, scores, label, value, work + 24 * self.stride)

    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels,
                          double* values, char* work) except -1 nogil:
        cdef double* scores = self.prepare(theta, work)
        return self.classes.kbest(i, scores, k, labels, values, work + 24 * self.stride)

    cpdef Py_ssize_t kbest_bytes(self, Py_ssize_t k) except -1:
        return 24 * self.stride + self.classes.kbest_bytes(k)

    cdef int relax(self, Py_ssize_t i, const double* theta, double* mu, int* label,
                   double* value, char* work) except -1 nogil:
        # The hull of the parts is a simplex: nothing is ever fractional.
        cdef double* scores = self.prepare(theta, work)
        cdef double* p = scores + self.stride
        self.classes.argmax(i, scores, label, value, work + 24 * self.stride)
        p[label[0]] = 1
        pool_classes(&self.steps, p, mu)
        return 1

    cdef int argmax_constrained(self, Py_ssize_t i, const double* theta, const double* cost,
                                const Cone* cone, double* mu, int* label, double* value,
                                char* work) except -1 nogil:
        cdef double* scores = self.prepare(theta, work)
        class_scores(&self.steps, cost, scores + self.stride)
        return self.classes.argmax_constrained(i, scores, scores + self.stride, cone,
                                               scores + 2 * self.stride, label, value,
                                               work + 24 * self.stride)


@cython.final
cdef class ThresholdParts(Parts):
    """k for the direction, -1 for every threshold that class k is above."""

    cdef Steps steps
    cdef Py_ssize_t n
    cdef object layout

    def __init__(self, layout, Py_ssize_t K, Py_ssize_t n):
        self.layout, self.n = layout, n
        self.steps.K, self.steps.node = K, layout.shared_size
        self.max_entries = K

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.structure.calls``."""
        return limits_of(self.layout, self.steps.K, self.n, i)

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        cdef int lowest = 0
        return self.difference(i, label, &lowest, index, value)

    cdef Py_ssize_t difference(self, Py_ssize_t i, const int* truth, const int* label, int* index,
                               double* value) except -1 nogil:
        cdef int k, sign = 1 if truth[0] > label[0] else -1, n = 0
        cdef int low = min(truth[0], label[0]), high = max(truth[0], label[0])
        if low == high:
            return 0
        for k in range(low, high):
            index[n], value[n] = k, -sign
            n += 1
        index[n], value[n] = <int>self.steps.node, truth[0] - label[0]
        return n + 1


@cython.final
cdef class ThresholdLoss(Loss):
    """Any cost of one class for another, as costs of thresholds.

    What a class costs more than the one below it is the (negative) cost of the threshold between.

    Parameters
    ----------
    layout : structsolve.potentials.weight_layout.Layout
    labels : ndarray of int32
    cost : array of shape (rows, K), rows >= K
        ``cost[a, b]``: loss of predicting b where a is true.
    zero_one : bool, default=False
        It is 1 for every label but the truth.
    """

    cdef const int* labels
    cdef const double* cost
    cdef const double* rises[2]     # what a class costs more, by truth; transposed
    cdef const double* lowest[2]    # what class 0 costs
    cdef Py_ssize_t n, K
    cdef object layout, owners

    def __init__(self, layout, labels, cost, bint zero_one=False):
        cdef const int[::1] label_view = labels
        cdef const double[:, ::1] cost_view = np.ascontiguousarray(cost, dtype=np.float64)
        cdef const double[::1] row
        cdef int side
        self.K, self.n, self.layout = cost_view.shape[1], label_view.shape[0], layout
        self.labels = &label_view[0] if self.n else NULL
        self.cost = &cost_view[0, 0]
        self.owners = [labels, cost_view]
        square = np.asarray(cost_view)
        for side, matrix in enumerate((square, square[:self.K].T)):
            # One spare entry, so that the arrays of a single class have an address.
            row = np.append(np.diff(matrix, axis=1).ravel(), 0.0)
            self.rises[side] = &row[0]
            self.owners.append(row)
            row = np.ascontiguousarray(matrix[:, 0])
            self.lowest[side] = &row[0]
            self.owners.append(row)
        self.decomposes = True
        self.has_costs = True
        self.zero_one = zero_one

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.structure.calls``."""
        return limits_of(self.layout, self.K, self.n, i)

    cdef double value(self, Py_ssize_t i, const int* label) except? -1 nogil:
        return self.cost[self.labels[i] * self.K + label[0]]

    cdef double augment(self, Py_ssize_t i, double scale, double* theta) except? -1 nogil:
        return self.add(self.labels[i], False, scale, theta)

    cdef double add(self, Py_ssize_t t, bint transposed, double scale, double* theta) noexcept nogil:
        # theta <- theta + scale * costs of a prediction at truth t; returns the constant.
        cdef const double* rise = self.rises[transposed] + t * (self.K - 1)
        cdef Py_ssize_t j
        for j in range(self.K - 1):
            theta[j] -= scale * rise[j]
        return scale * self.lowest[transposed][t]

    cdef double costs(self, Py_ssize_t i, const double* nu, bint transposed, double scale,
                      double* theta) except? -1 nogil:
        # nu holds -P(class >= k): differences are the probabilities of classes.
        cdef Py_ssize_t t
        cdef double below = 1, above, const = 0
        for t in range(self.K):
            above = -nu[t] if t < self.K - 1 else 0.0
            const += self.add(t, transposed, scale * (below - above), theta)
            below = above
        return const
