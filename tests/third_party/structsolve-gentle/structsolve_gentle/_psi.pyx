# cython: language_level=3
"""A psi that the searches call without Python."""

from structsolve.search.psi cimport Psi


cdef class Gentle(Psi):
    """``(h / 2 + 1) g``."""

    def __init__(self):
        self.name = "gentle"
        self.affine = self.convex = True

    cdef double value(self, double h, double g) except? -1 nogil:
        return (h / 2 + 1) * g

    cdef int partials(self, double h, double g, double* dh, double* dg) except -1 nogil:
        dh[0], dg[0] = g / 2, h / 2 + 1
        return 0
