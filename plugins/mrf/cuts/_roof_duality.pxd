# Roof duality: the linear relaxation of a two-state model by one maximum flow.
from structsolve.plugins.mrf.tables._model cimport Model

# Bytes of `work` (8-byte aligned) for a model of n nodes and m edges.
cdef Py_ssize_t roof_bytes(Py_ssize_t n, Py_ssize_t m) noexcept nogil
# Bytes of states and pairings, a multiple of 64.
cdef inline Py_ssize_t half_bytes(Py_ssize_t n, Py_ssize_t m) noexcept nogil:
    return (n + m + 63) // 64 * 64 + 64

# Maximum over the local polytope, and a half-integral mu that attains it: state[v] is 0, 1, or 2
# for one half each; pairing[e], for an edge between two half nodes, is 0 if mu_e has its mass
# on (0, 0) and (1, 1), 1 where on (0, 1) and (1, 0), and 0 for every other edge.  -INFINITY (and
# meaningless states) where every mu is forbidden.  Every model.states[v] is 1 or 2.
cdef double roof_dual(const Model* model, signed char* state, signed char* pairing,
                      char* work) noexcept nogil
# The same, always by the general algorithm (see _dense_roof).
cdef double network_roof(const Model* model, signed char* state, signed char* pairing,
                         char* work) noexcept nogil
# <theta, mu> of the mu that such states and pairings describe.
cdef double half_integral_score(const Model* model, const signed char* state,
                                const signed char* pairing) noexcept nogil
