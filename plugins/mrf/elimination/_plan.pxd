# Plans to eliminate the nodes of graphs.

# Maximum number of neighbours of a node when it is eliminated.
cdef enum:
    WIDEST = 32


# Plan of one graph.  The owner holds all arrays.
cdef struct Plan:
    Py_ssize_t n
    const int* order                # nodes in order of elimination
    const Py_ssize_t* scope_at      # (n + 1,) start of the remaining neighbours in `scope`
    const int* scope                # their steps, rising
    const Py_ssize_t* table_at      # offset of each step's table, in doubles
    const Py_ssize_t* choice_at     # (n + 1,) offset of its choices, in bytes
    Py_ssize_t doubles              # of the tables that live at once
    double entries                  # number of compared sums; 0: no plan


# Plans of all graphs of a shape.
cdef class Plans:
    cdef object graphs
    cdef bint keep
    cdef Py_ssize_t count
    cdef const Py_ssize_t[:, ::1] rows
    cdef const double[::1] cost
    cdef object owners
    cdef const int* order_p
    cdef const int* scope_p
    cdef const Py_ssize_t* scope_at_p
    cdef const Py_ssize_t* table_at_p
    cdef const Py_ssize_t* choice_at_p
    cdef readonly double most_entries   # most of any graph; infinite if one has no plan
    cdef Plan of(self, Py_ssize_t g) noexcept nogil
