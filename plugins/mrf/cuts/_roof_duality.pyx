"""Roof duality: the linear relaxation of a two-state model by one maximum flow.

The relaxation has half-integral solutions (Hammer, Hansen, Simeone 1984), which are the minimum
cuts of a graph with two nodes p and p' for each node of the model, p' standing for its negation
(Boros, Hammer 2002; Kolmogorov, Rother 2007).  State 0 of p means p on the source's side and p' on
the sink's, state 1 the reverse, and one half that both are on the same side.  If equal states
are the cheaper ones on all edges, after swapping the states of some nodes, the two nodes of each
never meet, and one cut of the model's own graph suffices.  Small and
dense models are solved by ``_dense_roof``.
"""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.string cimport memset
from structsolve.algorithms.minimum_cut cimport (
    Cut, CutGraph, build_cut_graph, cut_bytes, cut_graph_bytes, cut_side, place_cut, solve_cut,
)

from structsolve.plugins.mrf.tables._model cimport GraphModel, Model, other_end
from structsolve.plugins.mrf.cuts._dense_roof cimport dense_roof, dense_roof_bytes
from structsolve.plugins.mrf.cuts._pair_energy cimport PairEnergy, pair_energy, rounded_off

# Residual that rounding may leave on a saturated arc, in units of its capacity.
cdef double DUST = 1e-12


# A model's energy: cost[p] of state 1 instead of 0, size[p] of the terms of that sum, and the costs
# of edge e in its `first` and `second` pair of states (see PairEnergy).
cdef struct Energy:
    double* cost                # (n,)
    double* size                # (n,)
    double* coupling            # (m, 2)
    signed char* apart          # (m,)
    signed char* banned         # (n,) bit s: state s is impossible


cdef inline Py_ssize_t _whole(Py_ssize_t size) noexcept nogil:
    return (size + 7) / 8 * 8


cdef Py_ssize_t roof_bytes(Py_ssize_t n, Py_ssize_t m) noexcept nogil:
    cdef Py_ssize_t energy = (2 * n + 2 * m) * sizeof(double) + _whole(m + n)
    cdef Py_ssize_t ends = 4 * m * sizeof(int)
    cdef Py_ssize_t flow = cut_graph_bytes(2 * n, 2 * m) + cut_bytes(2 * n, 2 * m) + _whole(2 * n)
    return max(dense_roof_bytes(n, m), <Py_ssize_t>(energy + ends + flow))


cdef bint _read(const Model* model, Energy* energy) noexcept nogil:
    # False if a node has no state left.
    cdef Py_ssize_t p, e
    cdef int u, v
    cdef PairEnergy edge
    cdef const double* theta
    cdef double* cost = energy.cost
    cdef double* size = energy.size
    cdef signed char* banned = energy.banned
    for p in range(model.n):
        theta = model.unary + model.unary_at[p]
        banned[p] = theta[0] == -INFINITY
        cost[p] = size[p] = 0
        if model.states[p] == 1 or theta[1] == -INFINITY:
            banned[p] |= 2
        elif not banned[p]:
            cost[p] = theta[0] - theta[1]
            size[p] = fabs(theta[0]) + fabs(theta[1])
    for e in range(model.m):
        u, v = model.ends[2 * e], model.ends[2 * e + 1]
        edge = pair_energy(model.pair + model.pair_at[e], model.states[u], model.states[v])
        cost[u] += edge.u
        cost[v] += edge.v
        size[u] += edge.size
        size[v] += edge.size
        banned[u] |= edge.banned_u
        banned[v] |= edge.banned_v
        energy.apart[e] = edge.apart
        energy.coupling[2 * e], energy.coupling[2 * e + 1] = edge.first, edge.second
    for p in range(model.n):
        if banned[p] == 3:
            return False
        if banned[p]:
            cost[p] = INFINITY if banned[p] == 2 else -INFINITY
        elif rounded_off(cost[p], size[p]):
            cost[p] = 0
    return True


