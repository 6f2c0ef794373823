# Descent by cycle canceling in a network with piecewise-linear costs of arcs.

cdef struct Costs:
    Py_ssize_t n, m
    const int* ends
    const long long* first      # (m + 1,) where the kinks of each arc start
    const double* kinks
    double* slopes              # slopes[k]: between kinks k and k + 1; the last of an arc: unused
    double* levels              # costs at the kinks, minus the cost at the arc's lowest kink
    double widest               # range of flows of the widest arc
    double highest              # the largest level, without its sign


# Memory of the search for a cycle.
cdef struct Room:
    double* up                  # (m,) costs of more flow
    double* down                # (m,)
    double* moves               # (m,) the sum of the last cycles
    double* dist                # (n,) distances
    int* via                    # (n,) residual arc to each node, -1: none
    int* seen                   # (n,)
    int* cycle                  # (n,) the cycle


cdef struct State:
    bint idle                   # descent ended in cycles that gained no more than rounding
    double* y
    long long* place            # 2 k: at kink k; 2 k + 1: between k and k + 1 (of all kinks)


# Computes levels, widest and highest from kinks and slopes, for the functions below.
cdef void measure(Costs* c) noexcept nogil
# Descends from s.y; returns the number of cycles, -1 if `most` were not enough.
cdef Py_ssize_t descend(const Costs* c, State* s, const Room* r, double least,
                        Py_ssize_t most) noexcept nogil
# Cost minus that of the lowest kinks.
cdef double cost_of(const Costs* c, const State* s) noexcept nogil
