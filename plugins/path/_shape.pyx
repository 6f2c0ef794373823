"""Graphs with a source and a sink: order of their nodes, and checks.

A label has one integer per node: 1 and the number of the edge by which the path leaves it, 0 at
other nodes and at the sink.
"""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.string cimport memset
from structsolve.part_layout cimport PartLayout


cdef int _refuse(Py_ssize_t i, double score) except -1 with gil:
    raise ValueError(
        f"example {i}: a node or an edge has the score {score}, expected numbers up to 1e300 (or "
        "-inf, which forbids it); check that the weights are finite"
    )


cdef int _no_path(PathShape shape, Py_ssize_t i) except -1 with gil:
    raise ValueError(
        f"example {i}: scores of -inf block every path from {shape.name(i, shape.source(i))} to "
        f"{shape.name(i, shape.sink(i))}; allow more nodes or edges"
    )


cdef void _bucket(Py_ssize_t n, Py_ssize_t m, const int* keys, const signed char* kept, int* first,
                  int* items) noexcept nogil:
    # items <- numbers of the kept edges by key, in their order; first[v] .. first[v + 1] have v.
    cdef Py_ssize_t v, e
    memset(first, 0, (n + 2) * sizeof(int))
    for e in range(m):
        if kept[e]:
            first[keys[e] + 2] += 1
    for v in range(n):
        first[v + 2] += first[v + 1]
    for e in range(m):
        if kept[e]:
            items[first[keys[e] + 1]] = <int>e
            first[keys[e] + 1] += 1


cdef Py_ssize_t _spread(int start, const int* first, const int* items, const int* other,
                        signed char* mark, signed char sign, int* queue) noexcept nogil:
    # Marks what edges lead to, from `start`; returns the number of nodes in the queue.
    cdef Py_ssize_t head = 0, size = 1, k
    cdef int v
    queue[0] = start
    mark[start] |= sign
    while head < size:
        for k in range(first[queue[head]], first[queue[head] + 1]):
            v = other[items[k]]
            if not mark[v] & sign:
                mark[v] |= sign
                queue[size] = v
                size += 1
        head += 1
    return size


