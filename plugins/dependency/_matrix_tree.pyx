"""Sums over all trees (Kirchhoff, Tutte) without subtractions.

A walk goes from each word to a head in proportion to the arc's weight and ends at the root.  The
sum over all trees is the determinant of its Laplacian.  The probability of head h for word m is in
proportion to the weight of the arc times the chance, from h, to reach the root before m (Wilson).
Both result from eliminating one word at a time: arcs into a word are redirected to its heads.
Pivots are sums of the weights that leave a word (Grassmann, Taksar and Heyman), so no digits are
lost for any scores, not even in logs of weights, which are used if weights would underflow.

The marginals of word m need all others eliminated.  Halving the words recursively, each half
after the elimination of the other, shares the work: O(n^3) for all words together.

For one child of the root, arcs from it weigh less by an infinitely large factor.  Then exits to the
root do not count in a pivot, until only one word is left.
"""

from libc.math cimport INFINITY, exp, log
from libc.string cimport memcpy
from structsolve.simd.loops cimport ss_loops

from structsolve.plugins.dependency._semiring cimport (
    LOGS, WEIGHTS, Semiring, fold, log_plus, times, zero,
)

# Spread of the scores of a word's heads up to which weights do not underflow, if no arcs are
# missing; the same over all words together, if some are.
cdef double SPREAD = 300, WHOLE_SPREAD = 600

cdef enum:
    DEPTH = 64

cdef struct Level:
    # Words low .. high without those eliminated to leave the child's low .. high.
    Py_ssize_t low, high, child_low, child_high
    double* matrix      # rows of high - low
    double* exits       # weights of arcs from the root
    double* pivot
    int next


cdef Py_ssize_t elimination_bytes(Py_ssize_t n) noexcept nogil:
    # All levels of halves take less than two full levels, and one column may need a full one.
    cdef Py_ssize_t doubles = n * (n + 2) + 2 * n * (n + 2) + n * n
    return doubles * sizeof(double) + DEPTH * sizeof(Level) + 64


cdef inline double _total(Semiring kind, Py_ssize_t n, const double* x) noexcept nogil:
    cdef Py_ssize_t k
    cdef double total = 0, top = -INFINITY
    if kind == WEIGHTS:
        for k in range(n):
            total += x[k]
        return total
    for k in range(n):
        top = x[k] if x[k] > top else top
    if top == -INFINITY:
        return top
    for k in range(n):
        total += exp(x[k] - top)
    return top + log(total)


cdef inline double _pivot(Semiring kind, Py_ssize_t rest, const double* row, double leave,
                          bint single) noexcept nogil:
    cdef double total = _total(kind, rest, row)
    if single:
        return total
    return total + leave if kind == WEIGHTS else log_plus(total, leave)


cdef bint _eliminate(Semiring kind, Level* level, bint single, double* log_value) noexcept nogil:
    """Eliminate the words outside of the child, so that those left stay neighbours.

    Returns False if a pivot is zero.  Without `log_value` their logs are not summed.
    """
    cdef Py_ssize_t stride = level.high - level.low, k, i, j, first, last
    cdef Py_ssize_t gone = 0, count = stride - (level.child_high - level.child_low)
    cdef double factor, pivot
    cdef double* A = level.matrix
    cdef double* row
    cdef double* to
    for gone in range(count):
        k = turn(level.child_low == level.low, stride, gone, &first, &last)
        row = A + k * stride
        pivot = level.pivot[k] = _pivot(kind, last - first, row + first, level.exits[k], single)
        if pivot == zero(kind):
            return False
        if log_value != NULL:
            log_value[0] += log(pivot) if kind == WEIGHTS else pivot
        if kind == WEIGHTS:
            pivot = 1 / pivot
            for i in range(first, last):
                to = A + i * stride
                factor = to[k] * pivot
                for j in range(first, last):
                    to[j] += factor * row[j]
                level.exits[i] += factor * level.exits[k]
            continue
        for i in range(first, last):
            to = A + i * stride
            if to[k] > -INFINITY:
                factor = to[k] - pivot
                for j in range(first, last):
                    if row[j] > -INFINITY:
                        to[j] = log_plus(to[j], factor + row[j])
                level.exits[i] = log_plus(level.exits[i], factor + level.exits[k])
    return True


