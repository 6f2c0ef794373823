# Offsets of the parts of chains in theta.
from libc.string cimport memset
from structsolve.algorithms.labelings cimport LabelingShape
from structsolve.algorithms.pairs cimport Pairs
from structsolve.part_layout cimport PartLayout


cdef class ChainShape(LabelingShape):
    # First double of the block in theta, -1 if the space has no such block.
    cdef readonly Py_ssize_t start, end


# The shape of a layout, made at the first call.
cdef ChainShape chain_shape(PartLayout layout)


cdef inline Py_ssize_t chain_length(ChainShape shape, Py_ssize_t i) noexcept nogil:
    return shape.offsets[i + 1] - shape.offsets[i]


cdef inline Pairs chain_pairs(ChainShape shape, Py_ssize_t i, const double* theta,
                              double* buffer) noexcept nogil:
    # Scores of the pairs of neighbours of example i; `buffer` has room for a table.
    cdef Pairs pairs
    pairs.buffer = buffer
    pairs.shared = NULL
    pairs.edges = NULL
    if shape.transition >= 0:
        pairs.shared = theta + shape.transition
    if shape.edge_size:
        pairs.edges = theta + shape.shared_size + chain_length(shape, i) * shape.stride
    elif pairs.shared == NULL:
        memset(buffer, 0, shape.K * shape.stride * sizeof(double))
        pairs.shared = buffer
    return pairs
