# build: glue
"""Spanning trees that together cover all edges of a graph: a distribution over trees.

Each tree takes the edges that the fewest trees before have, so that the shares of edges are nearly
equal.  Their number is near the least possible, the arboricity.
"""

import numpy as np

from libc.stdlib cimport calloc, free
from structsolve.utils.allocate cimport allocated

from structsolve.plugins.mrf.tables._model cimport Model, other_end
from structsolve.plugins.mrf.tables._shape cimport GraphShape


cdef int _root(int* parent, int v) noexcept nogil:
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = parent[v]
    return v


cdef void _grow(const Model* model, const long long* rank, int* parent, char* taken) noexcept nogil:
    # taken <- a maximal forest, of the edges of least rank (Kruskal).
    cdef Py_ssize_t k, e
    cdef int u, v
    for v in range(<int>model.n):
        parent[v] = v
    for k in range(model.m):
        e = rank[k]
        u, v = _root(parent, model.ends[2 * e]), _root(parent, model.ends[2 * e + 1])
        taken[e] = u != v
        parent[u] = v


cdef void _walk(const Model* model, const char* taken, int* order, int* up,
                char* seen) noexcept nogil:
    # Breadth first from the first node of each tree.
    cdef Py_ssize_t root, k, head = 0, tail = 0
    cdef int v, w
    for root in range(model.n):
        seen[root] = False
    for root in range(model.n):
        if seen[root]:
            continue
        seen[root], order[tail], up[root] = True, <int>root, -1
        tail += 1
        while head < tail:
            v = order[head]
            head += 1
            for k in range(model.near_at[v], model.near_at[v + 1]):
                w = other_end(model, model.near[k], v)
                if taken[model.near[k]] and not seen[w]:
                    seen[w], order[tail], up[w] = True, w, model.near[k]
                    tail += 1


cdef class SpanningTrees:
    """Spanning trees of the graphs of a shape; of graphs in several parts, spanning forests.

    Parameters
    ----------
    shape : GraphShape

    Examples
    --------
    >>> import numpy as np
    >>> from structsolve.plugins.mrf import MRFStructure
    >>> from structsolve.plugins.mrf.relaxation._spanning_trees import SpanningTrees
    >>> from structsolve.structure.ask import make_layout
    >>> space, examples = MRFStructure([[0, 1], [1, 2], [2, 0]], n_states=2).make_space(
    ...     np.zeros((1, 3, 1)), [[0, 0, 0]])
    >>> SpanningTrees(space.graphs(make_layout(space, examples))).shares(0).tolist()
    [0.5, 1.0, 0.5]
    """

    def __cinit__(self, GraphShape shape not None):
        cdef Py_ssize_t g
        cdef Model model
        self.trees = <Trees*>allocated(calloc(shape.n_graphs + 1, sizeof(Trees)), b"spanning trees")
        self.shape, self.owners = shape, []
        for g in range(shape.n_graphs):
            model = shape.graph(g)
            self._cover(g, &model)

    def __dealloc__(self):
        free(self.trees)

    def shares(self, Py_ssize_t g):
        """Return the share of the trees that have each edge of graph ``g``."""
        if not 0 <= g < len(self.owners):
            raise ValueError(f"g is {g}, expected 0 to {len(self.owners) - 1}")
        return np.array(self.owners[g][2])

    cdef Trees of(self, Py_ssize_t g) noexcept nogil:
        return self.trees[g]

    cdef int _cover(self, Py_ssize_t g, const Model* model) except -1:
        cdef Py_ssize_t n = model.n, m = model.m
        cdef char[::1] taken = np.zeros(m + 1, np.int8), seen = np.zeros(n + 1, np.int8)
        cdef int[::1] parent = np.zeros(n + 1, np.intc), order, up
        cdef const long long[::1] rank
        cdef const double[::1] share
        count, orders, ups = np.zeros(m), [], []
        while not orders or not count.all():
            rank = np.append(np.argsort(count, kind="stable"), 0).astype(np.longlong)
            order, up = np.zeros((2, n), np.intc)
            with nogil:
                _grow(model, &rank[0], &parent[0], &taken[0])
                _walk(model, &taken[0], &order[0], &up[0], &seen[0])
            count += np.asarray(taken)[:m]
            orders.append(order)
            ups.append(up)
        order, up = np.concatenate(orders), np.concatenate(ups)
        share = np.append(count / len(orders), 1.0)
        self.trees[g] = Trees(len(orders), &order[0], &up[0], &share[0])
        self.owners.append((order, up, share[:m]))
        return 0
