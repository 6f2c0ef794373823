from libc.string cimport memcpy
from structsolve.abi_number cimport structsolve_abi_marker
cdef inline double* _value_in(char* pool, Py_ssize_t room, Py_ssize_t j) noexcept nogil:
    return <double*>(pool + j * room)
cdef inline void take_best(char* pool, Py_ssize_t room, Py_ssize_t* size, char* best) noexcept nogil:
    cdef Py_ssize_t j, first = 0
    for j in range(1, size[0]):
        if _value_in(pool, room, j)[0] > _value_in(pool, room, first)[0]:
            first = j
    size[0] -= 1
    memcpy(best, pool + first * room, room)
    if first < size[0]:
        memcpy(pool + first * room, pool + size[0] * room, room)
cdef inline void keep(char* pool, Py_ssize_t room, Py_ssize_t* size, Py_ssize_t most, const char* new) noexcept nogil:
    cdef Py_ssize_t j, worst = 0
    if size[0] < most:
        memcpy(pool + size[0] * room, new, room)
        size[0] += 1
        return
    for j in range(1, size[0]):
        if _value_in(pool, room, j)[0] < _value_in(pool, room, worst)[0]:
            worst = j
    if (<double*>new)[0] > _value_in(pool, room, worst)[0]:
        memcpy(pool + worst * room, new, room)
