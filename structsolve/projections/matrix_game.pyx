"""Matrix games ``max_alpha min_beta beta' P alpha`` by the simplex method, one move at a time.

For P > 0 the game is the linear program ``max sum(u)`` subject to ``P' u <= 1, u >= 0``.  beta is u
and alpha the multipliers, both divided by their sums.  A new move of the maximiser is a new row,
handled by the dual simplex method; a new move of the minimiser is a new column, handled by the
primal one.  So each game starts from the solution of the last.  The tableau is Tucker's condensed
one, without columns for the basis.
"""

import numpy as np

from ..utils.arrays import aligned_zeros

# Entries are about 1.
cdef double EPS = 1e-11
cdef int PIVOTS = 20


cdef Py_ssize_t _width(Py_ssize_t most) noexcept nogil:
    return (most + 8) // 8 * 8


cdef Py_ssize_t tableau_bytes(Py_ssize_t most) noexcept nogil:
    """Return the bytes of a game with up to ``most`` moves per side."""
    return 8 * (most + 1) * _width(most) + 8 * (most + 8)


cdef void begin(Tableau* table, Py_ssize_t most, char* memory) noexcept nogil:
    """Begin a game without moves."""
    table.width = _width(most)
    table.a = <double*>memory
    table.row_of = <int*>(table.a + (most + 1) * table.width)
    table.column_of = table.row_of + most + 1
    table.rows = table.columns = 0
    table.a[0] = 0


cdef void add_mover(Tableau* table, int k, const double* payoff) noexcept nogil:
    """Add a move of the maximiser, with ``payoff[l]`` against the minimiser's moves so far."""
    cdef Py_ssize_t i, j, width = table.width
    cdef double* row
    cdef const double* basic
    cdef double p
    table.rows += 1
    row = table.a + table.rows * width
    row[0] = 1
    for j in range(1, table.columns + 1):
        row[j] = payoff[table.column_of[j]] if table.column_of[j] >= 0 else 0
    for i in range(1, table.rows):
        if table.row_of[i] >= 0:
            p = payoff[table.row_of[i]]
            basic = table.a + i * width
            for j in range(table.columns + 1):
                row[j] -= p * basic[j]
    table.row_of[table.rows] = -1 - k


cdef void add_reply(Tableau* table, int l, const double* payoff, Py_ssize_t step) noexcept nogil:
    """Add a move of the minimiser, with ``payoff[k * step]`` against the maximiser's so far."""
    cdef Py_ssize_t i, j, width = table.width, new = table.columns + 1
    cdef double* row
    cdef double total
    for i in range(table.rows + 1):
        row = table.a + i * width
        total = 1 if i == 0 else 0
        if i and table.row_of[i] < 0:
            total = payoff[(-1 - table.row_of[i]) * step]
        for j in range(1, new):
            if table.column_of[j] < 0:
                total += payoff[(-1 - table.column_of[j]) * step] * row[j]
        row[new] = total
    table.columns = new
    table.column_of[new] = l


cdef void _pivot(Tableau* table, Py_ssize_t r, Py_ssize_t c) noexcept nogil:
    cdef Py_ssize_t i, j, columns = table.columns + 1
    cdef double* own = table.a + r * table.width
    cdef double* row
    cdef double p = 1 / own[c], factor
    cdef int leaving = table.row_of[r]
    for j in range(columns):
        own[j] *= p
    own[c] = p
    for i in range(table.rows + 1):
        row = table.a + i * table.width
        factor = row[c]
        if i == r or factor == 0:
            continue
        for j in range(columns):
            row[j] -= factor * own[j]
        row[c] = -factor * p
    table.row_of[r], table.column_of[c] = table.column_of[c], leaving


