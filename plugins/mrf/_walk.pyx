"""Max-marginals and best labelings of a small model, by a Gray code: one node changes its state at a time.

The score is carried along, which costs the node's edges instead of the whole graph; whatever may
be the best is scored afresh, so that rounding on the way never decides.
"""

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy

from structsolve.plugins.mrf._model cimport Model, score
from structsolve.plugins.mrf._ranked cimport (
    Ranked, best_first, enter, entry_value, ranked_bytes, start_ranked,
)

# What the carried score may be wrong by, relative to the size of all scores.
cdef double SLACK = 1e-11


cdef struct Walk:
    # Knuth's loopless reflected mixed-radix Gray code (TAOCP 7.2.1.1, algorithm H).
    Py_ssize_t n_free
    int* free               # nodes with a choice
    int* focus
    int* step
    int* state              # of all nodes


cdef struct Carried:
    # A model's score of the present labeling, and what it would be in every state of each node.
    const Model* model
    double* gain            # as model.unary: score of the node's state, neighbours as they are
    double total, slack
    bint finite             # no score is -inf: differences make sense


cdef Py_ssize_t walk_bytes(Py_ssize_t max_nodes, Py_ssize_t max_unary) noexcept nogil:
    return max_unary * sizeof(double) + (4 * max_nodes + 8) * sizeof(int)


cdef char* _start(Walk* walk, const Model* model, char* work) noexcept nogil:
    cdef Py_ssize_t v
    walk.free = <int*>work
    walk.focus = walk.free + model.n
    walk.step = walk.focus + model.n + 1
    walk.state = walk.step + model.n
    walk.n_free = 0
    for v in range(model.n):
        walk.state[v] = 0
        if model.states[v] > 1:
            walk.free[walk.n_free] = <int>v
            walk.n_free += 1
    for v in range(walk.n_free + 1):
        walk.focus[v] = <int>v
    for v in range(walk.n_free):
        walk.step[v] = 1
    return work + (4 * model.n + 2) * sizeof(int)


cdef inline Py_ssize_t _next(Walk* walk, const int* states, int* before) noexcept nogil:
    # Change one node; return it, -1 at the end.
    cdef Py_ssize_t j = walk.focus[0], v
    if j == walk.n_free:
        return -1
    walk.focus[0] = 0
    v = walk.free[j]
    before[0] = walk.state[v]
    walk.state[v] += walk.step[j]
    if walk.state[v] == 0 or walk.state[v] == states[v] - 1:
        walk.step[j] = -walk.step[j]
        walk.focus[j] = walk.focus[j + 1]
        walk.focus[j + 1] = <int>(j + 1)
    return v


cdef void _carry(Carried* carried, const Model* model, const int* state,
                 double* gain) noexcept nogil:
    cdef Py_ssize_t j, e, s, u, v, K
    cdef const double* table
    cdef double size = 0
    carried.model, carried.gain, carried.finite = model, gain, True
    memcpy(gain, model.unary, model.unary_at[model.n] * sizeof(double))
    for j in range(model.unary_at[model.n]):
        size += fabs(model.unary[j])
    for j in range(model.pair_at[model.m]):
        size += fabs(model.pair[j])
    carried.finite = size < INFINITY
    carried.slack = SLACK * size
    carried.total = score(model, state)
    if not carried.finite:
        return
    for e in range(model.m):
        u, v = model.ends[2 * e], model.ends[2 * e + 1]
        K = model.states[v]
        table = model.pair + model.pair_at[e]
        for s in range(model.states[u]):
            gain[model.unary_at[u] + s] += table[s * K + state[v]]
        for s in range(K):
            gain[model.unary_at[v] + s] += table[state[u] * K + s]


cdef inline void _moved(Carried* carried, const int* state, Py_ssize_t v,
                        int before) noexcept nogil:
    # Node v has left the state `before`.
    cdef const Model* model = carried.model
    cdef Py_ssize_t k, e, w, s, K, now = state[v]
    cdef const double* table
    cdef double* gain
    if not carried.finite:
        carried.total = score(model, state)
        return
    gain = carried.gain + model.unary_at[v]
    carried.total += gain[now] - gain[before]
    for k in range(model.near_at[v], model.near_at[v + 1]):
        e = model.near[k]
        w = model.ends[2 * e] + model.ends[2 * e + 1] - v
        table = model.pair + model.pair_at[e]
        gain = carried.gain + model.unary_at[w]
        if model.ends[2 * e] == v:
            K = model.states[w]
            for s in range(K):
                gain[s] += table[now * K + s] - table[before * K + s]
        else:
            K = model.states[v]
            for s in range(model.states[w]):
                gain[s] += table[s * K + now] - table[s * K + before]


cdef void walk_marginals(const Model* model, double* out, char* work) noexcept nogil:
    cdef Walk walk
    cdef Carried h
    cdef double* gain = <double*>work
    cdef Py_ssize_t v, at
    cdef double fresh
    cdef int before = 0
    cdef bint near
    _start(&walk, model, <char*>(gain + model.unary_at[model.n]))
    _carry(&h, model, walk.state, gain)
    for at in range(model.unary_at[model.n]):
        out[at] = -INFINITY
    while True:
        near = False
        for v in range(model.n):
            if h.total > out[model.unary_at[v] + walk.state[v]] - h.slack:
                near = True
                break
        if near:
            fresh = score(model, walk.state)
            for v in range(model.n):
                at = model.unary_at[v] + walk.state[v]
                out[at] = max(out[at], fresh)
        v = _next(&walk, model.states, &before)
        if v < 0:
            return
        _moved(&h, walk.state, v, before)


cdef Py_ssize_t walk_kbest_bytes(Py_ssize_t max_nodes, Py_ssize_t max_unary,
                                 Py_ssize_t k) noexcept nogil:
    return ranked_bytes(k) + walk_bytes(max_nodes, max_unary)


cdef Py_ssize_t walk_kbest(const Model* model, Py_ssize_t k, int* labels, double* values,
                           char* work) noexcept nogil:
    cdef Walk walk
    cdef Carried h
    cdef Ranked best
    cdef double* gain = <double*>(work + ranked_bytes(k))
    cdef Py_ssize_t v, j, count
    cdef long long code
    cdef int before = 0
    cdef int* label
    start_ranked(&best, k, work)
    _start(&walk, model, <char*>(gain + model.unary_at[model.n]))
    _carry(&h, model, walk.state, gain)
    v = 0
    while v >= 0:
        if h.total >= entry_value(&best) - h.slack:
            # The number whose digits are the states: of equal labelings the lowest states win.
            code = 0
            for v in range(model.n):
                code = code * model.states[v] + walk.state[v]
            enter(&best, score(model, walk.state), code)
        v = _next(&walk, model.states, &before)
        if v >= 0:
            _moved(&h, walk.state, v, before)
    count = best_first(&best)
    for j in range(count):
        label = labels + j * model.n
        code = best.code[j]
        for v in range(model.n - 1, -1, -1):
            label[v] = <int>(code % model.states[v])
            code //= model.states[v]
        values[j] = best.value[j]
    return count
