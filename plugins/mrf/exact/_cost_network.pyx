"""Costs of a graph whose changes are recorded, so that a search can go back."""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from structsolve.plugins.mrf.tables._model cimport Model, magnitude, most_states, weight_of

# Differences below this, in units of the scores, may be rounding.
cdef double ROUNDING = 1e-13


cdef void* _take(Network* net, double count, size_t size, bint zeros) noexcept nogil:
    cdef size_t items = <size_t>count + 1
    cdef void* block = calloc(items, size) if zeros else malloc(items * size)
    if block == NULL:
        net.high = -INFINITY    # make_network() gives up
    net.blocks[net.n_blocks] = block
    net.n_blocks += 1
    return block


cdef bint _place(Network* net) noexcept nogil:
    cdef const Model* model = net.model
    cdef Py_ssize_t n = model.n, m = model.m, width = model.unary_at[n], e, phi = 0
    cdef Py_ssize_t K = most_states(model), more = min(2 * K, CELLS + 1), q
    net.most_edges = <int>(m + n)
    for e in range(m):
        phi += model.states[model.ends[2 * e]] + model.states[model.ends[2 * e + 1]]
    net.ends = <int*>_take(net, 2 * net.most_edges, sizeof(int), False)
    net.cell_at = <Py_ssize_t*>_take(net, net.most_edges + 1, sizeof(Py_ssize_t), False)
    net.phi_at = <Py_ssize_t*>_take(net, net.most_edges + 1, sizeof(Py_ssize_t), False)
    net.cells = <double*>_take(net, model.cell_at[m] + <double>n * min(K * K, CELLS),
                               sizeof(double), False)
    net.x = <double*>_take(net, width + phi + <double>n * more, sizeof(double), True)
    net.stamp = <int64_t*>_take(net, width + phi + <double>n * more, sizeof(int64_t), True)
    net.alive = <char*>_take(net, width, 1, True)
    net.size = <int*>_take(net, n, sizeof(int), True)
    net.near = <int*>_take(net, 2 * m, sizeof(int), False)
    net.rank = <int*>_take(net, n, sizeof(int), False)
    net.weight = <double*>_take(net, net.most_edges, sizeof(double), False)
    net.removed = <int*>_take(net, 2 * width, sizeof(int), False)
    net.eliminations = <Elimination*>_take(net, n, sizeof(Elimination), False)
    for q in range(3):
        net.queue[q] = <int*>_take(net, n, sizeof(int), False)
        net.waits[q] = <char*>_take(net, n, 1, True)
        net.head[q] = net.count[q] = 0
    net.lost = <char*>_take(net, n, 1, True)
    net.from_v = <double*>_take(net, K, sizeof(double), False)
    net.to_w = <double*>_take(net, K, sizeof(double), False)
    net.total = <double*>_take(net, K, sizeof(double), False)
    return net.high > 0


cdef void _merge(Network* net) noexcept nogil:
    # Add up parallel edges.
    cdef Py_ssize_t j, i, s, t, step, stride
    cdef int v, w, e, first
    cdef int* seen = net.queue[0]
    cdef double* cell
    for v in range(net.n):
        seen[v] = -1
    for v in range(net.n):
        for j in range(net.near_at[v], net.near_at[v + 1]):
            e = net.near[j]
            w = across(net, e, v) if e >= 0 else -1
            if w < v:
                continue
            first, seen[w] = seen[w], e
            if first < 0:
                continue
            seen[w] = first
            cell = net.cells + net.cell_at[first]
            step = net.states[w] if net.ends[2 * first] == v else 1
            stride = 1 if net.ends[2 * first] == v else net.states[v]
            for s in range(net.states[v]):
                for t in range(net.states[w]):
                    cell[s * step + t * stride] += cell_cost(net, e, v, s, t)
            net.near[j] = -1
            for i in range(net.near_at[w], net.near_at[w + 1]):
                if net.near[i] == e:
                    net.near[i] = -1
        for j in range(net.near_at[v], net.near_at[v + 1]):
            if net.near[j] >= 0:
                seen[across(net, net.near[j], v)] = -1


cdef Network* make_network(const Model* model) noexcept nogil:
    cdef Network* net = <Network*>calloc(1, sizeof(Network))
    cdef Py_ssize_t v, s, e, k
    cdef double top, weight
    cdef double* out
    cdef const double* row
    if net == NULL:
        return NULL
    net.model, net.n, net.edges = model, model.n, <int>model.m
    net.states, net.unary_at, net.near_at = model.states, model.unary_at, model.near_at
    net.high = INFINITY
    if not _place(net):
        free_network(net)
        return NULL
    net.pruned = -INFINITY
    net.blame = -1
    net.most = magnitude(model)
    net.margin = ROUNDING * net.most
    net.unit = max(1e3 * net.margin, 1e-4 * net.most / (model.n + model.m))
    memcpy(net.near, model.near, 2 * model.m * sizeof(int))
    memcpy(net.ends, model.ends, 2 * model.m * sizeof(int))
    for v in range(model.n):
        net.rank[v] = -1
        row = model.unary + net.unary_at[v]
        top = -INFINITY
        for s in range(net.states[v]):
            top = max(top, row[s])
        for s in range(net.states[v]):
            if row[s] > -INFINITY:
                net.x[net.unary_at[v] + s] = top - row[s]
                net.alive[net.unary_at[v] + s] = 1
                net.size[v] += 1
        net.low -= top
    net.phi_at[0] = net.unary_at[model.n]
    net.cell_at[0] = 0
    for e in range(model.m):
        k = <Py_ssize_t>net.states[net.ends[2 * e]] * net.states[net.ends[2 * e + 1]]
        net.phi_at[e + 1] = (net.phi_at[e] + net.states[net.ends[2 * e]]
                             + net.states[net.ends[2 * e + 1]])
        net.cell_at[e + 1] = net.cell_at[e] + k
        row, out = model.pair + model.pair_at[e], net.cells + net.cell_at[e]
        weight = weight_of(model, e)
        top = -INFINITY
        for s in range(k):
            out[s] = -weight * row[s]
            top = max(top, -out[s])
        for s in range(k):
            out[s] = out[s] + top if top > -INFINITY else INFINITY
        net.low -= top
        net.weight[e] = 1
    _merge(net)
    return net


cdef void free_network(Network* net) noexcept nogil:
    cdef int i
    if net == NULL:
        return
    for i in range(net.n_blocks):
        free(net.blocks[i])
    free(net.changes)
    free(net)


cdef void assign(Network* net, int v, int s) noexcept nogil:
    cdef int t
    for t in range(net.states[v]):
        if t != s and net.alive[net.unary_at[v] + t]:
            remove_state(net, v, t)


cdef void undo(Network* net, Py_ssize_t changes, Py_ssize_t removed,
               int eliminations) noexcept nogil:
    cdef Elimination* last
    cdef int i, v
    while net.n_changes > changes:
        net.n_changes -= 1
        net.x[net.changes[net.n_changes].place] = net.changes[net.n_changes].before
    while net.n_removed > removed:
        net.n_removed -= 1
        v = net.removed[2 * net.n_removed]
        net.alive[net.unary_at[v] + net.removed[2 * net.n_removed + 1]] = 1
        net.size[v] += 1
    while net.n_eliminations > eliminations:
        net.n_eliminations -= 1
        last = net.eliminations + net.n_eliminations
        for i in range(4):
            if last.slot[i] >= 0:
                net.near[last.slot[i]] = last.before[i]
        net.rank[last.node] = -1
        net.edges = last.edges
