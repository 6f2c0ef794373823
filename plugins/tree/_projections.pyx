"""Sum-product on trees: marginals, log-partition, entropy and its slope, samples."""

cimport cython
from libc.string cimport memset
from structsolve.algorithms.labelings cimport LabelingProjection
from structsolve.algorithms.max_product cimport Forest
from structsolve.algorithms.sum_product cimport (
    derivative_bytes, forest_derivative, forest_entropy, forest_marginals, forest_partition,
    forest_sample, forest_slope, sums_bytes,
)
from structsolve.algorithms.messages cimport Marginals
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.tree._shape cimport TreeShape, tree_shape


@cython.final
cdef class TreeSumProduct(LabelingProjection):
    """Marginals of ``p(y) ~ exp <theta, mu(y)>`` on trees, and ``log sum_y exp <theta, mu(y)>``.

    The entropy projection.  Scores of -inf forbid a state or a pair of states; its marginals are
    exactly 0.

    Parameters
    ----------
    layout : PartLayout
        Layout of a tree space.
    """

    cdef TreeShape shape
    cdef Py_ssize_t buffer

    def __init__(self, PartLayout layout not None):
        cdef TreeShape shape = tree_shape(layout)
        self.shape, self.buffer = shape, shape.buffer_bytes()
        super().__init__(
            layout, shape, self.buffer + sums_bytes(shape.max_nodes, shape.K, shape.stride))
        self.has_derivative = True
        self.move_bytes = self.buffer + derivative_bytes(shape.max_nodes, shape.K, shape.stride)

    cdef int partition(self, Py_ssize_t i, const double* theta, double* value,
                       char* work) except -1 nogil:
        cdef Forest forest = self.shape.forest(i, theta, work)
        return forest_partition(self.shape.loops, &forest, i, value, work + self.buffer)

    cdef int sums(self, Py_ssize_t i, const double* theta, const Marginals* out, double* value,
                  char* work) except -1 nogil:
        cdef Forest forest = self.shape.forest(i, theta, work)
        return forest_marginals(self.shape.loops, &forest, i, out, value, work + self.buffer)

    cdef void move(self, Py_ssize_t i, const double* direction, const Marginals* marginals,
                   const Marginals* out, char* work) noexcept nogil:
        cdef Forest forest = self.shape.forest(i, direction, work)
        forest_derivative(self.shape.loops, &forest, marginals.nodes, marginals.edges, out,
                          work + self.buffer)

    cdef void pool_nodes(self, Py_ssize_t i, const double* nodes, double* marginals) noexcept nogil:
        # The root table is pooled from the roots.
        cdef Py_ssize_t v, s, stride = self.shape.stride
        cdef const int* parent = self.shape.parent_p + self.shape.offsets[i]
        if self.shape.root >= 0:
            for v in range(self.shape.nodes_of(i)):
                if parent[v] < 0:
                    for s in range(stride):
                        marginals[self.shape.root + s] += nodes[v * stride + s]

    cdef int state_of(self, Py_ssize_t i, const int* label, double* state) except -1 nogil:
        cdef Py_ssize_t v, n = self.shape.nodes_of(i), stride = self.shape.stride
        cdef const int* parent = self.shape.parent_p + self.shape.offsets[i]
        cdef const int* number = self.shape.edge_p + self.shape.offsets[i]
        cdef double* edges = state + n * stride
        memset(state, 0, self.state_size(i) * sizeof(double))
        for v in range(n):
            state[v * stride + label[v]] = 1
            if self.shape.pairs and parent[v] >= 0:
                edges[(number[v] * self.shape.K + label[parent[v]]) * stride + label[v]] = 1
        return 0

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        cdef Forest forest = self.shape.forest(i, state, work)     # sizes; scores are not read
        cdef const double* edges = NULL
        if self.shape.pairs:
            edges = state + forest.n * self.shape.stride
        return forest_entropy(&forest, self.shape.degree_p + self.shape.offsets[i], state, edges,
                              self.shape.edges_of(i))

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        cdef Forest forest = self.shape.forest(i, a, work)
        return forest_slope(&forest, self.shape.degree_p + self.shape.offsets[i], a, b,
                            self.shape.edges_of(i), self.shape.pairs, gamma)

    cdef int sample(self, Py_ssize_t i, const double* theta, Py_ssize_t n, const double* uniforms,
                    int* labels, char* work) except -1 nogil:
        cdef Forest forest = self.shape.forest(i, theta, work)
        return forest_sample(self.shape.loops, &forest, i, n, uniforms, labels, work + self.buffer)
