# Exact search for the best labeling, by branch and bound.
from structsolve.plugins.mrf._model cimport Model

# Bytes of `work` (8-byte aligned) for this model; only sizes are read.
cdef Py_ssize_t exact_bytes(const Model* model) noexcept nogil
# label, value <- the best labeling found; bound <- no labeling scores more.  Returns whether it is
# proven that value is the maximum (-INFINITY: everything is forbidden) to rounding, before
# `node_limit` partial labelings were looked at.
cdef bint exact(const Model* model, long long node_limit, int* label, double* value,
                double* bound, char* work) noexcept nogil
