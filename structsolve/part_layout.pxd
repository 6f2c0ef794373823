# Sizes of the examples of one batch, in theta and in the labels.
# Part of the C interface: every operator holds one.  Made only here: not to be subclassed.
from libc.stdint cimport int64_t
from structsolve.abi_number cimport structsolve_abi_marker


cdef class PartLayout:
    cdef readonly Py_ssize_t n                  # examples
    # Number of doubles in theta: of the shared blocks, of a row of nodes, of a row of edges.
    cdef readonly Py_ssize_t shared_size, node_size, edge_size
    # Sizes of the largest example.
    cdef readonly Py_ssize_t max_theta, max_nodes, max_edges, max_label
    # First double of each block of theta by name (node rows begin at shared_size; edge rows follow
    # them: -1), and the shape of one row of its parts.
    cdef readonly dict starts, shapes
    cdef readonly object examples               # packed; labels and features may be None
    cdef const int64_t* offsets                 # nodes of example i: offsets[i] .. offsets[i + 1]
    cdef const int64_t* edge_offsets            # NULL if there are no edge rows
    cdef const int64_t* label_offsets
    cdef object owners
    cdef dict shared_objects
    # True: training examples; False: examples to predict or score.
    cdef readonly bint training
    # Reserved for future fields; see abi_number.pxd.
    cdef bint _flag1, _flag2, _flag3
    cdef Py_ssize_t _room0, _room1, _room2, _room3

    cdef Py_ssize_t nodes_of(self, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t edges_of(self, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t theta_size(self, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t label_size(self, Py_ssize_t i) noexcept nogil
    # First double of the edge rows of example i.
    cdef Py_ssize_t edge_start(self, Py_ssize_t i) noexcept nogil
