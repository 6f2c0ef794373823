# Roof duality of small models: nodes as bits of one word, capacities in a dense matrix.
from libc.math cimport fabs
from libc.stdint cimport uint64_t
from structsolve.plugins.mrf.tables._model cimport Model

cdef extern from *:
    """
    #if defined(_MSC_VER)
    #include <intrin.h>
    static __inline int ss_lowest(uint64_t x) {
      unsigned long bit;
      _BitScanForward64(&bit, x);
      return (int)bit;
    }
    #else
    #define ss_lowest(x) __builtin_ctzll(x)
    #endif
    """
    int ss_lowest(uint64_t x) nogil

cdef enum:
    SMALL = 32          # nodes: the doubled graph has one bit of a word for each of its nodes

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
# Decides the k <= SMALL nodes of `node`, given that the others are fixed; `memory` has
# 2 k + 4 k^2 doubles.
cdef void solve_small(const Dense* dense, int k, const int* node, double* memory,
                      signed char* state) noexcept nogil

# Bytes of `work` (8-byte aligned) for models of n nodes; those of more than SMALL need none.
cdef Py_ssize_t small_roof_bytes(Py_ssize_t n) noexcept nogil
# state[v] <- 0, 1, or 2 for one half each, see roof_dual(); False if the model does not
# fit: more than SMALL nodes, or as read_dense() says.
cdef bint small_roof(const Model* model, signed char* state, char* work) noexcept nogil
