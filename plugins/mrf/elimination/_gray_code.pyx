"""All labelings of a small two-state model: the best one, max-marginals, the k best; by Gray codes.

With x in {0, 1} the score is ``constant + sum_v a_v x_v + sum_e j_e x_u x_v``.  A table has all 2^k
sums of the first nodes, built by doubling; the other nodes run through a Gray code, and add to the
table a linear function of the first nodes, again by doubling.  This takes two additions per
labeling, in loops that the compiler vectorises.
"""

from libc.math cimport INFINITY, fabs
from libc.string cimport memset

from structsolve.plugins.mrf.elimination._kbest_heap cimport (
    Ranked, best_first, enter, entry_value, ranked_bytes, start_ranked,
)
from structsolve.plugins.mrf.tables._model cimport Model, score

cdef enum:
    LOW = 9         # the tables of 2^LOW doubles stay in the nearest cache
    CUBE = 20       # most nodes; other decoders take larger models
    FASTER = 8      # labelings in the time of one sum of elimination


cdef struct Cube:
    Py_ssize_t n, low
    double* a           # (n,) linear coefficients, given the current labeling of the rest
    double* j           # (n, n) couplings, symmetric
    double* table       # (2^low,) sums within the first nodes
    double* line        # (2^low,) linear function of the first nodes
    double offset       # sum within the rest, constant included
    unsigned long rest  # bits of the nodes after the first


cdef bint cube_pays(const Model* model, double sums) noexcept nogil:
    cdef Py_ssize_t e, k
    cdef double size = 0
    if model.unary_at[model.n] != 2 * model.n or model.n > CUBE:
        return False
    if sums > 0 and (1 << model.n) > FASTER * sums:
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


cdef Py_ssize_t cube_bytes(Py_ssize_t max_nodes, Py_ssize_t k) noexcept nogil:
    # Coefficients, two tables, and the best of each labeling of the first nodes.
    cdef Py_ssize_t n = min(max_nodes, <Py_ssize_t>CUBE)
    return (n + n * n + 3 * (1 << LOW)) * 8 + ranked_bytes(k)


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


cdef void cube_marginals(const Model* model, double* out, char* work) noexcept nogil:
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


cdef Py_ssize_t cube_kbest(const Model* model, Py_ssize_t k, int* labels, double* values,
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
