# Roof duality of dense models: nodes as bits of words, capacities in a dense matrix.
from structsolve.plugins.mrf.tables._model cimport Model

cdef enum:
    SMALL = 32          # nodes: the doubled graph has one bit of a word for each of its nodes
    LARGE = 256         # nodes of models that are dense,
    SPARSE = 16         # and have at least n^2 / SPARSE edges
    WORDS = 8           # of a set of nodes, at most: LARGE / 32

# Bytes of `work` (8-byte aligned) for models of at most n nodes and m edges.
cdef Py_ssize_t small_roof_bytes(Py_ssize_t n, Py_ssize_t m) noexcept nogil
# state[v] <- 0, 1, or 2 for one half each, see roof_dual(); False if the model does not
# fit: large or sparse, a node without two states, parallel edges with opposed scores, scores
# without a finite sum.
cdef bint small_roof(const Model* model, signed char* state, char* work) noexcept nogil
