# Sum-product on forests: marginals, log-partition, samples.
from structsolve.abi_number cimport structsolve_abi_marker
from structsolve.algorithms.max_product cimport Forest
from structsolve.algorithms.messages cimport Marginals
from structsolve.simd.loops cimport ss_loop_table

# Bytes of `work` for the functions below, 64-byte aligned; see forest_bytes().
cdef Py_ssize_t sums_bytes(Py_ssize_t n, Py_ssize_t K, Py_ssize_t stride) noexcept nogil
# Marginals of p(y) ~ exp <theta, mu(y)> of example i; value <- the log-partition.  Rows of the
# edges' tables are states of parents, as in their scores.
cdef int forest_marginals(const ss_loop_table* loops, const Forest* forest, Py_ssize_t i,
                          const Marginals* out, double* value, char* work) except -1 nogil
# value <- the log-partition only.
cdef int forest_partition(const ss_loop_table* loops, const Forest* forest, Py_ssize_t i,
                          double* value, char* work) except -1 nogil
# Draws `count` labels from this distribution, concatenated.
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
# direction as scores.  Computed from the marginals of nodes and of edges, each with sum 1 (one
# table per node if no pair is scored).  `work` has derivative_bytes().
cdef Py_ssize_t derivative_bytes(Py_ssize_t n, Py_ssize_t K, Py_ssize_t stride) noexcept nogil
cdef void forest_derivative(const ss_loop_table* loops, const Forest* direction,
                            const double* nodes, const double* edges, const Marginals* out,
                            char* work) noexcept nogil
