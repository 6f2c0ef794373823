from structsolve.abi_number cimport structsolve_abi_marker
from .plane cimport LabelPlane
from .view cimport Point, View
from .psi cimport Psi
cdef struct Outcome:
    int first, second
    double share, value
    double bound
    int label
    double label_value, label_bound
    double lam
cdef int best_label(const View* view, Psi psi, double* value) except -1 nogil
cdef class Search:
    cdef readonly str name
    cdef readonly int max_calls
    cdef readonly double tol
    cdef readonly bint fractional
    cdef readonly bint product_only
    cdef readonly bint constrained
    cdef readonly bint counting
    cdef bint _flag0, _flag1, _flag2, _flag3
    cdef Py_ssize_t _room0, _room1, _room2, _room3
    cpdef Py_ssize_t extra_bytes(self, LabelPlane plane, object labels=*) except -1
    cdef int run(self, LabelPlane plane, View* view, Psi psi, double lam, Outcome* out, char* work) except -1 nogil
    cdef int visit(self, LabelPlane plane, View* view, Psi psi, double lam, bint* known) except -1 nogil
    cdef int keep(self, LabelPlane plane, View* view, Psi psi, Point* answer, bint* known) except -1 nogil
    cdef int finish(self, View* view, Psi psi, Outcome* out) except -1 nogil
    cdef int close(self, View* view, Psi psi, Outcome* out, double bound) except -1 nogil
    cdef int settle(self, View* view, Psi psi, Outcome* out) except -1 nogil
    cdef void _slot0(self) noexcept nogil
    cdef void _slot1(self) noexcept nogil
    cdef void _slot2(self) noexcept nogil
    cdef void _slot3(self) noexcept nogil
