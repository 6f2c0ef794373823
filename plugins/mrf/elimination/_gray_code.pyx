"""All labelings of a small model: the best one, max-marginals, the k best; by Gray codes.

There are two ways.  In general one node changes its state at a time.  The score is updated,
which costs the node's edges instead of the whole graph; a labeling that may be the best is scored
anew, so that accumulated rounding never decides.

Where every node has two states and every score is finite, a table over the first nodes is kept for
each labeling of the rest.  With x in {0, 1} the score is ``constant + sum_v a_v x_v + sum_e j_e x_u
x_v``.  The table has all 2^k sums of the first nodes, built by doubling; the other nodes run
through a Gray code, and add to the table a linear function of the first nodes, again by doubling.
This takes two additions per labeling, in loops that the compiler vectorises.
"""

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy, memset

from structsolve.plugins.mrf.elimination._kbest_heap cimport (
    Ranked, best_first, enter, entry_value, ranked_bytes, start_ranked,
)
from structsolve.plugins.mrf.tables._model cimport Model, other_end, score

# -- any states: one node changes at a time ------------------------------------------------------

# Error of the updated score, relative to the size of all scores.
cdef double SLACK = 1e-11


cdef struct GrayCode:
    # Knuth's loopless reflected mixed-radix Gray code (TAOCP 7.2.1.1, algorithm H).
    Py_ssize_t n_free
    int* free               # nodes with a choice
    int* focus
    int* step
    int* state              # of all nodes


cdef struct Carried:
    # Score of the current labeling, and the contribution of each state of each node.
    const Model* model
    double* gain            # as model.unary: the state's score, given the neighbours' states
    double total, slack
    bint finite             # no score is -inf: differences are defined


cdef Py_ssize_t _mixed_bytes(Py_ssize_t max_nodes, Py_ssize_t max_unary) noexcept nogil:
    return max_unary * sizeof(double) + (4 * max_nodes + 8) * sizeof(int)


cdef char* _start(GrayCode* code, const Model* model, char* work) noexcept nogil:
    cdef Py_ssize_t v
    code.free = <int*>work
    code.focus = code.free + model.n
    code.step = code.focus + model.n + 1
    code.state = code.step + model.n
    code.n_free = 0
    for v in range(model.n):
        code.state[v] = 0
        if model.states[v] > 1:
            code.free[code.n_free] = <int>v
            code.n_free += 1
    for v in range(code.n_free + 1):
        code.focus[v] = <int>v
    for v in range(code.n_free):
        code.step[v] = 1
    return work + (4 * model.n + 2) * sizeof(int)


cdef inline Py_ssize_t _next(GrayCode* code, const int* states, int* before) noexcept nogil:
    # Change one node; return it, -1 at the end.
    cdef Py_ssize_t j = code.focus[0], v
    if j == code.n_free:
        return -1
    code.focus[0] = 0
    v = code.free[j]
    before[0] = code.state[v]
    code.state[v] += code.step[j]
    if code.state[v] == 0 or code.state[v] == states[v] - 1:
        code.step[j] = -code.step[j]
        code.focus[j] = code.focus[j + 1]
        code.focus[j + 1] = <int>(j + 1)
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
    for e in range(model.m):
        for j in range(model.cell_at[e + 1] - model.cell_at[e]):
            size += fabs(model.pair[model.pair_at[e] + j])
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
        w = other_end(model, e, v)
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


cdef void _mixed_marginals(const Model* model, double* out, char* work) noexcept nogil:
    cdef GrayCode code
    cdef Carried h
    cdef double* gain = <double*>work
    cdef Py_ssize_t v, part
    cdef double fresh
    cdef int before = 0
    cdef bint near
    _start(&code, model, <char*>(gain + model.unary_at[model.n]))
    _carry(&h, model, code.state, gain)
    for part in range(model.unary_at[model.n]):
        out[part] = -INFINITY
    while True:
        near = False
        for v in range(model.n):
            if h.total > out[model.unary_at[v] + code.state[v]] - h.slack:
                near = True
                break
        if near:
            fresh = score(model, code.state)
            for v in range(model.n):
                part = model.unary_at[v] + code.state[v]
                out[part] = max(out[part], fresh)
        v = _next(&code, model.states, &before)
        if v < 0:
            return
        _moved(&h, code.state, v, before)


