"""Roof duality of small and of dense models, with sets of nodes as words and capacities in a matrix.

First, nodes are fixed whose own scores outweigh all influence of their neighbours, in practice most
nodes.  Dinic's algorithm runs on the doubled graph (see ``_roof_duality``) of the
others.  Level sets, arcs and the nodes that the source reaches are bits of words: on scores never
seen before a list of arcs costs a mispredicted branch for nearly every arc.  Flows are their own
mirror images (i -> j carries what j' -> i' does), which halves the work and makes distances to the
sink the mirror images of distances from the source.

Of the k nodes left, node i is bit i.  If all fit into one word, its negation i' is bit i + k; else
it is the same bit of the words of the second half.  The compiler makes a version for one word.
"""

from libc.math cimport fabs
from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset

from structsolve.plugins.mrf.tables._model cimport Model
from structsolve.plugins.mrf.cuts._dense_model cimport (
    Dense, dense_stride, fix_node, place_dense, read_dense,
)

cdef extern from *:
    """
    #if defined(_MSC_VER)
    #include <intrin.h>
    static __inline int ss_lowest(uint64_t x) {
      unsigned long bit;
      _BitScanForward64(&bit, x);
      return (int)bit;
    }
    #else
    #define ss_lowest(x) __builtin_ctzll(x)
    #endif
    """
    int ss_lowest(uint64_t x) nogil


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
    return n <= SMALL or (n <= LARGE and m * SPARSE >= n * n)


cdef Py_ssize_t dense_roof_bytes(Py_ssize_t n, Py_ssize_t m) noexcept nogil:
    cdef Py_ssize_t words, sets
    # A model of fewer nodes may be dense.
    n = n if n < LARGE else LARGE
    while not _fits(n, m):
        n -= 1
    words = (n + 63) / 64 * 2
    sets = 32 * words + 3 * n + 1
    return ((3 + n) * dense_stride(n) + 32 * words + n + 4 * n * n + sets * words) * sizeof(double)


cdef inline int _fix(Dense* dense, signed char* state, int* node,
                    Py_ssize_t words) noexcept nogil:
    # Fix nodes that prefer a state whatever their free neighbours do, until none is left; returns
    # the number of the others, in `node`.  No half-integral optimum loses by that, nor gains half
    # nodes.
    cdef uint64_t free[WORDS]
    cdef uint64_t fixed
    cdef Py_ssize_t v, b, first
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
            for v in range(first, first + 64 if b + 1 < words else dense.n):
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


cdef inline int _word(int u, int words) noexcept nogil:
    return u >> 6 if words > 1 else 0


cdef inline bint _has(const uint64_t* nodes, int u, int words) noexcept nogil:
    return nodes[_word(u, words)] >> (u & 63) & 1


cdef inline void _drop(uint64_t* nodes, int u, int words) noexcept nogil:
    nodes[_word(u, words)] &= ~(ONE << (u & 63))


cdef inline void _keep(uint64_t* nodes, const uint64_t* others, int words) noexcept nogil:
    cdef int b
    for b in range(words):
        nodes[b] &= others[b]


cdef inline void _mirror(const Doubled* graph, const uint64_t* nodes, uint64_t* negations,
                         int words) noexcept nogil:
    cdef int b, half = words / 2, k = graph.k
    if words == 1:
        negations[0] = (nodes[0] >> k | nodes[0] << k) & (~<uint64_t>0 >> (64 - 2 * k))
    for b in range(half):
        negations[b], negations[b + half] = nodes[b + half], nodes[b]


cdef inline int _negation(const Doubled* graph, int u) noexcept nogil:
    return u - graph.half if u >= graph.half else u + graph.half


cdef inline int _place_of(const Doubled* graph, int u, int words) noexcept nogil:
    return u - graph.half + graph.k if words > 1 and u >= graph.half else u


cdef inline double* _arc(const Doubled* graph, int u, int v, int words) noexcept nogil:
    return graph.residual + _place_of(graph, u, words) * 2 * graph.k + _place_of(graph, v, words)


