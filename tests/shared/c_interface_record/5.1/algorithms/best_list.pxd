from libc.math cimport INFINITY
from structsolve.abi_number cimport structsolve_abi_marker
cdef struct Entry:
    double value
    int back
    int rank
cdef inline bint insert(Entry* entries, int* count, Py_ssize_t k, double value, Py_ssize_t back, Py_ssize_t rank) noexcept nogil:
    cdef Py_ssize_t j
    if count[0] == 1 and entries[0].value == -INFINITY and value > -INFINITY:
        count[0] = 0
    if count[0] and (not value > -INFINITY or count[0] == k and not value > entries[k - 1].value):
        return False
    j = min(count[0], k - 1)
    while j > 0 and value > entries[j - 1].value:
        entries[j] = entries[j - 1]
        j -= 1
    entries[j].value, entries[j].back, entries[j].rank = value, <int>back, <int>rank
    count[0] = <int>min(count[0] + 1, k)
    return True
