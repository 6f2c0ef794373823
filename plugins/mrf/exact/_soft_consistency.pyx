"""Soft arc consistency: moves costs between tables, states and a lower bound.

Full directional arc consistency sends the costs of a node and its edge to the later end.
Existential arc consistency (de Givry, Heras, Zytnicki, Larrosa 2005) raises the bound where each
state of a node has costs.
"""

from libc.math cimport INFINITY, fabs

from structsolve.plugins.mrf.exact._cost_network cimport (
    ARCS, EXISTS, FEW, Network, across, is_open, normalise, push, remove_state, set_cost,
)
from structsolve.plugins.mrf.exact._small_degrees cimport eliminate_node

# Existential consistency moves costs only if the bound gains this share of what is missing.
cdef double SHARE = 1e-3
# Sweeps stop if the bound gains less than this share of what is missing.
cdef double SLOW = 2e-3


cdef inline int _pop(Network* net, int q) noexcept nogil:
    cdef int v = net.queue[q][net.head[q]]
    net.head[q] = net.head[q] + 1 if net.head[q] + 1 < net.n else 0
    net.count[q] -= 1
    net.waits[q][v] = 0
    return v


cdef void _costs_at(Network* net, int e, int v, int w, double share, double* out) noexcept nogil:
    # out <- for each state of w, the least cost of e and this share of the costs of v's state.
    cdef Py_ssize_t k = net.states[v], size = net.states[w], s, t
    cdef bint first = net.ends[2 * e] == v
    cdef const double* cell = net.cells + net.cell_at[e]
    cdef const double* own = net.x + net.phi_at[e] + (0 if first else size)
    cdef const double* other = net.x + net.phi_at[e] + (k if first else 0)
    cdef double* base = net.from_v
    cdef const double* x = net.x + net.unary_at[v]
    cdef const char* alive = net.alive + net.unary_at[v]
    cdef double best, another, y
    net.work += <double>k * size + 4
    for s in range(k):
        base[s] = share * x[s] - own[s] if alive[s] else INFINITY
    if first:
        for t in range(size):
            out[t] = INFINITY
        for s in range(k):
            if base[s] < INFINITY:
                for t in range(size):
                    out[t] = cell[t] + base[s] if cell[t] + base[s] < out[t] else out[t]
            cell += size
        for t in range(size):
            out[t] -= other[t]
        return
    for t in range(size):
        best = another = INFINITY
        if net.alive[net.unary_at[w] + t]:
            # Two chains of comparisons: one waits for each of its results.
            for s in range(0, k - 1, 2):
                best = cell[s] + base[s] if cell[s] + base[s] < best else best
                y = cell[s + 1] + base[s + 1]
                another = y if y < another else another
            if k & 1:
                best = min(best, cell[k - 1] + base[k - 1])
        out[t] = min(best, another) - other[t]
        cell += k


cdef bint _send(Network* net, int e, int v, int w, bint whole) noexcept nogil:
    # Move costs from e, and where `whole` from v, to w; False if nothing is left of w.
    cdef Py_ssize_t k = net.states[v], size = net.states[w], s, t, step, stride, place
    cdef bint first = net.ends[2 * e] == v, some = False
    cdef Py_ssize_t own = net.phi_at[e] + (0 if first else size)
    cdef Py_ssize_t other = net.phi_at[e] + (k if first else 0)
    cdef const double* cell = net.cells + net.cell_at[e]
    cdef double* out = net.to_w
    cdef double most, x
    _costs_at(net, e, v, w, 1 if whole else 0, out)
    net.blame = e
    for t in range(size):
        if not net.alive[net.unary_at[w] + t]:
            out[t] = 0
        elif out[t] == INFINITY or net.low + net.x[net.unary_at[w] + t] + out[t] >= net.high:
            remove_state(net, w, <int>t)
            out[t] = 0
            if net.size[w] == 0:
                return False
        elif out[t] > net.margin:
            some = True
        else:
            out[t] = 0
    if not some:
        return True
    if whole:
        step, stride = size if first else 1, 1 if first else k
        net.work += <double>k * size
        for s in range(k):
            place = net.unary_at[v] + s
            if not net.alive[place] or net.x[place] <= 0:
                continue
            most = 0
            for t in range(size):
                if out[t] > 0:
                    x = out[t] + net.x[other + t] + net.x[own + s] - cell[s * step + t * stride]
                    most = x if x > most else most
            if most > 0:
                set_cost(net, place, net.x[place] - most)
                set_cost(net, own + s, net.x[own + s] - most)
    for t in range(size):
        if out[t] > 0:
            set_cost(net, net.unary_at[w] + t, net.x[net.unary_at[w] + t] + out[t])
            set_cost(net, other + t, net.x[other + t] + out[t])
    normalise(net, w)
    push(net, ARCS, w)
    return True


