"""A point of the polytope near the rows' own answers.

Columns that take too much are scaled down, and what the rows then lack goes to those that take too
little.
"""

from libc.math cimport INFINITY, log
from libc.string cimport memset

from structsolve.plugins.permutation._prices cimport Search


cdef void round_answers(Search* s) noexcept nogil:
    """trial <- a point of the polytope near q, exact but for the rounding of sums."""
    cdef Py_ssize_t r, c
    cdef double missing = 0, room = 0, x
    cdef double* row
    for c in range(s.ld):
        s.b[c] = 1 / (1 - s.g[c]) if s.g[c] < 0 else 1
        s.d[c] = 0
    for r in range(s.rows):
        row = s.trial + r * s.ld
        x = 1
        for c in range(s.ld):
            row[c] = s.q[r * s.ld + c] * s.b[c]
            s.d[c] += row[c]
            x -= row[c]
        s.a[r] = x if x > 0 else 0
        missing += s.a[r]
    for c in range(s.cols):
        s.d[c] = 1 - s.d[c] if s.d[c] < 1 else 0
        room += s.d[c]
    if missing <= 0 or room <= 0:
        return
    if not s.barred:
        for r in range(s.rows):
            if s.a[r] > 0:
                x = s.a[r] / room
                for c in range(s.cols):
                    s.trial[r * s.ld + c] += x * s.d[c]
        return
    # Forbidden pairs take nothing: what a row lacks comes along a path of allowed ones.
    missing = 0
    for r in range(s.rows):
        for c in range(4 * (s.rows + s.cols)):
            if not (s.a[r] > 0 and _flow(s, r)):
                break
        missing += s.a[r]
    if missing > 1e-13 * s.rows:
        # No way found: the best assignment is a point of the polytope.
        memset(s.trial, 0, s.rows * s.ld * sizeof(double))
        for r in range(s.rows):
            s.trial[r * s.ld + s.column[r]] = 1


cdef bint _flow(Search* s, Py_ssize_t start) noexcept nogil:
    """Give row ``start`` what it lacks from a column with room, by way of rows that can move over.

    Breadth first over rows; a row that is reached through a column gives up its share of it.
    """
    cdef Py_ssize_t r, c, k, head = 0, n = 1, end = -1
    cdef double amount
    for c in range(s.cols):
        s.free[c] = -1          # the row that wants column c
    for r in range(s.rows):
        s.active[r] = -1        # the column that row r was reached through
    s.queue[0] = <int>start
    while head < n and end < 0:
        r = s.queue[head]
        head += 1
        for c in range(s.cols):
            if s.free[c] >= 0 or s.cost[r * s.ld + c] == INFINITY:
                continue
            s.free[c] = <int>r
            if s.d[c] > 0:
                end = c
                break
            for k in range(s.rows):
                if k != start and s.active[k] < 0 and s.trial[k * s.ld + c] > 0:
                    s.active[k] = <int>c
                    s.queue[n] = <int>k
                    n += 1
    if end < 0:
        return False
    amount = min(s.a[start], s.d[end])
    c = end
    while s.free[c] != start:
        r = s.free[c]
        c = s.active[r]
        amount = min(amount, s.trial[r * s.ld + c])
    s.a[start] -= amount
    s.d[end] -= amount
    c = end
    while True:
        r = s.free[c]
        s.trial[r * s.ld + c] += amount
        if r == start:
            return True
        c = s.active[r]
        s.trial[r * s.ld + c] -= amount


cdef double rounded_value(const Search* s) noexcept nogil:
    cdef Py_ssize_t r, c
    cdef double total = 0, x
    for r in range(s.rows):
        for c in range(s.cols):
            x = s.trial[r * s.ld + c]
            if x > 0:
                total -= x * s.cost[r * s.ld + c] + (x * x / 2 if s.euclidean else x * log(x))
    return total
