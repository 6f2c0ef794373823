# Two-state models as a dense matrix of couplings, some of whose nodes are fixed.
from libc.math cimport fabs
from structsolve.plugins.mrf.tables._model cimport Model

cdef struct Dense:
    Py_ssize_t n, stride        # nodes; doubles from row to row
    double* cost                # of state 1 in place of 0, given the fixed neighbours
    double* slack               # most that free neighbours can change `cost`, either way
    double* size                # sum of the magnitudes that `cost` is computed from
    double* coupling            # (n, stride) symmetric: half of the extra cost of different states


cdef inline Py_ssize_t dense_stride(Py_ssize_t n) noexcept nogil:
    return (n + 3) / 4 * 4


# Lays out n nodes in `work`, of (3 + n) dense_stride(n) doubles.
cdef inline void place_dense(Dense* dense, Py_ssize_t n, char* work) noexcept nogil:
    dense.n, dense.stride = n, dense_stride(n)
    dense.cost = <double*>work
    dense.slack = dense.cost + dense.stride
    dense.size = dense.slack + dense.stride
    dense.coupling = dense.size + dense.stride


# Gives v the state that it prefers, and its neighbours the influence of that.
cdef inline void fix_node(Dense* dense, Py_ssize_t v, signed char* state) noexcept nogil:
    cdef const double* row = dense.coupling + v * dense.stride
    cdef double* cost = dense.cost
    cdef double* slack = dense.slack
    cdef double sign
    cdef Py_ssize_t w
    state[v] = cost[v] < 0
    sign = 1 - 2 * state[v]
    for w in range(dense.stride):
        cost[w] += sign * row[w]
        slack[w] -= fabs(row[w])


# False if the model does not fit: a node without two states, parallel edges with opposed scores,
# scores without a finite sum.
cdef bint read_dense(Dense* dense, const Model* model) noexcept nogil
