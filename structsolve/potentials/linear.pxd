# Linear potentials: theta_i = Phi_i w, w += coef Phi_i' p, and K_ii = Phi_i Phi_i'.
from libc.stdint cimport int64_t
from structsolve.abi_number cimport structsolve_abi_marker
from .features cimport FeatureRows


cdef enum Kind:
    SHARED
    NODE
    EDGE

cdef struct Place:
    Kind kind
    Py_ssize_t row, col     # of the example's nodes or edges; SHARED: row is the index itself


cdef class LinearPotentials:
    cdef readonly Py_ssize_t n, dim, shared_size, max_theta, max_nodes, max_edges
    cdef readonly Py_ssize_t node_size, edge_size, node_start, edge_start
    cdef readonly object layout
    cdef FeatureRows nodes, edges
    cdef const int64_t* offsets         # nodes of example i: offsets[i] .. offsets[i + 1]
    cdef const int64_t* edge_offsets
    cdef readonly bint has_gram
    cdef double[::1] node_gram          # Gram blocks of all examples, concatenated; or none
    cdef int64_t[::1] gram_offsets
    cdef const double* node_factors     # factor of each part of the node block, or NULL
    cdef readonly object node_scale     # the same as an array of node_size doubles, or None
    cdef object owners
    # Room for later members; see abi_number.pxd.
    cdef bint _flag0, _flag1, _flag2, _flag3
    cdef Py_ssize_t _room0, _room1, _room2, _room3

    # the row of features and the column of entry `index` of theta_i
    cdef Place _place(self, Py_ssize_t i, int index) noexcept nogil
    cdef Py_ssize_t _run(self, Py_ssize_t i, Py_ssize_t nnz, const int* index, Place* place,
                         int* cols) noexcept nogil
    cdef Py_ssize_t theta_size(self, Py_ssize_t i) noexcept nogil
    # theta = scale * Phi_i w
    cdef void score(self, Py_ssize_t i, const double* w, double scale,
                    double* theta) noexcept nogil
    # w += coef * Phi_i' p, p sparse
    cdef void add(self, Py_ssize_t i, Py_ssize_t nnz, const int* index, const double* value,
                  double coef, double* w) noexcept nogil
    # w = 0 where add() with these parts changed it
    cdef void clear(self, Py_ssize_t i, Py_ssize_t nnz, const int* index, double* w) noexcept nogil
    # out[k] = entry index[k] of Phi_i w
    cdef void scores(self, Py_ssize_t i, Py_ssize_t nnz, const int* index, const double* w,
                     double* out) noexcept nogil
    # <Phi_i w, p> without computing theta
    cdef double dot(self, Py_ssize_t i, Py_ssize_t nnz, const int* index, const double* value,
                    const double* w) noexcept nogil
    # u += coef * K_ii p; scratch as scratch_size() says, zeros, left zero
    cdef void add_gram(self, Py_ssize_t i, Py_ssize_t nnz, const int* index,
                         const double* value, double coef, double* u,
                         double* scratch) noexcept nogil
    # u[where K_ii p may differ from zero] is added, times coef, to theta and reset to zero
    cdef void move_gram(self, Py_ssize_t i, Py_ssize_t nnz, const int* index, double coef,
                          double* u, double* theta) noexcept nogil
    # u = 0 where K_ii p may differ from zero
    cdef void clear_gram(self, Py_ssize_t i, Py_ssize_t nnz, const int* index,
                           double* u) noexcept nogil
