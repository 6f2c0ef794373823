"""Roof duality of small models, with sets of nodes as words and capacities in a dense matrix.

First all nodes go whose own scores outweigh whatever their neighbours do, which are most nodes in
practice.  The others are a core, on whose doubled graph (see ``_roof``) Dinic's algorithm runs with
level sets, arcs and the reach of the source as bits: on scores never seen before a list of arcs
costs a mispredicted branch for nearly every arc.  Node i of a core of k is bit i, its negation
i' bit i + k.  Flows are their own mirror images (i -> j carries what j' -> i' does), which halves
the work and makes distances to the sink the mirror images of distances from the source.
"""

from libc.math cimport INFINITY, fabs
from libc.stdint cimport uint64_t
from libc.string cimport memset

from structsolve.plugins.mrf._model cimport Model

cdef extern from *:
    """
    #if defined(_MSC_VER)
    #include <intrin.h>
    static __inline int ss_lowest(uint64_t x) {
      unsigned long at;
      _BitScanForward64(&at, x);
      return (int)at;
    }
    #else
    #define ss_lowest(x) __builtin_ctzll(x)
    #endif
    """
    int ss_lowest(uint64_t x) nogil

# As in _roof: a sum that is rounding, and what repeated rounding may leave of a saturated arc.
cdef double ROUNDING = 1e-15
cdef double DUST = 1e-12
cdef uint64_t ONE = 1


cdef struct Dense:
    Py_ssize_t n, stride        # nodes; doubles from row to row
    double* cost                # what state 1 costs in place of 0, once neighbours agree or halve
    double* slack               # by how much free neighbours can change that, either way
    double* size                # sum of magnitudes that `cost` came from
    double* coupling            # (n, stride) symmetric: half of what different states cost more


cdef struct Core:
    int k
    double* excess              # (2 k,) left from the source; i' has that of i left to the sink
    double* residual            # (2 k, 2 k), equal at (i, j) and (j', i')
    uint64_t out[64]            # nodes that residual arcs lead to
    uint64_t source             # nodes with excess


cdef inline Py_ssize_t _stride(Py_ssize_t n) noexcept nogil:
    return (n + 3) / 4 * 4


cdef Py_ssize_t small_roof_bytes(Py_ssize_t n) noexcept nogil:
    n = n if n < SMALL else SMALL
    return ((3 + n) * _stride(n) + 2 * n + 4 * n * n) * sizeof(double)


cdef bint _read(Dense* dense, const Model* model) noexcept nogil:
    cdef Py_ssize_t n = model.n, v, w, e
    cdef const double* t
    cdef double equal, other, size, c, half, total = 0
    cdef double* cost = dense.cost
    cdef bint two = True
    memset(dense.slack, 0, dense.stride * sizeof(double))
    memset(dense.coupling, 0, n * dense.stride * sizeof(double))
    for v in range(n):
        two &= model.states[v] == 2
    if not two:
        return False
    for v in range(n):
        t = model.unary + model.unary_at[v]
        cost[v] = t[0] - t[1]
        dense.size[v] = fabs(t[0]) + fabs(t[1])
        total += dense.size[v]
    for v in range(n, dense.stride):
        cost[v] = 0
    for e in range(model.m):
        t = model.pair + model.pair_at[e]
        v, w = model.ends[2 * e], model.ends[2 * e + 1]
        equal, other = t[0] + t[3], t[1] + t[2]
        c = equal - other
        size = fabs(t[0]) + fabs(t[1]) + fabs(t[2]) + fabs(t[3])
        half = c / 2 if fabs(c) > ROUNDING * size else 0
        total += size
        cost[v] += ((t[0] - t[2]) + (t[1] - t[3])) / 2
        cost[w] += ((t[0] - t[1]) + (t[2] - t[3])) / 2
        dense.size[v] += size
        dense.size[w] += size
        dense.slack[v] += fabs(half)
        dense.slack[w] += fabs(half)
        dense.coupling[v * dense.stride + w] = dense.coupling[w * dense.stride + v] = half
    return total < INFINITY         # nor is a NaN


