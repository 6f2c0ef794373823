# Passes over the examples of a batch, in the memory of threads.
cimport numpy as cnp
from libc.stdint cimport int64_t
from ..operators cimport Operator
from ..part_layout cimport PartLayout
from ._abreast cimport Abreast
from ._sheets cimport Sheet


cdef bint by_size(Operator operator)

# The number of example i of a batch for an operator; see EachSize.
cdef inline Py_ssize_t number_of(PartLayout layout, Py_ssize_t i, bint sized) noexcept nogil:
    return layout.nodes_of(i) - 1 if sized else i


# The memory of an array of this type of NumPy and so many numbers; else ValueError.
cdef void* data_of(cnp.ndarray array, int kind, Py_ssize_t size, bint written=*) except? NULL


cdef class Room:
    cdef double[::1] theta, dense, value
    cdef int[::1] index
    cdef char[::1] work

    cdef bint holds(self, PartLayout layout, Py_ssize_t work_bytes, Py_ssize_t entries)


# A pass that writes one vector in theta's layout for each example; shared by its threads.
cdef class Pass:
    cdef Sheet scores, out
    cdef const double* weights      # factors of the vectors of examples; NULL: 1
    cdef Abreast lanes              # for several chains at once; or None
    cdef Py_ssize_t bytes           # scratch memory before theirs

    # dense <- the vector of an example with the scores theta (room.theta).
    cdef int vector(self, Py_ssize_t i, const double* theta, double* dense,
                    Room room) except -1 nogil
    cdef int run(self, Py_ssize_t first, Py_ssize_t last, double* sums, Room room) except -1 nogil
    # run() for several chains, each with its own sum.
    cdef int run_several(self, const int64_t* chains, Py_ssize_t n, double** sums,
                         Room room) except -1 nogil
    cdef int run_abreast(self, const int64_t[::1] bounds, Py_ssize_t first, Py_ssize_t last,
                         double[:, ::1] sums, Room room) except -1
