"""Derivatives of the marginals of arcs, by the elimination of `_matrix_tree.pyx`.

Every number is stored with its derivative along the direction: weights with derivatives, logs
with derivatives of logs, which are means.  As nothing is subtracted from a weight, the error of
a derivative stays in proportion to its weight.  Halves of the words share the work here, too.
"""

from libc.math cimport INFINITY, exp, log
from libc.string cimport memcpy

from structsolve.plugins.dependency._matrix_tree cimport (
    Task, elimination_bytes, prepare, some_tree, turn,
)
from structsolve.plugins.dependency._semiring cimport WEIGHTS, Semiring, times, zero

cdef enum:
    DEPTH = 64


cdef struct Numbers:
    # Weights, or logs; and their derivatives.
    double* value
    double* moved


cdef struct Level:
    # Words low .. high without those eliminated to leave the child's low .. high.
    Py_ssize_t low, high, child_low, child_high
    Numbers matrix, exits, pivot
    double* room        # for the next level
    int next


cdef Py_ssize_t derivative_bytes(Py_ssize_t n) noexcept nogil:
    # Matrix, exits and chances of all words; the levels.
    cdef Py_ssize_t doubles = n * (n + 4) + 2, size = n
    for d in range(DEPTH):
        doubles += 2 * size * (size + 2)
        if size == 1:
            break
        size -= size / 2
    return elimination_bytes(n) + DEPTH * sizeof(Level) + doubles * sizeof(double) + 128


cdef inline Numbers _take(double** memory, Py_ssize_t n) noexcept nogil:
    cdef Numbers x
    x.value = memory[0]
    x.moved = x.value + n
    memory[0] = x.moved + n
    return x


cdef inline void _add(Semiring kind, double* a, double* moved, double b, double move) noexcept nogil:
    # a <- a + b.
    cdef double share
    if kind == WEIGHTS:
        a[0] += b
        moved[0] += move
    elif b > -INFINITY:
        if a[0] >= b:
            share = exp(b - a[0])
            a[0] += log(1 + share)
            share /= 1 + share
        else:
            share = 1 / (1 + exp(a[0] - b))
            a[0] = b - log(share)
        moved[0] += share * (move - moved[0])


cdef bint _eliminate(Semiring kind, Level* level, bint lone) noexcept nogil:
    """Eliminate the words outside of the child; returns False if a pivot is zero."""
    cdef Py_ssize_t stride = level.high - level.low, k, i, j, first, last, gone
    cdef Py_ssize_t count = stride - (level.child_high - level.child_low)
    cdef double f, g, pivot, moved
    cdef double* row
    cdef double* along
    cdef double* to
    cdef double* to_along
    for gone in range(count):
        k = turn(level.child_low == level.low, stride, gone, &first, &last)
        row, along = level.matrix.value + k * stride, level.matrix.moved + k * stride
        pivot, moved = zero(kind), 0
        for j in range(first, last):
            _add(kind, &pivot, &moved, row[j], along[j])
        if not lone:
            _add(kind, &pivot, &moved, level.exits.value[k], level.exits.moved[k])
        if pivot == zero(kind):
            return False
        level.pivot.value[k], level.pivot.moved[k] = pivot, moved
        for i in range(first, last):
            to, to_along = level.matrix.value + i * stride, level.matrix.moved + i * stride
            if to[k] == zero(kind):
                continue
            if kind == WEIGHTS:
                f = to[k] / pivot
                g = (to_along[k] - f * moved) / pivot
                for j in range(first, last):
                    to[j] += f * row[j]
                    to_along[j] += f * along[j] + g * row[j]
                level.exits.value[i] += f * level.exits.value[k]
                level.exits.moved[i] += f * level.exits.moved[k] + g * level.exits.value[k]
            else:
                f, g = to[k] - pivot, to_along[k] - moved
                for j in range(first, last):
                    _add(kind, to + j, to_along + j, f + row[j], g + along[j])
                _add(kind, level.exits.value + i, level.exits.moved + i,
                     f + level.exits.value[k], g + level.exits.moved[k])
    return True


cdef void _chances(Semiring kind, const Level* level, Numbers chance) noexcept nogil:
    """Chances of the words that a level eliminated to reach the root first, from those left."""
    cdef Py_ssize_t stride = level.high - level.low, base = level.low, k, j, first, last, gone
    cdef Py_ssize_t count = stride - (level.child_high - level.child_low)
    cdef double total, moved
    cdef const double* row
    cdef const double* along
    cdef const double* x = chance.value + base
    cdef const double* y = chance.moved + base
    for gone in range(count - 1, -1, -1):
        k = turn(level.child_low == level.low, stride, gone, &first, &last)
        row, along = level.matrix.value + k * stride, level.matrix.moved + k * stride
        total, moved = level.exits.value[k], level.exits.moved[k]
        for j in range(first, last):
            if kind == WEIGHTS:
                total += row[j] * x[j]
                moved += along[j] * x[j] + row[j] * y[j]
            else:
                _add(kind, &total, &moved, row[j] + x[j], along[j] + y[j])
        if kind == WEIGHTS:
            total /= level.pivot.value[k]
            moved = (moved - total * level.pivot.moved[k]) / level.pivot.value[k]
        else:
            total -= level.pivot.value[k]
            moved -= level.pivot.moved[k]
        chance.value[base + k], chance.moved[base + k] = total, moved


