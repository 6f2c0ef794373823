"""The best trees of a sentence: the oracle and the k best."""

cimport cython
from libc.math cimport INFINITY
from libc.string cimport memcpy, memset
from structsolve.algorithms.candidate_pool cimport keep, take_best
from structsolve.operators cimport KBest, Oracle
from structsolve.part_layout cimport PartLayout
from structsolve.simd.loops cimport ss_loops

from structsolve.plugins.dependency._edmonds cimport arborescence_bytes, best_arborescence
from structsolve.plugins.dependency._eisner cimport Chart, chart_bytes, chart_in, fill, trace
from structsolve.plugins.dependency._semiring cimport BEST
from structsolve.plugins.dependency._shape cimport ArcShape, arc_shape


@cython.final
cdef class BestTree:
    """The tree over the words of a sentence, rooted at an artificial root, of largest score.

    Projective trees by Eisner's algorithm, O(n^3); all trees by Edmonds' in Tarjan's form, O(n^2).

    Parameters
    ----------
    shape : ArcShape
    projective : bool
        Trees without crossing arcs only.
    single_root : bool
        The root has exactly one child.
    """

    cdef ArcShape shape
    cdef bint projective, single
    cdef Py_ssize_t table_bytes, tree_bytes, room_bytes, work_bytes

    def __init__(self, ArcShape shape not None, bint projective, bint single_root):
        cdef Py_ssize_t n = shape.max_words
        self.shape, self.projective, self.single = shape, projective, single_root
        self.table_bytes = n * (n + 1) * sizeof(double) + 64
        self.tree_bytes = (chart_bytes(n) if projective else arborescence_bytes(n)) + 64
        self.tree_bytes -= self.tree_bytes % 64
        self.room_bytes = shape.max_arcs * sizeof(double) if shape.classes > 1 else 0
        self.work_bytes = self.table_bytes + self.tree_bytes + self.room_bytes

    cdef bint solve(self, Py_ssize_t n, const double* table, int* heads, char* work) noexcept nogil:
        # Whether there is a tree.
        cdef Chart chart
        if not self.projective:
            return best_arborescence(n, table, self.single, heads, work)
        chart = chart_in(BEST, n, self.single, work)
        if fill(&chart, table) == -INFINITY:
            return False
        trace(&chart, NULL, heads)
        return True

    cdef double score(self, Py_ssize_t i, const double* theta, const int* label) noexcept nogil:
        cdef Py_ssize_t m
        cdef double total = 0
        for m in range(self.shape.n_words(i)):
            total += theta[self.shape.part(i, m, label[m])]
        return total

    cdef void relate(self, Py_ssize_t i, const double* theta, int* heads) noexcept nogil:
        # Turn heads into labels with the best relation of each arc.
        cdef Py_ssize_t m, K = self.shape.classes, stride = self.shape.stride
        cdef double top
        for m in range(self.shape.n_words(i) if K > 1 else 0):
            heads[m] = <int>(heads[m] * K + ss_loops(stride).first_best(
                K, theta + self.shape.arc(i, m, heads[m]) * stride, &top))

    cdef int best(self, Py_ssize_t i, const double* theta, int* label, double* value,
                  char* work) except -1 nogil:
        cdef Py_ssize_t n = self.shape.n_words(i)
        cdef double* table = <double*>(work + self.tree_bytes)
        cdef double* room = <double*>(work + self.tree_bytes + self.table_bytes)
        self.shape.load_best(i, theta, room, table)
        if not self.solve(n, table, label, work):
            return self.shape.impossible(i)
        self.relate(i, theta, label)
        value[0] = self.score(i, theta, label)
        return 0


@cython.final
cdef class DependencyOracle(Oracle):
    """The tree of largest score; scores of -inf forbid an arc, or a relation of it.

    Parameters
    ----------
    projective, single_root : bool
        The kind of trees allowed.
    layout : PartLayout
        Layout of a dependency space.
    """

    cdef BestTree trees

    def __init__(self, bint projective, bint single_root, PartLayout layout not None):
        super().__init__(layout)
        self.trees = BestTree(arc_shape(layout), projective, single_root)
        self.n_states = self.trees.shape.n_states()
        self.work_bytes = self.trees.work_bytes

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        self.trees.best(i, theta, label, value, work)
        bound[0] = value[0]
        return 0


