from structsolve.abi_number cimport structsolve_abi_marker
from structsolve.operators cimport Cone
cdef inline double rounding(Py_ssize_t terms, double size) noexcept nogil:
    return 2.3e-16 * (terms + 4) * size
cdef bint in_cone(const Cone* cone, double h, double g, double h_slack, double g_slack) noexcept nogil
cdef int write_label(Py_ssize_t i, object decoded, Py_ssize_t size, int* label) except -1
cdef object as_array(const double* theta, Py_ssize_t size)
cdef int program_in_cone(object decoder, Py_ssize_t i, object scores, object costs, const Cone* cone, Py_ssize_t label_size, double* mu, int* label, double* value) except -1
