# Passes of block-coordinate ascent over the messages of both ends of every edge.
from structsolve.simd.loops cimport ss_loop_table

from structsolve.plugins.mrf.tables._model cimport Model


# Scores of one graph in theta's layout, all finite, and the edges' gifts to their ends:
#   node v    b_v(s)    = score_v(s) + sum of what the edges at v give to s
#   edge e    r_e(s, t) = score_e(s, t) - (what e gives to s) - (what e gives to t)
# Any messages keep the score of every labeling; the sum of all max b_v and max r_e is a bound.
cdef struct Split:
    Py_ssize_t n, m, width          # doubles of a row of states
    const int* states
    const int* ends
    const Py_ssize_t* near_at
    const int* near
    const double* node              # score of v's state s: node[v * node_step + s]
    Py_ssize_t node_step
    const double* table             # of e's states s, t: table[e * table_step + s * width + t]
    Py_ssize_t table_step           # 0 if all edges share one table
    # (2 m, width) what edge e takes from the states of its end 0 (row 2 e) and 1: minus what it
    # gives; -inf after the last state.
    double* taken
    double* share                   # (n,) share of b_v for each edge on the busier side
    double* slack                   # (n, width) b_v less its maximum, in the last pass
    double* own                     # (width,) of one node
    double* fresh                   # (width,)
    const double* zeros             # (width,)
    int* trial                      # (n,) the labeling of the last forward pass
    int* order                      # (n,) nodes in the order of passes forward
    int* rank                       # (n,) positions in `order`
    const ss_loop_table* loops


cdef Py_ssize_t split_bytes(Py_ssize_t n, Py_ssize_t m, Py_ssize_t width) noexcept nogil
# Takes the graph, and places arrays in `work` (64-byte aligned).
cdef void place_split(Split* split, const Model* graph, Py_ssize_t width, char* work) noexcept nogil
# No messages yet.
cdef void clear_split(Split* split) noexcept nogil
# One pass over the nodes in their order, or back; forward also with a labeling and slacks.
# Returns a bound, up to rounding.
cdef double sweep(Split* split, bint forward) noexcept nogil
# The score of a labeling.
cdef double split_score(const Split* split, const int* label) noexcept nogil
