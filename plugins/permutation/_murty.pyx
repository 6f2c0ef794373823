"""The k best assignments (Murty 1968), and the best one with each pair.

The assignments without the answers so far fall into disjoint sets.  A set has the assignments that
agree with an answer in the rows before one, and take none of the barred columns there.  Its best
one is a shortest augmenting path away from the answer, whose prices prove it.
"""

cimport cython
from libc.math cimport INFINITY
from libc.string cimport memcpy, memset
from structsolve.algorithms.lawler_heap cimport Candidate, pop, push
from structsolve.operators cimport KBest, MaxMarginals
from structsolve.part_layout cimport PartLayout
from structsolve.utils.alignment cimport align

from structsolve.plugins.permutation._jonker_volgenant cimport (
    Assignment, assignment_bytes, assignment_in, load_scores, solve_assignment, solve_tiny,
)
from structsolve.plugins.permutation._shape cimport PairShape, no_assignment, pair_shape


cdef struct Walk:
    # Searches in one problem.  Columns without a row are held by rows of zeros, of which one
    # stands for all: it is scanned at the first such column that a search passes.
    Assignment task
    double* own         # the first row of a search, barred columns infinite
    double* zeros
    int* via            # the row before each column on its path, -1: the row of zeros
    int* open           # columns that are not yet passed
    Py_ssize_t n_open, n_passed
    int idle            # the column at which the row of zeros was scanned, -1 if it was not


cdef Py_ssize_t walk_bytes(Py_ssize_t rows, Py_ssize_t cols) noexcept nogil:
    return assignment_bytes(rows, cols) + (cols + 8) * (2 * sizeof(double) + 2 * sizeof(int)) + 256


cdef Walk walk_in(Py_ssize_t rows, Py_ssize_t cols, char* work) noexcept nogil:
    cdef Walk walk
    walk.task = assignment_in(rows, cols, work)
    walk.own = <double*>align(work + assignment_bytes(rows, cols))
    walk.zeros = walk.own + walk.task.ld
    walk.via = <int*>(walk.zeros + walk.task.ld)
    walk.open = walk.via + walk.task.ld
    memset(walk.zeros, 0, walk.task.ld * sizeof(double))
    return walk


cdef void hold(Walk* walk, const int* column) noexcept nogil:
    # task.row <- the rows that have the columns, where rows have `column`.
    cdef Py_ssize_t j
    for j in range(walk.task.cols):
        walk.task.row[j] = -1
    for j in range(walk.task.rows):
        walk.task.row[column[j]] = <int>j


cdef void start(Walk* walk, Py_ssize_t first) noexcept nogil:
    # Columns of rows before `first` stay where they are.
    cdef Py_ssize_t j
    walk.n_open = walk.n_passed = 0
    walk.idle = -1
    for j in range(walk.task.cols):
        walk.task.d[j] = INFINITY
        if walk.task.row[j] < 0 or walk.task.row[j] >= first:
            walk.open[walk.n_open] = <int>j
            walk.n_open += 1


cdef void pass_free(Walk* walk, double least) noexcept nogil:
    # All columns that no row has are as near as the first of them, and lead nowhere else.
    cdef Py_ssize_t t, left = 0
    cdef int j
    for t in range(walk.n_open):
        j = walk.open[t]
        if walk.task.row[j] >= 0:
            walk.open[left] = j
            left += 1
        else:
            walk.task.d[j] = least
    walk.n_open = left


cdef double search(Walk* walk, const double* v, const int* column, const double* scanned,
                   double base, int source, int end, double most) noexcept nogil:
    """Shortest path over reduced costs, Dijkstra's; ``task.d``, ``via`` and ``passed`` hold it.

    It begins with the row of costs ``scanned`` and ends at column ``end`` (-1: when all are
    passed).  Returns the length, infinite if there is no path shorter than ``most``.
    """
    cdef Py_ssize_t t, pick, ld = walk.task.ld
    cdef double* d = walk.task.d
    cdef double x, least
    cdef int j, i
    while True:
        least, pick = INFINITY, -1
        for t in range(walk.n_open):
            j = walk.open[t]
            x = base + (scanned[j] - v[j])
            if x < d[j]:
                d[j], walk.via[j] = x, source
            if d[j] < least:
                least, pick = d[j], t
        if pick < 0 or not least < most:
            return INFINITY
        j = walk.open[pick]
        if j == end:
            return least
        walk.n_open -= 1
        walk.open[pick] = walk.open[walk.n_open]
        walk.task.passed[walk.n_passed] = j
        walk.n_passed += 1
        i = walk.task.row[j]
        if i >= 0:
            scanned, source = walk.task.cost + i * ld, i
            base = least - (scanned[column[i]] - v[column[i]])
        else:
            walk.idle = j
            scanned, source, base = walk.zeros, -1, least
            pass_free(walk, least)


