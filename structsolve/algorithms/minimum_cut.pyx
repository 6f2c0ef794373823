"""Minimum cuts with real capacities by incremental breadth first search.

Two trees of residual arcs grow level by level, one from the source and one to the sink; their nodes
store exact distances.  Where they meet, flow is sent (Goldberg, Hed, Kaplan, Tarjan, Werneck 2011:
Maximum flows by incremental breadth-first search).  Like the trees of Boykov and Kolmogorov they
are kept from one path to the next, but time is at most O(n^2 m) for any capacities.  Both grow in
one pass over the nodes of a level, because pictures are larger than caches.

Searches read only `rows`: the entry of each arc is four times its head, plus 1 if the arc has
residual capacity, plus 2 if the reverse arc has.
"""

from typing import NamedTuple

import numpy as np

from libc.limits cimport INT_MAX
from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy, memset


class MinimumCut(NamedTuple):
    """Value of a cut, smallest source set, smallest sink set, value of the flow."""

    value: "float"
    source_side: "NDArray[np.bool_]"
    sink_side: "NDArray[np.bool_]"
    flow: "float"


cdef enum:
    ROOT = -1           # its parent is the terminal
    NONE = -2           # no parent


cdef Py_ssize_t cut_graph_bytes(Py_ssize_t n, Py_ssize_t m) noexcept nogil:
    return (n + 2 + 4 * m) / 2 * sizeof(double)


cdef Py_ssize_t cut_bytes(Py_ssize_t n, Py_ssize_t m) noexcept nogil:
    return (2 * m + n + (2 * m + 8 * n + 3) / 2) * sizeof(double)


cdef CutGraph build_cut_graph(Py_ssize_t n, Py_ssize_t m, const int* ends,
                              char* graph_memory) noexcept nogil:
    cdef CutGraph graph
    cdef Py_ssize_t v, k
    cdef int place = 0, degree
    cdef int* first = <int*>graph_memory
    cdef int* arcs = first + n + 1
    cdef int* places = arcs + 2 * m
    graph.n, graph.m, graph.ends = n, m, ends
    graph.first, graph.arcs, graph.place = first, arcs, places
    memset(first, 0, (n + 1) * sizeof(int))
    for k in range(2 * m):
        first[ends[k]] += 1
    for v in range(n):
        degree = first[v]
        first[v] = place
        place += degree
    # Filling the rows moves their starts to those of the next rows.
    for k in range(2 * m):
        v = ends[k]
        places[k] = first[v]
        arcs[first[v]] = <int>k
        first[v] += 1
    for v in range(n, 0, -1):
        first[v] = first[v - 1]
    first[0] = 0
    return graph


cdef Cut place_cut(const CutGraph* graph, char* memory) noexcept nogil:
    cdef Cut cut
    cut.graph = graph[0]
    cut.residual = <double*>memory
    cut.terminal = cut.residual + 2 * graph.m
    cut.rows = <int*>(cut.terminal + graph.n)
    cut.tree = cut.rows + 2 * graph.m
    cut.work = cut.tree + graph.n
    cut.depth = 0
    cut.value = 0
    return cut


cdef double _most_flow(const CutGraph* graph, const double* capacity,
                       const double* terminal) noexcept nogil:
    # No pair needs more flow than all terminals together; a given side counts by its arcs.  Kept
    # flows of much larger capacities would round these away.
    cdef Py_ssize_t v, j
    cdef double most = 0
    cdef bint given = False
    for v in range(graph.n):
        if fabs(terminal[v]) < INFINITY:
            most += fabs(terminal[v])
        else:
            given = True
    for j in range(2 * graph.m if given else 0):
        if fabs(terminal[graph.ends[j]]) == INFINITY:
            most += capacity[j] if capacity[j] < INFINITY else 0
            most += capacity[j ^ 1] if capacity[j ^ 1] < INFINITY else 0
    return most


