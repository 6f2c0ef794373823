# Spanning trees of graphs that cover all edges.
from structsolve.plugins.mrf.tables._model cimport Model


# Trees of one graph; (count, n) nodes from roots to leaves, and edges to the parents, -1 at roots.
cdef struct Trees:
    Py_ssize_t count
    const int* order
    const int* up
    const double* share     # (m,) share of the trees that have each edge


cdef class SpanningTrees:
    cdef object shape, owners
    cdef Trees* trees
    cdef Trees of(self, Py_ssize_t g) noexcept nogil
    cdef int _cover(self, Py_ssize_t g, const Model* model) except -1
