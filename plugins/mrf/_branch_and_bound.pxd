# Exact search for the best labeling, by branch and bound.
from structsolve.plugins.mrf._model cimport Model

# Bytes of `work` (8-byte aligned) for this model; only sizes are read.
cdef Py_ssize_t exact_bytes(const Model* model) noexcept nogil
# label, value <- the best labeling met; bound <- an upper bound of all scores.  Returns whether
# value is proven to be the maximum (-INFINITY: everything is forbidden), up to rounding, within
# `node_limit` partial labelings.
cdef bint exact(const Model* model, long long node_limit, int* label, double* value,
                double* bound, char* work) noexcept nogil
