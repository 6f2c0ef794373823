# Derivatives of the marginals of arcs of all trees, by elimination of words.

# Bytes of scratch memory for sentences of at most n words.
cdef Py_ssize_t derivative_bytes(Py_ssize_t n) noexcept nogil
# out[m, head] <- the derivatives of the marginals of `table` along `direction` (rows of n + 1);
# False if there is no tree.
cdef bint arc_derivative(Py_ssize_t n, const double* table, const double* direction, bint single,
                         double* out, char* work) noexcept nogil
