# Max-product on graphs without cycles.
from structsolve.plugins.mrf._model cimport Model

# Bytes of `work` for a model with so many scores of nodes in all.
cdef Py_ssize_t forest_bytes(Py_ssize_t max_unary) noexcept nogil
# Best labeling; `order` lists nodes from roots to leaves, `up` the edges to their parents (-1).
cdef void forest_argmax(const Model* model, const int* order, const int* up, int* label,
                        char* work) noexcept nogil
# out (as model.unary) <- the best score of a labeling with that state.
cdef void forest_marginals(const Model* model, const int* order, const int* up, double* out,
                           char* work) noexcept nogil
