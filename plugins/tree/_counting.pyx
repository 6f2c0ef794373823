"""The best labeling of a forest for each value of an integer cost.

A dynamic program over (node, state, count): ``score[v, c, s]`` is the best score of v's subtree
with v in state s and cost c.  A parent takes its children in one by one: every count of its sum so
far meets every count of the child.  Both are bounded by their numbers of nodes, so a
cost that counts errors, at most one a node, takes O(n^2 K) for all combinations and at most
O(n^2 K^2) for all messages.  The parent's sums before each child are kept, and split again when
labelings are read back.
"""

from libc.math cimport INFINITY
from libc.string cimport memcpy
from structsolve.algorithms.count_costs cimport check_most, count_steps
from structsolve.algorithms.max_product cimport Forest, node_at
from structsolve.algorithms.pairs cimport pair_row, pair_table
from structsolve.simd.loops cimport ss_loop_table

from structsolve.plugins.tree._shape cimport TreeShape


cdef struct Memory:
    Py_ssize_t most, size   # size = (most + 1) * stride
    double* score           # (n, most + 1, stride), -inf in the padding
    double* message         # the same: messages to the parent; at roots, the best of every count
    double* before          # the same: the parent's sum before; at roots, that of the trees before
    double* total           # (most + 1,): sum of all trees
    double* row             # stride
    Py_ssize_t* low         # (n,): counts that subtrees can have
    Py_ssize_t* high
    Py_ssize_t* before_low  # (n,): the same of what parents had
    Py_ssize_t* before_high
    Py_ssize_t* left        # (n,): while a labeling is read back
    int* steps              # (n, K): costs as integers, most + 1 for larger ones
    char* buffer            # buffer of the shape


cdef Py_ssize_t counting_bytes(TreeShape shape, Py_ssize_t most) except -1:
    """Scratch memory of `best_per_count`."""
    check_most(most, 3 * shape.max_nodes, shape.K, shape.stride)
    return (shape.buffer_bytes() + 4 * shape.max_nodes * shape.K + 64
            + 8 * (3 * shape.max_nodes * (most + 1) * shape.stride + most + 1 + shape.stride
                   + 5 * shape.max_nodes))


cdef Memory _memory(TreeShape shape, Py_ssize_t most, char* work) noexcept nogil:
    cdef Memory m
    cdef Py_ssize_t n = shape.max_nodes
    m.most, m.size = most, (most + 1) * shape.stride
    m.buffer = work
    m.score = <double*>(work + shape.buffer_bytes())
    m.message = m.score + n * m.size
    m.before = m.message + n * m.size
    m.row = m.before + n * m.size
    m.total = m.row + shape.stride
    m.low = <Py_ssize_t*>(m.total + most + 1)
    m.high = m.low + n
    m.before_low = m.high + n
    m.before_high = m.before_low + n
    m.left = m.before_high + n
    m.steps = <int*>(m.left + n)
    return m


cdef void _leaves(const Forest* forest, Memory m) noexcept nogil:
    # Every node on its own.
    cdef Py_ssize_t K = forest.K, stride = forest.stride, v, s, c
    cdef double* score = m.score
    cdef const int* steps = m.steps
    for v in range(forest.n):
        m.low[v], m.high[v] = m.most + 1, 0
        for s in range(K):
            m.low[v] = min(m.low[v], steps[s])
            m.high[v] = max(m.high[v], steps[s])
        m.high[v] = min(m.high[v], m.most)
        for s in range(m.low[v] * stride, (m.high[v] + 1) * stride):
            score[s] = -INFINITY
        for s in range(K):
            c = steps[s]
            if c <= m.most:
                score[c * stride + s] = forest.nodes[v * stride + s]
                if forest.parent[v] < 0 and forest.roots != NULL:
                    score[c * stride + s] += forest.roots[s]
        score += m.size
        steps += K


cdef void _meet(const ss_loop_table* loops, const Forest* forest, Py_ssize_t v,
                Memory m) noexcept nogil:
    # v's parent takes v in.
    cdef Py_ssize_t K = forest.K, stride = forest.stride, p = forest.parent[v], a, c, s, low, high
    cdef const double* table = pair_table(forest.pairs, forest.edge[v], K * stride)
    cdef const double* gathered
    cdef double* own = m.score + v * m.size
    cdef double* message = m.message + v * m.size
    cdef double* before = m.before + v * m.size
    cdef double* score = m.score + p * m.size
    cdef double* out
    cdef double bottom, top
    low, high = m.low[p], m.high[p]
    m.before_low[v], m.before_high[v] = low, high
    if low <= high:
        memcpy(before + low * stride, score + low * stride,
               (high - low + 1) * stride * sizeof(double))
    m.low[p] = min(low + m.low[v], m.most + 1)
    m.high[p] = min(high + m.high[v], m.most)
    for s in range(m.low[p] * stride, (m.high[p] + 1) * stride):
        score[s] = -INFINITY
    for c in range(m.low[v], m.high[v] + 1):
        loops.range(1, own + c * stride, stride, K, 0, &bottom, &top)
        if top == -INFINITY:    # no labeling has this count
            for s in range(K):
                message[c * stride + s] = -INFINITY
            continue
        loops.maxdots(K, table, stride, stride, own + c * stride, message + c * stride)
        for a in range(low, min(high, m.most - c) + 1):
            gathered, out = before + a * stride, score + (a + c) * stride
            for s in range(K):
                top = gathered[s] + message[c * stride + s]
                out[s] = top if top > out[s] else out[s]


