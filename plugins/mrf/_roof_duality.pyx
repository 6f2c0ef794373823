"""Roof duality: the linear relaxation of a two-state model by one maximum flow.

The relaxation has half-integral solutions (Hammer, Hansen, Simeone 1984), which are the minimum
cuts of a graph with two nodes p and p' for each node of the model, p' standing for its negation
(Boros, Hammer 2002; Kolmogorov, Rother 2007).  State 0 of p means p on the source's side and p' on
the sink's, state 1 the reverse, and one half that both are on the same side.  Small models are
solved by ``_small_roof_duality``.
"""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.string cimport memset
from structsolve.algorithms.max_flow cimport Network, max_flow, max_flow_bytes, place_network

from structsolve.plugins.mrf._model cimport GraphModel, Model
from structsolve.plugins.mrf._small_roof_duality cimport small_roof, small_roof_bytes

# A sum within this factor of its largest terms is rounding: it counts as zero.
cdef double ROUNDING = 1e-15
# What repeated rounding may leave of a saturated arc, in units of its capacity.
cdef double DUST = 1e-12


cdef struct Edge:
    # The energy of an edge: state 1 in place of 0 costs `u` at one end and `v` at the other, and
    # equal (apart = 0) or different (apart = 1) states cost `first` and `second`.  For apart = 1,
    # `first` is the cost of states (0, 1); for apart = 0, of states (0, 0).
    double u, v, first, second
    double size                 # sum of the finite entries' magnitudes: the scale of rounding
    bint apart
    int banned_u, banned_v      # bit s: state s is impossible


cdef Edge _forbidding(const double* t) noexcept nogil:
    # The energy of a table with entries of -inf.
    cdef Edge edge
    cdef int j
    cdef bint no00 = t[0] == -INFINITY, no01 = t[1] == -INFINITY
    cdef bint no10 = t[2] == -INFINITY, no11 = t[3] == -INFINITY
    cdef int count = no00 + no01 + no10 + no11
    edge.u = edge.v = edge.first = edge.second = edge.size = 0
    for j in range(4):
        edge.size += fabs(t[j]) if t[j] > -INFINITY else 0
    edge.apart = False
    edge.banned_u = (no00 and no01) | ((no10 and no11) << 1)
    edge.banned_v = (no00 and no10) | ((no01 and no11) << 1)
    if count == 1:
        # Three finite entries are a sum of both ends' scores.
        edge.u = t[1] - t[3] if no00 or no10 else t[0] - t[2]
        edge.v = t[2] - t[3] if no00 or no01 else t[0] - t[1]
        edge.apart = no01 or no10
        if no00 or no01:
            edge.first = INFINITY
        else:
            edge.second = INFINITY
    elif count == 2:
        if edge.banned_u:
            edge.v = t[2] - t[3] if no00 else t[0] - t[1]
        elif edge.banned_v:
            edge.u = t[1] - t[3] if no00 else t[0] - t[2]
        else:
            edge.apart = no01
            edge.first = edge.second = INFINITY
            if no01:
                edge.u = edge.v = (t[0] - t[3]) / 2
            else:
                edge.u = (t[1] - t[2]) / 2
                edge.v = -edge.u
    return edge


cdef inline Edge _energy(const double* t, int states_u, int states_v) noexcept nogil:
    cdef Edge edge
    cdef double equal, other, c
    if states_u == 2 and states_v == 2:
        equal, other = t[0] + t[3], t[1] + t[2]
        if equal + other == -INFINITY:
            return _forbidding(t)
        c = equal - other
        edge.size = fabs(t[0]) + fabs(t[1]) + fabs(t[2]) + fabs(t[3])
        if fabs(c) <= ROUNDING * edge.size:
            c = 0
        edge.u = ((t[0] - t[2]) + (t[1] - t[3])) / 2
        edge.v = ((t[0] - t[1]) + (t[2] - t[3])) / 2
        edge.apart = c >= 0
        edge.first = edge.second = fabs(c) / 2
        edge.banned_u = edge.banned_v = 0
        return edge
    edge.u = edge.v = edge.first = edge.second = edge.size = 0
    edge.apart = False
    edge.banned_u = edge.banned_v = 0
    if states_u == 2:
        edge.banned_u = (t[0] == -INFINITY) | ((t[1] == -INFINITY) << 1)
        if not edge.banned_u:
            edge.u, edge.size = t[0] - t[1], fabs(t[0]) + fabs(t[1])
    elif states_v == 2:
        edge.banned_v = (t[0] == -INFINITY) | ((t[1] == -INFINITY) << 1)
        if not edge.banned_v:
            edge.v, edge.size = t[0] - t[1], fabs(t[0]) + fabs(t[1])
    elif t[0] == -INFINITY:
        edge.banned_u = 1
    return edge


