# build: glue
"""The parts of paths: nodes, and edges that have scores."""

cimport cython
from structsolve.operators cimport Parts
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.path._shape cimport PathShape, path_shape


@cython.final
cdef class PathParts(Parts):
    """One part per node of the path and, if edges have scores, one per edge.

    Parameters
    ----------
    layout : PartLayout
        Layout of a path space.
    """

    cdef PathShape shape

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.shape = path_shape(layout)
        self.n_states = self.shape.max_edges + 1
        self.max_entries = 3 * self.shape.max_nodes

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        cdef Py_ssize_t v, n = self.shape.nodes_of(i), k = 0
        for v in range(n):
            if label[v]:
                k = self.add(i, v, label[v], 1, k, index, value)
                index[k], value[k] = <int>v, 1
                k += 1
        index[k], value[k] = self.shape.sink(i), 1
        return k + 1

    cdef Py_ssize_t difference(self, Py_ssize_t i, const int* truth, const int* label, int* index,
                               double* value) except -1 nogil:
        cdef Py_ssize_t v, k = 0
        for v in range(self.shape.nodes_of(i)):
            if truth[v] == label[v]:
                continue
            if truth[v]:
                k = self.add(i, v, truth[v], 1, k, index, value)
            if label[v]:
                k = self.add(i, v, label[v], -1, k, index, value)
            if truth[v] == 0 or label[v] == 0:
                index[k], value[k] = <int>v, 1 if truth[v] else -1
                k += 1
        return k

    cdef Py_ssize_t add(self, Py_ssize_t i, Py_ssize_t v, int state, double sign, Py_ssize_t k,
                        int* index, double* value) noexcept nogil:
        # The edge, if edges have scores.
        if self.shape.scored and 0 < state <= self.shape.edges_of(i):
            index[k], value[k] = <int>(self.shape.nodes_of(i) + state - 1), sign
            k += 1
        return k
