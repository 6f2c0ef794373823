# Max-product on graphs without cycles, and on induced forests of any graph.
from structsolve.plugins.mrf.tables._model cimport Model

# Bytes of `work` for a model with so many node scores.
cdef Py_ssize_t forest_bytes(Py_ssize_t max_unary) noexcept nogil
# Best labeling; `order` lists nodes from roots to leaves, `up` the edges to their parents (-1).
cdef void forest_argmax(const Model* model, const int* order, const int* up, int* label,
                        char* work) noexcept nogil
# out (as model.unary) <- the best score of a labeling with that state.
cdef void forest_marginals(const Model* model, const int* order, const int* up, double* out,
                           char* work) noexcept nogil
# Like Oracle.kbest of the model.
cdef Py_ssize_t forest_kbest_bytes(Py_ssize_t max_nodes, Py_ssize_t max_unary,
                                   Py_ssize_t k) noexcept nogil
cdef Py_ssize_t forest_kbest(const Model* model, const int* order, const int* up, Py_ssize_t k,
                             int* labels, double* values, char* work) noexcept nogil

# Bytes of `work` (8-byte aligned) of forest_move for this model; only sizes are read.
cdef Py_ssize_t move_bytes(const Model* model) noexcept nogil
# Sets the nodes of a maximal induced forest, grown from node `start` up (`backwards`: down), to
# their best joint states; other nodes stay.  The score never falls, up to rounding.
cdef void forest_move(const Model* model, Py_ssize_t start, bint backwards, int* label,
                      char* work) noexcept nogil
