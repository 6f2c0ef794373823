from libc.stdint cimport int64_t
from structsolve.abi_number cimport structsolve_abi_marker
cdef class PartLayout:
    cdef readonly Py_ssize_t n
    cdef readonly Py_ssize_t shared_size, node_size, edge_size
    cdef readonly Py_ssize_t max_theta, max_nodes, max_edges, max_label
    cdef readonly dict starts, shapes
    cdef readonly object examples
    cdef const int64_t* offsets
    cdef const int64_t* edge_offsets
    cdef const int64_t* label_offsets
    cdef object owners
    cdef dict shared_objects
    cdef readonly bint training
    cdef bint _flag1, _flag2, _flag3
    cdef Py_ssize_t _room0, _room1, _room2, _room3
    cdef Py_ssize_t nodes_of(self, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t edges_of(self, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t theta_size(self, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t label_size(self, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t edge_start(self, Py_ssize_t i) noexcept nogil
