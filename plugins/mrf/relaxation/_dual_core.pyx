"""The local polytope over a few states of every node, by a primal-dual method.

Restarted Halpern iterations of the primal-dual hybrid gradient (Lu & Yang 2024, "Restarted Halpern
PDHG for linear programming"), preconditioned (Pock & Chambolle 2011).  Nodes stay on their simplex;
edges only stay positive, and are moved onto the polytope to read a point.
"""

from libc.math cimport INFINITY, exp, fabs, log, sqrt
from libc.string cimport memcpy, memset

from structsolve.plugins.mrf.relaxation._dual_passes cimport Split


cdef extern from "dual_edge.h" nogil:
    ctypedef struct ss_edge:
        Py_ssize_t rows, columns, used
        double* total
        const double* cost
        double* x
        double* next
        const double* first
        double* y
        double* y_next
        const double* y_first
        const double* u
        const double* v
        double* sum_u
        double* sum_v
    ctypedef void (*ss_edge_step)(const ss_edge* edge, double weight, double keep,
                                  double* moved) noexcept nogil
    ss_edge_step ss_pick_edge_step()

cdef ss_edge_step edge_step = ss_pick_edge_step()

# Iterations between checks of the gap.
cdef int LOOK = 40
# A round ends when the residual has fallen to ENOUGH of what it was at its start, to LESS of it
# and rises again, or when the round has taken LONG of all iterations.
cdef double ENOUGH = 0.2
cdef double LESS = 0.8
cdef double LONG = 0.36
# Score of padding.
cdef double NEVER = -1e30


cdef inline Py_ssize_t _padded(Py_ssize_t count) noexcept nogil:
    return (count + 3) // 4 * 4


cdef Py_ssize_t core_bytes(Py_ssize_t n, Py_ssize_t m, Py_ssize_t width, Py_ssize_t states,
                           Py_ssize_t cells) noexcept nogil:
    # An edge of a >= 2 by b states, b a multiple of four, has at most a b messages.
    return (8 * (n * width + 9 * states + 10 * cells + 2 * n + 2 * m + 3)
            + 4 * (4 * n + 3 * m + states) + 64)


cdef void place_core(Core* core, Py_ssize_t n, Py_ssize_t m, Py_ssize_t width, Py_ssize_t states,
                     Py_ssize_t cells, char* work) noexcept nogil:
    cdef Py_ssize_t size = states + cells
    core.most_states, core.most_cells = states, cells
    core.point, core.nodes, core.width, core.pointed = <double*>work, n, width, False
    core.cost = core.point + n * width
    core.x = core.cost + size
    core.x_next = core.x + size
    core.x_first = core.x_next + size
    core.trial = core.x_first + size
    core.best = core.trial + size
    core.y = core.best + size
    core.y_next = core.y + cells
    core.y_first = core.y_next + cells
    core.give = core.y_first + cells
    core.gain = core.give + cells
    core.beyond = core.gain + states
    core.rest = core.beyond + states
    core.degree = core.rest + states
    core.state_at = <Py_ssize_t*>(core.degree + n)
    core.cell_at = core.state_at + n + 1
    core.sum_at = core.cell_at + m + 1
    core.node = <int*>(core.sum_at + m + 1)
    core.count = core.node + n
    core.slot = core.count + n
    core.label = core.slot + n
    core.edge = core.label + n
    core.ends = core.edge + m
    core.state = core.ends + 2 * m