@cython.final
cdef class DependencyKBest(KBest):
    """The k best trees by Lawler's partition, by O(k n) searches for the best tree.

    Parameters
    ----------
    projective, single_root : bool
    layout : PartLayout
    """

    cdef BestTree trees
    cdef ArcShape shape

    def __init__(self, bint projective, bint single_root, PartLayout layout not None):
        super().__init__(layout)
        self.trees = BestTree(arc_shape(layout), projective, single_root)
        self.shape = self.trees.shape
        self.n_states = self.shape.n_states()
        self.work_bytes = self.trees.work_bytes

    cdef Py_ssize_t candidate_bytes(self, Py_ssize_t n) noexcept nogil:
        # Value, position, label, and what is barred at that position for each head.
        cdef Py_ssize_t size = sizeof(double) + (2 * n + 3) * sizeof(int)
        return size + 7 - (size + 7) % 8

    cpdef Py_ssize_t bytes_for(self, Py_ssize_t k) except -1:
        cdef Py_ssize_t candidates = (k + 2) * self.candidate_bytes(self.shape.max_words)
        return self.work_bytes + self.trees.table_bytes + candidates + 64

    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels,
                          double* values, char* work) except -1 nogil:
        # Lawler's partition: the trees but the answers so far fall into disjoint sets.  A set has
        # the trees that share the labels of all words before `position` with an answer and have
        # none of the barred ones there.  The pool holds the best tree of every set that may still
        # give an answer.  The barred relations of an arc are its best ones: the last is kept.
        cdef Py_ssize_t n = self.shape.n_words(i), count = 0, pool = 0, j, m, first
        cdef Py_ssize_t width = n + 1, position, room = self.candidate_bytes(n), h
        cdef double* table = <double*>(work + self.trees.tree_bytes)
        cdef double* left = <double*>(work + self.work_bytes)
        cdef char* spare
        cdef char* own
        cdef char* candidates = work + self.work_bytes + self.trees.table_bytes
        cdef int* label
        cdef int* new
        cdef bint possible
        self.shape.load_best(i, theta, table + self.trees.table_bytes / sizeof(double), table)
        spare = candidates
        own = candidates + room
        candidates = own + room
        label = self.label_in(spare)
        if not self.trees.solve(n, table, label, work):
            return self.shape.impossible(i)
        self.trees.relate(i, theta, label)
        (<double*>spare)[0] = self.trees.score(i, theta, label)
        self.position_in(spare)[0] = 0
        memset(self.barred_in(spare, n), 0, width * sizeof(int))
        memcpy(candidates, spare, room)
        pool = 1
        while count < k and pool:
            take_best(candidates, room, &pool, own)
            memcpy(labels + count * n, self.label_in(own), n * sizeof(int))
            values[count] = (<double*>own)[0]
            if count and values[count] > values[count - 1]:
                values[count] = values[count - 1]      # equal up to rounding
            count += 1
            if count == k:
                break
            # The sets of trees that differ from this answer first at `position`.
            label = self.label_in(own)
            new = self.label_in(spare)
            memcpy(left, table, n * width * sizeof(double))
            first = self.position_in(own)[0]
            for m in range(first):
                self.fix(i, theta, left, m, label[m])
            for position in range(first, n):
                if position > first:
                    self.fix(i, theta, left, position - 1, label[position - 1])
                    memset(self.barred_in(own, n), 0, width * sizeof(int))
                h = self.shape.head(i, label[position])
                self.barred_in(own, n)[h] = 1 + <int>(label[position] - h * self.shape.classes)
                possible = False
                for h in range(width):
                    if self.barred_in(own, n)[h]:
                        j = self.next_of(i, theta, position, h, self.barred_in(own, n)[h])
                        left[position * width + h] = -INFINITY if j < 0 else theta[j]
                    possible |= left[position * width + h] > -INFINITY
                possible = possible and self.trees.solve(n, left, new, work)
                memcpy(left + position * width, table + position * width, width * sizeof(double))
                if not possible:
                    continue
                h = new[position]
                self.trees.relate(i, theta, new)
                if self.shape.classes > 1:
                    memcpy(new, label, position * sizeof(int))
                    if self.barred_in(own, n)[h]:
                        j = self.next_of(i, theta, position, h, self.barred_in(own, n)[h])
                        new[position] = <int>(h * self.shape.classes + j % self.shape.stride)
                (<double*>spare)[0] = self.trees.score(i, theta, new)
                self.position_in(spare)[0] = <int>position
                memcpy(self.barred_in(spare, n), self.barred_in(own, n), width * sizeof(int))
                keep(candidates, room, &pool, k - count, spare)
        return count

    cdef int* position_in(self, char* candidate) noexcept nogil:
        return <int*>(candidate + sizeof(double))

    cdef int* label_in(self, char* candidate) noexcept nogil:
        return self.position_in(candidate) + 2

    cdef int* barred_in(self, char* candidate, Py_ssize_t n) noexcept nogil:
        # Per head: 0, or 1 + the relation of the arc that was barred last.
        return self.label_in(candidate) + n

    cdef Py_ssize_t next_of(self, Py_ssize_t i, const double* theta, Py_ssize_t m, Py_ssize_t head,
                            Py_ssize_t barred) noexcept nogil:
        # The part of the best relation of an arc after those barred, in the order of first_best().
        cdef Py_ssize_t c, best = -1, first = self.shape.arc(i, m, head) * self.shape.stride
        cdef double last = theta[first + barred - 1]
        for c in range(self.shape.classes):
            if theta[first + c] < last or (theta[first + c] == last and c >= barred):
                if best < 0 or theta[first + c] > theta[best]:
                    best = first + c
        return best if best >= 0 and theta[best] >= -1e300 else -1

    cdef void fix(self, Py_ssize_t i, const double* theta, double* table, Py_ssize_t m,
                  Py_ssize_t label) noexcept nogil:
        cdef Py_ssize_t h, n = self.shape.n_words(i), head = self.shape.head(i, label)
        for h in range(n + 1):
            table[m * (n + 1) + h] = -INFINITY
        table[m * (n + 1) + head] = theta[self.shape.part(i, m, label)]
