"""The best labeling of a chain for each value of an integer cost.

A dynamic program over (node, state, count): ``score[v, c, t]`` is the best score of positions
0 .. v that end in state t and cost c so far.  A step maximises over the state before for every
count at once, K^2 operations each over the contiguous state axis.  It then shifts every state's
column by what the state costs.  A cost that counts errors, at most one a position, takes
O(L^2 K^2).
"""

from libc.math cimport INFINITY
from structsolve.algorithms.count_costs cimport check_most, count_steps
from structsolve.algorithms.pairs cimport Pairs, pair_table

from structsolve.plugins.chain._shape cimport ChainShape, chain_length, chain_pairs


cdef struct Memory:
    double* score           # (L, most + 1, stride)
    double* row             # stride
    double* buffer          # (K, stride): the table in use, if it has to be built
    double* turned          # (K, stride): the same, transposed
    Py_ssize_t* low         # (L,): counts that positions 0 .. v can have
    Py_ssize_t* high
    Py_ssize_t* rest        # (most + 1,): the count left while a labeling is read back
    int* steps              # (L, K): costs as integers, most + 1 for larger ones


cdef Py_ssize_t counting_bytes(ChainShape shape, Py_ssize_t most) except -1:
    """Scratch memory of `best_per_count`."""
    needed = 8 * (shape.max_nodes * (most + 1) * shape.stride + (1 + 2 * shape.K) * shape.stride
                  + 2 * shape.max_nodes + most + 1) + 4 * shape.max_nodes * shape.K
    check_most(most, shape.max_nodes, shape.K, shape.stride)
    return needed + 64


cdef Memory _memory(ChainShape shape, Py_ssize_t most, char* work) noexcept nogil:
    cdef Memory m
    cdef Py_ssize_t table = shape.K * shape.stride
    m.score = <double*>work
    m.row = m.score + shape.max_nodes * (most + 1) * shape.stride
    m.buffer = m.row + shape.stride
    m.turned = m.buffer + table
    m.low = <Py_ssize_t*>(m.turned + table)
    m.high = m.low + shape.max_nodes
    m.rest = m.high + shape.max_nodes
    m.steps = <int*>(m.rest + most + 1)
    return m


cdef int _read_costs(ChainShape shape, Py_ssize_t i, const double* cost, Py_ssize_t L,
                     Py_ssize_t most, Memory m) except -1 nogil:
    # Reads costs as integers, and the range of counts at each position.
    cdef Py_ssize_t v, s, least, largest, low = 0, high = 0
    count_steps(i, cost, shape.shared_size, L, shape.K, shape.stride, (L - 1) * shape.edge_size,
                most, m.steps)
    for v in range(L):
        least, largest = most + 1, 0
        for s in range(shape.K):
            least = min(least, m.steps[v * shape.K + s])
            largest = max(largest, m.steps[v * shape.K + s])
        low, high = min(low + least, most + 1), min(high + largest, most)
        m.low[v], m.high[v] = low, high
    return 0


cdef inline void _shift(Py_ssize_t K, Py_ssize_t stride, const int* steps, Py_ssize_t c,
                        Py_ssize_t most, const double* row, double* score) noexcept nogil:
    # Moves the entries of a row of count c to the rows of c + their state's cost.
    cdef Py_ssize_t t
    for t in range(K):
        if c + steps[t] <= most:
            score[(c + steps[t]) * stride + t] = row[t]


