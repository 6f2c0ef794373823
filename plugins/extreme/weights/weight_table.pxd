# Growing tables of class weights by feature, for training.  Not part of the C interface.

from libc.stdint cimport int32_t, uint32_t, uint64_t

cdef extern from "structsolve/simd/prefetch.h" nogil:
    void SS_PREFETCH(const void* address)

cdef struct Slot:
    int32_t c               # -1 is free
    float w

cdef struct Row:
    Slot* slots             # open addressing; NULL if dense
    float* dense            # a weight for every class, or NULL
    int32_t capacity, size


cdef inline uint32_t hashed(int32_t c) noexcept nogil:
    return <uint32_t>c * <uint32_t>2654435769


cdef inline uint32_t place_of(uint32_t code, int32_t capacity) noexcept nogil:
    return <uint32_t>((<uint64_t>code * <uint64_t>capacity) >> 32)


cdef inline float* find(const Row* row, int32_t c, uint32_t code) noexcept nogil:
    """The address of the weight of class c; NULL if it is not stored."""
    cdef int32_t j
    cdef Slot* slots = row.slots
    if slots == NULL:
        return row.dense + c if row.dense != NULL else NULL
    j = place_of(code, row.capacity)
    while slots[j].c != c:
        if slots[j].c < 0:
            return NULL
        j = j + 1 if j + 1 < row.capacity else 0
    return &slots[j].w


cdef inline void prefetch(const Row* row, int32_t c, uint32_t code) noexcept nogil:
    if row.slots != NULL:
        SS_PREFETCH(row.slots + place_of(code, row.capacity))
    elif row.dense != NULL:
        SS_PREFETCH(row.dense + c)


# Adds v to the weight of class c.  Raises MemoryError if out of memory.  A row becomes dense when its
# table would take more memory than `n_classes` weights.
cdef int add(Row* row, int32_t c, float v, int32_t n_classes) except -1 nogil


cdef class WeightTable:
    cdef Row* rows
    cdef readonly Py_ssize_t n_features
    cdef readonly int32_t n_classes