cdef inline void _lead(Doubled* graph, int i, int b, uint64_t attract, uint64_t repel,
                       uint64_t repel2, uint64_t attract2, int words) noexcept nogil:
    # out <- word b of the nodes, and of the negations, that i's arcs lead to, and i''s.
    cdef int half = words / 2
    cdef uint64_t* out = graph.out + i * words + b
    cdef uint64_t* negated = graph.out + (i + graph.half) * words + b
    if words == 1:
        out[0], negated[0] = attract | repel << graph.k, repel2 | attract2 << graph.k
    else:
        out[0], out[half], negated[0], negated[half] = attract, repel, repel2, attract2


cdef inline void _close_dust(Doubled* graph, const Dense* dense, const int* node,
                             int words) noexcept nogil:
    # Close terminals and arcs that only rounding left open.
    cdef int k = graph.k, i, j, b, first
    cdef const double* row
    cdef const double* same
    cdef const double* other
    cdef uint64_t attract, repel, attract2, repel2
    cdef double dust
    for i in range(k):
        dust = DUST / 2 * dense.size[node[i]]
        if graph.excess[i] <= dust:
            _drop(graph.source, i, words)
        if graph.excess[i + graph.half] <= dust:
            _drop(graph.source, i + graph.half, words)
        row = dense.coupling + node[i] * dense.stride
        same, other = _arc(graph, i, 0, words), _arc(graph, i + graph.half, 0, words)
        for b in range((k + 63) / 64):
            attract = repel = attract2 = repel2 = 0
            first = 64 * b
            for j in range(first, first + 64 if first + 64 < k else k):
                # An arc and its twin have twice the coupling together.
                dust = 2 * DUST * fabs(row[node[j]])
                attract |= <uint64_t>(same[j] > dust) << (j - first)
                repel |= <uint64_t>(same[j + k] > dust) << (j - first)
                repel2 |= <uint64_t>(other[j] > dust) << (j - first)
                attract2 |= <uint64_t>(other[j + k] > dust) << (j - first)
            _lead(graph, i, b, attract, repel, repel2, attract2, words)


cdef inline void _place(Doubled* graph, const Dense* dense, const int* node,
                        int words) noexcept nogil:
    cdef int k = graph.k, i, j, b, first
    cdef double cost, c, near, far
    cdef const double* row
    cdef double* same
    cdef double* other
    cdef uint64_t attract, repel
    memset(graph.source, 0, words * sizeof(uint64_t))
    for i in range(k):
        cost = dense.cost[node[i]]
        if fabs(cost) <= ROUNDING * dense.size[node[i]]:
            cost = 0
        graph.excess[i] = cost if cost > 0 else 0
        graph.excess[i + graph.half] = -cost if cost < 0 else 0
        j = i + graph.half if cost < 0 else i
        graph.source[_word(j, words)] |= <uint64_t>(cost != 0) << (j & 63)
        row = dense.coupling + node[i] * dense.stride
        same, other = _arc(graph, i, 0, words), _arc(graph, i + graph.half, 0, words)
        for b in range((k + 63) / 64):
            attract = repel = 0
            first = 64 * b
            for j in range(first, first + 64 if first + 64 < k else k):
                c = row[node[j]]
                near = c if c > 0 else 0
                far = -c if c < 0 else 0
                same[j] = other[j + k] = near
                same[j + k] = other[j] = far
                attract |= <uint64_t>(c > 0) << (j - first)
                repel |= <uint64_t>(c < 0) << (j - first)
            _lead(graph, i, b, attract, repel, repel, attract, words)


cdef inline void _carry(Doubled* graph, int u, int v, double amount, int words) noexcept nogil:
    cdef double* there = _arc(graph, u, v, words)
    cdef double* back = _arc(graph, v, u, words)
    cdef double left = there[0] - amount
    left = left if left > 0 else 0
    there[0] = left
    graph.out[u * words + _word(v, words)] &= ~(<uint64_t>(left <= 0) << (v & 63))
    back[0] += amount
    graph.out[v * words + _word(u, words)] |= ONE << (u & 63)


