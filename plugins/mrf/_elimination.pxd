# Best labelings of narrow graphs by eliminating one node after the other, along a plan.
from structsolve.plugins.mrf._elimination_plan cimport Plan, Plans
from structsolve.plugins.mrf._model cimport Model
from structsolve.plugins.mrf._shape cimport GraphShape

# Bytes of work along a plan, a multiple of 64.
cdef Py_ssize_t elimination_bytes(const Plan* plan, const Model* model) noexcept nogil
# label <- the best labeling, returned: its score, -INFINITY where all are forbidden (and label 0).
cdef double eliminate(const Model* model, const Plan* plan, int* label, char* work) noexcept nogil

# As Oracle.kbest along a plan that keeps its tables, but 0 where all are forbidden.
cdef Py_ssize_t elimination_kbest_bytes(const Plan* plan, const Model* model,
                                        Py_ssize_t k) noexcept nogil
cdef Py_ssize_t eliminate_kbest(const Model* model, const Plan* plan, Py_ssize_t k, int* labels,
                                double* values, char* work) noexcept nogil

# Of the graph that needs most: for the k best, or where k is 0, the best.
cdef Py_ssize_t largest_work(Plans plans, GraphShape shape, Py_ssize_t k) except -1
