# Sizes of assignment problems, and forbidden pairs.
from libc.stdint cimport int64_t
from structsolve.part_layout cimport PartLayout


cdef class PairShape:
    cdef readonly Py_ssize_t n, max_rows, max_cols
    cdef const int64_t* labels          # first label of each example: one per row
    cdef const int64_t* pairs           # first pair of each example; of matchings only
    cdef const int64_t* cols            # NULL: all examples have `max_cols`
    cdef const unsigned char* mask      # NULL: nothing is forbidden
    cdef Py_ssize_t padded              # doubles in a row of theta; 0: as many as there are columns
    cdef object owners                  # not the layout, which holds this shape
    cdef int read_ranks(self, PartLayout layout) except -1
    cdef int read_tables(self, PartLayout layout) except -1
    cdef Py_ssize_t n_rows(self, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t n_cols(self, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t stride(self, Py_ssize_t i) noexcept nogil
    cdef const unsigned char* forbidden(self, Py_ssize_t i) noexcept nogil


# The shape of a layout, made at the first call.
cdef PairShape pair_shape(PartLayout layout)
# Raises ValueError: a label of example i gives row r a column that does not exist in the example.
cdef Py_ssize_t no_such_column(Py_ssize_t i, Py_ssize_t r, int column,
                               Py_ssize_t cols) except -1 with gil
# Raises ValueError: the scores of example i allow no assignment.
cdef Py_ssize_t no_assignment(Py_ssize_t i) except -1 with gil
