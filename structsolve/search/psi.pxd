# psi(h, g): what a bi-criteria surrogate maximises over the labels' points (h, g).
cdef class Psi:
    cdef readonly str name
    # Affine in h: one label's cut is exact for every w.  Convex in h: its tangent is a cut.
    cdef readonly bint affine, convex
    # (h + 1) g, which the searches for a product can maximise.
    cdef readonly bint product
    cdef double value(self, double h, double g) except? -1 nogil
    # (d psi/dh, d psi/dg); d psi/dg may be infinite where g = 0.
    cdef int partials(self, double h, double g, double* dh, double* dg) except -1 nogil
