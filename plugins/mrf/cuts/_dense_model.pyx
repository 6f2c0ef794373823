"""Reading of two-state models into a dense matrix of couplings."""

from libc.math cimport INFINITY, fabs
from libc.string cimport memset

from structsolve.plugins.mrf.tables._model cimport Model

# As in _roof_duality: a sum that is rounding.
cdef double ROUNDING = 1e-15


cdef bint read_dense(Dense* dense, const Model* model) noexcept nogil:
    cdef Py_ssize_t n = model.n, v, w, e
    cdef const double* t
    cdef double equal, other, size, c, half, known, total = 0
    cdef double* cost = dense.cost
    cdef bint two = True
    memset(dense.slack, 0, dense.stride * sizeof(double))
    memset(dense.coupling, 0, n * dense.stride * sizeof(double))
    for v in range(n):
        two &= model.states[v] == 2
    if not two:
        return False
    for v in range(n):
        t = model.unary + model.unary_at[v]
        cost[v] = t[0] - t[1]
        dense.size[v] = fabs(t[0]) + fabs(t[1])
        total += dense.size[v]
    for v in range(n, dense.stride):
        cost[v] = 0
    for e in range(model.m):
        t = model.pair + model.pair_at[e]
        v, w = model.ends[2 * e], model.ends[2 * e + 1]
        equal, other = t[0] + t[3], t[1] + t[2]
        c = equal - other
        size = fabs(t[0]) + fabs(t[1]) + fabs(t[2]) + fabs(t[3])
        half = c / 2 if fabs(c) > ROUNDING * size else 0
        total += size
        cost[v] += ((t[0] - t[2]) + (t[1] - t[3])) / 2
        cost[w] += ((t[0] - t[1]) + (t[2] - t[3])) / 2
        dense.size[v] += size
        dense.size[w] += size
        known = dense.coupling[v * dense.stride + w]
        # Parallel edges add up, but the relaxation may satisfy both of two that are opposed.
        if (known > 0 and half < 0) or (known < 0 and half > 0):
            return False
        half += known
        dense.slack[v] += fabs(half) - fabs(known)
        dense.slack[w] += fabs(half) - fabs(known)
        dense.coupling[v * dense.stride + w] = dense.coupling[w * dense.stride + v] = half
    return total < INFINITY         # NaN fails too