cdef void load_cut(Cut* cut, const double* capacity, const double* terminal,
                   const double* flow) noexcept nogil:
    cdef Py_ssize_t v, j
    cdef const int* ends = cut.graph.ends
    cdef double* residual = cut.residual
    cdef double* left = cut.terminal
    cdef double sent, most, value = 0
    if left != terminal:
        memcpy(left, terminal, cut.graph.n * sizeof(double))
    cut.value = 0
    if flow == NULL:
        if residual != capacity:
            memcpy(residual, capacity, 2 * cut.graph.m * sizeof(double))
        return
    most = _most_flow(&cut.graph, capacity, left)
    # Each node at the source gives its outflow, and a node that gives more than it has takes
    # the rest from the sink: the value of the flow is less by that.
    for v in range(cut.graph.n):
        value += left[v] if 0 < left[v] < INFINITY else 0
    for j in range(cut.graph.m):
        sent = min(min(flow[j], most), capacity[2 * j])
        sent = max(max(sent, -most), -capacity[2 * j + 1])
        residual[2 * j] = capacity[2 * j] - sent
        residual[2 * j + 1] = capacity[2 * j + 1] + sent
        left[ends[2 * j]] -= sent
        left[ends[2 * j + 1]] += sent
        if left[ends[2 * j]] == INFINITY:
            value += sent
        if left[ends[2 * j + 1]] == INFINITY:
            value -= sent
    for v in range(cut.graph.n):
        value -= left[v] if 0 < left[v] < INFINITY else 0
    cut.value = value


cdef void save_flow(const Cut* cut, const double* capacity, double* flow) noexcept nogil:
    # Computed from the arc with less residual: a full arc's flow is exactly its capacity.
    cdef Py_ssize_t j
    cdef const double* residual = cut.residual
    for j in range(cut.graph.m):
        if residual[2 * j] <= residual[2 * j + 1]:
            flow[j] = capacity[2 * j] - residual[2 * j] if residual[2 * j] < INFINITY else 0
        else:
            flow[j] = residual[2 * j + 1] - capacity[2 * j + 1]


cdef double cut_value(const CutGraph* graph, const double* capacity, const double* terminal,
                      const signed char* inside) noexcept nogil:
    cdef Py_ssize_t v, j
    cdef double total = 0
    for v in range(graph.n):
        if (terminal[v] > 0) != inside[v] and terminal[v] != 0:
            total += terminal[v] if terminal[v] > 0 else -terminal[v]
    for j in range(graph.m):
        if inside[graph.ends[2 * j]] != inside[graph.ends[2 * j + 1]]:
            total += capacity[2 * j + (inside[graph.ends[2 * j]] == 0)]
    return total


# State of one call of solve_cut().  Side 0 is the source, with distances > 0, and side 1 is the
# sink, with distances < 0.  For an arc k out of v, flow uses k ^ side if v is closer to this side's
# terminal than the arc's head is, and k ^ 1 ^ side if k leads to the parent.
cdef struct Search:
    const int* ends
    const int* first
    const int* arcs
    const int* place
    int* rows
    double* residual
    double* terminal
    int* tree
    int* parent                 # (n,) the arc from a node to its parent, ROOT or NONE
    int* current                # (n,) resume position of the search for a parent one level down
    int* next_orphan            # (n,)
    int* bucket                 # (n + 2,) first orphan at each distance, or -1
    int* level[2]               # (n,) nodes to scan, by parity of their distance
    Py_ssize_t size[2]
    signed char* listed         # (n,) bit i: is in level[i]
    int depth                   # the distance being scanned
    int lowest, highest         # distances of orphans


cdef inline void _list(Search* search, int v, int distance) noexcept nogil:
    cdef int odd = distance & 1
    if not search.listed[v] >> odd & 1:
        search.listed[v] |= 1 << odd
        search.level[odd][search.size[odd]] = v
        search.size[odd] += 1


cdef inline void _leave(Search* search, int v, int distance) noexcept nogil:
    # Removes v's parent.
    search.parent[v] = NONE
    search.next_orphan[v] = search.bucket[distance]
    search.bucket[distance] = v
    search.lowest = distance if distance < search.lowest else search.lowest
    search.highest = distance if distance > search.highest else search.highest


cdef inline bint _reattach(Search* search, int v, int side, int distance) noexcept nogil:
    # Looks for a parent that leaves v at this distance.
    cdef int p, row, nearer = distance - 1 if side == 0 else 1 - distance
    if distance == 1:
        return False
    for p in range(search.current[v], search.first[v + 1]):
        row = search.rows[p]
        if (search.tree[row >> 2] == nearer) & (row >> (1 - side) & 1):
            search.parent[v] = search.arcs[p]
            search.current[v] = p
            return True
    return False