cdef bint build_core(Core* core, const Split* split, const int* label, double slack) noexcept nogil:
    cdef Py_ssize_t v, e, i, j, width = split.width, size = 0, count
    cdef int s
    core.n = core.m = 0
    for v in range(split.n):
        count = 0
        core.label[v] = label[v]
        core.slot[v] = -1
        if size + _padded(split.states[v]) > core.most_states:
            return False
        for s in range(split.states[v]):
            if s == label[v] or split.slack[v * width + s] >= -slack:
                core.state[size + count] = s
                count += 1
        if count > 1:
            core.slot[v] = <int>core.n
            core.node[core.n], core.count[core.n] = <int>v, <int>count
            core.state_at[core.n] = size
            core.n += 1
            size += _padded(count)
    core.states = core.state_at[core.n] = size
    core.cells = core.sums = 0
    for e in range(split.m):
        if core.slot[split.ends[2 * e]] < 0 or core.slot[split.ends[2 * e + 1]] < 0:
            continue
        core.edge[core.m] = <int>e
        core.cell_at[core.m], core.sum_at[core.m] = core.cells, core.sums
        for j in range(2):
            core.ends[2 * core.m + j] = i = core.slot[split.ends[2 * e + j]]
            core.sums += _padded(core.count[i])
        core.cells += core.count[core.ends[2 * core.m]] * _columns(core, core.m)
        core.m += 1
        if core.cells > core.most_cells:
            return False
    core.cell_at[core.m], core.sum_at[core.m] = core.cells, core.sums
    _set_costs(core, split)
    return True


cdef inline Py_ssize_t _columns(const Core* core, Py_ssize_t f) noexcept nogil:
    return _padded(core.count[core.ends[2 * f + 1]])


cdef void _set_costs(Core* core, const Split* split) noexcept nogil:
    cdef Py_ssize_t v, e, f, i, j, a, b, first, width = split.width
    cdef int s, w, side
    cdef double x
    cdef const int* states
    cdef double* cell = core.cost + core.states
    core.base = 0
    memset(core.cost, 0, core.states * sizeof(double))
    for v in range(split.n):
        i = core.slot[v]
        if i >= 0:
            core.degree[i] = 0
        first = core.state_at[i] if i >= 0 else 0
        for a in range(core.count[i] if i >= 0 else 1):
            s = core.state[first + a] if i >= 0 else core.label[v]
            x = split.node[v * split.node_step + s]
            for j in range(split.near_at[v], split.near_at[v + 1]):
                e = split.near[j]
                side = split.ends[2 * e] != v
                x -= split.taken[(2 * e + side) * width + s]
                # Remaining score of an edge to a node with one state; once for two such nodes.
                w = split.ends[2 * e + 1 - side]
                if core.slot[w] < 0 and (i >= 0 or side == 0):
                    w = core.label[w]
                    x += edge_rest(split, e, w, s) if side else edge_rest(split, e, s, w)
            if i >= 0:
                core.cost[first + a] = x
            else:
                core.base += x
    for f in range(core.m):
        e = core.edge[f]
        for i in range(2):
            core.degree[core.ends[2 * f + i]] += 1
        i = core.ends[2 * f]
        states = core.state + core.state_at[core.ends[2 * f + 1]]
        for a in range(core.count[i]):
            s = core.state[core.state_at[i] + a]
            for b in range(_columns(core, f)):
                cell[b] = (edge_rest(split, e, s, states[b])
                           if b < core.count[core.ends[2 * f + 1]] else NEVER)
            cell += _columns(core, f)


cdef void lift_core(const Core* core, Split* split) noexcept nogil:
    cdef Py_ssize_t f, e, i, j, a, v
    cdef int s, w, side
    cdef const double* give = core.give
    cdef const int* states
    cdef double* taken
    for f in range(core.m):
        e = core.edge[f]
        for side in range(2):
            i = core.ends[2 * f + side]
            taken = split.taken + (2 * e + side) * split.width
            for a in range(core.count[i]):
                taken[core.state[core.state_at[i] + a]] -= give[a]
            give += _padded(core.count[i])
    # What an edge keeps towards a node with one state goes to its other end.
    for i in range(core.n):
        v, states = core.node[i], core.state + core.state_at[i]
        for j in range(split.near_at[v], split.near_at[v + 1]):
            e = split.near[j]
            side = split.ends[2 * e] != v
            w = split.ends[2 * e + 1 - side]
            if core.slot[w] >= 0:
                continue
            w = core.label[w]
            taken = split.taken + (2 * e + side) * split.width
            for a in range(core.count[i]):
                s = states[a]
                taken[s] -= edge_rest(split, e, w, s) if side else edge_rest(split, e, s, w)


