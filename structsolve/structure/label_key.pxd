# A hash of labels as integers, for caches.
from libc.stdint cimport uint64_t


cdef inline uint64_t label_key(const int* label, Py_ssize_t size) noexcept nogil:
    # FNV-1a over the entries: equal labels have equal keys.
    cdef uint64_t key = 1469598103934665603ULL
    cdef Py_ssize_t j
    for j in range(size):
        key = (key ^ <uint64_t><unsigned int>label[j]) * 1099511628211ULL
    return key
