# build: glue
"""Losses of assignments: sums over rows of a cost of the column taken and the true column."""

import numpy as np

from libc.stdint cimport int64_t
from structsolve.operators cimport Loss
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.permutation._shape cimport PairShape, no_such_column, pair_shape

cdef enum Kind:
    HAMMING
    FOOTRULE
    TABLE


cdef class AssignmentLoss(Loss):
    """``sum_r cost[y_ir, y_r]``, or its mean over the rows.

    Parameters
    ----------
    cost : {"hamming", "footrule"} or array of shape (columns, columns)
        Hamming counts wrong rows, the footrule sums ``|y_r - y_ir|``.  Entry [a, b] of an array is
        the cost of column b where a is true, non-negative and zero on the diagonal.
    normalised : bool
        Divide by the number of rows.
    layout : PartLayout
        Layout of rankings or matchings.
    """

    cdef const double* cost
    cdef Py_ssize_t width
    cdef Kind kind
    cdef PairShape shape
    cdef object owners

    def __init__(self, cost, bint normalised, PartLayout layout not None):
        cdef const double[:, ::1] table
        cdef PairShape shape = pair_shape(layout)
        super().__init__(layout)
        self.shape, self.n_states = shape, shape.max_cols
        if isinstance(cost, str):
            self.kind = FOOTRULE if cost == "footrule" else HAMMING
        else:
            table = np.ascontiguousarray(cost, dtype=np.float64)
            if table.shape[0] != table.shape[1] or table.shape[0] < shape.max_cols:
                raise ValueError(
                    f"cost has shape ({table.shape[0]}, {table.shape[1]}), expected a square of "
                    f"{shape.max_cols}"
                )
            self.kind, self.cost, self.width = TABLE, &table[0, 0], table.shape[1]
            self.owners = table
        self.averaged = normalised
        self.decomposes = True
        self.has_costs = True

    def check_truths(self, const int[::1] labels not None):
        """Refuse true columns that do not exist in their examples.

        Parameters
        ----------
        labels : ndarray of int32
            One column per row, of all examples.

        Raises
        ------
        ValueError
            The message names the example and the row.
        """
        cdef const int64_t* first = self.shape.labels
        cdef Py_ssize_t i, j
        if labels.shape[0] != first[self.shape.n]:
            raise ValueError(f"found {labels.shape[0]} labels, expected {first[self.shape.n]}")
        for i in range(self.shape.n):
            for j in range(first[i], first[i + 1]):
                if not 0 <= labels[j] < self.shape.n_cols(i):
                    raise ValueError(
                        f"example {i}, row {j - first[i]}: the true column is {labels[j]}, "
                        f"expected 0 to {self.shape.n_cols(i) - 1}"
                    )

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        cdef Py_ssize_t r, rows = self.shape.n_rows(i)
        cdef double total = 0
        for r in range(rows):
            if self.kind == HAMMING:
                total += truth[r] != label[r]
            elif self.kind == FOOTRULE:
                total += truth[r] - label[r] if truth[r] > label[r] else label[r] - truth[r]
            else:
                total += self.cost[truth[r] * self.width + label[r]]
        return total / rows if self.averaged else total

    cdef double augment(self, Py_ssize_t i, const int* truth, double scale,
                        double* theta) except? -1 nogil:
        cdef Py_ssize_t r, c, rows = self.shape.n_rows(i), cols = self.shape.n_cols(i)
        cdef Py_ssize_t stride = self.shape.stride(i)
        cdef const double* cost
        if self.averaged:
            scale /= rows
        for r in range(rows):
            if truth[r] >= cols:        # examples may have fewer than n_states
                no_such_column(i, r, truth[r], cols)
            if self.kind == HAMMING:
                # To read the cost by the true column takes one operation per row.
                theta[truth[r]] -= scale
            elif self.kind == FOOTRULE:
                for c in range(cols):
                    theta[c] += scale * (truth[r] - c if truth[r] > c else c - truth[r])
            else:
                cost = self.cost + truth[r] * self.width
                for c in range(cols):
                    theta[c] += scale * cost[c]
            theta += stride
        return scale * rows if self.kind == HAMMING else 0

    cdef double costs(self, Py_ssize_t i, const double* nu, bint transposed, double scale,
                      double* theta) except? -1 nogil:
        cdef Py_ssize_t r, c, k, rows = self.shape.n_rows(i), cols = self.shape.n_cols(i)
        cdef Py_ssize_t stride = self.shape.stride(i)
        cdef double mass, moment, total
        if self.averaged:
            scale /= rows
        for r in range(rows):
            if self.kind == HAMMING:
                for c in range(cols):
                    theta[c] -= scale * nu[c]
            elif self.kind == FOOTRULE:
                # sum_k |c - k| nu_k from running sums: a step to the right adds the mass up to c
                # and subtracts the mass beyond it.
                total = 0
                moment = 0
                for k in range(cols):
                    total += nu[k]
                    moment += k * nu[k]
                mass = 0
                for c in range(cols):
                    theta[c] += scale * moment
                    mass += nu[c]
                    moment += 2 * mass - total
            elif transposed:
                for c in range(cols):
                    total = 0
                    for k in range(cols):
                        total += self.cost[c * self.width + k] * nu[k]
                    theta[c] += scale * total
            else:
                for k in range(cols):
                    if nu[k] != 0:
                        for c in range(cols):
                            theta[c] += scale * nu[k] * self.cost[k * self.width + c]
            theta += stride
            nu += stride
        return scale * rows if self.kind == HAMMING else 0
