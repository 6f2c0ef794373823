"""A hierarchy as flat arrays, how labels are encoded, and their parts.

A set of labels is M numbers 0 or 1; a single leaf is one number, the column of the leaf.
"""

import numpy as np

cimport cython
from structsolve.operators cimport Parts
from structsolve.part_layout cimport PartLayout


cdef const int* _entries(array, list owners) except? NULL:
    # One spare entry, so that an empty array has an address too.
    cdef const int[::1] view = np.ascontiguousarray(
        array if len(array) else np.zeros(1), dtype=np.int32)
    owners.append(view)
    return &view[0]


cdef int no_marginals(Py_ssize_t i, Py_ssize_t v, double score) except -1 with gil:
    where = f"label {v}: its score" if v >= 0 else "the score of every label set"
    raise ValueError(
        f"example {i}, {where} is {score}, so there are no marginals; expected a finite number, or "
        "-inf for a label that must be off; check that the weights are finite"
    )


@cython.final
cdef class HierarchyShape:
    """A hierarchy for the compiled loops.

    Parameters
    ----------
    hierarchy : Hierarchy
    size : int
        Doubles in theta: the padded number of nodes.
    single : bool
        Labels are single leaves.
    union : bool
        Labels are unions of paths from roots to leaves.
    roots_on : bool
        All roots are on in every label.
    """

    def __init__(self, hierarchy, Py_ssize_t size, bint single, bint union, bint roots_on):
        owners = []
        self.M, self.size = len(hierarchy), size
        self.single, self.union, self.roots_on = single, union, roots_on
        self.n_states = self.M if single else 2
        self.forest = hierarchy.forest
        self.order = _entries(hierarchy.order, owners)
        self.rank = _entries(hierarchy.rank, owners)
        self.parent = _entries(hierarchy.parent, owners)
        self.up_first = _entries(hierarchy.up_first, owners)
        self.up = _entries(hierarchy.up, owners)
        self.child_first = _entries(hierarchy.child_first, owners)
        self.child = _entries(hierarchy.child, owners)
        self.leaves = _entries(hierarchy.leaves, owners)
        self.n_leaves = len(hierarchy.leaves)
        self.roots = _entries(hierarchy.roots, owners)
        self.n_roots = len(hierarchy.roots)
        self.longest = self.M
        if single:
            places = np.full(self.M, -1)
            places[hierarchy.leaves] = np.arange(self.n_leaves)
            self.leaf_place = _entries(places, owners)
            if not self.forest:
                first, line = hierarchy.lines
                self.line_first, self.line = _entries(first, owners), _entries(line, owners)
                self.longest = int(np.diff(first).max())
            else:
                self.longest = _depth(self)
        self.owners = owners

    cdef int start(self, int leaf, int* cursor) noexcept nogil:
        if leaf == self.M:  # a path unseen in training has none of the nodes
            return -1
        if not self.forest:
            # An inner node's line is the node alone: the cursor is at the end of the last line.
            cursor[0] = (self.line_first[self.leaf_place[leaf]] if self.leaf_place[leaf] >= 0
                         else self.line_first[self.n_leaves] - 1)
        return leaf

    cdef int next(self, int v, int* cursor) noexcept nogil:
        cdef int place
        if self.forest:
            return self.parent[v]
        cursor[0] += 1
        place = cursor[0]
        # The line of the next leaf begins with a leaf, which is no ancestor of anything.
        if place == self.line_first[self.n_leaves] or self.leaf_place[self.line[place]] >= 0:
            return -1
        return self.line[place]

    cdef Lines lines(self, int first, int second) noexcept nogil:
        cdef Lines both
        both.a, both.b = self.start(first, &both.cursor_a), self.start(second, &both.cursor_b)
        return both

    cdef int next_apart(self, Lines* both, bint* of_first) noexcept nogil:
        # Both lines rise towards the roots: a node in only one of them comes first.
        cdef int v
        while both.a >= 0 or both.b >= 0:
            if both.a == both.b:
                if self.forest:
                    break
                both.a = self.next(both.a, &both.cursor_a)
                both.b = self.next(both.b, &both.cursor_b)
                continue
            of_first[0] = both.b < 0 or (both.a >= 0 and self.rank[both.a] > self.rank[both.b])
            if of_first[0]:
                v = both.a
                both.a = self.next(v, &both.cursor_a)
            else:
                v = both.b
                both.b = self.next(v, &both.cursor_b)
            return v
        return -1


def _depth(HierarchyShape shape not None):
    # Nodes on the longest path from a root to a leaf of a forest.
    cdef int[::1] depth = np.ones(shape.M, np.int32)
    cdef Py_ssize_t j, v
    cdef int most = 1
    for j in range(shape.M):
        v = shape.order[j]
        if shape.parent[v] >= 0:
            depth[v] = depth[shape.parent[v]] + 1
            most = max(most, depth[v])
    return most


@cython.final
cdef class HierarchyParts(Parts):
    """One part per node.

    Parameters
    ----------
    shape : HierarchyShape
    layout : PartLayout
    """

    cdef HierarchyShape shape

    def __init__(self, HierarchyShape shape not None, PartLayout layout not None):
        super().__init__(layout)
        self.shape = shape
        self.n_states = shape.n_states
        self.max_entries = min(2 * shape.longest, shape.M) if shape.single else shape.M

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        cdef Py_ssize_t v, n = 0
        cdef int cursor = 0, node
        if self.shape.single:
            node = self.shape.start(label[0], &cursor)
            while node >= 0:
                index[n], value[n] = node, 1
                n += 1
                node = self.shape.next(node, &cursor)
            return n
        for v in range(self.shape.M):
            if label[v]:
                index[n], value[n] = <int>v, 1
                n += 1
        return n

    cdef Py_ssize_t difference(self, Py_ssize_t i, const int* truth, const int* label, int* index,
                               double* value) except -1 nogil:
        cdef Py_ssize_t v, n = 0
        cdef int node
        cdef bint of_truth = False
        cdef Lines both
        if self.shape.single:
            both = self.shape.lines(truth[0], label[0])
            node = self.shape.next_apart(&both, &of_truth)
            while node >= 0:
                index[n], value[n] = node, 1 if of_truth else -1
                n += 1
                node = self.shape.next_apart(&both, &of_truth)
            return n
        for v in range(self.shape.M):
            if truth[v] != label[v]:
                index[n], value[n] = <int>v, truth[v] - label[v]
                n += 1
        return n
