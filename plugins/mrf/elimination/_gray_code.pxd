# All labelings of a small model, one after the other: the best one, max-marginals, the k best.
from structsolve.plugins.mrf.tables._model cimport Model

# Bytes of `work` for models with so many nodes and node scores.
cdef Py_ssize_t gray_bytes(Py_ssize_t max_nodes, Py_ssize_t max_unary) noexcept nogil
# Whether cube_argmax() takes the model: at most 20 nodes, all of two states, every score finite.
cdef bint cube_fits(const Model* model) noexcept nogil
cdef void cube_argmax(const Model* model, int* label, double* value, char* work) noexcept nogil
# out (as model.unary) <- the best score of a labeling with that state.
cdef void gray_marginals(const Model* model, double* out, char* work) noexcept nogil
# Like Oracle.kbest of the model, but 0 if all labelings are forbidden.
cdef Py_ssize_t gray_kbest_bytes(Py_ssize_t max_nodes, Py_ssize_t max_unary,
                                 Py_ssize_t k) noexcept nogil
cdef Py_ssize_t gray_kbest(const Model* model, Py_ssize_t k, int* labels, double* values,
                           char* work) noexcept nogil
