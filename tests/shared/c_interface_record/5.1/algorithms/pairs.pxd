from structsolve.abi_number cimport structsolve_abi_marker
cdef struct Pairs:
    const double* shared
    const double* edges
    double* buffer
cdef inline const double* pair_table(Pairs pairs, Py_ssize_t e, Py_ssize_t size) noexcept nogil:
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
cdef inline const double* pair_row(Pairs pairs, Py_ssize_t e, Py_ssize_t s, Py_ssize_t K, Py_ssize_t stride, double* row) noexcept nogil:
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
cdef inline double pair_score(Pairs pairs, Py_ssize_t e, Py_ssize_t s, Py_ssize_t t, Py_ssize_t K, Py_ssize_t stride) noexcept nogil:
    if pairs.edges == NULL:
        return pairs.shared[s * stride + t]
    if pairs.shared == NULL:
        return pairs.edges[(e * K + s) * stride + t]
    return pairs.shared[s * stride + t] + pairs.edges[(e * K + s) * stride + t]
