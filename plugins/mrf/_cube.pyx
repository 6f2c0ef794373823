"""All labelings of a two-state model: a table over the first nodes for each labeling of the rest.

With x in {0, 1} the score is ``constant + sum_v a_v x_v + sum_e j_e x_u x_v``.  Of the first nodes
all 2^k sums are kept in a table, made by doubling; the rest run through a Gray code, and add to the
table a linear function of the first nodes, again by doubling.  That is two additions a labeling, in
loops that the compiler turns into vectors.
"""

from libc.math cimport INFINITY, fabs
from libc.string cimport memset
from structsolve.operators cimport Cone

from structsolve.plugins.mrf._model cimport Model, score
from structsolve.plugins.mrf._walk cimport in_cone

cdef enum:
    LOW = 9         # the tables of 2^LOW doubles stay in the nearest cache

cdef double SLACK = 1e-11


cdef struct Cube:
    Py_ssize_t n, low
    double constant
    double* a           # (n,) linear coefficients of the present labeling of the rest
    double* j           # (n, n) couplings, symmetric
    double* table       # (2^low,) sums within the first nodes
    double* line        # (2^low,) linear function of the first nodes
    double offset       # sum within the rest, constant included
    unsigned long rest  # bits of the nodes behind the first
    double size         # sum of magnitudes of all scores


cdef bint cube_fits(const Model* model) noexcept nogil:
    cdef Py_ssize_t k
    cdef double size = 0
    if model.unary_at[model.n] != 2 * model.n or model.n > 40:
        return False
    for k in range(model.n):
        if model.states[k] != 2:
            return False
    for k in range(2 * model.n):
        size += fabs(model.unary[k])
    for k in range(4 * model.m):
        size += fabs(model.pair[k])
    return size < INFINITY


cdef Py_ssize_t cube_bytes(Py_ssize_t max_nodes) noexcept nogil:
    # Two models' worth, for the constrained search; 2^LOW + the best of each labeling of the first.
    return 2 * (max_nodes + max_nodes * max_nodes + 2 * (1 << LOW)) * 8 + (1 << LOW) * 8 + 64


cdef char* _start(Cube* cube, const Model* model, char* work) noexcept nogil:
    cdef Py_ssize_t v, w, e, n = model.n, k, half
    cdef const double* p
    cube.n, cube.low, cube.rest = n, min(n, <Py_ssize_t>LOW), 0
    cube.a = <double*>work
    cube.j = cube.a + n
    cube.table = cube.j + n * n
    cube.line = cube.table + (1 << cube.low)
    memset(cube.j, 0, n * n * sizeof(double))
    cube.offset = cube.size = 0
    for v in range(n):
        cube.offset += model.unary[2 * v]
        cube.a[v] = model.unary[2 * v + 1] - model.unary[2 * v]
        cube.size += fabs(model.unary[2 * v]) + fabs(model.unary[2 * v + 1])
    for e in range(model.m):
        v, w = model.ends[2 * e], model.ends[2 * e + 1]
        p = model.pair + 4 * e
        cube.offset += p[0]
        cube.a[v] += p[2] - p[0]
        cube.a[w] += p[1] - p[0]
        cube.j[v * n + w] = cube.j[w * n + v] = p[3] - p[2] - p[1] + p[0]
        cube.size += fabs(p[0]) + fabs(p[1]) + fabs(p[2]) + fabs(p[3])
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


cdef inline void _write(const Cube* cube, unsigned long rest, Py_ssize_t first,
                        int* label) noexcept nogil:
    cdef Py_ssize_t v
    for v in range(cube.low):
        label[v] = (first >> v) & 1
    for v in range(cube.low, cube.n):
        label[v] = (rest >> (v - cube.low)) & 1


cdef void cube_argmax(const Model* model, int* label, double* value, char* work) noexcept nogil:
    cdef Cube cube
    cdef Py_ssize_t size, k
    cdef unsigned long step, best_rest = 0
    cdef double top, best = -INFINITY
    _start(&cube, model, work)
    size = 1 << cube.low
    for step in range(<unsigned long>1 << (cube.n - cube.low)):
        _flip(&cube, step)
        top = cube.offset + _top(size, cube.table, cube.line)
        if top > best:
            best, best_rest = top, cube.rest
            for k in range(size):
                if cube.offset + (cube.table[k] + cube.line[k]) == top:
                    _write(&cube, best_rest, k, label)
                    break
    value[0] = score(model, label)


cdef void cube_marginals(const Model* model, double* out, char* work) noexcept nogil:
    cdef Cube cube
    cdef double* best = <double*>_start(&cube, model, work)
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


cdef bint cube_constrained(const Model* model, const Model* cost, const Cone* cone, int* label,
                           double* value, char* work) noexcept nogil:
    cdef Cube first, second
    cdef Py_ssize_t size, k
    cdef unsigned long step
    cdef double h, g, h0, g0, slack_h, slack_g, slack, lam = cone.lam
    cdef double floor, ceiling, least
    cdef bint found = False, open_above = cone.alpha == INFINITY
    cdef int[64] trial
    _start(&second, cost, _start(&first, model, work))
    size = 1 << first.low
    slack_h = SLACK * (first.size + fabs(cone.h0))
    slack_g = SLACK * (second.size + fabs(cone.g0))
    slack = slack_h + lam * slack_g
    # Wider than the cone by what rounding may do; decided by fresh scores.
    floor = -(slack_g + cone.beta * slack_h)
    ceiling = 0 if open_above else slack_g + cone.alpha * slack_h
    least = -INFINITY
    for step in range(<unsigned long>1 << (first.n - first.low)):
        _flip(&first, step)
        _flip(&second, step)
        h0, g0 = first.offset + cone.h0, second.offset + cone.g0
        for k in range(size):
            h = h0 + (first.table[k] + first.line[k])
            g = g0 + (second.table[k] + second.line[k])
            if h + lam * g <= least or g - cone.beta * h < floor:
                continue
            if open_above:
                if h < -slack_h:
                    continue
            elif g - cone.alpha * h > ceiling:
                continue
            _write(&first, first.rest, k, trial)
            h, g = score(model, trial) + cone.h0, score(cost, trial) + cone.g0
            if not in_cone(cone, h, g) or (found and h + lam * g <= value[0]):
                continue
            found = True
            value[0] = h + lam * g
            least = value[0] - slack
            _write(&first, first.rest, k, label)
    return found