cdef uint64_t _fix(Dense* dense, signed char* state) noexcept nogil:
    # Gives a state to nodes that want it whatever their free neighbours do, until there are none;
    # returns the others.  No half-integral optimum loses by that, nor gains half nodes.
    cdef uint64_t free = ~<uint64_t>0 >> (64 - dense.n), fixed
    cdef double* cost = dense.cost
    cdef double* slack = dense.slack
    cdef const double* row
    cdef double sign
    cdef Py_ssize_t v, w
    while free:
        fixed = 0
        for v in range(dense.n):
            fixed |= <uint64_t>(fabs(cost[v]) >= slack[v]) << v
        fixed &= free
        if not fixed:
            break
        free ^= fixed
        while fixed:
            v = ss_lowest(fixed)
            fixed &= fixed - 1
            state[v] = cost[v] < 0
            sign = 1 - 2 * state[v]
            row = dense.coupling + v * dense.stride
            for w in range(dense.stride):
                cost[w] += sign * row[w]
                slack[w] -= fabs(row[w])
    return free


cdef inline uint64_t _mirror(const Core* core, uint64_t nodes) noexcept nogil:
    return (nodes >> core.k | nodes << core.k) & (~<uint64_t>0 >> (64 - 2 * core.k))


cdef inline int _negation(const Core* core, int u) noexcept nogil:
    return u - core.k if u >= core.k else u + core.k


cdef void _place(Core* core, const Dense* dense, const int* node) noexcept nogil:
    cdef int k = core.k, i, j
    cdef double cost, c, near, far
    cdef const double* row
    cdef double* same
    cdef double* other
    cdef uint64_t attract, repel
    core.source = 0
    for i in range(k):
        cost = dense.cost[node[i]]
        if fabs(cost) <= ROUNDING * dense.size[node[i]]:
            cost = 0
        core.excess[i] = cost if cost > 0 else 0
        core.excess[i + k] = -cost if cost < 0 else 0
        core.source |= <uint64_t>(cost > 0) << i | <uint64_t>(cost < 0) << (i + k)
        row = dense.coupling + node[i] * dense.stride
        same = core.residual + i * 2 * k
        other = same + k * 2 * k
        attract = repel = 0
        for j in range(k):
            c = row[node[j]]
            near = c if c > 0 else 0
            far = -c if c < 0 else 0
            same[j] = other[j + k] = near
            same[j + k] = other[j] = far
            attract |= <uint64_t>(c > 0) << j
            repel |= <uint64_t>(c < 0) << j
        core.out[i] = attract | repel << k
        core.out[i + k] = repel | attract << k


cdef inline void _carry(Core* core, int u, int v, double amount) noexcept nogil:
    cdef Py_ssize_t width = 2 * core.k
    cdef double* there = core.residual + u * width + v
    cdef double* back = core.residual + v * width + u
    cdef double left = there[0] - amount
    left = left if left > 0 else 0
    there[0] = left
    core.out[u] &= ~(<uint64_t>(left <= 0) << v)
    back[0] += amount
    core.out[v] |= ONE << u


cdef inline void _spend(Core* core, int u, double amount) noexcept nogil:
    core.excess[u] -= amount
    if core.excess[u] <= 0:
        core.excess[u] = 0
        core.source &= ~(ONE << u)


cdef void _augment(Core* core, const int* path, int length) noexcept nogil:
    # Along `path` from source to sink and along its mirror image, as much as both can carry.  What
    # both draw from is shared; `x - x / 2` is not 0 for the smallest of all numbers.
    cdef int j, u, v, end = _negation(core, path[length])
    cdef double push = core.excess[path[0]], room
    if end == path[0]:
        push -= push / 2
    elif core.excess[end] < push:
        push = core.excess[end]
    for j in range(length):
        u, v = path[j], path[j + 1]
        room = core.residual[u * 2 * core.k + v]
        # Shortest ways have an arc and its mirror image only as each other's counterparts.
        if (length > 3 and _negation(core, path[length - j]) == u
                and _negation(core, path[length - j - 1]) == v):
            room -= room / 2
        push = room if room < push else push
    for j in range(length):
        _carry(core, path[j], path[j + 1], push)
        _carry(core, _negation(core, path[j + 1]), _negation(core, path[j]), push)
    _spend(core, path[0], push)
    _spend(core, end, push)


