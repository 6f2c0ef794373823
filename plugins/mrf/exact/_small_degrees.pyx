"""Elimination of nodes with at most two undecided neighbours, during a search (Larrosa 2000)."""

from libc.math cimport INFINITY

from structsolve.plugins.mrf.exact._cost_network cimport (
    ARCS, CELLS, Elimination, FEW, Network, across, cell_cost, is_open, normalise, push,
    remove_state, set_cost,
)

# Most sums in the elimination of a node with two neighbours.
cdef double SUMS = 4096


cdef int _join(Network* net, int v, const int* edge, int u, int w, int old) noexcept nogil:
    # A table over both neighbours of v: the least cost of v and its edges, and the cost of `old`.
    cdef int e = net.edges
    cdef Py_ssize_t a, b, s, k = net.states[u], size = net.states[w], first = net.unary_at[v]
    cdef double least, x
    cdef double* out = net.cells + net.cell_at[e]
    net.work += <double>k * size * net.states[v]
    net.ends[2 * e], net.ends[2 * e + 1] = u, w
    net.cell_at[e + 1] = net.cell_at[e] + k * size
    net.phi_at[e + 1] = net.phi_at[e] + k + size
    net.weight[e] = 1
    for a in range(k + size):
        set_cost(net, net.phi_at[e] + a, 0)
    for a in range(k):
        for b in range(size):
            least = INFINITY
            for s in range(net.states[v]):
                if net.alive[first + s]:
                    x = (net.x[first + s] + cell_cost(net, edge[0], v, s, a)
                         + cell_cost(net, edge[1], v, s, b))
                    least = x if x < least else least
            out[a * size + b] = least if old < 0 else least + cell_cost(net, old, u, a, b)
    net.edges += 1
    return e


cdef void _shorten(Network* net, Elimination* record, const int* edge) noexcept nogil:
    # Replace a node and both edges by one edge, which absorbs one that is there.
    cdef int v = record.node, u = across(net, edge[0], v), w = across(net, edge[1], v)
    cdef int old = -1, e, i
    cdef Py_ssize_t j
    for j in range(net.near_at[u], net.near_at[u + 1]):
        if net.near[j] >= 0 and across(net, net.near[j], u) == w:
            old = net.near[j]
    e = _join(net, v, edge, u, w, old)
    _replace(net, record, 0, u, edge[0], e)
    _replace(net, record, 1, w, edge[1], e)
    if old >= 0:
        _replace(net, record, 2, u, old, -1)
        _replace(net, record, 3, w, old, -1)
    net.lost[u] = net.lost[w] = 1
    for i in range(2):
        push(net, FEW, u if i else w)
        push(net, ARCS, u if i else w)


cdef bint eliminate_node(Network* net, int v) noexcept nogil:
    # Eliminate v if it has two open neighbours at most; False if nothing is left of one.
    cdef Py_ssize_t j, t, s
    cdef int edge[2]
    cdef int count = 0, i, w
    cdef double least, x
    cdef Elimination* record = net.eliminations + net.n_eliminations
    if not is_open(net, v):
        return True
    for j in range(net.near_at[v], net.near_at[v + 1]):
        if net.near[j] >= 0 and is_open(net, across(net, net.near[j], v)):
            if count == 2:
                return True
            edge[count] = net.near[j]
            count += 1
    for i in range(4):
        record.slot[i] = -1
    if count:
        w = across(net, edge[0], v)
        t = net.states[w]
        if count == 2:
            s = net.states[across(net, edge[1], v)]
            if t * s > CELLS or <double>t * s * net.states[v] > SUMS:
                return True
    record.node, record.edges = v, net.edges
    net.rank[v] = net.n_eliminations
    net.n_eliminations += 1
    if count == 2:
        _shorten(net, record, edge)
        return True
    if count:
        net.work += <double>net.states[v] * net.states[w]
        for t in range(net.states[w]):
            if not net.alive[net.unary_at[w] + t]:
                continue
            least = INFINITY
            for s in range(net.states[v]):
                if net.alive[net.unary_at[v] + s]:
                    x = net.x[net.unary_at[v] + s] + cell_cost(net, edge[0], v, s, t)
                    least = x if x < least else least
            if least == INFINITY:
                remove_state(net, w, <int>t)
                if net.size[w] == 0:
                    return False
            elif least > 0:
                set_cost(net, net.unary_at[w] + t, net.x[net.unary_at[w] + t] + least)
        normalise(net, w)
        push(net, ARCS, w)
        push(net, FEW, w)
    return True


cdef void _replace(Network* net, Elimination* record, int i, int w, int before,
                   int after) noexcept nogil:
    cdef Py_ssize_t j = net.near_at[w]
    while net.near[j] != before:
        j += 1
    record.slot[i], record.before[i] = j, before
    net.near[j] = after


cdef void complete(const Network* net, int* label) noexcept nogil:
    cdef Py_ssize_t s, j
    cdef int i, v, w, e
    cdef double least, x
    for v in range(net.n):
        for s in range(net.states[v]):
            if net.alive[net.unary_at[v] + s]:
                label[v] = <int>s
                break
    for i in range(net.n_eliminations - 1, -1, -1):
        v = net.eliminations[i].node
        least = INFINITY
        for s in range(net.states[v]):
            if not net.alive[net.unary_at[v] + s]:
                continue
            x = net.x[net.unary_at[v] + s]
            for j in range(net.near_at[v], net.near_at[v + 1]):
                e = net.near[j]
                if e < 0:
                    continue
                w = across(net, e, v)
                if net.rank[w] < 0 or net.rank[w] > i:
                    x += cell_cost(net, e, v, s, label[w])
            if x < least:
                least, label[v] = x, <int>s