cdef bint _column(const Task* task, Py_ssize_t n, Py_ssize_t m, const double* direction,
                  Numbers chance, double* p, double* out) noexcept nogil:
    """out <- derivatives of the marginals p of word m's heads: entry 0 the root, h word h - 1."""
    cdef Py_ssize_t h
    cdef double top = -INFINITY, total = 0, moved = 0
    cdef const double* row = task.matrix + m * n
    p[0] = task.exits[m]
    for h in range(1, n + 1):
        p[h] = times(task.kind, row[h - 1], chance.value[h - 1])
    p[m + 1] = zero(task.kind)
    if task.kind != WEIGHTS:
        for h in range(n + 1):
            top = p[h] if p[h] > top else top
        if top == -INFINITY:
            return False
        for h in range(n + 1):
            p[h] = exp(p[h] - top)
    for h in range(n + 1):
        total += p[h]
    if total == 0:
        return False
    for h in range(n + 1):
        p[h] /= total
        out[h] = p[h] * direction[h]
        if p[h] > 0 and h:
            # The derivative of the chance, or of its log.
            if task.kind == WEIGHTS:
                out[h] += row[h - 1] * chance.moved[h - 1] / total
            else:
                out[h] += p[h] * chance.moved[h - 1]
        moved += out[h]
    for h in range(n + 1):
        out[h] -= p[h] * moved
    return True


cdef bint _descend(Semiring kind, bint lone, Level* level, Py_ssize_t child_low,
                   Py_ssize_t child_high) noexcept nogil:
    """Eliminate the words of a level but for child_low .. child_high, in a copy: the next level."""
    cdef Level* new = level + 1
    cdef Py_ssize_t low = level.child_low, size = level.child_high - low, r
    cdef Py_ssize_t stride = level.high - level.low, start = low - level.low, row
    new.low, new.high, new.child_low, new.child_high = low, level.child_high, child_low, child_high
    new.next, new.room = 0, level.room
    new.matrix = _take(&new.room, size * size)
    new.exits, new.pivot = _take(&new.room, size), _take(&new.room, size)
    for r in range(size):
        row = (start + r) * stride + start
        memcpy(new.matrix.value + r * size, level.matrix.value + row, size * sizeof(double))
        memcpy(new.matrix.moved + r * size, level.matrix.moved + row, size * sizeof(double))
    memcpy(new.exits.value, level.exits.value + start, size * sizeof(double))
    memcpy(new.exits.moved, level.exits.moved + start, size * sizeof(double))
    return _eliminate(kind, new, lone)


cdef bint _all_columns(Py_ssize_t n, const double* table, const double* direction, bint single,
                       bint try_weights, double* out, char* work) noexcept nogil:
    """Returns False if a pivot or the chance to reach the root is zero."""
    cdef Task task = prepare(n, table, single, try_weights, work)
    cdef Level* levels = <Level*>(work + (elimination_bytes(n) + 63) // 64 * 64)
    cdef Level* level = levels
    cdef double* room = <double*>(levels + DEPTH)
    cdef Numbers chance
    cdef double* p
    cdef Py_ssize_t depth = 0, d, m, h, low, middle
    cdef double move
    if task.base == -INFINITY:
        return False
    level.low = level.child_low = level.next = 0
    level.high = level.child_high = n
    level.matrix.value, level.exits.value = task.matrix, task.exits
    level.matrix.moved = room
    level.exits.moved = level.matrix.moved + n * n
    p = level.exits.moved + n
    level.room = p + n + 1
    chance = _take(&level.room, n)
    for m in range(n):
        for h in range(n + 1):
            move = direction[m * (n + 1) + h]
            if task.kind == WEIGHTS:
                move *= task.matrix[m * n + h - 1] if h else task.exits[m]
            if h:
                level.matrix.moved[m * n + h - 1] = move
            else:
                level.exits.moved[m] = move
    while depth >= 0:
        level = levels + depth
        low = level.child_low
        if level.child_high - low == 1:
            chance.value[low], chance.moved[low] = zero(task.kind), 0
            for d in range(depth, 0, -1):
                _chances(task.kind, levels + d, chance)
            if not _column(&task, n, low, direction + low * (n + 1), chance, p,
                           out + low * (n + 1)):
                return False
            depth -= 1
        elif level.next == 2:
            depth -= 1
        else:
            middle = low + (level.child_high - low) / 2
            level.next += 1
            if not _descend(task.kind, task.lone, level, low if level.next == 1 else middle,
                            middle if level.next == 1 else level.child_high):
                return False
            depth += 1
    return True


cdef bint arc_derivative(Py_ssize_t n, const double* table, const double* direction, bint single,
                         double* out, char* work) noexcept nogil:
    return some_tree(n, table, single, work) and (
        _all_columns(n, table, direction, single, True, out, work)
        or _all_columns(n, table, direction, single, False, out, work))
