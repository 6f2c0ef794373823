"""Sum-product on graphs without cycles: the entropy projection of mrf and of label sets."""

import numpy as np

from structsolve.utils.arrays import padded

cimport cython
from libc.math cimport INFINITY
from libc.string cimport memset
from structsolve.algorithms.max_product cimport Forest
from structsolve.algorithms.sum_product cimport (
    forest_derivative, forest_entropy, forest_marginals, forest_sample, forest_slope, sums_bytes,
)
from structsolve.algorithms.messages cimport Marginals
from structsolve.simd.loops cimport ss_loop_table, ss_loops
from structsolve.operators cimport Projection
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.mrf.tables._model cimport Model, other_end
from structsolve.plugins.mrf.tables._shape cimport GraphShape


@cython.final
cdef class ForestSumProduct(Projection):
    """Marginals of ``p(y) ~ exp <theta, mu(y)>`` on forests, and ``log sum_y exp <theta, mu(y)>``.

    Scores are copied into tables of equal size whose rows are for parents; states that a node
    lacks are forbidden.  All edges use one table if they share a symmetric one.

    A state holds the marginals of all nodes, then those of all edges: rows of states, padded.

    Parameters
    ----------
    shape : GraphShape
        Shape of graphs without cycles.
    layout : PartLayout
    """

    cdef GraphShape shape
    cdef const ss_loop_table* loops
    cdef Py_ssize_t K, stride, scores_bytes
    cdef bint one_table
    cdef object owners
    cdef int* parents           # of nodes, -1 at roots
    cdef int* degrees
    cdef int* below             # lower end of each edge

    def __init__(self, GraphShape shape not None, PartLayout layout not None):
        super().__init__(layout)
        if not shape.forest:
            raise ValueError("found a graph with a cycle, expected forests")
        self.shape, self.K = shape, shape.max_states
        self.n_states = shape.n_states
        self.stride = padded(self.K)
        self.loops = ss_loops(self.stride)
        self.one_table = shape.symmetric and shape.one_table
        self._index()
        # Scores in the model's layout; padded rows of nodes, padded tables; a state.
        size = self.K * self.stride
        self.scores_bytes = 64 * (1 + (8 * (
            shape.max_unary + shape.max_pair + shape.max_nodes * self.stride
            + (2 * shape.max_edges + 2) * size + shape.max_nodes * self.stride) + 63) // 64)
        self.work_bytes = self.scores_bytes + sums_bytes(shape.max_nodes, self.K, self.stride)
        self.gibbs = self.has_state = self.has_term = True
        self.has_samples = self.has_derivative = True

    def _index(self):
        """Parents of nodes, their degrees, the lower ends of edges."""
        cdef GraphShape shape = self.shape
        cdef Py_ssize_t n = len(shape.states), m = len(shape.ends), g, v, first, first_edge
        cdef int[::1] parents = np.full(n + 1, -1, dtype=np.int32)
        cdef int[::1] degrees = np.zeros(n + 1, dtype=np.int32)
        cdef int[::1] below = np.zeros(m + 1, dtype=np.int32)
        cdef Model model
        cdef int e
        for g in range(shape.n_graphs):
            model, first, first_edge = shape.graph(g), shape.first_node(g), shape.first_edge(g)
            for v in range(model.n):
                degrees[first + v] = <int>(model.near_at[v + 1] - model.near_at[v])
                e = shape.up_p[first + v]
                if e >= 0:
                    parents[first + v] = other_end(&model, e, v)
                    below[first_edge + e] = <int>v
        self.owners = parents, degrees, below
        self.parents, self.degrees, self.below = &parents[0], &degrees[0], &below[0]

    cdef Forest sizes(self, Py_ssize_t i) noexcept nogil:
        # The forest of example i without scores.
        cdef Forest forest
        cdef Py_ssize_t first = self.shape.first_node(i)
        forest.n, forest.K, forest.stride = self.shape.graph(i).n, self.K, self.stride
        forest.order, forest.edge = self.shape.order_p + first, self.shape.up_p + first
        forest.parent = self.parents + first
        forest.nodes, forest.roots = NULL, NULL
        forest.pairs.shared = forest.pairs.edges = NULL
        forest.pairs.buffer = NULL
        return forest

    cdef Forest gather(self, Py_ssize_t i, const double* theta, double** state,
                       char* work) noexcept nogil:
        # The forest with its scores, in `work`; state <- memory for a state.
        cdef Forest forest = self.sizes(i)
        cdef Py_ssize_t v, e, s, t, step, K = self.K, stride = self.stride, size = K * stride
        cdef Py_ssize_t below_at = self.shape.first_edge(i), columns
        cdef double* unary = <double*>work
        cdef double* nodes = unary + self.shape.max_unary + self.shape.max_pair
        cdef double* tables = nodes + self.shape.max_nodes * stride
        cdef double* table = tables
        cdef const double* pair
        cdef Model model = self.shape.gather(i, theta, unary)
        cdef int child, parent
        state[0] = tables + (self.shape.max_edges + 1) * size
        for v in range(forest.n):
            for s in range(stride):
                nodes[v * stride + s] = 0
                if s < model.states[v]:
                    nodes[v * stride + s] = model.unary[model.unary_at[v] + s]
                elif s < K:
                    nodes[v * stride + s] = -INFINITY
        memset(table, 0, size * sizeof(double))
        for e in range(min(model.m, 1) if self.one_table else model.m):
            child = self.below[below_at + e]
            parent = other_end(&model, e, child)
            pair, columns = model.pair + model.pair_at[e], model.states[model.ends[2 * e + 1]]
            # A step in the model's table per state of the child.
            step = columns if model.ends[2 * e] == child else 1
            memset(table, 0, size * sizeof(double))
            for s in range(model.states[parent]):
                for t in range(model.states[child]):
                    table[s * stride + t] = pair[s * (columns if step == 1 else 1) + t * step]
            table += size
        forest.nodes = nodes
        if self.one_table or model.m == 0:
            forest.pairs.shared = tables
        else:
            forest.pairs.edges = tables
        return forest

    cdef void scatter(self, Py_ssize_t i, const double* state, double* mu) noexcept nogil:
        # mu <- the marginals of a state, pooled if parts are shared.
        cdef Model model = self.shape.graph(i)
        cdef Py_ssize_t v, e, s, t, a, b, skip = self.shape.skip
        cdef Py_ssize_t below_at = self.shape.first_edge(i)
        cdef const double* edge = state + model.n * self.stride
        cdef double* row = mu + self.shape.node_start
        cdef double* table = mu + self.shape.pairs_of(i)
        cdef int child, parent
        cdef bint turned
        memset(mu, 0, self.shape.theta_size(i) * sizeof(double))
        for v in range(model.n):
            for s in range(skip, model.states[v]):
                row[s - skip] = state[v * self.stride + s]
            row += self.shape.node_step
        for e in range(model.m):
            child = self.below[below_at + e]
            parent = other_end(&model, e, child)
            turned = model.ends[2 * e] == child
            for s in range(model.states[parent]):
                for t in range(model.states[child]):
                    a, b = (t, s) if turned else (s, t)
                    if self.shape.symmetric and a > b:
                        a, b = b, a
                    table[a * self.shape.row + b] += edge[s * self.stride + t]
            edge += self.K * self.stride
            table += self.shape.edge_step

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        cdef double* state
        cdef Forest forest = self.gather(i, theta, &state, work)
        self.solve(i, &forest, state, value, work)
        bound[0] = value[0]
        self.scatter(i, state, marginals)
        return 0

    cdef int solve(self, Py_ssize_t i, const Forest* forest, double* state, double* value,
                   char* work) except -1 nogil:
        cdef Marginals out
        out.nodes, out.edges = state, state + forest.n * self.stride
        out.transition = NULL
        forest_marginals(self.loops, forest, i, &out, value, work + self.scores_bytes)
        return 0

    cdef Py_ssize_t state_size(self, Py_ssize_t i) noexcept nogil:
        cdef Model model = self.shape.graph(i)
        return (model.n + model.m * self.K) * self.stride

    cdef int project_state(self, Py_ssize_t i, const double* theta, double* state, double* value,
                           double* bound, char* work) except -1 nogil:
        cdef double* spare
        cdef Forest forest = self.gather(i, theta, &spare, work)
        self.solve(i, &forest, state, value, work)
        bound[0] = value[0]
        return 0

    cdef int state_of(self, Py_ssize_t i, const int* label, double* state) except -1 nogil:
        cdef Model model = self.shape.graph(i)
        cdef Py_ssize_t v, e, below_at = self.shape.first_edge(i)
        cdef double* edge = state + model.n * self.stride
        cdef int child, parent
        memset(state, 0, self.state_size(i) * sizeof(double))
        for v in range(model.n):
            state[v * self.stride + label[v]] = 1
        for e in range(model.m):
            child = self.below[below_at + e]
            parent = other_end(&model, e, child)
            edge[label[parent] * self.stride + label[child]] = 1
            edge += self.K * self.stride
        return 0

    cdef int pool(self, Py_ssize_t i, const double* state, double* marginals) except -1 nogil:
        self.scatter(i, state, marginals)
        return 0

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        cdef Forest forest = self.sizes(i)
        return forest_entropy(&forest, self.degrees + self.shape.first_node(i), state,
                              state + forest.n * self.stride, self.shape.graph(i).m)

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        cdef Forest forest = self.sizes(i)
        return forest_slope(&forest, self.degrees + self.shape.first_node(i), a, b,
                            self.shape.graph(i).m, True, gamma)

    cdef int sample(self, Py_ssize_t i, const double* theta, Py_ssize_t n, const double* uniforms,
                    int* labels, char* work) except -1 nogil:
        cdef double* spare
        cdef Forest forest = self.gather(i, theta, &spare, work)
        return forest_sample(self.loops, &forest, i, n, uniforms, labels, work + self.scores_bytes)

    cpdef Py_ssize_t derivative_bytes(self) except -1:
        """Room for a direction, gathered like scores, after the memory of project()."""
        return (self.work_bytes + 63) // 64 * 64 + self.scores_bytes

    cdef int derivative(self, Py_ssize_t i, const double* theta, const double* direction,
                        double* out, char* work) except -1 nogil:
        cdef double* state
        cdef double* moved
        cdef double* row
        cdef double value
        cdef Marginals tables
        cdef Py_ssize_t j
        cdef Forest forest = self.gather(i, theta, &state, work)
        self.solve(i, &forest, state, &value, work)
        forest = self.gather(i, direction, &moved, work + (self.work_bytes + 63) // 64 * 64)
        # States that a node lacks have derivative 0, though their scores are -inf.
        row = <double*>forest.nodes
        for j in range(forest.n * self.stride):
            row[j] = 0 if row[j] == -INFINITY else row[j]
        tables.nodes, tables.edges = moved, moved + forest.n * self.stride
        tables.transition = NULL
        # This takes no more memory than the sums.
        forest_derivative(self.loops, &forest, state, state + forest.n * self.stride, &tables,
                          work + self.scores_bytes)
        self.scatter(i, moved, out)
        return 0
