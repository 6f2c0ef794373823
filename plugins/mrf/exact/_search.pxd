# Exact search for the best labeling: what is cheap first, then best-first search.
from structsolve.plugins.mrf.tables._model cimport Model

# Bytes of `work` (8-byte aligned) for this model; only sizes are read.
cdef Py_ssize_t exact_bytes(const Model* model) noexcept nogil
# label, value <- the best labeling met; bound <- an upper bound of all scores.  Returns whether
# value is proven to be the maximum (-INFINITY: everything is forbidden), up to rounding, within
# about `steps` more steps of search.
cdef bint exact(const Model* model, double steps, int* label, double* value, double* bound,
                char* work) noexcept nogil
