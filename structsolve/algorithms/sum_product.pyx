"""Sum-product on forests: marginals, log-partition, entropies, samples; all loops are iterative.

Messages are logarithms with maximum 0, so a node may have a million children; exponentials are
computed only for the product with the table.  A parent's sum without one child is computed as in
`structsolve.algorithms.max_product`, without divisions.
"""

from libc.math cimport INFINITY, exp
from libc.string cimport memcpy, memset
from structsolve.algorithms.max_product cimport Forest, node_at
from structsolve.algorithms.pairs cimport pair_row, pair_table
from structsolve.algorithms.messages cimport (
    WIDE, Marginals, SumTable, draw, impossible, log_sum_exp, message_down, message_up, sum_table,
)
from structsolve.algorithms.entropies cimport entropy, entropy_slope, slope_at
from structsolve.simd.loops cimport ss_loop_table


cdef struct Memory:
    double* belief          # (n, stride): of subtrees; exponentials after the pass down
    double* before          # (n, stride): the parents' sums so far; later without the node
    double* messages        # (n, stride): to the parents
    double* after           # (n, stride)
    double* exponentials    # (K, stride): of the table in use
    double* spare           # (K + 2, stride)
    double* table           # (K, stride)


cdef Py_ssize_t sums_bytes(Py_ssize_t n, Py_ssize_t K, Py_ssize_t stride) noexcept nogil:
    return 8 * stride * (4 * n + 3 * K + 2) + 64


cdef Memory _memory(const Forest* forest, char* work) noexcept nogil:
    cdef Memory m
    cdef Py_ssize_t rows = forest.n * forest.stride
    cdef Py_ssize_t size = forest.K * forest.stride
    m.belief = <double*>work
    m.before = m.belief + rows
    m.messages = m.before + rows
    m.after = m.messages + rows
    m.exponentials = m.after + rows
    m.table = m.exponentials + size
    m.spare = m.table + size
    return m


cdef inline double _normalise(Py_ssize_t K, double* row) noexcept nogil:
    # Shifts a row to the maximum 0; returns the old maximum.
    cdef double top = -INFINITY
    cdef Py_ssize_t s
    for s in range(K):
        if not row[s] <= top:
            top = row[s]
    if top > -INFINITY:
        for s in range(K):
            row[s] -= top
    return top


cdef double _upward(const ss_loop_table* loops, const Forest* forest, SumTable* shared,
                    Memory m, bint keep) noexcept nogil:
    # The pass up; returns the log-partition.  `keep`: store sums for a pass down.
    cdef Py_ssize_t K = forest.K, stride = forest.stride, size = K * stride, j, v, s
    cdef SumTable own
    cdef SumTable* table = shared
    cdef double* message = m.messages
    cdef double* up
    cdef double total = 0
    cdef int parent
    memcpy(m.belief, forest.nodes, forest.n * stride * sizeof(double))
    if forest.roots != NULL:
        for v in range(forest.n):
            if forest.parent[v] < 0:
                for s in range(K):
                    m.belief[v * stride + s] += forest.roots[s]
    if forest.pairs.edges == NULL:
        shared[0] = sum_table(loops, K, stride, forest.pairs.shared, m.exponentials)
    for j in range(forest.n - 1, -1, -1):
        v = node_at(forest, j)
        parent = forest.parent[v]
        if parent < 0:
            total += log_sum_exp(K, m.belief + v * stride)
            continue
        if forest.pairs.edges != NULL:
            own = sum_table(loops, K, stride, pair_table(forest.pairs, forest.edge[v], size),
                            m.exponentials)
            table = &own
        up = m.belief + parent * stride
        if keep:
            message = m.messages + v * stride
            memcpy(m.before + v * stride, up, stride * sizeof(double))
        message_up(loops, table, K, stride, m.belief + v * stride, message, m.spare)
        total += _normalise(K, message)
        for s in range(K):
            up[s] += message[s]
    return total


cdef int forest_partition(const ss_loop_table* loops, const Forest* forest, Py_ssize_t i,
                          double* value, char* work) except -1 nogil:
    cdef SumTable shared
    value[0] = _upward(loops, forest, &shared, _memory(forest, work), False)
    if not -INFINITY < value[0] < INFINITY:
        impossible(i)
    return 0


