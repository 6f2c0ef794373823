# Sizes of the chains of one set of examples, and where their parts lie in theta.
from libc.stdint cimport int64_t


cdef class ChainShape:
    cdef readonly Py_ssize_t n, K, stride, shared_size, edge_size, max_length
    # First double of the block in theta, -1 where the space has no such block.
    cdef readonly Py_ssize_t transition, start, end
    cdef const int64_t* offsets
    cdef object owners
