# The best labeling of some nodes without a cycle among them, given all others.
from structsolve.plugins.mrf._model cimport Model

# Bytes of `work` (8-byte aligned) for this model; only sizes are read.
cdef Py_ssize_t forest_bytes(const Model* model) noexcept nogil
# Gives the nodes of a maximal induced forest, grown from node `start` on (`backwards`: in falling
# order), their best states together; others keep theirs.  But for rounding the score never falls.
cdef void forest_move(const Model* model, Py_ssize_t start, bint backwards, int* label,
                      char* work) noexcept nogil
