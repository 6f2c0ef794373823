# Scores of pairs of states along edges: a table shared by all edges, one table per edge, or both.
# Every table has K rows of `stride` doubles.

from structsolve.abi_number cimport structsolve_abi_marker


cdef struct Pairs:
    const double* shared    # NULL if absent
    const double* edges     # concatenated tables; NULL if absent
    double* buffer          # room for the table in use, if it has to be built


cdef inline const double* pair_table(Pairs pairs, Py_ssize_t e, Py_ssize_t size) noexcept nogil:
    # The table of edge e, K * stride = size doubles; in the buffer until the next call if both
    # kinds exist.
    cdef Py_ssize_t j
    cdef const double* own
    if pairs.edges == NULL:
        return pairs.shared
    own = pairs.edges + e * size
    if pairs.shared == NULL:
        return own
    for j in range(size):
        pairs.buffer[j] = pairs.shared[j] + own[j]
    return pairs.buffer


cdef inline const double* pair_row(Pairs pairs, Py_ssize_t e, Py_ssize_t s, Py_ssize_t K,
                                   Py_ssize_t stride, double* row) noexcept nogil:
    # Row s of the same table; `row` is scratch memory.
    cdef Py_ssize_t t
    cdef const double* own
    cdef const double* common
    if pairs.edges == NULL:
        return pairs.shared + s * stride
    own = pairs.edges + (e * K + s) * stride
    if pairs.shared == NULL:
        return own
    common = pairs.shared + s * stride
    for t in range(stride):
        row[t] = common[t] + own[t]
    return row


cdef inline double pair_score(Pairs pairs, Py_ssize_t e, Py_ssize_t s, Py_ssize_t t, Py_ssize_t K,
                              Py_ssize_t stride) noexcept nogil:
    # Entry [s, t] of the same table.
    if pairs.edges == NULL:
        return pairs.shared[s * stride + t]
    if pairs.shared == NULL:
        return pairs.edges[(e * K + s) * stride + t]
    return pairs.shared[s * stride + t] + pairs.edges[(e * K + s) * stride + t]
