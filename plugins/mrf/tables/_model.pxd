# A labeling problem on a graph: scores of nodes and edges as raw arrays, and its score function.

# Scores of one example, to maximise.  All arrays are contiguous; the struct owns none.
cdef struct Model:
    Py_ssize_t n, m              # nodes, edges
    const int* states            # (n,) number of states of each node, >= 1
    const int* ends              # (m, 2) end nodes u, v of each edge, u != v; parallel edges add up
    const Py_ssize_t* unary_at   # (n + 1,) start of each node's scores in `unary`
    # (m,) start of each edge's table in `pair`, row-major (states[u], states[v]); edges may share
    # one, so the next start is not a table's end
    const Py_ssize_t* pair_at
    # (m + 1,) start of each edge's cells if no edges share them, as in pair marginals
    const Py_ssize_t* cell_at
    const double* unary
    const double* pair
    # (m,) factors of the edges' tables, NULL if all are 1.  Only the functions declared here, TRW-S
    # and local search use them: GraphModel and examples have none.
    const double* weight
    const Py_ssize_t* near_at    # (n + 1,) where each node's edges start in `near` (CSR)
    const int* near              # (2 m,) numbers of edges


cdef inline int other_end(const Model* model, Py_ssize_t e, Py_ssize_t v) noexcept nogil:
    return model.ends[2 * e] + model.ends[2 * e + 1] - <int>v


cdef inline double weight_of(const Model* model, Py_ssize_t e) noexcept nogil:
    return model.weight[e] if model.weight != NULL else 1


# Scores of edge e for all states of v, `step` apart, given the state of its other end; without its
# weight.
cdef inline const double* edge_scores(const Model* model, Py_ssize_t e, Py_ssize_t v,
                                      Py_ssize_t state, Py_ssize_t* step) noexcept nogil:
    if model.ends[2 * e] == v:
        step[0] = model.states[model.ends[2 * e + 1]]
        return model.pair + model.pair_at[e] + state
    step[0] = 1
    return model.pair + model.pair_at[e] + state * model.states[v]


# Whether the table of edge e differs from that of the edge before it.
cdef inline bint another_table(const Model* model, Py_ssize_t e) noexcept nogil:
    return e == 0 or model.pair_at[e] != model.pair_at[e - 1]


# Maximum number of states of any node, at least 1.
cdef int most_states(const Model* model) noexcept nogil
# <theta, mu(label)>; -INFINITY if the labeling is forbidden.
cdef double score(const Model* model, const int* label) noexcept nogil
# Sum over nodes and edges of the largest finite magnitude: rounding errors are relative to it.
cdef double magnitude(const Model* model) noexcept nogil
# order <- nodes from roots to leaves, breadth first from the first node of each tree; up <- each
# node's edge to its parent, -1 at roots.  Nodes whose `group`, if any, is negative are left
# out, and get -2.  Returns whether the graph is a forest.
cdef bint breadth_first(const Model* model, const int* group, int* order, int* up) noexcept nogil
# Copies of the scores of nodes and of edges, as arrays, with a table per edge as in cell_at.
cdef tuple scores_of(const Model* model)


cdef class GraphModel:
    cdef Model model
    cdef readonly object states, ends, unary_at, pair_at, cell_at, unary, pair, near_at, near
    cdef int[::1] _label(self, label) except *
