# A hierarchy as flat arrays, and how labels are encoded.
from structsolve.operators cimport Parts


# A walk along the lines of two leaves.
cdef struct Lines:
    int a, b, cursor_a, cursor_b


# Raises ValueError for the score of label v, or of all sets (-1).
cdef int no_marginals(Py_ssize_t i, Py_ssize_t v, double score) except -1 with gil


cdef class HierarchyShape:
    cdef readonly Py_ssize_t M, size            # nodes, doubles in theta
    cdef readonly bint forest, single, union, roots_on
    cdef const int* order                       # parents before children
    cdef const int* rank
    cdef const int* parent                      # -1: root, -2: several
    cdef const int* up_first
    cdef const int* up
    cdef const int* child_first
    cdef const int* child
    cdef readonly Py_ssize_t n_leaves, n_roots
    cdef const int* roots
    cdef const int* leaves
    cdef const int* line_first                  # rows of leaf_lines(), by place in `leaves`
    cdef const int* line
    cdef const int* leaf_place                  # place in `leaves` of every leaf, else -1
    cdef readonly Py_ssize_t longest            # most nodes of one line
    cdef readonly Py_ssize_t n_states           # integers of a label are below it
    cdef object owners

    # Walk a leaf's line: its first node (itself), then the next one; -1 after the last.
    cdef int start(self, int leaf, int* cursor) noexcept nogil
    cdef int next(self, int v, int* cursor) noexcept nogil
    # Walk two leaves' lines: the next node in only one of them, and in which; -1 after the last.
    cdef Lines lines(self, int first, int second) noexcept nogil
    cdef int next_apart(self, Lines* both, bint* of_first) noexcept nogil
