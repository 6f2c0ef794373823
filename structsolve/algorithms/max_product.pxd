# Forests: input of the programs over their labelings.
from structsolve.abi_number cimport structsolve_abi_marker
from structsolve.algorithms.lawler_heap cimport Candidate
from structsolve.algorithms.pairs cimport Pairs
from structsolve.simd.loops cimport ss_loop_table


cdef struct Forest:
    # Scores of a forest's parts.  Rows have `stride` doubles; the first K are scores.
    Py_ssize_t n, K, stride     # nodes, states
    const int* order        # parents before their children; NULL: 0, 1, ... n - 1
    const int* parent       # -1 at roots
    const int* edge         # number of the edge to the parent
    const double* nodes     # (n, stride)
    const double* roots     # (stride,), added at roots; NULL for none
    Pairs pairs             # rows: states of the parent


cdef inline Py_ssize_t node_at(const Forest* forest, Py_ssize_t position) noexcept nogil:
    return position if forest.order == NULL else forest.order[position]


# Bytes of `work` for any of the functions below, 64-byte aligned, without the buffer of K * stride
# doubles for pairs.
cdef Py_ssize_t forest_bytes(Py_ssize_t n, Py_ssize_t K, Py_ssize_t stride) noexcept nogil

# The best labeling; ties go to the smallest state at the first node in order, then at the second,
# and so on.  Returns its score.
cdef double forest_argmax(const ss_loop_table* loops, const Forest* forest, int* label,
                          char* work) noexcept nogil
# out (n, stride) <- the best score of a labeling with that state, 0 in the padding.
cdef void forest_max_marginals(const ss_loop_table* loops, const Forest* forest, double* out,
                               char* work) noexcept nogil
# The k best labelings, concatenated; returns their number.  The heap has room for k * n candidates.
cdef Py_ssize_t forest_kbest(const ss_loop_table* loops, const Forest* forest, Py_ssize_t k,
                             int* labels, double* values, Candidate* heap,
                             char* work) noexcept nogil