cdef class PathShape:
    """The graphs of packed examples, with the nodes on ways from source to sink in order.

    Parameters
    ----------
    layout : PartLayout
        Layout of a path space.  The topology of its examples has "tails" and "heads" of all edges
        and "ends", source and sink of each example, nodes counted from 0 in every example;
        and "edge_starts", the first edge of each example.

    Raises
    ------
    ValueError
        If these do not fit, or no way leads from a source to its sink.
    """

    def __init__(self, PartLayout layout not None):
        topology = layout.examples.topology
        cdef Py_ssize_t n = layout.n, total = layout.offsets[n], i
        starts = np.ascontiguousarray(topology["edge_starts"], dtype=np.int64)
        if starts.shape != (n + 1,) or starts[0] != 0 or (np.diff(starts) < 0).any():
            raise ValueError(f"edge_starts: expected {n + 1} rising numbers from 0")
        cdef const int64_t[::1] edge_starts = starts
        cdef Py_ssize_t m = starts[n]
        arrays = [
            _checked(topology[name], size, name)
            for name, size in (("tails", m), ("heads", m), ("ends", 2 * n))
        ]
        cdef const int[::1] tails = arrays[0], heads = arrays[1], ends = arrays[2]
        cdef signed char[::1] cyclic = np.zeros(n + 1, dtype=np.int8)
        cdef int[::1] made = np.zeros(2 * n + 2 * total + 2 * m + 3, dtype=np.int32)
        self.n, self.topology, self.scored = n, topology, layout.edge_size > 0
        self.offsets, self.edge_offsets = layout.offsets, &edge_starts[0]
        self.max_nodes = max(layout.max_nodes, 1)
        self.max_edges = max(int(np.diff(starts).max(initial=0)), 1)
        self.tails, self.heads, self.ends = &tails[0], &heads[0], &ends[0]
        self.counts, self.cyclic = &made[0], &cyclic[0]
        self.nodes = self.counts + n + 1
        self.first = self.nodes + total
        self.edges = self.first + total + n + 1
        self.targets = self.edges + m
        self.owners = (layout.owners, starts, tails, heads, ends, cyclic, made)
        cdef int[::1] room = np.zeros(6 * self.max_nodes + 3 * self.max_edges + 16, dtype=np.int32)
        for i in range(n):
            if self.scored and layout.edges_of(i) != self.edges_of(i):
                raise ValueError(
                    f"example {i}: {layout.edges_of(i)} rows of edges, expected "
                    f"{self.edges_of(i)}, one for each edge"
                )
            self.read(i, &room[0])

    def name(self, Py_ssize_t i, Py_ssize_t v):
        """Return a node as users name it.

        Parameters
        ----------
        i, v : int
            Example, and number of the node in it.

        Returns
        -------
        object
        """
        names, shapes = self.topology.get("names"), self.topology.get("shapes")
        if shapes is not None and shapes[i][1]:
            return divmod(v, int(shapes[i][1]))
        return v if names is None or names[i] is None else names[i][v]

    def is_cyclic(self, Py_ssize_t i):
        """Return whether a cycle lies between source and sink.

        Parameters
        ----------
        i : int

        Returns
        -------
        bool
        """
        if not 0 <= i < self.n:
            raise ValueError(f"example {i} of {self.n}: expected 0 to {self.n - 1}")
        return bool(self.cyclic[i])

    def any_cyclic(self):
        """Return whether :meth:`is_cyclic` is True for any example.

        Returns
        -------
        bool
        """
        return any(self.is_cyclic(i) for i in range(self.n))

    def refuse_cycles(self, what):
        """Refuse examples with cycles.

        Parameters
        ----------
        what : str
            What needs graphs without them.

        Raises
        ------
        ValueError
            The message names the first example that has a cycle, and the cycle's nodes.
        """
        cdef Py_ssize_t i, p, k
        for i in range(self.n):
            if not self.cyclic[i]:
                continue
            import networkx  # heavy

            graph = networkx.DiGraph()
            for p in range(self.places_of(i)):
                for k in range(self.first_of(i)[p], self.first_of(i)[p + 1]):
                    graph.add_edge(p, self.targets_of(i)[k])
            cycle = [u for u, _ in networkx.find_cycle(graph)]
            names = [self.name(i, self.nodes[self.offsets[i] + u]) for u in cycle]
            raise ValueError(
                f"example {i}: {what} needs a graph without cycles, and {len(cycle)} nodes form one "
                f"({names[:12]}); give a DAG, or a grid with monotone=True"
            )

    def check(self, const int[::1] labels not None):
        """Refuse encoded labels that are no paths.

        Parameters
        ----------
        labels : ndarray of int32
            Of all examples, concatenated.

        Raises
        ------
        ValueError
            The message names the example.
        """
        cdef Py_ssize_t i, n, used, steps
        cdef int v, e
        cdef const int* label
        if labels.shape[0] != self.offsets[self.n]:
            raise ValueError(f"found {labels.shape[0]} entries, expected {self.offsets[self.n]}")
        for i in range(self.n):
            label, n, used, steps = &labels[self.offsets[i]], self.nodes_of(i), 0, 0
            for v in range(n):
                used += label[v] != 0
            v = self.source(i)
            while v != self.sink(i) and steps < n:
                e = label[v] - 1
                if not 0 <= e < self.edges_of(i) or self.tails[self.edge_offsets[i] + e] != v:
                    break
                v = self.heads[self.edge_offsets[i] + e]
                steps += 1
            if v != self.sink(i) or used != steps:
                raise ValueError(
                    f"example {i}: the true label is no path from {self.name(i, self.source(i))} "
                    f"to {self.name(i, self.sink(i))}: it ends at {self.name(i, v)}"
                )

    cdef int read(self, Py_ssize_t i, int* room) except -1:
        # Places and steps of one example.
        cdef Py_ssize_t n = self.nodes_of(i), m = self.edges_of(i), e, k, p, live, taken = 0
        cdef const int* tails = self.tails + self.edge_offsets[i]
        cdef const int* heads = self.heads + self.edge_offsets[i]
        cdef int* nodes = self.nodes + self.offsets[i]
        cdef int* out = room
        cdef int* items = out + n + 2
        cdef int* queue = items + m
        cdef int* degree = queue + n
        cdef int* place = degree + n
        cdef int* back = place + n
        cdef signed char* kept = <signed char*>(back + n + 2)
        cdef signed char* mark = kept + m
        cdef int v, source = self.source(i), sink = self.sink(i)
        cdef bint rising = True
        if not (0 <= source < n and 0 <= sink < n):
            raise ValueError(f"example {i}: source {source}, sink {sink}, expected 0 to {n - 1}")
        for e in range(m):
            if not (0 <= tails[e] < n and 0 <= heads[e] < n):
                raise ValueError(
                    f"example {i}, edge {e}: from {tails[e]} to {heads[e]}, expected 0 to {n - 1}"
                )
            # A path neither enters its source nor leaves its sink.
            kept[e] = tails[e] != heads[e] and heads[e] != source and tails[e] != sink
        memset(mark, 0, n)
        _bucket(n, m, tails, kept, out, items)
        _spread(source, out, items, heads, mark, 1, queue)
        if not mark[sink]:
            raise ValueError(
                f"example {i}: no way leads from {self.name(i, source)} to {self.name(i, sink)}"
            )
        _bucket(n, m, heads, kept, back, items)
        live = _spread(sink, back, items, tails, mark, 2, queue)
        memset(degree, 0, n * sizeof(int))
        for e in range(m):
            kept[e] = kept[e] and mark[tails[e]] == 3 and mark[heads[e]] == 3
            if kept[e]:
                degree[heads[e]] += 1
                rising = rising and tails[e] < heads[e]
        _bucket(n, m, tails, kept, out, items)
        live = 0
        for v in range(n):
            if mark[v] == 3:
                if rising:
                    nodes[live] = v
                live += 1
        if not rising:
            # Nodes whose edges from before are all taken; those of cycles follow, the sink last.
            k, taken, nodes[0] = 0, 1, source
            while k < taken:
                for e in range(out[nodes[k]], out[nodes[k] + 1]):
                    v = heads[items[e]]
                    degree[v] -= 1
                    if degree[v] == 0:
                        nodes[taken] = v
                        taken += 1
                k += 1
            self.cyclic[i] = taken < live
            if taken < live:
                for v in range(n):
                    if mark[v] == 3 and degree[v] > 0 and v != source and v != sink:
                        nodes[taken] = v
                        taken += 1
                nodes[live - 1] = sink
        self.counts[i] = <int>live
        for p in range(live):
            place[nodes[p]] = <int>p
        cdef int* first = self.first + self.offsets[i] + i
        cdef int* steps = self.edges + self.edge_offsets[i]
        cdef int* targets = self.targets + self.edge_offsets[i]
        k = 0
        for p in range(live):
            first[p] = <int>k
            for e in range(out[nodes[p]], out[nodes[p] + 1]):
                steps[k], targets[k] = items[e], place[heads[items[e]]]
                k += 1
        first[live] = <int>k
        return 0

    cdef Py_ssize_t nodes_of(self, Py_ssize_t i) noexcept nogil:
        return self.offsets[i + 1] - self.offsets[i]

    cdef Py_ssize_t edges_of(self, Py_ssize_t i) noexcept nogil:
        return self.edge_offsets[i + 1] - self.edge_offsets[i]

    cdef Py_ssize_t places_of(self, Py_ssize_t i) noexcept nogil:
        return self.counts[i]

    cdef int source(self, Py_ssize_t i) noexcept nogil:
        return self.ends[2 * i]

    cdef int sink(self, Py_ssize_t i) noexcept nogil:
        return self.ends[2 * i + 1]

    cdef const int* first_of(self, Py_ssize_t i) noexcept nogil:
        return self.first + self.offsets[i] + i

    cdef const int* targets_of(self, Py_ssize_t i) noexcept nogil:
        return self.targets + self.edge_offsets[i]

    cdef int load(self, Py_ssize_t i, const double* theta, double* steps) except -1 nogil:
        cdef Py_ssize_t k, size = self.first_of(i)[self.counts[i]]
        cdef double wrong = theta[self.source(i)]
        self.load_direction(i, theta, steps)
        if wrong <= 1e300:
            wrong = 0
            for k in range(size):
                if not steps[k] <= 1e300:
                    wrong = steps[k]
                elif steps[k] < -1e300:
                    steps[k] = -INFINITY
        return _refuse(i, wrong) if wrong != 0 else 0

    cdef void load_direction(self, Py_ssize_t i, const double* direction,
                             double* steps) noexcept nogil:
        cdef Py_ssize_t k, n = self.nodes_of(i), size = self.first_of(i)[self.counts[i]]
        cdef const int* edges = self.edges + self.edge_offsets[i]
        cdef const int* heads = self.heads + self.edge_offsets[i]
        if self.scored:
            for k in range(size):
                steps[k] = direction[heads[edges[k]]] + direction[n + edges[k]]
        else:
            for k in range(size):
                steps[k] = direction[heads[edges[k]]]

    cdef void follow(self, Py_ssize_t i, const int* via, int* label) noexcept nogil:
        cdef const int* nodes = self.nodes + self.offsets[i]
        cdef const int* edges = self.edges + self.edge_offsets[i]
        cdef const int* targets = self.targets_of(i)
        cdef int p = 0, last = self.counts[i] - 1
        memset(label, 0, self.nodes_of(i) * sizeof(int))
        while p != last:
            label[nodes[p]] = edges[via[p]] + 1
            p = targets[via[p]]

    cdef int impossible(self, Py_ssize_t i) except -1 nogil:
        return _no_path(self, i)


cdef object _checked(given, Py_ssize_t size, str name):
    # An int32 array with one spare entry, so that it has an address.
    array = np.asarray(given).ravel()
    if array.dtype.kind not in "iu" or array.size != size:
        raise ValueError(f"{name}: {array.size} numbers of {array.dtype}, expected {size} integers")
    return np.append(array, 0).astype(np.int32)


cdef PathShape path_shape(PartLayout layout):
    return layout.common(PathShape, PathShape)


def graphs_of(PartLayout layout not None):
    """Return the graphs of packed examples, made once per layout.

    Parameters
    ----------
    layout : PartLayout
        Layout of a path space.

    Returns
    -------
    PathShape
    """
    return path_shape(layout)
