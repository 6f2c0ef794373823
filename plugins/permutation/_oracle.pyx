"""Best assignments: the oracle, and many problems of one size in one call."""

import numpy as np

cimport cython
from libc.math cimport INFINITY
from structsolve.operators cimport Oracle
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.permutation._jonker_volgenant cimport (
    Assignment, assignment_bound, assignment_bytes, assignment_in, load_scores, solve_assignment,
    solve_tiny,
)
from structsolve.plugins.permutation._shape cimport PairShape, no_assignment, pair_shape

from structsolve.utils.arrays import aligned_zeros


cdef int _best_assignment(PairShape shape, Py_ssize_t i, const double* theta, int* label,
                          double* value, char* work) except -1 nogil:
    cdef Py_ssize_t rows = shape.n_rows(i), cols = shape.n_cols(i), stride = shape.stride(i), r
    cdef const unsigned char* forbidden = shape.forbidden(i)
    cdef Assignment task
    if (rows == 1 or cols <= 3) and solve_tiny(rows, cols, theta, stride, forbidden, label, value):
        return 0
    task = assignment_in(rows, cols, work)
    load_scores(&task, theta, stride, -1, forbidden)
    if not solve_assignment(&task):
        return no_assignment(i)
    value[0] = 0
    for r in range(rows):
        label[r] = task.column[r]
        value[0] += theta[r * stride + label[r]]
    return 0


@cython.final
cdef class AssignmentOracle(Oracle):
    """The assignment of rows to columns of largest total score; over all assignments.

    Scores of -inf forbid a pair.

    Parameters
    ----------
    layout : PartLayout
        Layout of rankings or matchings.
    """

    cdef PairShape shape

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.shape = pair_shape(layout)
        self.n_states = self.shape.max_cols
        self.work_bytes = assignment_bytes(self.shape.max_rows, self.shape.max_cols) + 64

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        _best_assignment(self.shape, i, theta, label, value, work)
        bound[0] = value[0]
        return 0


def solve_batch(const double[:, :, ::1] scores not None, bint maximize):
    """Solve several problems; the input is not checked.

    Parameters
    ----------
    scores : array of shape (n, rows, cols), 1 <= rows <= cols
    maximize : bool

    Returns
    -------
    columns, values, row_prices, column_prices, bounds : ndarray
        See :class:`~structsolve.plugins.permutation.Assigned`, with n as the first axis.
    failed : int
        Number of the first problem without an assignment, -1 if all have one.
    """
    cdef Py_ssize_t n = scores.shape[0], rows = scores.shape[1], cols = scores.shape[2], i, r, c
    columns, values, bounds = np.empty((n, rows), dtype=np.int64), np.empty(n), np.empty(n)
    row_prices, column_prices = np.empty((n, rows)), np.empty((n, cols))
    cdef double[::1] memory = aligned_zeros(assignment_bytes(rows, cols) // 8 + 1)
    cdef long long[:, ::1] column = columns
    cdef double[::1] value = values, bound = bounds
    cdef double[:, ::1] u = row_prices, v = column_prices
    cdef double sign = -1.0 if maximize else 1.0, total
    cdef Py_ssize_t failed = -1
    cdef Assignment task = assignment_in(rows, cols, <char*>&memory[0])
    with nogil:
        for i in range(n):
            load_scores(&task, &scores[i, 0, 0], cols, sign, NULL)
            if not solve_assignment(&task):
                failed = i
                break
            total = 0
            for r in range(rows):
                c = task.column[r]
                column[i, r] = c
                total += scores[i, r, c]
                u[i, r] = sign * (task.cost[r * task.ld + c] - task.v[c])
            value[i] = total
            for c in range(cols):
                v[i, c] = sign * task.v[c]
            bound[i] = sign * assignment_bound(&task)
    return columns, values, row_prices, column_prices, bounds, failed


def repeat_solve(const double[:, ::1] scores not None, Py_ssize_t repeat):
    """Total of the best assignment, solved ``repeat`` times without the interpreter (for timing).

    Parameters
    ----------
    scores : array of shape (rows, cols), 1 <= rows <= cols
        Minimised.
    repeat : int

    Returns
    -------
    float
        inf if no assignment is possible.

    Raises
    ------
    ValueError
        For more rows than columns.
    """
    cdef Py_ssize_t rows = scores.shape[0], cols = scores.shape[1], r
    if not 1 <= rows <= cols:
        raise ValueError(f"found {rows} rows and {cols} columns, expected 1 <= rows <= columns")
    cdef double[::1] memory = aligned_zeros(assignment_bytes(rows, cols) // 8 + 1)
    cdef Assignment task = assignment_in(rows, cols, <char*>&memory[0])
    cdef double total = -INFINITY
    cdef bint solved = True
    with nogil:
        for _ in range(repeat):
            load_scores(&task, &scores[0, 0], cols, 1, NULL)
            solved = solve_assignment(&task) and solved
            total = 0
            for r in range(rows):
                total += scores[r, task.column[r]] if solved else INFINITY
    return total
