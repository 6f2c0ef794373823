# The linear program over the active states, by a primal-dual method.
from structsolve.plugins.mrf.relaxation._dual_passes cimport Split


# Nodes with several active states, the edges between them, and the program over these:
#   maximise base + <cost, x>, x_v in the simplex, x_e >= 0 with the marginals x_u, x_v.
# States of a node begin at multiples of four, as do the columns of an edge; padding holds no part.
cdef struct Core:
    Py_ssize_t n, m, states, cells, sums        # nodes, edges, sizes of x_v, x_e and messages
    Py_ssize_t most_states, most_cells
    int* node                   # (n,) nodes of the graph
    int* count                  # (n,) active states
    int* edge                   # (m,) edges of the graph
    int* slot                   # (graph's n,) number of a node here, -1 if one state is left
    int* label                  # (graph's n,) the remaining state
    int* ends                   # (m, 2) numbers of nodes here
    int* state                  # (states,) of the graph's node
    Py_ssize_t* state_at        # (n + 1,)
    Py_ssize_t* cell_at         # (m + 1,)
    Py_ssize_t* sum_at          # (m + 1,) messages of an edge: to its end 0, then to its end 1
    double* cost                # (states + cells,) nodes first
    double* x                   # (states + cells,)
    double* x_next
    double* x_first
    double* trial               # a point of the polytope
    double* best                # the best one so far
    double* y                   # (sums,) messages
    double* y_next
    double* y_first
    double* give                # messages of the least bound so far
    double* gain                # (states,) cost of nodes and all messages
    double* beyond              # (states,) nodes of the point beyond a step
    double* rest                # (states,) what rows and columns of an edge lack
    double* degree              # (n,)
    Py_ssize_t nodes, width     # the graph's n; doubles of a row of `point`
    double* point               # (nodes, width) the nodes of the best point of the last program
    bint pointed                # whether that exists
    double weight               # of primal steps against dual ones
    double base                 # score of the rest of the graph
    double value, bound         # of `best` and of `give`, without `base`


# Bytes for a graph of n nodes and m edges, rows of `width` states, so many active ones, padded, and
# parts of edges.
cdef Py_ssize_t core_bytes(Py_ssize_t n, Py_ssize_t m, Py_ssize_t width, Py_ssize_t states,
                           Py_ssize_t cells) noexcept nogil
cdef void place_core(Core* core, Py_ssize_t n, Py_ssize_t m, Py_ssize_t width, Py_ssize_t states,
                     Py_ssize_t cells, char* work) noexcept nogil
# Takes the states with at most this slack, and those of the labeling; returns whether they fit.
cdef bint build_core(Core* core, const Split* split, const int* label, double slack) noexcept nogil
# Begins at the best point of the last program, if any.
# Stops when bound - value <= tol, when the value is `enough`, or after max_iter iterations.
cdef void solve_core(Core* core, double tol, double enough, int max_iter) noexcept nogil
# Adds the best messages to those of the graph.
cdef void lift_core(const Core* core, Split* split) noexcept nogil
# The score of a pair of states that an edge of the graph keeps.
cdef inline double edge_rest(const Split* split, Py_ssize_t e, int s, int t) noexcept nogil:
    return (split.table[e * split.table_step + s * split.width + t]
            + split.taken[2 * e * split.width + s] + split.taken[(2 * e + 1) * split.width + t])
