# The edges of each node.

# near <- numbers of edges by node, in rising order; near_at has n + 1 zeros.
cdef inline void sort_edges(Py_ssize_t n, Py_ssize_t m, const int* ends, Py_ssize_t* near_at,
                            int* near) noexcept nogil:
    cdef Py_ssize_t v, e
    for e in range(2 * m):
        near_at[ends[e]] += 1
    for v in range(n):
        near_at[v + 1] += near_at[v]
    # Now near_at[v] is where the edges of v end; filled from behind, it becomes where they start.
    for e in range(2 * m - 1, -1, -1):
        near_at[ends[e]] -= 1
        near[near_at[ends[e]]] = <int>(e // 2)
