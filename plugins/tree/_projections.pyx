"""Sum-product on trees: marginals, log-partition, entropy and its slope, samples."""

cimport cython
from libc.string cimport memcpy, memset
from structsolve.algorithms.max_product cimport Forest
from structsolve.algorithms.sum_product cimport (
    forest_entropy, forest_marginals, forest_partition, forest_sample, forest_slope, sums_bytes,
)
from structsolve.algorithms.messages cimport Marginals
from structsolve.operators cimport Projection
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.tree._shape cimport TreeShape, tree_shape

import numpy as np


@cython.final
cdef class TreeSumProduct(Projection):
    """Marginals of ``p(y) ~ exp <theta, mu(y)>`` on trees, and ``log sum_y exp <theta, mu(y)>``.

    The entropy projection.  Scores of -inf forbid a state or a pair of states; its marginals are
    exactly 0.

    A state holds the marginals of all nodes and, where pairs of states are scored at all, of all
    edges one by one: rows of K, padded, K of them per edge.

    Parameters
    ----------
    layout : PartLayout
        Of a tree space.
    """

    cdef TreeShape shape
    cdef Py_ssize_t buffer

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        cdef TreeShape shape = tree_shape(layout)
        self.shape = shape
        self.n_states = shape.K
        self.buffer = shape.buffer_bytes()
        self.work_bytes = self.buffer + sums_bytes(shape.max_nodes, shape.K, shape.stride)
        self.gibbs = True
        self.has_state = True
        self.has_term = True
        self.has_samples = True

    def log_partition(self, Py_ssize_t i, const double[::1] theta, Py_ssize_t repeat=1):
        """Log-partition of example ``i`` by the pass up alone.

        Parameters
        ----------
        i : int
        theta : ndarray of float64
            Part scores, in the layout of the space.
        repeat : int
            How many times to compute it (for timing).
        """
        cdef Py_ssize_t size = self.layout.sizes(i)[0]
        if theta.shape[0] != size:
            raise ValueError(f"example {i}: theta has {theta.shape[0]} scores, expected {size}")
        cdef double[::1] work = np.zeros(self.work_bytes // 8 + 9)
        cdef char* memory = <char*>&work[0]
        cdef double value = 0
        cdef Forest forest
        memory += -<size_t>memory % 64
        with nogil:
            forest = self.shape.forest(i, &theta[0], memory)
            for _ in range(repeat):
                forest_partition(self.shape.loops, &forest, i, &value, memory + self.buffer)
        return value

    cdef Py_ssize_t nodes(self, Py_ssize_t i) noexcept nogil:
        return self.shape.offset[i + 1] - self.shape.offset[i]

    cdef Py_ssize_t edges(self, Py_ssize_t i) noexcept nogil:
        return self.shape.edge_offset[i + 1] - self.shape.edge_offset[i]

    cdef void roots(self, Py_ssize_t i, double* marginals) noexcept nogil:
        # The root table is pooled from the roots.
        cdef Py_ssize_t v, s, stride = self.shape.stride
        cdef const int* parent = self.shape.parent_p + self.shape.offset[i]
        cdef const double* nodes = marginals + self.shape.shared_size
        if self.shape.root >= 0:
            for v in range(self.nodes(i)):
                if parent[v] < 0:
                    for s in range(stride):
                        marginals[self.shape.root + s] += nodes[v * stride + s]

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        cdef Forest forest = self.shape.forest(i, theta, work)
        cdef Marginals out
        out.nodes = marginals + self.shape.shared_size
        out.edges = out.nodes + forest.n * self.shape.stride if self.shape.edge_size else NULL
        out.transition = marginals + self.shape.transition if self.shape.transition >= 0 else NULL
        memset(marginals, 0, self.shape.shared_size * sizeof(double))
        forest_marginals(self.shape.loops, &forest, i, &out, value, work + self.buffer)
        bound[0] = value[0]
        self.roots(i, marginals)
        return 0

    cdef Py_ssize_t state_size(self, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t rows = self.nodes(i)
        if self.shape.pairs:
            rows += self.edges(i) * self.shape.K
        return rows * self.shape.stride

    cdef int project_state(self, Py_ssize_t i, const double* theta, double* state, double* value,
                           double* bound, char* work) except -1 nogil:
        cdef Forest forest = self.shape.forest(i, theta, work)
        cdef Marginals out
        out.nodes = state
        out.edges = state + forest.n * self.shape.stride if self.shape.pairs else NULL
        out.transition = NULL
        forest_marginals(self.shape.loops, &forest, i, &out, value, work + self.buffer)
        bound[0] = value[0]
        return 0

    cdef int state_of(self, Py_ssize_t i, const int* label, double* state) except -1 nogil:
        cdef Py_ssize_t v, n = self.nodes(i), stride = self.shape.stride
        cdef const int* parent = self.shape.parent_p + self.shape.offset[i]
        cdef const int* number = self.shape.edge_p + self.shape.offset[i]
        cdef double* edges = state + n * stride
        memset(state, 0, self.state_size(i) * sizeof(double))
        for v in range(n):
            state[v * stride + label[v]] = 1
            if self.shape.pairs and parent[v] >= 0:
                edges[(number[v] * self.shape.K + label[parent[v]]) * stride + label[v]] = 1
        return 0

    cdef int pool(self, Py_ssize_t i, const double* state, double* marginals) except -1 nogil:
        cdef Py_ssize_t e, s, rows = self.nodes(i) * self.shape.stride
        cdef Py_ssize_t size = self.shape.K * self.shape.stride
        cdef const double* edge = state + rows
        cdef double* nodes = marginals + self.shape.shared_size
        cdef double* table = marginals + self.shape.transition
        memset(marginals, 0, self.shape.shared_size * sizeof(double))
        memcpy(nodes, state, rows * sizeof(double))
        if self.shape.edge_size:
            memcpy(nodes + rows, edge, self.edges(i) * size * sizeof(double))
        if self.shape.transition >= 0:
            for e in range(self.edges(i)):
                for s in range(size):
                    table[s] += edge[e * size + s]
        self.roots(i, marginals)
        return 0

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        cdef Forest forest = self.shape.forest(i, state, work)     # sizes; scores are not read
        cdef const double* edges = NULL
        if self.shape.pairs:
            edges = state + forest.n * self.shape.stride
        return forest_entropy(&forest, self.shape.degree_p + self.shape.offset[i], state, edges,
                              self.edges(i))

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        cdef Forest forest = self.shape.forest(i, a, work)
        return forest_slope(&forest, self.shape.degree_p + self.shape.offset[i], a, b,
                            self.edges(i), self.shape.pairs, gamma)

    cdef int sample(self, Py_ssize_t i, const double* theta, Py_ssize_t n, const double* uniforms,
                    int* labels, char* work) except -1 nogil:
        cdef Forest forest = self.shape.forest(i, theta, work)
        return forest_sample(self.shape.loops, &forest, i, n, uniforms, labels, work + self.buffer)
