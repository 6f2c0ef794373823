# The best leaf of a tree; not part of the C interface.
from libc.stdint cimport int32_t


cdef class LeafSearch:
    cdef readonly Py_ssize_t n_nodes    # with the spare root
    cdef readonly Py_ssize_t n_inner    # nodes 0 .. n_inner - 1 have children
    cdef readonly object own            # own[v]: new number of the given node v
    cdef readonly object given          # given[v]: given number of node v; -1 for the spare root
    cdef int kind
    cdef object _kept
    cdef int32_t* up                    # parents; -1 for the spare root
    cdef double* down                   # total cost from the spare root to a node, both included
    cdef const int32_t* name            # `given`
    cdef const int32_t* leaf_start      # leaves leaf_start[p] .. leaf_start[p + 1] - 1 are p's
    cdef const double* farthest         # largest `down` of the leaves among p's children
    cdef const int32_t* child_start     # inner children, the one with the best leaf first
    cdef const int32_t* child
    cdef const int32_t* best_below      # the best leaf of p's subtree if all scores are zero
    # State of one search.
    cdef double* total
    cdef double* meet
    cdef unsigned char* above_truth
    cdef unsigned char* opened
    cdef int32_t* open
    cdef int32_t* climb
    cdef Py_ssize_t n_open, truth, best
    cdef double deepest                 # largest `down`
    cdef double reach, most_loss, most  # `down` of the truth; largest loss of a leaf; best sum
    # Starts a search with the loss against `truth`, a leaf's new number (-1: no loss).
    cdef void begin(self, Py_ssize_t truth) noexcept nogil
    # Marks a node whose theta may be nonzero; for end() with all_nodes=False.
    cdef void touch(self, Py_ssize_t node, const double* theta) noexcept nogil
    # Ends a search: returns the leaf of the largest sum of theta on its path, plus its loss.
    cdef Py_ssize_t end(self, bint all_nodes, const double* theta) noexcept nogil
    cdef inline void enter(self, Py_ssize_t p, const double* theta) noexcept nogil
    cdef void family(self, Py_ssize_t p, const double* theta) noexcept nogil
    cdef void untouched(self, Py_ssize_t p) noexcept nogil
    cdef inline double loss(self, double apart) noexcept nogil
