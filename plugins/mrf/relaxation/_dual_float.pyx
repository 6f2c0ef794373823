"""First passes of dual ascent in single precision.

Any messages define a bound.  So the first passes, which need not be accurate, use
:mod:`structsolve.plugins.mrf.messages._float_passes` in half the time and half the memory; passes
in double precision continue from their messages.
"""

from libc.math cimport frexp, ldexp
from structsolve.simd.loops cimport ss_loops

from structsolve.plugins.mrf.relaxation._dual_passes cimport Split
from structsolve.plugins.mrf.messages._float_passes cimport (
    MRF_PADDING, mrf_edge, mrf_lanes, mrf_pass, mrf_pass_of, mrf_passes,
)
from structsolve.plugins.mrf.tables._table_kinds cimport MRF_GENERAL, mrf_table


# A copy of a graph and its scores, nodes numbered in the order of passes; arrays follow it.
cdef struct Singles:
    mrf_passes passes
    mrf_pass run
    double scale                # of the copy, a power of two


cdef inline Py_ssize_t _whole(Py_ssize_t size) noexcept nogil:
    return (size + 63) / 64 * 64


cdef Py_ssize_t singles_bytes(Py_ssize_t n, Py_ssize_t m, Py_ssize_t width, bint each,
                              bint symmetric) noexcept nogil:
    cdef Py_ssize_t row = (width + 15) / 16 * 16, tables = m if each else 1
    return (_whole(sizeof(Singles)) + _whole(m * sizeof(mrf_edge))
            + _whole(tables * sizeof(mrf_table)) + 2 * _whole(8 * (n + 1)) + _whole(8 * m)
            + 3 * _whole(4 * n) + 4 * row * (n + m + 5) + 4 * 64
            + (1 if symmetric else 2) * 4 * tables * width * row)


cdef Py_ssize_t _copy_table(const Split* split, Py_ssize_t e, int most, Py_ssize_t row,
                            double scale, bint symmetric, Py_ssize_t start, mrf_table* table,
                            float* pair) noexcept nogil:
    # Returns the number of floats taken.
    cdef int s, t, rows = split.states[split.ends[2 * e]]
    cdef int columns = split.states[split.ends[2 * e + 1]]
    cdef const double* x = split.table + e * split.table_step
    cdef float* to = pair + start
    cdef float* back
    if symmetric or not split.table_step:       # one table for both directions, or for all edges
        rows = columns = most
    table.kind, table.straight, table.turned = MRF_GENERAL, start, start
    for s in range(rows):
        for t in range(columns):
            to[t] = <float>(scale * x[t])
        for t in range(columns, <int>row):      # so that messages equal those of a state
            to[t] = to[0]
        to += row
        x += split.width
    if symmetric:
        return rows * row
    table.turned = start + rows * row
    back, to = pair + table.turned, pair + start
    for t in range(columns):
        for s in range(rows):
            back[s] = to[s * row + t]
        for s in range(rows, <int>row):
            back[s] = back[0]
        back += row
    return (rows + columns) * row


