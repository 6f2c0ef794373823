"""The best closed set, and the best union of paths in a forest: by folding and a minimum cut.

A node with one parent, all of whose descendants have one parent too, is folded into that parent:
its gain is the best that it and its descendants can add when the parent is on.  In a forest all
nodes are folded, in O(M).  The nodes left in other graphs form a maximum closure problem: the
source side of a minimum cut (``_closure``).
"""

import numpy as np

cimport cython
from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy, memset
from structsolve.utils.alignment cimport align
from structsolve.operators cimport KBest, MaxMarginals, Oracle
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.dag._closure cimport ClosureGraph
from structsolve.plugins.dag._shape cimport HierarchyShape


cdef extern from *:
    """
    /* The number if on is 1, and 0 if on is 0, also for infinite numbers.  No branch: which
       nodes are on cannot be predicted. */
    static inline double kept(double number, int on) {
        union { double number; unsigned long long bits; } both;
        both.number = number;
        both.bits &= -(unsigned long long)on;
        return both.number;
    }
    """
    double kept(double number, int on) noexcept nogil


# Arrays of one solution, in the caller's memory.  Nodes are renumbered: folded ones, children
# first, then those left, and last a root above all roots.
cdef struct Work:
    double* gain        # (M + 1,) best that a node adds where its parents are on
    double* worth       # (M + 1,) best with a node on minus best with it off
    double* first       # (M + 1,) unions only: largest gain of a child
    double* second      # (M + 1,) second largest
    int* best           # (M + 1,) the child of largest gain
    signed char* on     # (M + 1,)
    char* closure       # memory of the closure


