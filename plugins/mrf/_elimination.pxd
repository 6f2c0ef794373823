# Best labelings of narrow graphs by eliminating one node after the other, along a plan.
from structsolve.plugins.mrf._model cimport Model
from structsolve.plugins.mrf._shape cimport GraphShape


# How a graph is eliminated.  All arrays are the owner's.
cdef struct Plan:
    Py_ssize_t n
    const int* order                # nodes, the first to go first
    const Py_ssize_t* scope_at      # (n + 1,) where the neighbours that are left begin in `scope`
    const int* scope                # steps at which they go, rising
    const Py_ssize_t* table_at      # where the table of each step lies among doubles
    const Py_ssize_t* choice_at     # (n + 1,) where its choices lie, in bytes
    Py_ssize_t doubles              # of the tables that live at once
    double entries                  # sums that are compared on the way; 0: there is no plan


# Bytes of work along a plan, a multiple of 64.
cdef Py_ssize_t elimination_bytes(const Plan* plan, const Model* model) noexcept nogil
# label <- the best labeling, returned: its score, -INFINITY where all are forbidden (and label 0).
cdef double eliminate(const Model* model, const Plan* plan, int* label, char* work) noexcept nogil

# As Oracle.kbest along a plan that keeps its tables, but 0 where all are forbidden.
cdef Py_ssize_t elimination_kbest_bytes(const Plan* plan, const Model* model,
                                        Py_ssize_t k) noexcept nogil
cdef Py_ssize_t eliminate_kbest(const Model* model, const Plan* plan, Py_ssize_t k, int* labels,
                                double* values, char* work) noexcept nogil


# Plans of all graphs of a shape.
cdef class Plans:
    cdef Py_ssize_t count
    cdef const Py_ssize_t[:, ::1] rows
    cdef const double[::1] cost
    cdef object order, scope_at, scope, table_at, choice_at
    cdef const int* order_p
    cdef const int* scope_p
    cdef const Py_ssize_t* scope_at_p
    cdef const Py_ssize_t* table_at_p
    cdef const Py_ssize_t* choice_at_p
    cdef readonly double most_entries   # of any graph; infinite where one has no plan
    cdef Plan of(self, Py_ssize_t g) noexcept nogil
    cdef Py_ssize_t work_bytes(self, GraphShape shape, Py_ssize_t k) noexcept
