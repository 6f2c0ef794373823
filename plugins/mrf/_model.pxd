# A labeling problem on a graph: scores of nodes and edges as raw arrays, and its score function.

# One example's model, maximisation. Everything contiguous; nothing is owned.
cdef struct Model:
    Py_ssize_t n, m              # nodes, edges
    const int* states            # (n,) number of states of each node, >= 1
    const int* ends              # (m, 2) end nodes u, v of each edge, u != v, no duplicates
    const Py_ssize_t* unary_at   # (n + 1,) start of each node's scores in `unary`
    const Py_ssize_t* pair_at    # (m + 1,) start of each edge's table in `pair`, row-major (states[u], states[v]);
                                 # edges may share one: only pair_at[e] is read, never a difference
    const double* unary
    const double* pair
    const Py_ssize_t* near_at    # (n + 1,) CSR adjacency: where node's incident edges start in `near`
    const int* near              # (2 m,) edge numbers; the other end is ends[2e] + ends[2e+1] - v


cdef double score(const Model* model, const int* label) noexcept nogil
# Sum over nodes and edges of the largest finite magnitude: what rounding is measured by.
cdef double magnitude(const Model* model) noexcept nogil
# Scores of nodes and of edges as arrays that Python may keep.
cdef tuple scores_of(const Model* model)


cdef class GraphModel:
    cdef Model model
    cdef readonly object states, ends, unary_at, pair_at, unary, pair, near_at, near
    cdef int[::1] _label(self, label) except *