@cython.final
cdef class FoldedSets:
    """A hierarchy folded once, to find its best set for any scores.

    Ties go to the smallest closed set.

    Parameters
    ----------
    shape : HierarchyShape
        Its labels are sets: closed, or in a forest also unions of paths to leaves.
    """

    cdef HierarchyShape shape
    cdef const int* column          # (M,) of the nodes in their new order
    cdef const int* above           # (n_folded,) parents, in the new numbers
    cdef const int* root            # (n_roots,) roots
    cdef Py_ssize_t n_folded, n_left, work_bytes
    cdef ClosureGraph closure
    cdef object owners

    def __init__(self, HierarchyShape shape not None):
        if shape.single or (shape.union and not shape.forest):
            raise ValueError("found labels of another kind, expected sets that are closed")
        self.shape = shape
        self._fold()
        self.work_bytes = (4 * 8 + 4 + 1) * (shape.M + 1) + 64 * 4 + self.closure.work_bytes

    def _fold(self):
        cdef HierarchyShape shape = self.shape
        cdef Py_ssize_t M = shape.M, j, k, v
        cdef signed char[::1] keep = np.zeros(M, np.int8)
        cdef int[::1] column = np.zeros(M, np.int32), place = np.zeros(M, np.int32)
        cdef int[::1] above = np.full(M, M, np.int32)
        cdef int[::1] root = np.zeros(max(shape.n_roots, 1), np.int32)
        for j in range(M - 1, -1, -1):
            v = shape.order[j]
            if keep[v] or shape.parent[v] == -2:
                keep[v] = 1
                for k in range(shape.up_first[v], shape.up_first[v + 1]):
                    keep[shape.up[k]] = 1
            else:
                place[v] = <int>self.n_folded
                column[self.n_folded] = <int>v
                self.n_folded += 1
        for j in range(M):
            v = shape.order[j]
            if keep[v]:
                place[v] = <int>(self.n_folded + self.n_left)
                column[place[v]] = <int>v
                self.n_left += 1
        for j in range(self.n_folded):
            if shape.parent[column[j]] >= 0:
                above[j] = place[shape.parent[column[j]]]
        for j in range(shape.n_roots):
            root[j] = place[shape.roots[j]]
        self.column, self.above, self.root = &column[0], &above[0], &root[0]
        self.owners = (column, above, root)
        parents, children = [], []
        for j in range(self.n_left):
            v = column[self.n_folded + j]
            for k in range(shape.up_first[v], shape.up_first[v + 1]):
                parents.append(place[shape.up[k]] - self.n_folded)
                children.append(j)
        self.closure = ClosureGraph(self.n_left, np.array(children, np.int32),
                                    np.array(parents, np.int32))

    cdef Work _place(self, char* memory) noexcept nogil:
        cdef Work work
        cdef Py_ssize_t M = self.shape.M
        work.gain = <double*>align(memory)
        work.worth = work.gain + M + 1
        work.first = work.worth + M + 1
        work.second = work.first + M + 1
        work.best = <int*>(work.second + M + 1)
        work.on = <signed char*>(work.best + M + 1)
        work.closure = align(work.on + M + 1)
        return work

    # -- one solution ----------------------------------------------------------------------------

    cdef void solve(self, const double* score, int* label, double* worth,
                     char* memory) noexcept nogil:
        """label <- the best set; worth (unless NULL) <- best with a node on minus best without.

        Scores of +inf force nodes on.
        """
        cdef Work work = self._place(memory)
        cdef Py_ssize_t M = self.shape.M, v
        cdef double* gain = work.gain
        for v in range(M):
            gain[v] = score[self.column[v]]
        gain[M] = 0
        if self.shape.union:
            self._gather_unions(&work)
        else:
            for v in range(self.n_folded):
                gain[self.above[v]] += kept(gain[v], gain[v] > 0)
            if self.shape.roots_on:
                for v in range(self.shape.n_roots):
                    gain[self.root[v]] = INFINITY
            if self.n_left and worth == NULL:
                self.closure.best(gain + self.n_folded, work.on + self.n_folded, work.closure)
            elif self.n_left:
                self.closure.worths(gain + self.n_folded, work.on + self.n_folded,
                                 work.worth + self.n_folded, work.closure)
        work.on[M] = 1
        for v in range(self.n_folded - 1, -1, -1):
            work.on[v] = work.on[self.above[v]] & (gain[v] > 0)
            if self.shape.union and work.best[self.above[v]] == v:
                work.on[v] = work.on[self.above[v]]
        for v in range(M):
            label[self.column[v]] = work.on[v]
        if worth == NULL:
            return
        work.worth[M] = INFINITY
        for v in range(self.n_folded - 1, -1, -1):
            work.worth[v] = _worth(gain[v], _others(&work, self.above[v], v)
                                   if self.shape.union else 0.0, work.worth[self.above[v]])
        for v in range(M):
            worth[self.column[v]] = work.worth[v]

    cdef void _gather_unions(self, Work* work) noexcept nogil:
        """Gains if each node that is on must have a child on, the least bad one if none gains."""
        cdef Py_ssize_t v, p
        cdef double g
        for v in range(self.shape.M + 1):
            work.first[v] = work.second[v] = -INFINITY
            work.best[v] = -1
        for v in range(self.n_folded):
            if work.best[v] >= 0 and not work.first[v] > 0:
                work.gain[v] += work.first[v]
            g, p = work.gain[v], self.above[v]
            work.gain[p] += kept(g, g > 0)
            if work.best[p] < 0 or g > work.first[p]:
                work.second[p] = work.first[p]
                work.first[p], work.best[p] = g, <int>v
            elif g > work.second[p]:
                work.second[p] = g

    cdef double value(self, const double* theta, const int* label) noexcept nogil:
        cdef Py_ssize_t v
        cdef double total = 0
        for v in range(self.shape.M):
            total += kept(theta[v], label[v])
        return total


@cython.final
cdef class SetOracle(Oracle):
    """The best set of a hierarchy: closed, or in a forest also a union of paths to leaves.

    Ties go to the smallest closed set.  Scores of -inf forbid a label and its
    descendants.

    Parameters
    ----------
    sets : FoldedSets
    layout : PartLayout
    """

    cdef FoldedSets sets

    def __init__(self, FoldedSets sets not None, PartLayout layout not None):
        super().__init__(layout)
        self.sets = sets
        self.n_states = 2
        self.work_bytes = sets.work_bytes

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    double* bound, char* work) except -1 nogil:
        self.sets.solve(theta, label, NULL, work)
        value[0] = bound[0] = self.sets.value(theta, label)
        return 0


