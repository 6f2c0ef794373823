"""Max-product on forests: the best labeling, the k best, max-marginals; all loops are iterative.

Messages go up from the leaves; a path and a star of a million nodes take the same time.
Max-marginals need, for every child, its parent's sum without this child: the sum over the children
before it (kept on the way up) and over those after it (gathered on the way down).  So no large or
infinite numbers are subtracted.
"""

from libc.math cimport INFINITY
from libc.string cimport memcpy, memset

from structsolve.algorithms.lawler_heap cimport Candidate, pop, push, runner_up
from structsolve.algorithms.pairs cimport pair_row, pair_table
from structsolve.simd.loops cimport ss_loop_table


cdef Py_ssize_t forest_bytes(Py_ssize_t n, Py_ssize_t K, Py_ssize_t stride) noexcept nogil:
    # Rows per node: beliefs, sums before, messages, sums after; and four spare rows.
    return 8 * stride * (4 * n + 4) + 64


cdef inline double _largest(Py_ssize_t K, const double* row) noexcept nogil:
    cdef double top = -INFINITY
    cdef Py_ssize_t s
    for s in range(K):
        top = row[s] if row[s] > top else top
    return top


cdef double _upward(const ss_loop_table* loops, const Forest* forest, double* belief,
                    double* before, double* messages, double* spare) noexcept nogil:
    # belief[v, s] <- the best score of v's subtree with v in state s, -inf in the padding.
    # Unless NULL, messages[v] <- the message of v to its parent, and before[v] <- the parent's sum
    # before this message; at roots, the sum of the best scores of the trees before.
    # Returns the best score.
    cdef Py_ssize_t K = forest.K, stride = forest.stride, j, v, s
    cdef int parent
    cdef double total = 0
    cdef const double* table
    cdef double* row = spare
    cdef double* up
    memcpy(belief, forest.nodes, forest.n * stride * sizeof(double))
    for v in range(forest.n):
        if forest.roots != NULL and forest.parent[v] < 0:
            for s in range(K):
                belief[v * stride + s] += forest.roots[s]
        for s in range(K, stride):
            belief[v * stride + s] = -INFINITY
    for j in range(forest.n - 1, -1, -1):
        v = node_at(forest, j)
        parent = forest.parent[v]
        if parent < 0:
            if before != NULL:
                before[v * stride] = total
            total += _largest(K, belief + v * stride)
            continue
        if messages != NULL:
            row = messages + v * stride
        up = belief + parent * stride
        if before != NULL:
            memcpy(before + v * stride, up, stride * sizeof(double))
        # The padding of beliefs is -inf, that of tables 0.
        table = pair_table(forest.pairs, forest.edge[v], K * stride)
        loops.maxdots(K, table, stride, stride, belief + v * stride, row)
        for s in range(K):
            up[s] += row[s]
    return total


cdef inline int _choose(const ss_loop_table* loops, const Forest* forest, Py_ssize_t v,
                        const int* label, const double* belief, double* spare) noexcept nogil:
    # The first of the best states of v, given its parent's.
    cdef Py_ssize_t K = forest.K, stride = forest.stride, s
    cdef const double* own = belief + v * stride
    cdef const double* row
    cdef double top
    cdef int parent = forest.parent[v]
    if parent < 0:
        top = _largest(K, own)
        for s in range(K):
            if own[s] == top:
                return <int>s
        return 0
    row = pair_row(forest.pairs, forest.edge[v], label[parent], K, stride, spare)
    loops.maxdots(1, row, stride, stride, own, &top)
    return <int>loops.reach(K, own, row, 0, top)


cdef double forest_argmax(const ss_loop_table* loops, const Forest* forest, int* label,
                          char* work) noexcept nogil:
    cdef double* belief = <double*>work
    cdef double* spare = belief + forest.n * forest.stride
    cdef Py_ssize_t j, v
    cdef double total = _upward(loops, forest, belief, NULL, NULL, spare)
    for j in range(forest.n):
        v = node_at(forest, j)
        label[v] = _choose(loops, forest, v, label, belief, spare)
    return total