cdef bint _flips(const Model* model, const Energy* energy, int* queue,
                 signed char* flipped) noexcept nogil:
    # Choose the nodes whose states are swapped, so that equal states never cost more; return
    # False if a cycle of edges rules it out.
    cdef Py_ssize_t p, e, j, begin = 0, size = 0
    cdef int u, w
    cdef signed char wanted
    memset(flipped, -1, model.n)
    for p in range(model.n):
        if flipped[p] >= 0:
            continue
        flipped[p] = 0
        queue[size] = <int>p
        size += 1
        while begin < size:
            u = queue[begin]
            begin += 1
            for j in range(model.near_at[u], model.near_at[u + 1]):
                e = model.near[j]
                if energy.coupling[2 * e] == 0 and energy.coupling[2 * e + 1] == 0:
                    continue
                w = other_end(model, e, u)
                wanted = flipped[u] ^ (not energy.apart[e])
                if flipped[w] < 0:
                    flipped[w] = wanted
                    queue[size] = w
                    size += 1
                elif flipped[w] != wanted:
                    return False
    return True


cdef bint _single(const Model* model, const Energy* energy, const signed char* flipped,
                  signed char* state, char* memory) noexcept nogil:
    # Compute one cut of the model's own graph; return False if every label is forbidden.
    cdef Py_ssize_t n = model.n, m = model.m, p, e
    cdef CutGraph graph = build_cut_graph(n, m, model.ends, memory)
    cdef Cut cut = place_cut(&graph, memory + cut_graph_bytes(n, m))
    for p in range(n):
        cut.terminal[p] = -energy.cost[p] if flipped[p] else energy.cost[p]
    for e in range(m):
        p = flipped[model.ends[2 * e]]
        cut.residual[2 * e] = energy.coupling[2 * e + p]
        cut.residual[2 * e + 1] = energy.coupling[2 * e + 1 - p]
    if solve_cut(&cut) == INFINITY:
        return False
    cut_side(&cut, False, state)
    for p in range(n):
        state[p] ^= 1 ^ flipped[p]
    return True


cdef Cut _doubled(const Model* model, const Energy* energy, int* ends, char* memory) noexcept nogil:
    # The graph with a node n + p for the negation of each node p.  The arcs of edge e are 4 e to
    # 4 e + 3, and the mirror image of arc k, q' -> p' for p -> q, is k ^ 2.
    cdef Py_ssize_t n = model.n, m = model.m, p, e
    cdef CutGraph graph
    cdef Cut cut
    cdef int u, v, half = <int>n
    for e in range(m):
        u, v = model.ends[2 * e], model.ends[2 * e + 1]
        if energy.apart[e]:
            ends[4 * e], ends[4 * e + 1] = u, v
            ends[4 * e + 2], ends[4 * e + 3] = v + half, u + half
        else:
            ends[4 * e], ends[4 * e + 1] = u, v + half
            ends[4 * e + 2], ends[4 * e + 3] = v, u + half
    graph = build_cut_graph(2 * n, 2 * m, ends, memory)
    cut = place_cut(&graph, memory + cut_graph_bytes(2 * n, 2 * m))
    for e in range(m):
        cut.residual[4 * e] = cut.residual[4 * e + 2] = energy.coupling[2 * e]
        cut.residual[4 * e + 1] = cut.residual[4 * e + 3] = energy.coupling[2 * e + 1]
    for p in range(n):
        cut.terminal[p] = energy.cost[p]
        cut.terminal[n + p] = -energy.cost[p]
    return cut


cdef void _symmetric(Cut* cut, const double* size) noexcept nogil:
    # Average the flow with its mirror image, which is a maximum flow as well, and close arcs and
    # terminals that only rounding left open: residuals become 0 or 1, terminals 0, 1 or -1.
    cdef Py_ssize_t n = cut.graph.n / 2, p, j
    cdef double left, largest = 0, total
    cdef double* r = cut.residual
    for p in range(n):
        largest = size[p] if size[p] > largest else largest
    for p in range(n):
        left = cut.terminal[p] - cut.terminal[n + p]
        cut.terminal[p] = (left > DUST * size[p]) - (left < -DUST * size[p])
        cut.terminal[n + p] = -cut.terminal[p]
    for j in range(0, 2 * cut.graph.m, 4):
        total = r[j] + r[j + 1] + r[j + 2] + r[j + 3]
        total = DUST * (total if total < INFINITY else largest)
        r[j] = r[j + 2] = r[j] + r[j + 2] > total
        r[j + 1] = r[j + 3] = r[j + 1] + r[j + 3] > total


