"""Derivatives of the marginals of arcs of projective trees: by both passes over spans.

Every number of the passes of `_eisner.pyx` comes with its derivative along the direction: weights
and masses with derivatives, logs of weights with derivatives of logs, which are means over trees.
"""

from libc.math cimport INFINITY, exp
from libc.string cimport memset

from structsolve.plugins.dependency._eisner cimport Chart, chart_bytes, chart_in
from structsolve.plugins.dependency._semiring cimport WEIGHTS, Semiring, fold


cdef inline double _moved(Semiring kind, Py_ssize_t n, double value, const double* a,
                          const double* b, const double* da, const double* db) noexcept nogil:
    # The derivative of fold(a, b), which is `value`.
    cdef Py_ssize_t k
    cdef double total = 0
    if kind == WEIGHTS:
        return fold(kind, n, da, b) + fold(kind, n, a, db)
    if value == -INFINITY:
        return 0
    for k in range(n):
        total += exp(a[k] + b[k] - value) * (da[k] + db[k])
    return total


cdef inline double _times_moved(Semiring kind, double a, double da, double b,
                                double d) noexcept nogil:
    # The derivative of a times b; b is an arc, and d the derivative of its log.
    return (da + a * d) * b if kind == WEIGHTS else da + d


cdef void _inside(const Chart* chart, const Chart* moved, const double* table,
                  const double* direction) noexcept nogil:
    # moved <- the derivatives of what fill() computed.
    cdef Py_ssize_t n = chart.n, w = chart.width, i, j, at_i, at_j, arc
    cdef Semiring kind = chart.kind
    cdef double joined, total
    memset(moved.right, 0, 6 * w * w * sizeof(double))
    for j in range(chart.first, n + 1):
        for i in range(j - 1, chart.first - 1, -1):
            at_i, at_j = i * w, j * w
            joined = chart.joined[at_i + j]
            total = _moved(kind, j - i, joined, chart.right + at_i + i, chart.left_t + at_j + i + 1,
                           moved.right + at_i + i, moved.left_t + at_j + i + 1)
            moved.joined[at_i + j] = total
            arc = (j - 1) * w + i
            moved.arc_right[at_i + j] = _times_moved(kind, joined, total, table[arc],
                                                     direction[arc])
            if i:
                arc = (i - 1) * w + j
                moved.arc_left_t[at_j + i] = _times_moved(kind, joined, total, table[arc],
                                                          direction[arc])
            moved.right[at_i + j] = moved.right_t[at_j + i] = _moved(
                kind, j - i, chart.right[at_i + j], chart.arc_right + at_i + i + 1,
                chart.right_t + at_j + i + 1, moved.arc_right + at_i + i + 1,
                moved.right_t + at_j + i + 1)
            moved.left[at_i + j] = moved.left_t[at_j + i] = _moved(
                kind, j - i, chart.left[at_i + j], chart.left + at_i + i,
                chart.arc_left_t + at_j + i, moved.left + at_i + i, moved.arc_left_t + at_j + i)
    if chart.single:
        for j in range(1, n + 1):
            moved.arc_right[j] = _times_moved(kind, chart.left[w + j], moved.left[w + j],
                                              table[(j - 1) * w], direction[(j - 1) * w])
            moved.arc_left_t[j] = moved.right_t[n * w + j]


cdef inline void _share(Semiring kind, Py_ssize_t n, double mass, double move, double value,
                        double change, const double* a, const double* b, const double* da,
                        const double* db, double* of_a, double* of_b, double* move_a,
                        double* move_b) noexcept nogil:
    # Distribute the mass of a cell, and its derivative `move`, to the cells of the terms a[k] times
    # b[k] of its value; `change` is the derivative of the value.
    cdef Py_ssize_t k
    cdef double part, moved, total = 0
    if mass <= 0:
        return
    if kind == WEIGHTS:
        mass /= value
        move = (move - mass * change) / value
        for k in range(n):
            part = a[k] * b[k]
            moved = move * part + mass * (da[k] * b[k] + a[k] * db[k])
            part *= mass
            of_a[k] += part
            of_b[k] += part
            move_a[k] += moved
            move_b[k] += moved
        return
    change = 0
    for k in range(n):
        part = exp(a[k] + b[k] - value)
        total += part
        change += part * (da[k] + db[k])
    change /= total
    for k in range(n):
        part = exp(a[k] + b[k] - value) / total
        moved = part * (move + mass * (da[k] + db[k] - change))
        part *= mass
        of_a[k] += part
        of_b[k] += part
        move_a[k] += moved
        move_b[k] += moved


