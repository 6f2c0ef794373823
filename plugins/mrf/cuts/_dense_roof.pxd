# Roof duality of small and of dense models: nodes as bits of words, capacities in a dense matrix.
from structsolve.plugins.mrf.tables._model cimport Model

cdef enum:
    SMALL = 32          # nodes of models that may be sparse: one word holds them and their negations
    LARGE = 256         # nodes of models that are dense,
    SPARSE = 16         # and have at least n^2 / SPARSE edges
    WORDS = 8           # of a set of nodes, at most: LARGE / 32

# Bytes of `work` (8-byte aligned) for models of at most n nodes and m edges.
cdef Py_ssize_t dense_roof_bytes(Py_ssize_t n, Py_ssize_t m) noexcept nogil
# state[v] <- 0, 1, or 2 for one half each, see roof_dual(); False if the model does not
# fit: large, or neither small nor dense, or as read_dense() says.
cdef bint dense_roof(const Model* model, signed char* state, char* work) noexcept nogil
