"""Sequential dual ascent with messages to both ends of every edge (TRW-S, Kolmogorov 2006).

Each pass visits the nodes in order.  A node first collects all that the edges to earlier nodes can
give (their best remaining score becomes 0), then gives each edge to later nodes an equal share of
its score.  The bound never rises.  This is TRW-S, except that it keeps the messages of both ends,
so that other methods can continue from them, and vice versa.
"""

from libc.math cimport INFINITY
from libc.string cimport memcpy, memset
from structsolve.simd.loops cimport ss_loops

from structsolve.plugins.mrf.messages._trws cimport share_out
from structsolve.plugins.mrf.tables._model cimport Model


cdef Py_ssize_t split_bytes(Py_ssize_t n, Py_ssize_t m, Py_ssize_t width) noexcept nogil:
    # Rows are whole vectors from four states on; one cache line is reserved for alignment.
    return 8 * ((2 * m + n + 3) * width + n + 8) + 4 * (3 * n + 16) + 64


cdef void place_split(Split* split, const Model* graph, Py_ssize_t width, char* work) noexcept nogil:
    split.n, split.m, split.width = graph.n, graph.m, width
    split.states, split.ends = graph.states, graph.ends
    split.near_at, split.near = graph.near_at, graph.near
    split.taken = <double*>work
    split.slack = split.taken + 2 * split.m * width
    split.own = split.slack + split.n * width
    split.fresh = split.own + width
    memset(split.fresh + width, 0, width * sizeof(double))
    split.zeros = split.fresh + width
    split.share = split.fresh + 2 * width
    split.trial = <int*>(split.share + split.n)
    split.order = split.trial + split.n
    split.rank = split.order + split.n
    split.loops = ss_loops(width)
    _order(split)
    share_out(graph, split.rank, split.share)


cdef void _order(Split* split) noexcept nogil:
    # Breadth first from a peripheral node, so that messages cross the whole graph in a pass.
    cdef Py_ssize_t i, j, head, tail, v
    cdef int turn, w
    cdef int* roots = split.trial
    for i in range(split.n):
        roots[i] = <int>i
    for turn in range(2):
        for i in range(split.n):
            split.rank[i] = -1
        head = tail = 0
        for i in range(split.n):
            if split.rank[roots[i]] >= 0:
                continue
            split.order[tail], split.rank[roots[i]] = roots[i], <int>tail
            tail += 1
            while head < tail:
                v = split.order[head]
                head += 1
                for j in range(split.near_at[v], split.near_at[v + 1]):
                    w = _other(split, split.near[j], v)
                    if split.rank[w] < 0:
                        split.order[tail], split.rank[w] = w, <int>tail
                        tail += 1
        for i in range(split.n):
            roots[i] = split.order[split.n - 1 - i]


cdef void clear_split(Split* split) noexcept nogil:
    cdef Py_ssize_t j, t
    cdef double* row = split.taken
    for j in range(2 * split.m):
        for t in range(split.width):
            row[t] = 0 if t < split.states[split.ends[j]] else -INFINITY
        row += split.width


cdef inline int _other(const Split* split, Py_ssize_t e, Py_ssize_t v) noexcept nogil:
    return split.ends[2 * e] + split.ends[2 * e + 1] - <int>v


cdef inline void _collect(Split* split, Py_ssize_t e, int side) noexcept nogil:
    # The edge gives its end all that it can.
    cdef Py_ssize_t width = split.width, s
    cdef double* taken = split.taken + (2 * e + side) * width
    cdef const double* other = split.taken + (2 * e + 1 - side) * width
    cdef const double* table = split.table + e * split.table_step
    cdef int rows = split.states[split.ends[2 * e]]
    if side:
        split.loops.maxplus(rows, other, table, width, width, split.zeros, split.fresh)
        rows = split.states[split.ends[2 * e + 1]]
    else:
        split.loops.maxdots(rows, table, width, width, other, split.fresh)
    for s in range(rows):
        taken[s] = -split.fresh[s]


cdef void _choose(Split* split, Py_ssize_t v) noexcept nogil:
    # The best state given those of earlier nodes and the messages of later edges.
    cdef Py_ssize_t j, e, width = split.width
    cdef int s, w, k = split.states[v], best = 0
    cdef double* scores = split.fresh
    cdef const double* row = split.node + v * split.node_step
    memcpy(scores, row, k * sizeof(double))
    for j in range(split.near_at[v], split.near_at[v + 1]):
        e = split.near[j]
        w = _other(split, e, v)
        if split.rank[w] > split.rank[v]:
            row = split.taken + (2 * e + (split.ends[2 * e] != v)) * width
            for s in range(k):
                scores[s] -= row[s]
            continue
        row = split.table + e * split.table_step
        if split.ends[2 * e] == v:
            row += split.trial[w]
            for s in range(k):
                scores[s] += row[s * width]
        else:
            row += split.trial[w] * width
            for s in range(k):
                scores[s] += row[s]
    for s in range(1, k):
        if scores[s] > scores[best]:
            best = s
    split.trial[v] = best


cdef double sweep(Split* split, bint forward) noexcept nogil:
    cdef Py_ssize_t i, v, j, e, given, width = split.width
    cdef int s, k, side
    cdef bint later
    cdef double bound = 0, top, share
    cdef double* own = split.own
    cdef double* row
    for i in range(split.n):
        v = split.order[i if forward else split.n - 1 - i]
        k = split.states[v]
        if forward:
            _choose(split, v)
        memcpy(own, split.node + v * split.node_step, k * sizeof(double))
        given = 0
        for j in range(split.near_at[v], split.near_at[v + 1]):
            e = split.near[j]
            side = split.ends[2 * e] != v
            later = (split.rank[_other(split, e, v)] > split.rank[v]) == forward
            given += later
            if not later:
                _collect(split, e, side)
            row = split.taken + (2 * e + side) * width
            for s in range(k):
                own[s] -= row[s]
        top = own[0]
        for s in range(1, k):
            top = own[s] if own[s] > top else top
        if forward:
            row = split.slack + v * width
            for s in range(k):
                row[s] = own[s] - top
        share = split.share[v]
        # The rest; exactly 0 if the edges take all.
        bound += top * (1 - given * share) if given * share < 1 - 1e-12 else 0
        for j in range(split.near_at[v], split.near_at[v + 1]):
            e = split.near[j]
            if (split.rank[_other(split, e, v)] > split.rank[v]) == forward:
                row = split.taken + (2 * e + (split.ends[2 * e] != v)) * width
                for s in range(k):
                    row[s] += share * own[s]
    return bound


cdef double split_score(const Split* split, const int* label) noexcept nogil:
    cdef double total = 0
    cdef Py_ssize_t v, e
    for v in range(split.n):
        total += split.node[v * split.node_step + label[v]]
    for e in range(split.m):
        total += split.table[e * split.table_step + label[split.ends[2 * e]] * split.width
                             + label[split.ends[2 * e + 1]]]
    return total
