# Memory of one thread in a pass over examples.

cdef class Scratch:
    cdef double[::1] theta, value
    cdef int[::1] index
    cdef char[::1] work