cdef void _adopt(Search* search, int side) noexcept nogil:
    # Finds parents for orphans, at the smallest possible distance; others leave the tree.  Goes by
    # increasing distance, because the children of nodes that move away become orphans.
    cdef int sign = 1 - 2 * side, distance = search.lowest, v, p, row, w, other, chosen
    cdef unsigned int nearest, here     # distances minus 1, which are huge outside of this tree
    cdef bint nearer
    while distance <= search.highest:
        v = search.bucket[distance]
        if v < 0:
            distance += 1
            continue
        search.bucket[distance] = search.next_orphan[v]
        if _reattach(search, v, side, distance):
            continue
        search.tree[v] = 0
        nearest, chosen = search.depth, -1
        for p in range(search.first[v], search.first[v + 1]):
            row = search.rows[p]
            w = row >> 2
            other = sign * search.tree[w]
            if search.parent[w] == search.arcs[p] ^ 1:
                _leave(search, w, other)
            here = <unsigned int>(other - 1)
            nearer = (here < nearest) & (row >> (1 - side) & 1)
            nearest = here if nearer else nearest
            chosen = p if nearer else chosen
        if chosen >= 0:
            search.tree[v] = sign * <int>(nearest + 2)
            search.parent[v] = search.arcs[chosen]
            search.current[v] = chosen
            if <int>nearest + 2 >= search.depth:
                _list(search, v, <int>nearest + 2)
    search.lowest, search.highest = INT_MAX, 0


cdef inline double _narrowest(const Search* search, int v, int side, double push) noexcept nogil:
    # The minimum of `push` and the residuals of arcs between v and its terminal.
    cdef int k = search.parent[v]
    cdef double here
    while k >= 0:
        here = search.residual[k ^ 1 ^ side]
        push = here if here < push else push
        v = search.ends[k ^ 1]
        k = search.parent[v]
    here = search.terminal[v] if side == 0 else -search.terminal[v]
    return here if here < push else push


cdef inline bint _carry(Search* search, int k, double push) noexcept nogil:
    # Sends flow along arc k; returns True if that fills it.  The narrowest arc of a path gets a
    # residual of exactly 0, despite rounding.
    cdef int here = search.place[k], back = search.place[k ^ 1]
    cdef double left = search.residual[k] - push, other = search.residual[k ^ 1]
    search.residual[k] = left
    search.residual[k ^ 1] = other + push
    if other <= 0:
        search.rows[back] |= 1
        search.rows[here] |= 2
    if left <= 0:
        search.rows[here] &= ~1
        search.rows[back] &= ~2
        return True
    return False


cdef inline void _send(Search* search, int v, int side, double push) noexcept nogil:
    # Sends flow between v and its terminal.
    cdef int k = search.parent[v], sign = 1 - 2 * side, above
    while k >= 0:
        above = search.ends[k ^ 1]
        if _carry(search, k ^ 1 ^ side, push):
            _leave(search, v, sign * search.tree[v])
        v = above
        k = search.parent[v]
    search.terminal[v] -= sign * push
    if sign * search.terminal[v] <= 0:
        _leave(search, v, 1)
    _adopt(search, side)


cdef double _grow(Search* search, bint* grown) noexcept nogil:
    # Scans the nodes at the largest distance of both trees; returns the amount of flow sent.
    # grown[side] <- whether there were such nodes.
    cdef int depth = search.depth, odd = depth & 1, side, sign, v, w, p, k, last, row, other, where
    cdef Py_ssize_t i = 0
    cdef double push, total = 0
    cdef int* tree = search.tree
    cdef int* level = search.level[odd]
    grown[0] = grown[1] = False
    while i < search.size[odd]:         # orphans may come to this distance meanwhile
        v = level[i]
        i += 1
        where = tree[v]
        if where != depth and where != -depth:
            continue
        side = where < 0
        sign = 1 - 2 * side
        grown[side] = True
        p, last = search.first[v], search.first[v + 1]
        while p < last:
            row = search.rows[p]
            w = row >> 2
            other = sign * tree[w]
            if (other > 0) | ((row >> side & 1) == 0):
                p += 1
            elif other == 0:
                tree[w] = sign * (depth + 1)
                search.parent[w] = search.arcs[p] ^ 1
                search.current[w] = search.first[w]
                _list(search, w, depth + 1)
                p += 1
            else:
                k = search.arcs[p]
                push = _narrowest(search, v, side, search.residual[k ^ side])
                push = _narrowest(search, w, 1 - side, push)
                if push == INFINITY:
                    return INFINITY
                total += push
                _carry(search, k ^ side, push)
                _send(search, v, side, push)
                _send(search, w, 1 - side, push)
                if tree[v] != where:
                    break
    for i in range(search.size[odd]):
        search.listed[level[i]] &= ~(1 << odd)
    search.size[odd] = 0
    search.depth += 1
    return total


