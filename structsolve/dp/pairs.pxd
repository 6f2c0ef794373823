# Scores of pairs of states along edges: a table that all edges share, one per edge, or both.


cdef struct Pairs:
    Py_ssize_t K, stride    # every table has K rows of `stride` doubles
    const double* shared    # NULL where absent
    const double* edges     # one table after the other; NULL where absent
    double* buffer          # a table: for the one in use, where it has to be made


cdef inline const double* pair_table(const Pairs* pairs, Py_ssize_t e) noexcept nogil:
    # The table of edge e; in the buffer until the next call where both kinds are there.
    cdef Py_ssize_t j, size = pairs.K * pairs.stride
    cdef const double* own
    if pairs.edges == NULL:
        return pairs.shared
    own = pairs.edges + e * size
    if pairs.shared == NULL:
        return own
    for j in range(size):
        pairs.buffer[j] = pairs.shared[j] + own[j]
    return pairs.buffer


cdef inline const double* pair_row(const Pairs* pairs, Py_ssize_t e, Py_ssize_t s,
                                   double* row) noexcept nogil:
    # Row s of the same table; `row` may be written to.
    cdef Py_ssize_t t
    cdef const double* own
    cdef const double* common
    if pairs.edges == NULL:
        return pairs.shared + s * pairs.stride
    own = pairs.edges + (e * pairs.K + s) * pairs.stride
    if pairs.shared == NULL:
        return own
    common = pairs.shared + s * pairs.stride
    for t in range(pairs.stride):
        row[t] = common[t] + own[t]
    return row


cdef inline double pair_score(const Pairs* pairs, Py_ssize_t e, Py_ssize_t s,
                              Py_ssize_t t) noexcept nogil:
    # Entry [s, t] of the same table.
    if pairs.edges == NULL:
        return pairs.shared[s * pairs.stride + t]
    if pairs.shared == NULL:
        return pairs.edges[(e * pairs.K + s) * pairs.stride + t]
    return (pairs.shared[s * pairs.stride + t]
            + pairs.edges[(e * pairs.K + s) * pairs.stride + t])
