"""Roof duality of small models, with sets of nodes as words and capacities in a dense matrix.

First, nodes are fixed whose own scores outweigh all influence of their neighbours, in practice most
nodes.  Dinic's algorithm runs on the doubled graph (see ``_roof_duality``) of the
others.  Level sets, arcs and the nodes that the source reaches are bits of words: on scores never
seen before a list of arcs costs a mispredicted branch for nearly every arc.  Node i of the k nodes
left is bit i, its negation i' bit i + k.  Flows are their own mirror images (i -> j carries what
j' -> i' does), which halves the work and makes distances to the sink the mirror images of
distances from the source.
"""

from libc.math cimport INFINITY, fabs
from libc.stdint cimport uint64_t
from libc.string cimport memset

from structsolve.plugins.mrf.tables._model cimport Model

# As in _roof_duality: a sum that is rounding, and the residual of a saturated arc by rounding.
cdef double ROUNDING = 1e-15
cdef double DUST = 1e-12
cdef uint64_t ONE = 1


cdef struct Doubled:
    int k
    double* excess              # (2 k,) residual from the source; of i', that from i to the sink
    double* residual            # (2 k, 2 k), equal at (i, j) and (j', i')
    uint64_t out[64]            # nodes that residual arcs lead to
    uint64_t source             # nodes with excess


cdef Py_ssize_t small_roof_bytes(Py_ssize_t n) noexcept nogil:
    n = n if n < SMALL else SMALL
    return ((3 + n) * dense_stride(n) + 2 * n + 4 * n * n) * sizeof(double)


cdef bint read_dense(Dense* dense, const Model* model) noexcept nogil:
    cdef Py_ssize_t n = model.n, v, w, e
    cdef const double* t
    cdef double equal, other, size, c, half, known, total = 0
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
        known = dense.coupling[v * dense.stride + w]
        # Parallel edges add up, but the relaxation may satisfy both of two that are opposed.
        if (known > 0 and half < 0) or (known < 0 and half > 0):
            return False
        half += known
        dense.slack[v] += fabs(half) - fabs(known)
        dense.slack[w] += fabs(half) - fabs(known)
        dense.coupling[v * dense.stride + w] = dense.coupling[w * dense.stride + v] = half
    return total < INFINITY         # NaN fails too


cdef uint64_t _fix(Dense* dense, signed char* state) noexcept nogil:
    # Fix nodes that prefer a state whatever their free neighbours do, until none is left; returns
    # the others.  No half-integral optimum loses by that, nor gains half nodes.
    cdef uint64_t free = ~<uint64_t>0 >> (64 - dense.n), fixed
    cdef Py_ssize_t v
    while free:
        fixed = 0
        for v in range(dense.n):
            fixed |= <uint64_t>(fabs(dense.cost[v]) >= dense.slack[v]) << v
        fixed &= free
        if not fixed:
            break
        free ^= fixed
        while fixed:
            v = ss_lowest(fixed)
            fixed &= fixed - 1
            fix_node(dense, v, state)
    return free


cdef inline uint64_t _mirror(const Doubled* graph, uint64_t nodes) noexcept nogil:
    return (nodes >> graph.k | nodes << graph.k) & (~<uint64_t>0 >> (64 - 2 * graph.k))


cdef inline int _negation(const Doubled* graph, int u) noexcept nogil:
    return u - graph.k if u >= graph.k else u + graph.k


cdef void _place(Doubled* graph, const Dense* dense, const int* node) noexcept nogil:
    cdef int k = graph.k, i, j
    cdef double cost, c, near, far
    cdef const double* row
    cdef double* same
    cdef double* other
    cdef uint64_t attract, repel
    graph.source = 0
    for i in range(k):
        cost = dense.cost[node[i]]
        if fabs(cost) <= ROUNDING * dense.size[node[i]]:
            cost = 0
        graph.excess[i] = cost if cost > 0 else 0
        graph.excess[i + k] = -cost if cost < 0 else 0
        graph.source |= <uint64_t>(cost > 0) << i | <uint64_t>(cost < 0) << (i + k)
        row = dense.coupling + node[i] * dense.stride
        same = graph.residual + i * 2 * k
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
        graph.out[i] = attract | repel << k
        graph.out[i + k] = repel | attract << k


cdef inline void _carry(Doubled* graph, int u, int v, double amount) noexcept nogil:
    cdef Py_ssize_t width = 2 * graph.k
    cdef double* there = graph.residual + u * width + v
    cdef double* back = graph.residual + v * width + u
    cdef double left = there[0] - amount
    left = left if left > 0 else 0
    there[0] = left
    graph.out[u] &= ~(<uint64_t>(left <= 0) << v)
    back[0] += amount
    graph.out[v] |= ONE << u


cdef inline void _spend(Doubled* graph, int u, double amount) noexcept nogil:
    graph.excess[u] -= amount
    if graph.excess[u] <= 0:
        graph.excess[u] = 0
        graph.source &= ~(ONE << u)


cdef void _augment(Doubled* graph, const int* path, int length) noexcept nogil:
    # Push along `path` from source to sink, and along its mirror image, as much as both can
    # carry.  They share common sources; `x - x / 2` is not 0 for the smallest of all numbers.
    cdef int j, u, v, end = _negation(graph, path[length])
    cdef double push = graph.excess[path[0]], room
    if end == path[0]:
        push -= push / 2
    elif graph.excess[end] < push:
        push = graph.excess[end]
    for j in range(length):
        u, v = path[j], path[j + 1]
        room = graph.residual[u * 2 * graph.k + v]
        # A shortest path has an arc and its mirror image only at mirrored positions.
        if (length > 3 and _negation(graph, path[length - j]) == u
                and _negation(graph, path[length - j - 1]) == v):
            room -= room / 2
        push = room if room < push else push
    for j in range(length):
        _carry(graph, path[j], path[j + 1], push)
        _carry(graph, _negation(graph, path[j + 1]), _negation(graph, path[j]), push)
    _spend(graph, path[0], push)
    _spend(graph, end, push)


