# psi(h, g), which a bi-criteria surrogate maximises over the labels' points (h, g).
from structsolve.abi_number cimport structsolve_abi_marker

cdef class Psi:
    cdef readonly str name
    # Affine in h: one label's cut is exact for every w.  Convex in h: its tangent is a cut.
    cdef readonly bint affine, convex
    # (h + 1) g, which the searches for a product can maximise.
    cdef readonly bint product
    # Room for later members; see abi_number.pxd.
    cdef bint _flag0, _flag1, _flag2, _flag3
    cdef Py_ssize_t _room0, _room1, _room2, _room3
    cdef double value(self, double h, double g) except? -1 nogil
    # (d psi/dh, d psi/dg); d psi/dg may be infinite if g = 0.
    cdef int partials(self, double h, double g, double* dh, double* dg) except -1 nogil
    cdef void _slot0(self) noexcept nogil
    cdef void _slot1(self) noexcept nogil
    cdef void _slot2(self) noexcept nogil
    cdef void _slot3(self) noexcept nogil
