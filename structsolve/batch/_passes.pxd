# Passes over the examples of a batch, in the memory of threads.
from ..part_layout cimport PartLayout
from ._sheets cimport Sheet


cdef class Room:
    cdef double[::1] theta, dense, value
    cdef int[::1] index
    cdef char[::1] work

    cdef bint holds(self, PartLayout layout, Py_ssize_t work_bytes, Py_ssize_t entries)


# A pass that writes one vector in theta's layout for each example; shared by its threads.
cdef class Pass:
    cdef Sheet scores, out
    cdef const double* weights      # factors of the vectors of examples; NULL: 1

    # dense <- the vector of an example with the scores theta (room.theta).
    cdef int vector(self, Py_ssize_t i, const double* theta, double* dense,
                    Room room) except -1 nogil
    cdef int run(self, Py_ssize_t first, Py_ssize_t last, double* sums, Room room) except -1 nogil
