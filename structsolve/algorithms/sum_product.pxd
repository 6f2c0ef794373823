# Sum-product on forests: marginals, log-partition, samples.
from structsolve.abi_number cimport structsolve_abi_marker
from structsolve.algorithms.max_product cimport Forest
from structsolve.algorithms.messages cimport Marginals
from structsolve.simd.loops cimport ss_loop_table

# Bytes of `work` of the functions below, 64-byte aligned, as forest_bytes().
cdef Py_ssize_t sums_bytes(Py_ssize_t n, Py_ssize_t K, Py_ssize_t stride) noexcept nogil
# Marginals of p(y) ~ exp <theta, mu(y)> of example i; value <- the log-partition.  Edges' tables
# have the rows of parents, like their scores.
cdef int forest_marginals(const ss_loop_table* loops, const Forest* forest, Py_ssize_t i,
                          const Marginals* out, double* value, char* work) except -1 nogil
# value <- the log-partition alone.
cdef int forest_partition(const ss_loop_table* loops, const Forest* forest, Py_ssize_t i,
                          double* value, char* work) except -1 nogil
# count labels drawn from that distribution, one after the other.
cdef int forest_sample(const ss_loop_table* loops, const Forest* forest, Py_ssize_t i,
                       Py_ssize_t count, const double* uniforms, int* labels,
                       char* work) except -1 nogil
# The entropy of a distribution over labelings from its marginals of nodes (n, stride) and of
# edges (one table per node with a parent), and its slope; edges NULL: of independent nodes.
cdef double forest_entropy(const Forest* forest, const int* degree, const double* nodes,
                           const double* edges, Py_ssize_t n_edges) noexcept nogil
cdef double forest_slope(const Forest* forest, const int* degree, const double* a,
                         const double* b, Py_ssize_t n_edges, bint pairs,
                         double gamma) noexcept nogil
# The derivatives of the marginals of such a distribution along `direction`, a forest with the
# direction as scores: from the marginals of nodes and, of sum 1 each, of edges (one table per node
# where no pair is scored).  `work` has derivative_bytes().
cdef Py_ssize_t derivative_bytes(Py_ssize_t n, Py_ssize_t K, Py_ssize_t stride) noexcept nogil
cdef void forest_derivative(const ss_loop_table* loops, const Forest* direction,
                            const double* nodes, const double* edges, const Marginals* out,
                            char* work) noexcept nogil
