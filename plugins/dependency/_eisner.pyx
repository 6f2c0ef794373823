"""Eisner's algorithm: O(n^3) over spans, which builds every projective tree in exactly one way.

A complete span has a word at one end and all its descendants on that side; a span with an arc joins
two complete spans that face each other.  With several roots the root is a word at the left end;
with one, it is added when all spans are filled.
"""

from libc.math cimport exp
from libc.string cimport memset

from structsolve.plugins.dependency._semiring cimport (
    WEIGHTS, Semiring, fold, one, pick, times, zero,
)


cdef enum:
    SQUARES = 7

cdef struct Span:
    int i, j, kind

cdef enum SpanKind:
    RIGHT
    LEFT
    JOINED


cdef Py_ssize_t chart_bytes(Py_ssize_t n) noexcept nogil:
    # Seven squares; trace() keeps at most two spans for each word.
    return SQUARES * (n + 1) * (n + 1) * sizeof(double) + (2 * n + 8) * sizeof(Span) + 64


cdef Chart chart_in(Semiring kind, Py_ssize_t n, bint single, char* memory) noexcept nogil:
    cdef Chart chart
    cdef Py_ssize_t square = (n + 1) * (n + 1)
    chart.kind, chart.n, chart.width = kind, n, n + 1
    chart.single, chart.first = single, 1 if single else 0
    chart.right = <double*>memory
    chart.right_t = chart.right + square
    chart.left = chart.right_t + square
    chart.left_t = chart.left + square
    chart.arc_right = chart.left_t + square
    chart.arc_left_t = chart.arc_right + square
    chart.joined = chart.arc_left_t + square
    return chart


cdef double fill(const Chart* chart, const double* table) noexcept nogil:
    cdef Py_ssize_t n = chart.n, w = chart.width, i, j
    cdef Semiring kind = chart.kind
    cdef double joined, total
    for j in range(chart.first, n + 1):
        chart.right[j * w + j] = chart.right_t[j * w + j] = one(kind)
        chart.left[j * w + j] = chart.left_t[j * w + j] = one(kind)
        for i in range(j - 1, chart.first - 1, -1):
            joined = fold(kind, j - i, chart.right + i * w + i, chart.left_t + j * w + i + 1)
            chart.joined[i * w + j] = joined
            chart.arc_right[i * w + j] = times(kind, joined, table[(j - 1) * w + i])
            chart.arc_left_t[j * w + i] = (
                times(kind, joined, table[(i - 1) * w + j]) if i else zero(kind))
            total = fold(kind, j - i, chart.arc_right + i * w + i + 1,
                         chart.right_t + j * w + i + 1)
            chart.right[i * w + j] = chart.right_t[j * w + i] = total
            total = fold(kind, j - i, chart.left + i * w + i, chart.arc_left_t + j * w + i)
            chart.left[i * w + j] = chart.left_t[j * w + i] = total
    if not chart.single:
        return chart.right[n]
    # arc_right's first row holds the trees by their only root.
    for j in range(1, n + 1):
        chart.arc_right[j] = times(kind, chart.left[w + j], table[(j - 1) * w])
        chart.arc_left_t[j] = chart.right_t[n * w + j]
    return fold(kind, n, chart.arc_right + 1, chart.arc_left_t + 1)


