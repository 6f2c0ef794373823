# Alpha-expansion from a labeling.
from structsolve.plugins.mrf._model cimport Model

# Bytes of `work` (8-byte aligned) for this model; only sizes are read.
cdef Py_ssize_t expand_bytes(const Model* model) noexcept nogil
# Changes `label` for a better one, or leaves it; returns its score.  Forbidden labelings stay.
cdef double expand(const Model* model, int* label, char* work) noexcept nogil
