# The upper hull of the points seen, and the maximiser of psi on it.
from .base cimport Outcome
from .plane cimport LabelPlane
from .view cimport View
from .psi cimport Psi

cdef int upper_hull(const View* view, int* hull) noexcept nogil
cdef int best_on_hull(const View* view, Psi psi, const int* hull, int n,
                      Outcome* out) except -1 nogil
cdef double tangent(const View* view, Psi psi, const int* hull, int n, int position,
                    const Outcome* best) except? -1 nogil
cdef double first_lam(LabelPlane plane, View* view, Psi psi) except? -1 nogil