cdef Py_ssize_t roof_bytes(Py_ssize_t n, Py_ssize_t m) noexcept nogil:
    cdef Py_ssize_t small = small_roof_bytes(n), flow = (max_flow_bytes(2 * n, 2 * m) + 8) / 8 * 8
    return max(small, <Py_ssize_t>(flow + 2 * n * sizeof(double) + 2 * m * sizeof(int)))


cdef bint _network(const Model* model, Network* net, double* cost, double* size,
                   int* position) noexcept nogil:
    # The doubled graph; False where a node has no state left.  Arcs of p lie where its edges lie in
    # model.near, arcs of p' 2 m behind them, so that arcs a of p and a + 2 m of p' belong to one
    # edge.  cost[p] is the cost of state 1 in place of 0, size[p] the size of its terms.
    cdef Py_ssize_t n = model.n, m = model.m, p, e, j
    cdef int half = <int>(2 * m), u, v, a, b, c, d
    cdef Edge edge
    cdef const double* theta
    cdef char* banned = <char*>net.work
    for p in range(n):
        theta = model.unary + model.unary_at[p]
        banned[p] = theta[0] == -INFINITY
        cost[p] = size[p] = 0
        if model.states[p] == 1 or theta[1] == -INFINITY:
            banned[p] |= 2
        elif not banned[p]:
            cost[p] = theta[0] - theta[1]
            size[p] = fabs(theta[0]) + fabs(theta[1])
        for j in range(model.near_at[p], model.near_at[p + 1]):
            e = model.near[j]
            position[2 * e + (model.ends[2 * e] != p)] = <int>j
    for p in range(n + 1):
        net.first[p] = <int>model.near_at[p]
        net.first[n + p] = <int>(half + model.near_at[p])
    for e in range(m):
        u, v = model.ends[2 * e], model.ends[2 * e + 1]
        edge = _energy(model.pair + model.pair_at[e], model.states[u], model.states[v])
        cost[u] += edge.u
        cost[v] += edge.v
        size[u] += edge.size
        size[v] += edge.size
        banned[u] |= edge.banned_u
        banned[v] |= edge.banned_v
        # Arcs of u, of v, of u' and of v'.
        a, b = position[2 * e], position[2 * e + 1]
        c, d = a + half, b + half
        if edge.apart:
            net.head[a], net.head[b], net.head[c], net.head[d] = v, u, <int>n + v, <int>n + u
            net.twin[a], net.twin[b], net.twin[c], net.twin[d] = b, a, d, c
            net.residual[a], net.residual[d] = edge.first, edge.first
            net.residual[b], net.residual[c] = edge.second, edge.second
        else:
            net.head[a], net.head[b], net.head[c], net.head[d] = <int>n + v, <int>n + u, v, u
            net.twin[a], net.twin[d], net.twin[b], net.twin[c] = d, a, c, b
            net.residual[a], net.residual[b] = edge.first, edge.first
            net.residual[c], net.residual[d] = edge.second, edge.second
    for p in range(n):
        if banned[p] == 3:
            return False
        if banned[p]:
            cost[p] = INFINITY if banned[p] == 2 else -INFINITY
        elif fabs(cost[p]) <= ROUNDING * size[p]:
            cost[p] = 0
        net.terminal[p] = cost[p]
        net.terminal[n + p] = -cost[p]
    return True


cdef void _symmetric(const Model* model, Network* net, const double* size,
                     const int* position) noexcept nogil:
    # Average the flow with its mirror image, which is a maximum flow as well, and close arcs and
    # terminals that only rounding left open: residuals become 0 or 1, terminals 0, 1 or -1.
    cdef Py_ssize_t n = model.n, half = 2 * model.m, p, e
    cdef double left, largest = 0, total
    cdef double* r = net.residual
    cdef int a, b, c, d
    for p in range(n):
        largest = size[p] if size[p] > largest else largest
    for p in range(n):
        left = net.terminal[p] - net.terminal[n + p]
        net.terminal[p] = (left > DUST * size[p]) - (left < -DUST * size[p])
        net.terminal[n + p] = -net.terminal[p]
    for e in range(model.m):
        # The mirror image of an arc p -> q is q' -> p', the twin of p' -> q'.
        a = position[2 * e]
        c = a + <int>half
        b, d = net.twin[c], net.twin[a]
        total = r[a] + r[b] + r[c] + r[d]
        total = DUST * (total if total < INFINITY else largest)
        r[a] = r[b] = r[a] + r[b] > total
        r[c] = r[d] = r[c] + r[d] > total


