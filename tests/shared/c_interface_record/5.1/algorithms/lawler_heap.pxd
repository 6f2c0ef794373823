from libc.math cimport INFINITY
from structsolve.abi_number cimport structsolve_abi_marker
cdef struct Candidate:
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
cdef inline bint _follows(double x, double top, double now, bint later) noexcept nogil:
    return x > top and (x < now or (x == now and later))
cdef inline Py_ssize_t runner_up(Py_ssize_t K, const double* before, const double* pairs, const double* extra, Py_ssize_t step, double add, Py_ssize_t taken, double* top, double* now) noexcept nogil:
    cdef Py_ssize_t s, best = 0
    cdef double x, most = -INFINITY, own = before[taken]
    if pairs == NULL:
        for s in range(K):
            if _follows(before[s], most, own, s > taken):
                most, best = before[s], s
    elif extra == NULL:
        own = own + pairs[taken * step] + add
        for s in range(K):
            x = before[s] + pairs[s * step] + add
            if _follows(x, most, own, s > taken):
                most, best = x, s
    else:
        own = own + (pairs[taken * step] + extra[taken * step]) + add
        for s in range(K):
            x = before[s] + (pairs[s * step] + extra[s * step]) + add
            if _follows(x, most, own, s > taken):
                most, best = x, s
    top[0], now[0] = most, own
    return best
