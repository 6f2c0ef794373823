# Plans of how graphs are eliminated.

# Neighbours of a node when it goes, at most.
cdef enum:
    WIDEST = 32


# How one graph is eliminated.  All arrays are the owner's.
cdef struct Plan:
    Py_ssize_t n
    const int* order                # nodes, the first to go first
    const Py_ssize_t* scope_at      # (n + 1,) where the neighbours that are left begin in `scope`
    const int* scope                # steps at which they go, rising
    const Py_ssize_t* table_at      # where the table of each step lies among doubles
    const Py_ssize_t* choice_at     # (n + 1,) where its choices lie, in bytes
    Py_ssize_t doubles              # of the tables that live at once
    double entries                  # sums that are compared on the way; 0: there is no plan


# Plans of all graphs of a shape.
cdef class Plans:
    cdef object graphs
    cdef bint keep
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