cdef void _reach(const Network* net, Py_ssize_t n, signed char* side) noexcept nogil:
    # side[p] <- 1 where the source reaches p.
    cdef Py_ssize_t v, begin = 0, filled = 0
    cdef int* queue = net.work
    cdef int a, u
    for v in range(2 * n):
        side[v] = net.terminal[v] > 0
        if side[v]:
            queue[filled] = <int>v
            filled += 1
    while begin < filled:
        u = queue[begin]
        begin += 1
        for a in range(net.first[u], net.first[u + 1]):
            if not side[net.head[a]] and net.residual[a] > 0:
                side[net.head[a]] = 1
                queue[filled] = net.head[a]
                filled += 1


cdef void _components(const Network* net, Py_ssize_t n, signed char* state) noexcept nogil:
    # Nodes that no optimal solution forces: p gets a state unless p and p' imply each other.
    # Tarjan's algorithm gives strongly connected components after those they lead to; of a
    # component and its mirror image the first one goes to the source's side.
    cdef int* number = net.work
    cdef int* low = number + 2 * n
    cdef int* arc = low + 2 * n
    cdef int* stack = arc + 2 * n
    cdef int* parent = stack + 2 * n
    cdef Py_ssize_t v, filled = 0, j, begin
    cdef int u, w, p, count = 0, done = <int>(2 * n + 1)
    for v in range(2 * n):
        number[v] = 0 if state[v if v < n else v - n] == 2 else done
    for v in range(2 * n):
        if number[v]:
            continue
        u = <int>v
        parent[u] = -1
        while True:
            if number[u] == 0:
                count += 1
                number[u] = low[u] = count
                arc[u] = net.first[u]
                stack[filled] = u
                filled += 1
            while arc[u] < net.first[u + 1]:
                w = net.head[arc[u]]
                if net.residual[arc[u]] > 0 and number[w] < done:
                    if number[w] == 0:
                        break
                    if number[w] < low[u]:
                        low[u] = number[w]
                arc[u] += 1
            if arc[u] < net.first[u + 1]:
                parent[w] = u
                arc[u] += 1
                u = w
                continue
            if low[u] == number[u]:
                begin = filled - 1
                while stack[begin] != u:
                    begin -= 1
                # p and p' in one component: all nodes of it are halves.
                # number <- done + 1 marks the nodes of this component for the test.
                for j in range(begin, filled):
                    number[stack[j]] = done + 1
                w = stack[begin]
                if number[w - n if w >= n else w + n] != done + 1:
                    for j in range(begin, filled):
                        p = stack[j] - <int>n if stack[j] >= n else stack[j]
                        if state[p] == 2:
                            state[p] = stack[j] >= n
                for j in range(begin, filled):
                    number[stack[j]] = done
                filled = begin
            w = parent[u]
            if w < 0:
                break
            if low[u] < low[w]:
                low[w] = low[u]
            u = w


# Where in its row-major table an edge's score is, by 3 s + t of the states of its ends: the mean of
# entries FIRST and SECOND.  8 is for equal states of half nodes, 9 for different ones.
cdef int* FIRST = [0, 1, 0, 2, 3, 2, 0, 1, 0, 1]
cdef int* SECOND = [0, 1, 1, 2, 3, 3, 2, 3, 3, 2]


cdef double half_integral_score(const Model* model, const signed char* state,
                                const signed char* pairing) noexcept nogil:
    # No branches on states, which are as good as random.  Halves first, so that no sum of two
    # overflows.
    cdef double total = 0
    cdef Py_ssize_t v, e
    cdef int s, t, code
    cdef const double* theta
    for v in range(model.n):
        theta = model.unary + model.unary_at[v]
        total += theta[state[v] == 1] / 2 + theta[state[v] != 0] / 2
    for e in range(model.m):
        theta = model.pair + model.pair_at[e]
        s, t = state[model.ends[2 * e]], state[model.ends[2 * e + 1]]
        code = 3 * s + t + pairing[e]
        if model.states[model.ends[2 * e + 1]] == 2:
            total += theta[FIRST[code]] / 2 + theta[SECOND[code]] / 2
        else:       # a column: t is 0
            total += theta[s == 1] / 2 + theta[s != 0] / 2
    return total


