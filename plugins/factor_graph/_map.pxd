# From the parts and labels of factor graphs to those of their graphs of pairs, and back.
from structsolve.part_layout cimport PartLayout

cdef class FactorMap:
    cdef readonly PartLayout layout, inner
    cdef readonly object arrays                 # FactorArrays
    cdef readonly object shape                  # GraphShape of the inner graphs
    cdef readonly Py_ssize_t max_factors
    # Bytes of the scores and of a label of an inner graph, multiples of 64.
    cdef readonly Py_ssize_t theta_bytes, label_bytes
    cdef bint one_graph
    cdef object owners
    cdef const int* sources
    cdef const int* targets
    cdef const double* base
    cdef const Py_ssize_t* link_at
    cdef const Py_ssize_t* base_at
    cdef const Py_ssize_t* factor_at
    cdef const Py_ssize_t* table_at
    cdef const Py_ssize_t* member_at
    cdef const Py_ssize_t* members
    cdef const Py_ssize_t* steps
    cdef const Py_ssize_t* home_at
    cdef const Py_ssize_t* home_member_at
    cdef const Py_ssize_t* home_members
    cdef const Py_ssize_t* home_steps

    # out <- scores of the inner graph; `with_base`: -inf where entries and states differ.
    cdef void spread(self, Py_ssize_t i, const double* theta, bint with_base,
                     double* out) noexcept nogil
    # out <- marginals of the factor graph, dense.
    cdef void collect(self, Py_ssize_t i, const double* mu, double* out) noexcept nogil
    # inner <- the label of the inner graph.
    cdef void complete(self, Py_ssize_t i, const int* label, int* inner) noexcept nogil
    # Part that a label takes of the table of factor f, counted over all graphs.
    cdef Py_ssize_t cell(self, Py_ssize_t f, const int* label) noexcept nogil
    cdef double score(self, Py_ssize_t i, const double* theta, const int* label) noexcept nogil
