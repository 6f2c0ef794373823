# Graphs with a source and a sink, their nodes in order, and the scores of steps.
from libc.stdint cimport int64_t
from structsolve.part_layout cimport PartLayout


cdef class PathShape:
    cdef readonly Py_ssize_t n, max_nodes, max_edges
    cdef readonly bint scored           # whether edges have scores
    cdef readonly object topology
    cdef const int64_t* offsets         # nodes of example i: offsets[i] .. offsets[i + 1]
    cdef const int64_t* edge_offsets
    cdef const int* tails               # of each edge, as given; nodes count from 0 in each example
    cdef const int* heads
    cdef const int* ends                # source and sink of each example
    # Nodes on some way from the source to the sink have places: 0 the source, the last the sink,
    # and without cycles the end of every edge comes after its start.  Steps are the edges between
    # them, sorted by the place of their start.
    cdef int* counts                    # places of each example
    cdef signed char* cyclic            # 1: example i has a cycle
    cdef int* nodes                     # the node at each place
    cdef int* first                     # first step of each place, and the end: n_nodes + 1 each
    cdef int* edges                     # the edge of each step
    cdef int* targets                   # the place where each step ends
    cdef object owners

    cdef int read(self, Py_ssize_t i, int* room) except -1
    cdef Py_ssize_t nodes_of(self, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t edges_of(self, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t places_of(self, Py_ssize_t i) noexcept nogil
    cdef int source(self, Py_ssize_t i) noexcept nogil
    cdef int sink(self, Py_ssize_t i) noexcept nogil
    cdef const int* first_of(self, Py_ssize_t i) noexcept nogil
    cdef const int* targets_of(self, Py_ssize_t i) noexcept nogil
    # steps <- score of each step: of its edge and of the node where it ends.
    cdef int load(self, Py_ssize_t i, const double* theta, double* steps) except -1 nogil
    # The same of a direction, unchecked.
    cdef void load_direction(self, Py_ssize_t i, const double* direction,
                             double* steps) noexcept nogil
    # label <- the path whose step from place p is via[p].
    cdef void follow(self, Py_ssize_t i, const int* via, int* label) noexcept nogil
    cdef int impossible(self, Py_ssize_t i) except -1 nogil


# The shape of a layout, made at the first call.
cdef PathShape path_shape(PartLayout layout)