cdef void _chances(Semiring kind, const Level* level, double* chance) noexcept nogil:
    """Chances of the words that a level eliminated to reach the root first, from those left."""
    cdef Py_ssize_t stride = level.high - level.low, base = level.low, k, first, last
    cdef Py_ssize_t gone, count = stride - (level.child_high - level.child_low)
    cdef double total
    for gone in range(count - 1, -1, -1):
        k = turn(level.child_low == level.low, stride, gone, &first, &last)
        total = fold(kind, last - first, level.matrix + k * stride + first, chance + base + first)
        if kind == WEIGHTS:
            chance[base + k] = (total + level.exits[k]) / level.pivot[k]
        else:
            chance[base + k] = log_plus(total, level.exits[k]) - level.pivot[k]


cdef void _all_chances(const Level* level, Py_ssize_t n, double* chances) noexcept nogil:
    """The same with weights, for every word of the child as the word to reach before the root.

    `chances` has a row of n for each word that walks.
    """
    cdef Py_ssize_t stride = level.high - level.low, base = level.low, k, j, m, first, last
    cdef Py_ssize_t low = level.child_low, high = level.child_high
    cdef Py_ssize_t gone, count = stride - (high - low)
    cdef double share, inverse
    cdef double* row
    cdef const double* other
    for gone in range(count - 1, -1, -1):
        if low == base:
            k = stride - 1 - gone
            first, last = 0, k
        else:
            k = gone
            first, last = k + 1, stride
        row = chances + (base + k) * n
        inverse = 1 / level.pivot[k]
        share = level.exits[k] * inverse
        for m in range(low, high):
            row[m] = share
        for j in range(first, last):
            share = level.matrix[k * stride + j] * inverse
            other = chances + (base + j) * n
            for m in range(low, high):
                row[m] += share * other[m]


cdef bint _column(Semiring kind, Py_ssize_t n, Py_ssize_t m, const double* matrix,
                  const double* exits, const double* chance, Py_ssize_t stride, double rarest,
                  double* row) noexcept nogil:
    """row <- marginals of the heads of word m: entry 0 the root, entry h word h - 1.

    The chance of head h is at `chance[h * stride]`; logs of shares below `rarest` count 0.
    """
    cdef Py_ssize_t h
    cdef double total, top
    row[0] = exits[m]
    for h in range(n):
        row[h + 1] = times(kind, matrix[m * n + h], chance[h * stride])
    row[m + 1] = zero(kind)
    if kind == LOGS:
        # Back to weights, the largest 1: they sum to one even if large scores leave logs no digits.
        top = -INFINITY
        for h in range(n + 1):
            top = row[h] if row[h] > top else top
        if top == -INFINITY:
            return False
        for h in range(n + 1):
            row[h] = exp(row[h] - top) if row[h] - top >= rarest else 0
    total = _total(WEIGHTS, n + 1, row)
    if total == 0:
        return False
    total = 1 / total
    for h in range(n + 1):
        row[h] *= total
    return True


