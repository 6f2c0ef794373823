# Weights of one feature in training, by class in ascending order: those of the first classes, and
# of any block of the others, lie side by side.  Not part of the C interface.

from libc.stdint cimport int32_t
from libc.stdlib cimport realloc
from libc.string cimport memmove
from structsolve.plugins.extreme.weights.weight_table cimport SS_PREFETCH, Slot

cdef enum:
    LINE = 8                # slots of a cache line
    TOGETHER = 64           # classes that are searched before any is put between

cdef struct SortedRow:
    Slot* slots             # ascending classes; NULL if dense or empty
    float* dense            # a weight for every class, or NULL
    int32_t capacity, size, first   # places, entries, and entries of the head


cdef inline int32_t in_head(const SortedRow* row, int32_t c) noexcept nogil:
    """The first entry of the head whose class is at least c."""
    cdef const Slot* low = row.slots
    cdef int32_t left = row.first, half
    while left > 1:         # without branches, which would be unpredictable
        half = left >> 1
        low += (low[half - 1].c < c) * half
        left -= half
    return <int32_t>(low - row.slots) + (left == 1 and low.c < c)


cdef inline int32_t guess(const SortedRow* row, int32_t c, int32_t head, float each) noexcept nogil:
    """Where class c would be, were the `1 / each` classes after the head spread evenly."""
    cdef int32_t tail = row.size - row.first, i = <int32_t>(tail * (each * (c - head)))
    return row.first + (i if i < tail else tail)


cdef inline int32_t in_tail(const SortedRow* row, int32_t c, int32_t head,
                            float each) noexcept nogil:
    """The first entry after the head whose class is at least c."""
    cdef int32_t i = guess(row, c, head, each)
    while i > row.first and row.slots[i - 1].c >= c:
        i -= 1
    while i < row.size and row.slots[i].c < c:
        i += 1
    return i


cdef inline void prefetch_parts(const SortedRow* row, int32_t base, int32_t own, int32_t head,
                                float each) noexcept nogil:
    """Prefetch the head, and where the block from class `base` on, and class `own`, may be."""
    cdef int32_t j = 0
    while j < row.first:                    # all cache lines, so that misses overlap
        SS_PREFETCH(row.slots + j)
        j += LINE
    if row.first < row.size:
        j = guess(row, base, head, each)
        SS_PREFETCH(row.slots + (j - LINE // 2 if j > LINE // 2 else 0))
        SS_PREFETCH(row.slots + (j + LINE // 2 if j + LINE // 2 < row.size else row.size - 1))
        if own >= 0:
            SS_PREFETCH(row.slots + guess(row, own, head, each))


cdef inline bint add_sorted(SortedRow* row, const int32_t* ids, const float* values, Py_ssize_t n,
                            float a, int32_t head, float each) noexcept nogil:
    """Add ``a * values`` to the weights of n rising classes; return False if out of memory."""
    cdef int32_t[TOGETHER] places, news
    cdef int32_t i, j, end, missing, room
    cdef Py_ssize_t left = n
    cdef void* larger
    while left > 0:
        n = min(left, TOGETHER)
        missing = 0
        for j in range(n):
            i = in_head(row, ids[j]) if ids[j] < head else in_tail(row, ids[j], head, each)
            if i < row.size and row.slots[i].c == ids[j]:
                row.slots[i].w += a * values[j]
            else:
                places[missing], news[missing] = i, j
                missing += 1
        if row.size + missing > row.capacity:
            room = row.size + missing + row.size // 2 + 2
            larger = realloc(row.slots, room * sizeof(Slot))
            if larger == NULL:
                return False
            row.slots, row.capacity = <Slot*>larger, room
        end, row.size = row.size, row.size + missing
        while missing > 0:      # from the end: what lies after a new class moves once
            missing -= 1
            i, j = places[missing], news[missing]
            memmove(row.slots + i + missing + 1, row.slots + i, (end - i) * sizeof(Slot))
            row.slots[i + missing].c, row.slots[i + missing].w = ids[j], a * values[j]
            row.first += ids[j] < head
            end = i
        ids, values, left = ids + n, values + n, left - n
    return True