cdef bint _arcs(Network* net, int v) noexcept nogil:
    cdef Py_ssize_t j
    cdef int e, w
    cdef bint lost = net.lost[v]
    net.lost[v] = 0
    if net.size[v] == 0:
        return False
    if net.rank[v] >= 0:
        return True
    for j in range(net.near_at[v], net.near_at[v + 1]):
        e = net.near[j]
        if e < 0:
            continue
        w = across(net, e, v)
        if net.rank[w] >= 0 or (net.size[w] == 1 and net.size[v] > 1):
            continue            # a single state has sent all its costs
        if v < w or lost:
            if not _send(net, e, v, w, v < w):
                return False
        push(net, EXISTS, w)
        if net.size[v] == 1:
            push(net, FEW, w)
    if net.size[v] > 1:
        push(net, EXISTS, v)
    return True


cdef bint _exists(Network* net, int v) noexcept nogil:
    # Raise the bound if each state of v costs something, here or at later neighbours.
    cdef Py_ssize_t j, first = net.unary_at[v], s
    cdef int e, w
    cdef double least = INFINITY, needed = net.unit
    cdef double* total = net.total
    if not is_open(net, v):
        return True
    if net.high < INFINITY:
        needed = max(needed, SHARE * (net.high - net.low))
    for s in range(net.states[v]):
        total[s] = net.x[first + s]
    for j in range(net.near_at[v], net.near_at[v + 1]):
        e = net.near[j]
        w = across(net, e, v) if e >= 0 else -1
        if w > v and is_open(net, w):
            _costs_at(net, e, w, v, 1, net.to_w)
            for s in range(net.states[v]):
                total[s] += net.to_w[s]
    for s in range(net.states[v]):
        if net.alive[first + s] and total[s] < least:
            least = total[s]
    if least <= needed:
        return True
    for j in range(net.near_at[v], net.near_at[v + 1]):
        e = net.near[j]
        w = across(net, e, v) if e >= 0 else -1
        if w > v and is_open(net, w):
            if not _send(net, e, w, v, True):
                return False
    return True


cdef bint _prune(Network* net) noexcept nogil:
    # Remove the states that cost too much; False if nothing is left of a node.
    cdef Py_ssize_t v, s, first
    cdef double most = net.high - net.margin - net.low
    net.pruned = net.low
    for v in range(net.n):
        if not is_open(net, <int>v):
            continue
        first = net.unary_at[v]
        for s in range(net.states[v]):
            if net.alive[first + s] and net.x[first + s] >= most:
                remove_state(net, <int>v, <int>s)
                if net.size[v] == 0:
                    return False
    return True


cdef bint propagate(Network* net) noexcept nogil:
    cdef bint possible = True
    cdef int q
    while possible:
        if net.low >= net.high - net.margin:
            possible = False
        elif net.count[ARCS]:
            possible = _arcs(net, _pop(net, ARCS))
        elif net.low > net.pruned and net.high < INFINITY:
            possible = _prune(net)
        elif net.count[EXISTS]:
            possible = _exists(net, _pop(net, EXISTS))
        elif net.count[FEW]:
            possible = eliminate_node(net, _pop(net, FEW))
        else:
            return True
    for q in range(3):
        while net.count[q]:
            net.lost[_pop(net, q)] = 0
    return False