cdef double _direct(Cut* cut) noexcept nogil:
    # Sends the flow between nodes that needs no search, and sets rows.
    cdef Py_ssize_t j
    cdef int v, w, ahead, back
    cdef const int* ends = cut.graph.ends
    cdef const int* place = cut.graph.place
    cdef double* terminal = cut.terminal
    cdef double total = 0, push, other, at_v, at_w
    for j in range(cut.graph.m):
        v, w = ends[2 * j], ends[2 * j + 1]
        at_v, at_w = terminal[v], terminal[w]
        push = at_v if at_v < -at_w else -at_w
        push = push if push < cut.residual[2 * j] else cut.residual[2 * j]
        push = push if push > 0 else 0
        other = at_w if at_w < -at_v else -at_v
        other = other if other < cut.residual[2 * j + 1] else cut.residual[2 * j + 1]
        push = -other if other > 0 else push
        if push != 0:
            total += fabs(push)
            if total == INFINITY:
                return INFINITY
            cut.residual[2 * j] -= push
            cut.residual[2 * j + 1] += push
            terminal[v] -= push
            terminal[w] += push
        ahead, back = cut.residual[2 * j] > 0, cut.residual[2 * j + 1] > 0
        cut.rows[place[2 * j]] = 4 * w + 2 * back + ahead
        cut.rows[place[2 * j + 1]] = 4 * v + 2 * ahead + back
    return total


cdef double solve_cut(Cut* cut) noexcept nogil:
    cdef Search search
    cdef Py_ssize_t n = cut.graph.n
    cdef int v
    cdef bint grown[2]
    cdef double sent = _direct(cut)
    search.ends, search.first, search.arcs = cut.graph.ends, cut.graph.first, cut.graph.arcs
    search.place, search.rows = cut.graph.place, cut.rows
    search.residual, search.terminal, search.tree = cut.residual, cut.terminal, cut.tree
    search.parent = cut.work
    search.current = search.parent + n
    search.next_orphan = search.current + n
    search.level[0] = search.next_orphan + n
    search.level[1] = search.level[0] + n
    search.bucket = search.level[1] + n
    search.listed = <signed char*>(search.bucket + n + 2)
    memset(search.bucket, -1, (n + 2) * sizeof(int))
    memset(search.listed, 0, n)
    search.size[0] = search.size[1] = 0
    search.lowest, search.highest = INT_MAX, 0
    search.depth = 1
    for v in range(<int>n):
        search.tree[v] = (cut.terminal[v] > 0) - (cut.terminal[v] < 0)
        search.parent[v] = ROOT
        if search.tree[v]:
            _list(&search, v, 1)
    grown[0] = grown[1] = True
    while sent < INFINITY and grown[0] and grown[1]:
        cut.value += sent
        sent = _grow(&search, grown)
    cut.value += sent
    cut.depth = search.depth
    return cut.value


cdef void cut_side(const Cut* cut, bint sink, signed char* inside) noexcept nogil:
    # Marks the tree of this side, and the nodes that its unscanned nodes reach.
    cdef int sign = 1 - 2 * sink, v, w, p
    cdef Py_ssize_t begin = 0, size = 0
    cdef int* queue = cut.work
    cdef const int* first = cut.graph.first
    for v in range(<int>cut.graph.n):
        inside[v] = sign * cut.tree[v] > 0
        if sign * cut.tree[v] >= cut.depth:
            queue[size] = v
            size += 1
    while begin < size:
        v = queue[begin]
        begin += 1
        for p in range(first[v], first[v + 1]):
            w = cut.rows[p] >> 2
            if not inside[w] and cut.rows[p] >> sink & 1:
                inside[w] = 1
                queue[size] = w
                size += 1