cdef void trace(const Chart* chart, const double* uniforms, int* heads) noexcept nogil:
    cdef Py_ssize_t n = chart.n, w = chart.width, size = 0, i, j, k, drawn = 0
    cdef Span* stack = <Span*>(chart.right + SQUARES * w * w)
    cdef double uniform = 0
    cdef Span span
    if chart.single:
        if uniforms != NULL:
            uniform = uniforms[0]
        k = 1 + pick(chart.kind, n, chart.arc_right + 1, chart.arc_left_t + 1, &uniform)
        heads[k - 1] = 0
        stack[0].i, stack[0].j, stack[0].kind = 1, <int>k, LEFT
        stack[1].i, stack[1].j, stack[1].kind = <int>k, <int>n, RIGHT
        size, drawn = 2, 1
    else:
        stack[0].i, stack[0].j, stack[0].kind = 0, <int>n, RIGHT
        size = 1
    while size:
        size -= 1
        span = stack[size]
        i, j = span.i, span.j
        if i == j:
            continue
        if span.kind == JOINED:
            # The remainder of the uniform number that drew the arc splits the span below it.
            k = i + pick(chart.kind, j - i, chart.right + i * w + i,
                         chart.left_t + j * w + i + 1, &uniform)
            stack[size].i, stack[size].j, stack[size].kind = <int>i, <int>k, RIGHT
            stack[size + 1].i, stack[size + 1].j, stack[size + 1].kind = <int>(k + 1), <int>j, LEFT
            size += 2
            continue
        if uniforms != NULL:
            uniform = uniforms[drawn]
            drawn += 1
        if span.kind == RIGHT:
            k = i + 1 + pick(chart.kind, j - i, chart.arc_right + i * w + i + 1,
                             chart.right_t + j * w + i + 1, &uniform)
            heads[k - 1] = <int>i
            stack[size].i, stack[size].j, stack[size].kind = <int>k, <int>j, RIGHT
            stack[size + 1].i, stack[size + 1].j, stack[size + 1].kind = <int>i, <int>k, JOINED
        else:
            k = i + pick(chart.kind, j - i, chart.left + i * w + i, chart.arc_left_t + j * w + i,
                         &uniform)
            heads[k - 1] = <int>j
            stack[size].i, stack[size].j, stack[size].kind = <int>i, <int>k, LEFT
            stack[size + 1].i, stack[size + 1].j, stack[size + 1].kind = <int>k, <int>j, JOINED
        size += 2


cdef inline void _share(Semiring kind, Py_ssize_t n, double mass, double value, const double* a,
                        const double* b, double* of_a, double* of_b) noexcept nogil:
    # Distribute the mass of a cell, the sum of a[k] times b[k], to the cells of its terms.
    cdef Py_ssize_t k
    cdef double part, total = 0
    if mass <= 0:
        return
    if kind == WEIGHTS:
        mass /= value
        for k in range(n):
            part = mass * a[k] * b[k]
            of_a[k] += part
            of_b[k] += part
        return
    # Parts must add up to the mass even where large scores leave logs no digits.
    for k in range(n):
        total += exp(a[k] + b[k] - value)
    mass /= total
    for k in range(n):
        part = mass * exp(a[k] + b[k] - value)
        of_a[k] += part
        of_b[k] += part


cdef void spread(const Chart* chart, double total, double* table, char* memory) noexcept nogil:
    cdef Py_ssize_t n = chart.n, w = chart.width, i, j
    cdef Semiring kind = chart.kind
    cdef Chart mass = chart_in(kind, n, chart.single, memory)
    cdef double own, joined
    memset(mass.right, 0, (SQUARES - 1) * w * w * sizeof(double))  # joined has no mass
    memset(table, 0, n * w * sizeof(double))
    if chart.single:
        _share(kind, n, 1, total, chart.arc_right + 1, chart.arc_left_t + 1, mass.arc_right + 1,
               mass.arc_left_t + 1)
        for j in range(1, n + 1):
            own = table[(j - 1) * w] = mass.arc_right[j]
            mass.left[w + j] += own
            mass.right[j * w + n] += own
    else:
        mass.right[n] = 1
    for j in range(n, chart.first - 1, -1):
        for i in range(chart.first, j):
            own = mass.right[i * w + j] + mass.right_t[j * w + i]
            _share(kind, j - i, own, chart.right[i * w + j], chart.arc_right + i * w + i + 1,
                   chart.right_t + j * w + i + 1, mass.arc_right + i * w + i + 1,
                   mass.right_t + j * w + i + 1)
            own = mass.left[i * w + j] + mass.left_t[j * w + i]
            _share(kind, j - i, own, chart.left[i * w + j], chart.left + i * w + i,
                   chart.arc_left_t + j * w + i, mass.left + i * w + i,
                   mass.arc_left_t + j * w + i)
            table[(j - 1) * w + i] = mass.arc_right[i * w + j]
            joined = mass.arc_right[i * w + j]
            if i:
                table[(i - 1) * w + j] = mass.arc_left_t[j * w + i]
                joined += mass.arc_left_t[j * w + i]
            _share(kind, j - i, joined, chart.joined[i * w + j], chart.right + i * w + i,
                   chart.left_t + j * w + i + 1, mass.right + i * w + i,
                   mass.left_t + j * w + i + 1)