cdef void forest_max_marginals(const ss_loop_table* loops, const Forest* forest, double* out,
                               char* work) noexcept nogil:
    cdef Py_ssize_t K = forest.K, stride = forest.stride, j, v, s
    cdef double* belief = <double*>work
    cdef double* before = belief + forest.n * stride
    cdef double* messages = before + forest.n * stride
    cdef double* after = messages + forest.n * stride
    cdef double* zeros = after + forest.n * stride
    cdef const double* table
    cdef double* above
    cdef double* up
    cdef double* row
    cdef double rest = 0
    cdef int parent
    memset(zeros, 0, stride * sizeof(double))
    _upward(loops, forest, belief, before, messages, zeros)
    for j in range(forest.n):
        v = node_at(forest, j)
        parent = forest.parent[v]
        above, row = after + v * stride, before + v * stride
        if parent < 0:
            # The best of all other trees.
            for s in range(K):
                above[s] = row[0] + rest
            rest += _largest(K, belief + v * stride)
        else:
            # The parent's sum without v: later children on the way up have been visited by now.
            up = after + parent * stride
            for s in range(K):
                row[s] += up[s]
                up[s] += messages[v * stride + s]
            table = pair_table(forest.pairs, forest.edge[v], K * stride)
            loops.maxplus(K, row, table, stride, stride, zeros, above)
        for s in range(stride):
            out[v * stride + s] = belief[v * stride + s] + above[s] if s < K else 0


cdef void _branch(const Forest* forest, const double* belief, const int* label, double value,
                  int path, Py_ssize_t deviation, double* spare, Candidate* heap,
                  Py_ssize_t* size) noexcept nogil:
    # The best labelings that first differ from `label` in a position from `deviation` on.  The rest
    # after the position is the best for the states before it, so only the state there matters.
    cdef Py_ssize_t K = forest.K, stride = forest.stride, j, v, best
    cdef const double* row
    cdef double now, top
    cdef Candidate item
    for j in range(deviation, forest.n):
        v, row = node_at(forest, j), NULL
        if forest.parent[v] >= 0:
            row = pair_row(forest.pairs, forest.edge[v], label[forest.parent[v]], K, stride, spare)
        best = runner_up(K, belief + v * stride, row, NULL, 1, 0, label[v], &top, &now)
        if top > -INFINITY:
            item.value, item.path, item.v, item.s = value + (top - now), path, <int>j, <int>best
            push(heap, size, item)


cdef Py_ssize_t forest_kbest(const ss_loop_table* loops, const Forest* forest, Py_ssize_t k,
                             int* labels, double* values, Candidate* heap,
                             char* work) noexcept nogil:
    # Lawler's partition: all labelings except the answers so far are divided into disjoint sets.  A
    # set holds those that agree with answer `path` before position v, and have state s or a later
    # one in the order of candidates there.  A heap holds the best of every set.
    cdef Py_ssize_t n = forest.n, size = 0, count, j, v
    cdef double* belief = <double*>work
    cdef double* spare = belief + n * forest.stride
    cdef int* label = labels
    cdef const int* path
    cdef Candidate item
    cdef int parent
    values[0] = _upward(loops, forest, belief, NULL, NULL, spare)
    for j in range(n):
        v = node_at(forest, j)
        label[v] = _choose(loops, forest, v, label, belief, spare)
    if not values[0] > -INFINITY:
        return 1
    item.v = 0
    for count in range(1, k):
        _branch(forest, belief, label, values[count - 1], <int>(count - 1), item.v, spare, heap,
                &size)
        if size == 0:
            return count
        item = pop(heap, &size)
        label += n
        path = labels + item.path * n
        memcpy(label, path, n * sizeof(int))
        label[node_at(forest, item.v)] = item.s
        # A choice depends only on the parent's state, so nothing changes below an unchanged state.
        for j in range(item.v + 1, n):
            v = node_at(forest, j)
            parent = forest.parent[v]
            if parent >= 0 and label[parent] != path[parent]:
                label[v] = _choose(loops, forest, v, label, belief, spare)
        # Sums of the same scores in different order may differ in the last bit.
        values[count] = min(item.value, values[count - 1])
    return k
