# What the adapters of Python structures share.
from ..part_layout cimport PartLayout


cdef class Face:
    cdef object space, examples, layout, n_states
    cdef PartLayout sizes

    # A copy of theta.
    cdef object flat(self, Py_ssize_t i, const double* theta)
    # Its blocks by name.
    cdef object named(self, Py_ssize_t i, flat)

cdef int copy_label(object label, int* out) except -1
cdef object label_array(Face face, Py_ssize_t i, const int* label)
