# All labelings of a two-state model without forbidden states.
from structsolve.plugins.mrf._model cimport Model

# Can it be asked?  Every node has two states, every score is finite.
cdef bint cube_fits(const Model* model) noexcept nogil
# Bytes of `work` for models of so many nodes.
cdef Py_ssize_t cube_bytes(Py_ssize_t max_nodes) noexcept nogil
cdef void cube_argmax(const Model* model, int* label, double* value, char* work) noexcept nogil
# out (as model.unary) <- the best score of a labeling with that state.
cdef void cube_marginals(const Model* model, double* out, char* work) noexcept nogil
# As Oracle.kbest of the model.
cdef Py_ssize_t cube_kbest_bytes(Py_ssize_t max_nodes, Py_ssize_t k) noexcept nogil
cdef Py_ssize_t cube_kbest(const Model* model, Py_ssize_t k, int* labels, double* values,
                           char* work) noexcept nogil
