# Alignments as paths: nodes of the grid of two sequences, and the arcs into each.
#
# Node (i, kind, j) stands for the first i items of the first sequence, aligned.  PAIR: item i has
# partner j; GAP: it has none, and the last partner so far is j; READY: the next partner may be j,
# and those before it are done.  A label has for each item its partner, from 1, or 0.
from libc.stdint cimport int64_t
from structsolve.part_layout cimport PartLayout


cdef enum:
    PAIR = 0
    GAP = 1
    READY = 2


cdef struct Arc:
    Py_ssize_t source, part     # part: its place in theta, -1 for none


cdef struct Grid:
    Py_ssize_t n, m, width
    bint gaps, stays, jumps     # items without partner; partners of several items; unused partners
    # Places in theta: of the first pair, of an item and of a partner left alone.
    Py_ssize_t pairs, gap, skip
    const char* repeats         # partners equal to the one before; NULL for none


cdef class GridShape:
    cdef readonly Py_ssize_t n, max_nodes, max_items, max_others
    cdef Grid grid              # of the kind, without sizes
    cdef const int64_t* offsets
    cdef const int64_t* seconds         # first partner of each example
    cdef const char[::1] repeated
    cdef object owners


cdef GridShape grid_shape(PartLayout layout, str kind)


cdef inline Grid grid_of(GridShape shape, Py_ssize_t i) noexcept nogil:
    cdef Grid g = shape.grid
    g.n = shape.offsets[i + 1] - shape.offsets[i]
    g.m = shape.seconds[i + 1] - shape.seconds[i]
    g.width = g.m + 2
    if shape.repeated.shape[0]:
        g.repeats = &shape.repeated[shape.seconds[i]]
    return g


cdef inline Py_ssize_t node_at(const Grid* g, Py_ssize_t i, Py_ssize_t kind,
                               Py_ssize_t j) noexcept nogil:
    return (3 * i + kind) * g.width + j


cdef inline Py_ssize_t n_nodes(const Grid* g) noexcept nogil:
    return 3 * (g.n + 1) * g.width


# The last node, behind which all is aligned.
cdef inline Py_ssize_t end_of(const Grid* g) noexcept nogil:
    return node_at(g, g.n, READY, g.m + 1)


# The number of arcs into a node, at most 3.  Their sources have lower numbers.
cdef inline Py_ssize_t arcs_into(const Grid* g, Py_ssize_t i, Py_ssize_t kind, Py_ssize_t j,
                                 Arc* arcs) noexcept nogil:
    cdef Py_ssize_t count = 0
    if kind == READY:
        if j == 0:
            return 0
        if g.gaps and i > 0:
            arcs[0].source, arcs[0].part = node_at(g, i, GAP, j - 1), -1
            count = 1
        if not (g.repeats != NULL and 1 < j <= g.m and g.repeats[j - 1]):
            arcs[count].source, arcs[count].part = node_at(g, i, PAIR, j - 1), -1
            count += 1
        if g.jumps and j > 1:
            arcs[count].source, arcs[count].part = node_at(g, i, READY, j - 1), g.skip
            count += 1
        return count
    if i == 0 or j > g.m:
        return 0
    if kind == GAP:
        if not g.gaps:
            return 0
        arcs[0].source, arcs[0].part = node_at(g, i - 1, PAIR, j), g.gap
        arcs[1].source, arcs[1].part = node_at(g, i - 1, GAP, j), g.gap
        return 2
    if j == 0:
        return 0
    arcs[0].source = node_at(g, i - 1, READY, j)
    arcs[0].part = g.pairs + (i - 1) * g.m + j - 1
    if not g.stays:
        return 1
    arcs[1].source, arcs[1].part = node_at(g, i - 1, PAIR, j), arcs[0].part
    return 2
