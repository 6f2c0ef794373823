"""The best alignments: lists of the k best ways to each node of the grid."""

cimport cython
from structsolve.algorithms.best_list cimport Entry, insert
from structsolve.operators cimport KBest, Oracle
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.alignment._grid cimport (
    PAIR, READY, Arc, Grid, GridShape, arcs_into, end_of, grid_of, grid_shape, n_nodes,
    node_at,
)


cdef Py_ssize_t _best_ways(const Grid* g, const double* theta, Py_ssize_t k, int* labels,
                           double* values, char* work) noexcept nogil:
    # Of each node, by the arcs into it.
    cdef Entry* entries = <Entry*>work
    cdef int* counts = <int*>(entries + n_nodes(g) * k)
    cdef Arc arcs[3]
    cdef Py_ssize_t i, kind, j, a, r, node, source, count
    cdef double score
    for node in range(n_nodes(g)):
        counts[node] = 0
    for i in range(g.n + 1):
        for kind in range(3):
            for j in range(g.width):
                node = node_at(g, i, kind, j)
                if node == 0:
                    entries[0].value, entries[0].rank, counts[0] = 0, 0, 1
                count = arcs_into(g, i, kind, j, arcs)
                for a in range(count):
                    source = arcs[a].source
                    score = theta[arcs[a].part] if arcs[a].part >= 0 else 0
                    for r in range(counts[source]):
                        if not insert(entries + node * k, counts + node, k,
                                      entries[source * k + r].value + score, a, r):
                            break
    count = counts[end_of(g)]
    for r in range(count):
        values[r] = entries[end_of(g) * k + r].value
        _trace(g, entries, k, r, labels + r * g.n)
    return count


cdef void _trace(const Grid* g, const Entry* entries, Py_ssize_t k, Py_ssize_t rank,
                 int* label) noexcept nogil:
    cdef Py_ssize_t node = end_of(g), row
    cdef const Entry* entry
    cdef Arc arcs[3]
    while node > 0:
        row = node / g.width
        if row % 3 != READY:
            label[row / 3 - 1] = <int>(node % g.width) if row % 3 == PAIR else 0
        entry = entries + node * k + rank
        # Nodes of large grids have numbers beyond 32 bits.
        arcs_into(g, row / 3, row % 3, node % g.width, arcs)
        node, rank = arcs[entry.back].source, entry.rank


@cython.final
cdef class AlignmentOracle(Oracle):
    """The alignment of largest score; scores of -inf forbid pairs.

    Parameters
    ----------
    kind : str
        See :class:`~structsolve.plugins.alignment._grid.GridShape`.
    layout : PartLayout
        Layout of an alignment space.
    """

    cdef GridShape shape

    def __init__(self, str kind, PartLayout layout not None):
        super().__init__(layout)
        self.shape = grid_shape(layout, kind)
        self.n_states = self.shape.max_others + 1
        self.work_bytes = self.shape.max_nodes * (sizeof(Entry) + sizeof(int)) + 64

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        cdef Grid g = grid_of(self.shape, i)
        _best_ways(&g, theta, 1, label, value, work)
        bound[0] = value[0]
        return 0


@cython.final
cdef class AlignmentKBest(KBest):
    """The k best alignments; none but the first scores -inf.

    Parameters
    ----------
    kind : str
        See :class:`~structsolve.plugins.alignment._grid.GridShape`.
    layout : PartLayout
        Layout of an alignment space.
    """

    cdef GridShape shape

    def __init__(self, str kind, PartLayout layout not None):
        super().__init__(layout)
        self.shape = grid_shape(layout, kind)
        self.n_states = self.shape.max_others + 1

    cpdef Py_ssize_t bytes_for(self, Py_ssize_t k) except -1:
        return self.shape.max_nodes * (k * sizeof(Entry) + sizeof(int)) + 64

    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels,
                          double* values, char* work) except -1 nogil:
        cdef Grid g = grid_of(self.shape, i)
        return _best_ways(&g, theta, k, labels, values, work)
