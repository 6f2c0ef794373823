# All labelings of a small model, one state changed at a time.
from structsolve.operators cimport Cone

from structsolve.plugins.mrf._model cimport Model

# Bytes of `work` for a model with so many nodes, and scores of nodes in all.
cdef Py_ssize_t walk_bytes(Py_ssize_t max_nodes, Py_ssize_t max_unary) noexcept nogil
cdef void walk_argmax(const Model* model, int* label, double* value, char* work) noexcept nogil
# out (as model.unary) <- the best score of a labeling with that state.
cdef void walk_marginals(const Model* model, double* out, char* work) noexcept nogil
# Best h + lam g in the cone, where h scores by `model` and g by `cost`, a model of the same graph;
# returns 0 where no labeling is in it, else 1.
cdef bint walk_constrained(const Model* model, const Model* cost, const Cone* cone, int* label,
                           double* value, char* work) noexcept nogil
# Is a point of the label plane in the cone, strict and closed sides as it says?
cdef bint in_cone(const Cone* cone, double h, double g) noexcept nogil