cdef void place_singles(const Split* split, double largest, bint symmetric,
                        char* work) noexcept nogil:
    cdef Py_ssize_t n = split.n, m = split.m, i, j, v, e, size, row
    cdef Py_ssize_t tables = m if split.table_step else min(m, 1)
    cdef int s, lanes, most = 1, exponent = 0
    cdef double scale
    cdef Singles* singles = <Singles*>work
    cdef mrf_passes* p = &singles.passes
    cdef mrf_edge* edges
    cdef mrf_table* table
    cdef Py_ssize_t* near_at
    cdef Py_ssize_t* row_at
    cdef int* near
    cdef int* states
    cdef float* share
    cdef float* to
    cdef const double* x
    work += _whole(sizeof(Singles))
    for v in range(n):
        most = max(most, split.states[v])
    lanes = mrf_lanes(ss_loops(8).name, most)
    row = (most + lanes - 1) / lanes * lanes
    singles.run = mrf_pass_of(lanes)
    frexp(largest, &exponent)
    singles.scale = scale = ldexp(1.0, -max(min(exponent, 120), -120))
    edges, work = <mrf_edge*>work, work + _whole(m * sizeof(mrf_edge))
    table, work = <mrf_table*>work, work + _whole(tables * sizeof(mrf_table))
    near_at, work = <Py_ssize_t*>work, work + _whole(8 * (n + 1))
    row_at, work = <Py_ssize_t*>work, work + _whole(8 * (n + 1))
    near, work = <int*>work, work + _whole(8 * m)
    states, work = <int*>work, work + _whole(4 * n)
    p.trial, work = <int*>work, work + _whole(4 * n)
    share, work = <float*>work, work + _whole(4 * n)
    p.unary, work = <float*>work, work + _whole(4 * n * row)
    p.message, work = <float*>work, work + _whole(4 * m * row)
    p.own, work = <float*>work, work + _whole(4 * row)
    p.sent, work = <float*>work, work + _whole(4 * row)
    p.guess, work = <float*>work, work + _whole(4 * row)
    p.spare, work = <float*>work, work + _whole(8 * row)
    p.n, p.width, p.states, p.edges, p.tables = n, row, states, edges, table
    p.near_at, p.near, p.share, p.row_at, p.pair = near_at, near, share, row_at, <float*>work
    near_at[0] = size = 0
    for i in range(n):
        v = split.order[i]
        states[i], share[i] = split.states[v], <float>split.share[v]
        for j in range(split.near_at[v], split.near_at[v + 1]):
            near[size] = split.near[j]
            size += 1
        near_at[i + 1], row_at[i] = size, i * row
        to, x = <float*>p.unary + i * row, split.node + v * split.node_step
        for s in range(states[i]):
            to[s] = <float>(scale * x[s])
        for s in range(states[i], row):
            to[s] = MRF_PADDING
    row_at[n] = n * row
    for e in range(m):
        edges[e].u, edges[e].v = split.rank[split.ends[2 * e]], split.rank[split.ends[2 * e + 1]]
        edges[e].table, edges[e].weight = <int>(e if split.table_step else 0), 1
        edges[e].message = e * row
    size = 0
    for i in range(n):      # tables are in the order of passes forward
        for j in range(near_at[i], near_at[i + 1]):
            e = near[j]
            if edges[e].u + edges[e].v - i > i and (split.table_step or size == 0):
                size += _copy_table(split, e, most, row, scale, symmetric, size,
                                    table + edges[e].table, <float*>p.pair)
    set_messages(split, <char*>singles)


cdef inline int _later(const Singles* singles, Py_ssize_t e) noexcept nogil:
    # The end of an edge that passes forward visit last.
    return singles.passes.edges[e].v > singles.passes.edges[e].u


cdef void set_messages(const Split* split, char* work) noexcept nogil:
    cdef const Singles* singles = <const Singles*>work
    cdef Py_ssize_t e
    cdef int side, s, k
    cdef const double* taken
    cdef float* message
    for e in range(split.m):
        side = _later(singles, e)
        k = split.states[split.ends[2 * e + side]]
        taken = split.taken + (2 * e + side) * split.width
        message = singles.passes.message + singles.passes.edges[e].message
        for s in range(k):
            message[s] = <float>(-singles.scale * taken[s])
        for s in range(k, <int>singles.passes.width):
            message[s] = message[0]


cdef double sweep_singles(char* work, const Split* split, int* label) noexcept nogil:
    cdef const Singles* singles = <const Singles*>work
    cdef Py_ssize_t i
    cdef double bound = singles.run(&singles.passes, 0) / singles.scale
    singles.run(&singles.passes, 1)
    for i in range(split.n):
        label[split.order[i]] = singles.passes.trial[i]
    return bound


cdef void lift_singles(const char* work, Split* split) noexcept nogil:
    cdef const Singles* singles = <const Singles*>work
    cdef Py_ssize_t e
    cdef int s, side, v
    cdef double unit = -1 / singles.scale
    cdef double* taken
    cdef const float* message
    for e in range(split.m):
        side = _later(singles, e)
        v = split.ends[2 * e + side]
        taken = split.taken + (2 * e + side) * split.width
        message = singles.passes.message + singles.passes.edges[e].message
        for s in range(split.states[v]):
            taken[s] = unit * message[s]
