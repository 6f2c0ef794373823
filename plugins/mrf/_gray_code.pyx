"""All labelings of a small model: the best one, max-marginals, the k best; by Gray codes.

Two ways, by what the model is.  In general one node changes its state at a time.  The score is
carried along, which costs the node's edges instead of the whole graph; whatever may be the best is
scored afresh, so that rounding on the way never decides.

Where every node has two states and every score is finite, a table over the first nodes is kept for
each labeling of the rest.  With x in {0, 1} the score is ``constant + sum_v a_v x_v + sum_e j_e x_u
x_v``.  Of the first nodes all 2^k sums are in the table, made by doubling; the rest run through a
Gray code, and add to the table a linear function of the first nodes, again by doubling.  That is
two additions a labeling, in loops that the compiler turns into vectors.
"""

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy, memset

from structsolve.plugins.mrf._model cimport Model, score
from structsolve.plugins.mrf._ranked cimport (
    Ranked, best_first, enter, entry_value, ranked_bytes, start_ranked)

# -- one state changed at a time -----------------------------------------------------------------

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


cdef Py_ssize_t _walk_bytes(Py_ssize_t max_nodes, Py_ssize_t max_unary) noexcept nogil:
    return max_unary * sizeof(double) + (4 * max_nodes + 8) * sizeof(int)


cdef char* _start_walk(Walk* walk, const Model* model, char* work) noexcept nogil:
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


cdef void _walk_marginals(const Model* model, double* out, char* work) noexcept nogil:
    cdef Walk walk
    cdef Carried h
    cdef double* gain = <double*>work
    cdef Py_ssize_t v, at
    cdef double fresh
    cdef int before = 0
    cdef bint near
    _start_walk(&walk, model, <char*>(gain + model.unary_at[model.n]))
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


