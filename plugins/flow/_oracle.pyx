# build: glue
"""Whole flows of largest score: longest paths, or successive shortest paths; parts and losses."""

from graphlib import TopologicalSorter

import numpy as np

cimport cython
from libc.math cimport INFINITY
from libc.string cimport memset
from structsolve.algorithms.lawler_heap cimport Candidate, pop, push
from structsolve.operators cimport KBest, Loss, Oracle, Parts
from structsolve.part_layout cimport PartLayout


cdef int _stuck(Py_ssize_t i) except -1 with gil:
    raise ValueError(f"example {i}: no flow meets the demands, or scores are not finite")


cdef struct Entry:
    double key
    int node


cdef inline void _push(Entry* heap, Py_ssize_t* size, double key, int node) noexcept nogil:
    cdef Py_ssize_t j = size[0], up
    size[0] += 1
    while j > 0:
        up = (j - 1) >> 1
        if heap[up].key < key or (heap[up].key == key and heap[up].node <= node):
            break
        heap[j] = heap[up]
        j = up
    heap[j].key, heap[j].node = key, node


cdef inline Entry _pop(Entry* heap, Py_ssize_t* size) noexcept nogil:
    cdef Entry top = heap[0], last
    cdef Py_ssize_t j = 0, down
    size[0] -= 1
    last = heap[size[0]]
    while True:
        down = 2 * j + 1
        if down >= size[0]:
            break
        if down + 1 < size[0] and (heap[down + 1].key < heap[down].key or (
                heap[down + 1].key == heap[down].key and heap[down + 1].node < heap[down].node)):
            down += 1
        if last.key < heap[down].key or (last.key == heap[down].key
                                         and last.node <= heap[down].node):
            break
        heap[j] = heap[down]
        j = down
    heap[j] = last
    return top


