# Euclidean projection onto the simplex.

# The tau with sum_j max(q_j - tau, 0) = 1, for n >= 1 finite numbers.
cdef double simplex_threshold(Py_ssize_t n, const double* q) noexcept nogil