cdef void _forward(ChainShape shape, Py_ssize_t i, const double* theta, Py_ssize_t L,
                   Py_ssize_t most, Memory m) noexcept nogil:
    cdef Py_ssize_t K = shape.K, stride = shape.stride, v, c, s, size = (most + 1) * stride
    cdef const double* unary = theta + shape.shared_size
    cdef const double* table
    cdef Pairs pairs = chain_pairs(shape, i, theta, m.buffer)
    cdef double* before
    cdef double* score = m.score
    cdef double low, top
    for v in range(L):
        for s in range(m.low[v] * stride, (m.high[v] + 1) * stride):
            score[s] = -INFINITY
        if v == 0:
            for s in range(K):
                m.row[s] = unary[s] + (theta[shape.start + s] if shape.start >= 0 else 0)
            _shift(K, stride, m.steps, 0, most, m.row, score)
        else:
            before = score - size
            table = pair_table(pairs, v - 1, K * stride)
            for c in range(m.low[v - 1], m.high[v - 1] + 1):
                shape.loops.range(1, before + c * stride, stride, K, 0, &low, &top)
                if top == -INFINITY:    # no labeling has this count
                    continue
                shape.loops.maxplus(K, before + c * stride, table, stride, stride, unary, m.row)
                _shift(K, stride, m.steps + v * K, c, most, m.row, score)
        score += size
        unary += stride


cdef void _last_states(ChainShape shape, const double* theta, Py_ssize_t L, Py_ssize_t most,
                       Memory m, int* labels, double* values) noexcept nogil:
    # The best value for each count, and the state it ends in.
    cdef Py_ssize_t c, t
    cdef const double* row = m.score + (L - 1) * (most + 1) * shape.stride
    cdef double x
    for c in range(most + 1):
        values[c] = -INFINITY
        labels[c * L + L - 1] = 0
        m.rest[c] = c
        if m.low[L - 1] <= c <= m.high[L - 1]:
            for t in range(shape.K):
                x = row[t] + (theta[shape.end + t] if shape.end >= 0 else 0)
                if x > values[c]:
                    values[c] = x
                    labels[c * L + L - 1] = <int>t
        row += shape.stride


cdef void _read_back(ChainShape shape, Py_ssize_t i, const double* theta, Py_ssize_t L,
                     Py_ssize_t most, Memory m, int* labels, const double* values) noexcept nogil:
    # Trace the states back by position; one transposed table serves all counts.
    cdef Py_ssize_t K = shape.K, stride = shape.stride, v, c, s, t, rest
    cdef const double* unary
    cdef const double* table
    cdef const double* row
    cdef Pairs pairs = chain_pairs(shape, i, theta, m.buffer)
    for v in range(L - 1, 0, -1):
        unary = theta + shape.shared_size + v * stride
        if v == L - 1 or shape.edge_size:
            table = pair_table(pairs, v - 1, K * stride)
            for s in range(K):
                for t in range(K):
                    m.turned[t * stride + s] = table[s * stride + t]
        for c in range(most + 1):
            if values[c] == -INFINITY:
                labels[c * L + v - 1] = 0
                continue
            t = labels[c * L + v]
            rest = m.rest[c] - m.steps[v * K + t]
            # Scores of NaN or +inf lead out of the range: clip it, to stay in memory.
            rest = max(m.low[v - 1], min(rest, m.high[v - 1]))
            row = m.score + ((v - 1) * (most + 1) + rest) * stride
            s = shape.loops.reach(K, row, m.turned + t * stride, unary[t],
                                  m.score[(v * (most + 1) + m.rest[c]) * stride + t])
            m.rest[c] = rest
            labels[c * L + v - 1] = <int>s


cdef int best_per_count(ChainShape shape, Py_ssize_t i, const double* theta,
                        const double* cost, Py_ssize_t most, int* labels, double* values,
                        char* work) except -1 nogil:
    """`CountOracle.argmax_counts` of a chain; ties are broken as in `Oracle.argmax`.

    Where no labeling has a count, its value is -inf and its label all zeros.
    """
    cdef Py_ssize_t L = chain_length(shape, i)
    cdef Memory m = _memory(shape, most, work)
    cdef Py_ssize_t c
    if L == 0:      # one labeling, of count 0
        values[0] = 0
        for c in range(1, most + 1):
            values[c] = -INFINITY
        return 0
    _read_costs(shape, i, cost, L, most, m)
    _forward(shape, i, theta, L, most, m)
    _last_states(shape, theta, L, most, m, labels, values)
    _read_back(shape, i, theta, L, most, m, labels, values)
    return 0
