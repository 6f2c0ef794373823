# build: glue
"""Many assignment problems of one size in one call, for Python."""

import numpy as np

from libc.math cimport INFINITY

from structsolve.plugins.permutation._assignment cimport (
    assignment_bound, assignment_bytes, assignment_in, load_scores, solve_assignment,
)


def solve_batch(const double[:, :, ::1] scores not None, bint maximize, bint prices):
    """Solve one problem after the other; what they are is not checked.

    Parameters
    ----------
    scores : array of shape (n, rows, cols), rows <= cols
    maximize : bool
    prices : bool
        Compute prices of rows, of columns, and bounds too.

    Returns
    -------
    columns, values, row_prices, column_prices, bounds : ndarray
        Or None for the last three.
    failed : int
        Number of the first problem that has no assignment, -1 where all have one.
    """
    cdef Py_ssize_t n = scores.shape[0], rows = scores.shape[1], cols = scores.shape[2], i, r, c
    columns = np.empty((n, rows), dtype=np.int64)
    values = np.empty(n)
    # One array of bytes, aligned by hand: its pointers must not move.
    cdef Py_ssize_t size = assignment_bytes(rows, cols)
    cdef double[::1] memory = np.empty(size // 8 + 9)
    cdef long long[:, ::1] found = columns
    cdef double[::1] value = values, bound
    cdef double[:, ::1] u, v
    cdef char* work = <char*>&memory[0]
    cdef double sign = -1.0 if maximize else 1.0
    cdef double total
    cdef Py_ssize_t failed = -1
    work += -<size_t>work % 64
    task = assignment_in(rows, cols, work)
    row_prices = column_prices = bounds = None
    if prices:
        row_prices, column_prices, bounds = np.empty((n, rows)), np.empty((n, cols)), np.empty(n)
        u, v, bound = row_prices, column_prices, bounds
    with nogil:
        for i in range(n):
            load_scores(&task, &scores[i, 0, 0], cols, sign, NULL)
            if not solve_assignment(&task):
                failed = i
                break
            total = 0
            for r in range(rows):
                c = task.column[r]
                found[i, r] = c
                total += scores[i, r, c]
                if prices:
                    u[i, r] = sign * (task.cost[r * task.ld + c] - task.v[c])
            value[i] = total
            if prices:
                for c in range(cols):
                    v[i, c] = sign * task.v[c]
                bound[i] = sign * assignment_bound(&task)
    return columns, values, row_prices, column_prices, bounds, failed


def repeat_solve(const double[:, ::1] scores not None, Py_ssize_t repeat):
    """Total of the best assignment, found ``repeat`` times without the interpreter (for timing)."""
    cdef Py_ssize_t rows = scores.shape[0], cols = scores.shape[1], r, k
    cdef double[::1] memory = np.empty(assignment_bytes(rows, cols) // 8 + 9)
    cdef char* work = <char*>&memory[0]
    cdef double total = -INFINITY
    cdef bint solved = True
    if not 1 <= rows <= cols:
        raise ValueError(f"found {rows} rows and {cols} columns, expected 1 <= rows <= columns")
    work += -<size_t>work % 64
    with nogil:
        for k in range(repeat):
            task = assignment_in(rows, cols, work)
            load_scores(&task, &scores[0, 0], cols, 1, NULL)
            solved = solve_assignment(&task) and solved
            total = 0
            for r in range(rows):
                total += scores[r, task.column[r]] if solved else INFINITY
    return total
