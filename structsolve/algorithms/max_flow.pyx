"""Maximum flow and minimum cut with real capacities (Dinic 1970)."""

from collections import namedtuple

import numpy as np

from libc.math cimport INFINITY

MinimumCut = namedtuple("MinimumCut", ["value", "source_side", "sink_side", "flow"])
MinimumCut.__doc__ = "Value of a cut, smallest source set, smallest sink set, value of the flow."


cdef Py_ssize_t max_flow_bytes(Py_ssize_t n, Py_ssize_t m) noexcept nogil:
    return (2 * m + n) * sizeof(double) + (n + 1 + 4 * m + 5 * n + 1) * sizeof(int)


cdef Network place_network(Py_ssize_t n, Py_ssize_t m, char* memory) noexcept nogil:
    cdef Network net
    net.n = n
    net.residual = <double*>memory
    net.terminal = net.residual + 2 * m
    net.first = <int*>(net.terminal + n)
    net.head = net.first + n + 1
    net.twin = net.head + 2 * m
    net.work = net.twin + 2 * m
    return net


cdef void build_network(Network* net, Py_ssize_t m, const int* ends,
                        const double* capacity) noexcept nogil:
    cdef Py_ssize_t v, j
    cdef int a, b
    cdef int* next_arc = net.work
    for v in range(net.n):
        next_arc[v] = 0
    for j in range(2 * m):
        next_arc[ends[j]] += 1
    net.first[0] = 0
    for v in range(net.n):
        net.first[v + 1] = net.first[v] + next_arc[v]
        next_arc[v] = net.first[v]
    for j in range(m):
        a = next_arc[ends[2 * j]]
        next_arc[ends[2 * j]] += 1
        b = next_arc[ends[2 * j + 1]]
        next_arc[ends[2 * j + 1]] += 1
        net.head[a], net.head[b] = ends[2 * j + 1], ends[2 * j]
        net.twin[a], net.twin[b] = b, a
        net.residual[a], net.residual[b] = capacity[2 * j], capacity[2 * j + 1]


cdef bint _levels(const Network* net, int* level, int* queue) noexcept nogil:
    # level[v] <- nodes on a shortest way from the source, 0 where there is none.  Stops once the
    # level of the first sink is done, as longer ways wait for later phases; False: no sink reached.
    cdef Py_ssize_t v, begin = 0, size = 0
    cdef int a, u, w, stop = 0
    for v in range(net.n):
        level[v] = net.terminal[v] > 0
        if level[v]:
            queue[size] = <int>v
            size += 1
    while begin < size < net.n:         # in dense graphs few nodes reach all of them
        u = queue[begin]
        begin += 1
        if stop and level[u] >= stop:
            break
        for a in range(net.first[u], net.first[u + 1]):
            w = net.head[a]
            if level[w] == 0 and net.residual[a] > 0:
                level[w] = level[u] + 1
                queue[size] = w
                size += 1
                if net.terminal[w] < 0:
                    stop = level[w]
    return stop > 0


cdef double _direct(Network* net) noexcept nogil:
    # Pushes from nodes at the source straight to their neighbours at the sink, without a search.
    cdef Py_ssize_t v
    cdef int a, w
    cdef double total = 0, push
    cdef double* terminal = net.terminal
    for v in range(net.n):
        if terminal[v] <= 0:
            continue
        for a in range(net.first[v], net.first[v + 1]):
            w = net.head[a]
            if terminal[w] < 0 and net.residual[a] > 0:
                push = net.residual[a] if net.residual[a] < terminal[v] else terminal[v]
                push = push if push < -terminal[w] else -terminal[w]
                if push == INFINITY:
                    return INFINITY
                total += push
                net.residual[a] -= push
                net.residual[net.twin[a]] += push
                terminal[w] += push
                terminal[v] -= push
                if terminal[v] <= 0:
                    break
    return total


