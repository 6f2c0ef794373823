# All labelings of a small two-state model: the best one, max-marginals, the k best.
from structsolve.plugins.mrf.tables._model cimport Model

# Whether enumeration takes the model (at most 20 nodes, all of two states, every score finite) and
# is faster than elimination, which compares so many sums; 0 if it does not take the model.
cdef bint cube_pays(const Model* model, double sums) noexcept nogil
# Bytes of `work` for models of so many nodes; `k` is 0 but for the k best.
cdef Py_ssize_t cube_bytes(Py_ssize_t max_nodes, Py_ssize_t k) noexcept nogil
cdef void cube_argmax(const Model* model, int* label, double* value, char* work) noexcept nogil
# out (as model.unary) <- the best score of a labeling with that state.
cdef void cube_marginals(const Model* model, double* out, char* work) noexcept nogil
# Like Oracle.kbest of the model.
cdef Py_ssize_t cube_kbest(const Model* model, Py_ssize_t k, int* labels, double* values,
                           char* work) noexcept nogil
