"""The linear assignment problem: shortest augmenting paths on dense rows (Jonker and Volgenant).

Column reduction, reduction transfer and augmenting row reduction assign most rows at the price of
a few scans of the matrix; each of the others is assigned by a shortest path (Dijkstra's search
over the columns).  With fewer rows than columns, prices start from 0 and fall only at columns that
are taken, so that the same conditions prove the optimum.  small.h does the same for
rows of up to 64 columns.
"""

from libc.math cimport INFINITY

from structsolve.plugins.permutation._scans cimport ss_pick_scans, ss_scans


cdef extern from "small.h" nogil:
    ctypedef int (*ss_small_solve)(Py_ssize_t rows, Py_ssize_t cols, const double* cost,
                                   double* v, int* row, int* column) noexcept nogil
    ss_small_solve ss_pick_small()
    enum:
        SS_SMALL

cdef const ss_scans* scans = ss_pick_scans()
cdef ss_small_solve small = ss_pick_small()


cdef inline Py_ssize_t _padded(Py_ssize_t cols) noexcept nogil:
    return (cols + 7) // 8 * 8


cdef Py_ssize_t assignment_bytes(Py_ssize_t rows, Py_ssize_t cols) noexcept nogil:
    cdef Py_ssize_t ld = _padded(cols)
    return (rows * ld + 5 * ld) * <Py_ssize_t>sizeof(double) \
        + (2 * ld + 3 * _padded(rows)) * <Py_ssize_t>sizeof(int)


cdef Assignment assignment_in(Py_ssize_t rows, Py_ssize_t cols, char* work) noexcept nogil:
    cdef Assignment task
    cdef Py_ssize_t ld = _padded(cols)
    task.rows, task.cols, task.ld = rows, cols, ld
    task.cost = <double*>work
    task.v = task.cost + rows * ld
    task.d = task.v + ld
    task.origin = task.d + ld
    task.saved = task.origin + ld
    task.row = <int*>(task.saved + 2 * ld)
    task.passed = task.row + ld
    task.column = task.passed + ld
    task.free = task.column + _padded(rows)
    return task


cdef void load_scores(Assignment* task, const double* scores, Py_ssize_t stride, double sign,
                      const unsigned char* forbidden) noexcept nogil:
    cdef Py_ssize_t i, j, k, count
    cdef double* cost = task.cost
    if task.cols <= SS_SMALL and forbidden == NULL:
        scans.load(task.rows, task.cols, task.ld, scores, stride, sign, cost)
        return
    for j in range(task.ld):
        task.v[j], task.d[j], task.origin[j] = 0, INFINITY, 0
    for i in range(0, task.rows, 4):
        count = min(4, task.rows - i)
        scans.load(count, task.cols, task.ld, scores, stride, sign, cost)
        if forbidden != NULL:
            for k in range(count):
                for j in range(task.cols):
                    if forbidden[j]:
                        cost[k * task.ld + j] = INFINITY
                forbidden += task.cols
        if task.rows == task.cols > SS_SMALL:
            # Column minima, while the rows are in cache.
            scans.lower(count, task.ld, cost, <double>i, task.d, task.origin)
        cost += count * task.ld
        scores += count * stride


cdef bint solve_assignment(Assignment* task) noexcept nogil:
    cdef Py_ssize_t i, n_free
    if task.cols <= SS_SMALL:
        return small(task.rows, task.cols, task.cost, task.v, task.row, task.column)
    for i in range(task.rows):
        task.column[i] = -1
    for i in range(task.ld):
        task.row[i] = -1
    if task.rows == task.cols:
        n_free = _reduce_columns(task)
        if n_free < 0:
            return False
    else:
        n_free = task.rows
        for i in range(n_free):
            task.free[i] = <int>i
    for i in range(2):
        if n_free:
            n_free = _reduce_rows(task, n_free)
            if n_free < 0:
                return False
    for i in range(n_free):
        if not _augment(task, task.free[i]):
            return False
    return True