cdef double max_flow(Network* net) noexcept nogil:
    # Each phase looks for ways backwards from the sinks.  Whatever rounding does, an augmentation
    # takes the narrowest arc of its way to exactly 0, so that a phase ends, and the shortest way
    # gets longer from phase to phase.
    cdef Py_ssize_t n = net.n, v, depth, j
    cdef int* level = net.work
    cdef int* queue = level + n
    cdef int* arc = queue + n           # next arc of each node to look at
    cdef int* path = arc + n            # arcs from the sink's node on, against the flow
    cdef const int* head = net.head
    cdef const int* twin = net.twin
    cdef double total = _direct(net), push
    cdef double* residual = net.residual
    cdef double* terminal = net.terminal
    cdef int u, a, last, below
    if total == INFINITY:
        return INFINITY
    while _levels(net, level, queue):
        for v in range(n):
            arc[v] = net.first[v]
        for v in range(n):
            if terminal[v] >= 0 or level[v] == 0:
                continue
            depth = 0
            u = <int>v
            while True:
                if level[u] == 1:
                    if terminal[u] > 0:
                        push = -terminal[v] if -terminal[v] < terminal[u] else terminal[u]
                        for j in range(depth):
                            if residual[twin[path[j]]] < push:
                                push = residual[twin[path[j]]]
                        if push == INFINITY:
                            return INFINITY
                        total += push
                        terminal[v] += push
                        terminal[u] -= push
                        last = <int>depth
                        for j in range(depth - 1, -1, -1):
                            a = path[j]
                            residual[a] += push
                            residual[twin[a]] -= push
                            if residual[twin[a]] <= 0:
                                last = <int>j
                        if terminal[v] >= 0:
                            break
                        if last < depth:        # go on from before the first full arc
                            u = head[twin[path[last]]]
                            depth = last
                        continue
                else:
                    below = level[u] - 1
                    a, last = arc[u], net.first[u + 1]
                    while a < last and (level[head[a]] != below or residual[twin[a]] <= 0):
                        a += 1
                    arc[u] = a
                    if a < last:
                        path[depth] = a
                        depth += 1
                        u = head[a]
                        continue
                level[u] = 0                    # a dead end for the rest of this phase
                if depth == 0:
                    break
                depth -= 1
                u = head[twin[path[depth]]]
                arc[u] += 1
    return total


cdef void cut_side(const Network* net, bint sink, signed char* inside) noexcept nogil:
    cdef Py_ssize_t v, begin = 0, size = 0
    cdef int* queue = net.work
    cdef int a, u
    for v in range(net.n):
        inside[v] = net.terminal[v] < 0 if sink else net.terminal[v] > 0
        if inside[v]:
            queue[size] = <int>v
            size += 1
    while begin < size:
        u = queue[begin]
        begin += 1
        for a in range(net.first[u], net.first[u + 1]):
            if not inside[net.head[a]] and net.residual[net.twin[a] if sink else a] > 0:
                inside[net.head[a]] = 1
                queue[size] = net.head[a]
                size += 1


def _amounts(name, values, shape):
    array = np.array(np.broadcast_to(np.asarray(values, dtype=np.float64), shape))
    bad = ~(array >= 0)
    if bad.any():
        index = np.unravel_index(int(bad.argmax()), shape)
        raise ValueError(
            f"{name}{list(map(int, index))}: found {array[index]}, expected a number >= 0"
        )
    return array