cdef bint _to(Network* net, int v, bint back) noexcept nogil:
    # Costs of all edges of v come to it, and a share goes to each later one.
    cdef Py_ssize_t j, s, first = net.unary_at[v], own
    cdef int w, e, later = 0, earlier = 0
    cdef double share
    if net.rank[v] >= 0:
        return True
    for j in range(net.near_at[v], net.near_at[v + 1]):
        e = net.near[j]
        if e < 0:
            continue
        w = across(net, e, v)
        if net.rank[w] >= 0:
            continue
        if (w > v) != back:
            later += 1
        else:
            earlier += 1
        if not _send(net, e, w, v, False):
            return False
    if later == 0:
        return True
    share = 1.0 / max(later, earlier)
    for j in range(net.near_at[v], net.near_at[v + 1]):
        e = net.near[j]
        w = across(net, e, v) if e >= 0 else -1
        if e >= 0 and net.rank[w] < 0 and (w > v) != back:
            own = net.phi_at[e] + (0 if net.ends[2 * e] == v else net.states[w])
            for s in range(net.states[v]):
                if net.alive[first + s]:
                    net.x[own + s] -= share * net.x[first + s]
    for s in range(net.states[v]):
        net.x[first + s] *= max(0.0, 1 - later * share)
    return True


cdef int sweep(Network* net) noexcept nogil:
    # Sequential tree-reweighted message passing (Kolmogorov 2006), as moves of costs.
    cdef double before = net.low
    cdef int v
    for v in range(net.n):
        if net.size[v] == 0:
            return FORBIDDEN
        if net.rank[v] < 0:
            normalise(net, v)
    for v in range(net.n):
        if not _to(net, v, False):
            return FORBIDDEN
    for v in range(<int>net.n - 1, -1, -1):
        if not _to(net, v, True):
            return FORBIDDEN
    if (net.low >= net.high - net.margin or net.low - before < net.unit * net.n
            or (net.high < INFINITY and net.low - before < SLOW * (net.high - net.low))):
        return DONE
    return AGAIN


cdef bint shorten(Network* net) noexcept nogil:
    cdef Py_ssize_t j
    cdef int v, w, degree
    for v in range(net.n):
        push(net, FEW, v)
    while net.count[FEW]:
        v = _pop(net, FEW)
        degree = 0
        for j in range(net.near_at[v], net.near_at[v + 1]):
            w = across(net, net.near[j], v) if net.near[j] >= 0 else v
            if w != v and net.rank[w] < 0:
                # A single state has not sent its costs yet.
                degree += 1 if net.size[w] > 1 else 2
        if degree < 2 and not eliminate_node(net, v):
            return False
    return True


cdef void transform(Network* net, const double* phi, Py_ssize_t phi_step) noexcept nogil:
    cdef Py_ssize_t j, s, first, other
    cdef int v, w, e, end
    cdef double x
    for v in range(net.n):
        if net.rank[v] >= 0:
            continue
        first = net.unary_at[v]
        for j in range(net.near_at[v], net.near_at[v + 1]):
            e = net.near[j]
            if e < 0 or net.rank[across(net, e, v)] >= 0:
                continue
            end = 0 if net.ends[2 * e] == v else 1
            other = net.phi_at[e] + (net.states[across(net, e, v)] if end else 0)
            for s in range(net.states[v]):
                x = phi[(2 * e + end) * phi_step + s]
                if fabs(x) < net.most:
                    net.x[other + s] -= x
                    net.x[first + s] -= x
    # What any transformation leaves in tables may be negative.
    for v in range(net.n):
        if net.rank[v] >= 0:
            continue
        first = net.unary_at[v]
        for j in range(net.near_at[v], net.near_at[v + 1]):
            e = net.near[j]
            w = across(net, e, v) if e >= 0 else -1
            if e < 0 or net.rank[w] >= 0:
                continue
            other = net.phi_at[e] + (0 if net.ends[2 * e] == v else net.states[w])
            _costs_at(net, e, w, v, 0, net.to_w)
            for s in range(net.states[v]):
                if net.alive[first + s] and net.to_w[s] < INFINITY:
                    net.x[first + s] += net.to_w[s]
                    net.x[other + s] += net.to_w[s]
    for v in range(net.n):
        if net.rank[v] < 0:
            normalise(net, v)


cdef void wake(Network* net) noexcept nogil:
    cdef int v
    for v in range(net.n):
        push(net, ARCS, v)
        push(net, EXISTS, v)
        push(net, FEW, v)
        net.lost[v] = 1