cdef Py_ssize_t _reduce_columns(Assignment* task) noexcept nogil:
    """Set prices to the least costs of columns; returns the number of free rows, -1: impossible."""
    cdef Py_ssize_t n = task.rows, ld = task.ld, i, j, n_free = 0
    cdef double[2] least
    for i in range(n):
        task.passed[i] = 0      # columns whose least cost is in row i
    for j in range(n - 1, -1, -1):
        if not task.d[j] < INFINITY:
            return -1
        task.v[j] = task.d[j]
        i = <Py_ssize_t>task.origin[j]
        if task.column[i] < 0:
            task.column[i], task.row[j] = <int>j, <int>i
        task.passed[i] += 1
    for i in range(n):
        j = task.column[i]
        if j < 0:
            task.free[n_free] = <int>i
            n_free += 1
        elif task.passed[i] == 1:
            # No other column has its least cost in this row, so the price of its column falls.
            scans.two(ld, task.cost + i * ld, task.v, least)
            if least[1] < INFINITY:
                task.v[j] -= least[1] - least[0]
    return n_free


cdef Py_ssize_t _reduce_rows(Assignment* task, Py_ssize_t n_free) noexcept nogil:
    """Give each free row its best column, whose price falls as far as the second best allows.

    Its previous row becomes free and comes next.  Returns the number of free rows at the end.
    """
    cdef Py_ssize_t ld = task.ld, k = 0, left = 0, j, second, steps = 0, most
    cdef int* free = task.free
    cdef int i, other
    cdef double[2] least
    cdef double price
    cdef bint falls
    # Prices that fall in tiny steps may keep two rows busy at one column for long; a search
    # decides such a case at once.
    most = 2 * n_free + 8
    while k < n_free:
        i = free[k]
        k += 1
        steps += 1
        j = scans.two(ld, task.cost + i * ld, task.v, least)
        if j < 0:
            return -1
        if not least[1] < INFINITY:
            free[left] = i      # one way only: no price is low enough, the search decides
            left += 1
            continue
        price = task.v[j] - (least[1] - least[0])
        falls = price < task.v[j]
        if falls:
            task.v[j] = price
        elif task.row[j] >= 0 and least[1] == least[0]:
            second = _tie(task, i, j, least[0])
            if second >= 0:
                j = second
        other = task.row[j]
        task.column[i], task.row[j] = <int>j, i
        if other >= 0:
            task.column[other] = -1
            if falls and steps < most:
                k -= 1
                free[k] = other
            else:
                free[left] = other
                left += 1
    return left


cdef Py_ssize_t _tie(const Assignment* task, Py_ssize_t i, Py_ssize_t j,
                     double least) noexcept nogil:
    """Another column as good as j for row i, preferably a free one; -1: none."""
    cdef const double* cost = task.cost + i * task.ld
    cdef Py_ssize_t k = scans.equal(task.ld, cost, task.v, least, j + 1), first = k
    while k < task.ld:
        if task.row[k] < 0:
            return k
        k = scans.equal(task.ld, cost, task.v, least, k + 1)
    return first if first < task.ld else -1