cdef inline double _proportions(const ss_loop_table* loops, Py_ssize_t K, Py_ssize_t stride,
                                const double* x, double* out) noexcept nogil:
    # out <- exp(x) times a constant, 0 in the padding; returns its sum.
    cdef double low, top
    loops.range(1, x, stride, K, -INFINITY, &low, &top)
    loops.exp_rows(1, x, stride, K, top, out)
    return loops.total(stride, out)


cdef void _edge_slowly(const SumTable* table, Py_ssize_t K, Py_ssize_t stride, const double* rest,
                       const double* belief, double* out) noexcept nogil:
    # out <- marginals of an edge: exp(rest[s] + scores[s, t] + belief[t]), with sum 1.
    cdef Py_ssize_t s, t
    cdef double top = -INFINITY, total = 0, x
    for s in range(K):
        for t in range(K):
            x = rest[s] + table.scores[s * stride + t] + belief[t]
            out[s * stride + t] = x
            top = x if x > top else top
        for t in range(K, stride):
            out[s * stride + t] = 0
    for s in range(K):
        for t in range(K):
            x = exp(out[s * stride + t] - top)
            out[s * stride + t] = x
            total += x
    for s in range(K * stride):
        out[s] /= total


cdef bint _factors(const ss_loop_table* loops, const SumTable* table, Py_ssize_t K,
                   Py_ssize_t stride, double* rest, double* belief,
                   double* spare) noexcept nogil:
    # rest, belief <- exponentials whose product with the table's gives the edge's marginals.
    # Returns False, with both unchanged, if there are none.
    cdef double low, top, mass
    cdef Py_ssize_t s
    cdef double* a = spare
    cdef double* b = spare + stride
    if table.kind == WIDE:
        return False
    if table.kind != 0:         # PARTIAL
        loops.range(1, rest, stride, K, -INFINITY, &low, &top)
        if not top - low <= 75:
            return False
        loops.range(1, belief, stride, K, -INFINITY, &low, &top)
        if not top - low <= 75:
            return False
    _proportions(loops, K, stride, rest, a)
    _proportions(loops, K, stride, belief, b)
    # sum_s a[s] sum_t E[s, t] b[t]; at least the product of the smallest numbers.
    loops.dots(K, table.exponentials, stride, stride, b, spare + 2 * stride)
    mass = 0
    for s in range(K):
        mass += a[s] * spare[2 * stride + s]
    if not mass > 0:
        return False
    for s in range(stride):
        rest[s], belief[s] = a[s] / mass, b[s]
    return True


cdef int forest_marginals(const ss_loop_table* loops, const Forest* forest, Py_ssize_t i,
                          const Marginals* out, double* value, char* work) except -1 nogil:
    cdef Py_ssize_t K = forest.K, stride = forest.stride, size = K * stride, j, v, s
    cdef Memory m = _memory(forest, work)
    cdef SumTable shared, own
    cdef SumTable* table = &shared
    cdef double* above
    cdef double* row
    cdef double* belief
    cdef double* edge
    cdef double mass
    cdef int parent
    cdef bint pool = out.transition != NULL, fast
    cdef bint batch = pool and forest.pairs.edges == NULL and out.edges == NULL
    value[0] = _upward(loops, forest, &shared, m, True)
    if not -INFINITY < value[0] < INFINITY:
        impossible(i)
    for j in range(forest.n):
        v = node_at(forest, j)
        parent = forest.parent[v]
        above, row, belief = m.after + v * stride, m.before + v * stride, m.belief + v * stride
        if parent < 0:
            memset(above, 0, stride * sizeof(double))
        else:
            for s in range(K):
                row[s] += m.after[parent * stride + s]
                m.after[parent * stride + s] += m.messages[v * stride + s]
            _normalise(K, row)
            if forest.pairs.edges != NULL:
                own = sum_table(loops, K, stride, pair_table(forest.pairs, forest.edge[v], size),
                                m.exponentials)
                table = &own
            message_down(loops, table, K, stride, row, above, m.spare)
            _normalise(K, above)
        for s in range(K):
            m.spare[s] = belief[s] + above[s]
        mass = _proportions(loops, K, stride, m.spare, out.nodes + v * stride)
        for s in range(K):
            out.nodes[v * stride + s] /= mass
        if parent < 0 or not (pool or out.edges != NULL):
            if batch:
                memset(row, 0, stride * sizeof(double))
                memset(belief, 0, stride * sizeof(double))
            continue
        fast = _factors(loops, table, K, stride, row, belief, m.spare)
        if batch and fast:
            continue
        edge = m.table if out.edges == NULL else out.edges + forest.edge[v] * size
        if fast:
            loops.outer(1, K, row, belief, table.exponentials, stride, stride, edge)
        else:
            _edge_slowly(table, K, stride, row, belief, edge)
            memset(row, 0, stride * sizeof(double))
            memset(belief, 0, stride * sizeof(double))
        if pool:
            for s in range(size):
                out.transition[s] += edge[s]
    if batch and shared.kind != WIDE:
        # The products of all edges at once: sum_v row[v, s] E[s, t] belief[v, t].
        loops.outer(forest.n, K, m.before, m.belief, shared.exponentials, stride, stride, m.table)
        for s in range(size):
            out.transition[s] += m.table[s]
    return 0