@cython.final
cdef class FlowSolver:
    """The whole flow of largest ``sum_a theta_a y_a`` within capacities that meets the demands.

    Arcs of positive score start full, the others empty; excess at nodes then goes along shortest
    residual paths to nodes with a deficit (Dijkstra with potentials). In an acyclic network with
    one source, one sink and no binding capacity, all flow takes one longest path.

    Parameters
    ----------
    network : structsolve.plugins.flow.network.Network
        With whole demands and capacities.
    """

    cdef Py_ssize_t n, m, work_bytes
    cdef readonly Py_ssize_t n_states   # one more than the maximum flow of an arc
    cdef const int* ends
    cdef const int* first           # (n + 1,) where the residual arcs of each node start
    cdef const int* residual        # (2 m,) 2 a: along arc a; 2 a + 1: against it
    cdef const int* upper
    cdef const int* supply
    cdef const int* order           # (m,) arcs by the topological order of their tails
    cdef bint path
    cdef int source, sink, amount
    cdef object owners

    def __init__(self, network):
        self.n, self.m = network.n, network.m
        self.n_states = int(network.upper.max()) + 1
        ends = network.ends
        tails = np.column_stack([ends[:, 0], ends[:, 1]]).ravel()     # of residual arcs
        order = np.argsort(tails, kind="stable").astype(np.int32)
        counts = np.bincount(tails, minlength=self.n)
        first_all = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        cdef const int[::1] end_view = np.ascontiguousarray(ends.ravel(), dtype=np.int32)
        cdef const int[::1] first = first_all, residual = order
        cdef const int[::1] upper = network.upper.astype(np.int32)
        cdef const int[::1] supply = (-network.demand).astype(np.int32)
        givers, takers = np.flatnonzero(network.demand < 0), np.flatnonzero(network.demand > 0)
        self.path = bool(network.acyclic and len(givers) == len(takers) == 1
                         and (network.upper == network.total).all())
        arcs = np.zeros(self.m, dtype=np.int32)
        if self.path:
            self.source, self.sink = int(givers[0]), int(takers[0])
            self.amount = int(network.total)
            arcs = _topological(ends, self.n)
        cdef const int[::1] arc_view = arcs
        self.owners = (end_view, first, residual, upper, supply, arc_view)
        self.ends, self.first, self.residual = &end_view[0], &first[0], &residual[0]
        self.upper, self.supply, self.order = &upper[0], &supply[0], &arc_view[0]
        # Distances, potentials, parents, excesses, the heap.
        self.work_bytes = (16 * self.n + 8 * self.n + sizeof(Entry) * (2 * self.m + self.n + 1)
                           + 64)

    cdef int solve(self, Py_ssize_t i, const double* theta, int* label, double* value,
                   char* work) except -1 nogil:
        if self.path:
            self.longest_path(i, theta, label, work)
        elif not self.cheapest_flow(theta, NULL, self.upper, label, work):
            return _stuck(i)
        value[0] = self.score(theta, label)
        return 0

    cdef double score(self, const double* theta, const int* label) noexcept nogil:
        cdef Py_ssize_t a
        cdef double total = 0
        for a in range(self.m):
            if label[a]:
                total += theta[a] * label[a]
        return total

    cdef int longest_path(self, Py_ssize_t i, const double* theta, int* label,
                          char* work) except -1 nogil:
        cdef double* best = <double*>work
        cdef int* via = <int*>(best + self.n)
        cdef Py_ssize_t k, v
        cdef int a
        for v in range(self.n):
            best[v], via[v] = -INFINITY, -1
        best[self.source] = 0
        for k in range(self.m):
            a = self.order[k]
            if best[self.ends[2 * a]] + theta[a] > best[self.ends[2 * a + 1]]:
                best[self.ends[2 * a + 1]] = best[self.ends[2 * a]] + theta[a]
                via[self.ends[2 * a + 1]] = a
        memset(label, 0, self.m * sizeof(int))
        v = self.sink
        while v != self.source:
            if via[v] < 0:
                return _stuck(i)
            label[via[v]] = self.amount
            v = self.ends[2 * via[v]]
        return 0

    cdef bint cheapest_flow(self, const double* theta, const int* low, const int* high, int* label,
                            char* work) noexcept nogil:
        # Solve over flows between `low` (NULL: 0) and `high`; False if there is none.
        cdef double* dist = <double*>work
        cdef double* potential = dist + self.n
        cdef Entry* heap = <Entry*>(potential + self.n)
        cdef int* via = <int*>(heap + 2 * self.m + self.n + 1)
        cdef int* excess = via + self.n
        cdef Py_ssize_t a, v, k, size
        cdef int r, u, z, end, amount
        cdef double length, reduced
        cdef Entry top
        cdef bint some
        for v in range(self.n):
            potential[v], excess[v] = 0, self.supply[v]
        for a in range(self.m):
            label[a] = high[a] if theta[a] > 0 else low[a] if low != NULL else 0
            excess[self.ends[2 * a]] -= label[a]
            excess[self.ends[2 * a + 1]] += label[a]
        while True:
            # From all nodes with excess to the nearest one with a deficit.
            size = 0
            some = False
            for v in range(self.n):
                dist[v], via[v] = INFINITY, -1
                if excess[v] > 0:
                    dist[v] = 0
                    some = True
                    _push(heap, &size, 0, <int>v)
            if not some:
                return True
            end = -1
            while size > 0:
                top = _pop(heap, &size)
                u = top.node
                if top.key > dist[u]:
                    continue
                if excess[u] < 0:
                    end = u
                    break
                for k in range(self.first[u], self.first[u + 1]):
                    r = self.residual[k]
                    a = r >> 1
                    if r & 1:
                        if label[a] == (low[a] if low != NULL else 0):
                            continue
                        z, length = self.ends[2 * a], theta[a]
                    else:
                        if label[a] == high[a]:
                            continue
                        z, length = self.ends[2 * a + 1], -theta[a]
                    # Rounding may make it negative.
                    reduced = length + potential[u] - potential[z]
                    if reduced < 0:
                        reduced = 0
                    if dist[u] + reduced < dist[z]:
                        dist[z], via[z] = dist[u] + reduced, r
                        _push(heap, &size, dist[z], z)
            if end < 0:
                return False
            for v in range(self.n):
                if dist[v] < dist[end]:
                    potential[v] += dist[v] - dist[end]
            amount, u = -excess[end], end
            while via[u] >= 0:
                r = via[u]
                a = r >> 1
                if r & 1:
                    amount = min(amount, label[a] - (low[a] if low != NULL else 0))
                    u = self.ends[2 * a + 1]
                else:
                    amount = min(amount, high[a] - label[a])
                    u = self.ends[2 * a]
            amount = min(amount, excess[u])
            excess[u] -= amount
            excess[end] += amount
            u = end
            while via[u] >= 0:
                r = via[u]
                a = r >> 1
                if r & 1:
                    label[a] -= amount
                    u = self.ends[2 * a + 1]
                else:
                    label[a] += amount
                    u = self.ends[2 * a]


