from structsolve.abi_number cimport structsolve_abi_marker
cdef class Psi:
    cdef readonly str name
    cdef readonly bint affine, convex
    cdef readonly bint product
    cdef bint _flag0, _flag1, _flag2, _flag3
    cdef Py_ssize_t _room0, _room1, _room2, _room3
    cdef double value(self, double h, double g) except? -1 nogil
    cdef int partials(self, double h, double g, double* dh, double* dg) except -1 nogil
    cdef void _slot0(self) noexcept nogil
    cdef void _slot1(self) noexcept nogil
    cdef void _slot2(self) noexcept nogil
    cdef void _slot3(self) noexcept nogil
