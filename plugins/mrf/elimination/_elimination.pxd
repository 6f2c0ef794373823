# Best labelings of narrow graphs by eliminating nodes one by one, along a plan.
from structsolve.plugins.mrf.elimination._plan cimport Plan, Plans
from structsolve.plugins.mrf.tables._model cimport Model
from structsolve.plugins.mrf.tables._shape cimport GraphShape

# Bytes of work along a plan, a multiple of 64.
cdef Py_ssize_t elimination_bytes(const Plan* plan, const Model* model) noexcept nogil
# label <- the best labeling; returns its score, or -INFINITY and label 0 if all are forbidden.
cdef double eliminate(const Model* model, const Plan* plan, int* label, char* work) noexcept nogil

# out (as model.unary) <- the best score of a labeling with that state; `unary` and `label` are memory
# for as many scores, and for a labeling.
cdef void eliminate_marginals(const Model* model, const Plan* plan, double* out, double* unary,
                              int* label, char* work) noexcept nogil

# Like Oracle.kbest along a plan that keeps its tables, but 0 if all are forbidden.
cdef Py_ssize_t elimination_kbest_bytes(const Plan* plan, const Model* model,
                                        Py_ssize_t k) noexcept nogil
cdef Py_ssize_t eliminate_kbest(const Model* model, const Plan* plan, Py_ssize_t k, int* labels,
                                double* values, char* work) noexcept nogil

# Maximum number of bytes over all graphs: for the k best, or for the best one if k is 0.
cdef Py_ssize_t largest_work(Plans plans, GraphShape shape, Py_ssize_t k) except -1