cdef Task prepare(Py_ssize_t n, const double* table, bint single, bint try_weights,
                  char* work) noexcept nogil:
    # With logs, a large number subtracted from the root's arcs enforces one child.
    cdef Task task
    cdef Py_ssize_t m, h
    cdef double top, low, widest = 0, penalty = 0
    cdef bint missing = False
    cdef const double* row
    task.kind, task.lone, task.base = WEIGHTS, False, 0
    task.least = task.rarest = -INFINITY
    task.matrix = <double*>(work + DEPTH * sizeof(Level))
    task.exits = task.matrix + n * n
    task.chance = task.exits + n
    task.chances = task.chance + n
    task.memory = task.chances + n * n
    for m in range(n):
        row = table + m * (n + 1)
        top, low = -INFINITY, INFINITY
        for h in range(n + 1):
            top = row[h] if row[h] > top else top
            if row[h] == -INFINITY:
                missing |= h != m + 1
            else:
                low = row[h] if row[h] < low else low
        task.base += top
        if top == -INFINITY:
            return task
        if top - low > widest:
            widest = top - low
        task.exits[m] = row[0] - top
        for h in range(n):
            task.matrix[m * n + h] = row[h + 1] - top
    if try_weights and (widest * n <= WHOLE_SPREAD if missing else widest <= SPREAD):
        task.lone = single
        # The exits follow the matrix; the last vector overlaps entries that are written later.
        ss_loops(n).exp_rows(1, task.matrix, n * n + n, n * n + n, 0, task.matrix)
        return task
    task.kind, task.lone = LOGS, False
    if single:
        # A tree with two roots scores less than the worst with one.
        penalty = 64 + 2 * (widest + log(n + 1.0)) * (n if missing else 1)
        for m in range(n):
            task.exits[m] -= penalty
        if missing:
            # Trees of two roots have less than exp(-64) of the share of any tree of one.
            task.rarest, task.least = -0.5 * penalty, task.base - 0.5 * penalty
        task.base += penalty
    return task


cdef bint _descend(const Task* task, Level* levels, Py_ssize_t depth, Py_ssize_t child_low,
                   Py_ssize_t child_high, double* log_value) noexcept nogil:
    """Eliminate the words of a level but for child_low .. child_high, in a copy: the next level."""
    cdef Level* level = levels + depth
    cdef Level* new = level + 1
    cdef Py_ssize_t low = level.child_low, size = level.child_high - low, r
    cdef Py_ssize_t stride = level.high - level.low
    new.low, new.high, new.child_low, new.child_high = low, level.child_high, child_low, child_high
    new.next = 0
    new.matrix = task.memory if depth == 0 else level.pivot + stride
    new.exits = new.matrix + size * size
    new.pivot = new.exits + size
    for r in range(size):
        memcpy(new.matrix + r * size,
               level.matrix + (low - level.low + r) * stride + low - level.low,
               size * sizeof(double))
    memcpy(new.exits, level.exits + low - level.low, size * sizeof(double))
    return _eliminate(task.kind, new, task.lone, log_value)


cdef void _start(const Task* task, Py_ssize_t n, Level* level) noexcept nogil:
    level.low = level.child_low = 0
    level.high = level.child_high = n
    level.matrix, level.exits, level.pivot, level.next = task.matrix, task.exits, NULL, 0


cdef bint _finish(const Task* task, Py_ssize_t n, Py_ssize_t m, const Level* levels,
                  Py_ssize_t depth, double* row) noexcept nogil:
    """Marginals of the only remaining word."""
    cdef Py_ssize_t d
    task.chance[m] = zero(task.kind)
    for d in range(depth, 0, -1):
        _chances(task.kind, levels + d, task.chance)
    return _column(task.kind, n, m, task.matrix, task.exits, task.chance, 1, task.rarest, row)


cdef bint _all_columns(Py_ssize_t n, const double* table, bint single, bint try_weights,
                       double* marginals, double* value, char* work) noexcept nogil:
    """Returns False if a pivot or the chance to reach the root is zero."""
    cdef Level* levels = <Level*>work
    cdef Level* level
    cdef Task task = prepare(n, table, single, try_weights, work)
    cdef double log_value = task.base, leave
    cdef Py_ssize_t depth = 0, low, high, middle, m
    cdef bint known = False
    value[0] = -INFINITY
    if task.base == -INFINITY:
        return False
    _start(&task, n, levels)
    while depth >= 0:
        level = levels + depth
        low, high = level.child_low, level.child_high
        if high - low == 1:
            if not known:
                # All arcs of the last word lead to the root.
                known = True
                leave = level.exits[low - level.low]
                value[0] = log_value + (log(leave) if task.kind == WEIGHTS else leave)
                if value[0] < task.least:
                    return False
            if task.kind == WEIGHTS:
                task.chances[low * n + low] = 0
            elif not _finish(&task, n, low, levels, depth, marginals + low * (n + 1)):
                return False
        elif level.next < 2:
            middle = low + (high - low) / 2
            level.next += 1
            if not _descend(&task, levels, depth, low if level.next == 1 else middle,
                            middle if level.next == 1 else high,
                            NULL if known else &log_value):
                return False
            depth += 1
            continue
        if task.kind == WEIGHTS and depth:
            _all_chances(level, n, task.chances)
        depth -= 1
    if task.kind == WEIGHTS:
        for m in range(n):
            if not _column(WEIGHTS, n, m, task.matrix, task.exits, task.chances + m, n,
                           task.rarest, marginals + m * (n + 1)):
                return False
    return True