cdef inline void _onto_simplex(Py_ssize_t k, double* x) noexcept nogil:
    # Euclidean projection (Michelot 1986).
    cdef Py_ssize_t j, left, before = k + 1
    cdef double total, shift = -INFINITY
    if k == 2:
        shift = 0.5 + 0.5 * (x[0] - x[1])
        shift = 0 if not shift > 0 else (1 if shift > 1 else shift)
        x[0], x[1] = shift, 1 - shift
        return
    while True:
        total, left = -1, 0
        for j in range(k):
            if x[j] > shift:
                total += x[j]
                left += 1
        if left >= before or left == 0:
            break
        before, shift = left, total / left
    total = 0
    for j in range(k):
        x[j] = x[j] - shift if x[j] > shift else 0
        total += x[j]
    if not total > 0:       # rounding of huge numbers
        x[0] = total = 1
    for j in range(k):
        x[j] /= total


cdef void _step(Core* core, double keep, double* moved) noexcept nogil:
    # x_next, y_next <- one step of the primal-dual method; x, y <- the next point; moved <- squares
    # of the step's changes.
    cdef Py_ssize_t i, f, a, first, k
    cdef double step, x, d
    cdef double* new
    cdef double* old
    cdef ss_edge edge
    moved[0] = moved[1] = 0
    for i in range(core.n):
        first, k = core.state_at[i], core.count[i]
        new, old = core.x_next + first, core.x + first
        if core.degree[i] == 0:     # only its own scores
            f = 0
            for a in range(k):
                new[a] = 0
                f = a if core.cost[first + a] > core.cost[first + f] else f
            new[f] = 1
        else:
            step = 1 / (core.weight * core.degree[i])
            for a in range(k):
                new[a] = old[a] + step * core.gain[first + a]
            _onto_simplex(k, new)
        for a in range(k):
            d = new[a] - old[a]
            moved[0] += d * d
            x = 2 * new[a] - old[a]
            core.beyond[first + a] = x
            old[a] = keep * x + (1 - keep) * core.x_first[first + a]
    memcpy(core.gain, core.cost, core.states * sizeof(double))
    edge.total = core.rest
    for f in range(core.m):
        a = core.states + core.cell_at[f]
        edge.cost, edge.x, edge.next = core.cost + a, core.x + a, core.x_next + a
        edge.first = core.x_first + a
        a = core.sum_at[f]
        edge.y, edge.y_next, edge.y_first = core.y + a, core.y_next + a, core.y_first + a
        i = core.ends[2 * f]
        edge.rows = core.count[i]
        edge.u, edge.sum_u = core.beyond + core.state_at[i], core.gain + core.state_at[i]
        i = core.ends[2 * f + 1]
        edge.used, edge.columns = core.count[i], _padded(core.count[i])
        edge.v, edge.sum_v = core.beyond + core.state_at[i], core.gain + core.state_at[i]
        edge_step(&edge, core.weight, keep, moved)


cdef void solve_core(Core* core, double tol, double enough, int max_iter) noexcept nogil:
    cdef int done = 0, inner = 0
    cdef double first = 0, last = 0, residual
    cdef double[2] moved
    _begin(core)
    while True:
        _step(core, (inner + 1.0) / (inner + 2.0), moved)
        residual = sqrt(moved[0] * core.weight + moved[1] / core.weight)
        done += 1
        if done % LOOK == 0 or residual == 0:
            _look(core)
            if (core.bound - core.value <= tol or core.value >= enough or done >= max_iter
                    or residual == 0):
                _keep_point(core)
                return
        if inner == 0:
            first = residual
        elif (residual <= ENOUGH * first or (residual <= LESS * first and residual > last)
              or inner >= LONG * done):
            _begin_again(core)
            inner = 0
            continue
        last = residual
        inner += 1


