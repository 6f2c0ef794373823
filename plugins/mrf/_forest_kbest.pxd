# The k best labelings of a graph without cycles.
from structsolve.plugins.mrf._model cimport Model

# Bytes of `work` for a model with so many scores of nodes in all.
cdef Py_ssize_t forest_kbest_bytes(Py_ssize_t max_unary, Py_ssize_t k) noexcept nogil
# As Oracle.kbest of the model; `order` and `up` as forest_argmax.
cdef Py_ssize_t forest_kbest(const Model* model, const int* order, const int* up, Py_ssize_t k,
                             int* labels, double* values, char* work) noexcept nogil
