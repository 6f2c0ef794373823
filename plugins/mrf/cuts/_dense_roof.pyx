"""Roof duality of dense models of 33 to 256 nodes: as in ``_small_roof``, with sets of several words.

Of the k nodes that no score fixes, node i is bit i and its negation i' the same bit of the words of
the second half.
"""

from libc.math cimport fabs
from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset

from structsolve.plugins.mrf.tables._model cimport Model
from structsolve.plugins.mrf.cuts._small_roof cimport (
    SMALL, Dense, dense_stride, fix_node, place_dense, read_dense, solve_small, ss_lowest,
)


# As in _roof_duality: a sum that is rounding, and the residual of a saturated arc by rounding.
cdef double ROUNDING = 1e-15
cdef double DUST = 1e-12
cdef uint64_t ONE = 1


cdef struct Doubled:
    int k, half                 # nodes, what to add to a node for its negation
    double* excess              # (half + k,) residual from the source; of i', that from i to the sink
    double* residual            # (2 k, 2 k), equal at (i, j) and (j', i'), without the gap from k on
    uint64_t* out               # (half + k, words) nodes that residual arcs lead to
    uint64_t* level             # (2 k + 1, words) nodes by distance, one more for an empty set
    uint64_t source[WORDS]      # nodes with excess


cdef inline bint _fits(Py_ssize_t n, Py_ssize_t m) noexcept nogil:
    return SMALL < n <= LARGE and m * SPARSE >= n * n


cdef Py_ssize_t dense_roof_bytes(Py_ssize_t n, Py_ssize_t m) noexcept nogil:
    cdef Py_ssize_t words, sets
    # A model of fewer nodes may be dense.
    n = n if n < LARGE else LARGE
    while n > SMALL and not _fits(n, m):
        n -= 1
    words = (n + 63) / 64 * 2
    sets = 32 * words + 3 * n + 1
    return ((3 + n) * dense_stride(n) + 32 * words + n + 4 * n * n + sets * words) * sizeof(double)


cdef int _fix(Dense* dense, signed char* state, int* node) noexcept nogil:
    # Fix nodes that prefer a state whatever their free neighbours do, until none is left; returns
    # the number of the others, in `node`.  No half-integral optimum loses by that, nor gains half
    # nodes.
    cdef uint64_t free[WORDS]
    cdef uint64_t fixed
    cdef Py_ssize_t v, b, first, words = (dense.n + 63) / 64
    cdef bint again = True
    cdef int k = 0
    for b in range(words):
        first = dense.n - 64 * b
        free[b] = ~<uint64_t>0 >> (64 - first if first < 64 else 0)
    while again:
        again = False
        for b in range(words):
            if free[b] == 0:
                continue
            first, fixed = 64 * b, 0
            for v in range(first, first + 64 if first + 64 < dense.n else dense.n):
                fixed |= <uint64_t>(fabs(dense.cost[v]) >= dense.slack[v]) << (v - first)
            fixed &= free[b]
            free[b] ^= fixed
            again |= fixed != 0
            while fixed:
                v = first + ss_lowest(fixed)
                fixed &= fixed - 1
                fix_node(dense, v, state)
    for b in range(words):
        while free[b]:
            node[k] = <int>(64 * b + ss_lowest(free[b]))
            k += 1
            free[b] &= free[b] - 1
    return k


cdef inline int _first(const uint64_t* nodes, const uint64_t* others, int words) noexcept nogil:
    # The first node of both sets, or -1.
    cdef int b
    for b in range(words):
        if nodes[b] & others[b]:
            return 64 * b + ss_lowest(nodes[b] & others[b])
    return -1


cdef inline bint _has(const uint64_t* nodes, int u) noexcept nogil:
    return nodes[u >> 6] >> (u & 63) & 1


cdef inline void _drop(uint64_t* nodes, int u) noexcept nogil:
    nodes[u >> 6] &= ~(ONE << (u & 63))


cdef inline void _keep(uint64_t* nodes, const uint64_t* others, int words) noexcept nogil:
    cdef int b
    for b in range(words):
        nodes[b] &= others[b]


cdef inline void _mirror(const uint64_t* nodes, uint64_t* negations, int words) noexcept nogil:
    cdef int b, half = words / 2
    for b in range(half):
        negations[b], negations[b + half] = nodes[b + half], nodes[b]


cdef inline int _negation(const Doubled* graph, int u) noexcept nogil:
    return u - graph.half if u >= graph.half else u + graph.half


cdef inline int _place_of(const Doubled* graph, int u) noexcept nogil:
    return u - graph.half + graph.k if u >= graph.half else u


cdef inline double* _arc(const Doubled* graph, int u, int v) noexcept nogil:
    return graph.residual + _place_of(graph, u) * 2 * graph.k + _place_of(graph, v)