cdef void _begin(Core* core) noexcept nogil:
    # At the labeling, without messages.
    cdef Py_ssize_t i, f, a, size = core.states + core.cells
    cdef double spread = 0
    cdef int* chosen = <int*>core.rest
    memset(core.x, 0, size * sizeof(double))
    memset(core.y, 0, core.sums * sizeof(double))
    for i in range(core.n):
        a = core.state_at[i]
        while core.state[a] != core.label[core.node[i]]:
            a += 1
        core.x[a] = 1
        chosen[i] = <int>(a - core.state_at[i])
    for f in range(core.m):
        core.x[core.states + core.cell_at[f] + chosen[core.ends[2 * f]] * _columns(core, f)
               + chosen[core.ends[2 * f + 1]]] = 1
    for a in range(size):
        spread += fabs(core.cost[a]) if core.cost[a] > 0.5 * NEVER else 0
    core.weight = spread / size if spread > 1e-300 * size else 1
    memset(core.y_next, 0, core.sums * sizeof(double))
    memset(core.y_first, 0, core.sums * sizeof(double))
    memset(core.beyond, 0, core.states * sizeof(double))
    memcpy(core.gain, core.cost, core.states * sizeof(double))
    core.value, core.bound = -INFINITY, INFINITY
    if core.pointed:
        _begin_at_point(core)
    memcpy(core.x_next, core.x, size * sizeof(double))
    memcpy(core.x_first, core.x, size * sizeof(double))
    _look(core)


cdef void _begin_at_point(Core* core) noexcept nogil:
    # x <- the nodes of the last best point, except those whose states have changed, and
    # the best pairs given these.
    cdef Py_ssize_t i, f, a
    cdef double total
    cdef double* x
    cdef const double* point
    memset(core.trial, 0, (core.states + core.cells) * sizeof(double))
    for i in range(core.n):
        x, point = core.trial + core.state_at[i], core.point + core.node[i] * core.width
        total = 0
        for a in range(core.count[i]):
            x[a] = point[core.state[core.state_at[i] + a]]
            total += x[a]
        if total < 0.5:
            memcpy(x, core.x + core.state_at[i], core.count[i] * sizeof(double))
            continue
        for a in range(core.count[i]):
            x[a] /= total
    for f in range(core.m):
        _move(core, f)
    memcpy(core.x, core.trial, (core.states + core.cells) * sizeof(double))


cdef void _keep_point(Core* core) noexcept nogil:
    cdef Py_ssize_t i, v, a
    core.pointed = True
    memset(core.point, 0, core.nodes * core.width * sizeof(double))
    for v in range(core.nodes):
        i = core.slot[v]
        if i < 0:
            core.point[v * core.width + core.label[v]] = 1
            continue
        for a in range(core.state_at[i], core.state_at[i] + core.count[i]):
            core.point[v * core.width + core.state[a]] = core.best[a]


cdef void _begin_again(Core* core) noexcept nogil:
    # A new round from the last step, with step sizes that match the primal and dual distances.
    cdef Py_ssize_t j, size = core.states + core.cells
    cdef double primal = 0, dual = 0, d
    for j in range(size):
        d = core.x_next[j] - core.x_first[j]
        primal += d * d
    for j in range(core.sums):
        d = core.y_next[j] - core.y_first[j]
        dual += d * d
    if primal > 1e-24 and dual > 1e-24 * core.weight * core.weight:
        core.weight = exp(0.25 * log(dual / primal) + 0.5 * log(core.weight))
    memcpy(core.x, core.x_next, size * sizeof(double))
    memcpy(core.x_first, core.x_next, size * sizeof(double))
    memcpy(core.y, core.y_next, core.sums * sizeof(double))
    memcpy(core.y_first, core.y_next, core.sums * sizeof(double))
    _add_messages(core, core.y)


