# Forbidden neighbours in chains: their scores are -inf, whatever the weights are.
from structsolve.part_layout cimport PartLayout

from structsolve.plugins.chain._shape cimport ChainShape


cdef class Forbidden:
    cdef ChainShape shape
    cdef readonly Py_ssize_t room       # bytes that apply() uses at the start of work
    cdef const double[:, ::1] pairs     # 0 and -inf; rows of `stride`, as in theta
    cdef const double[::1] first, last

    # Copies the scores of example i to work, with -inf for forbidden states and pairs.
    cdef const double* apply(self, Py_ssize_t i, const double* theta, char* work) noexcept nogil


cdef inline const double* allowed(Forbidden forbidden, Py_ssize_t i, const double* theta,
                                  char** work) noexcept nogil:
    # The scores under the constraints, if any; these scores are put at the start of work.
    if forbidden is None:
        return theta
    work[0] += forbidden.room
    return forbidden.apply(i, theta, work[0] - forbidden.room)


cdef inline Py_ssize_t room_of(Forbidden forbidden) noexcept nogil:
    return 0 if forbidden is None else forbidden.room


# The Forbidden of masks (pairs, first, last); None without masks.
cdef Forbidden forbidden_of(object masks, PartLayout layout)