cdef inline void _spend(Doubled* graph, int u, double amount, int words) noexcept nogil:
    graph.excess[u] -= amount
    if graph.excess[u] <= 0:
        graph.excess[u] = 0
        _drop(graph.source, u, words)


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
        room = _arc(graph, u, v, words)[0]
        # A shortest path has an arc and its mirror image only at mirrored positions.
        if (length > 3 and _negation(graph, path[length - j]) == u
                and _negation(graph, path[length - j - 1]) == v):
            room -= room / 2
        push = room if room < push else push
    for j in range(length):
        _carry(graph, path[j], path[j + 1], push, words)
        _carry(graph, _negation(graph, path[j + 1]), _negation(graph, path[j]), push, words)
    _spend(graph, path[0], push, words)
    _spend(graph, end, push, words)


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
    _mirror(graph, here, mirrored, words)
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
        _mirror(graph, there, mirrored, words)
        _keep(here, mirrored, words)
        memcpy(mirrored, here, words * sizeof(uint64_t))
        _mirror(graph, mirrored, there, words)
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
                    _mirror(graph, graph.source, sink, words)
                    _keep(level + length * words, sink, words)
                    break
                u = path[depth]
                v = _first(graph.out + u * words, level + (depth + 1) * words, words)
                if v >= 0:
                    depth += 1
                    path[depth] = v
                    continue
                _drop(level + depth * words, u, words)     # a dead end for the rest of this phase
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
        _drop(fresh, u, words)
        out = graph.out + u * words
        for c in range(words):
            new = out[c] & ~reached[c]
            fresh[c] |= new
            reached[c] |= new


cdef inline void _reach_from(const Doubled* graph, int u, uint64_t* reached,
                             int words) noexcept nogil:
    cdef uint64_t start[WORDS]
    memset(start, 0, words * sizeof(uint64_t))
    start[_word(u, words)] = ONE << (u & 63)
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
    _mirror(graph, side, mirrored, words)
    memset(free, 0, words * sizeof(uint64_t))
    for i in range(graph.k):
        free[_word(i, words)] |= ONE << (i & 63)
    _mirror(graph, free, implied, words)
    for b in range(words):
        free[b] = (free[b] | implied[b]) & ~(side[b] | mirrored[b])
    while True:
        u = _first(free, free, words)
        if u < 0:
            break
        other = _negation(graph, u)
        _reach_from(graph, u, implied, words)
        if _has(implied, other, words):
            _reach_from(graph, other, back, words)
            if _has(back, u, words):
                # Half, as are all nodes that u implies and is implied by: the nodes that imply u
                # mirror `back`.
                _mirror(graph, back, mirrored, words)
                for b in range(words):
                    free[b] &= ~(implied[b] & mirrored[b])
                continue
            memcpy(implied, back, words * sizeof(uint64_t))
        # All of `implied` joins one side: another decision on any of them would change u's.
        _mirror(graph, implied, mirrored, words)
        for b in range(words):
            side[b] |= implied[b]
            free[b] &= ~(implied[b] | mirrored[b])
    for i in range(graph.k):
        if _has(side, i, words):
            state[node[i]] = 0
        else:
            state[node[i]] = 1 if _has(side, i + graph.half, words) else 2


cdef inline void _solve(Doubled* graph, const Dense* dense, const int* node, signed char* state,
                        int words) noexcept nogil:
    graph.half = graph.k if words == 1 else 32 * words
    graph.residual = graph.excess + graph.half + graph.k
    graph.out = <uint64_t*>(graph.residual + 4 * graph.k * graph.k)
    graph.level = graph.out + (graph.half + graph.k) * words
    _place(graph, dense, node, words)
    _flow(graph, words)
    _close_dust(graph, dense, node, words)
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
    if dense.n <= 64:       # numbers of words that the compiler knows save a tenth of the time
        graph.k = _fix(&dense, state, node, 1)
    else:
        graph.k = _fix(&dense, state, node, (dense.n + 63) / 64)
    graph.excess = dense.coupling + dense.n * dense.stride
    if 0 < graph.k <= SMALL:
        _solve(&graph, &dense, node, state, 1)
    elif graph.k:
        _solve(&graph, &dense, node, state, (graph.k + 63) / 64 * 2)
    return True