cdef void _add_messages(Core* core, const double* y) noexcept nogil:
    # gain <- costs of nodes and these messages.
    cdef Py_ssize_t f, a, side, i
    cdef double* gain
    memcpy(core.gain, core.cost, core.states * sizeof(double))
    for f in range(core.m):
        for side in range(2):
            i = core.ends[2 * f + side]
            gain = core.gain + core.state_at[i]
            for a in range(core.count[i]):
                gain[a] += y[a]
            y += _padded(core.count[i])


cdef void _look(Core* core) noexcept nogil:
    # The bound of y_next, and the value of x_next moved onto the polytope.
    cdef Py_ssize_t i, f, a, b, ka, kb, columns
    cdef double total = 0, top, x
    cdef const double* y
    cdef const double* cost = core.cost + core.states
    _add_messages(core, core.y_next)
    for f in range(core.m):
        y = core.y_next + core.sum_at[f]
        ka, kb = core.count[core.ends[2 * f]], core.count[core.ends[2 * f + 1]]
        columns = _padded(kb)
        top = -INFINITY
        for a in range(ka):
            for b in range(kb):
                x = cost[b] - y[a] - y[_padded(ka) + b]
                top = x if x > top else top
            cost += columns
        total += top
    for i in range(core.n):
        top = -INFINITY
        for a in range(core.state_at[i], core.state_at[i] + core.count[i]):
            top = core.gain[a] if core.gain[a] > top else top
        total += top
    if total < core.bound:
        core.bound = total
        memcpy(core.give, core.y_next, core.sums * sizeof(double))
    memcpy(core.trial, core.x_next, (core.states + core.cells) * sizeof(double))
    total = 0
    for a in range(core.states):
        total += core.trial[a] * core.cost[a]
    for f in range(core.m):
        total += _move(core, f)
    if total > core.value:
        core.value = total
        memcpy(core.best, core.trial, (core.states + core.cells) * sizeof(double))
    _add_messages(core, core.y)


cdef double _move(Core* core, Py_ssize_t f) noexcept nogil:
    # Move an edge of `trial` onto the marginals of its ends; returns its score.
    #
    # The excess in rows, then in columns, is scaled down (Altschuler et al. 2017); the deficit
    # then goes to the best pairs first.
    cdef Py_ssize_t ka = core.count[core.ends[2 * f]], kb = core.count[core.ends[2 * f + 1]]
    cdef Py_ssize_t a, b, p = 0, q = 0, left, columns = _padded(kb)
    cdef const double* u = core.trial + core.state_at[core.ends[2 * f]]
    cdef const double* v = core.trial + core.state_at[core.ends[2 * f + 1]]
    cdef double* cell = core.trial + core.states + core.cell_at[f]
    cdef const double* cost = core.cost + core.states + core.cell_at[f]
    cdef double* row = core.rest
    cdef double* column = row + _padded(ka)
    cdef double total, x
    for a in range(ka):
        total = 0
        for b in range(kb):
            total += cell[a * columns + b]
        if total > u[a]:
            x = u[a] / total
            for b in range(kb):
                cell[a * columns + b] *= x
    for b in range(kb):
        total = 0
        for a in range(ka):
            total += cell[a * columns + b]
        if total > v[b]:
            x = v[b] / total
            for a in range(ka):
                cell[a * columns + b] *= x
            total = v[b]
        column[b] = v[b] - total
    for a in range(ka):
        row[a] = u[a]
        for b in range(kb):
            row[a] -= cell[a * columns + b]
    for left in range(ka + kb):
        total = -INFINITY
        for a in range(ka):
            if row[a] > 0:
                for b in range(kb):
                    if column[b] > 0 and cost[a * columns + b] > total:
                        total, p, q = cost[a * columns + b], a, b
        if total == -INFINITY:
            break
        x = row[p] if row[p] < column[q] else column[q]
        cell[p * columns + q] += x
        row[p] -= x
        column[q] -= x
    total = 0
    for a in range(ka):
        for b in range(kb):
            total += cell[a * columns + b] * cost[a * columns + b]
    return total
