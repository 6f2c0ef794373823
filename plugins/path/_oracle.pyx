"""The best paths: one, and the k best; exact on graphs without cycles, by search on others."""

cimport cython
from libc.math cimport INFINITY
from structsolve.operators cimport KBest, Oracle
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.path._search cimport (
    best_simple_path, k_simple_paths, search_bytes, yen_bytes,
)
from structsolve.plugins.path._shape cimport PathShape, path_shape


cdef Py_ssize_t _step_bytes(PathShape shape) noexcept:
    return (shape.max_edges * sizeof(double) + 63) // 64 * 64


cdef double _best_to_sink(PathShape shape, Py_ssize_t i, const double* steps, double* best,
                          int* via) noexcept nogil:
    # Without cycles, from the sink backwards; of equally good steps the first.
    cdef Py_ssize_t p, k
    cdef const int* first = shape.first_of(i)
    cdef const int* targets = shape.targets_of(i)
    cdef double top, score
    p = shape.places_of(i) - 1
    best[p] = 0
    while p:
        p -= 1
        top = -INFINITY
        via[p] = first[p]
        for k in range(first[p], first[p + 1]):
            score = steps[k] + best[targets[k]]
            if score > top:
                top, via[p] = score, <int>k
        best[p] = top
    return best[0]


@cython.final
cdef class PathOracle(Oracle):
    """The path of largest score; scores of -inf forbid a node or an edge.

    Graphs without cycles: one pass over the edges, for scores of any sign.  Others: Dijkstra's
    algorithm if no step scores above 0, else Bellman and Ford's.  If a cycle has a positive score,
    the search counts positive scores as 0: its path may not be the best one, and the bound adds
    the largest positive score at every node.

    Parameters
    ----------
    layout : PartLayout
        Layout of a path space.
    """

    cdef PathShape shape
    cdef Py_ssize_t step_bytes

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.shape = path_shape(layout)
        self.n_states = self.shape.max_edges + 1
        self.step_bytes = _step_bytes(self.shape)
        self.exact = not self.shape.any_cyclic()
        self.work_bytes = self.step_bytes + 16 * self.shape.max_nodes + search_bytes(self.shape)

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        cdef double* steps = <double*>work
        cdef double* best = <double*>(work + self.step_bytes)
        cdef int* via = <int*>(best + self.shape.max_nodes)
        cdef double gain
        self.shape.load(i, theta, steps)
        if not self.shape.cyclic[i]:
            value[0] = _best_to_sink(self.shape, i, steps, best, via)
            gain = 0
        else:
            gain = self.search(i, steps, best, via, value, <char*>(best + 2 * self.shape.max_nodes))
        value[0] += theta[self.shape.source(i)]
        bound[0] = value[0] + gain
        if value[0] < -1e300:
            return self.shape.impossible(i)
        self.shape.follow(i, via, label)
        if gain > 0:
            value[0] = self.score(i, theta, label)
        return 0

    cdef double search(self, Py_ssize_t i, double* steps, double* most, int* via, double* value,
                       char* work) noexcept nogil:
        # Returns what a path may gain beyond the value, if a cycle has a positive score.
        cdef Py_ssize_t k, p, n = self.shape.places_of(i)
        cdef const int* targets = self.shape.targets_of(i)
        cdef double gain = 0
        if best_simple_path(self.shape, i, steps, 0, value, via, work):
            return 0
        for p in range(n):
            most[p] = 0
        for k in range(self.shape.first_of(i)[n]):
            if steps[k] > 0:
                most[targets[k]] = max(most[targets[k]], steps[k])
                steps[k] = 0
        for p in range(n):
            gain += most[p]
        best_simple_path(self.shape, i, steps, 0, value, via, work)
        return gain

    cdef double score(self, Py_ssize_t i, const double* theta, const int* label) noexcept nogil:
        cdef Py_ssize_t v, n = self.shape.nodes_of(i)
        cdef double total = theta[self.shape.sink(i)]
        for v in range(n):
            if label[v]:
                total += theta[v]
                if self.shape.scored:
                    total += theta[n + label[v] - 1]
        return total


