"""The best closed set, and the best union of paths in a forest: folding, and a minimum cut.

A node with one parent, all of whose descendants have one parent too, is folded into that parent:
its gain is the best that it and what is below it can add when the parent is on.  In a forest
everything is folded, in O(M).  What is left of a graph, its core, is a maximum closure: the
source side of a minimum cut where arcs of infinite capacity lead from children to parents
(Picard 1976).
"""

import numpy as np

cimport cython
from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy, memset
from structsolve.alignment cimport align
from structsolve.maxflow cimport (
    Network,
    build_network,
    cut_side,
    max_flow,
    maxflow_bytes,
    place_network,
)
from structsolve.operators cimport Oracle

from structsolve.plugins.dag._shape cimport HierarchyShape


# What one solution needs, in the memory that the caller gives.
cdef struct Work:
    double* gain        # (M,) best that a node adds where its parents are on
    double* first       # (M + 1,) unions only: largest gain of a child; the last of a root
    double* second      # (M + 1,) next to largest
    int* best           # (M + 1,) the child of largest gain
    double* saved       # residuals and terminals of a maximum flow
    Network net
    signed char* inside


@cython.final
cdef class SetOracle(Oracle):
    """The best set of a hierarchy: closed, or in a forest also a union of paths to leaves.

    Of equal sets it returns the smallest closed one.  Scores of -inf forbid a label and what is
    below it; k-best leaves such sets out, but for its first answer.

    Parameters
    ----------
    shape : HierarchyShape
        With labels that are sets.
    """

    cdef HierarchyShape shape
    cdef const int* fringe          # nodes that are folded, children first
    cdef const int* core            # the others
    cdef const int* core_at         # place in the core, -1 outside
    cdef Py_ssize_t n_fringe, n_core, n_arcs, solve_bytes
    cdef Network template
    cdef object owners

    def __init__(self, HierarchyShape shape):
        if shape.single or (shape.union and not shape.forest):
            raise ValueError("found labels of another kind, expected sets that are closed")
        self.shape = shape
        self._fold()
        self.has_kbest = True
        self.has_max_marginals = True
        self.has_relaxed = True
        self.solve_bytes = 8 * (3 * shape.M + 8) + 4 * (shape.M + 4) + 64 * 8
        self.solve_bytes += 2 * maxflow_bytes(self.n_core, self.n_arcs) + self.n_core + 128
        self.work_bytes = self.solve_bytes + 4 * shape.M + 64

    def _fold(self):
        cdef HierarchyShape shape = self.shape
        cdef Py_ssize_t M = shape.M, j, k, v
        cdef signed char[::1] keep = np.zeros(M, np.int8)
        cdef int[::1] fringe = np.zeros(M + 1, np.int32), core = np.zeros(M + 1, np.int32)
        cdef int[::1] core_at = np.full(M, -1, np.int32)
        for j in range(M - 1, -1, -1):
            v = shape.order[j]
            if keep[v] or shape.parent[v] == -2:
                keep[v] = 1
                for k in range(shape.up_first[v], shape.up_first[v + 1]):
                    keep[shape.up[k]] = 1
            else:
                fringe[self.n_fringe] = <int>v
                self.n_fringe += 1
        for j in range(M):
            v = shape.order[j]
            if keep[v]:
                core_at[v] = <int>self.n_core
                core[self.n_core] = <int>v
                self.n_core += 1
                self.n_arcs += shape.up_first[v + 1] - shape.up_first[v]
        cdef int[::1] ends = np.zeros(2 * self.n_arcs + 1, np.int32)
        cdef double[::1] capacity = np.zeros(2 * self.n_arcs + 1)
        cdef double[::1] memory = np.zeros(maxflow_bytes(self.n_core, self.n_arcs) // 8 + 2)
        cdef Py_ssize_t m = 0
        for j in range(self.n_core):
            v = core[j]
            for k in range(shape.up_first[v], shape.up_first[v + 1]):
                ends[2 * m], ends[2 * m + 1] = <int>j, core_at[shape.up[k]]
                capacity[2 * m] = INFINITY
                m += 1
        self.template = place_network(self.n_core, self.n_arcs, <char*>&memory[0])
        build_network(&self.template, self.n_arcs, &ends[0], &capacity[0])
        self.fringe, self.core, self.core_at = &fringe[0], &core[0], &core_at[0]
        self.owners = (fringe, core, core_at, memory)

    @property
    def core_size(self):
        """Number of nodes that a minimum cut decides; 0 for forests."""
        return self.n_core

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.faces``."""
        return self.shape.limits(i)

    cdef Work _place(self, char* memory) noexcept nogil:
        cdef Work work
        cdef Py_ssize_t M = self.shape.M, m = self.n_arcs
        work.gain = <double*>align(memory)
        work.first = work.gain + M
        work.second = work.first + M + 1
        # The shape of the network is the same for all; what changes is the caller's.
        work.net = self.template
        work.net.residual = work.second + M + 1
        work.net.terminal = work.net.residual + 2 * m
        work.saved = work.net.terminal + self.n_core
        work.net.work = <int*>(work.saved + 2 * m + self.n_core)
        work.best = work.net.work + 5 * self.n_core
        work.inside = <signed char*>(work.best + M + 1)
        return work

    # -- one solution ----------------------------------------------------------------------------

    cdef void _solve(self, const double* score, int* label, double* worth,
                     char* memory) noexcept nogil:
        """label <- the best set; worth (unless NULL) <- best with a node on less best without.

        Scores of +inf force nodes on.
        """
        cdef Work work = self._place(memory)
        cdef Py_ssize_t j, k, v, p, M = self.shape.M
        cdef double g, q
        memcpy(work.gain, score, M * sizeof(double))
        if self.shape.union:
            for v in range(M + 1):
                work.first[v] = work.second[v] = -INFINITY
                work.best[v] = -1
        for j in range(self.n_fringe):
            v = self.fringe[j]
            p = self.shape.parent[v]
            if self.shape.union:
                # No child adds anything: the least bad one has to be on with its parent.
                if work.best[v] >= 0 and not work.first[v] > 0:
                    work.gain[v] += work.first[v]
                _challenge(&work, p if p >= 0 else M, v)
            g = work.gain[v]
            if g > 0 and p >= 0:
                work.gain[p] += g
        if self.n_core:
            self._cut(&work, label, worth)
        for j in range(self.n_fringe - 1, -1, -1):
            v = self.fringe[j]
            p = self.shape.parent[v]
            g = work.gain[v]
            if p < 0:
                label[v] = g > 0 or self.shape.roots_on or (self.shape.union and work.best[M] == v)
            else:
                label[v] = label[p] and (g > 0 or (self.shape.union and work.best[p] == v))
            if worth == NULL:
                continue
            q = 0
            if self.shape.union:
                k = p if p >= 0 else M
                q = work.second[k] if work.best[k] == v else work.first[k]
                q = q if q < 0 else 0.0
            elif p < 0 and self.shape.roots_on:
                q = -INFINITY
            worth[v] = _worth(g, q, worth[p] if p >= 0 else INFINITY)

    cdef void _cut(self, Work* work, int* label, double* worth) noexcept nogil:
        """The same for the core, of which the fringe's gains are part by now."""
        cdef Network* net = &work.net
        cdef Py_ssize_t j, v, bytes_saved = (2 * self.n_arcs + self.n_core) * sizeof(double)
        cdef double flow, here
        memcpy(net.residual, self.template.residual, 2 * self.n_arcs * sizeof(double))
        for j in range(self.n_core):
            v = self.core[j]
            net.terminal[j] = work.gain[v]
            if self.shape.roots_on and self.shape.parent[v] == -1:
                net.terminal[j] = INFINITY
        flow = max_flow(net)
        if flow == INFINITY:
            # A root that must be on is forbidden: any set is as bad as another.
            for j in range(self.n_core):
                work.inside[j] = self.shape.parent[self.core[j]] == -1
        else:
            cut_side(net, False, work.inside)
        for j in range(self.n_core):
            label[self.core[j]] = work.inside[j]
        if worth == NULL:
            return
        memcpy(work.saved, net.residual, bytes_saved)
        for j in range(self.n_core):
            v = self.core[j]
            if self.shape.roots_on and self.shape.parent[v] == -1:
                worth[v] = INFINITY
                continue
            if flow == INFINITY:
                worth[v] = 0
                continue
            # What more must flow if the node is to be on the other side.
            memcpy(net.residual, work.saved, bytes_saved)
            here = fabs(net.terminal[j])
            net.terminal[j] = -INFINITY if work.inside[j] else INFINITY
            if here < INFINITY:
                here += max_flow(net)
            worth[v] = here if work.inside[j] else -here

    cdef double _value(self, const double* theta, const int* label) noexcept nogil:
        cdef Py_ssize_t v
        cdef double total = 0
        for v in range(self.shape.M):
            if label[v]:
                total += theta[v]
        return total

    # -- the oracle's methods --------------------------------------------------------------------

    cdef int argmax(self, Py_ssize_t i, const double* theta, int* label, double* value,
                    char* work) except -1 nogil:
        self._solve(theta, label, NULL, work)
        value[0] = self._value(theta, label)
        return 0

    cdef int relax(self, Py_ssize_t i, const double* theta, double* mu, int* label,
                   double* value, char* work) except -1 nogil:
        # The polytope is integral: its vertices are the labels.
        cdef Py_ssize_t v
        self.argmax(i, theta, label, value, work)
        memset(mu, 0, self.shape.size * sizeof(double))
        for v in range(self.shape.M):
            mu[v] = label[v]
        return 1

    cdef int max_marginals(self, Py_ssize_t i, const double* theta, double* out,
                           char* work) except -1 nogil:
        # out[v] <- the best score with label v on, less the best with it off.
        memset(out, 0, self.shape.size * sizeof(double))
        self._solve(theta, <int*>align(work + self.solve_bytes), out, work)
        return 0

    cpdef Py_ssize_t kbest_bytes(self, Py_ssize_t k) except -1:
        return self.solve_bytes + 16 * self.shape.M + k * (self.shape.M + 24) + 128

    cdef Py_ssize_t kbest(self, Py_ssize_t i, const double* theta, Py_ssize_t k, int* labels,
                          double* values, char* work) except -1 nogil:
        """By halving (Hamacher and Queyranne 1985): each label found is the best of its part.

        The worths tell the next best label of a part, and a node in which it differs.  The part is
        split there: one half keeps the label, the next best one is the best of the other half.
        """
        cdef Py_ssize_t M = self.shape.M, found = 1, j, t, v
        cdef double* score = <double*>align(work + self.solve_bytes)
        cdef double* worth = score + M
        cdef double* next_value = worth + M
        cdef Py_ssize_t* flip = <Py_ssize_t*>(next_value + k)
        cdef signed char* fixed = <signed char*>(flip + k)     # 1: on, -1: off, 0: free
        cdef int* label = labels
        memset(fixed, 0, M)
        self._look(theta, fixed, labels, score, worth, values, next_value, flip, work)
        while found < k:
            j = 0
            for t in range(1, found):
                if next_value[t] > next_value[j]:
                    j = t
            if next_value[j] == -INFINITY:
                break
            v = flip[j]
            label = labels + j * M
            memcpy(fixed + found * M, fixed + j * M, M)
            fixed[found * M + v] = -1 if label[v] else 1
            fixed[j * M + v] = 1 if label[v] else -1
            self._look(theta, fixed + j * M, label, score, worth, values + j, next_value + j,
                       flip + j, work)
            self._look(theta, fixed + found * M, labels + found * M, score, worth, values + found,
                       next_value + found, flip + found, work)
            found += 1
        return found

    cdef void _look(self, const double* theta, const signed char* fixed, int* label,
                    double* score, double* worth, double* value, double* next_value,
                    Py_ssize_t* flip, char* work) noexcept nogil:
        """The best label of a part, the value of the next best, and where that differs."""
        cdef Py_ssize_t v
        cdef double least = INFINITY
        for v in range(self.shape.M):
            score[v] = theta[v] if fixed[v] == 0 else fixed[v] * INFINITY
        self._solve(score, label, worth, work)
        value[0] = self._value(theta, label)
        flip[0] = -1
        for v in range(self.shape.M):
            if fixed[v] == 0 and fabs(worth[v]) < least:
                least, flip[0] = fabs(worth[v]), v
        next_value[0] = value[0] - least if flip[0] >= 0 else -INFINITY


cdef inline void _challenge(Work* work, Py_ssize_t p, Py_ssize_t v) noexcept nogil:
    # The two largest gains of children.
    cdef double g = work.gain[v]
    if work.best[p] < 0 or g > work.first[p]:
        work.second[p] = work.first[p]
        work.first[p], work.best[p] = g, <int>v
    elif g > work.second[p]:
        work.second[p] = g


cdef inline double _worth(double gain, double others, double above) noexcept nogil:
    """Best with a node on less best with it off.

    `others` is what its siblings have to bear if they are to do without it (0, unless one child
    must be on; -inf where it is the only one), `above` the worth of its parent (inf where it is on
    anyway).
    """
    cdef double own
    if others == -INFINITY:
        return above
    own = gain - others
    if above == INFINITY:
        return own
    above += own if own < 0 else 0.0
    return own if own < above else above
