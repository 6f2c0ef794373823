"""The point of the hull of a hierarchy's closed sets that is nearest to the scores.

A point of the hull has numbers from 0 to 1, none above those of its parents; the nodes above a
threshold t are the best closed set of the scores less t.  So nodes are divided: at 0 by the oracle,
then into connected groups, and each of these at its mean, until no part of a group gains by leaving
it (isotonic regression by partitioning; Spouge, Wan, Wilbur 2003).
"""

cimport cython
from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy, memset
from structsolve.utils.alignment cimport align
from structsolve.algorithms.minimum_cut cimport (
    Cut, CutGraph, build_cut_graph, cut_bytes, cut_graph_bytes, cut_side, place_cut, solve_cut,
)
from structsolve.algorithms.simplex_projection cimport square_slope, square_term
from structsolve.operators cimport Oracle, Projection
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.dag._shape cimport HierarchyShape, no_marginals

# Gains below this share of a group's distances from its mean are rounding.
cdef double ROUNDING = 1e-13


# Nodes first .. last - 1 of `members` have numbers from low to high.
cdef struct Group:
    int first, last
    bint connected
    double low, high

cdef struct Work:
    double* score       # (size,) scores less a threshold; or gains of a group
    int* label          # (M + 1,) answers of the oracle
    int* members        # (M,) undecided nodes by groups, in each parents first
    int* moved          # (M,) members in another order
    int* leader         # (M,) of each place a smaller one in the same group; counts of nodes
    int* place          # (M,) of each node in `members`; -1: decided
    signed char* on     # (M,) of a group
    Group* groups       # (M + 1,) a stack
    char* scratch       # of the oracle, or a cut