def minimum_cut(n_nodes, arcs, capacities, from_source, to_sink):
    """Return a minimum cut between a source and a sink.

    Source and sink are not among the nodes: ``from_source`` and ``to_sink`` hold the capacities
    between them and each node.

    Parameters
    ----------
    n_nodes : int
        Number of nodes, at least 1.
    arcs : array of int of shape (m, 2)
        Tail and head of each arc; parallel arcs are allowed.
    capacities : array of float of shape (m,) or (m, 2)
        How much each arc carries, and with two columns how much in the other direction as well;
        ``inf`` for any amount.
    from_source, to_sink : array of float of shape (n_nodes,)
        Capacity from the source to each node, and from each node to the sink.

    Returns
    -------
    MinimumCut
        ``value``; ``source_side``, the smallest set of nodes on the source's side of any minimum
        cut; ``sink_side``, the smallest on the sink's; ``flow``, the value of a maximum flow,
        equal to ``value`` up to rounding.

    Raises
    ------
    ValueError
        When sizes do not fit, a capacity is negative or NaN, or no cut is finite.

    Examples
    --------
    >>> from structsolve.algorithms.max_flow import minimum_cut
    >>> cut = minimum_cut(3, [[0, 1], [1, 2]], [2.0, 1.5], [3, 0, 0], [0, 0, 9])
    >>> cut.value, cut.source_side.tolist(), cut.sink_side.tolist()
    (1.5, [True, True, False], [False, False, True])
    """
    if isinstance(n_nodes, bool) or not isinstance(n_nodes, (int, np.integer)) or n_nodes < 1:
        raise ValueError(f"n_nodes: found {n_nodes!r}, expected an integer of at least 1")
    arcs = np.asarray(arcs)
    if arcs.size == 0:
        arcs = np.zeros((0, 2), dtype=np.int64)
    if arcs.ndim != 2 or arcs.shape[1] != 2 or arcs.dtype.kind not in "iu":
        raise ValueError(
            f"arcs: found shape {arcs.shape} of {arcs.dtype}, expected integers of shape (m, 2)"
        )
    cdef Py_ssize_t n = n_nodes, m = len(arcs), j
    if max(n, 2 * m) > 2**31 - 2:
        raise ValueError(f"arcs: found {m} of {n} nodes, expected fewer than 2**30")
    wrong = ((arcs < 0) | (arcs >= n)).any(axis=1)
    if wrong.any():
        j = wrong.argmax()
        raise ValueError(
            f"arcs[{j}]: found {tuple(arcs[j].tolist())}, expected nodes 0 to {n - 1}"
        )
    both = np.zeros((m, 2))
    capacities = np.asarray(capacities, dtype=np.float64)
    if capacities.ndim == 2 and capacities.shape == (m, 2):
        both[:] = _amounts("capacities", capacities, (m, 2))
    elif capacities.shape == (m,) or capacities.ndim == 0:
        both[:, 0] = _amounts("capacities", capacities, (m,))
    elif m or capacities.size:
        raise ValueError(f"capacities: found shape {capacities.shape}, expected ({m},) or ({m}, 2)")
    supply = []
    for name, values in (("from_source", from_source), ("to_sink", to_sink)):
        values = np.asarray(values, dtype=np.float64)
        if values.shape != (n,):
            raise ValueError(f"{name}: found shape {values.shape}, expected ({n},)")
        supply.append(_amounts(name, values, (n,)))
    source, sink = supply
    direct = np.minimum(source, sink)
    if np.isinf(direct).any():
        v = int(np.isinf(direct).argmax())
        raise ValueError(
            f"from_source and to_sink of node {v} are both infinite, expected a finite cut"
        )
    cdef const int[::1] ends = np.ascontiguousarray(arcs, dtype=np.intc).ravel()
    cdef const double[::1] capacity = both.ravel()
    cdef double[::1] terminal = np.where(source > sink, source - direct, direct - sink)
    cdef double[::1] memory = np.zeros(max_flow_bytes(n, m) // 8 + 1)
    cdef Network net = place_network(n, m, <char*>&memory[0])
    cdef signed char[::1] near_source = np.zeros(n, np.int8), near_sink = np.zeros(n, np.int8)
    cdef double value
    with nogil:
        build_network(&net, m, &ends[0] if m else NULL, &capacity[0] if m else NULL)
        for j in range(n):
            net.terminal[j] = terminal[j]
        value = max_flow(&net)
    if value == INFINITY:
        raise ValueError(
            "capacities: found a path from source to sink of infinite capacity, expected a finite "
            "cut"
        )
    cut_side(&net, False, &near_source[0])
    cut_side(&net, True, &near_sink[0])
    inside = np.asarray(near_source).astype(bool)
    cut = (
        direct.sum()
        + (source - direct)[~inside].sum()
        + (sink - direct)[inside].sum()
        + both[inside[arcs[:, 0]] & ~inside[arcs[:, 1]], 0].sum()
        + both[inside[arcs[:, 1]] & ~inside[arcs[:, 0]], 1].sum()
    )
    sink_side = np.asarray(near_sink).astype(bool)
    return MinimumCut(float(cut), inside, sink_side, float(direct.sum() + value))
