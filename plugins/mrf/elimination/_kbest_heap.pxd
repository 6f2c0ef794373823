# The k best labelings of an enumeration, by their numbers, in a heap with the worst at its root.
from libc.math cimport INFINITY


cdef struct Ranked:
    double* value
    long long* code             # the labelings' numbers; of equal values the smaller one is better
    Py_ssize_t size, k


cdef inline Py_ssize_t ranked_bytes(Py_ssize_t k) noexcept nogil:
    return k * (sizeof(double) + sizeof(long long))


cdef inline void start_ranked(Ranked* best, Py_ssize_t k, char* work) noexcept nogil:
    best.value = <double*>work
    best.code = <long long*>(best.value + k)
    best.size, best.k = 0, k


cdef inline double entry_value(const Ranked* best) noexcept nogil:
    # A later labeling must exceed this value to be among the best.
    return best.value[0] if best.size == best.k else -INFINITY


cdef inline bint _worse(const Ranked* best, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    if best.value[a] != best.value[b]:
        return best.value[a] < best.value[b]
    return best.code[a] > best.code[b]


cdef inline void _swap(Ranked* best, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    best.value[a], best.value[b] = best.value[b], best.value[a]
    best.code[a], best.code[b] = best.code[b], best.code[a]


cdef inline void _sink(Ranked* best) noexcept nogil:
    cdef Py_ssize_t j = 0, child
    while True:
        child = 2 * j + 1
        if child >= best.size:
            return
        if child + 1 < best.size and _worse(best, child + 1, child):
            child += 1
        if not _worse(best, child, j):
            return
        _swap(best, j, child)
        j = child


cdef inline void enter(Ranked* best, double value, long long code) noexcept nogil:
    # Codes must not repeat; a value of -INFINITY is ignored.
    cdef Py_ssize_t j = best.size
    if value == -INFINITY:
        return
    if best.size < best.k:
        best.value[j], best.code[j] = value, code
        best.size += 1
        while j and _worse(best, j, (j - 1) // 2):
            _swap(best, j, (j - 1) // 2)
            j = (j - 1) // 2
    elif value > best.value[0] or (value == best.value[0] and code < best.code[0]):
        best.value[0], best.code[0] = value, code
        _sink(best)


cdef inline Py_ssize_t best_first(Ranked* best) noexcept nogil:
    # Sort in place, best first; returns their number.
    cdef Py_ssize_t count = best.size
    while best.size > 1:
        best.size -= 1
        _swap(best, 0, best.size)
        _sink(best)
    return count
