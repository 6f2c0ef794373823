# The heap of Lawler's partition: the best labeling of every set that is still to be looked at.


cdef struct Candidate:
    # A labeling as it differs from an earlier answer: equal to answer `path` on one side of
    # position v, state s at v, the best choice on the other side.
    double value
    int path, v, s


cdef inline void push(Candidate* heap, Py_ssize_t* size, Candidate item) noexcept nogil:
    cdef Py_ssize_t j = size[0], up
    size[0] += 1
    while j:
        up = (j - 1) / 2
        if heap[up].value >= item.value:
            break
        heap[j] = heap[up]
        j = up
    heap[j] = item


cdef inline Candidate pop(Candidate* heap, Py_ssize_t* size) noexcept nogil:
    cdef Candidate first = heap[0], item
    cdef Py_ssize_t j = 0, down = 1
    size[0] -= 1
    item = heap[size[0]]
    while down < size[0]:
        if down + 1 < size[0] and heap[down + 1].value > heap[down].value:
            down += 1
        if item.value >= heap[down].value:
            break
        heap[j] = heap[down]
        j = down
        down = 2 * j + 1
    heap[j] = item
    return first
