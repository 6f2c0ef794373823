"""A loss over nodes with costs per node, not per true state: true labels may be sets."""

import numpy as np

from libc.stdint cimport int64_t
from structsolve.operators cimport Loss
from structsolve.part_layout cimport PartLayout

from structsolve.utils.arrays import check_numbers


cdef class RowLoss(Loss):
    """``sum_v costs[rows[v], y_v] + constants[i]``, or its mean over the nodes of an example.

    The methods ignore their true label: a node's row determines its costs.

    Parameters
    ----------
    costs : array of shape (n_rows, K)
        The cost of each state.
    rows : array of int32 of shape (number of labels,)
        The row of each node of all examples, concatenated.
    constants : array of shape (n,), optional
        Added per example; 0 by default.
    normalised : bool
        Divide the sum of costs by the number of nodes of the example.
    averaged : bool
        It is a mean or 0/1 for the whole example, not a sum over its parts.
    layout : PartLayout
        Has a node block of shape (K,); labels have one state per node.

    Raises
    ------
    ValueError
        If sizes differ, or a row does not exist.
    """

    cdef const double[:, ::1] cost_view
    cdef const int[::1] row_view
    cdef const double[::1] constant_view
    cdef const int64_t* offsets
    cdef Py_ssize_t shared_size, stride
    cdef bint normalised

    def __init__(self, costs, rows, constants, bint normalised, bint averaged,
                 PartLayout layout not None):
        super().__init__(layout)
        self.cost_view = np.ascontiguousarray(costs, dtype=np.float64)
        self.row_view = np.ascontiguousarray(rows, dtype=np.int32)
        self.constant_view = (
            np.zeros(max(layout.n, 1)) if constants is None
            else np.ascontiguousarray(constants, dtype=np.float64)
        )
        self.offsets, self.n_states = layout.label_offsets, self.cost_view.shape[1]
        self.shared_size, self.stride = layout.shared_size, layout.node_size
        size = layout.label_offsets[layout.n]
        if (self.row_view.shape[0] != size or self.constant_view.shape[0] < layout.n
                or self.n_states > self.stride):
            raise ValueError(
                f"RowLoss: found {self.row_view.shape[0]} rows of {self.n_states} costs and "
                f"{self.constant_view.shape[0]} constants, expected {size} of at most "
                f"{self.stride}, and {layout.n}"
            )
        check_numbers(np.asarray(self.row_view), self.cost_view.shape[0], "rows")
        self.normalised, self.averaged, self.decomposes = normalised, averaged, True

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        cdef Py_ssize_t v, first = self.offsets[i], n = self.offsets[i + 1] - self.offsets[i]
        cdef double total = 0
        for v in range(n):
            total += self.cost_view[self.row_view[first + v], label[v]]
        return (total / n if self.normalised else total) + self.constant_view[i]

    cdef double augment(self, Py_ssize_t i, const int* truth, double scale,
                        double* theta) except? -1 nogil:
        cdef Py_ssize_t v, s, first = self.offsets[i], n = self.offsets[i + 1] - self.offsets[i]
        cdef double constant = scale * self.constant_view[i]
        cdef double* row = theta + self.shared_size
        cdef const double* cost
        if self.normalised:
            scale /= n
        for v in range(n):
            cost = &self.cost_view[self.row_view[first + v], 0]
            for s in range(self.n_states):
                row[s] += scale * cost[s]
            row += self.stride
        return constant
