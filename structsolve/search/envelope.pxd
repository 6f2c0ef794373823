# Bounds of psi below the lines h + lam g <= bound of the oracle's answers.
from .view cimport View, Visit
from .psi cimport Psi

# The line of a visit at g, computed from its point: bound loses the digits of h for large lam.
cdef inline double line_at(const Visit* visit, double g) noexcept nogil:
    return visit.h + visit.lam * (visit.g - g) + visit.above

cdef double grid_bound(const View* view, Psi psi) except? -1 nogil
cdef double common_unit(double a, double b, double rounding) noexcept nogil
cdef double best_between(Psi psi, double h0, double g0, double h1, double g1,
                         double* share) except? -1 nogil
cdef double envelope_bound(const View* view, Psi psi) except? -1 nogil
