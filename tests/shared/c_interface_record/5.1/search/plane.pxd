from libc.stdint cimport int64_t
from structsolve.abi_number cimport structsolve_abi_marker
from ..operators cimport ( AugmentedOracle, ConeOracle, CountOracle, KBest, Loss, Oracle, Parts, Relaxation, )
from ..part_layout cimport PartLayout
from .view cimport Point, View
cdef class LabelPlane:
    cdef readonly Py_ssize_t work_bytes, max_entries
    cdef readonly bint relaxed, exact, decomposes, zero_one
    cdef readonly PartLayout layout
    cdef readonly Oracle oracle
    cdef readonly Parts parts
    cdef readonly Loss g_loss, h_loss
    cdef readonly KBest kbest
    cdef readonly CountOracle counts
    cdef readonly ConeOracle cones
    cdef readonly Relaxation relaxation
    cdef readonly AugmentedOracle augmented
    cdef readonly double sign
    cdef readonly Py_ssize_t width
    cdef readonly Py_ssize_t states
    cdef public Py_ssize_t most_counts
    cdef readonly object shortfalls
    cdef double[::1] shortfall_view
    cdef int mode
    cdef Py_ssize_t scratch_bytes
    cdef bint _flag0, _flag1, _flag2, _flag3
    cdef Py_ssize_t _room0, _room1, _room2, _room3
    cdef View* begin(self, Py_ssize_t i, const double* theta, const int* truth, char* work) except NULL nogil
    cdef int* label_of(self, View* view, int slot) noexcept nogil
    cdef int place(self, View* view, int slot, Point* out) except -1 nogil
    cdef int ask(self, View* view, double lam, int slot, Point* out) except -1 nogil
    cdef double known_above(self, View* view, double lam, const Point* out, double above) noexcept nogil
    cdef void note(self, View* view, double shortfall, double scale) noexcept nogil
    cdef int ask_in_cone(self, View* view, double lam, double alpha, double beta, int slot, Point* out) except -1 nogil
    cdef void move(self, View* view, Point* point, int slot) noexcept nogil
    cdef Py_ssize_t ask_kbest(self, View* view, double lam, Py_ssize_t k, int* labels, double* values, char* scratch) except -1 nogil
    cdef int need_costs(self, View* view) except -1 nogil
    cdef int unit_of(self, View* view, double* unit, int64_t* most) except -1 nogil
    cdef int fractional(self, View* view, int slot, Point* out) except -1 nogil
    cdef Py_ssize_t entries(self, View* view, const Point* point, double coef, Py_ssize_t n, int* index, double* value) except -1 nogil