cdef bint _read_amounts(const double[:, ::1] given, double* amounts) noexcept nogil:
    # Copies to the first columns of pairs; False if a number is negative or NaN.
    cdef Py_ssize_t j, c, columns = given.shape[1]
    cdef bint right = True
    for j in range(given.shape[0]):
        for c in range(columns):
            amounts[2 * j + c] = given[j, c]
            right &= given[j, c] >= 0
    return right


def _refuse_amount(name, values):
    index = np.unravel_index(int((~(values >= 0)).argmax()), values.shape)
    raise ValueError(
        f"{name}{list(map(int, index))}: found {values[index]}, expected a number >= 0"
    )


def _refuse_arc(arcs, n):
    j = int(((arcs < 0) | (arcs >= n)).any(axis=1).argmax())
    raise ValueError(f"arcs[{j}]: found {tuple(arcs[j].tolist())}, expected nodes 0 to {n - 1}")


def _terminals(name, values, n):
    values = np.ascontiguousarray(values, dtype=np.float64)
    if values.shape != (n,):
        raise ValueError(f"{name}: found shape {values.shape}, expected ({n},)")
    return values


cdef class CutNetwork:
    """Nodes and arcs whose capacities change from cut to cut.

    Source and sink are not among the nodes.  Lists of arcs are built once.  Each cut starts from
    the flow of the last one, which saves time if capacities are similar (Kohli, Torr 2005:
    Efficiently solving dynamic Markov random fields using graph cuts).

    Parameters
    ----------
    n_nodes : int
        Number of nodes, at least 1.
    arcs : array of int of shape (m, 2)
        Tail and head of each arc; parallel arcs are allowed.

    Raises
    ------
    ValueError
        If sizes do not match, or an arc names a node that does not exist.

    Examples
    --------
    >>> from structsolve.algorithms.minimum_cut import CutNetwork
    >>> network = CutNetwork(3, [[0, 1], [1, 2]])
    >>> network.cut([2.0, 1.5], [3, 0, 0], [0, 0, 9]).value
    1.5
    >>> network.cut([2.0, 2.5], [3, 0, 0], [0, 0, 9]).value
    2.0
    """

    cdef readonly Py_ssize_t n_nodes, n_arcs
    cdef CutGraph graph
    cdef Cut current
    cdef double* capacity           # (m, 2)
    cdef double* terminal           # (n,)
    cdef double* flow               # (m,)
    cdef object owner
    cdef bint solved

    def __init__(self, n_nodes, arcs):
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
        if n >= 2**29 or m >= 2**30:
            raise ValueError(
                f"arcs: found {m} of {n} nodes, expected fewer than 2**30 of 2**29 nodes"
            )
        if arcs.dtype != np.intc and m and not (arcs.min() >= 0 and arcs.max() < n):
            _refuse_arc(arcs, n)
        cdef const int[:, ::1] given = np.ascontiguousarray(arcs, dtype=np.intc)
        cdef Py_ssize_t of_graph = cut_graph_bytes(n, m)
        cdef double[::1] memory = np.empty((of_graph + cut_bytes(n, m)) // 8 + 4 * m + n)
        cdef int* ends
        cdef char* rest
        self.n_nodes, self.n_arcs, self.solved = n, m, False
        self.owner = memory
        self.capacity = &memory[0]
        self.terminal = self.capacity + 2 * m
        self.flow = self.terminal + n
        ends = <int*>(self.flow + m)
        rest = <char*>(ends + 2 * m)
        for j in range(m):
            if not (0 <= given[j, 0] < n and 0 <= given[j, 1] < n):
                _refuse_arc(arcs, n)
            ends[2 * j], ends[2 * j + 1] = given[j, 0], given[j, 1]
        self.graph = build_cut_graph(n, m, ends, rest)
        self.current = place_cut(&self.graph, rest + of_graph)

    def cut(self, capacities, from_source, to_sink, bint warm_start=True):
        """Return a minimum cut between source and sink.

        Parameters
        ----------
        capacities : array of float of shape (m,) or of shape (m, 2)
            Capacity of each arc, and with a second column that of the opposite direction; ``inf``
            for no limit.
        from_source, to_sink : array of float of shape (n_nodes,)
            Capacity from the source to each node, and from each node to the sink.
        warm_start : bool, default=True
            Start from the flow of the last call; the answer is the same up to rounding.

        Returns
        -------
        MinimumCut
            ``value``; ``source_side``, the smallest set of nodes on the source's side of any
            minimum cut; ``sink_side``, the smallest on the sink's; ``flow``, the value of a
            maximum flow, equal to ``value`` up to rounding.

        Raises
        ------
        ValueError
            If sizes do not match, a capacity is negative or NaN, or no cut is finite.
        """
        cdef Py_ssize_t n = self.n_nodes, v
        cdef double constant = 0, value, source, sink
        cdef bint warm = warm_start and self.solved
        if warm:
            save_flow(&self.current, self.capacity, self.flow)
        self.solved = False
        self._read_capacities(capacities)
        cdef const double[::1] sources = _terminals("from_source", from_source, n)
        cdef const double[::1] sinks = _terminals("to_sink", to_sink, n)
        for v in range(n):
            source, sink = sources[v], sinks[v]
            if not (source >= 0 and sink >= 0):
                _refuse_amount("to_sink" if source >= 0 else "from_source",
                               np.asarray(sinks if source >= 0 else sources))
            if source == INFINITY and sink == INFINITY:
                raise ValueError(
                    f"from_source and to_sink of node {v} are both infinite, expected a finite cut"
                )
            constant += source if source < sink else sink
            self.terminal[v] = source - sink
        source_side, sink_side = np.empty((2, n), dtype=bool)
        cdef signed char[::1] near_source = source_side.view(np.int8)
        cdef signed char[::1] near_sink = sink_side.view(np.int8)
        with nogil:
            load_cut(&self.current, self.capacity, self.terminal, self.flow if warm else NULL)
            value, source = solve_cut(&self.current), 0
            if value < INFINITY:
                cut_side(&self.current, False, &near_source[0])
                source = cut_value(&self.graph, self.capacity, self.terminal, &near_source[0])
        if value == INFINITY:
            raise ValueError(
                "capacities: found a path from source to sink of infinite capacity, expected a "
                "finite cut"
            )
        self.solved = True
        cut_side(&self.current, True, &near_sink[0])
        return MinimumCut(constant + source, source_side, sink_side, constant + value)

    cdef _read_capacities(self, capacities):
        cdef Py_ssize_t m = self.n_arcs, j
        values = np.asarray(capacities, dtype=np.float64, order="C")
        if values.ndim == 0:
            values = np.full(m, values)
        if values.shape not in ((m,), (m, 2)) and (m or values.size):
            raise ValueError(f"capacities: found shape {values.shape}, expected ({m},) or ({m}, 2)")
        if m == 0:
            return
        if values.ndim == 1:
            for j in range(m):
                self.capacity[2 * j + 1] = 0
        if not _read_amounts(values.reshape(m, -1), self.capacity):
            _refuse_amount("capacities", values)


def minimum_cut(n_nodes, arcs, capacities, from_source, to_sink):
    """Return a minimum cut between a source and a sink.

    Source and sink are not among the nodes: ``from_source`` and ``to_sink`` hold the capacities
    between them and each node.  For many cuts of one network see `CutNetwork`.

    Parameters
    ----------
    n_nodes : int
        Number of nodes, at least 1.
    arcs : array of int of shape (m, 2)
        Tail and head of each arc; parallel arcs are allowed.
    capacities : array of float of shape (m,) or of shape (m, 2)
        Capacity of each arc, and with a second column that of the opposite direction; ``inf`` for
        no limit.
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
        If sizes do not match, a capacity is negative or NaN, or no cut is finite.

    Examples
    --------
    >>> from structsolve.algorithms.minimum_cut import minimum_cut
    >>> cut = minimum_cut(3, [[0, 1], [1, 2]], [2.0, 1.5], [3, 0, 0], [0, 0, 9])
    >>> cut.value, cut.source_side.tolist(), cut.sink_side.tolist()
    (1.5, [True, True, False], [False, False, True])
    """
    return CutNetwork(n_nodes, arcs).cut(capacities, from_source, to_sink)