cdef double _value(const Model* model, const signed char* state,
                   signed char* pairing) noexcept nogil:
    # Pair half nodes as is best; returns the score.
    cdef Py_ssize_t e
    cdef const double* theta
    for e in range(model.m):
        pairing[e] = state[model.ends[2 * e]] == 2 and state[model.ends[2 * e + 1]] == 2
        if pairing[e]:
            theta = model.pair + model.pair_at[e]
            pairing[e] = theta[1] + theta[2] > theta[0] + theta[3]
    return half_integral_score(model, state, pairing)


cdef double roof_dual(const Model* model, signed char* state, signed char* pairing,
                      char* work) noexcept nogil:
    if small_roof(model, state, work):
        return _value(model, state, pairing)
    return network_roof(model, state, pairing, work)


cdef double network_roof(const Model* model, signed char* state, signed char* pairing,
                         char* work) noexcept nogil:
    cdef Py_ssize_t n = model.n, m = model.m, p
    cdef Network net = place_network(2 * n, 2 * m, work)
    cdef double* cost = <double*>(work + (max_flow_bytes(2 * n, 2 * m) + 8) / 8 * 8)
    cdef double* size = cost + n
    cdef int* position = <int*>(size + n)
    cdef signed char* side = <signed char*>(net.work + 8 * n)
    cdef bint free = False
    memset(state, 0, n)
    memset(pairing, 0, m)
    if not _network(model, &net, cost, size, position) or max_flow(&net) == INFINITY:
        return -INFINITY
    # Reach in the flow itself: its mirror image rounds otherwise in the same arcs, and together
    # they may leave a path to the sink.  The nodes reached whose negation is not reached make a
    # minimum cut, as the cut and its mirror image are submodular.
    _reach(&net, n, side)
    _symmetric(model, &net, size, position)
    for p in range(n):
        state[p] = 2 if side[p] == side[n + p] else side[n + p]
        free |= state[p] == 2
    if free:
        _components(&net, n, state)
    return _value(model, state, pairing)


def roof_duality(GraphModel model not None, Py_ssize_t repeat=1, bint small=True):
    """Return the maximum of the linear relaxation of a two-state model, and where it lies.

    Parameters
    ----------
    model : GraphModel
        Every node has one or two states.
    repeat : int, default=1
        How often to solve it, for timing.
    small : bool, default=True
        Solve small models by their own algorithm; False, for comparison: by the general one.

    Returns
    -------
    value : float
        Maximum over the local polytope; -inf where everything is forbidden.
    state : ndarray of int8 of shape (n,)
        0 or 1, and 2 for nodes with one half each.  No half-integral solution has more nodes at 0
        or 1, and some best labeling agrees with these.  Where no node is 2, it is that labeling.
    pairing : ndarray of int8 of shape (m,)
        For an edge between two half nodes: 0, mass on equal states, or 1, on different ones.

    Raises
    ------
    ValueError
        When a node has more than two states.

    Examples
    --------
    Three nodes that want to differ from one another:

    >>> from structsolve.plugins.mrf._model import GraphModel
    >>> from structsolve.plugins.mrf._roof_duality import roof_duality
    >>> apart = [[0, 1], [1, 0]]
    >>> model = GraphModel([2] * 3, [[0, 1], [1, 2], [2, 0]], [[0, 0]] * 3, [apart] * 3)
    >>> value, state, pairing = roof_duality(model)
    >>> value, state.tolist(), pairing.tolist()
    (3.0, [2, 2, 2], [1, 1, 1])
    """
    cdef Py_ssize_t n = model.model.n, m = model.model.m
    if model.states.max() > 2:
        v = int(model.states.argmax())
        raise ValueError(
            f"states of node {v}: found {model.states[v]}, expected at most 2; use trws"
        )
    if n > 2**28 or m > 2**28:
        raise ValueError(f"model: found {n} nodes and {m} edges, expected at most 2**28 of each")
    cdef signed char[::1] state = np.zeros(n, np.int8), pairing = np.zeros(m + 1, np.int8)
    cdef double[::1] work = np.empty(roof_bytes(n, m) // 8 + 1)
    cdef double value = 0
    with nogil:
        for _ in range(max(repeat, 1)):
            value = (roof_dual if small else network_roof)(
                &model.model, &state[0], &pairing[0], <char*>&work[0]
            )
    return value, np.asarray(state), np.asarray(pairing)[:m]
