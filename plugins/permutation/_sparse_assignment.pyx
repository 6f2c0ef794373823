"""Least-cost assignments where few pairs of rows and columns are possible: shortest augmenting paths.

If there are as many rows as columns, each column begins at its least cost (column reduction).
Rows then take their cheapest column at prices that fall until another row would take it (augmenting
row reduction; Jonker, Volgenant 1987).  Each row left searches the nearest free column over the
stored pairs, with a heap of distances, and prices follow the distances.
"""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int64_t

from structsolve.utils.arrays import check_numbers


# Bids per row in one of two rounds of row reduction: a path costs more than many bids.
cdef enum: BIDS = 10


# A heap of columns by distance; a column may be on it more than once.
cdef struct Entry:
    double distance
    int column


def solve_sparse(const int64_t[::1] first not None, const int[::1] columns not None,
                 const double[::1] costs not None, Py_ssize_t n_cols):
    """Assign every row a column of its own among its stored pairs, at least total cost.

    Parameters
    ----------
    first : ndarray of int64 of shape (rows + 1,)
        CSR, no more rows than columns; a row's columns are distinct, costs finite.
    columns : ndarray of int32
    costs : ndarray of float64
    n_cols : int

    Returns
    -------
    column : ndarray of int32 of shape (rows,)
        -1 where no assignment is possible.
    u, v : ndarray
        Prices of rows and columns: u + v <= cost, with equality for taken pairs.  If there are more
        columns than rows, v <= 0, and 0 for columns without a row.
    failed : int
        A row from which no free column can be reached; -1: none.
    """
    cdef Py_ssize_t n = first.shape[0] - 1, i, k, n_free = 0
    check_numbers(np.asarray(columns), n_cols, "columns")
    if n < 0 or first[0] != 0 or first[n] != columns.shape[0] or (
            np.diff(first) < 0).any() or columns.shape[0] != costs.shape[0] or n > n_cols:
        raise ValueError("found CSR arrays that do not match, or more rows than columns")
    column, row = np.full(n + 1, -1, np.int32), np.full(n_cols + 1, -1, np.int32)
    u, v = np.zeros(n + 1), np.zeros(n_cols + 1)
    cdef int[::1] col_of = column, row_of = row
    cdef double[::1] u_view = u, v_view = v
    cdef int[::1] free = np.zeros(n + 1, np.int32)
    cdef Search search
    cdef int failed = -1
    scratch = [np.full(n_cols + 1, np.inf), np.zeros(n_cols + 1, np.int32),
               np.zeros(n_cols + 1, np.int32), np.zeros(columns.shape[0] + 2, ENTRY)]
    cdef double[::1] distance = scratch[0]
    cdef int[::1] origin = scratch[1], passed = scratch[2]
    cdef Entry[::1] heap = scratch[3]
    search.first, search.columns, search.costs = &first[0], NULL, NULL
    if columns.shape[0]:
        search.columns, search.costs = &columns[0], &costs[0]
    search.col_of, search.row_of, search.v = &col_of[0], &row_of[0], &v_view[0]
    search.distance, search.origin, search.passed = &distance[0], &origin[0], &passed[0]
    search.heap = &heap[0]
    with nogil:
        if n == n_cols:
            _begin_at_least_costs(&search, n)
        for i in range(n):
            if col_of[i] < 0:
                free[n_free] = <int>i
                n_free += 1
        for k in range(2):
            n_free = _reduce(&search, n_free, &free[0], n)
        for k in range(n_free):
            if not _augment(&search, free[k]):
                failed = free[k]
                break
        if failed < 0:
            for i in range(n):
                for k in range(first[i], first[i + 1]):
                    if columns[k] == col_of[i]:
                        u_view[i] = costs[k] - v_view[columns[k]]
    return column[:n], u[:n], v[:n_cols], failed


ENTRY = np.dtype([("distance", np.float64), ("column", np.int32)], align=True)


cdef struct Search:
    const int64_t* first
    const int* columns
    const double* costs
    int* col_of
    int* row_of
    double* v
    double* distance    # inf between searches
    int* origin         # row before each column on its path
    int* passed         # columns with final distances
    Entry* heap


cdef void _begin_at_least_costs(Search* s, Py_ssize_t n) noexcept nogil:
    """Price each column at its least cost, and give it to that row if the row has none yet.

    Every column is taken in the end, so that prices may begin anywhere.
    """
    cdef Py_ssize_t c
    cdef int64_t j
    cdef int i
    for c in range(n):
        s.v[c] = INFINITY
    for i in range(n):
        for j in range(s.first[i], s.first[i + 1]):
            c = s.columns[j]
            if s.costs[j] < s.v[c]:
                s.v[c], s.origin[c] = s.costs[j], i
    for c in range(n):
        if s.v[c] == INFINITY:
            s.v[c] = 0      # without a pair
        elif s.col_of[s.origin[c]] < 0:
            s.col_of[s.origin[c]], s.row_of[c] = <int>c, s.origin[c]


