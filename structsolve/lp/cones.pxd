# Oracles within a cone of the label plane, for structures without one.
from structsolve.abi_number cimport structsolve_abi_marker
from structsolve.operators cimport Cone


# Bound on the rounding error of a sum with this number of terms and this total magnitude.
cdef inline double rounding(Py_ssize_t terms, double size) noexcept nogil:
    return 2.3e-16 * (terms + 4) * size


# True if the point is in the cone.  Coordinates are known up to slack: a point that may lie on a
# side counts as inside if the side belongs to the cone, else as outside.
cdef bint in_cone(const Cone* cone, double h, double g, double h_slack,
                  double g_slack) noexcept nogil
# label <- the result of decode() of example i's polytope; ValueError for another size.
cdef int write_label(Py_ssize_t i, object decoded, Py_ssize_t size, int* label) except -1
# A copy that Python may keep.
cdef object as_array(const double* theta, Py_ssize_t size)
# argmax_in_cone() over a polytope: the program of a structsolve.lp.LinearDecoder with the
# cone's closed sides as two more rows.  A label on a strict side is a point of the relaxation.
cdef int program_in_cone(object decoder, Py_ssize_t i, object scores, object costs,
                         const Cone* cone, Py_ssize_t label_size, double* mu, int* label,
                         double* value) except -1