cdef int forest_sample(const ss_loop_table* loops, const Forest* forest, Py_ssize_t i,
                       Py_ssize_t count, const double* uniforms, int* labels,
                       char* work) except -1 nogil:
    cdef Py_ssize_t K = forest.K, stride = forest.stride, j, c, v, s
    cdef Memory m = _memory(forest, work)
    cdef SumTable shared
    cdef double value
    cdef double* weights = m.spare
    cdef const double* row
    cdef int parent
    cdef int* label = labels
    value = _upward(loops, forest, &shared, m, False)
    if not -INFINITY < value < INFINITY:
        impossible(i)
    for c in range(count):
        for j in range(forest.n):
            v = node_at(forest, j)
            parent = forest.parent[v]
            for s in range(K):
                weights[s] = m.belief[v * stride + s]
            if parent >= 0:
                row = pair_row(forest.pairs, forest.edge[v], label[parent], K, stride,
                               weights + stride)
                for s in range(K):
                    weights[s] += row[s]
            _proportions(loops, K, stride, weights, weights)
            label[v] = draw(K, weights, uniforms[c * forest.n + v])
        label += forest.n
    return 0


# The entropy of a forest: sum_e H(mu_e) - sum_v (degree_v - 1) H(mu_v).

cdef double forest_entropy(const Forest* forest, const int* degree, const double* nodes,
                           const double* edges, Py_ssize_t n_edges) noexcept nogil:
    cdef Py_ssize_t stride = forest.stride, v
    cdef double total
    if edges == NULL:
        return entropy(forest.n * stride, nodes)
    total = entropy(n_edges * forest.K * stride, edges)
    for v in range(forest.n):
        if degree[v] != 1:
            total -= (degree[v] - 1) * entropy(stride, nodes + v * stride)
    return total


cdef double forest_slope(const Forest* forest, const int* degree, const double* a,
                         const double* b, Py_ssize_t n_edges, bint pairs,
                         double gamma) noexcept nogil:
    # States a and b hold the marginals of nodes, then those of edges.
    cdef Py_ssize_t stride = forest.stride, v, rows = forest.n * stride
    cdef int stuck = 0, ignored = 0
    cdef double slope
    if not pairs:
        slope = entropy_slope(rows, a, b, gamma, &stuck)
        return slope_at(slope, gamma, stuck)
    # If the probability of a node's state leaves or reaches 0, so do those on its edges, whose
    # slopes outweigh the node's.
    slope = entropy_slope(n_edges * forest.K * stride, a + rows, b + rows, gamma, &stuck)
    for v in range(forest.n):
        if degree[v] == 0:
            slope += entropy_slope(stride, a + v * stride, b + v * stride, gamma, &stuck)
        elif degree[v] > 1:
            slope -= (degree[v] - 1) * entropy_slope(stride, a + v * stride, b + v * stride, gamma,
                                                     &ignored)
    return slope_at(slope, gamma, stuck)


