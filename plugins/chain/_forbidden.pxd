# Neighbours that no labeling of a chain has: scores of -inf, whatever the weights are.
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.chain._shape cimport ChainShape


cdef class Forbidden:
    cdef ChainShape shape
    cdef readonly Py_ssize_t room       # bytes of work that apply() takes, from their begin
    cdef const double[:, ::1] pairs     # 0 and -inf; rows of `stride`, as in theta
    cdef const double[::1] first, last

    # The scores of example i, copied into work, with those of forbidden states and pairs at -inf.
    cdef const double* apply(self, Py_ssize_t i, const double* theta, char* work) noexcept nogil


cdef inline const double* allowed(Forbidden forbidden, Py_ssize_t i, const double* theta,
                                  char** work) noexcept nogil:
    # The scores as constraints leave them, if there are any; work begins behind them then.
    if forbidden is None:
        return theta
    work[0] += forbidden.room
    return forbidden.apply(i, theta, work[0] - forbidden.room)


cdef inline Py_ssize_t room_of(Forbidden forbidden) noexcept nogil:
    return 0 if forbidden is None else forbidden.room


# What forbids the neighbours that masks (pairs, first, last) name; None without masks.
cdef Forbidden forbidden_of(object masks, PartLayout layout)