cdef object _topological(ends, n):
    before = {v: [] for v in range(n)}
    for u, v in ends.tolist():
        before[v].append(u)
    rank = np.zeros(n, dtype=np.int64)
    for k, v in enumerate(TopologicalSorter(before).static_order()):
        rank[v] = k
    return np.argsort(rank[ends[:, 0]], kind="stable").astype(np.int32)


@cython.final
cdef class FlowOracle(Oracle):
    """The whole flow of largest score; no fractional flow scores more.

    Parameters
    ----------
    solver : FlowSolver
        Solver of the network that all examples share.
    layout : PartLayout
        Layout of a flow space.
    """

    cdef FlowSolver solver

    def __init__(self, FlowSolver solver not None, PartLayout layout not None):
        super().__init__(layout)
        self.solver, self.n_states = solver, solver.n_states
        self.work_bytes = solver.work_bytes

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        self.solver.solve(i, theta, label, value, work)
        bound[0] = value[0]
        return 0


cdef struct Bounds:
    int first           # arcs before it carry the flow of the previous answer
    int low, high       # bounds of the flow on arc `first`


@cython.final
cdef class FlowKBest(KBest):
    """The k best whole flows by Lawler's partition, O(k m) flows of largest score.

    The flows without the answers so far fall into disjoint sets.  A set has the flows that agree
    with an answer on the arcs before one, and carry less, or more, on that one.

    Parameters
    ----------
    solver : FlowSolver
        Solver of the network that all examples share.
    layout : PartLayout
        Layout of a flow space.
    """

    cdef FlowSolver solver
    cdef Py_ssize_t solver_bytes

    def __init__(self, FlowSolver solver not None, PartLayout layout not None):
        super().__init__(layout)
        self.solver, self.n_states = solver, solver.n_states
        self.solver_bytes = (solver.work_bytes + 63) // 64 * 64
        self.work_bytes = self.bytes_for(1)

    cpdef Py_ssize_t bytes_for(self, Py_ssize_t k) except -1:
        cdef Py_ssize_t m = self.solver.m
        return self.solver_bytes + k * (
            2 * m * <Py_ssize_t>sizeof(Candidate) + <Py_ssize_t>sizeof(Bounds)
        ) + 3 * m * <Py_ssize_t>sizeof(int)

    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels,
                          double* values, char* work) except -1 nogil:
        cdef Py_ssize_t m = self.solver.m, count = 1, n_sets = 0
        cdef Candidate* sets = <Candidate*>(work + self.solver_bytes)
        cdef Bounds* bounds = <Bounds*>(sets + 2 * k * m)
        cdef int* low = <int*>(bounds + k)
        cdef int* label
        cdef Candidate item
        self.solver.solve(i, theta, labels, values, work)
        bounds[0].first, bounds[0].low, bounds[0].high = 0, 0, self.solver.upper[0]
        while count < k:
            label = labels + (count - 1) * m
            item.path = <int>count - 1
            for item.v in range(bounds[count - 1].first, m):
                for item.s in range(2):
                    if self.best_of(theta, &item, label, bounds, low, low + 2 * m, work):
                        item.value = self.solver.score(theta, low + 2 * m)
                        if item.value > -INFINITY:
                            push(sets, &n_sets, item)
            if not n_sets:
                break
            item = pop(sets, &n_sets)
            label = labels + count * m
            self.best_of(theta, &item, labels + item.path * m, bounds, low, label, work)
            bounds[count].first = item.v
            bounds[count].low, bounds[count].high = low[item.v], low[m + item.v]
            # A larger value is equal up to rounding.
            values[count] = min(self.solver.score(theta, label), values[count - 1])
            count += 1
        return count

    cdef bint best_of(self, const double* theta, const Candidate* item, const int* before,
                      const Bounds* bounds, int* low, int* label, char* work) noexcept nogil:
        # label <- the best flow of a set; False if it is empty.
        cdef Py_ssize_t a, m = self.solver.m, v = item.v
        cdef int* high = low + m
        for a in range(v):
            low[a] = high[a] = before[a]
        for a in range(v, m):
            low[a], high[a] = 0, self.solver.upper[a]
        if v == bounds[item.path].first:
            low[v], high[v] = bounds[item.path].low, bounds[item.path].high
        if item.s:
            low[v] = before[v] + 1
        else:
            high[v] = before[v] - 1
        return low[v] <= high[v] and self.solver.cheapest_flow(theta, low, high, label, work)