cdef void _flow(Doubled* graph) noexcept nogil:
    cdef uint64_t level[65]         # one more than nodes: the last may be empty
    cdef int path[64]
    cdef uint64_t seen, rest, sink
    cdef int length, depth, u
    while True:
        level[0] = seen = graph.source
        sink = _mirror(graph, graph.source)
        length = 0
        while level[length] and not level[length] & sink:
            rest = level[length]
            length += 1
            level[length] = 0
            while rest:
                level[length] |= graph.out[ss_lowest(rest)]
                rest &= rest - 1
            level[length] &= ~seen
            seen |= level[length]
        if not level[length]:
            return
        # Nodes on shortest paths are as far from the source as their mirror images from the sink.
        for depth in range(length / 2 + 1):
            level[depth] &= _mirror(graph, level[length - depth])
            level[length - depth] = _mirror(graph, level[depth])
        while level[0]:
            path[0] = ss_lowest(level[0])
            depth = 0
            while True:
                if depth == length:
                    _augment(graph, path, length)
                    level[0] &= graph.source
                    level[length] &= _mirror(graph, graph.source)
                    break
                u = path[depth]
                rest = graph.out[u] & level[depth + 1]
                if rest:
                    depth += 1
                    path[depth] = ss_lowest(rest)
                    continue
                level[depth] &= ~(ONE << u)     # a dead end for the rest of this phase
                if depth == 0:
                    break
                depth -= 1


cdef void _close_dust(Doubled* graph, const Dense* dense, const int* node) noexcept nogil:
    # Close arcs and terminals that only rounding left open.
    cdef int k = graph.k, i, j
    cdef double* same
    cdef double* other
    cdef const double* row
    cdef double dust
    cdef uint64_t attract, repel, attract2, repel2
    for i in range(k):
        dust = DUST / 2 * dense.size[node[i]]
        if graph.excess[i] <= dust:
            graph.source &= ~(ONE << i)
        if graph.excess[i + k] <= dust:
            graph.source &= ~(ONE << (i + k))
        row = dense.coupling + node[i] * dense.stride
        same = graph.residual + i * 2 * k
        other = same + k * 2 * k
        attract = repel = attract2 = repel2 = 0
        for j in range(k):
            # An arc and its twin have twice the coupling together.
            dust = 2 * DUST * fabs(row[node[j]])
            attract |= <uint64_t>(same[j] > dust) << j
            repel |= <uint64_t>(same[j + k] > dust) << j
            repel2 |= <uint64_t>(other[j] > dust) << j
            attract2 |= <uint64_t>(other[j + k] > dust) << j
        graph.out[i] = attract | repel << k
        graph.out[i + k] = repel2 | attract2 << k


cdef uint64_t _reach(const Doubled* graph, uint64_t start) noexcept nogil:
    cdef uint64_t reached = start, fresh = start
    cdef int u
    while fresh:
        u = ss_lowest(fresh)
        fresh &= fresh - 1
        fresh |= graph.out[u] & ~reached
        reached |= graph.out[u]
    return reached


cdef void _decide(const Doubled* graph, const int* node, signed char* state) noexcept nogil:
    # Nodes reached from the source are on its side in all minimum cuts, mirrors on the sink's.
    # Of the others, a node is half where it implies its negation and is implied by it.
    cdef uint64_t side = _reach(graph, graph.source), free, implied, back
    cdef int i, u, other
    free = ~(side | _mirror(graph, side)) & (~<uint64_t>0 >> (64 - 2 * graph.k))
    while free:
        u = ss_lowest(free)
        other = _negation(graph, u)
        implied = _reach(graph, ONE << u)
        if implied >> other & 1:
            back = _reach(graph, ONE << other)
            if back >> u & 1:
                # Half, as are all nodes that u implies and is implied by: the nodes that imply u
                # mirror `back`.
                free &= ~(implied & _mirror(graph, back))
                continue
            implied = back
        # All of `implied` joins one side: another decision on any of them would change u's.
        side |= implied
        free &= ~(implied | _mirror(graph, implied))
    for i in range(graph.k):
        if side >> i & 1:
            state[node[i]] = 0
        else:
            state[node[i]] = 1 if side >> (i + graph.k) & 1 else 2


cdef void solve_small(const Dense* dense, int k, const int* node, double* memory,
                      signed char* state) noexcept nogil:
    cdef Doubled graph
    graph.k = k
    graph.excess = memory
    graph.residual = graph.excess + 2 * k
    _place(&graph, dense, node)
    _flow(&graph)
    _close_dust(&graph, dense, node)
    _decide(&graph, node, state)


cdef bint small_roof(const Model* model, signed char* state, char* work) noexcept nogil:
    cdef Dense dense
    cdef uint64_t free
    cdef int node[SMALL]
    cdef int k = 0
    if model.n > SMALL:
        return False
    place_dense(&dense, model.n, work)
    if not read_dense(&dense, model):
        return False
    free = _fix(&dense, state)
    while free:
        node[k] = ss_lowest(free)
        k += 1
        free &= free - 1
    if k:
        solve_small(&dense, k, node, dense.coupling + dense.n * dense.stride, state)
    return True
