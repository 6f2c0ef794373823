# Max-marginals and best labelings of a small model by enumeration, one state changed at a time.
from structsolve.plugins.mrf._model cimport Model

# Bytes of `work` for a model with so many nodes, and scores of nodes in all.
cdef Py_ssize_t walk_bytes(Py_ssize_t max_nodes, Py_ssize_t max_unary) noexcept nogil
# out (as model.unary) <- the best score of a labeling with that state.
cdef void walk_marginals(const Model* model, double* out, char* work) noexcept nogil
# As Oracle.kbest of the model.
cdef Py_ssize_t walk_kbest_bytes(Py_ssize_t max_nodes, Py_ssize_t max_unary,
                                 Py_ssize_t k) noexcept nogil
cdef Py_ssize_t walk_kbest(const Model* model, Py_ssize_t k, int* labels, double* values,
                           char* work) noexcept nogil