cdef bint some_tree(Py_ssize_t n, const double* table, bint single, char* work) noexcept nogil:
    # Whether the arcs reach every word, with one child of the root where `single`.  Sums cannot
    # show it: the factor of one child is lost beside scores beyond 1e16 times their differences.
    cdef int* queue = <int*>work
    cdef int* reached = queue + n
    cdef Py_ssize_t width = n + 1, child, m, head, first, last
    for child in range(n if single else 1):
        if single and table[child * width] == -INFINITY:
            continue
        first = last = 0
        for m in range(n):
            reached[m] = m == child if single else table[m * width] > -INFINITY
            if reached[m]:
                queue[last] = <int>m
                last += 1
        while first < last:
            head = queue[first] + 1
            first += 1
            for m in range(n):
                if not reached[m] and table[m * width + head] > -INFINITY:
                    reached[m] = 1
                    queue[last] = <int>m
                    last += 1
        if last == n:
            return True
    return False


cdef double arc_marginals(Py_ssize_t n, const double* table, bint single, double* marginals,
                          char* work) noexcept nogil:
    cdef double value
    if not some_tree(n, table, single, work):
        return -INFINITY
    if (_all_columns(n, table, single, True, marginals, &value, work)
            or _all_columns(n, table, single, False, marginals, &value, work)):
        return value
    return -INFINITY


cdef bint _one_column(Py_ssize_t n, const double* table, bint single, bint try_weights,
                      Py_ssize_t m, double* row, char* work) noexcept nogil:
    cdef Level* levels = <Level*>work
    cdef Task task = prepare(n, table, single, try_weights, work)
    cdef double log_value = task.base
    cdef Py_ssize_t depth = 0
    if task.base == -INFINITY:
        return False
    _start(&task, n, levels)
    if m < n - 1:
        if not _descend(&task, levels, depth, 0, m + 1, &log_value):
            return False
        depth += 1
    if m > 0:
        if not _descend(&task, levels, depth, m, m + 1, &log_value):
            return False
        depth += 1
    log_value += 0 if task.kind == WEIGHTS else levels[depth].exits[m - levels[depth].low]
    return log_value >= task.least and _finish(&task, n, m, levels, depth, row)


cdef bint draw_tree(Py_ssize_t n, double* table, bint single, const double* uniforms, int* heads,
                    char* work) noexcept nogil:
    # Draw each word's head from its marginals given the heads drawn before.
    cdef double* row = <double*>(work + elimination_bytes(n))
    cdef double below, target
    cdef Py_ssize_t m, h, v, head
    if not some_tree(n, table, single, work):
        return False
    for m in range(n):
        if not (_one_column(n, table, single, True, m, row, work)
                or _one_column(n, table, single, False, m, row, work)):
            return False
        below, target, head = 0, uniforms[m], 0
        for h in range(n + 1):
            if row[h] > 0:
                head = h
                below += row[h]
                if below > target:
                    break
        heads[m] = <int>head
        for h in range(n + 1):
            if h != head:
                table[m * (n + 1) + h] = -INFINITY
        if single and head == 0:
            single = False
            for v in range(n):
                if v != m:
                    table[v * (n + 1)] = -INFINITY
    return True
