from structsolve.abi_number cimport structsolve_abi_marker
from structsolve.algorithms.lawler_heap cimport Candidate
from structsolve.algorithms.pairs cimport Pairs
from structsolve.simd.loops cimport ss_loop_table
cdef struct Forest:
    Py_ssize_t n, K, stride
    const int* order
    const int* parent
    const int* edge
    const double* nodes
    const double* roots
    Pairs pairs
cdef inline Py_ssize_t node_at(const Forest* forest, Py_ssize_t position) noexcept nogil:
    return position if forest.order == NULL else forest.order[position]
cdef Py_ssize_t forest_bytes(Py_ssize_t n, Py_ssize_t K, Py_ssize_t stride) noexcept nogil
cdef double forest_argmax(const ss_loop_table* loops, const Forest* forest, int* label, char* work) noexcept nogil
cdef void forest_max_marginals(const ss_loop_table* loops, const Forest* forest, double* out, char* work) noexcept nogil
cdef Py_ssize_t forest_kbest(const ss_loop_table* loops, const Forest* forest, Py_ssize_t k, int* labels, double* values, Candidate* heap, char* work) noexcept nogil