cdef void _flow(Core* core) noexcept nogil:
    cdef uint64_t level[65]         # the last may be the empty one after all nodes
    cdef int path[64]
    cdef uint64_t seen, rest, sink
    cdef int length, depth, u
    while True:
        level[0] = seen = core.source
        sink = _mirror(core, core.source)
        length = 0
        while level[length] and not level[length] & sink:
            rest = level[length]
            length += 1
            level[length] = 0
            while rest:
                level[length] |= core.out[ss_lowest(rest)]
                rest &= rest - 1
            level[length] &= ~seen
            seen |= level[length]
        if not level[length]:
            return
        # Nodes on shortest ways are as far from the source as their mirror image from the sink.
        for depth in range(length / 2 + 1):
            level[depth] &= _mirror(core, level[length - depth])
            level[length - depth] = _mirror(core, level[depth])
        while level[0]:
            path[0] = ss_lowest(level[0])
            depth = 0
            while True:
                if depth == length:
                    _augment(core, path, length)
                    level[0] &= core.source
                    level[length] &= _mirror(core, core.source)
                    break
                u = path[depth]
                rest = core.out[u] & level[depth + 1]
                if rest:
                    depth += 1
                    path[depth] = ss_lowest(rest)
                    continue
                level[depth] &= ~(ONE << u)     # a dead end for the rest of this phase
                if depth == 0:
                    break
                depth -= 1


cdef void _sweep(Core* core, const Dense* dense, const int* node) noexcept nogil:
    # Closes arcs and terminals that only rounding left open.
    cdef int k = core.k, i, j
    cdef double* same
    cdef double* other
    cdef const double* row
    cdef double dust
    cdef uint64_t attract, repel, attract2, repel2
    for i in range(k):
        dust = DUST / 2 * dense.size[node[i]]
        if core.excess[i] <= dust:
            core.source &= ~(ONE << i)
        if core.excess[i + k] <= dust:
            core.source &= ~(ONE << (i + k))
        row = dense.coupling + node[i] * dense.stride
        same = core.residual + i * 2 * k
        other = same + k * 2 * k
        attract = repel = attract2 = repel2 = 0
        for j in range(k):
            # An arc and its twin have twice the coupling together.
            dust = 2 * DUST * fabs(row[node[j]])
            attract |= <uint64_t>(same[j] > dust) << j
            repel |= <uint64_t>(same[j + k] > dust) << j
            repel2 |= <uint64_t>(other[j] > dust) << j
            attract2 |= <uint64_t>(other[j + k] > dust) << j
        core.out[i] = attract | repel << k
        core.out[i + k] = repel2 | attract2 << k


cdef uint64_t _reach(const Core* core, uint64_t start) noexcept nogil:
    cdef uint64_t reached = start, fresh = start
    cdef int u
    while fresh:
        u = ss_lowest(fresh)
        fresh &= fresh - 1
        fresh |= core.out[u] & ~reached
        reached |= core.out[u]
    return reached


cdef void _decide(const Core* core, const int* node, signed char* state) noexcept nogil:
    # What the source reaches is on its side in all minimum cuts, its mirror image on the sink's.
    # Of the others those are half that imply their negation and are implied by it.
    cdef uint64_t side = _reach(core, core.source), free, implied, back
    cdef int i, u, other
    free = ~(side | _mirror(core, side)) & (~<uint64_t>0 >> (64 - 2 * core.k))
    while free:
        u = ss_lowest(free)
        other = _negation(core, u)
        implied = _reach(core, ONE << u)
        if implied >> other & 1:
            back = _reach(core, ONE << other)
            if back >> u & 1:
                # Half, as is all that u implies and is implied by: what leads to u mirrors `back`.
                free &= ~(implied & _mirror(core, back))
                continue
            implied = back
        # All of it goes to one side: were some decided otherwise, u would be as well.
        side |= implied
        free &= ~(implied | _mirror(core, implied))
    for i in range(core.k):
        if side >> i & 1:
            state[node[i]] = 0
        else:
            state[node[i]] = 1 if side >> (i + core.k) & 1 else 2


cdef bint small_roof(const Model* model, signed char* state, char* work) noexcept nogil:
    cdef Dense dense
    cdef Core core
    cdef uint64_t free
    cdef int node[SMALL]
    if model.n > SMALL:
        return False
    dense.n, dense.stride = model.n, _stride(model.n)
    dense.cost = <double*>work
    dense.slack = dense.cost + dense.stride
    dense.size = dense.slack + dense.stride
    dense.coupling = dense.size + dense.stride
    if not _read(&dense, model):
        return False
    free = _fix(&dense, state)
    if not free:
        return True
    core.k = 0
    while free:
        node[core.k] = ss_lowest(free)
        core.k += 1
        free &= free - 1
    core.excess = dense.coupling + dense.n * dense.stride
    core.residual = core.excess + 2 * core.k
    _place(&core, &dense, node)
    _flow(&core)
    _sweep(&core, &dense, node)
    _decide(&core, node, state)
    return True
