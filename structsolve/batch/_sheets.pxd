# Users' arrays of part scores, and the padded rows of doubles for operators.
from libc.stdint cimport int64_t
from ..part_layout cimport PartLayout


# Rows of the node or edge block: each node or edge has `rows` rows of `cols` numbers, which are
# `stride` apart in theta.
cdef struct Rows:
    char* data              # NULL: no array, all scores are 0
    bint single             # float32, else float64
    Py_ssize_t rows, cols, stride
    const int64_t* first    # first row of each example


cdef class Sheet:
    cdef readonly PartLayout layout
    cdef readonly object node_array, edge_array
    cdef Rows node, edge
    # Shared blocks, padded as in theta: one set for all examples, or one set per example.
    cdef double* shared
    cdef readonly Py_ssize_t shared_step
    cdef Py_ssize_t n_shared
    cdef object table, owners
    cdef list places, tables
    cdef bint written
    # The array of a block that each example has, which loops write in place of store(); or NULL.
    cdef float* each

    # Sets `each` for the block that begins at `start` in theta, if it is float32; the others <- 0.
    cdef int open_each(self, Py_ssize_t start) except -1
    # Points at other arrays, which the caller keeps; False: their types or sizes are others.
    cdef bint again(self, blocks, arrays) except -1
    cdef int take(self, place, array, bint each) except -1
    cdef int read_table(self, place, array) except -1
    cdef int open(self, Rows* rows, place, array, first) except -1
    # Copies the doubles of `shared` to the users' arrays.
    cdef int store(self, const double* theta) except -1
    # theta <- the scores of an example; raises ValueError for NaN.
    cdef int read(self, Py_ssize_t i, double* theta) except -1 nogil
    # All of it but the shared blocks.
    cdef int read_rows(self, Py_ssize_t i, double* theta) except -1 nogil
    # Rows of nodes and edges of an example <- weight * theta.
    cdef void write(self, Py_ssize_t i, const double* theta, double weight) noexcept nogil