cdef inline void _open(Doubled* graph, const Dense* dense, const int* node, double dust,
                       int words) noexcept nogil:
    # out <- arcs with more than a share `dust` of the coupling.
    cdef int k = graph.k, half = words / 2, i, j, b, first
    cdef const double* row
    cdef const double* same
    cdef const double* other
    cdef uint64_t* out
    cdef uint64_t* negated
    cdef uint64_t attract, repel, attract2, repel2
    cdef double least
    for i in range(k):
        row = dense.coupling + node[i] * dense.stride
        same, other = _arc(graph, i, 0), _arc(graph, i + graph.half, 0)
        out, negated = graph.out + i * words, graph.out + (i + graph.half) * words
        for b in range(half):
            attract = repel = attract2 = repel2 = 0
            first = 64 * b
            for j in range(first, first + 64 if first + 64 < k else k):
                least = dust * fabs(row[node[j]])
                attract |= <uint64_t>(same[j] > least) << (j - first)
                repel |= <uint64_t>(same[j + k] > least) << (j - first)
                repel2 |= <uint64_t>(other[j] > least) << (j - first)
                attract2 |= <uint64_t>(other[j + k] > least) << (j - first)
            out[b], out[b + half] = attract, repel
            negated[b], negated[b + half] = repel2, attract2


cdef inline void _place(Doubled* graph, const Dense* dense, const int* node,
                        int words) noexcept nogil:
    cdef int k = graph.k, i, j
    cdef double cost, c, near, far
    cdef const double* row
    cdef double* same
    cdef double* other
    memset(graph.source, 0, words * sizeof(uint64_t))
    for i in range(k):
        cost = dense.cost[node[i]]
        if fabs(cost) <= ROUNDING * dense.size[node[i]]:
            cost = 0
        graph.excess[i] = cost if cost > 0 else 0
        graph.excess[i + graph.half] = -cost if cost < 0 else 0
        j = i + graph.half if cost < 0 else i
        graph.source[j >> 6] |= <uint64_t>(cost != 0) << (j & 63)
        row = dense.coupling + node[i] * dense.stride
        same, other = _arc(graph, i, 0), _arc(graph, i + graph.half, 0)
        for j in range(k):
            c = row[node[j]]
            near = c if c > 0 else 0
            far = -c if c < 0 else 0
            same[j] = other[j + k] = near
            same[j + k] = other[j] = far
    _open(graph, dense, node, 0, words)


cdef inline void _carry(Doubled* graph, int u, int v, double amount, int words) noexcept nogil:
    cdef double* there = _arc(graph, u, v)
    cdef double* back = _arc(graph, v, u)
    cdef double left = there[0] - amount
    left = left if left > 0 else 0
    there[0] = left
    graph.out[u * words + (v >> 6)] &= ~(<uint64_t>(left <= 0) << (v & 63))
    back[0] += amount
    graph.out[v * words + (u >> 6)] |= ONE << (u & 63)


cdef inline void _spend(Doubled* graph, int u, double amount) noexcept nogil:
    graph.excess[u] -= amount
    if graph.excess[u] <= 0:
        graph.excess[u] = 0
        _drop(graph.source, u)


cdef inline void _augment(Doubled* graph, const int* path, int length, int words) noexcept nogil:
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
        room = _arc(graph, u, v)[0]
        # A shortest path has an arc and its mirror image only at mirrored positions.
        if (length > 3 and _negation(graph, path[length - j]) == u
                and _negation(graph, path[length - j - 1]) == v):
            room -= room / 2
        push = room if room < push else push
    for j in range(length):
        _carry(graph, path[j], path[j + 1], push, words)
        _carry(graph, _negation(graph, path[j + 1]), _negation(graph, path[j]), push, words)
    _spend(graph, path[0], push)
    _spend(graph, end, push)


cdef inline int _levels(Doubled* graph, int words) noexcept nogil:
    # level <- the nodes of shortest paths from the source to the sink, by distance; returns the
    # length of these paths, or -1 if there is none.
    cdef uint64_t seen[WORDS]
    cdef uint64_t mirrored[WORDS]
    cdef uint64_t* here = graph.level
    cdef uint64_t* there
    cdef const uint64_t* out
    cdef uint64_t rest
    cdef int length = 0, b, c
    memcpy(here, graph.source, words * sizeof(uint64_t))
    memcpy(seen, here, words * sizeof(uint64_t))
    _mirror(here, mirrored, words)
    while _first(here, mirrored, words) < 0:
        if _first(here, here, words) < 0:
            return -1
        there = here + words
        memset(there, 0, words * sizeof(uint64_t))
        for b in range(words):
            rest = here[b]
            while rest:
                out = graph.out + (64 * b + ss_lowest(rest)) * words
                rest &= rest - 1
                for c in range(words):
                    there[c] |= out[c]
        for c in range(words):
            there[c] &= ~seen[c]
            seen[c] |= there[c]
        here = there
        length += 1
    # Nodes on shortest paths are as far from the source as their mirror images from the sink.
    for b in range(length / 2 + 1):
        here, there = graph.level + b * words, graph.level + (length - b) * words
        _mirror(there, mirrored, words)
        _keep(here, mirrored, words)
        memcpy(mirrored, here, words * sizeof(uint64_t))
        _mirror(mirrored, there, words)
    return length


