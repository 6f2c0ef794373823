"""A hierarchy as flat arrays, how labels are encoded, and their parts.

A set of labels is M numbers 0 or 1; a single leaf is one number, the column of the leaf.
"""

import numpy as np

from structsolve.operators cimport Parts


cdef const int* _entries(array, list owners) except? NULL:
    # One spare entry, so that an empty array has an address too.
    cdef const int[::1] view = np.ascontiguousarray(
        array if len(array) else np.zeros(1), dtype=np.int32)
    owners.append(view)
    return &view[0]


cdef class HierarchyShape:
    """A hierarchy for the compiled loops.

    Parameters
    ----------
    hierarchy : Hierarchy
    n : int
        Number of examples.
    size : int
        Doubles in theta: the padded number of nodes.
    single : bool
        Labels are single leaves.
    union : bool
        Labels are unions of paths from roots to leaves.
    roots_on : bool
        All roots are on in every label.
    """

    def __init__(self, hierarchy, Py_ssize_t n, Py_ssize_t size, bint single, bint union,
                 bint roots_on):
        owners = []
        self.M, self.n, self.size = len(hierarchy), n, size
        self.single, self.union, self.roots_on = single, union, roots_on
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
            at = np.full(self.M, -1)
            at[hierarchy.leaves] = np.arange(self.n_leaves)
            self.leaf_at = _entries(at, owners)
            if not self.forest:
                first, line = hierarchy.lines
                self.line_first, self.line = _entries(first, owners), _entries(line, owners)
                self.longest = int(np.diff(first).max())
            else:
                self.longest = _depth(self)
        self.owners = owners

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.structure.calls``."""
        if not 0 <= i < self.n:
            raise ValueError(f"example {i} of {self.n}: expected 0 to {self.n - 1}")
        if self.single:
            return self.size, 1, self.M
        return self.size, self.M, 2

    cdef int start(self, int leaf, int* at) noexcept nogil:
        if not self.forest:
            # What is no leaf has no line but itself: the cursor is at the end of the last one.
            at[0] = (self.line_first[self.leaf_at[leaf]] if self.leaf_at[leaf] >= 0
                     else self.line_first[self.n_leaves] - 1)
        return leaf

    cdef int next(self, int v, int* at) noexcept nogil:
        if self.forest:
            return self.parent[v]
        at[0] += 1
        # The line of the next leaf begins with a leaf, which is no ancestor of anything.
        if at[0] == self.line_first[self.n_leaves] or self.leaf_at[self.line[at[0]]] >= 0:
            return -1
        return self.line[at[0]]


def _depth(HierarchyShape shape):
    # Nodes on the longest way from a root to a leaf of a forest.
    cdef int[::1] depth = np.ones(shape.M, np.int32)
    cdef Py_ssize_t j, v
    cdef int most = 1
    for j in range(shape.M):
        v = shape.order[j]
        if shape.parent[v] >= 0:
            depth[v] = depth[shape.parent[v]] + 1
            most = max(most, depth[v])
    return most


cdef class HierarchyParts(Parts):
    """One part per node."""

    def __init__(self, HierarchyShape shape):
        self.shape = shape
        self.max_entries = min(2 * shape.longest, shape.M) if shape.single else shape.M

    def limits(self, Py_ssize_t i):
        """Sizes of example ``i``, for ``structsolve.structure.calls``."""
        return self.shape.limits(i)

    cdef Py_ssize_t encode(self, Py_ssize_t i, const int* label, int* index,
                           double* value) except -1 nogil:
        cdef Py_ssize_t v, n = 0
        cdef int at = 0, node
        if self.shape.single:
            node = self.shape.start(label[0], &at)
            while node >= 0:
                index[n], value[n] = node, 1
                n += 1
                node = self.shape.next(node, &at)
            return n
        for v in range(self.shape.M):
            if label[v]:
                index[n], value[n] = <int>v, 1
                n += 1
        return n

    cdef Py_ssize_t difference(self, Py_ssize_t i, const int* truth, const int* label, int* index,
                               double* value) except -1 nogil:
        cdef Py_ssize_t v, n = 0
        cdef int at = 0, other_at = 0, a, b
        if self.shape.single:
            # Both lines rise towards the roots: what only one of them has is met first.
            a, b = self.shape.start(truth[0], &at), self.shape.start(label[0], &other_at)
            while a >= 0 or b >= 0:
                if a == b:
                    if self.shape.forest:
                        break
                    a, b = self.shape.next(a, &at), self.shape.next(b, &other_at)
                elif b < 0 or (a >= 0 and self.shape.rank[a] > self.shape.rank[b]):
                    index[n], value[n] = a, 1
                    n += 1
                    a = self.shape.next(a, &at)
                else:
                    index[n], value[n] = b, -1
                    n += 1
                    b = self.shape.next(b, &other_at)
            return n
        for v in range(self.shape.M):
            if truth[v] != label[v]:
                index[n], value[n] = <int>v, truth[v] - label[v]
                n += 1
        return n