cdef Py_ssize_t _reduce(Search* s, Py_ssize_t n_free, int* free, Py_ssize_t n) noexcept nogil:
    """Let free rows take their cheapest columns; return how many stay free, at the front."""
    cdef Py_ssize_t k = 0, kept = 0, budget = BIDS * n
    cdef int64_t j
    cdef int i, best, other, taken
    cdef double least, second, cost
    while k < n_free:
        i = free[k]
        k += 1
        best, other, least, second = -1, -1, INFINITY, INFINITY
        for j in range(s.first[i], s.first[i + 1]):
            cost = s.costs[j] - s.v[s.columns[j]]
            if cost < second:
                if cost < least:
                    second, other = least, best
                    least, best = cost, s.columns[j]
                else:
                    second, other = cost, s.columns[j]
        if best < 0:
            free[kept] = i
            kept += 1
            continue
        taken = s.row_of[best]
        if least < second < INFINITY:
            s.v[best] -= second - least
        elif taken >= 0 and other >= 0 and second == least:
            best, taken = other, s.row_of[other]
        elif taken >= 0:
            # One column only: its price is without a limit, paths decide.
            free[kept] = i
            kept += 1
            continue
        s.col_of[i], s.row_of[best] = best, i
        if taken < 0:
            continue
        s.col_of[taken] = -1
        budget -= 1
        if least < second and budget > 0:
            k -= 1
            free[k] = taken
        else:
            free[kept] = taken
            kept += 1
    return kept


cdef bint _augment(Search* s, int start) noexcept nogil:
    """Give a free row a column along the shortest path to a free one; return whether one exists."""
    cdef Py_ssize_t size = 0, n_passed = 0, k
    cdef int64_t j
    cdef int i = start, c, end = -1, swap
    cdef double base = 0, least = -INFINITY, nearest = INFINITY, reduced, own = 0
    cdef Entry top
    while True:
        for j in range(s.first[i], s.first[i + 1]):
            c = s.columns[j]
            # Not below what is final, whatever rounding does.
            reduced = max(base + s.costs[j] - s.v[c], least)
            if reduced < s.distance[c] and reduced < nearest:
                if s.distance[c] == INFINITY:
                    s.passed[n_passed] = c      # reached; all are reset at the end
                    n_passed += 1
                s.distance[c], s.origin[c] = reduced, i
                if s.row_of[c] < 0:
                    nearest, end = reduced, c
                else:
                    _push(s.heap, size, reduced, c)
                    size += 1
        c = -1
        while size and s.heap[0].distance < nearest:
            top = s.heap[0]
            size -= 1
            _pop(s.heap, size)
            if top.distance == s.distance[top.column]:
                c = top.column
                break
        if c < 0:
            break
        least = top.distance
        # The row goes on from the distance of its column: less the cost of its own pair.
        i = s.row_of[c]
        for j in range(s.first[i], s.first[i + 1]):
            if s.columns[j] == c:
                own = s.costs[j] - s.v[c]
                break
        base = least - own
    for k in range(n_passed):
        c = s.passed[k]
        if end >= 0 and s.distance[c] < nearest:
            s.v[c] += s.distance[c] - nearest
        s.distance[c] = INFINITY
    if end < 0:
        return False
    while True:
        i = s.origin[end]
        s.row_of[end] = i
        swap = s.col_of[i]
        s.col_of[i] = end
        if i == start:
            return True
        end = swap


cdef inline void _push(Entry* heap, Py_ssize_t k, double distance, int column) noexcept nogil:
    cdef Py_ssize_t up
    while k:
        up = (k - 1) >> 1
        if heap[up].distance <= distance:
            break
        heap[k] = heap[up]
        k = up
    heap[k].distance, heap[k].column = distance, column


cdef inline void _pop(Entry* heap, Py_ssize_t size) noexcept nogil:
    """Remove the top; the last entry, at `size`, takes its way down."""
    cdef Py_ssize_t k = 0, child = 1
    cdef Entry last = heap[size]
    while child < size:
        if child + 1 < size and heap[child + 1].distance < heap[child].distance:
            child += 1
        if last.distance <= heap[child].distance:
            break
        heap[k] = heap[child]
        k, child = child, 2 * child + 1
    heap[k] = last