# The Jacobian of marginals is the covariance of parts.  With f(y) = <direction, mu(y)>, a part of
# marginal p gains p (E[f | part] - E[f]).  The passes up and down propagate means of f, not
# logarithms.  Such a mean lies between f's least and largest value, however large scores are.

cdef Py_ssize_t derivative_bytes(Py_ssize_t n, Py_ssize_t K, Py_ssize_t stride) noexcept nogil:
    return 8 * stride * (3 * n + K + 2) + 64


cdef inline void _means(Py_ssize_t K, const double* sums, const double* p,
                        double* out) noexcept nogil:
    cdef Py_ssize_t s
    for s in range(K):
        out[s] = sums[s] / p[s] if p[s] > 0 else 0.0


cdef void forest_derivative(const ss_loop_table* loops, const Forest* direction,
                            const double* nodes, const double* edges, const Marginals* out,
                            char* work) noexcept nogil:
    cdef Py_ssize_t K = direction.K, stride = direction.stride, size = K * stride, j, v, s, t, k
    cdef double* below = <double*>work      # (n, stride): mean of f over the subtree, given a state
    cdef double* above = below + direction.n * stride       # over all but the subtree, less E[f]
    cdef double* messages = above + direction.n * stride    # of `below` to the parents
    cdef double* table = messages + direction.n * stride    # (K, stride)
    cdef double* ones = table + size
    cdef double* rest = ones + stride
    cdef double* up
    cdef const double* p
    cdef const double* d
    cdef const double* own
    cdef double mean
    cdef int parent
    for s in range(stride):
        ones[s] = 1
    memset(messages, 0, direction.n * stride * sizeof(double))
    memset(above, 0, direction.n * stride * sizeof(double))
    memcpy(below, direction.nodes, direction.n * stride * sizeof(double))
    if direction.roots != NULL:
        for v in range(direction.n):
            if direction.parent[v] < 0:
                for s in range(K):
                    below[v * stride + s] += direction.roots[s]
    for j in range(direction.n - 1, -1, -1):
        v = node_at(direction, j)
        parent = direction.parent[v]
        up = below + v * stride
        if parent < 0 or edges == NULL:
            mean = 0
            for s in range(K):
                mean += nodes[v * stride + s] * up[s]
            for s in range(K):
                above[v * stride + s] = -mean
            continue
        p = edges + direction.edge[v] * size
        d = pair_table(direction.pairs, direction.edge[v], size)
        for s in range(K):
            k = s * stride
            for t in range(stride):
                table[k + t] = p[k + t] * (d[k + t] + up[t])
        loops.dots(K, table, stride, stride, ones, rest)
        _means(K, rest, nodes + parent * stride, messages + v * stride)
        for s in range(K):
            below[parent * stride + s] += messages[v * stride + s]
    for j in range(direction.n):
        v = node_at(direction, j)
        parent = direction.parent[v]
        up = below + v * stride
        if parent >= 0 and edges != NULL:
            for s in range(K):
                k = parent * stride + s
                rest[s] = above[k] + below[k] - messages[v * stride + s]
            p = edges + direction.edge[v] * size
            d = pair_table(direction.pairs, direction.edge[v], size)
            for s in range(K):
                k = s * stride
                for t in range(stride):
                    table[k + t] = p[k + t] * (d[k + t] + rest[s])
            loops.sumprod(K, ones, table, stride, stride, rest)
            own = nodes + v * stride
            _means(K, rest, own, above + v * stride)
            for s in range(K):
                k = s * stride
                for t in range(stride):
                    table[k + t] += p[k + t] * up[t]
            if out.edges != NULL:
                memcpy(out.edges + direction.edge[v] * size, table, size * sizeof(double))
            if out.transition != NULL:
                for s in range(size):
                    out.transition[s] += table[s]
        for s in range(stride):
            k = v * stride + s
            out.nodes[k] = nodes[k] * (above[k] + up[s])
