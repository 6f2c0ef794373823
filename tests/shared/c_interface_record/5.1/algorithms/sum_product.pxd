from structsolve.abi_number cimport structsolve_abi_marker
from structsolve.algorithms.max_product cimport Forest
from structsolve.algorithms.messages cimport Marginals
from structsolve.simd.loops cimport ss_loop_table
cdef Py_ssize_t sums_bytes(Py_ssize_t n, Py_ssize_t K, Py_ssize_t stride) noexcept nogil
cdef int forest_marginals(const ss_loop_table* loops, const Forest* forest, Py_ssize_t i, const Marginals* out, double* value, char* work) except -1 nogil
cdef int forest_partition(const ss_loop_table* loops, const Forest* forest, Py_ssize_t i, double* value, char* work) except -1 nogil
cdef int forest_sample(const ss_loop_table* loops, const Forest* forest, Py_ssize_t i, Py_ssize_t count, const double* uniforms, int* labels, char* work) except -1 nogil
cdef double forest_entropy(const Forest* forest, const int* degree, const double* nodes, const double* edges, Py_ssize_t n_edges) noexcept nogil
cdef double forest_slope(const Forest* forest, const int* degree, const double* a, const double* b, Py_ssize_t n_edges, bint pairs, double gamma) noexcept nogil
cdef Py_ssize_t derivative_bytes(Py_ssize_t n, Py_ssize_t K, Py_ssize_t stride) noexcept nogil
cdef void forest_derivative(const ss_loop_table* loops, const Forest* direction, const double* nodes, const double* edges, const Marginals* out, char* work) noexcept nogil