@cython.final
cdef class SetMaxMarginals(MaxMarginals):
    """For each label, the best score with it on minus the best score with it off.

    Parameters
    ----------
    sets : FoldedSets
    layout : PartLayout
    """

    cdef FoldedSets sets

    def __init__(self, FoldedSets sets not None, PartLayout layout not None):
        super().__init__(layout)
        self.sets = sets
        self.work_bytes = sets.work_bytes + 4 * sets.shape.M + 64

    cdef int max_marginals(self, Py_ssize_t i, const double* theta, double* out,
                           char* work) except -1 nogil:
        memset(out, 0, self.sets.shape.size * sizeof(double))
        self.sets.solve(theta, <int*>align(work + self.sets.work_bytes), out, work)
        return 0


@cython.final
cdef class SetKBest(KBest):
    """The k best sets by halving (Hamacher and Queyranne 1985): each is the best of its part.

    The worths give the next best label of a part, and a node in which it differs.  The part is
    split there: one half keeps the label, the best of the other half is the next best label.  Sets
    with a score of -inf are left out, except as the first answer.

    Parameters
    ----------
    sets : FoldedSets
    layout : PartLayout
    """

    cdef FoldedSets sets

    def __init__(self, FoldedSets sets not None, PartLayout layout not None):
        super().__init__(layout)
        self.sets = sets
        self.n_states = 2
        self.work_bytes = sets.work_bytes

    @property
    def worth(self):
        """The k up to which this beats a linear program; each label costs two cuts per node."""
        return 64 if self.sets.n_left <= 12 else 0

    cpdef Py_ssize_t bytes_for(self, Py_ssize_t k) except -1:
        cdef Py_ssize_t M = self.sets.shape.M
        return self.work_bytes + 16 * M + k * (M + 24) + 128

    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels,
                          double* values, char* work) except -1 nogil:
        cdef Py_ssize_t M = self.sets.shape.M, count = 1, j, t, v
        cdef double* score = <double*>align(work + self.sets.work_bytes)
        cdef double* worth = score + M
        cdef double* next_value = worth + M
        cdef Py_ssize_t* flip = <Py_ssize_t*>(next_value + k)
        cdef signed char* fixed = <signed char*>(flip + k)     # 1: on, -1: off, 0: free
        cdef int* label = labels
        memset(fixed, 0, M)
        self._solve_part(theta, fixed, labels, score, worth, values, next_value, flip, work)
        while count < k:
            j = 0
            for t in range(1, count):
                if next_value[t] > next_value[j]:
                    j = t
            if next_value[j] == -INFINITY:
                break
            v = flip[j]
            label = labels + j * M
            memcpy(fixed + count * M, fixed + j * M, M)
            fixed[count * M + v] = -1 if label[v] else 1
            fixed[j * M + v] = 1 if label[v] else -1
            self._solve_part(theta, fixed + j * M, label, score, worth, values + j,
                             next_value + j, flip + j, work)
            self._solve_part(theta, fixed + count * M, labels + count * M, score, worth,
                             values + count, next_value + count, flip + count, work)
            count += 1
        return count

    cdef void _solve_part(self, const double* theta, const signed char* fixed, int* label,
                          double* score, double* worth, double* value, double* next_value,
                          Py_ssize_t* flip, char* work) noexcept nogil:
        """The best label of a part, the value of the next best, and a node where they differ."""
        cdef Py_ssize_t v
        cdef double least = INFINITY
        for v in range(self.sets.shape.M):
            score[v] = theta[v] if fixed[v] == 0 else fixed[v] * INFINITY
        self.sets.solve(score, label, worth, work)
        value[0] = self.sets.value(theta, label)
        flip[0] = -1
        for v in range(self.sets.shape.M):
            if fixed[v] == 0 and fabs(worth[v]) < least:
                least, flip[0] = fabs(worth[v]), v
        next_value[0] = value[0] - least if flip[0] >= 0 else -INFINITY


cdef inline double _others(const Work* work, Py_ssize_t p, Py_ssize_t v) noexcept nogil:
    # Loss of the siblings of v if one of them must be on in place of v.
    cdef double largest = work.second[p] if work.best[p] == v else work.first[p]
    return largest if largest < 0 else 0.0


cdef inline double _worth(double gain, double others, double above) noexcept nogil:
    """Return the best value with a node on minus the best value with it off.

    `others` is the loss of its siblings without it (-inf if it has none), `above` the
    worth of its parent (inf if the parent is always on).
    """
    cdef double own
    if others == -INFINITY:
        return above
    own = gain - others
    if above == INFINITY:
        return own
    above += own if own < 0 else 0.0
    return own if own < above else above