@cython.final
cdef class NearestSets(Projection):
    """Euclidean projection onto the hull of closed sets.

    Scores of -inf forbid a label and its descendants.

    Parameters
    ----------
    oracle : callable
        From a PartLayout to the oracle of these sets.
    shape : HierarchyShape
        Labels are closed sets.
    layout : PartLayout
    """

    cdef HierarchyShape shape
    cdef Oracle oracle
    cdef Py_ssize_t arcs

    def __init__(self, oracle, HierarchyShape shape not None, PartLayout layout not None):
        super().__init__(layout)
        if shape.single or shape.union:
            raise ValueError("found labels of another kind, expected sets that are closed")
        self.shape, self.oracle = shape, oracle(layout)
        self.n_states = 2
        self.has_term = self.has_derivative = True
        self.arcs = shape.up_first[shape.M]
        cut = 8 * self.arcs + cut_graph_bytes(shape.M, self.arcs) + cut_bytes(shape.M, self.arcs)
        self.work_bytes = (8 * shape.size + (5 * 4 + 1) * (shape.M + 1)
                           + sizeof(Group) * (shape.M + 2) + 5 * 64
                           + max(cut, self.oracle.work_bytes) + 4 * 64)

    cdef Py_ssize_t state_size(self, Py_ssize_t i) noexcept nogil:
        return self.shape.size

    cdef Work _place(self, char* memory) noexcept nogil:
        cdef Work work
        cdef Py_ssize_t M = self.shape.M
        work.score = <double*>align(memory)
        work.label = <int*>(work.score + self.shape.size)
        work.members = work.label + M + 1
        work.moved = work.members + M
        work.leader = work.moved + M
        work.place = work.leader + M
        work.groups = <Group*>align(work.place + M)
        work.on = <signed char*>(work.groups + M + 2)
        work.scratch = align(work.on + M)
        return work

    cdef int project(self, Py_ssize_t i, const double* theta, double* marginals, double* value,
                     double* bound, char* work) except -1 nogil:
        cdef Py_ssize_t v
        self._divide(i, theta, marginals, NULL, NULL, work)
        value[0] = 0
        for v in range(self.shape.M):
            if marginals[v] > 0:                # -inf times 0 is no number
                value[0] += marginals[v] * (theta[v] - marginals[v] / 2)
        bound[0] = value[0]
        return 0

    cdef int _divide(self, Py_ssize_t i, const double* theta, double* marginals,
                     const double* direction, double* out, char* memory) except -1 nogil:
        """marginals <- the nearest point, or (unless NULL) out <- its gain along a direction."""
        cdef Work work = self._place(memory)
        cdef Py_ssize_t j, v
        cdef int first, n_groups = 1
        cdef double value
        cdef Group group
        cdef double* answer = marginals if out == NULL else out
        memset(answer, 0, self.shape.size * sizeof(double))
        work.groups[0] = Group(0, self._above_zero(i, theta, &work), False, 0, INFINITY)
        if self.shape.roots_on and direction == NULL:
            for j in range(self.shape.n_roots):
                answer[self.shape.roots[j]] = 1
        while n_groups:
            n_groups -= 1
            group = work.groups[n_groups]
            if not group.connected:
                n_groups = self._connect(&group, n_groups, &work)
                continue
            if group.low >= 1 or self._ordered(theta, &group, &work):
                for j in range(group.first, group.last):
                    v = work.members[j]
                    answer[v] = (_between(theta[v], &group) if direction == NULL
                                 else direction[v] if group.low < 1 and theta[v] < 1 else 0.0)
                continue
            # The mean, or 1: how far above it nodes are does not matter.
            value = self._mean(theta, &group, &work)
            if group.high > 1:
                value = min(value, 1.0)
            first = self._split(theta, value, &group, &work)
            if first == group.first or first == group.last:
                if direction != NULL:
                    value = self._mean(direction, &group, &work) if value < 1 else 0.0
                else:
                    value = _between(value, &group)
                for j in range(group.first, group.last):
                    answer[work.members[j]] = value
                continue
            value = _between(value, &group)
            work.groups[n_groups] = Group(group.first, first, False, value, group.high)
            work.groups[n_groups + 1] = Group(first, group.last, False, group.low, value)
            n_groups += 2
        return 0

    cdef int _above_zero(self, Py_ssize_t i, const double* theta, Work* work) except -1 nogil:
        """List the nodes above 0, without roots that are always on; return how many."""
        cdef Py_ssize_t j, v, M = self.shape.M
        cdef int n = 0
        cdef double value, bound
        memset(work.score, 0, self.shape.size * sizeof(double))
        for v in range(M):
            if not theta[v] < INFINITY:
                no_marginals(i, v, theta[v])
            work.score[v], work.place[v] = theta[v], -1
        self.oracle.argmax(i, work.score, work.label, &value, &bound, work.scratch)
        if value == -INFINITY:
            no_marginals(i, -1, value)
        for j in range(M):
            v = self.shape.order[j]
            if work.label[v] and not self._always_on(v):
                work.members[n], work.place[v] = <int>v, n
                n += 1
        return n

    cdef inline bint _always_on(self, Py_ssize_t v) noexcept nogil:
        return self.shape.roots_on and self.shape.parent[v] == -1

    cdef int _connect(self, const Group* group, int n_groups, Work* work) noexcept nogil:
        """Sort a group by its connected parts, and put these onto the stack."""
        cdef int k, p, first, start = group.first
        cdef Py_ssize_t j, v
        cdef int* leader = work.leader
        for k in range(group.first, group.last):
            leader[k] = k
            v = work.members[k]
            for j in range(self.shape.up_first[v], self.shape.up_first[v + 1]):
                p = work.place[self.shape.up[j]]
                if group.first <= p < group.last:
                    p, first = _lead(leader, p), _lead(leader, k)
                    if p < first:
                        leader[first] = p
                    else:
                        leader[p] = first
        # Leaders come before the others: count the nodes of each, at its place in `moved`.
        for k in range(group.first, group.last):
            work.moved[k] = 0
            leader[k] = _lead(leader, k)
            work.moved[leader[k]] += 1
        for k in range(group.first, group.last):
            if leader[k] == k:
                first = start
                start += work.moved[k]
                work.groups[n_groups] = Group(first, start, True, group.low, group.high)
                n_groups += 1
                work.moved[k] = first
        for k in range(group.first, group.last):
            p = work.moved[leader[k]]
            work.moved[leader[k]] += 1
            work.place[work.members[k]] = p
        for k in range(group.first, group.last):
            work.moved[k] = work.members[k]
        for k in range(group.first, group.last):
            work.members[work.place[work.moved[k]]] = work.moved[k]
        return n_groups

    cdef bint _ordered(self, const double* theta, const Group* group, Work* work) noexcept nogil:
        """Return whether no score of a group is above one of its parents'."""
        cdef Py_ssize_t j, k, v
        cdef int p
        for k in range(group.first, group.last):
            v = work.members[k]
            for j in range(self.shape.up_first[v], self.shape.up_first[v + 1]):
                p = work.place[self.shape.up[j]]
                if group.first <= p < group.last and theta[v] > theta[self.shape.up[j]]:
                    return False
        return True

    cdef double _mean(self, const double* of, const Group* group, const Work* work) noexcept nogil:
        cdef Py_ssize_t j
        cdef double total = 0
        for j in range(group.first, group.last):
            total += of[work.members[j]]
        return total / (group.last - group.first)

    cdef int _split(self, const double* theta, double threshold, const Group* group,
                    Work* work) noexcept nogil:
        """Move the best closed set of a group to its front, and return where it ends."""
        cdef Py_ssize_t j, low = 0
        cdef int size = group.last - group.first, end = group.first, v
        cdef int* members = work.members + group.first
        cdef double gain = 0, distance = 0
        for j in range(size):
            work.score[j] = theta[members[j]] - threshold
        if not self._fold(group, work):
            self._cut(group, work)
        for j in range(size):
            distance += fabs(theta[members[j]] - threshold)
            if work.on[j]:
                gain += theta[members[j]] - threshold
        if not gain > ROUNDING * distance:
            return group.first
        for j in range(size):
            v = members[j]
            if work.on[j]:
                work.members[end] = v
                work.place[v] = end
                end += 1
            else:
                work.moved[low] = v
                low += 1
        for j in range(low):
            work.members[end + j] = work.moved[j]
            work.place[work.moved[j]] = <int>(end + j)
        return end

    cdef bint _fold(self, const Group* group, Work* work) noexcept nogil:
        """on <- the best closed set of a group that is a tree; return whether it is one."""
        cdef Py_ssize_t j, k, v, size = group.last - group.first
        cdef int* above = work.leader + group.first
        cdef double* gain = work.score
        cdef int p
        for j in range(size):
            v = work.members[group.first + j]
            above[j] = -1
            for k in range(self.shape.up_first[v], self.shape.up_first[v + 1]):
                p = work.place[self.shape.up[k]]
                if group.first <= p < group.last:
                    if above[j] >= 0:
                        return False
                    above[j] = p - group.first
        for j in range(size - 1, -1, -1):
            if gain[j] > 0 and above[j] >= 0:
                gain[above[j]] += gain[j]
        for j in range(size):
            work.on[j] = gain[j] > 0 and (above[j] < 0 or work.on[above[j]])
        return True

    cdef void _cut(self, const Group* group, Work* work) noexcept nogil:
        """... of any other group: the source side of a minimum cut, children lead to parents."""
        cdef Py_ssize_t j, k, m = 0, size = group.last - group.first
        cdef int* ends = <int*>work.scratch
        cdef int v, p
        cdef double sent
        cdef char* memory
        cdef CutGraph graph
        cdef Cut cut
        for j in range(size):
            v = work.members[group.first + j]
            for k in range(self.shape.up_first[v], self.shape.up_first[v + 1]):
                p = work.place[self.shape.up[k]]
                if group.first <= p < group.last:
                    ends[2 * m], ends[2 * m + 1] = <int>j, p - group.first
                    m += 1
        memory = align(ends + 2 * m)
        graph = build_cut_graph(size, m, ends, memory)
        cut = place_cut(&graph, align(memory + cut_graph_bytes(size, m)))
        # From the last child to the first: each sends its parents what they lack, and the first of
        # them all else.  The search is left with what took the wrong way.
        for j in range(m - 1, -1, -1):
            v, p = ends[2 * j], ends[2 * j + 1]
            sent = work.score[v]
            if j and ends[2 * j - 2] == v:
                sent = min(sent, -work.score[p])
            sent = max(sent, 0.0)
            work.score[v] -= sent
            work.score[p] += sent
            cut.residual[2 * j], cut.residual[2 * j + 1] = INFINITY, sent
        memcpy(cut.terminal, work.score, size * sizeof(double))
        solve_cut(&cut)
        cut_side(&cut, False, work.on)

    cdef double term(self, Py_ssize_t i, const double* state, char* work) except? -1 nogil:
        return square_term(self.shape.M, state)

    cdef double slope(self, Py_ssize_t i, const double* a, const double* b, double gamma,
                      char* work) except? -1 nogil:
        return square_slope(self.shape.M, a, b, gamma)

    cdef int derivative(self, Py_ssize_t i, const double* theta, const double* direction,
                        double* out, char* work) except -1 nogil:
        # A group moves with the mean of its scores.
        return self._divide(i, theta, NULL, direction, out, work)


cdef inline int _lead(int* leader, int k) noexcept nogil:
    while leader[k] != k:
        leader[k] = leader[leader[k]]
        k = leader[k]
    return k


cdef inline double _between(double value, const Group* group) noexcept nogil:
    # Not beyond 1, nor its neighbours, whatever rounding does.
    return max(group.low, min(value, min(group.high, 1.0)))
