# The k best of many classes, in a heap with the worst at its root.  Ties go to lower classes.
# Not part of the C interface.
from libc.math cimport INFINITY
from libc.stdint cimport int32_t


cdef extern from "<math.h>" nogil:
    float nextafterf(float x, float y)


cdef extern from "best_classes.h" nogil:
    enum:
        SS_BLOCK
        SS_PART
    Py_ssize_t ss_next_above(const float* x, Py_ssize_t first, Py_ssize_t last, float worst)
    float ss_reached(const float* x, Py_ssize_t n, int k)


cdef inline bint better(float score, int32_t c, float other, int32_t d) noexcept nogil:
    return score > other or (score == other and c < d)


cdef inline void sink(float* best, int32_t* ids, Py_ssize_t size, Py_ssize_t j, float score,
                      int32_t c) noexcept nogil:
    """Sift an entry down from place j of a heap."""
    cdef Py_ssize_t child = 2 * j + 1
    while child < size:
        if child + 1 < size and better(best[child], ids[child], best[child + 1], ids[child + 1]):
            child += 1
        if not better(score, c, best[child], ids[child]):
            break
        best[j], ids[j] = best[child], ids[child]
        j, child = child, 2 * child + 1
    best[j], ids[j] = score, c


cdef inline Py_ssize_t offer(float* best, int32_t* ids, Py_ssize_t size, Py_ssize_t k,
                             float score, int32_t c) noexcept nogil:
    """Keep a class if it is among the k best so far; return the number of kept classes."""
    cdef Py_ssize_t j, up
    if size == k:
        if better(score, c, best[0], ids[0]):
            sink(best, ids, size, 0, score, c)
        return size
    j = size
    while j > 0:
        up = (j - 1) // 2
        if not better(best[up], ids[up], score, c):
            break
        best[j], ids[j] = best[up], ids[up]
        j = up
    best[j], ids[j] = score, c
    return size + 1


cdef inline Py_ssize_t offer_range(float* score, Py_ssize_t first, Py_ssize_t last,
                                   int32_t exclude, Py_ssize_t k, Py_ssize_t size, float* best,
                                   int32_t* ids) noexcept nogil:
    """Offer the classes first .. last - 1, whose numbers exceed those of all kept classes.

    The score of `exclude` is overwritten.
    """
    cdef float worst = -INFINITY
    cdef Py_ssize_t c = first, end
    if first <= exclude < last:
        score[exclude] = -INFINITY
    if size == 0 and 2 * k <= SS_BLOCK and last - first >= 4 * SS_BLOCK:
        # A first bound on the k-th best score, so that most classes never enter the heap.
        worst = nextafterf(ss_reached(score + first, last - first, <int>k), -INFINITY)
    if worst == -INFINITY:
        while c < last and size < k:
            if c != exclude:
                size = offer(best, ids, size, k, score[c], <int32_t>c)
            c += 1
        if size < k:
            return size
        worst = best[0]
    # Later classes lose ties, so only scores above the worst kept one matter.
    while True:
        c = ss_next_above(score, c, last, worst)
        if c >= last:
            return size
        end = c + SS_PART if c + SS_PART < last else last
        while c < end:
            if score[c] > worst and c != exclude:
                size = offer(best, ids, size, k, score[c], <int32_t>c)
                if size == k:
                    worst = best[0]
            c += 1


cdef inline Py_ssize_t sorted_heap(float* best, int32_t* ids, Py_ssize_t size, float* scores,
                                   int32_t* classes) noexcept nogil:
    """Move the entries of a heap to other arrays, best first; return their number."""
    cdef Py_ssize_t left = size
    while left > 0:
        left -= 1
        classes[left], scores[left] = ids[0], best[0]
        sink(best, ids, left, 0, best[left], ids[left])
    return size
