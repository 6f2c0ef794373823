# Marginals of the arcs of all trees, by elimination of words.

# Bytes of scratch memory for sentences of at most n words; draw_tree() needs n + 1 doubles more.
cdef Py_ssize_t elimination_bytes(Py_ssize_t n) noexcept nogil
# marginals <- those of arcs [m, head] (rows of n + 1); returns the log of the sum over all trees of
# exp(sum of table[m, head]), -inf where there is none.
cdef double arc_marginals(Py_ssize_t n, const double* table, bint single, double* marginals,
                          char* work) noexcept nogil
# heads <- a tree drawn with a uniform number per word; returns whether there is one.  The table is
# overwritten.
cdef bint draw_tree(Py_ssize_t n, double* table, bint single, const double* uniforms, int* heads,
                    char* work) noexcept nogil
