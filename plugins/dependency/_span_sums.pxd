# Marginals of arcs of projective trees in weights, all spans of a length at a time.

# For longer sentences a chart is faster.
cdef Py_ssize_t most_span_words() noexcept nogil
# Bytes for sentences of at most n words.
cdef Py_ssize_t span_bytes(Py_ssize_t n) noexcept nogil
# Returns the sum over all trees of the products of weights[m, head]; where it is at least `least`,
# out[m, head] <- marginals.
cdef double span_marginals(Py_ssize_t n, bint single, const double* weights, double least,
                           double* out, char* memory) noexcept nogil
