# build: glue
"""The base of chains and trees: offsets, states and marginals of the parts of labelings.

A *state* holds the marginals of all nodes and, if pairs of states are scored, of each edge: K
padded rows of K.  The parts pool the tables of all edges.
"""

import numpy as np

from libc.string cimport memcpy, memset
from structsolve.algorithms.messages cimport Marginals
from structsolve.operators cimport Projection
from structsolve.part_layout cimport PartLayout
from structsolve.simd.loops cimport ss_loops
from structsolve.utils.alignment cimport align


cdef class LabelingShape:
    """Offsets of the parts of labelings in ``theta``, and their sizes, for the loops.

    Parameters
    ----------
    layout : PartLayout
        Has a node block, and perhaps an edge block and a shared block "transition".
    """

    def __init__(self, PartLayout layout not None):
        self.offsets, self.owners = layout.offsets, layout.owners
        self.K = layout.shapes["node"][0]
        self.stride, self.loops = layout.node_size, ss_loops(layout.node_size)
        self.shared_size, self.edge_size = layout.shared_size, layout.edge_size
        self.transition = layout.starts.get("transition", -1)
        self.pairs = self.transition >= 0 or self.edge_size > 0
        self.max_nodes = max(layout.max_nodes, 1)

    cdef Py_ssize_t nodes_of(self, Py_ssize_t i) noexcept nogil:
        return self.offsets[i + 1] - self.offsets[i]

    cdef Py_ssize_t edges_of(self, Py_ssize_t i) noexcept nogil:
        return 0


cdef class LabelingProjection(Projection):
    """Marginals of ``p(y) ~ exp <theta, mu(y)>``, and ``log sum_y exp <theta, mu(y)>``.

    The entropy projection.  Scores of -inf forbid a state or a pair of states; its marginals are
    exactly 0.

    Parameters
    ----------
    layout : PartLayout
    shape : LabelingShape
        Shape of the same layout.
    work_bytes : int
        Scratch memory of one call.
    """

    def __init__(self, PartLayout layout not None, LabelingShape shape not None,
                 Py_ssize_t work_bytes):
        super().__init__(layout)
        self.base, self.n_states, self.work_bytes = shape, shape.K, work_bytes
        self.gibbs = self.has_state = self.has_term = self.has_samples = True

    def log_partition(self, Py_ssize_t i, const double[::1] theta not None, Py_ssize_t repeat=1):
        """Return only the log-partition of example ``i``, without marginals.

        Parameters
        ----------
        i : int
        theta : ndarray of float64
            Part scores, in the layout of the space.
        repeat : int
            Number of computations, for timing.

        Returns
        -------
        float
        """
        cdef Py_ssize_t size = self.layout.sizes(i)[0]
        if theta.shape[0] != size:
            raise ValueError(f"example {i}: theta has {theta.shape[0]} scores, expected {size}")
        cdef double[::1] work = np.zeros(self.work_bytes // 8 + 9)
        cdef double value = 0
        with nogil:
            for _ in range(repeat):
                self.partition(i, &theta[0], &value, align(&work[0]))
        return value

    cdef int partition(self, Py_ssize_t i, const double* theta, double* value,
                       char* work) except -1 nogil:
        return 0

    cdef int sums(self, Py_ssize_t i, const double* theta, const Marginals* out, double* value,
                  char* work) except -1 nogil:
        return 0

    cdef void pool_nodes(self, Py_ssize_t i, const double* nodes, double* marginals) noexcept nogil:
        pass

    cdef void move(self, Py_ssize_t i, const double* direction, const Marginals* marginals,
                   const Marginals* out, char* work) noexcept nogil:
        pass

    cdef Marginals _parts(self, Py_ssize_t i, double* marginals) noexcept nogil:
        # The places where sums() writes parts; all shared ones are 0 before.
        cdef Marginals out
        out.nodes = marginals + self.base.shared_size
        out.edges = out.transition = NULL
        if self.base.edge_size:
            out.edges = out.nodes + self.base.nodes_of(i) * self.base.stride
        if self.base.transition >= 0:
            out.transition = marginals + self.base.transition
        memset(marginals, 0, self.base.shared_size * sizeof(double))
        return out

    cdef Marginals _tables(self, Py_ssize_t i, double* state) noexcept nogil:
        # The places where sums() writes a state.
        cdef Marginals out
        out.nodes = state
        out.edges = out.transition = NULL
        if self.base.pairs:
            out.edges = state + self.base.nodes_of(i) * self.base.stride
        return out

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        cdef Marginals out = self._parts(i, marginals)
        self.sums(i, theta, &out, value, work)
        bound[0] = value[0]
        self.pool_nodes(i, out.nodes, marginals)
        return 0

    cpdef Py_ssize_t derivative_bytes(self) except -1:
        """Return the bytes for a state, and for computing or differentiating it."""
        return self._state_bytes() + max(self.work_bytes, self.move_bytes) + 64

    cdef Py_ssize_t _state_bytes(self) noexcept nogil:
        cdef Py_ssize_t rows = self.base.max_nodes * (1 + (self.base.K if self.base.pairs else 0))
        return (8 * rows * self.base.stride + 63) // 64 * 64

    cdef int derivative(self, Py_ssize_t i, const double* theta, const double* direction,
                        double* out, char* work) except -1 nogil:
        cdef double* state = <double*>align(work)
        cdef char* rest = <char*>state + self._state_bytes()
        cdef Marginals marginals = self._tables(i, state), moved = self._parts(i, out)
        cdef double value
        self.sums(i, theta, &marginals, &value, rest)
        self.move(i, direction, &marginals, &moved, rest)
        self.pool_nodes(i, moved.nodes, out)
        return 0

    cdef Py_ssize_t state_size(self, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t rows = self.base.nodes_of(i)
        if self.base.pairs:
            rows += self.base.edges_of(i) * self.base.K
        return max(rows, 1) * self.base.stride      # a row of zeros if there are no nodes

    cdef int project_state(self, Py_ssize_t i, const double* theta, double* state, double* value,
                           double* bound, char* work) except -1 nogil:
        cdef Marginals out = self._tables(i, state)
        if self.base.nodes_of(i) == 0:
            memset(state, 0, self.state_size(i) * sizeof(double))
        self.sums(i, theta, &out, value, work)
        bound[0] = value[0]
        return 0

    cdef int pool(self, Py_ssize_t i, const double* state, double* marginals) except -1 nogil:
        cdef Py_ssize_t stride = self.base.stride, size = self.base.K * stride, e, s
        cdef Py_ssize_t rows = self.base.nodes_of(i) * stride, edges = self.base.edges_of(i)
        cdef const double* edge = state + rows
        cdef double* nodes = marginals + self.base.shared_size
        cdef double* table = marginals + self.base.transition
        memset(marginals, 0, self.base.shared_size * sizeof(double))
        memcpy(nodes, state, rows * sizeof(double))
        if self.base.edge_size:
            memcpy(nodes + rows, edge, edges * size * sizeof(double))
        if self.base.transition >= 0:
            for e in range(edges):
                for s in range(size):
                    table[s] += edge[e * size + s]
        self.pool_nodes(i, nodes, marginals)
        return 0