cdef void _components(Cut* cut, Py_ssize_t n, signed char* state) noexcept nogil:
    # Nodes that no optimal solution forces: p gets a state unless p and p' imply each other.
    # Tarjan's algorithm gives strongly connected components after those they lead to; of a
    # component and its mirror image the first one goes to the source's side.
    cdef const CutGraph* graph = &cut.graph
    cdef int* number = cut.work
    cdef int* low = number + 2 * n
    cdef int* arc = low + 2 * n
    cdef int* stack = arc + 2 * n
    cdef int* parent = stack + 2 * n
    cdef Py_ssize_t v, filled = 0, j, begin
    cdef int u, w, k, p, count = 0, done = <int>(2 * n + 1)
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
                arc[u] = graph.first[u]
                stack[filled] = u
                filled += 1
            while arc[u] < graph.first[u + 1]:
                k = graph.arcs[arc[u]]
                w = graph.ends[k ^ 1]
                if cut.residual[k] > 0 and number[w] < done:
                    if number[w] == 0:
                        break
                    if number[w] < low[u]:
                        low[u] = number[w]
                arc[u] += 1
            if arc[u] < graph.first[u + 1]:
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
    # States are unpredictable, so there are no branches on them.  Scores are halved before they are
    # added, so sums do not overflow.
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
    # Choose the best pairing of half nodes; returns the score.
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
    if dense_roof(model, state, work):
        return _value(model, state, pairing)
    return network_roof(model, state, pairing, work)


cdef double network_roof(const Model* model, signed char* state, signed char* pairing,
                         char* work) noexcept nogil:
    cdef Py_ssize_t n = model.n, m = model.m, p
    cdef Energy energy
    cdef Cut cut
    cdef int* ends
    cdef signed char* side
    cdef char* memory
    cdef bint free = False
    energy.cost = <double*>work
    energy.size = energy.cost + n
    energy.coupling = energy.size + n
    energy.apart = <signed char*>(energy.coupling + 2 * m)
    energy.banned = energy.apart + m
    side = energy.apart + _whole(m + n)
    ends = <int*>(side + _whole(2 * n))
    memory = <char*>(ends + 4 * m)
    memset(state, 0, n)
    memset(pairing, 0, m)
    if not _read(model, &energy):
        return -INFINITY
    if _flips(model, &energy, <int*>memory, side):
        if not _single(model, &energy, side, state, memory):
            return -INFINITY
        return half_integral_score(model, state, pairing)
    cut = _doubled(model, &energy, ends, memory)
    if solve_cut(&cut) == INFINITY:
        return -INFINITY
    # Reach in the flow itself: its mirror image rounds otherwise in the same arcs, and together
    # they may leave a path to the sink.  The nodes reached whose negation is not reached make a
    # minimum cut, as the cut and its mirror image are submodular.
    cut_side(&cut, False, side)
    _symmetric(&cut, energy.size)
    for p in range(n):
        state[p] = 2 if side[p] == side[n + p] else side[n + p]
        free |= state[p] == 2
    if free:
        _components(&cut, n, state)
    return _value(model, state, pairing)


def roof_duality(GraphModel model not None, Py_ssize_t repeat=1, bint small=True):
    """Return the maximum of the linear relaxation of a two-state model, and a maximiser.

    Parameters
    ----------
    model : GraphModel
        Every node has one or two states.
    repeat : int, default=1
        Number of solves, for timing.
    small : bool, default=True
        Solve small models by a special algorithm; False, for comparison, by the general one.

    Returns
    -------
    value : float
        Maximum over the local polytope; -inf if everything is forbidden.
    state : ndarray of int8 of shape (n,)
        0 or 1, and 2 for nodes with one half each.  No half-integral solution has more nodes at 0
        or 1, and some best labeling agrees with these.  Without a 2 it is that labeling.
    pairing : ndarray of int8 of shape (m,)
        For an edge between two half nodes: 0, mass on equal states, or 1, on different ones.

    Raises
    ------
    ValueError
        If a node has more than two states.

    Examples
    --------
    Three nodes that want to differ from one another:

    >>> from structsolve.plugins.mrf.tables._model import GraphModel
    >>> from structsolve.plugins.mrf.cuts._roof_duality import roof_duality
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