cdef void spread_along(const Chart* chart, double total, const double* table,
                       const double* direction, double* out, char* memory) noexcept nogil:
    cdef Py_ssize_t n = chart.n, w = chart.width, i, j, at_i, at_j, m
    cdef Semiring kind = chart.kind
    cdef Chart moved = chart_in(kind, n, chart.single, memory)
    cdef Chart mass = chart_in(kind, n, chart.single, memory + chart_bytes(n))
    cdef Chart move = chart_in(kind, n, chart.single, memory + 2 * chart_bytes(n))
    cdef double own, change
    _inside(chart, &moved, table, direction)
    memset(mass.right, 0, 6 * w * w * sizeof(double))
    memset(move.right, 0, 6 * w * w * sizeof(double))
    memset(out, 0, n * w * sizeof(double))
    if chart.single:
        change = _moved(kind, n, total, chart.arc_right + 1, chart.arc_left_t + 1,
                        moved.arc_right + 1, moved.arc_left_t + 1)
        _share(kind, n, 1, 0, total, change, chart.arc_right + 1, chart.arc_left_t + 1,
               moved.arc_right + 1, moved.arc_left_t + 1, mass.arc_right + 1, mass.arc_left_t + 1,
               move.arc_right + 1, move.arc_left_t + 1)
        for j in range(1, n + 1):
            mass.left[w + j] += mass.arc_right[j]
            mass.right[j * w + n] += mass.arc_right[j]
            out[(j - 1) * w] = move.arc_right[j]
            move.left[w + j] += move.arc_right[j]
            move.right[j * w + n] += move.arc_right[j]
    else:
        mass.right[n] = 1
    for j in range(n, chart.first - 1, -1):
        for i in range(chart.first, j):
            at_i, at_j, m = i * w, j * w, j - i
            own = mass.right[at_i + j] + mass.right_t[at_j + i]
            change = move.right[at_i + j] + move.right_t[at_j + i]
            _share(kind, m, own, change, chart.right[at_i + j], moved.right[at_i + j],
                   chart.arc_right + at_i + i + 1, chart.right_t + at_j + i + 1,
                   moved.arc_right + at_i + i + 1, moved.right_t + at_j + i + 1,
                   mass.arc_right + at_i + i + 1, mass.right_t + at_j + i + 1,
                   move.arc_right + at_i + i + 1, move.right_t + at_j + i + 1)
            own = mass.left[at_i + j] + mass.left_t[at_j + i]
            change = move.left[at_i + j] + move.left_t[at_j + i]
            _share(kind, m, own, change, chart.left[at_i + j], moved.left[at_i + j],
                   chart.left + at_i + i, chart.arc_left_t + at_j + i, moved.left + at_i + i,
                   moved.arc_left_t + at_j + i, mass.left + at_i + i, mass.arc_left_t + at_j + i,
                   move.left + at_i + i, move.arc_left_t + at_j + i)
            own, change = mass.arc_right[at_i + j], move.arc_right[at_i + j]
            out[(j - 1) * w + i] = change
            if i:
                out[(i - 1) * w + j] = move.arc_left_t[at_j + i]
                own += mass.arc_left_t[at_j + i]
                change += move.arc_left_t[at_j + i]
            _share(kind, m, own, change, chart.joined[at_i + j], moved.joined[at_i + j],
                   chart.right + at_i + i, chart.left_t + at_j + i + 1,
                   moved.right + at_i + i, moved.left_t + at_j + i + 1,
                   mass.right + at_i + i, mass.left_t + at_j + i + 1,
                   move.right + at_i + i, move.left_t + at_j + i + 1)
