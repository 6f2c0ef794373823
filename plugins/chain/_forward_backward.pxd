# Forward and backward messages of chains: the basis of marginals and samples.
from structsolve.algorithms.messages cimport Marginals
from structsolve.simd.loops cimport ss_loop_table

from structsolve.plugins.chain._shape cimport ChainShape


cdef extern from "passes.h" nogil:
    ctypedef int (*chain_forward)(Py_ssize_t, Py_ssize_t, Py_ssize_t, const double*, const double*,
                                  double*, double*) noexcept nogil
    ctypedef int (*chain_backward)(Py_ssize_t, Py_ssize_t, Py_ssize_t, const double*,
                                   const double*, double*, double*) noexcept nogil


cdef class ChainMessages:
    cdef readonly ChainShape shape
    cdef readonly Py_ssize_t work_bytes
    cdef const ss_loop_table* loops
    cdef bint whole                 # one call makes a whole pass, not one row
    cdef chain_forward go_forward
    cdef chain_backward go_backward

    # Marginals of p(y) ~ exp <theta, mu(y)>; value <- the log-partition.
    cdef int marginals(self, Py_ssize_t i, const double* theta, const Marginals* out,
                       double* value, char* work) except -1 nogil
    # Scaled forward pass; 0 if the log form is needed.  Exponentials of node scores and of a
    # shared table stay in work; exponentials of edge tables go to `edge` (NULL: to work, the last
    # table alone).
    cdef int forward(self, Py_ssize_t i, const double* theta, double* edge, double* value,
                     char* work) except -1 nogil
    # The forward pass with logarithms: each message is log sum_... less a constant per row.
    cdef void _pair_row(self, const double* theta, const double* edges, Py_ssize_t v, Py_ssize_t s,
                        double add, double* out) noexcept nogil
    cdef int log_forward(self, Py_ssize_t i, const double* theta, double* value,
                         char* work) except -1 nogil
    # The messages of either pass: one row per node, two spare rows behind max_length of them.
    cdef double* messages(self, char* work) noexcept nogil
    # Scaled passes over chains without edge rows.  After them, alpha[v, s] E[s, t] ahead[v + 1, t]
    # are the marginals of an edge.  Returns False if the log form is needed.
    cdef int scaled(self, Py_ssize_t i, const double* theta, const Marginals* out,
                    char* work) except -1 nogil
    cdef double* ahead(self, char* work) noexcept nogil
    cdef double* pair_exponentials(self, char* work) noexcept nogil
    # Score of the pair of states s, t at nodes v and v + 1.
    cdef double pair(self, const double* theta, const double* edges, Py_ssize_t v, Py_ssize_t s,
                     Py_ssize_t t) noexcept nogil

    cdef void _node_scores(self, Py_ssize_t i, const double* theta, double* psi) noexcept nogil
    cdef bint _shared_table(self, const double* x, double* table, double* shift) noexcept nogil
    cdef void _turn(self, double* table) noexcept nogil
    cdef void _ones(self, double* table) noexcept nogil
    cdef bint _backward(self, Py_ssize_t i, const Marginals* out, char* work) noexcept nogil
    cdef int _log_form(self, Py_ssize_t i, const double* theta, const Marginals* out,
                       double* value, char* work) except -1 nogil
