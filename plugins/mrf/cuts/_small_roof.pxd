# Roof duality of small models: nodes as bits of one word, capacities in a dense matrix.
from structsolve.plugins.mrf.tables._model cimport Model

cdef enum:
    SMALL = 32          # nodes: the doubled graph has one bit of a word for each of its nodes

# Bytes of `work` (8-byte aligned) for models of n nodes; those of more than SMALL need none.
cdef Py_ssize_t small_roof_bytes(Py_ssize_t n) noexcept nogil
# state[v] <- 0, 1, or 2 for one half each, see roof_dual(); False if the model does not
# fit: more than SMALL nodes, a node without two states, scores without a finite sum.
cdef bint small_roof(const Model* model, signed char* state, char* work) noexcept nogil