cdef void solve(Tableau* table) noexcept nogil:
    """Pivot until neither side can do better.

    The loop always ends.  After rounding errors, cycles or entries that are not finite, strategies
    may not be optimal, but they are valid.
    """
    cdef Py_ssize_t i, j, r, c, width = table.width
    cdef double* a = table.a
    cdef double best, ratio, size
    cdef int left = <int>(PIVOTS + 4 * (table.rows + table.columns))
    while left > 0:
        left -= 1
        # Some row is violated: dual simplex.
        r, c, best = 0, 0, -EPS
        for i in range(1, table.rows + 1):
            if a[i * width] < best:
                r, best = i, a[i * width]
        if r > 0:
            best, size = 0, 0
            for j in range(1, table.columns + 1):
                if a[r * width + j] < -EPS:
                    # Costs above 0 are due to rounding.
                    ratio = min(a[j], 0) / a[r * width + j]
                    if c == 0 or ratio < best or (ratio == best and a[r * width + j] < size):
                        c, best, size = j, ratio, a[r * width + j]
            if c == 0:
                return
            _pivot(table, r, c)
            continue
        best = EPS
        for j in range(1, table.columns + 1):
            if a[j] > best:
                c, best = j, a[j]
        if c == 0:
            return
        best, size = 0, 0
        for i in range(1, table.rows + 1):
            if a[i * width + c] > EPS:
                ratio = max(a[i * width], 0) / a[i * width + c]
                if r == 0 or ratio < best or (ratio == best and a[i * width + c] > size):
                    r, best, size = i, ratio, a[i * width + c]
        if r == 0:
            return
        _pivot(table, r, c)


cdef bint _scaled(Py_ssize_t n, double* x) noexcept nogil:
    cdef Py_ssize_t j
    cdef double total = 0
    for j in range(n):
        total += x[j]
    if not 0 < total < 1e300:
        return False
    for j in range(n):
        x[j] /= total
    return True


cdef bint strategies(const Tableau* table, Py_ssize_t m, Py_ssize_t q, double* movers,
                     double* replies) noexcept nogil:
    """movers, replies <- probabilities of each side's m and q moves; False without a solution."""
    cdef Py_ssize_t i, j
    for j in range(m):
        movers[j] = 0
    for j in range(q):
        replies[j] = 0
    for i in range(1, table.rows + 1):
        if table.row_of[i] >= 0 and table.a[i * table.width] > 0:
            replies[table.row_of[i]] = table.a[i * table.width]
    for j in range(1, table.columns + 1):
        if table.column_of[j] < 0 and table.a[j] < 0:
            movers[-1 - table.column_of[j]] = -table.a[j]
    return _scaled(m, movers) and _scaled(q, replies)


def play(payoff):
    """Return optimal strategies of both sides of a matrix game.

    Parameters
    ----------
    payoff : array of float64 of shape (q, m)
        Finite and above 0; the row player pays it to the column player.

    Returns
    -------
    columns : ndarray of float64 of shape (m,)
        Probabilities of the maximiser's moves.
    rows : ndarray of float64 of shape (q,)
        Probabilities of the minimiser's moves.

    Raises
    ------
    ValueError
        If ``payoff`` is not such a matrix.

    Examples
    --------
    >>> from structsolve.projections.matrix_game import play
    >>> columns, rows = play([[1.0, 3.0], [2.0, 1.0]])
    >>> columns.round(3).tolist(), rows.round(3).tolist()
    ([0.667, 0.333], [0.333, 0.667])
    """
    array = np.ascontiguousarray(payoff, dtype=np.float64)
    if array.ndim != 2 or not array.size or not (np.isfinite(array).all() and (array > 0).all()):
        raise ValueError("payoff: expected a matrix of finite numbers above 0")
    cdef const double[:, ::1] view = array
    cdef const double[:, ::1] turned = np.ascontiguousarray(array.T)
    cdef Py_ssize_t q = array.shape[0], m = array.shape[1], most = max(m, q), k, l
    cdef double[::1] memory = aligned_zeros(tableau_bytes(most) // 8 + 8)
    cdef Tableau table
    columns, rows = np.zeros(m), np.zeros(q)
    cdef double[::1] column_view = columns, row_view = rows
    with nogil:
        begin(&table, most, <char*>&memory[0])
        # Add moves of both sides in turn, as in a double oracle.
        for k in range(most):
            if k < q:
                add_reply(&table, <int>k, &view[k, 0], 1)
                solve(&table)
            if k < m:
                add_mover(&table, <int>k, &turned[k, 0])
                solve(&table)
        strategies(&table, m, q, &column_view[0], &row_view[0])
    return columns, rows
