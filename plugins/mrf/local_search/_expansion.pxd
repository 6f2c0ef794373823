# Alpha-expansion from a labeling.
from structsolve.plugins.mrf.tables._model cimport Model

# Bytes of `work` (8-byte aligned) for this model; only sizes are read.
cdef Py_ssize_t expand_bytes(const Model* model) noexcept nogil
# Replaces `label` by a better one, or keeps it; returns its score.  Forbidden labelings stay.
cdef double expand(const Model* model, int* label, char* work) noexcept nogil
