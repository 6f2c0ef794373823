"""Energies of edges between two-state nodes whose tables forbid some pairs of states."""

from libc.math cimport INFINITY, fabs


cdef PairEnergy forbidding_energy(const double* t) noexcept nogil:
    cdef PairEnergy edge
    cdef int j
    cdef bint no00 = t[0] == -INFINITY, no01 = t[1] == -INFINITY
    cdef bint no10 = t[2] == -INFINITY, no11 = t[3] == -INFINITY
    cdef int count = no00 + no01 + no10 + no11
    edge.u = edge.v = edge.first = edge.second = edge.size = 0
    for j in range(4):
        edge.size += fabs(t[j]) if t[j] > -INFINITY else 0
    edge.apart = False
    edge.banned_u = (no00 and no01) | ((no10 and no11) << 1)
    edge.banned_v = (no00 and no10) | ((no01 and no11) << 1)
    if count == 1:
        # Three finite entries are a sum of both ends' scores.
        edge.u = t[1] - t[3] if no00 or no10 else t[0] - t[2]
        edge.v = t[2] - t[3] if no00 or no01 else t[0] - t[1]
        edge.apart = no01 or no10
        if no00 or no01:
            edge.first = INFINITY
        else:
            edge.second = INFINITY
    elif count == 2:
        if edge.banned_u:
            edge.v = t[2] - t[3] if no00 else t[0] - t[1]
        elif edge.banned_v:
            edge.u = t[1] - t[3] if no00 else t[0] - t[2]
        else:
            edge.apart = no01
            edge.first = edge.second = INFINITY
            if no01:
                edge.u = edge.v = (t[0] - t[3]) / 2
            else:
                edge.u = (t[1] - t[2]) / 2
                edge.v = -edge.u
    return edge