cdef Py_ssize_t _walk_kbest(const Model* model, Py_ssize_t k, int* labels, double* values,
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
    _start_walk(&walk, model, <char*>(gain + model.unary_at[model.n]))
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


# -- tables for two states -----------------------------------------------------------------------

cdef enum:
    LOW = 9         # the tables of 2^LOW doubles stay in the nearest cache
    CUBE = 20       # more nodes are left to the other decoders


cdef struct Cube:
    Py_ssize_t n, low
    double* a           # (n,) linear coefficients of the present labeling of the rest
    double* j           # (n, n) couplings, symmetric
    double* table       # (2^low,) sums within the first nodes
    double* line        # (2^low,) linear function of the first nodes
    double offset       # sum within the rest, constant included
    unsigned long rest  # bits of the nodes behind the first


cdef bint cube_fits(const Model* model) noexcept nogil:
    cdef Py_ssize_t k
    cdef double size = 0
    if model.unary_at[model.n] != 2 * model.n or model.n > CUBE:
        return False
    for k in range(model.n):
        if model.states[k] != 2:
            return False
    for k in range(2 * model.n):
        size += fabs(model.unary[k])
    for k in range(4 * model.m):
        size += fabs(model.pair[k])
    return size < INFINITY


cdef Py_ssize_t _cube_bytes(Py_ssize_t max_nodes) noexcept nogil:
    # Coefficients, two tables, and the best of each labeling of the first nodes.
    return (max_nodes + max_nodes * max_nodes + 3 * (1 << LOW)) * 8


cdef char* _start_cube(Cube* cube, const Model* model, char* work) noexcept nogil:
    cdef Py_ssize_t v, w, e, n = model.n, k, half
    cdef const double* p
    cube.n, cube.low, cube.rest = n, min(n, <Py_ssize_t>LOW), 0
    cube.a = <double*>work
    cube.j = cube.a + n
    cube.table = cube.j + n * n
    cube.line = cube.table + (1 << cube.low)
    memset(cube.j, 0, n * n * sizeof(double))
    cube.offset = 0
    for v in range(n):
        cube.offset += model.unary[2 * v]
        cube.a[v] = model.unary[2 * v + 1] - model.unary[2 * v]
    for e in range(model.m):
        v, w = model.ends[2 * e], model.ends[2 * e + 1]
        p = model.pair + 4 * e
        cube.offset += p[0]
        cube.a[v] += p[2] - p[0]
        cube.a[w] += p[1] - p[0]
        cube.j[v * n + w] = cube.j[w * n + v] = p[3] - p[2] - p[1] + p[0]
    # Couplings within the first nodes: node v adds its row, restricted to the nodes before it.
    cube.table[0] = 0
    for v in range(cube.low):
        half = 1 << v
        _double(cube.line, cube.j + v * n, v)
        for k in range(half):
            cube.table[half + k] = cube.table[k] + cube.line[k]
    return <char*>(cube.line + (1 << cube.low))


cdef inline void _double(double* line, const double* a, Py_ssize_t n) noexcept nogil:
    # line[x] <- sum of a_v over the bits v of x.
    cdef Py_ssize_t v, k, half
    line[0] = 0
    for v in range(n):
        half = 1 << v
        for k in range(half):
            line[half + k] = line[k] + a[v]


cdef inline void _flip(Cube* cube, unsigned long step) noexcept nogil:
    # To labeling number `step` of the rest in the Gray code; `line` follows.
    cdef Py_ssize_t b = 0, v, w, n = cube.n
    cdef const double* row
    if step:
        while not (step >> b) & 1:
            b += 1
        v = cube.low + b
        row = cube.j + v * n
        cube.rest ^= <unsigned long>1 << b
        if (cube.rest >> b) & 1:
            cube.offset += cube.a[v]
            for w in range(n):
                cube.a[w] += row[w]
        else:
            for w in range(n):
                cube.a[w] -= row[w]
            cube.offset -= cube.a[v]
    _double(cube.line, cube.a, cube.low)


cdef inline double _top(Py_ssize_t size, const double* table, const double* line) noexcept nogil:
    # Largest sum of the two; eight at a time, which compilers turn into vectors of maxima.
    cdef double[8] best
    cdef double found, top
    cdef Py_ssize_t k, r
    if size < 8:
        top = -INFINITY
        for k in range(size):
            found = table[k] + line[k]
            top = found if found > top else top
        return top
    for r in range(8):
        best[r] = table[r] + line[r]
    for k in range(8, size, 8):
        for r in range(8):
            found = table[k + r] + line[k + r]
            best[r] = found if found > best[r] else best[r]
    top = best[0]
    for r in range(1, 8):
        top = best[r] if best[r] > top else top
    return top


cdef inline void _write(const Cube* cube, Py_ssize_t first, int* label) noexcept nogil:
    cdef Py_ssize_t v
    for v in range(cube.low):
        label[v] = (first >> v) & 1
    for v in range(cube.low, cube.n):
        label[v] = (cube.rest >> (v - cube.low)) & 1


cdef void cube_argmax(const Model* model, int* label, double* value, char* work) noexcept nogil:
    cdef Cube cube
    cdef Py_ssize_t size, k
    cdef unsigned long step
    cdef double top, best = -INFINITY
    _start_cube(&cube, model, work)
    size = 1 << cube.low
    for step in range(<unsigned long>1 << (cube.n - cube.low)):
        _flip(&cube, step)
        top = cube.offset + _top(size, cube.table, cube.line)
        if top > best:
            best = top
            for k in range(size):
                if cube.offset + (cube.table[k] + cube.line[k]) == top:
                    _write(&cube, k, label)
                    break
    value[0] = score(model, label)


cdef void _cube_marginals(const Model* model, double* out, char* work) noexcept nogil:
    cdef Cube cube
    cdef double* best = <double*>_start_cube(&cube, model, work)
    cdef Py_ssize_t size = 1 << cube.low, k, v, at
    cdef unsigned long step
    cdef double found, top
    for k in range(2 * cube.n):
        out[k] = -INFINITY
    for k in range(size):
        best[k] = -INFINITY
    for step in range(<unsigned long>1 << (cube.n - cube.low)):
        _flip(&cube, step)
        top = -INFINITY
        for k in range(size):
            found = cube.offset + (cube.table[k] + cube.line[k])
            best[k] = found if found > best[k] else best[k]
        top = cube.offset + _top(size, cube.table, cube.line)
        for v in range(cube.low, cube.n):
            at = 2 * v + ((cube.rest >> (v - cube.low)) & 1)
            out[at] = max(out[at], top)
    for k in range(size):
        for v in range(cube.low):
            at = 2 * v + ((k >> v) & 1)
            out[at] = max(out[at], best[k])


cdef Py_ssize_t _cube_kbest(const Model* model, Py_ssize_t k, int* labels, double* values,
                           char* work) noexcept nogil:
    cdef Cube cube
    cdef Ranked best
    cdef Py_ssize_t size, s, j, count
    cdef unsigned long step, code
    cdef int* label
    start_ranked(&best, k, _start_cube(&cube, model, work))
    size = 1 << cube.low
    for step in range(<unsigned long>1 << (cube.n - cube.low)):
        _flip(&cube, step)
        if cube.offset + _top(size, cube.table, cube.line) <= entry_value(&best):
            continue
        for s in range(size):
            enter(&best, cube.offset + (cube.table[s] + cube.line[s]), (step << cube.low) | s)
    count = best_first(&best)
    for j in range(count):
        label = labels + j * cube.n
        code = best.code[j]
        step = code >> cube.low
        cube.rest = step ^ (step >> 1)
        _write(&cube, code & (size - 1), label)
        values[j] = score(model, label)
        # Sums of the same scores in another order may differ in the last bit.
        if j:
            values[j] = min(values[j], values[j - 1])
    return count

# -- whichever suits the model -------------------------------------------------------------------

cdef Py_ssize_t gray_bytes(Py_ssize_t max_nodes, Py_ssize_t max_unary) noexcept nogil:
    return max(_walk_bytes(max_nodes, max_unary), _cube_bytes(min(max_nodes, <Py_ssize_t>CUBE)))


cdef void gray_marginals(const Model* model, double* out, char* work) noexcept nogil:
    if cube_fits(model):
        _cube_marginals(model, out, work)
    else:
        _walk_marginals(model, out, work)


cdef Py_ssize_t gray_kbest_bytes(Py_ssize_t max_nodes, Py_ssize_t max_unary,
                                 Py_ssize_t k) noexcept nogil:
    return gray_bytes(max_nodes, max_unary) + ranked_bytes(k)


cdef Py_ssize_t gray_kbest(const Model* model, Py_ssize_t k, int* labels, double* values,
                           char* work) noexcept nogil:
    if cube_fits(model):
        return _cube_kbest(model, k, labels, values, work)
    return _walk_kbest(model, k, labels, values, work)