cdef struct Answers:
    # State of each answer, and sets still to search.
    Walk walk
    int* labels
    double* values
    double* v           # prices, a row of `ld` each
    unsigned char* barred   # columns that its set leaves out in row `first`
    int* first
    Candidate* sets     # `path`: an answer; `v`: the first row in which they differ from it
    Py_ssize_t n_sets
    double* seen        # heap: the least of the k best values so far
    Py_ssize_t n_seen, k


cdef inline void note(Answers* answers, double value) noexcept nogil:
    # Add the value of one more label.
    cdef double* heap = answers.seen
    cdef Py_ssize_t j, down
    if answers.n_seen < answers.k:
        j = answers.n_seen
        answers.n_seen += 1
        while j and heap[(j - 1) // 2] > value:
            heap[j] = heap[(j - 1) // 2]
            j = (j - 1) // 2
        heap[j] = value
    elif value > heap[0]:
        j, down = 0, 1
        while down < answers.k:
            if down + 1 < answers.k and heap[down + 1] < heap[down]:
                down += 1
            if heap[down] >= value:
                break
            heap[j] = heap[down]
            j, down = down, 2 * down + 1
        heap[j] = value


cdef double differ(Answers* answers, Py_ssize_t a, Py_ssize_t r, double most) noexcept nogil:
    # Score of answer a less that of the best label that differs from it first in row r.
    cdef Walk* walk = &answers.walk
    cdef Py_ssize_t ld = walk.task.ld, cols = walk.task.cols, j
    cdef const int* column = answers.labels + a * walk.task.rows
    cdef const double* v = answers.v + a * ld
    cdef const unsigned char* barred = answers.barred + a * cols
    cdef int end = column[r]
    cdef double least
    memcpy(walk.own, walk.task.cost + r * ld, ld * sizeof(double))
    least = walk.own[end] - v[end]
    if r == answers.first[a]:
        for j in range(cols):
            if barred[j]:
                walk.own[j] = INFINITY
    walk.own[end] = INFINITY
    start(walk, r)
    return search(walk, v, column, walk.own, -least, <int>r, end, most)


cdef void split(Answers* answers, Py_ssize_t a) noexcept nogil:
    # The sets of labels that differ from answer a, by the first differing row.
    cdef Candidate item
    cdef Py_ssize_t r, rows = answers.walk.task.rows
    cdef double most = INFINITY, loss
    hold(&answers.walk, answers.labels + a * rows)
    item.path, item.s = <int>a, 0
    for r in range(answers.first[a], rows):
        if answers.n_seen == answers.k:
            most = answers.values[a] - answers.seen[0]
        loss = differ(answers, a, r, most)
        if loss < INFINITY:
            item.value, item.v = answers.values[a] - loss, <int>r
            push(answers.sets, &answers.n_sets, item)
            note(answers, item.value)


cdef bint take(Answers* answers, const Candidate* item, Py_ssize_t new) noexcept nogil:
    # Answer `new` <- the best label of a set, with prices that prove it.
    cdef Walk* walk = &answers.walk
    cdef Py_ssize_t rows = walk.task.rows, cols = walk.task.cols, ld = walk.task.ld, t
    cdef Py_ssize_t a = item.path
    cdef int* label = answers.labels + new * rows
    cdef double* v = answers.v + new * ld
    cdef double* d = walk.task.d
    cdef unsigned char* barred = answers.barred + new * cols
    cdef double length, shift = 0
    cdef int j, i, before
    hold(walk, answers.labels + a * rows)
    length = differ(answers, a, item.v, INFINITY)
    if not length < INFINITY:
        return False
    memcpy(label, answers.labels + a * rows, rows * sizeof(int))
    memcpy(v, answers.v + a * ld, ld * sizeof(double))
    if item.v == answers.first[a]:
        memcpy(barred, answers.barred + a * cols, cols)
    else:
        memset(barred, 0, cols)
    barred[label[item.v]] = 1
    answers.first[new] = item.v
    # Columns that were passed are nearer than the end: their prices fall by the difference.
    for t in range(walk.n_passed):
        j = walk.task.passed[t]
        v[j] += min(d[j] - length, 0)
    if walk.idle >= 0:
        shift = v[walk.idle]
    # Follow the path back.
    j = label[item.v]
    while True:
        i = walk.via[j]
        if i < 0:
            walk.task.row[j] = -1
            j = walk.idle
            continue
        before = label[i]
        label[i], walk.task.row[j] = j, i
        if i == item.v:
            break
        j = before
    # Free columns cost 0.
    for t in range(cols):
        v[t] = v[t] - shift if walk.task.row[t] >= 0 else 0
    return True


cdef double _total(const double* theta, Py_ssize_t stride, const int* label,
                   Py_ssize_t rows) noexcept nogil:
    cdef double total = 0
    cdef Py_ssize_t r
    for r in range(rows):
        total += theta[r * stride + label[r]]
    return total


cdef bint _solve(Assignment* task, const double* theta, Py_ssize_t stride,
                 const unsigned char* forbidden) noexcept nogil:
    # Columns and prices; of equally good assignments the columns of that which the oracle takes.
    cdef double value
    load_scores(task, theta, stride, -1, forbidden)
    if not solve_assignment(task):
        return False
    if task.rows == 1 or task.cols <= 3:
        solve_tiny(task.rows, task.cols, theta, stride, forbidden, task.column, &value)
    return True


@cython.final
cdef class AssignmentKBest(KBest):
    """The k best assignments, best first; scores of -inf forbid a pair.

    Each answer costs at most one shortest augmenting path per row.

    Parameters
    ----------
    layout : PartLayout
        Layout of rankings or matchings.
    """

    cdef PairShape shape

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.shape = pair_shape(layout)
        self.n_states = self.shape.max_cols
        self.work_bytes = self.bytes_for(1)

    cdef Py_ssize_t at_most(self, Py_ssize_t k) noexcept nogil:
        # At most the number of assignments of the largest example.
        cdef Py_ssize_t r, count = 1
        for r in range(self.shape.max_rows):
            count *= self.shape.max_cols - r
            if count >= k:
                return k
        return count

    cpdef Py_ssize_t bytes_for(self, Py_ssize_t k) except -1:
        cdef Py_ssize_t rows = self.shape.max_rows, cols = self.shape.max_cols
        k = self.at_most(k)
        return (walk_bytes(rows, cols) + k * (8 * (cols + 8) + cols + 12)
                + k * rows * <Py_ssize_t>sizeof(Candidate) + 512)

    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels,
                          double* values, char* work) except -1 nogil:
        cdef Py_ssize_t rows = self.shape.n_rows(i), cols = self.shape.n_cols(i)
        cdef Py_ssize_t stride = self.shape.stride(i), count = 1
        cdef Answers answers
        cdef Candidate item
        k = self.at_most(k)
        answers.walk = walk_in(rows, cols, work)
        if not _solve(&answers.walk.task, theta, stride, self.shape.forbidden(i)):
            return no_assignment(i)
        answers.labels, answers.values, answers.k = labels, values, k
        answers.v = <double*>align(work + walk_bytes(rows, cols))
        answers.seen = answers.v + k * answers.walk.task.ld
        answers.sets = <Candidate*>(answers.seen + k)
        answers.first = <int*>(answers.sets + k * rows)
        answers.barred = <unsigned char*>(answers.first + k)
        answers.n_sets = answers.n_seen = 0
        memcpy(labels, answers.walk.task.column, rows * sizeof(int))
        memcpy(answers.v, answers.walk.task.v, answers.walk.task.ld * sizeof(double))
        memset(answers.barred, 0, cols)
        answers.first[0] = 0
        values[0] = _total(theta, stride, labels, rows)
        note(&answers, values[0])
        while count < k:
            split(&answers, count - 1)
            if not answers.n_sets:
                break
            item = pop(answers.sets, &answers.n_sets)
            if not take(&answers, &item, count):
                break
            values[count] = min(_total(theta, stride, labels + count * rows, rows),
                                values[count - 1])      # equal up to rounding
            count += 1
        return count


@cython.final
cdef class AssignmentMaxMarginals(MaxMarginals):
    """The best score of an assignment with each pair, -inf if there is none.

    They have theta's layout: one shortest path tree per row finds them all.

    Parameters
    ----------
    layout : PartLayout
        Layout of rankings or matchings.
    """

    cdef PairShape shape

    def __init__(self, PartLayout layout not None):
        super().__init__(layout)
        self.shape = pair_shape(layout)
        self.work_bytes = walk_bytes(self.shape.max_rows, self.shape.max_cols)

    cdef int max_marginals(self, Py_ssize_t i, const double* theta, double* out,
                           char* work) except -1 nogil:
        cdef Py_ssize_t rows = self.shape.n_rows(i), cols = self.shape.n_cols(i)
        cdef Py_ssize_t stride = self.shape.stride(i), r, c, source
        cdef Walk walk = walk_in(rows, cols, work)
        cdef const int* column = walk.task.column
        cdef const double* cost
        cdef const double* v = walk.task.v
        cdef double best, least, base
        if not _solve(&walk.task, theta, stride, self.shape.forbidden(i)):
            return no_assignment(i)
        best = _total(theta, stride, column, rows)
        hold(&walk, column)
        for r in range(rows):
            for c in range(cols, stride):
                out[r * stride + c] = 0
        # The row that has the column leaves it: path from it to the column that row r leaves.
        for source in range(-1 if cols > rows else 0, rows):
            start(&walk, 0)
            cost, base = walk.zeros, 0
            if source >= 0:
                cost = walk.task.cost + source * walk.task.ld
                base = v[column[source]] - cost[column[source]]
            search(&walk, v, column, cost, base, <int>source, -1, INFINITY)
            for r in range(rows):
                cost = walk.task.cost + r * walk.task.ld
                least = cost[column[r]] - v[column[r]]
                for c in range(cols):
                    if walk.task.row[c] == source:
                        out[r * stride + c] = best - (cost[c] - v[c] - least
                                                      + walk.task.d[column[r]])
        for r in range(rows):
            out[r * stride + column[r]] = best
        return 0
