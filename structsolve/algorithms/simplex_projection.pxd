# Projections onto the simplex of K classes: Euclidean, and softmax.
from structsolve.abi_number cimport structsolve_abi_marker
from structsolve.simd.loops cimport ss_loop_table

# The tau with sum_j max(q_j - tau, 0) = 1, for n >= 1 finite numbers.
cdef double simplex_threshold(Py_ssize_t n, const double* q) noexcept nogil

# p <- the maximiser of G(p) + <scores, p>, its padding up to stride 0; value <- the maximum.
# Scores of -inf forbid a class; ValueError, naming example i, if all are forbidden.
# G = entropy: the softmax, and log-sum-exp.
cdef int softmax(Py_ssize_t i, Py_ssize_t K, Py_ssize_t stride, const ss_loop_table* loops,
                 const double* scores, double* p, double* value) except -1 nogil
# G = -|p|^2 / 2: the point of the simplex nearest to the scores.
cdef int sparsemax(Py_ssize_t i, Py_ssize_t K, Py_ssize_t stride, const double* scores, double* p,
                   double* value) except -1 nogil

# That G, and its derivative at (1 - gamma) a + gamma b towards b.
cdef double square_term(Py_ssize_t K, const double* p) noexcept nogil
cdef double square_slope(Py_ssize_t K, const double* a, const double* b,
                         double gamma) noexcept nogil
