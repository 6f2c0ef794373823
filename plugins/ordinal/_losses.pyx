# build: glue
"""Losses of the threshold model: any costs of pairs of classes, as costs of thresholds."""

cimport cython
import numpy as np

from structsolve.operators cimport Loss
from structsolve.part_layout cimport PartLayout
from structsolve.structure.node_losses cimport NodeCosts, check_states


@cython.final
cdef class ThresholdCosts:
    """Costs of classes as costs of thresholds, made once for a space.

    The cost of a class less that of the class below is minus the cost of the threshold between.

    Parameters
    ----------
    costs : NodeCosts
    """

    cdef NodeCosts costs
    cdef const double* rises[2]     # cost differences of classes, by truth; transposed
    cdef const double* lowest[2]    # cost of class 0
    cdef list owners

    def __init__(self, NodeCosts costs not None):
        cdef const double[::1] row
        cdef int side
        self.costs, self.owners = costs, []
        matrix = costs.cost_matrix
        for side, turned in enumerate((matrix, matrix[:matrix.shape[1]].T)):
            # One spare entry, so that the arrays of a single class have an address.
            row = np.append(np.diff(turned, axis=1).ravel(), 0.0)
            self.rises[side] = &row[0]
            self.owners.append(row)
            row = np.ascontiguousarray(turned[:, 0])
            self.lowest[side] = &row[0]
            self.owners.append(row)


@cython.final
cdef class ThresholdLoss(Loss):
    """Any costs of predicted classes, given the true class.

    Parameters
    ----------
    costs : ThresholdCosts
    layout : PartLayout
        Has thresholds in a shared block, one node block of shape (1,), one node per example.
    """

    cdef ThresholdCosts costs_of
    cdef const double* cost
    cdef Py_ssize_t K

    def __init__(self, ThresholdCosts costs not None, PartLayout layout not None):
        super().__init__(layout)
        self.costs_of, self.cost, self.K = costs, costs.costs.cost, costs.costs.K
        self.n_states = self.K
        self.decomposes = True
        self.has_costs = True
        self.zero_one = costs.costs.zero_one
        self.takes_unseen = len(costs.costs.cost_matrix) > self.K

    @property
    def class_costs(self):
        """Costs, an array of shape (rows, K): ``[truth, prediction]``, the same for all rows."""
        return self.costs_of.costs.cost_matrix

    def check_truths(self, labels):
        check_states(self.costs_of.costs, self.layout, labels)

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        return self.cost[truth[0] * self.K + label[0]]

    cdef double augment(self, Py_ssize_t i, const int* truth, double scale,
                        double* theta) except? -1 nogil:
        return self.add(truth[0], False, scale, theta)

    cdef double add(self, Py_ssize_t t, bint transposed, double scale,
                    double* theta) noexcept nogil:
        # theta <- theta + scale * costs of a prediction at truth t; returns the constant.
        cdef const double* rise = self.costs_of.rises[transposed] + t * (self.K - 1)
        cdef Py_ssize_t j
        for j in range(self.K - 1):
            theta[j] -= scale * rise[j]
        return scale * self.costs_of.lowest[transposed][t]

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