cdef inline void _flow(Doubled* graph, int words) noexcept nogil:
    cdef int path[2 * LARGE]
    cdef uint64_t sink[WORDS]
    cdef uint64_t* level = graph.level
    cdef int length = _levels(graph, words), depth, u, v
    while length >= 0:
        while True:
            path[0] = _first(level, level, words)
            if path[0] < 0:
                break
            depth = 0
            while True:
                if depth == length:
                    _augment(graph, path, length, words)
                    _keep(level, graph.source, words)
                    _mirror(graph.source, sink, words)
                    _keep(level + length * words, sink, words)
                    break
                u = path[depth]
                v = _first(graph.out + u * words, level + (depth + 1) * words, words)
                if v >= 0:
                    depth += 1
                    path[depth] = v
                    continue
                _drop(level + depth * words, u)     # a dead end for the rest of this phase
                if depth == 0:
                    break
                depth -= 1
        length = _levels(graph, words)


cdef inline void _reach(const Doubled* graph, const uint64_t* start, uint64_t* reached,
                        int words) noexcept nogil:
    cdef uint64_t fresh[WORDS]
    cdef const uint64_t* out
    cdef uint64_t new
    cdef int u, c
    memcpy(fresh, start, words * sizeof(uint64_t))
    memcpy(reached, start, words * sizeof(uint64_t))
    while True:
        u = _first(fresh, fresh, words)
        if u < 0:
            return
        _drop(fresh, u)
        out = graph.out + u * words
        for c in range(words):
            new = out[c] & ~reached[c]
            fresh[c] |= new
            reached[c] |= new


cdef inline void _reach_from(const Doubled* graph, int u, uint64_t* reached,
                             int words) noexcept nogil:
    cdef uint64_t start[WORDS]
    memset(start, 0, words * sizeof(uint64_t))
    start[u >> 6] = ONE << (u & 63)
    _reach(graph, start, reached, words)


cdef inline void _decide(const Doubled* graph, const int* node, signed char* state,
                         int words) noexcept nogil:
    # Nodes reached from the source are on its side in all minimum cuts, mirrors on the sink's.
    # Of the others, a node is half where it implies its negation and is implied by it.
    cdef uint64_t side[WORDS]
    cdef uint64_t free[WORDS]
    cdef uint64_t implied[WORDS]
    cdef uint64_t back[WORDS]
    cdef uint64_t mirrored[WORDS]
    cdef int i, u, other, b
    _reach(graph, graph.source, side, words)
    _mirror(side, mirrored, words)
    memset(free, 0, words * sizeof(uint64_t))
    for i in range(graph.k):
        free[i >> 6] |= ONE << (i & 63)
    _mirror(free, implied, words)
    for b in range(words):
        free[b] = (free[b] | implied[b]) & ~(side[b] | mirrored[b])
    while True:
        u = _first(free, free, words)
        if u < 0:
            break
        other = _negation(graph, u)
        _reach_from(graph, u, implied, words)
        if _has(implied, other):
            _reach_from(graph, other, back, words)
            if _has(back, u):
                # Half, as are all nodes that u implies and is implied by: the nodes that imply u
                # mirror `back`.
                _mirror(back, mirrored, words)
                for b in range(words):
                    free[b] &= ~(implied[b] & mirrored[b])
                continue
            memcpy(implied, back, words * sizeof(uint64_t))
        # All of `implied` joins one side: another decision on any of them would change u's.
        _mirror(implied, mirrored, words)
        for b in range(words):
            side[b] |= implied[b]
            free[b] &= ~(implied[b] | mirrored[b])
    for i in range(graph.k):
        if _has(side, i):
            state[node[i]] = 0
        else:
            state[node[i]] = 1 if _has(side, i + graph.half) else 2


cdef void _solve(Doubled* graph, const Dense* dense, const int* node, signed char* state,
                 int words) noexcept nogil:
    cdef int i
    cdef double dust
    graph.half = 32 * words
    graph.residual = graph.excess + graph.half + graph.k
    graph.out = <uint64_t*>(graph.residual + 4 * graph.k * graph.k)
    graph.level = graph.out + (graph.half + graph.k) * words
    _place(graph, dense, node, words)
    _flow(graph, words)
    # Close terminals and arcs that only rounding left open; an arc and its twin have twice the
    # coupling together.
    for i in range(graph.k):
        dust = DUST / 2 * dense.size[node[i]]
        if graph.excess[i] <= dust:
            _drop(graph.source, i)
        if graph.excess[i + graph.half] <= dust:
            _drop(graph.source, i + graph.half)
    _open(graph, dense, node, 2 * DUST, words)
    _decide(graph, node, state, words)


cdef bint dense_roof(const Model* model, signed char* state, char* work) noexcept nogil:
    cdef Dense dense
    cdef Doubled graph
    cdef int node[LARGE]
    if not _fits(model.n, model.m):
        return False
    place_dense(&dense, model.n, work)
    if not read_dense(&dense, model):
        return False
    graph.k = _fix(&dense, state, node)
    graph.excess = dense.coupling + dense.n * dense.stride
    if 0 < graph.k <= SMALL:
        solve_small(&dense, graph.k, node, graph.excess, state)
    elif graph.k:
        _solve(&graph, &dense, node, state, (graph.k + 63) / 64 * 2)
    return True