cdef void _meet_trees(const Forest* forest, Py_ssize_t v, Py_ssize_t* low, Py_ssize_t* high,
                      Memory m) noexcept nogil:
    # The tree of root v joins the others: the same, with a single state.
    cdef Py_ssize_t stride = forest.stride, a, c, s
    cdef double* before = m.before + v * m.size
    cdef double* message = m.message + v * m.size
    cdef const double* row
    cdef double top
    m.before_low[v], m.before_high[v] = low[0], high[0]
    for c in range(m.low[v], m.high[v] + 1):
        row, top = m.score + v * m.size + c * stride, -INFINITY
        for s in range(forest.K):
            top = row[s] if row[s] > top else top
        message[c] = top
    for a in range(low[0], high[0] + 1):
        before[a] = m.total[a]
    for a in range(m.most + 1):
        m.total[a] = -INFINITY
    for c in range(m.low[v], m.high[v] + 1):
        for a in range(low[0], min(high[0], m.most - c) + 1):
            top = before[a] + message[c]
            m.total[a + c] = top if top > m.total[a + c] else m.total[a + c]
    low[0], high[0] = min(low[0] + m.low[v], m.most + 1), min(high[0] + m.high[v], m.most)


cdef Py_ssize_t _split(const double* before, const double* message, Py_ssize_t step,
                       Py_ssize_t v, Py_ssize_t* left, Memory m) noexcept nogil:
    # v's share of the count that is left for what its parent gathered with it; of equally good
    # ones the smallest.
    cdef Py_ssize_t c, best
    cdef Py_ssize_t first = max(m.low[v], left[0] - m.before_high[v])
    cdef double x, top = -INFINITY
    # Scores of NaN or +inf lead out of the range: clip it, to stay in memory.
    best = max(m.low[v], min(first, m.high[v]))
    for c in range(first, min(m.high[v], left[0] - m.before_low[v]) + 1):
        x = before[(left[0] - c) * step] + message[c * step]
        if x > top:
            best, top = c, x
    left[0] = max(m.before_low[v], min(left[0] - best, m.before_high[v]))
    return best


cdef void _read_back(const ss_loop_table* loops, const Forest* forest, Py_ssize_t count,
                     Memory m, int* label) noexcept nogil:
    # Parents first, each child from the last that was taken in to the first.
    cdef Py_ssize_t K = forest.K, stride = forest.stride, j, v, p, c, s
    cdef const double* own
    cdef const double* row
    cdef double top
    for j in range(forest.n):
        v = node_at(forest, j)
        p = forest.parent[v]
        if p < 0:
            c = _split(m.before + v * m.size, m.message + v * m.size, 1, v, &count, m)
            own, top = m.score + v * m.size + c * stride, -INFINITY
            label[v] = 0
            for s in range(K):
                if own[s] > top:
                    label[v], top = <int>s, own[s]
        else:
            s = label[p]
            c = _split(m.before + v * m.size + s, m.message + v * m.size + s, stride, v,
                       &m.left[p], m)
            own = m.score + v * m.size + c * stride
            row = pair_row(forest.pairs, forest.edge[v], s, K, stride, m.row)
            loops.maxdots(1, row, stride, stride, own, &top)
            label[v] = <int>loops.reach(K, own, row, 0, top)
        m.left[v] = c


cdef int best_per_count(TreeShape shape, Py_ssize_t i, const double* theta,
                        const double* cost, Py_ssize_t most, int* labels, double* values,
                        char* work) except -1 nogil:
    """`CountOracle.argmax_counts` of a forest.

    Where no labeling has a count, its value is -inf and its label all zeros.
    """
    cdef Memory m = _memory(shape, most, work)
    cdef Forest forest = shape.forest(i, theta, m.buffer)
    cdef Py_ssize_t extra = shape.edges_of(i) * shape.edge_size
    cdef Py_ssize_t j, v, c, low = 0, high = 0
    count_steps(i, cost, shape.shared_size, forest.n, forest.K, forest.stride, extra, most, m.steps)
    _leaves(&forest, m)
    m.total[0] = 0
    for j in range(forest.n - 1, -1, -1):
        v = node_at(&forest, j)
        if forest.parent[v] < 0:
            _meet_trees(&forest, v, &low, &high, m)
        else:
            _meet(shape.loops, &forest, v, m)
    for c in range(most + 1):
        values[c] = m.total[c] if low <= c <= high else -INFINITY
        if values[c] > -INFINITY:
            _read_back(shape.loops, &forest, c, m, labels)
        else:
            for v in range(forest.n):
                labels[v] = 0
        labels += forest.n
    return 0
