# The best tree, where arcs may cross: Edmonds' algorithm.

# Bytes of scratch memory for sentences of at most n words.
cdef Py_ssize_t arborescence_bytes(Py_ssize_t n) noexcept nogil
# heads <- the maximum spanning arborescence of table[m, head] (rows of n + 1, -inf: no arc), with
# one child of the root where `single`.  Returns whether there is one.
cdef bint best_arborescence(Py_ssize_t n, const double* table, bint single, int* heads,
                            char* work) noexcept nogil
