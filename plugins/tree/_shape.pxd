# Forests, and offsets of the parts of their labelings in theta.
from libc.stdint cimport int64_t
from structsolve.algorithms.labelings cimport LabelingShape
from structsolve.algorithms.max_product cimport Forest
from structsolve.part_layout cimport PartLayout


cdef class TreeShape(LabelingShape):
    # First double of the block in theta, -1 if the space has no such block.
    cdef readonly Py_ssize_t root
    cdef const int64_t* edge_offset     # edges of example i: edge_offset[i] .. edge_offset[i + 1]
    cdef const int* parent_p            # -1 at roots
    cdef const int* order_p             # parents before children; NULL: as they are numbered
    cdef const int* edge_p              # number of the edge to the parent, -1 at roots
    cdef const int* degree_p            # neighbours

    cdef int read_tree(self, Py_ssize_t i, signed char* seen, int* edges, int* degrees) except -1
    # Bytes of `buffer` below, a multiple of 64.
    cdef Py_ssize_t buffer_bytes(self) noexcept nogil
    # Example i at theta, for the programs of structsolve.algorithms.
    cdef Forest forest(self, Py_ssize_t i, const double* theta, char* buffer) noexcept nogil


# The shape of a layout, made at the first call.
cdef TreeShape tree_shape(PartLayout layout)