cdef Py_ssize_t _mixed_kbest(const Model* model, Py_ssize_t k, int* labels, double* values,
                           char* work) noexcept nogil:
    cdef GrayCode code
    cdef Carried h
    cdef Ranked best
    cdef double* gain = <double*>(work + ranked_bytes(k))
    cdef Py_ssize_t v, j, count
    cdef long long number
    cdef int before = 0
    cdef int* label
    start_ranked(&best, k, work)
    _start(&code, model, <char*>(gain + model.unary_at[model.n]))
    _carry(&h, model, code.state, gain)
    v = 0
    while v >= 0:
        if h.total >= entry_value(&best) - h.slack:
            # The states are its digits: ties go to the lowest states.
            number = 0
            for v in range(model.n):
                number = number * model.states[v] + code.state[v]
            enter(&best, score(model, code.state), number)
        v = _next(&code, model.states, &before)
        if v >= 0:
            _moved(&h, code.state, v, before)
    count = best_first(&best)
    for j in range(count):
        label = labels + j * model.n
        number = best.code[j]
        for v in range(model.n - 1, -1, -1):
            label[v] = <int>(number % model.states[v])
            number //= model.states[v]
        values[j] = best.value[j]
    return count


# -- tables for two states -----------------------------------------------------------------------

cdef enum:
    LOW = 9         # the tables of 2^LOW doubles stay in the nearest cache
    CUBE = 20       # most nodes; other decoders take larger models


cdef struct Cube:
    Py_ssize_t n, low
    double* a           # (n,) linear coefficients, given the current labeling of the rest
    double* j           # (n, n) couplings, symmetric
    double* table       # (2^low,) sums within the first nodes
    double* line        # (2^low,) linear function of the first nodes
    double offset       # sum within the rest, constant included
    unsigned long rest  # bits of the nodes after the first


cdef bint cube_fits(const Model* model) noexcept nogil:
    cdef Py_ssize_t e, k
    cdef double size = 0
    if model.unary_at[model.n] != 2 * model.n or model.n > CUBE:
        return False
    for k in range(model.n):
        if model.states[k] != 2:
            return False
    for k in range(2 * model.n):
        size += fabs(model.unary[k])
    for e in range(model.m):
        for k in range(4):
            size += fabs(model.pair[model.pair_at[e] + k])
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
        p = model.pair + model.pair_at[e]
        cube.offset += p[0]
        cube.a[v] += p[2] - p[0]
        cube.a[w] += p[1] - p[0]
        cube.j[v * n + w] += p[3] - p[2] - p[1] + p[0]
        cube.j[w * n + v] = cube.j[v * n + w]
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
    # Move the rest to labeling number `step` of the Gray code, and update `line`.
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
    # Largest sum of the two; eight at a time, which compilers vectorise.
    cdef double[8] best
    cdef double x, top
    cdef Py_ssize_t k, r
    if size < 8:
        top = -INFINITY
        for k in range(size):
            x = table[k] + line[k]
            top = x if x > top else top
        return top
    for r in range(8):
        best[r] = table[r] + line[r]
    for k in range(8, size, 8):
        for r in range(8):
            x = table[k + r] + line[k + r]
            best[r] = x if x > best[r] else best[r]
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
    cdef Py_ssize_t size = 1 << cube.low, k, v, part
    cdef unsigned long step
    cdef double x, top
    for k in range(2 * cube.n):
        out[k] = -INFINITY
    for k in range(size):
        best[k] = -INFINITY
    for step in range(<unsigned long>1 << (cube.n - cube.low)):
        _flip(&cube, step)
        top = -INFINITY
        for k in range(size):
            x = cube.offset + (cube.table[k] + cube.line[k])
            best[k] = x if x > best[k] else best[k]
        top = cube.offset + _top(size, cube.table, cube.line)
        for v in range(cube.low, cube.n):
            part = 2 * v + ((cube.rest >> (v - cube.low)) & 1)
            out[part] = max(out[part], top)
    for k in range(size):
        for v in range(cube.low):
            part = 2 * v + ((k >> v) & 1)
            out[part] = max(out[part], best[k])


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
        # The same scores, summed in another order, may differ in the last bit.
        if j:
            values[j] = min(values[j], values[j - 1])
    return count


# -- whichever suits the model -------------------------------------------------------------------

cdef Py_ssize_t gray_bytes(Py_ssize_t max_nodes, Py_ssize_t max_unary) noexcept nogil:
    return max(_mixed_bytes(max_nodes, max_unary), _cube_bytes(min(max_nodes, <Py_ssize_t>CUBE)))


cdef void gray_marginals(const Model* model, double* out, char* work) noexcept nogil:
    if cube_fits(model):
        _cube_marginals(model, out, work)
    else:
        _mixed_marginals(model, out, work)


cdef Py_ssize_t gray_kbest_bytes(Py_ssize_t max_nodes, Py_ssize_t max_unary,
                                 Py_ssize_t k) noexcept nogil:
    return gray_bytes(max_nodes, max_unary) + ranked_bytes(k)


cdef Py_ssize_t gray_kbest(const Model* model, Py_ssize_t k, int* labels, double* values,
                           char* work) noexcept nogil:
    if cube_fits(model):
        return _cube_kbest(model, k, labels, values, work)
    return _mixed_kbest(model, k, labels, values, work)