cdef struct Ways:
    # The k best ways from each place to the sink, best first.
    double* values
    int* steps          # the first step of each
    int* ranks          # which way of its end it goes on with
    int* counts


@cython.final
cdef class PathKBest(KBest):
    """The k best paths: without cycles from the k best of every node, else by Yen's algorithm.

    Parameters
    ----------
    layout : PartLayout
        Layout of a path space.
    """

    cdef PathShape shape
    cdef Py_ssize_t step_bytes

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.shape = path_shape(layout)
        self.n_states = self.shape.max_edges + 1
        self.step_bytes = _step_bytes(self.shape)
        self.work_bytes = self.bytes_for(1)

    cpdef Py_ssize_t bytes_for(self, Py_ssize_t k) except -1:
        cdef Py_ssize_t n = self.shape.max_nodes, ways = 16 * n * k + 4 * n + 64
        return self.step_bytes + max(ways, yen_bytes(self.shape, k))

    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels,
                          double* values, char* work) except -1 nogil:
        cdef double* steps = <double*>work
        cdef Py_ssize_t count, j
        cdef double start = theta[self.shape.source(i)]
        self.shape.load(i, theta, steps)
        work += self.step_bytes
        if start < -1e300:
            return self.shape.impossible(i)
        if self.shape.cyclic[i]:
            count = k_simple_paths(self.shape, i, steps, k, labels, values, work)
        else:
            count = self.ways(self.shape, i, steps, k, labels, values, work)
        for j in range(count):
            values[j] += start
        return count if count else self.shape.impossible(i)

    cdef Py_ssize_t ways(self, PathShape shape, Py_ssize_t i, const double* steps, Py_ssize_t k,
                         int* labels, double* values, char* work) noexcept nogil:
        cdef Py_ssize_t p, e, r, j, count, target, n = shape.places_of(i)
        cdef const int* first = shape.first_of(i)
        cdef const int* targets = shape.targets_of(i)
        cdef double score
        cdef Ways w
        w.values = <double*>work
        w.steps = <int*>(w.values + shape.max_nodes * k)
        w.ranks = w.steps + shape.max_nodes * k
        w.counts = w.ranks + shape.max_nodes * k
        w.counts[n - 1], w.values[(n - 1) * k] = 1, 0
        for p in range(n - 2, -1, -1):
            count = 0
            for e in range(first[p], first[p + 1]):
                target = targets[e]
                for r in range(w.counts[target]):
                    score = steps[e] + w.values[target * k + r]
                    if score == -INFINITY or (count == k and score <= w.values[p * k + k - 1]):
                        break
                    # Behind equally good ones, so that the first is the oracle's.
                    j = count if count < k else k - 1
                    count = min(count + 1, k)
                    while j and w.values[p * k + j - 1] < score:
                        w.values[p * k + j] = w.values[p * k + j - 1]
                        w.steps[p * k + j] = w.steps[p * k + j - 1]
                        w.ranks[p * k + j] = w.ranks[p * k + j - 1]
                        j -= 1
                    w.values[p * k + j] = score
                    w.steps[p * k + j], w.ranks[p * k + j] = <int>e, <int>r
            w.counts[p] = <int>count
        for r in range(w.counts[0]):
            values[r] = w.values[r]
            self.trace(i, k, r, &w, labels + r * shape.nodes_of(i))
        return w.counts[0]

    cdef void trace(self, Py_ssize_t i, Py_ssize_t k, Py_ssize_t r, const Ways* w,
                    int* label) noexcept nogil:
        cdef const int* nodes = self.shape.nodes + self.shape.offsets[i]
        cdef const int* edges = self.shape.edges + self.shape.edge_offsets[i]
        cdef Py_ssize_t p = 0, v, last = self.shape.places_of(i) - 1, e
        for v in range(self.shape.nodes_of(i)):
            label[v] = 0
        while p != last:
            e = w.steps[p * k + r]
            r = w.ranks[p * k + r]
            label[nodes[p]] = edges[e] + 1
            p = self.shape.targets_of(i)[e]
