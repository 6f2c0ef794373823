# Energies of two-state edges: costs of state 1 at each end, and of equal or different states.
from libc.math cimport INFINITY, fabs

# A sum below this factor times its largest term counts as zero: it is rounding error.
cdef inline bint rounded_off(double total, double size) noexcept nogil:
    return fabs(total) <= 1e-15 * size


cdef struct PairEnergy:
    # The energy of an edge: state 1 instead of 0 costs `u` at one end and `v` at the other, and
    # equal (apart = 0) or different (apart = 1) states cost `first` and `second`.  For apart = 1,
    # `first` is the cost of states (0, 1); for apart = 0, of states (0, 0).
    double u, v, first, second
    double size                 # sum of the finite entries' magnitudes: the scale of rounding
    bint apart
    int banned_u, banned_v      # bit s: state s is impossible


# The energy of a table with entries of -inf.
cdef PairEnergy forbidding_energy(const double* t) noexcept nogil


# The energy of a table t, row-major, of at most two states at each end.
cdef inline PairEnergy pair_energy(const double* t, int states_u, int states_v) noexcept nogil:
    cdef PairEnergy edge
    cdef double equal, other, c
    if states_u == 2 and states_v == 2:
        equal, other = t[0] + t[3], t[1] + t[2]
        if equal + other == -INFINITY:
            return forbidding_energy(t)
        c = equal - other
        edge.size = fabs(t[0]) + fabs(t[1]) + fabs(t[2]) + fabs(t[3])
        if rounded_off(c, edge.size):
            c = 0
        edge.u = ((t[0] - t[2]) + (t[1] - t[3])) / 2
        edge.v = ((t[0] - t[1]) + (t[2] - t[3])) / 2
        edge.apart = c >= 0
        edge.first = edge.second = fabs(c) / 2
        edge.banned_u = edge.banned_v = 0
        return edge
    edge.u = edge.v = edge.first = edge.second = edge.size = 0
    edge.apart = False
    edge.banned_u = edge.banned_v = 0
    if states_u == 2:
        edge.banned_u = (t[0] == -INFINITY) | ((t[1] == -INFINITY) << 1)
        if not edge.banned_u:
            edge.u, edge.size = t[0] - t[1], fabs(t[0]) + fabs(t[1])
    elif states_v == 2:
        edge.banned_v = (t[0] == -INFINITY) | ((t[1] == -INFINITY) << 1)
        if not edge.banned_v:
            edge.v, edge.size = t[0] - t[1], fabs(t[0]) + fabs(t[1])
    elif t[0] == -INFINITY:
        edge.banned_u = 1
    return edge