cdef bint _augment(Assignment* task, int start) noexcept nogil:
    """Assign row ``start`` along the shortest path to a free column."""
    cdef Py_ssize_t ld = task.ld, j, k, n_passed = 0, n_done = 0, end = -1, step
    cdef double least, nearest, h, length = 0, before = 0
    cdef double* distance = task.saved
    cdef double* price = task.saved + ld
    cdef double* shift = task.origin    # of each row that was scanned
    cdef const double* scanned = task.cost + start * ld
    cdef const double* next
    cdef int i
    for j in range(ld):
        task.d[j] = INFINITY
    shift[0] = 0
    nearest = scans.relax(ld, scanned, task.v, 0, task.d, scanned)
    least = nearest
    while True:
        # All columns of the least distance are passed together; one that is free ends the search.
        if nearest <= least or n_done == n_passed:
            if n_done == n_passed:
                least = nearest if nearest > least else least
            if not least < INFINITY:
                break
            j = scans.reach(ld, task.d, least, 0)
            while j < ld:
                if task.row[j] < 0:
                    end = j
                    break
                task.passed[n_passed] = <int>j
                distance[n_passed], price[n_passed] = task.d[j], task.v[j]
                n_passed += 1
                # It can be neither nearer nor the least again.
                task.v[j], task.d[j] = -INFINITY, INFINITY
                j = scans.reach(ld, task.d, least, j + 1)
            if end >= 0 or n_done == n_passed:
                break
        j = task.passed[n_done]
        scanned = next = task.cost + task.row[j] * ld
        h = scanned[j] - price[n_done] - least
        n_done += 1
        shift[n_done] = h
        if n_done < n_passed:
            next = task.cost + task.row[task.passed[n_done]] * ld
        nearest = scans.relax(ld, scanned, task.v, h, task.d, next)
    if end >= 0:
        length, before = task.d[end], task.v[end]
    for k in range(n_passed):
        # Passed columns are as near as the end, or nearer: their prices fall by the difference.
        h = distance[k] - least
        task.v[task.passed[k]] = price[k] + h if h < 0 else price[k]
    if end < 0:
        return False
    while True:
        # Scans do not note where a distance is from.  It is from the first row that computes the
        # same bits once more, and that row was scanned before its column was passed.
        nearest, step = INFINITY, -1
        for k in range(n_done + 1):
            i = start if k == 0 else task.row[task.passed[k - 1]]
            h = task.cost[i * ld + end] - before - shift[k]
            if h < nearest:
                nearest, step = h, k
                if nearest <= length:
                    break
        if step < 0:
            return False
        i = start if step == 0 else task.row[task.passed[step - 1]]
        task.row[end], task.column[i] = i, <int>end
        if step == 0:
            return True
        n_done = step - 1
        end, length, before = task.passed[n_done], distance[n_done], price[n_done]


cdef double assignment_bound(const Assignment* task) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef double[2] least
    cdef double total = 0
    for j in range(task.cols):
        total += task.v[j]
    for i in range(task.rows):
        scans.two(task.ld, task.cost + i * task.ld, task.v, least)
        total += least[0]
    return total


cdef inline bint _better(double x, double best) noexcept nogil:
    return x > best and x < INFINITY


cdef bint solve_tiny(Py_ssize_t rows, Py_ssize_t cols, const double* scores, Py_ssize_t stride,
                     const unsigned char* forbidden, int* column, double* value) noexcept nogil:
    cdef double best = -INFINITY, x, y
    cdef const double* a = scores
    cdef const double* b = scores + stride
    cdef const double* c = scores + 2 * stride
    cdef Py_ssize_t j
    if rows == 1:
        for j in range(cols):
            if _better(a[j], best) and not (forbidden != NULL and forbidden[j]):
                best = a[j]
                column[0] = <int>j
    elif forbidden != NULL or rows != cols or rows > 3:
        return False
    elif rows == 2:
        x, y = a[0] + b[1], a[1] + b[0]
        if _better(x, best):
            best = x
            column[0], column[1] = 0, 1
        if _better(y, best):
            best = y
            column[0], column[1] = 1, 0
    else:
        for j in range(3):
            # Row 0 takes j; the other two rows take the other two columns, straight or crossed.
            x = a[j] + b[_LEFT[j][0]] + c[_LEFT[j][1]]
            y = a[j] + b[_LEFT[j][1]] + c[_LEFT[j][0]]
            if _better(x, best):
                best = x
                column[0], column[1], column[2] = <int>j, _LEFT[j][0], _LEFT[j][1]
            if _better(y, best):
                best = y
                column[0], column[1], column[2] = <int>j, _LEFT[j][1], _LEFT[j][0]
    value[0] = best
    return best > -INFINITY


cdef int[3][2] _LEFT
_LEFT[0][:] = [1, 2]
_LEFT[1][:] = [0, 2]
_LEFT[2][:] = [0, 1]