@cython.final
cdef class FlowParts(Parts):
    """One part per arc: the flow that it carries.

    Parameters
    ----------
    most : int
        Maximum flow on any arc.
    layout : PartLayout
        Layout of a flow space.
    """

    cdef Py_ssize_t m

    def __init__(self, Py_ssize_t most, PartLayout layout not None):
        super().__init__(layout)
        self.m = self.max_entries = layout.shapes["node"][0]
        self.n_states = most + 1

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        cdef Py_ssize_t a, k = 0
        for a in range(self.m):
            if label[a] != 0:
                index[k], value[k] = <int>a, label[a]
                k += 1
        return k

    cdef Py_ssize_t difference(self, Py_ssize_t i, const int* truth, const int* label, int* index,
                               double* value) except -1 nogil:
        cdef Py_ssize_t a, k = 0
        for a in range(self.m):
            if label[a] != truth[a]:
                index[k], value[k] = <int>a, truth[a] - label[a]
                k += 1
        return k


@cython.final
cdef class ArcLoss(Loss):
    """Number of arcs with a wrong flow, for capacities of at most 1; or its mean over the arcs.

    Parameters
    ----------
    normalised : bool
        Divide by the number of arcs.
    layout : PartLayout
        Layout of a flow space.
    """

    cdef Py_ssize_t m
    cdef double weight

    def __init__(self, bint normalised, PartLayout layout not None):
        super().__init__(layout)
        self.m = layout.shapes["node"][0]
        self.n_states = 2
        self.weight = 1.0 / self.m if normalised else 1.0
        self.averaged = normalised
        self.decomposes = self.has_costs = True

    def check_truths(self, const int[::1] labels not None):
        """Refuse true flows of another size, and of more than 1 on an arc."""
        cdef Py_ssize_t k
        if labels.shape[0] != self.layout.n * self.m:
            raise ValueError(
                f"found flows on {labels.shape[0]} arcs, expected {self.layout.n} x {self.m}"
            )
        for k in range(labels.shape[0]):
            if not 0 <= labels[k] <= 1:
                raise ValueError(
                    f"example {k // self.m}: arc {k % self.m} carries {labels[k]}, expected 0 or 1"
                )

    cdef double value(self, Py_ssize_t i, const int* truth, const int* label) except? -1 nogil:
        cdef Py_ssize_t a, wrong = 0
        for a in range(self.m):
            wrong += truth[a] != label[a]
        return self.weight * wrong

    cdef double augment(self, Py_ssize_t i, const int* truth, double scale,
                        double* theta) except? -1 nogil:
        cdef Py_ssize_t a, used = 0
        scale *= self.weight
        for a in range(self.m):
            theta[a] += scale * (1 - 2 * truth[a])
            used += truth[a]
        return scale * used

    cdef double costs(self, Py_ssize_t i, const double* nu, bint transposed, double scale,
                      double* theta) except? -1 nogil:
        # sum_a y_a + y'_a - 2 y_a y'_a, the same both ways; affine in nu.
        cdef Py_ssize_t a
        cdef double used = 0
        scale *= self.weight
        for a in range(self.m):
            theta[a] += scale * (1 - 2 * nu[a])
            used += nu[a]
        return scale * used
