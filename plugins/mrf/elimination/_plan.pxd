# Plans to eliminate the nodes of graphs.
from structsolve.plugins.mrf._model cimport Model

# Maximum number of neighbours of a node when it is eliminated.
cdef enum:
    WIDEST = 32


# Plan of one graph, whose arrays make_plan() allocates.
cdef struct Plan:
    Py_ssize_t n
    const int* order                # nodes in order of elimination
    const Py_ssize_t* scope_at      # (n + 1,) start of the remaining neighbours in `scope`
    const int* scope                # their steps, rising
    const Py_ssize_t* table_at      # offset of each step's table, in doubles
    const Py_ssize_t* choice_at     # (n + 1,) offset of its choices, in bytes
    Py_ssize_t doubles              # of the tables that live at once
    double entries                  # number of compared sums; 0: no plan


# plan <- the cheapest one within limits, of entries of a table and of compared sums, if there is
# one; `keep` keeps all tables, for the k best.  free_plan() releases its arrays.
cdef int make_plan(const Model* model, double most_table, double most_entries, bint keep,
                   Plan* plan) except -1 nogil
cdef void free_plan(Plan* plan) noexcept nogil


# Plans of all graphs of a shape.
cdef class Plans:
    cdef object graphs
    cdef bint keep
    cdef Py_ssize_t count
    cdef Plan* plans
    cdef readonly double most_entries   # most of any graph; infinite if one has no plan
    cdef Plan of(self, Py_ssize_t g) noexcept nogil
